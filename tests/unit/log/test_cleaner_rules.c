/* What compaction keeps: by tables. */
#include "unit.h"

#include "log/cleaner_rules.h"

#define NOW INT64_C(1000000)

static struct batch batch(int8_t magic, int attributes, int64_t base_timestamp)
{
    return (struct batch){.magic = magic,
                          .attributes = (int16_t)attributes,
                          .base_timestamp = base_timestamp,
                          .producer_id = -1,
                          .base_offset = 10,
                          .last_offset = 19};
}

static void keeps_records(void **state)
{
    enum { H = BATCH_DELETE_HORIZON };
    static const struct {
        const char *what;
        int8_t magic;
        int attributes;
        int64_t horizon;
        bool old_tombstones;
        int64_t offset, newest;
        bool key, value, keep;
    } t[] = {
        {"newest", 2, 0, 0, false, 15, 15, true, true, true},
        {"superseded", 2, 0, 0, false, 15, 16, true, true, false},
        {"of a key without newer ones", 2, 0, 0, false, 15, -1, true, true, true},
        {"newer than the map knows", 2, 0, 0, false, 15, 12, true, true, true},
        {"without key", 2, 0, 0, false, 15, -1, false, true, false},
        {"beyond the map", 2, 0, 0, false, 101, 200, true, true, true},
        {"beyond the map, without key", 2, 0, 0, false, 101, -1, false, false, true},
        {"at the end of the map", 2, 0, 0, false, 100, 200, true, true, false},
        {"tombstone without horizon", 2, 0, NOW - 5, false, 15, 15, true, false, true},
        {"tombstone before its horizon", 2, H, NOW + 1, false, 15, 15, true, false, true},
        {"tombstone at its horizon", 2, H, NOW, false, 15, 15, true, false, false},
        {"tombstone behind its horizon", 2, H, NOW - 1, false, 15, 15, true, false, false},
        {"superseded tombstone", 2, H, NOW + 1, false, 15, 16, true, false, false},
        {"value behind a horizon", 2, H, NOW - 1, false, 15, 15, true, true, true},
        {"old tombstone, young file", 1, 0, 0, true, 15, 15, true, false, true},
        {"old tombstone, old file", 1, 0, 0, false, 15, 15, true, false, false},
        {"magic 1 has no horizon", 1, H, NOW + 1, false, 15, 15, true, false, false},
        {"old value, old file", 0, 0, 0, false, 15, 15, true, true, true},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct batch b = batch(t[i].magic, t[i].attributes, t[i].horizon);
        struct cleaner_rules r = {
            .now_ms = NOW, .covered_to = 100, .keep_legacy_tombstones = t[i].old_tombstones};
        if (cleaner_keeps_record(&r, &b, t[i].offset, t[i].key, t[i].value, t[i].newest) !=
            t[i].keep)
            fail_msg("%s", t[i].what);
    }
}

static void drops_batches(void **state)
{
    enum { C = BATCH_CONTROL, H = BATCH_DELETE_HORIZON };
    static const struct {
        int attributes;
        int64_t horizon;
        bool removable, drops;
    } t[] = {
        {0, 0, false, false},
        {0, 0, true, true},       /* data of an aborted transaction: at once */
        {H, NOW + 1, true, true}, /* whatever its tombstones */
        {C, 0, false, false},
        {C, 0, true, false},
        {C | H, NOW + 1, true, false},
        {C | H, NOW, true, true},
        {C | H, NOW - 1, false, false},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct batch b = batch(2, t[i].attributes, t[i].horizon);
        struct cleaner_rules r = {.now_ms = NOW};
        if (cleaner_drops_batch(&r, &b, t[i].removable) != t[i].drops)
            fail_msg("row %zu", i);
    }
}

static void finds_the_last_batch_of_a_producer(void **state)
{
    struct batch data = batch(2, 0, 0), marker = batch(2, BATCH_CONTROL, 0);
    data.producer_id = marker.producer_id = 7;
    data.producer_epoch = marker.producer_epoch = 3;
    struct cleaner_producer p = {.id = 7, .last_data_offset = 19, .epoch = 3};
    assert_true(cleaner_last_of_producer(&data, &p));
    p.last_data_offset = 18; /* its last data was in another batch */
    assert_false(cleaner_last_of_producer(&data, &p));
    p.last_data_offset = 20;
    assert_false(cleaner_last_of_producer(&data, &p));
    assert_false(cleaner_last_of_producer(&marker, &p));
    p.last_data_offset = -1; /* known by a marker */
    assert_false(cleaner_last_of_producer(&data, &p));
    assert_true(cleaner_last_of_producer(&marker, &p));
    p.epoch = 4;
    assert_false(cleaner_last_of_producer(&marker, &p));
    assert_false(cleaner_last_of_producer(&data, NULL)); /* not active any more */
    data.producer_id = -1;
    assert_false(cleaner_last_of_producer(&data, NULL));
}

static void judges_batches(void **state)
{
    enum { C = BATCH_CONTROL, H = BATCH_DELETE_HORIZON, NO = -1 };
    static const struct {
        const char *what;
        int8_t magic;
        int attributes;
        struct cleaner_kept kept;
        bool marker_removable, last;
        enum cleaner_outcome outcome;
        int64_t horizon;
    } t[] = {
        {"all stay", 2, 0, {5, 0, false}, false, false, CLEANER_ORIGINAL, NO},
        {"all stay, the last one", 2, 0, {5, 0, false}, false, true, CLEANER_ORIGINAL, NO},
        {"some stay", 2, 0, {3, 2, false}, false, false, CLEANER_REBUILT, NO},
        {"a tombstone gets its horizon",
         2,
         0,
         {3, 0, true},
         false,
         false,
         CLEANER_REBUILT,
         NOW + 77},
        {"it has one", 2, H, {3, 0, true}, false, false, CLEANER_ORIGINAL, 500},
        {"it keeps the one it has", 2, H, {3, 1, true}, false, false, CLEANER_REBUILT, 500},
        {"though the tombstones are gone", 2, H, {3, 1, false}, false, false, CLEANER_REBUILT, 500},
        {"none stays", 2, 0, {0, 5, false}, false, false, CLEANER_NOTHING, NO},
        {"none stays of the last one", 2, 0, {0, 5, false}, false, true, CLEANER_HEAD, NO},
        {"was empty", 2, 0, {0, 0, false}, false, false, CLEANER_NOTHING, NO},
        {"was empty, still the last", 2, H, {0, 0, false}, false, true, CLEANER_HEAD, NO},
        {"a marker nobody needs", 2, C, {1, 0, false}, true, false, CLEANER_REBUILT, NOW + 77},
        {"it waits", 2, C | H, {1, 0, false}, true, false, CLEANER_ORIGINAL, 500},
        {"old format, tombstone", 1, 0, {3, 0, true}, false, false, CLEANER_ORIGINAL, NO},
        {"old format, some", 1, 0, {3, 1, true}, false, false, CLEANER_REBUILT, NO},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct batch b = batch(t[i].magic, t[i].attributes, 500);
        struct cleaner_rules r = {.now_ms = NOW, .delete_retention_ms = 77};
        struct cleaner_verdict v =
            cleaner_judge(&r, &b, t[i].kept, t[i].marker_removable, t[i].last);
        if (v.outcome != t[i].outcome || v.horizon != t[i].horizon)
            fail_msg("%s: outcome %d, horizon %d", t[i].what, v.outcome, (int)v.horizon);
    }
}

static void horizon_does_not_overflow(void **state)
{
    struct batch b = batch(2, 0, 0);
    struct cleaner_rules r = {.now_ms = NOW, .delete_retention_ms = INT64_MAX};
    struct cleaner_verdict v =
        cleaner_judge(&r, &b, (struct cleaner_kept){1, 0, true}, false, false);
    assert_int_equal(v.horizon, INT64_MAX);
}

UNIT_MAIN(unit_test(keeps_records), unit_test(drops_batches),
          unit_test(finds_the_last_batch_of_a_producer), unit_test(judges_batches),
          unit_test(horizon_does_not_overflow))
