/* Appending: what a leader and a follower write, what is refused and leaves no trace. */
#include "log_util.h"

static void gives_offsets_in_order(void **state)
{
    struct log_test t;
    struct append_info info;
    setup_log(&t);
    struct records r = records_of(3);
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_int_equal(info.first_offset, 0);
    assert_int_equal(info.last_offset, 2);
    assert_int_equal(info.log_append_time, -1);
    assert_int_equal(info.log_start_offset, 0);
    assert_false(info.duplicate);
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_int_equal(info.first_offset, 3);
    assert_int_equal(log_end_offset(t.log), 6);
    assert_int_equal(log_high_watermark(t.log), 0);
    assert_int_equal(read_all(&t, 1 << 20), 1);
    check(&t);
    teardown(&t);
}

UNIT_MAIN(unit_test(gives_offsets_in_order))
