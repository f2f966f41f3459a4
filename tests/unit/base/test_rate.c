/* Rates over a sliding window, on numbers instead of a clock. */
#include "base/rate.h"

#include "unit.h"

static const struct rate_window kafka = {.samples = 11, .sample_ms = 1000};

static double measured(struct rate *r, int64_t now)
{
    return rate_measure(r, &kafka, now, NULL);
}

static void a_first_burst_counts_over_all_but_one_sample(void **state)
{
    struct rate r = RATE_INIT;
    int64_t over;
    rate_record(&r, &kafka, 21000, 5000);
    assert_true(rate_measure(&r, &kafka, 5000, &over) == 2100);
    assert_int_equal(over, 10000);
    assert_int_equal(rate_throttle_ms(&r, &kafka, 1000, 5000), 11000);
    assert_int_equal(rate_throttle_ms(&r, &kafka, 2100, 5000), 0);
    rate_free(&r);
}

static void nothing_recorded_is_no_rate(void **state)
{
    struct rate r = RATE_INIT;
    assert_true(measured(&r, 0) == 0);
    assert_int_equal(rate_throttle_ms(&r, &kafka, 1, 0), 0);
    rate_free(&r);
}

static void a_steady_rate_is_found_once_the_window_is_full(void **state)
{
    struct rate r = RATE_INIT;
    for (int64_t t = 0; t <= 60000; t += 100)
        rate_record(&r, &kafka, 50, t);
    double found = measured(&r, 60000);
    assert_true(found > 495 && found < 550); /* the sample just begun may count for a little more */
    rate_free(&r);
}

static void what_is_older_than_the_window_is_forgotten(void **state)
{
    struct rate r = RATE_INIT;
    rate_record(&r, &kafka, 1000, 0);
    assert_true(measured(&r, 10999) > 0);
    assert_true(measured(&r, 11000) == 0);
    rate_free(&r);
}

/* Idle time between two records counts: no sample was made in it. */
static void a_pause_lowers_the_rate(void **state)
{
    struct rate r = RATE_INIT;
    rate_record(&r, &kafka, 1000, 0);
    rate_record(&r, &kafka, 1000, 9500);
    int64_t over;
    assert_true(rate_measure(&r, &kafka, 10500, &over) == 2000 * 1000.0 / 10500);
    assert_int_equal(over, 10500);
    rate_free(&r);
}

/* One sample more than the window has: while its edge lies inside the oldest, all of that counts.
 */
static void the_sample_at_the_edge_counts_whole(void **state)
{
    struct rate r = RATE_INIT;
    for (int64_t t = 0; t < 12; t++)
        rate_record(&r, &kafka, 1, t * 1000 + 900); /* starts 900, 1900, ... 11900 */
    int64_t over;
    double found = rate_measure(&r, &kafka, 11899, &over);
    assert_int_equal(over, 11899 - 900);
    assert_true(found == 12 * 1000.0 / over);
    rate_record(&r, &kafka, 1, 12900); /* takes the place of the first; the second is just over */
    assert_true(rate_measure(&r, &kafka, 12900, &over) == 11 * 1000.0 / over);
    assert_int_equal(over, 12900 - 2900);
    rate_free(&r);
}

static void taken_back_is_as_if_never_recorded(void **state)
{
    struct rate r = RATE_INIT;
    rate_record(&r, &kafka, 5000, 100);
    rate_record(&r, &kafka, 7000, 200);
    rate_record(&r, &kafka, -7000, 200);
    assert_true(measured(&r, 200) == 5000 * 1000.0 / 10100);
    rate_free(&r);
}

/* After the throttle the rate is what the limit allows. */
static void the_throttle_is_long_enough(void **state)
{
    struct rate r = RATE_INIT;
    rate_record(&r, &kafka, 15000, 0);
    int64_t ms = rate_throttle_ms(&r, &kafka, 1000, 0);
    assert_int_equal(ms, 5000);
    assert_true(measured(&r, ms) <= 1500);
    assert_true(measured(&r, 10000 + ms) <= 1000);
    rate_free(&r);
}

static void a_limit_of_zero_throttles_for_long_and_stays_a_number(void **state)
{
    struct rate r = RATE_INIT;
    rate_record(&r, &kafka, 1, 0);
    assert_int_equal(rate_throttle_ms(&r, &kafka, 0, 0), INT32_MAX);
    rate_free(&r);
}

static void a_clock_that_goes_back_does_no_harm(void **state)
{
    struct rate r = RATE_INIT;
    rate_record(&r, &kafka, 100, 50000);
    rate_record(&r, &kafka, 100, 10000);
    int64_t over;
    assert_true(rate_measure(&r, &kafka, 10000, &over) == 20);
    assert_int_equal(over, 10000);
    rate_free(&r);
}

static void one_sample_of_one_millisecond_works(void **state)
{
    static const struct rate_window least = {.samples = 1, .sample_ms = 1};
    struct rate r = RATE_INIT;
    for (int64_t t = 0; t < 100; t++) {
        rate_record(&r, &least, 3, t);
        double found = rate_measure(&r, &least, t, NULL);
        assert_true(found >= 3000 && found <= 6000);
    }
    rate_free(&r);
}

UNIT_MAIN(unit_test(a_first_burst_counts_over_all_but_one_sample),
          unit_test(nothing_recorded_is_no_rate),
          unit_test(a_steady_rate_is_found_once_the_window_is_full),
          unit_test(what_is_older_than_the_window_is_forgotten), unit_test(a_pause_lowers_the_rate),
          unit_test(the_sample_at_the_edge_counts_whole),
          unit_test(taken_back_is_as_if_never_recorded), unit_test(the_throttle_is_long_enough),
          unit_test(a_limit_of_zero_throttles_for_long_and_stays_a_number),
          unit_test(a_clock_that_goes_back_does_no_harm),
          unit_test(one_sample_of_one_millisecond_works))
