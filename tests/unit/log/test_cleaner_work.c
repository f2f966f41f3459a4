/* Compaction of one log: what stays, what goes, and how it looks on disk. */
#include "cleaner_util.h"

static void keeps_newest_value_of_each_key(void **state)
{
    struct clean_test c;
    setup_clean(&c);
    put(&c, "a", "1");
    put(&c, "b", "1");
    put(&c, "a", "2");
    roll(&c);
    put(&c, "c", "1");
    put(&c, "b", "2");
    roll(&c);
    put(&c, "a", "9"); /* in the active segment: not looked at */
    clean(&c);
    assert_string_equal(contents(&c), "2:a=2 3:c=1 4:b=2 5:a=9");
    assert_int_equal(c.result.end_offset, 5);
    assert_int_equal(log_cleaned_to(c.t.log), 5);
    assert_int_equal(log_segment_count(c.t.log), 2); /* both became one */
    assert_int_equal(read_all(&c.t, 1 << 20), 2);
    assert_false(look(&c).eligible);
    teardown_clean(&c);
}

UNIT_MAIN(unit_test(keeps_newest_value_of_each_key))
