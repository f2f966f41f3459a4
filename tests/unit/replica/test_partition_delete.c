/* Deleting records: who may, how far, and when all replicas have. */
#include "bench.h"

/* A follower's fetch that tells its own log start. */
static void follow(struct bench *b, struct partition *p, int32_t id, int64_t offset, int64_t start)
{
    struct partition_read read;
    struct partition_read_args args = {.replica_id = id,
                                       .offset = offset,
                                       .current_leader_epoch = -1,
                                       .last_fetched_epoch = -1,
                                       .fetcher_log_start = start,
                                       .max_bytes = 1 << 20,
                                       .leader_only = true};
    assert_int_equal(partition_read(p, &args, &b->a, &read), KERR_NONE);
    file_unref(read.slice.file);
}

static int64_t low(struct partition *p)
{
    int64_t at;
    assert_int_equal(partition_low_watermark(p, &at), KERR_NONE);
    return at;
}

static void a_leader_alone_deletes_at_once(void **state)
{
    struct bench b;
    int64_t raised;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    assert_int_equal(bench_append(&b, p, 10, 1, NULL), KERR_NONE);
    assert_int_equal(partition_delete_records(p, 4, &raised), KERR_NONE);
    assert_int_equal(raised, 4);
    assert_int_equal(low(p), 4);
    assert_int_equal(partition_delete_records(p, 2, &raised), KERR_NONE);
    assert_int_equal(raised, 2);
    assert_int_equal(low(p), 4);
    assert_int_equal(partition_delete_records(p, PARTITION_HIGH_WATERMARK, &raised), KERR_NONE);
    assert_int_equal(raised, 10);
    assert_int_equal(low(p), 10);
    partition_unref(p);
    bench_close(&b);
}

static void offsets_that_are_not_committed_are_out_of_range(void **state)
{
    struct bench b;
    int64_t raised;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_append(&b, p, 10, 1, NULL), KERR_NONE);
    follow(&b, p, 2, 6, 0); /* the high watermark */
    assert_int_equal(partition_delete_records(p, 7, &raised), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(raised, -1);
    assert_int_equal(partition_delete_records(p, -2, &raised), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(partition_delete_records(p, 6, &raised), KERR_NONE);
    partition_unref(p);
    bench_close(&b);
}

static void topics_that_keep_everything_are_left_alone(void **state)
{
    struct bench b;
    int64_t raised;
    bench_open(&b);
    b.config.cleanup_policy = CLEANUP_COMPACT;
    struct partition *p = bench_leader(&b, NUMBERS(1));
    assert_int_equal(partition_delete_records(p, 0, &raised), KERR_POLICY_VIOLATION);
    partition_unref(p);
    bench_close(&b);
}

static void only_leaders_delete(void **state)
{
    struct bench b;
    int64_t raised, at;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    assert_int_equal(bench_lead(&b, "t", 0,
                                (struct lead){.leader = 2,
                                              .leader_epoch = 5,
                                              .isr = (int32_t[]){1, 2},
                                              .isr_n = 2,
                                              .replicas = (int32_t[]){1, 2},
                                              .replicas_n = 2}),
                     KERR_NONE);
    assert_int_equal(partition_delete_records(p, 0, &raised), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(partition_low_watermark(p, &at), KERR_NOT_LEADER_OR_FOLLOWER);
    partition_unref(p);
    bench_close(&b);
}

struct counting_waiter {
    struct partition_waiter w;
    int woken;
};

static void count(struct partition_waiter *w)
{
    container_of(w, struct counting_waiter, w)->woken++;
}

static void live_followers_have_to_follow(void **state)
{
    struct bench b;
    int64_t raised;
    bench_open(&b);
    assert_int_equal(bench_metadata(&b, 2, NULL), KERR_NONE); /* broker 3 is not alive */
    struct partition *p = bench_leader(&b, NUMBERS(1, 2, 3));
    assert_int_equal(bench_append(&b, p, 10, 1, NULL), KERR_NONE);
    follow(&b, p, 2, 10, 0);
    follow(&b, p, 3, 10, 0);
    struct counting_waiter w = {.w.wake = count};
    partition_wait(p, &w.w);
    assert_int_equal(partition_delete_records(p, 5, &raised), KERR_NONE);
    assert_int_equal(low(p), 0);
    w.woken = 0;
    follow(&b, p, 2, 10, 0);
    assert_int_equal(w.woken, 0);
    follow(&b, p, 2, 10, 5);
    assert_int_equal(w.woken, 1);
    assert_int_equal(low(p), 5);
    partition_unwait(&w.w);
    partition_unref(p);
    bench_close(&b);
}

static void a_follower_never_heard_of_holds_it_down(void **state)
{
    struct bench b;
    int64_t raised;
    bench_open(&b);
    assert_int_equal(bench_metadata(&b, 3, NULL), KERR_NONE);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(partition_delete_records(p, 0, &raised), KERR_NONE);
    assert_int_equal(low(p), -1);
    partition_unref(p);
    bench_close(&b);
}

UNIT_MAIN(unit_test(a_leader_alone_deletes_at_once),
          unit_test(offsets_that_are_not_committed_are_out_of_range),
          unit_test(topics_that_keep_everything_are_left_alone), unit_test(only_leaders_delete),
          unit_test(live_followers_have_to_follow),
          unit_test(a_follower_never_heard_of_holds_it_down))
