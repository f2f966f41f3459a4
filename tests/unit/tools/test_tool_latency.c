/* Counts of latencies: steps join without gaps, percentiles are right within a step. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "tools/tool_latency.h"

static void steps_join_without_gaps(void **state)
{
    unsigned last = 0;
    for (uint64_t us = 0; us < 3000000; us++) {
        unsigned step = latency_step(us);
        assert_true(step == last || step == last + 1);
        last = step;
    }
    assert_true(latency_step(UINT64_MAX) < LATENCY_STEPS);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t at = (uint64_t)1 << bit;
        assert_true(latency_step(at) == latency_step(at - 1) + 1);
    }
}

static void percentiles_of_even_counts(void **state)
{
    struct latency *l = calloc(1, sizeof *l);
    for (int us = 1; us <= 100000; us++)
        latency_add(l, (uint64_t)us);
    static const double parts[] = {0.01, 0.5, 0.95, 0.99, 0.999};
    for (int i = 0; i < 5; i++) {
        double ms = latency_percentile(l, parts[i]);
        assert_true(ms >= parts[i] * 100 * 0.999 && ms <= parts[i] * 100 * 1.02);
    }
    assert_true(latency_max(l) == 100.0);
    assert_true(latency_percentile(l, 1) == 100.0);
    assert_true(latency_mean(l) == 50.0005);
    free(l);
}

static void none_and_one(void **state)
{
    struct latency *l = calloc(1, sizeof *l);
    assert_true(latency_percentile(l, 0.5) == 0);
    assert_true(latency_mean(l) == 0);
    latency_add(l, 5000000);
    assert_true(latency_percentile(l, 0.5) == 5000);
    assert_true(latency_percentile(l, 0.999) == 5000);
    free(l);
}

UNIT_MAIN(unit_test(steps_join_without_gaps), unit_test(percentiles_of_even_counts),
          unit_test(none_and_one))
