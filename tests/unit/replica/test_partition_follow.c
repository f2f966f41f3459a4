/* What a follower does to its log, when the log is not the one that its fetcher looked at. */
#include "bench.h"

#include "replica/partition_follow.h"

static const int32_t replicas[] = {1, 2};

/* A follower of broker 2 in epoch 1, with ten records. */
static struct partition *follower(struct bench *b)
{
    bench_open(b);
    struct partition *p = bench_leader(b, NUMBERS(1));
    for (int i = 0; i < 10; i++)
        assert_int_equal(bench_append(b, p, 1, 1, NULL), KERR_NONE);
    assert_int_equal(bench_lead(b, "t", 0,
                                (struct lead){.leader = 2,
                                              .leader_epoch = 1,
                                              .isr = replicas,
                                              .isr_n = 2,
                                              .replicas = replicas,
                                              .replicas_n = 2}),
                     KERR_NONE);
    return p;
}

static int64_t end_of(struct partition *p)
{
    struct follow_view v;
    assert_int_equal(partition_follow_view(p, 1, &v), KERR_NONE);
    return v.log_end;
}

/* What is to be changed as it is now, but for the end. */
static struct follow_seen at(struct partition *p, int64_t end)
{
    return (struct follow_seen){end, atomic_load(&p->cuts)};
}

/* n records from `offset` on. */
static void append_at(struct partition *p, int64_t offset, int n, enum kerr expected)
{
    struct follow_view v;
    struct buf bytes = BUF_INIT;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.leader_epoch = 1;
    struct batch_builder *batch = batch_builder_new(&o);
    for (int i = 0; i < n; i++)
        assert_int_equal(batch_builder_add(batch, offset + i, 1700000000000, BYTES_NULL,
                                           (struct bytes){(const uint8_t *)"v", 1}, NULL, 0),
                         0);
    assert_int_equal(batch_builder_finish(batch, &bytes), 0);
    batch_builder_free(batch);
    struct follow_append a = {.leader_epoch = 1,
                              .seen = at(p, offset),
                              .records = bytes.p,
                              .len = (int32_t)bytes.len,
                              .leader_high_watermark = 10};
    assert_int_equal(partition_follow_append(p, &a, &v), expected);
    buf_free(&bytes);
}

static void append_records(struct partition *p, int n, enum kerr expected)
{
    append_at(p, 10, n, expected);
}

static int64_t flushed_to(struct partition *p)
{
    struct log *log = partition_log(p);
    int64_t at = log_recovery_point(log);
    log_unref(log);
    return at;
}

/* The leader takes the next fetch for a promise: what flush.messages wants flushed is so before.
 * Seen by the simulator: a follower lost with its power what the leader had acknowledged. */
static void what_flush_messages_wants_is_flushed_before_the_next_fetch(void **state)
{
    struct bench b;
    struct partition *p = follower(&b);
    b.config.flush_messages = 3;
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(partition_flush_now(p), KERR_NONE);
    append_records(p, 2, KERR_NONE);
    assert_true(replica_manager_bytes_in(b.m) > 0);
    assert_int_equal(flushed_to(p), 10);
    b.config.flush_messages = 1;
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(end_of(p), 12); /* one who begins to follow asks for the end, too */
    assert_int_equal(flushed_to(p), 12);
    partition_unref(p);
    bench_close(&b);
}

static void a_follower_that_cannot_flush_says_so(void **state)
{
    struct bench b;
    struct partition *p = follower(&b);
    b.config.flush_messages = 1;
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(partition_flush_now(p), KERR_NONE);
    fs_fault_add(b.fault, (struct fs_fault_rule){
                              .call = FS_SYNC, .path = "*.log", .times = 1, .error = EIO});
    append_records(p, 1, KERR_KAFKA_STORAGE_ERROR);
    partition_unref(p);
    bench_close(&b);
}

/* A shortage while it flushes passes: who would not follow for that would stay out of the ISR until
 * the next LeaderAndIsr. What it has is flushed by the next try, before the next fetch. */
static void a_flush_that_a_shortage_stopped_is_tried_again(void **state)
{
    struct bench b;
    struct partition *p = follower(&b);
    struct follow_view v;
    b.config.flush_messages = 1;
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(partition_flush_now(p), KERR_NONE);
    /* The names of what an append of a new epoch writes are to be synced. */
    fs_fault_add(b.fault,
                 (struct fs_fault_rule){.call = FS_SYNC_DIR, .times = -1, .error = EMFILE});
    append_records(p, 1, KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(partition_follow_view(p, 1, &v), KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(flushed_to(p), 10);
    fs_fault_clear(b.fault);
    assert_int_equal(end_of(p), 11);
    assert_int_equal(flushed_to(p), 11);
    partition_unref(p);
    bench_close(&b);
}

/* Whatever goes by what was seen of an earlier log finds another one, and leaves it alone. */
static void all_changes_are_refused(struct partition *p, struct follow_seen seen)
{
    struct follow_view v;
    bool sure;
    int64_t end = end_of(p);
    struct follow_append marks = {.leader_epoch = 1, .seen = seen, .leader_high_watermark = 3};
    assert_int_equal(partition_follow_truncate(p, 1, seen, 5, &v), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(partition_follow_restart(p, 1, seen, 100, &v), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(partition_follow_diverged(p, 1, seen, 0, 5, &sure, &v),
                     KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(partition_follow_append(p, &marks, &v), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(end_of(p), end);
}

/* A fetcher that is late has an answer for a log that ended at 10; another one of the same epoch
 * has cut it meanwhile, and maybe filled it again up to there. */
static void a_log_that_another_fetcher_changed_stays(void **state)
{
    struct bench b;
    struct follow_view v;
    struct partition *p = follower(&b);
    struct follow_seen late = at(p, 10);
    assert_int_equal(partition_follow_truncate(p, 1, late, 8, &v), KERR_NONE);
    assert_int_equal(v.log_end, 8);
    all_changes_are_refused(p, late);
    assert_int_equal(partition_follow_view(p, 1, &v), KERR_NONE);
    assert_int_equal(v.high_watermark, 8);
    append_at(p, 8, 2, KERR_NONE);
    assert_int_equal(end_of(p), 10);
    all_changes_are_refused(p, late);
    assert_int_equal(partition_follow_view(p, 1, &v), KERR_NONE);
    assert_int_equal(partition_follow_restart(p, 1, at(p, 10), 5, &v), KERR_NONE);
    append_at(p, 5, 5, KERR_NONE);
    all_changes_are_refused(p, (struct follow_seen){10, v.cuts - 1});
    partition_unref(p);
    bench_close(&b);
}

/* Nothing was cut: what was seen is as good as before. */
static void a_cut_of_nothing_is_none(void **state)
{
    struct bench b;
    struct follow_view v;
    struct partition *p = follower(&b);
    struct follow_seen seen = at(p, 10);
    assert_int_equal(partition_follow_truncate(p, 1, seen, 10, &v), KERR_NONE);
    assert_int_equal(v.cuts, seen.cuts);
    assert_int_equal(partition_follow_truncate(p, 1, seen, 12, &v), KERR_NONE);
    assert_int_equal(v.cuts, seen.cuts);
    assert_int_equal(partition_follow_truncate(p, 1, seen, 9, &v), KERR_NONE);
    assert_int_equal(v.cuts, seen.cuts + 1);
    partition_unref(p);
    bench_close(&b);
}

/* The same calls do their work on the log that was looked at, and leave no lock behind. */
static void a_log_that_is_as_it_was_is_changed(void **state)
{
    struct bench b;
    struct follow_view v;
    bool sure;
    struct partition *p = follower(&b);
    struct follow_append marks = {.leader_epoch = 1, .seen = {10, 0}, .leader_high_watermark = 9};
    assert_int_equal(partition_follow_append(p, &marks, &v), KERR_NONE);
    assert_int_equal(v.high_watermark, 9);
    assert_int_equal(partition_follow_diverged(p, 1, at(p, 10), 0, 7, &sure, &v), KERR_NONE);
    assert_int_equal(v.log_end, 7);
    assert_true(sure);
    assert_int_equal(partition_follow_truncate(p, 1, at(p, 7), 5, &v), KERR_NONE);
    assert_int_equal(v.log_end, 5);
    assert_int_equal(partition_follow_restart(p, 1, at(p, 5), 100, &v), KERR_NONE);
    assert_int_equal(v.log_start, 100);
    assert_int_equal(v.log_end, 100);
    assert_int_equal(partition_follow_truncate(p, 0, at(p, 100), 50, &v),
                     KERR_NOT_LEADER_OR_FOLLOWER);
    partition_unref(p);
    bench_close(&b);
}

UNIT_MAIN(unit_test(what_flush_messages_wants_is_flushed_before_the_next_fetch),
          unit_test(a_follower_that_cannot_flush_says_so),
          unit_test(a_flush_that_a_shortage_stopped_is_tried_again),
          unit_test(a_log_that_another_fetcher_changed_stays), unit_test(a_cut_of_nothing_is_none),
          unit_test(a_log_that_is_as_it_was_is_changed))
