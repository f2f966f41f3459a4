/* How dirty a log is, and when it is compacted: by tables. */
#include "unit.h"

#include "log/cleaner_choose.h"

#define NOW INT64_C(1000000)

/* Four segments of 100 records and bytes each, the last one active. */
static const struct cleaner_segment four[] = {{0, 100, NOW - 400, NOW - 490},
                                              {100, 100, NOW - 300, NOW - 390},
                                              {200, 100, NOW - 200, NOW - 290},
                                              {300, 50, NOW - 100, NOW - 190}};

static struct cleaner_facts facts(void)
{
    return (struct cleaner_facts){.segments = four,
                                  .segments_n = 4,
                                  .end = 350,
                                  .last_stable = 350,
                                  .now_ms = NOW,
                                  .max_lag_ms = INT64_MAX,
                                  .min_ratio = 0.5};
}

static void bounds_the_dirty_part(void **state)
{
    static const struct {
        const char *what;
        int64_t start, cleaned_to, last_stable, min_lag;
        int64_t first_dirty, first_uncleanable, upto, clean, cleanable;
        bool reset;
    } t[] = {
        {"never compacted", 0, 0, 350, 0, 0, 300, 300, 0, 300, false},
        {"from the checkpoint", 0, 200, 350, 0, 200, 300, 300, 200, 100, false},
        {"inside a segment", 0, 150, 350, 0, 150, 300, 300, 200, 200, false},
        {"all is clean", 0, 300, 350, 0, 300, 300, 300, 300, 0, false},
        {"checkpoint below the log start", 120, 50, 350, 0, 120, 300, 300, 200, 200, true},
        {"none, and a log start", 120, 0, 350, 0, 120, 300, 300, 200, 200, false},
        {"checkpoint above the end", 0, 351, 350, 0, 0, 300, 300, 0, 300, true},
        {"checkpoint at the end", 0, 350, 350, 0, 350, 350, 300, 350, 0, false},
        {"an open transaction", 0, 0, 250, 0, 0, 250, 200, 0, 200, false},
        {"at a segment's base", 0, 0, 200, 0, 0, 200, 200, 0, 200, false},
        {"not committed from the dirty part on", 0, 200, 150, 0, 200, 200, 200, 200, 0, false},
        {"nothing committed", 0, 0, 0, 0, 0, 0, 0, 0, 0, false},
        {"a min lag holds back the young", 0, 0, 350, 250, 0, 200, 200, 0, 200, false},
        {"exactly as old", 0, 0, 350, 200, 0, 300, 300, 0, 300, false},
        {"all too young", 0, 0, 350, 400, 0, 100, 100, 0, 100, false},
        {"all of it", 0, 0, 350, 500, 0, 0, 0, 0, 0, false},
        {"lag does not ask the clean part", 0, 100, 350, 350, 100, 100, 100, 100, 0, false},
        {"any age", 0, 0, 350, INT64_MAX, 0, 0, 0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct cleaner_facts f = facts();
        struct cleaner_choice c;
        f.start = t[i].start;
        f.cleaned_to = t[i].cleaned_to;
        f.last_stable = t[i].last_stable;
        f.min_lag_ms = t[i].min_lag;
        cleaner_choose(&f, &c);
        if (c.first_dirty != t[i].first_dirty || c.first_uncleanable != t[i].first_uncleanable ||
            c.upto != t[i].upto || c.clean_bytes != t[i].clean ||
            c.cleanable_bytes != t[i].cleanable || c.reset != t[i].reset)
            fail_msg("%s: dirty %d uncleanable %d upto %d clean %d cleanable %d reset %d",
                     t[i].what, (int)c.first_dirty, (int)c.first_uncleanable, (int)c.upto,
                     (int)c.clean_bytes, (int)c.cleanable_bytes, c.reset);
    }
}

static void eligible_above_the_ratio_or_overdue(void **state)
{
    static const struct {
        int64_t cleaned_to, last_stable, max_lag;
        double min_ratio;
        bool eligible;
        int64_t overdue;
    } t[] = {
        {0, 350, INT64_MAX, 0.5, true, 0},        /* 300 of 300 */
        {200, 350, INT64_MAX, 0.5, false, 0},     /* 100 of 300 */
        {200, 350, INT64_MAX, 0.33, true, 0},     /* just above */
        {100, 350, INT64_MAX, 2.0 / 3, false, 0}, /* exactly: not above */
        {300, 350, INT64_MAX, 0, false, 0},       /* nothing to do, whatever the ratio */
        {200, 350, 289, 0.9, true, 1},            /* by a millisecond */
        {200, 350, 290, 0.9, false, 0},
        {0, 350, 100, 1, true, 390}, /* the oldest dirty segment counts */
        {0, 50, 100, 1, false, 390}, /* but nothing of it may be compacted */
        {300, 350, 1, 0, false, 0},  /* the active one is not asked */
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct cleaner_facts f = facts();
        struct cleaner_choice c;
        f.cleaned_to = t[i].cleaned_to;
        f.last_stable = t[i].last_stable;
        f.max_lag_ms = t[i].max_lag;
        f.min_ratio = t[i].min_ratio;
        cleaner_choose(&f, &c);
        if (c.eligible != t[i].eligible || c.overdue_ms != t[i].overdue)
            fail_msg("row %zu: eligible %d, overdue %d, ratio %g", i, c.eligible, (int)c.overdue_ms,
                     c.ratio);
    }
}

static void records_without_time_are_not_overdue(void **state)
{
    struct cleaner_segment v[] = {{0, 10, -1, -1}, {10, 10, 0, 0}, {20, 10, 5, 5}};
    struct cleaner_facts f = facts();
    struct cleaner_choice c;
    f.segments = v;
    f.segments_n = 3;
    f.max_lag_ms = 1;
    f.min_ratio = 1;
    cleaner_choose(&f, &c);
    assert_int_equal(c.overdue_ms, 0);
    assert_false(c.eligible);
}

static void empty_logs_are_not_dirty(void **state)
{
    struct cleaner_segment v[] = {{0, 0, -1, -1}};
    struct cleaner_facts f = facts();
    struct cleaner_choice c;
    f.segments = v;
    f.segments_n = 1;
    f.end = f.last_stable = 0;
    f.min_ratio = 0;
    cleaner_choose(&f, &c);
    assert_false(c.eligible);
    assert_true(c.ratio == 0);
}

UNIT_MAIN(unit_test(bounds_the_dirty_part), unit_test(eligible_above_the_ratio_or_overdue),
          unit_test(records_without_time_are_not_overdue), unit_test(empty_logs_are_not_dirty))
