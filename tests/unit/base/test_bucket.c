/* The token bucket: it begins full, fills with time, may be overdrawn, and says how long that
 * lasts. */
#include "base/bucket.h"

#include "unit.h"

enum { RATE = 2, BURST = 22 };

static void it_begins_full_and_is_overdrawn_once(void **state)
{
    struct bucket b = BUCKET_INIT;
    assert_true(bucket_fill(&b, RATE, BURST, 1000) == BURST);
    bucket_take(&b, RATE, BURST, 20, 1000);
    assert_int_equal(bucket_wait_ms(&b, RATE, BURST, 1000), 0);
    bucket_take(&b, RATE, BURST, 10, 1000); /* 8 are owed */
    assert_int_equal(bucket_wait_ms(&b, RATE, BURST, 1000), 4000);
    assert_int_equal(bucket_wait_ms(&b, RATE, BURST, 4500), 500);
    assert_int_equal(bucket_wait_ms(&b, RATE, BURST, 5000), 0);
    assert_true(bucket_fill(&b, RATE, BURST, 5500) == 1);
}

static void no_more_is_kept_than_the_burst(void **state)
{
    struct bucket b = BUCKET_INIT;
    bucket_take(&b, RATE, BURST, 10, 0);
    assert_true(bucket_fill(&b, RATE, BURST, 1000000) == BURST);
    bucket_take(&b, RATE, BURST, -5, 1000000); /* given back */
    assert_true(bucket_fill(&b, RATE, BURST, 1000000) == BURST);
    assert_true(bucket_fill(&b, RATE, 5, 1000000) == 5); /* a lower limit */
}

static void a_clock_that_goes_back_stands_still(void **state)
{
    struct bucket b = BUCKET_INIT;
    bucket_take(&b, RATE, BURST, 24, 10000);
    assert_int_equal(bucket_wait_ms(&b, RATE, BURST, 9000), 1000);
    assert_int_equal(bucket_wait_ms(&b, RATE, BURST, 10500), 500);
}

static void a_rate_of_nothing_is_waited_for_long(void **state)
{
    struct bucket b = BUCKET_INIT;
    bucket_take(&b, 0, 0, 1, 0);
    assert_int_equal(bucket_wait_ms(&b, 0, 0, 1000), INT32_MAX);
}

UNIT_MAIN(unit_test(it_begins_full_and_is_overdrawn_once),
          unit_test(no_more_is_kept_than_the_burst), unit_test(a_clock_that_goes_back_stands_still),
          unit_test(a_rate_of_nothing_is_waited_for_long))
