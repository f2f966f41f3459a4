/* tool_latency.h - counts of latencies, in steps that grow with the value (about 1.6 %), so that
 * adding one costs a few instructions and percentiles of any number of them need 32 KiB. Maximum
 * and mean are exact.
 *
 * THREADS  one, or the caller's lock. */
#ifndef TOOLS_TOOL_LATENCY_H
#define TOOLS_TOOL_LATENCY_H

#include <stdint.h>

enum { LATENCY_FINE = 64, LATENCY_STEPS = 64 * 59 };

struct latency {
    uint64_t n, sum_us, max_us;
    uint64_t steps[LATENCY_STEPS];
};

static inline unsigned latency_step(uint64_t us)
{
    if (us < 2 * LATENCY_FINE)
        return (unsigned)us;
    unsigned shift = 57 - (unsigned)__builtin_clzll(us); /* us >> shift is 64..127 */
    return LATENCY_FINE * shift + (unsigned)(us >> shift);
}

static inline void latency_add(struct latency *l, uint64_t us)
{
    l->n++;
    l->sum_us += us;
    if (us > l->max_us)
        l->max_us = us;
    l->steps[latency_step(us)]++;
}

/* In milliseconds. The value that `part` (0..1) of all do not exceed; 0 when there are none. */
double latency_percentile(const struct latency *l, double part);
double latency_mean(const struct latency *l);
double latency_max(const struct latency *l);

#endif
