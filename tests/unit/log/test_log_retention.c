/* What retention deletes, and what it must not. */
#include "log_util.h"

/* Segments of three one-record batches each, times T0, T0 + 1000, ... per segment. */
static void fill(struct log_test *t, int segments)
{
    struct records r = records_of(1);
    for (int i = 0; i < segments * 3; i++) {
        r.timestamp = T0 + i / 3 * 1000;
        assert_int_equal(append(t, &r), KERR_NONE);
    }
    assert_int_equal(log_segment_count(t->log), segments);
}

static void setup_small(struct log_test *t)
{
    setup(t);
    struct records r = records_of(1);
    struct buf b = build(&r);
    t->config.segment_bytes = (int32_t)(3 * b.len);
    t->config.retention_ms = -1;
    t->config.segment_ms = INT64_MAX; /* by size only */
    buf_free(&b);
    assert_int_equal(try_create(t), 0);
}

static void configure(struct log_test *t, int64_t ms, int64_t bytes)
{
    t->config.retention_ms = ms;
    t->config.retention_bytes = bytes;
    log_set_config(t->log, &t->config);
}

static void by_time_from_the_front(void **state)
{
    struct log_test t;
    setup_small(&t);
    fill(&t, 5);
    log_set_high_watermark(t.log, 15);
    configure(&t, 2500, -1);
    assert_int_equal(log_retention(t.log, T0 + 2500), 0);
    assert_int_equal(log_retention(t.log, T0 + 2501), 1);
    assert_int_equal(log_start_offset(t.log), 3);
    assert_int_equal(log_retention(t.log, T0 + 4600), 2);
    assert_int_equal(log_start_offset(t.log), 9);
    check(&t);
    reopen_clean(&t);
    assert_int_equal(log_start_offset(t.log), 9);
    check(&t);
    teardown(&t);
}

/* All of them too old: a new active segment takes their place. */
static void the_active_segment_goes_too(void **state)
{
    struct log_test t;
    setup_small(&t);
    fill(&t, 3);
    log_set_high_watermark(t.log, 9);
    configure(&t, 1000, -1);
    assert_int_equal(log_retention(t.log, T0 + 1000000), 3);
    assert_int_equal(log_segment_count(t.log), 1);
    assert_int_equal(log_start_offset(t.log), 9);
    assert_int_equal(log_end_offset(t.log), 9);
    assert_int_equal(log_size(t.log), 0);
    check(&t);
    /* an empty active segment stays */
    assert_int_equal(log_retention(t.log, T0 + 9000000), 0);
    append_many(&t, 1, 1);
    reopen_clean(&t);
    assert_int_equal(log_start_offset(t.log), 9);
    assert_int_equal(log_end_offset(t.log), 10);
    check(&t);
    teardown(&t);
}

/* C78 */
static void nothing_above_the_watermark_goes(void **state)
{
    for (int64_t hw = 0; hw <= 15; hw++) {
        struct log_test t;
        setup_small(&t);
        fill(&t, 5);
        log_set_high_watermark(t.log, hw);
        configure(&t, 1, 0);
        assert_int_equal(log_retention(t.log, T0 + 1000000), hw / 3);
        assert_true(log_start_offset(t.log) <= hw);
        assert_int_equal(log_high_watermark(t.log), hw);
        check(&t);
        teardown(&t);
    }
}

static void by_size_never_below_the_limit(void **state)
{
    for (int64_t limit = 0; limit < 1500; limit += 37) {
        struct log_test t;
        setup_small(&t);
        fill(&t, 5);
        log_set_high_watermark(t.log, 15);
        int64_t before = log_size(t.log), one = before / 5;
        configure(&t, -1, limit);
        int gone = log_retention(t.log, T0);
        assert_int_equal(log_size(t.log), before - gone * one);
        if (before > limit)
            assert_true(log_size(t.log) >= limit && log_size(t.log) - one < limit);
        else
            assert_int_equal(gone, 0);
        check(&t);
        teardown(&t);
    }
}

static void below_the_start_whatever_the_policy(void **state)
{
    struct log_test t;
    setup_small(&t);
    fill(&t, 5);
    t.config.cleanup_policy = CLEANUP_COMPACT;
    configure(&t, 1, 0);
    log_set_high_watermark(t.log, 15);
    assert_int_equal(log_retention(t.log, T0 + 1000000), 0); /* compacted: no size, no time */
    assert_int_equal(log_raise_start_offset(t.log, 7), KERR_NONE);
    assert_int_equal(log_retention(t.log, T0), 2);
    assert_int_equal(log_start_offset(t.log), 7);
    assert_int_equal(t.log->segments.now->v[0]->base, 6);
    check(&t);
    /* the start survives a clean restart though it is inside a segment */
    reopen_clean(&t);
    assert_int_equal(log_start_offset(t.log), 7);
    struct log_slice s;
    assert_int_equal(log_read(t.log, 6, 100, 15, true, false, &s), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(read_at(&t, 7, 1), 8);
    teardown(&t);
}

/* C76, 35: a record from the future holds its segment and all later ones, and one line says so. */
static void a_future_record_blocks_by_time_only(void **state)
{
    struct log_test t;
    setup_small(&t);
    struct records r = records_of(1);
    r.timestamp = T0 + INT64_C(365) * 86400000;
    assert_int_equal(append(&t, &r), KERR_NONE);
    r.timestamp = T0;
    for (int i = 0; i < 8; i++)
        assert_int_equal(append(&t, &r), KERR_NONE);
    log_set_high_watermark(t.log, 9);
    configure(&t, 1000, -1);
    for (int i = 0; i < 3; i++) {
        sim_clock_advance(&t.clock, 10000);
        assert_int_equal(log_retention(t.log, clock_wall_ms(&t.clock.clock)), 0);
    }
    const char *first = strstr(t.said, "future");
    assert_non_null(first);
    assert_non_null(strstr(t.said, "00000000000000000000.log"));
    assert_null(strstr(first + 1, "future"));
    configure(&t, 1000, 200);
    assert_true(log_retention(t.log, T0) > 0);
    check(&t);
    teardown(&t);
}

/* C77 */
static void strange_times(void **state)
{
    struct log_test t;
    setup_small(&t);
    struct records r = records_of(1);
    r.timestamp = T0 / 1000; /* seconds for milliseconds: 1970 */
    for (int i = 0; i < 3; i++)
        assert_int_equal(append(&t, &r), KERR_NONE);
    r.timestamp = -1; /* none: the file's own time counts */
    for (int i = 0; i < 4; i++)
        assert_int_equal(append(&t, &r), KERR_NONE);
    log_set_high_watermark(t.log, 7);
    configure(&t, INT64_C(7) * 86400000, -1);
    int64_t now = clock_wall_ms(clock_real());
    assert_int_equal(log_retention(t.log, now), 1);
    assert_int_equal(log_start_offset(t.log), 3);
    assert_int_equal(log_retention(t.log, now + INT64_C(8) * 86400000), 2);
    assert_int_equal(log_start_offset(t.log), 7);
    check(&t);
    teardown(&t);
}

/* One very old record among new ones does not matter: the maximum counts. */
static void the_newest_record_of_a_segment_counts(void **state)
{
    struct log_test t;
    setup_small(&t);
    struct records r = records_of(1);
    static const int64_t times[] = {5, T0, 5, 6, 7, 8, 9};
    for (int i = 0; i < 7; i++) {
        r.timestamp = times[i];
        assert_int_equal(append(&t, &r), KERR_NONE);
    }
    log_set_high_watermark(t.log, 7);
    configure(&t, 1000, -1);
    assert_int_equal(log_retention(t.log, T0 + 500), 0); /* and later ones wait behind it */
    assert_int_equal(log_retention(t.log, T0 + 1001), 3);
    teardown(&t);
}

static void files_go_after_the_delay(void **state)
{
    struct log_test t;
    setup_small(&t);
    fill(&t, 3);
    log_set_high_watermark(t.log, 9);
    t.config.file_delete_delay_ms = 60000;
    configure(&t, -1, 0);
    assert_int_equal(log_dir_next_due(t.dir), -1);
    assert_int_equal(log_retention(t.log, T0), 3);
    assert_true(size_of(&t, "00000000000000000000.log.deleted") > 0);
    assert_true(size_of(&t, "00000000000000000000.index.deleted") >= 0);
    assert_true(size_of(&t, "00000000000000000000.timeindex.deleted") >= 0);
    assert_true(size_of(&t, "00000000000000000003.snapshot.deleted") > 0);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), -ENOENT);
    int64_t due = log_dir_next_due(t.dir);
    assert_int_equal(due, clock_mono_ms(&t.clock.clock) + 60000);
    sim_clock_advance(&t.clock, 59999);
    log_dir_remove_due(t.dir);
    assert_true(size_of(&t, "00000000000000000000.log.deleted") > 0);
    sim_clock_advance(&t.clock, 1);
    log_dir_remove_due(t.dir);
    assert_int_equal(size_of(&t, "00000000000000000000.log.deleted"), -ENOENT);
    assert_int_equal(size_of(&t, "00000000000000000003.snapshot.deleted"), -ENOENT);
    assert_int_equal(log_dir_next_due(t.dir), -1);
    check(&t);
    teardown(&t);
}

/* C55: every batch of a producer is gone, its marker stays; a restart refuses nothing. */
static void a_producer_whose_records_are_gone_goes_on(void **state)
{
    struct log_test t;
    setup_log(&t);
    struct records r = produced(1, 0, 0, 5, true);
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(append_marker(&t, 1, 0, true, 7), KERR_NONE);
    log_set_high_watermark(t.log, 6);
    assert_int_equal(log_raise_start_offset(t.log, 6), KERR_NONE);
    reopen_clean(&t);
    struct records next = produced(1, 0, 5, 1, true);
    assert_int_equal(append(&t, &next), KERR_NONE);
    assert_int_equal(append_marker(&t, 1, 0, true, 7), KERR_NONE);
    note_checkpoints(&t);
    t.start_offset = 6;
    reopen_unclean(&t);
    struct records more = produced(1, 0, 6, 1, true);
    assert_int_equal(append(&t, &more), KERR_NONE);
    check(&t);
    teardown(&t);
}

static void producers_expire(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.producer_id_expiration_ms = 60000;
    assert_int_equal(try_create(&t), 0);
    struct records r = produced(1, 0, 0, 1, false);
    assert_int_equal(append(&t, &r), KERR_NONE);
    log_expire_producers(t.log, T0 + 59999);
    struct records strange = produced(1, 0, 9, 1, false);
    assert_int_equal(append(&t, &strange), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    log_expire_producers(t.log, T0 + 60000);
    assert_int_equal(append(&t, &strange), KERR_NONE);
    teardown(&t);
}

UNIT_MAIN(unit_test(by_time_from_the_front), unit_test(the_active_segment_goes_too),
          unit_test(nothing_above_the_watermark_goes), unit_test(by_size_never_below_the_limit),
          unit_test(below_the_start_whatever_the_policy),
          unit_test(a_future_record_blocks_by_time_only), unit_test(strange_times),
          unit_test(the_newest_record_of_a_segment_counts), unit_test(files_go_after_the_delay),
          unit_test(a_producer_whose_records_are_gone_goes_on), unit_test(producers_expire))
