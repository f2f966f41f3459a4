/* When a segment ends, and what its files look like then. */
#include "log_util.h"

static struct segment *segment_at(struct log_test *t, int i)
{
    return t->log->segments.now->v[i];
}

static int64_t base_at(struct log_test *t, int i)
{
    return segment_at(t, i)->base;
}

/* The worked example: base 1000, interval 100, indexes of 1000 bytes, six batches of two records.
 */
static void index_rule_example(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.index_interval_bytes = 100;
    t.config.segment_index_bytes = 1000;
    assert_int_equal(try_create(&t), 0);
    assert_int_equal(log_truncate_fully(t.log, 1000), KERR_NONE);
    for (int i = 0; i < 6; i++) {
        struct records r = records_of(2);
        r.timestamp = T0 + 5 + i;
        r.step = 0;
        r.value_n = 7; /* batches of 93 bytes */
        assert_int_equal(append(&t, &r), KERR_NONE);
    }
    assert_int_equal(size_of(&t, "00000000000000001000.index"), 1000);
    assert_int_equal(size_of(&t, "00000000000000001000.timeindex"), 996);
    struct segment *s = segment_at(&t, 0);
    struct index_view v;
    int64_t one = segment_size(s) / 6;
    assert_int_equal(one, 93);
    assert_int_equal(segment_offsets(s, &v), 0);
    assert_int_equal(v.n, 2);
    assert_int_equal(offset_index_at(&v, 1000, 0).offset, 1005);
    assert_int_equal(offset_index_at(&v, 1000, 0).position, 2 * one);
    assert_int_equal(offset_index_at(&v, 1000, 1).offset, 1009);
    assert_int_equal(offset_index_at(&v, 1000, 1).position, 4 * one);
    index_view_close(&v);
    assert_int_equal(segment_times(s, &v), 0);
    assert_int_equal(v.n, 2);
    assert_int_equal(time_index_at(&v, 1000, 0).timestamp, T0 + 7);
    assert_int_equal(time_index_at(&v, 1000, 0).offset, 1005);
    assert_int_equal(time_index_at(&v, 1000, 1).timestamp, T0 + 9);
    index_view_close(&v);
    check(&t);
    pthread_mutex_lock(&t.log->lock);
    assert_int_equal(log_roll(t.log, log_end_offset(t.log)), 0);
    pthread_mutex_unlock(&t.log->lock);
    assert_int_equal(size_of(&t, "00000000000000001000.index"), 16);
    assert_int_equal(size_of(&t, "00000000000000001000.timeindex"), 36);
    assert_int_equal(segment_times(s, &v), 0);
    assert_int_equal(time_index_last(&v, 1000).timestamp, T0 + 10);
    assert_int_equal(time_index_last(&v, 1000).offset, 1011);
    index_view_close(&v);
    assert_int_equal(size_of(&t, "00000000000000001012.index"), 1000);
    assert_int_equal(size_of(&t, "00000000000000001012.snapshot"), 10);
    check(&t);
    /* truncateTo(1005) */
    assert_int_equal(log_truncate_to(t.log, 1005), KERR_NONE);
    assert_int_equal(size_of(&t, "00000000000000001000.log"), 2 * one);
    assert_int_equal(log_end_offset(t.log), 1005);
    assert_int_equal(segment_offsets(segment_at(&t, 0), &v), 0);
    assert_int_equal(v.n, 0);
    index_view_close(&v);
    check(&t);
    teardown(&t);
}

static void by_size(void **state)
{
    struct log_test t;
    setup(&t);
    struct records r = records_of(1);
    struct buf b = build(&r);
    t.config.segment_bytes = (int32_t)(3 * b.len);
    buf_free(&b);
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 10, 1);
    assert_int_equal(log_segment_count(t.log), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(base_at(&t, i), 3 * i);
    check(&t);
    assert_true(read_all(&t, 1 << 20) >= 4);
    reopen_clean(&t);
    assert_int_equal(log_segment_count(t.log), 4);
    check(&t);
    append_many(&t, 3, 1);
    assert_int_equal(log_segment_count(t.log), 5);
    check(&t);
    teardown(&t);
}

/* By the records' time: a quiet partition does not roll, however long it is quiet. */
static void by_time_of_the_records(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_ms = 1000;
    assert_int_equal(try_create(&t), 0);
    struct records r = records_of(1);
    assert_int_equal(append(&t, &r), KERR_NONE);
    sim_clock_advance(&t.clock, 100000);
    r.timestamp = T0 + 1000;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 1);
    r.timestamp = T0 - 5000; /* older than the first: no reason */
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 1);
    r.timestamp = T0 + 1001;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 2);
    /* the first time is read from the file after a restart */
    reopen_clean(&t);
    r.timestamp = T0 + 2001;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 2);
    r.timestamp = T0 + 2002;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 3);
    check(&t);
    teardown(&t);
}

static void without_times_by_the_clock(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_ms = 1000;
    assert_int_equal(try_create(&t), 0);
    struct records r = records_of(1);
    r.timestamp = -1;
    assert_int_equal(append(&t, &r), KERR_NONE);
    sim_clock_advance(&t.clock, 1000);
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 1);
    sim_clock_advance(&t.clock, 1);
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 2);
    check(&t);
    teardown(&t);
}

static void compaction_lag_shortens_the_time(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_ms = 100000;
    t.config.max_compaction_lag_ms = 1000;
    assert_int_equal(try_create(&t), 0);
    struct records r = records_of(1);
    assert_int_equal(append(&t, &r), KERR_NONE);
    r.timestamp = T0 + 5000;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 1);
    t.config.cleanup_policy = CLEANUP_COMPACT;
    log_set_config(t.log, &t.config);
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 2);
    teardown(&t);
}

static void jitter_makes_it_earlier_only(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_ms = 1000;
    t.config.segment_jitter_ms = 5000; /* bounded by segment.ms */
    int64_t least = INT64_MAX, most = -1;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 200; i++) {
        struct segment *s = segment_existing(&t.log->folder, 0, 0, false, false, &t.log->config->c);
        least = s->jitter_ms < least ? s->jitter_ms : least;
        most = s->jitter_ms > most ? s->jitter_ms : most;
        segment_unref(s);
    }
    assert_true(least >= 0 && most < 1000);
    assert_true(most - least > 100);
    teardown(&t);
}

static void by_full_indexes(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.index_interval_bytes = 0;
    t.config.segment_index_bytes = 40; /* 5 offsets, 3 times of which one is kept free */
    assert_int_equal(try_create(&t), 0);
    struct records r = records_of(1);
    for (int i = 0; i < 40; i++) {
        r.timestamp = T0 + i;
        assert_int_equal(append(&t, &r), KERR_NONE);
    }
    assert_true(log_segment_count(t.log) > 8);
    check(&t);
    reopen_clean(&t);
    check(&t);
    teardown(&t);
}

/* Indexes without room for a single entry: a batch per segment, as in Apache Kafka. */
static void by_indexes_that_hold_nothing(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_index_bytes = 4;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 5, 2);
    assert_int_equal(log_segment_count(t.log), 5);
    assert_int_equal(read_all(&t, 1 << 20), 5);
    /* I3 cannot hold without room for a time; offsets are what counts */
    reopen_clean(&t);
    assert_int_equal(log_end_offset(t.log), 10);
    assert_int_equal(read_all(&t, 1 << 20), 5);
    teardown(&t);
}

static void preallocated_files_are_cut_when_done(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.preallocate = true;
    t.config.segment_bytes = 4096;
    assert_int_equal(try_create(&t), 0);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), 4096);
    append_many(&t, 5, 1);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), 4096);
    int64_t size = log_size(t.log);
    assert_true(size < 4096);
    check(&t);
    reopen_unclean(&t); /* the zeros behind the batches are cut */
    assert_int_equal(log_end_offset(t.log), 5);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), size);
    check(&t);
    struct records r = records_of(1);
    r.value_n = 3900;
    assert_int_equal(append(&t, &r), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 2);
    assert_int_equal(size_of(&t, "00000000000000000005.log"), 4096);
    reopen_clean(&t);
    assert_true(size_of(&t, "00000000000000000005.log") < 4096);
    check(&t);
    teardown(&t);
}

/* Files that a crash left under the names of the next segment. */
static void left_over_files_are_replaced(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 200;
    assert_int_equal(try_create(&t), 0);
    append_many(&t, 2, 1);
    assert_int_equal(log_segment_count(t.log), 1);
    write_file(&t, "00000000000000000002.log", "garbage", 7);
    write_file(&t, "00000000000000000002.index", "garbage!", 8);
    write_file(&t, "00000000000000000002.timeindex", "garbagegarba", 12);
    write_file(&t, "00000000000000000002.txnindex", "garbage", 7);
    append_many(&t, 2, 1);
    assert_int_equal(log_segment_count(t.log), 2);
    check(&t);
    assert_int_equal(size_of(&t, "00000000000000000002.txnindex"), -ENOENT);
    reopen_clean(&t);
    assert_int_equal(log_end_offset(t.log), 4);
    check(&t);
    teardown(&t);
}

/* A client may send any timestamp: no arithmetic with it may overflow. */
static void timestamps_far_apart_are_no_age(void **state)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -2, 0};
    struct log_test t;
    setup_log(&t);
    append_many(&t, 1, 1);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct records r = records_of(1);
        struct append_info info;
        r.timestamp = odd[i];
        r.first_offset = log_end_offset(t.log);
        struct buf b = build(&r);
        assert_int_equal(append_bytes(&t, &b, 0, APPEND_REPLICATION, &info), KERR_NONE);
        buf_free(&b);
        assert_false(info.rolled);
    }
    teardown(&t);
}

static void an_append_says_that_it_rolled(void **state)
{
    struct log_test t;
    struct append_info info;
    int rolled = 0;
    setup(&t);
    t.config.segment_bytes = 500;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 20; i++) {
        struct records r = records_of(1);
        assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
        rolled += info.rolled;
    }
    assert_int_equal(rolled, log_segment_count(t.log) - 1);
    teardown(&t);
}

UNIT_MAIN(unit_test(index_rule_example), unit_test(by_size), unit_test(by_time_of_the_records),
          unit_test(without_times_by_the_clock), unit_test(compaction_lag_shortens_the_time),
          unit_test(jitter_makes_it_earlier_only), unit_test(by_full_indexes),
          unit_test(by_indexes_that_hold_nothing), unit_test(preallocated_files_are_cut_when_done),
          unit_test(left_over_files_are_replaced), unit_test(an_append_says_that_it_rolled),
          unit_test(timestamps_far_apart_are_no_age))
