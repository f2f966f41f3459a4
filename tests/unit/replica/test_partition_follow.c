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

/* A fetcher that is late has an answer for a log that ended at 10; another one of the same epoch
 * has cut it to 8 meanwhile. */
static void a_log_that_another_fetcher_changed_stays(void **state)
{
    struct bench b;
    struct follow_view v;
    bool sure;
    struct partition *p = follower(&b);
    assert_int_equal(partition_follow_truncate(p, 1, 10, 8, &v), KERR_NONE);
    assert_int_equal(v.log_end, 8);
    assert_int_equal(partition_follow_truncate(p, 1, 10, 5, &v), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(end_of(p), 8);
    assert_int_equal(partition_follow_restart(p, 1, 10, 100, &v), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(end_of(p), 8);
    assert_int_equal(partition_follow_diverged(p, 1, 10, 0, 5, &sure, &v),
                     KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(end_of(p), 8);
    struct follow_append marks = {.leader_epoch = 1, .offset = 10, .leader_high_watermark = 3};
    assert_int_equal(partition_follow_append(p, &marks, &v), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(partition_follow_view(p, 1, &v), KERR_NONE);
    assert_int_equal(v.high_watermark, 8);
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
    struct follow_append marks = {.leader_epoch = 1, .offset = 10, .leader_high_watermark = 9};
    assert_int_equal(partition_follow_append(p, &marks, &v), KERR_NONE);
    assert_int_equal(v.high_watermark, 9);
    assert_int_equal(partition_follow_diverged(p, 1, 10, 0, 7, &sure, &v), KERR_NONE);
    assert_int_equal(v.log_end, 7);
    assert_true(sure);
    assert_int_equal(partition_follow_truncate(p, 1, 7, 5, &v), KERR_NONE);
    assert_int_equal(v.log_end, 5);
    assert_int_equal(partition_follow_restart(p, 1, 5, 100, &v), KERR_NONE);
    assert_int_equal(v.log_start, 100);
    assert_int_equal(v.log_end, 100);
    assert_int_equal(partition_follow_truncate(p, 0, 100, 50, &v), KERR_NOT_LEADER_OR_FOLLOWER);
    partition_unref(p);
    bench_close(&b);
}

UNIT_MAIN(unit_test(a_log_that_another_fetcher_changed_stays),
          unit_test(a_log_that_is_as_it_was_is_changed))
