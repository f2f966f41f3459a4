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

static void a_new_log_has_kafkas_files(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_index_bytes = 10 << 20;
    assert_int_equal(try_create(&t), 0);
    assert_int_equal(size_of(&t, "00000000000000000000.log"), 0);
    assert_int_equal(size_of(&t, "00000000000000000000.index"), 10485760);
    assert_int_equal(size_of(&t, "00000000000000000000.timeindex"), 10485756);
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), -ENOENT);
    assert_int_equal(size_of(&t, "leader-epoch-checkpoint"), 0);
    assert_int_equal(size_of(&t, "partition.metadata"), -ENOENT);
    assert_int_equal(log_close(t.log), 0);
    assert_int_equal(size_of(&t, "00000000000000000000.index"), 0);
    assert_int_equal(size_of(&t, "00000000000000000000.timeindex"), 0);
    teardown(&t);
}

static void leader_epoch_and_append_time_are_in_the_batch(void **state)
{
    struct log_test t;
    struct append_info info;
    struct log_slice s;
    struct batch b;
    uint8_t head[BATCH_HEAD];
    setup(&t);
    t.config.log_append_time = true;
    assert_int_equal(try_create(&t), 0);
    sim_clock_advance(&t.clock, 5000);
    struct records r = records_of(2);
    struct buf bytes = build(&r);
    assert_int_equal(append_bytes(&t, &bytes, 7, APPEND_CLIENT, &info), KERR_NONE);
    buf_free(&bytes);
    assert_int_equal(info.log_append_time, T0 + 5000);
    assert_int_equal(log_read(t.log, 0, 1000, 2, true, false, &s), KERR_NONE);
    assert_int_equal(file_pread(s.file, head, BATCH_HEAD, s.pos), BATCH_HEAD);
    assert_int_equal(batch_decode(head, BATCH_HEAD, s.len, &b), BATCH_OK);
    assert_int_equal(b.leader_epoch, 7);
    assert_int_equal(b.max_timestamp, T0 + 5000);
    assert_int_equal(log_latest_epoch(t.log), 7);
    file_unref(s.file);
    check(&t);
    teardown(&t);
}

static void a_set_larger_than_a_segment_is_refused(void **state)
{
    struct log_test t;
    setup(&t);
    t.config.segment_bytes = 1000;
    assert_int_equal(try_create(&t), 0);
    struct records r = records_of(1);
    r.value_n = 1000;
    assert_int_equal(append(&t, &r), KERR_RECORD_LIST_TOO_LARGE);
    assert_int_equal(log_end_offset(t.log), 0);
    assert_int_equal(log_size(t.log), 0);
    r.value_n = 800;
    assert_int_equal(append(&t, &r), KERR_NONE);
    check(&t);
    teardown(&t);
}

static void nothing_to_append_is_nothing(void **state)
{
    struct log_test t;
    struct prepared pr = {0};
    struct append_info info;
    setup_log(&t);
    assert_int_equal(log_append(t.log, &pr, 0, APPEND_CLIENT, &info), KERR_NONE);
    assert_int_equal(info.first_offset, -1);
    assert_int_equal(log_append_as_follower(t.log, &pr, &info), KERR_NONE);
    assert_int_equal(log_end_offset(t.log), 0);
    teardown(&t);
}

static void repetitions_answer_what_was_answered(void **state)
{
    struct log_test t;
    struct append_info info;
    setup_log(&t);
    for (int i = 0; i < 6; i++) {
        struct records r = produced(1, 0, 3 * i, 3, false);
        assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
        assert_int_equal(info.first_offset, 3 * i);
        assert_false(info.duplicate);
    }
    uint64_t writes = fs_fault_count(t.fault, FS_PWRITEV);
    for (int i = 1; i < 6; i++) {
        struct records r = produced(1, 0, 3 * i, 3, false);
        assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
        assert_true(info.duplicate);
        assert_int_equal(info.first_offset, 3 * i);
        assert_int_equal(info.last_offset, 3 * i + 2);
    }
    struct records old = produced(1, 0, 0, 3, false);
    assert_int_equal(append(&t, &old), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(fs_fault_count(t.fault, FS_PWRITEV), writes);
    assert_int_equal(log_end_offset(t.log), 18);
    check(&t);
    /* a snapshot has one batch a producer, and the log those before it */
    reopen_clean(&t);
    struct records last = produced(1, 0, 15, 3, false);
    assert_int_equal(append_info(&t, &last, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_int_equal(info.first_offset, 15);
    struct records before = produced(1, 0, 12, 3, false);
    assert_int_equal(append_info(&t, &before, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_int_equal(info.first_offset, 12);
    assert_int_equal(append(&t, &old), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    struct records next = produced(1, 0, 18, 3, false);
    assert_int_equal(append(&t, &next), KERR_NONE);
    teardown(&t);
}

static void a_refused_append_leaves_no_trace(void **state)
{
    struct log_test t;
    setup_log(&t);
    struct records good = produced(1, 5, 0, 3, true);
    assert_int_equal(append(&t, &good), KERR_NONE);
    int64_t end = log_end_offset(t.log), size = log_size(t.log);
    struct records bad[] = {produced(1, 5, 9, 3, true), produced(1, 4, 3, 3, true),
                            produced(1, 5, 3, 3, false), produced(1, 6, 1, 3, true)};
    static const enum kerr want[] = {KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, KERR_INVALID_PRODUCER_EPOCH,
                                     KERR_INVALID_TXN_STATE, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(append(&t, &bad[i]), want[i]);
        assert_int_equal(log_end_offset(t.log), end);
        assert_int_equal(log_size(t.log), size);
    }
    struct records next = produced(1, 5, 3, 3, true);
    assert_int_equal(append(&t, &next), KERR_NONE);
    check(&t);
    teardown(&t);
}

static void transactions_move_the_stable_offset(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 1, 2); /* 0, 1 */
    struct records a = produced(1, 0, 0, 3, true), b = produced(2, 0, 0, 2, true);
    struct log_producer_counts n;
    log_count_producers(t.log, &n);
    assert_true(n.producers == 0 && n.oldest_txn_ms == -1);
    assert_int_equal(append(&t, &a), KERR_NONE); /* 2..4 */
    sim_clock_advance(&t.clock, 5);
    assert_int_equal(append(&t, &b), KERR_NONE); /* 5, 6 */
    assert_int_equal(log_set_high_watermark(t.log, 7), 7);
    log_count_producers(t.log, &n);
    assert_int_equal(n.producers, 2);
    assert_true(n.oldest_txn_ms >= T0);
    assert_int_equal(log_last_stable_offset(t.log), 2);
    assert_int_equal(append_marker(&t, 1, 0, false, 0), KERR_NONE); /* 7 */
    assert_int_equal(log_last_stable_offset(t.log), 2); /* the marker is not committed yet */
    log_set_high_watermark(t.log, 8);
    assert_int_equal(log_last_stable_offset(t.log), 5);
    assert_int_equal(append_marker(&t, 2, 0, true, 0), KERR_NONE); /* 8 */
    log_set_high_watermark(t.log, 9);
    log_count_producers(t.log, &n);
    assert_true(n.producers == 2 && n.oldest_txn_ms == -1);
    assert_int_equal(log_last_stable_offset(t.log), 9);
    /* only the aborted one is in the index */
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), TXN_ENTRY_BYTES);
    check(&t);
    reopen_clean(&t);
    assert_int_equal(log_last_stable_offset(t.log), 9);
    check(&t);
    teardown(&t);
}

static void an_open_transaction_survives_a_restart(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 1, 2);
    struct records a = produced(1, 0, 0, 3, true);
    assert_int_equal(append(&t, &a), KERR_NONE);
    append_many(&t, 1, 2);
    log_set_high_watermark(t.log, 7);
    reopen_clean(&t);
    assert_int_equal(log_last_stable_offset(t.log), 2);
    reopen_unclean(&t);
    assert_int_equal(log_last_stable_offset(t.log), 2);
    assert_int_equal(append_marker(&t, 1, 0, false, 0), KERR_NONE);
    log_set_high_watermark(t.log, 8);
    assert_int_equal(log_last_stable_offset(t.log), 8);
    check(&t);
    teardown(&t);
}

/* The coordinator's commit of offsets inside a transaction: no sequences. */
static void coordinator_batches_need_no_sequence(void **state)
{
    struct log_test t;
    struct append_info info;
    setup_log(&t);
    struct records r = produced(1, 0, -1, 2, true);
    for (int i = 0; i < 3; i++) {
        struct buf b = build(&r);
        assert_int_equal(append_bytes(&t, &b, 0, APPEND_COORDINATOR, &info), KERR_NONE);
        assert_false(info.duplicate);
        buf_free(&b);
    }
    assert_int_equal(log_end_offset(t.log), 6);
    log_set_high_watermark(t.log, 6);
    assert_int_equal(log_last_stable_offset(t.log), 0);
    teardown(&t);
}

/* ---- topic id ---- */

static void the_topic_id_is_on_disk_first(void **state)
{
    struct log_test t;
    struct uuid id = uuid_random(), other = uuid_random();
    setup_log(&t);
    assert_true(uuid_is_zero(log_topic_id(t.log)));
    assert_int_equal(log_set_topic_id(t.log, id), KERR_NONE);
    assert_int_equal(size_of(&t, "partition.metadata"), 43);
    assert_true(uuid_eq(log_topic_id(t.log), id));
    assert_int_equal(log_set_topic_id(t.log, id), KERR_NONE);
    assert_int_equal(log_set_topic_id(t.log, other), KERR_INCONSISTENT_TOPIC_ID);
    assert_true(uuid_eq(log_topic_id(t.log), id));
    reopen_clean(&t);
    assert_true(uuid_eq(log_topic_id(t.log), id));
    assert_int_equal(log_set_topic_id(t.log, other), KERR_INCONSISTENT_TOPIC_ID);
    teardown(&t);
}

/* ---- follower ---- */

static void a_follower_keeps_offsets_and_epochs(void **state)
{
    struct log_test t;
    setup_log(&t);
    assert_int_equal(replicate(&t, 0, 3, 0), KERR_NONE);
    assert_int_equal(replicate(&t, 10, 2, 2), KERR_NONE); /* a gap, and a new leader */
    assert_int_equal(log_end_offset(t.log), 12);
    assert_int_equal(log_latest_epoch(t.log), 2);
    int32_t found;
    int64_t end;
    log_end_offset_for_epoch(t.log, 0, &found, &end);
    assert_int_equal(found, 0);
    assert_int_equal(end, 10);
    log_end_offset_for_epoch(t.log, 1, &found, &end);
    assert_int_equal(found, 0);
    log_end_offset_for_epoch(t.log, 2, &found, &end);
    assert_int_equal(end, 12);
    /* what overlaps is a divergence */
    assert_int_equal(replicate(&t, 11, 2, 2), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_end_offset(t.log), 12);
    /* an offset in the gap leads to what follows it */
    assert_int_equal(read_at(&t, 5, 100000), 12);
    check(&t);
    teardown(&t);
}

static void one_fetch_of_many_batches_is_indexed_by_batch(void **state)
{
    struct log_test t;
    struct append_info info;
    struct buf all = BUF_INIT;
    setup(&t);
    t.config.index_interval_bytes = 200;
    assert_int_equal(try_create(&t), 0);
    for (int i = 0; i < 50; i++) {
        struct records r = records_of(2);
        r.first_offset = 2 * i;
        r.timestamp = T0 + i;
        r.o.leader_epoch = i < 20 ? 0 : 1;
        struct buf b = build(&r);
        buf_put(&all, b.p, b.len);
        buf_free(&b);
    }
    assert_int_equal(append_bytes(&t, &all, 0, APPEND_REPLICATION, &info), KERR_NONE);
    buf_free(&all);
    assert_int_equal(info.first_offset, 0);
    assert_int_equal(info.last_offset, 99);
    assert_int_equal(log_end_offset(t.log), 100);
    struct segment *s = t.log->segments.now->v[0];
    assert_true(atomic_load(&s->offsets.n) > 10);
    check(&t);
    teardown(&t);
}

static void offsets_too_far_apart_get_a_new_segment(void **state)
{
    struct log_test t;
    int64_t far = INT64_C(2147483647);
    setup_log(&t);
    assert_int_equal(replicate(&t, 0, 1, 0), KERR_NONE);
    assert_int_equal(replicate(&t, far, 1, 0), KERR_NONE); /* just fits */
    assert_int_equal(log_segment_count(t.log), 1);
    assert_int_equal(replicate(&t, far + 1, 1, 0), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 2);
    assert_int_equal(replicate(&t, 3 * far, 1, 0), KERR_NONE);
    assert_int_equal(log_segment_count(t.log), 3);
    check(&t);
    assert_int_equal(read_at(&t, far + 2, 1000), 3 * far + 1);
    reopen_clean(&t);
    assert_int_equal(log_end_offset(t.log), 3 * far + 1);
    check(&t);
    teardown(&t);
}

/* A fetch that spans more than one segment can hold is divided at a batch. */
static void one_fetch_may_need_two_segments(void **state)
{
    struct log_test t;
    struct append_info info;
    struct buf all = BUF_INIT;
    setup_log(&t);
    static const int64_t at[] = {0, 5, INT64_C(3000000000), INT64_C(3000000010)};
    for (int i = 0; i < 4; i++) {
        struct records r = records_of(1);
        r.first_offset = at[i];
        struct buf b = build(&r);
        buf_put(&all, b.p, b.len);
        buf_free(&b);
    }
    assert_int_equal(append_bytes(&t, &all, 0, APPEND_REPLICATION, &info), KERR_NONE);
    buf_free(&all);
    assert_int_equal(log_segment_count(t.log), 2);
    assert_int_equal(log_end_offset(t.log), INT64_C(3000000011));
    assert_int_equal(read_at(&t, 6, 1), INT64_C(3000000001));
    check(&t);
    teardown(&t);
}

static void offsets_that_do_not_rise_are_corrupt(void **state)
{
    struct log_test t;
    struct append_info info;
    struct prepared_batch two[2] = {{.head = {.magic = 2, .base_offset = 0, .last_offset = 5}},
                                    {.head = {.magic = 2, .base_offset = 5, .last_offset = 7}}};
    struct prepared pr = {.batches = two, .batches_n = 2};
    setup_log(&t);
    assert_int_equal(log_append_as_follower(t.log, &pr, &info), KERR_CORRUPT_MESSAGE);
    two[1].head.base_offset = 6;
    two[1].head.last_offset = 5; /* a delta below zero */
    assert_int_equal(log_append_as_follower(t.log, &pr, &info), KERR_CORRUPT_MESSAGE);
    assert_int_equal(log_end_offset(t.log), 0);
    teardown(&t);
}

static void replicated_transactions_are_followed(void **state)
{
    struct log_test t;
    struct append_info info;
    setup_log(&t);
    struct records a = produced(1, 0, 0, 3, true);
    struct buf all = build(&a);
    assert_int_equal(batch_build_marker(false, 3, T0, 0, 1, 0, 0, &all), 0);
    assert_int_equal(append_bytes(&t, &all, 0, APPEND_REPLICATION, &info), KERR_NONE);
    buf_free(&all);
    log_set_high_watermark(t.log, 3);
    assert_int_equal(log_last_stable_offset(t.log), 0);
    log_set_high_watermark(t.log, 4);
    assert_int_equal(log_last_stable_offset(t.log), 4);
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), TXN_ENTRY_BYTES);
    check(&t);
    teardown(&t);
}

/* One fetch may bring the ends of many transactions. */
static void one_fetch_may_end_many_transactions(void **state)
{
    struct log_test t;
    struct append_info info;
    struct buf all = BUF_INIT;
    setup_log(&t);
    for (int i = 0; i < 6; i++) {
        struct records r = produced(1 + i % 2, 0, i / 2, 1, true);
        r.first_offset = 2 * i;
        struct buf b = build(&r);
        buf_put(&all, b.p, b.len);
        buf_free(&b);
        assert_int_equal(batch_build_marker(i % 3 == 0, 2 * i + 1, T0, 0, 1 + i % 2, 0, 0, &all),
                         0);
    }
    assert_int_equal(append_bytes(&t, &all, 0, APPEND_REPLICATION, &info), KERR_NONE);
    buf_free(&all);
    assert_int_equal(log_end_offset(t.log), 12);
    log_set_high_watermark(t.log, 12);
    assert_int_equal(log_last_stable_offset(t.log), 12);
    assert_int_equal(size_of(&t, "00000000000000000000.txnindex"), 4 * TXN_ENTRY_BYTES);
    check(&t);
    teardown(&t);
}

/* ---- transactions that open ---- */

static enum kerr append_guarded(struct log_test *t, uint64_t guard, int32_t sequence,
                                bool transactional)
{
    struct records r = produced(7, 0, sequence, 1, transactional);
    t->txn_guard = guard;
    enum kerr e = append(t, &r);
    t->txn_guard = TXN_GUARD_OFF;
    return e;
}

static void a_transaction_opens_with_its_guard_only(void **state)
{
    struct log_test t;
    uint64_t guard, late;
    setup_log(&t);
    assert_int_equal(append_guarded(&t, TXN_GUARD_NONE, 0, true), KERR_INVALID_TXN_STATE);
    assert_true(log_begin_txn(t.log, 7, 0, 0, T0, &late));
    assert_int_equal(append_marker(&t, 7, 0, false, 1), KERR_NONE); /* over before it began */
    assert_int_equal(append_guarded(&t, late, 0, true), KERR_INVALID_TXN_STATE);
    assert_true(log_begin_txn(t.log, 7, 0, 0, T0, &guard));
    assert_int_not_equal(guard, late);
    assert_true(log_begin_txn(t.log, 7, 0, 1, T0, &late)); /* the next one is asked about, too */
    assert_int_equal(late, guard);
    assert_int_equal(append_guarded(&t, guard, 1, true), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(append_guarded(&t, guard, 0, true), KERR_NONE);
    assert_int_equal(append_guarded(&t, late, 1, true), KERR_NONE); /* open: none is needed */
    assert_int_equal(append_guarded(&t, TXN_GUARD_NONE, 2, true), KERR_NONE);
    assert_false(log_begin_txn(t.log, 7, 0, 3, T0, &late));
    assert_int_equal(late, TXN_GUARD_NONE);
    assert_int_equal(append_marker(&t, 7, 0, true, 1), KERR_NONE);
    int64_t end = log_end_offset(t.log);
    assert_int_equal(append_guarded(&t, late, 3, true), KERR_INVALID_TXN_STATE);
    assert_int_equal(append_guarded(&t, guard, 3, true), KERR_INVALID_TXN_STATE);
    assert_int_equal(log_end_offset(t.log), end);
    check(&t);
    teardown(&t);
}

static void what_is_repeated_needs_no_guard(void **state)
{
    struct log_test t;
    uint64_t guard;
    setup_log(&t);
    log_begin_txn(t.log, 7, 0, 0, T0, &guard);
    assert_int_equal(append_guarded(&t, guard, 0, true), KERR_NONE);
    int64_t end = log_end_offset(t.log);
    assert_int_equal(append_guarded(&t, guard, 0, true), KERR_NONE);
    assert_int_equal(log_end_offset(t.log), end);
    teardown(&t);
}

static void guards_age(void **state)
{
    struct log_test t;
    uint64_t guard;
    setup(&t);
    t.config.producer_id_expiration_ms = 1000;
    assert_int_equal(try_create(&t), 0);
    log_begin_txn(t.log, 7, 0, 0, T0, &guard);
    log_expire_producers(t.log, T0 + 1000);
    assert_int_equal(append_guarded(&t, guard, 0, true), KERR_INVALID_TXN_STATE);
    assert_int_equal(append_guarded(&t, TXN_GUARD_NONE, 0, false), KERR_NONE); /* idempotent only */
    teardown(&t);
}

/* ---- flush.messages ---- */

/* A producer repeats a batch when the answer is late, which may be because its flush is. */
static void a_repetition_waits_for_the_flush_of_the_first(void **state)
{
    struct log_test t;
    struct append_info info;
    setup(&t);
    t.config.flush_messages = 1;
    assert_int_equal(try_create(&t), 0);
    struct records r = produced(1, 0, 0, 3, false);
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_true(info.needs_flush);
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_true(info.needs_flush);
    assert_int_equal(log_flush(t.log), KERR_NONE);
    append_many(&t, 1, 1); /* what comes behind it does not matter */
    assert_int_equal(append_info(&t, &r, &info), KERR_NONE);
    assert_true(info.duplicate);
    assert_false(info.needs_flush);
    teardown(&t);
}

/* ---- watermark ---- */

static void the_watermark_stays_inside_the_log(void **state)
{
    struct log_test t;
    setup_log(&t);
    append_many(&t, 1, 5);
    assert_int_equal(log_set_high_watermark(t.log, 99), 5);
    assert_int_equal(log_set_high_watermark(t.log, -1), 0);
    assert_int_equal(log_set_high_watermark(t.log, 3), 3);
    assert_int_equal(log_raise_start_offset(t.log, 4), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(log_raise_start_offset(t.log, 2), KERR_NONE);
    assert_int_equal(log_raise_start_offset(t.log, 1), KERR_NONE);
    assert_int_equal(log_start_offset(t.log), 2);
    assert_int_equal(log_set_high_watermark(t.log, 0), 2);
    check(&t);
    teardown(&t);
}

static void settings_change_at_the_next_decision(void **state)
{
    struct log_test t;
    setup_log(&t);
    const struct log_config *before = log_config_ref(t.log);
    append_many(&t, 3, 1);
    assert_int_equal(log_segment_count(t.log), 1);
    t.config.segment_bytes = 200;
    log_set_config(t.log, &t.config);
    assert_int_equal(before->segment_bytes, 1 << 30);
    log_config_unref(before);
    append_many(&t, 3, 1);
    assert_true(log_segment_count(t.log) > 1);
    check(&t);
    teardown(&t);
}

UNIT_MAIN(
    unit_test(gives_offsets_in_order), unit_test(a_new_log_has_kafkas_files),
    unit_test(leader_epoch_and_append_time_are_in_the_batch),
    unit_test(a_set_larger_than_a_segment_is_refused), unit_test(nothing_to_append_is_nothing),
    unit_test(repetitions_answer_what_was_answered), unit_test(a_refused_append_leaves_no_trace),
    unit_test(transactions_move_the_stable_offset),
    unit_test(an_open_transaction_survives_a_restart),
    unit_test(coordinator_batches_need_no_sequence), unit_test(the_topic_id_is_on_disk_first),
    unit_test(a_follower_keeps_offsets_and_epochs),
    unit_test(one_fetch_of_many_batches_is_indexed_by_batch),
    unit_test(offsets_too_far_apart_get_a_new_segment), unit_test(one_fetch_may_need_two_segments),
    unit_test(offsets_that_do_not_rise_are_corrupt),
    unit_test(replicated_transactions_are_followed), unit_test(one_fetch_may_end_many_transactions),
    unit_test(a_transaction_opens_with_its_guard_only), unit_test(what_is_repeated_needs_no_guard),
    unit_test(guards_age), unit_test(a_repetition_waits_for_the_flush_of_the_first),
    unit_test(the_watermark_stays_inside_the_log), unit_test(settings_change_at_the_next_decision))
