/* tool_latency.c - see tool_latency.h. */
#include "tools/tool_latency.h"

/* The largest value that falls into a step. */
static uint64_t step_end(unsigned step)
{
    if (step < 2 * LATENCY_FINE)
        return step;
    unsigned shift = step / LATENCY_FINE - 1;
    return ((uint64_t)(step - LATENCY_FINE * shift + 1) << shift) - 1;
}

double latency_percentile(const struct latency *l, double part)
{
    uint64_t wanted = (uint64_t)(part * (double)l->n), seen = 0;
    if (wanted >= l->n)
        wanted = l->n ? l->n - 1 : 0;
    for (unsigned i = 0; i < LATENCY_STEPS; i++) {
        seen += l->steps[i];
        if (seen > wanted) {
            uint64_t end = step_end(i);
            return (double)(end < l->max_us ? end : l->max_us) / 1000;
        }
    }
    return 0;
}

double latency_mean(const struct latency *l)
{
    return l->n ? (double)l->sum_us / (double)l->n / 1000 : 0;
}

double latency_max(const struct latency *l)
{
    return (double)l->max_us / 1000;
}
