/* clock.h - time as something handed in: the real clock, or one that a test or the simulator moves.
 *
 * wall: milliseconds since 1970, may jump. mono: milliseconds (or ns) that never go back; for waits
 * and ages. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*wall_ms)(const struct clock *c);
    int64_t (*mono_ns)(const struct clock *c);
};

/* The machine's clock. Static; never freed. */
const struct clock *clock_real(void);

static inline int64_t clock_wall_ms(const struct clock *c)
{
    return c->wall_ms(c);
}
static inline int64_t clock_mono_ns(const struct clock *c)
{
    return c->mono_ns(c);
}
static inline int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_ns(c) / 1000000;
}

/* A clock that stands still until told otherwise. Hand out &sim->clock. THREADS  one. */
struct sim_clock {
    struct clock clock;
    int64_t wall_ms, mono_ns;
};
void sim_clock_init(struct sim_clock *sim, int64_t wall_ms);
void sim_clock_advance(struct sim_clock *sim, int64_t ms); /* both wall and mono */

#endif
