/* clock.c - the machine's clock and the simulated one. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts); /* cannot fail for these two ids */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t real_wall_ms(const struct clock *c)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

static int64_t real_mono_ns(const struct clock *c)
{
    return read_ns(CLOCK_MONOTONIC);
}

const struct clock *clock_real(void)
{
    static const struct clock real = {real_wall_ms, real_mono_ns};
    return &real;
}

static const struct sim_clock *sim_of(const struct clock *c)
{
    return (const struct sim_clock *)((const char *)c - offsetof(struct sim_clock, clock));
}

static int64_t sim_wall_ms(const struct clock *c)
{
    return sim_of(c)->wall_ms;
}

static int64_t sim_mono_ns(const struct clock *c)
{
    return sim_of(c)->mono_ns;
}

void sim_clock_init(struct sim_clock *sim, int64_t wall_ms)
{
    *sim = (struct sim_clock){.clock = {sim_wall_ms, sim_mono_ns}, .wall_ms = wall_ms};
}

void sim_clock_advance(struct sim_clock *sim, int64_t ms)
{
    sim->wall_ms += ms;
    sim->mono_ns += ms * 1000000;
}
