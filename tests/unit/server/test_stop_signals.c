/* What a second signal does: nothing soon after the first, later an end at once. */
#include "unit.h"

#include "server/stop_signals.h"

static void signals_soon_after_the_first_are_ignored(void **state)
{
    struct stop_signals s = {0};
    assert_int_equal(stop_signals_take(&s, 0), STOP_CLEANLY);
    assert_int_equal(stop_signals_take(&s, 0), STOP_IGNORE_FIRST);
    assert_int_equal(stop_signals_take(&s, 1), STOP_IGNORE);
    assert_int_equal(stop_signals_take(&s, STOP_AT_ONCE_AFTER_MS - 1), STOP_IGNORE);
    assert_int_equal(stop_signals_take(&s, STOP_AT_ONCE_AFTER_MS), STOP_AT_ONCE);
}

/* Those ignored do not put the end off. */
static void a_late_one_stops_at_once(void **state)
{
    struct stop_signals s = {0};
    assert_int_equal(stop_signals_take(&s, 1000000), STOP_CLEANLY);
    assert_int_equal(stop_signals_take(&s, 1000499), STOP_IGNORE_FIRST);
    assert_int_equal(stop_signals_take(&s, 1000500), STOP_AT_ONCE);
    s = (struct stop_signals){0};
    assert_int_equal(stop_signals_take(&s, 7), STOP_CLEANLY);
    assert_int_equal(stop_signals_take(&s, 90000), STOP_AT_ONCE);
}

UNIT_MAIN(unit_test(signals_soon_after_the_first_are_ignored), unit_test(a_late_one_stops_at_once))
