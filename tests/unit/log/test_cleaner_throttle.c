/* How long to sleep for so many bytes. */
#include "unit.h"

#include <math.h>

#include "log/cleaner_throttle.h"

#define MS INT64_C(1000000)

static void sleeps_down_to_the_rate(void **state)
{
    struct cleaner_throttle t;
    cleaner_throttle_init(&t, 1000, 0);
    assert_int_equal(cleaner_throttle_note(&t, 500, 100 * MS), 0); /* too early to tell */
    assert_int_equal(cleaner_throttle_note(&t, 500, 400 * MS), 600);
    assert_int_equal(cleaner_throttle_note(&t, 100, 1000 * MS), 0);
    assert_int_equal(cleaner_throttle_note(&t, 100, 1400 * MS), 0); /* slow enough */
    assert_int_equal(cleaner_throttle_note(&t, 1000, 1800 * MS), 600);
}

/* Over many steps it comes to the rate, whatever their size. */
static void keeps_the_rate_in_the_long_run(void **state)
{
    struct cleaner_throttle t;
    int64_t now = 0, bytes = 0;
    cleaner_throttle_init(&t, 1 << 20, now);
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)(1 + i % 7) * 10000;
        now += 3 * MS; /* 10 MB/s or so by itself */
        bytes += (int64_t)n;
        now += cleaner_throttle_note(&t, n, now) * MS;
    }
    double rate = (double)bytes / ((double)now / 1e9);
    assert_true(rate > 0.9 * (1 << 20) && rate < 1.05 * (1 << 20));
}

static void no_limit_no_sleep(void **state)
{
    static const double none[] = {1.7976931348623157E308, 0, -1, NAN};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        struct cleaner_throttle t;
        cleaner_throttle_init(&t, none[i], 0);
        assert_int_equal(cleaner_throttle_note(&t, 1 << 30, 301 * MS), 0);
    }
}

static void never_sleeps_for_ever(void **state)
{
    struct cleaner_throttle t;
    cleaner_throttle_init(&t, 1e-300, 0);
    assert_int_equal(cleaner_throttle_note(&t, 1 << 30, 301 * MS), 3600 * 1000);
}

UNIT_MAIN(unit_test(sleeps_down_to_the_rate), unit_test(keeps_the_rate_in_the_long_run),
          unit_test(no_limit_no_sleep), unit_test(never_sleeps_for_ever))
