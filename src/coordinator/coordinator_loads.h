/* coordinator_loads.h - how long the loads of a coordinator's partitions took, for metrics.
 * THREADS  one. */
#ifndef COORDINATOR_COORDINATOR_LOADS_H
#define COORDINATOR_COORDINATOR_LOADS_H

#include <stdint.h>

struct coordinator_loads { /* zero it */
    uint64_t n;            /* partitions that were loaded */
    int64_t ms, most_ms;   /* all of them, and the slowest */
};

static inline void coordinator_loads_add(struct coordinator_loads *l, int64_t ms)
{
    l->n++;
    l->ms += ms;
    if (ms > l->most_ms)
        l->most_ms = ms;
}

static inline void coordinator_loads_join(struct coordinator_loads *l,
                                          const struct coordinator_loads *other)
{
    l->n += other->n;
    l->ms += other->ms;
    if (other->most_ms > l->most_ms)
        l->most_ms = other->most_ms;
}

#endif
