/* One partition: roles and what they allow, the high watermark, reads, waiters, flushes, faults. */
#include "bench.h"

/* ---- leader alone ---- */

static void leader_alone_commits_at_once(void **state)
{
    struct bench b;
    struct partition_append done;
    struct partition_read read;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    assert_true(partition_is_leader(p));
    assert_int_equal(bench_append(&b, p, 3, -1, &done), KERR_NONE);
    assert_int_equal(done.info.first_offset, 0);
    assert_int_equal(done.info.last_offset, 2);
    assert_int_equal(done.required_offset, 3);
    assert_int_equal(partition_check_committed(p, 3, 0), KERR_NONE);
    assert_int_equal(bench_append(&b, p, 2, 1, &done), KERR_NONE);
    assert_int_equal(done.info.first_offset, 3);
    assert_int_equal(bench_fetch(&b, p, -1, 3, &read), KERR_NONE);
    assert_true(read.slice.len > 0);
    assert_int_equal(read.slice.first_offset, 3);
    assert_int_equal(read.high_watermark, 5);
    assert_int_equal(read.log_start_offset, 0);
    assert_int_equal(read.aborted_n, -1);
    assert_int_equal(bench_fetch(&b, p, -1, 5, &read), KERR_NONE);
    assert_int_equal(read.slice.len, 0);
    assert_int_equal(bench_fetch(&b, p, -1, 6, &read), KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(read.high_watermark, -1);
    partition_unref(p);
    bench_close(&b);
}

static void epochs_of_requests_are_checked(void **state)
{
    struct bench b;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    assert_int_equal(bench_lead(&b, "t", 0,
                                (struct lead){.leader = 1,
                                              .leader_epoch = 5,
                                              .isr = (int32_t[]){1},
                                              .isr_n = 1,
                                              .replicas = (int32_t[]){1},
                                              .replicas_n = 1}),
                     KERR_NONE);
    struct {
        int32_t epoch;
        enum kerr error;
    } t[] = {{-1, KERR_NONE},
             {5, KERR_NONE},
             {4, KERR_FENCED_LEADER_EPOCH},
             {6, KERR_UNKNOWN_LEADER_EPOCH}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct partition_read_args args = {
            .replica_id = -1, .current_leader_epoch = t[i].epoch, .last_fetched_epoch = -1};
        struct partition_read read;
        struct offset_lookup found;
        int32_t epoch;
        int64_t bound, end;
        bool diverges;
        assert_int_equal(partition_check_epoch(p, t[i].epoch), t[i].error);
        assert_int_equal(partition_read(p, &args, &b.a, &read), t[i].error);
        assert_int_equal(partition_probe(p, &args, &bound, &diverges), t[i].error);
        assert_int_equal(partition_list_offset(p, -1, 0, LIST_LATEST, t[i].epoch, &found),
                         t[i].error);
        assert_int_equal(partition_epoch_end(p, t[i].epoch, 5, &epoch, &end), t[i].error);
    }
    partition_unref(p);
    bench_close(&b);
}

/* ---- ISR and high watermark ---- */

static void high_watermark_is_the_least_of_the_isr(void **state)
{
    struct bench b;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2, 3));
    assert_int_equal(bench_append(&b, p, 10, 1, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 0); /* nobody has fetched */
    assert_int_equal(bench_fetch(&b, p, 2, 10, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 0); /* broker 3 is not known to have anything */
    assert_int_equal(bench_fetch(&b, p, 3, 0, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 0);
    assert_int_equal(bench_fetch(&b, p, 3, 7, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 7);
    assert_int_equal(bench_fetch(&b, p, 3, 4, NULL), KERR_NONE); /* restarted with less */
    assert_int_equal(bench_hw(p), 7);
    assert_int_equal(partition_check_committed(p, 7, 0), KERR_NONE);
    assert_int_equal(partition_check_committed(p, 8, 0), KERR_REQUEST_TIMED_OUT);
    partition_unref(p);
    bench_close(&b);
}

static void followers_read_past_the_high_watermark_and_consumers_do_not(void **state)
{
    struct bench b;
    struct partition_read read;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    bench_append(&b, p, 10, 1, NULL);
    assert_int_equal(bench_fetch(&b, p, -1, 0, &read), KERR_NONE);
    assert_int_equal(read.slice.len, 0);
    assert_int_equal(bench_fetch(&b, p, -1, 10, &read), KERR_NONE); /* no error up to the end */
    assert_int_equal(bench_fetch(&b, p, 2, 0, &read), KERR_NONE);
    assert_true(read.slice.len > 0);
    partition_unref(p);
    bench_close(&b);
}

static void rereads_do_not_count_as_fetches(void **state)
{
    struct bench b;
    struct partition_read read;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    bench_append(&b, p, 10, 1, NULL);
    struct partition_read_args args = {.replica_id = 2,
                                       .offset = 10,
                                       .current_leader_epoch = -1,
                                       .last_fetched_epoch = -1,
                                       .leader_only = true,
                                       .reread = true};
    assert_int_equal(partition_read(p, &args, &b.a, &read), KERR_NONE);
    assert_int_equal(bench_hw(p), 0);
    partition_unref(p);
    bench_close(&b);
}

static void strangers_may_not_fetch_as_followers(void **state)
{
    struct bench b;
    struct partition_read read;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_fetch(&b, p, 3, 0, NULL), KERR_NOT_LEADER_OR_FOLLOWER);
    struct partition_read_args args = {
        .replica_id = 3, .current_leader_epoch = 0, .last_fetched_epoch = -1, .leader_only = true};
    assert_int_equal(partition_read(p, &args, &b.a, &read), KERR_UNKNOWN_LEADER_EPOCH);
    partition_unref(p);
    bench_close(&b);
}

static void small_isr_refuses_acks_all_and_holds_the_high_watermark(void **state)
{
    struct bench b;
    bench_open(&b);
    b.config.min_insync_replicas = 2;
    int32_t replicas[] = {1, 2};
    struct lead l = {.leader = 1,
                     .isr = replicas,
                     .isr_n = 1,
                     .replicas = replicas,
                     .replicas_n = 2,
                     .is_new = true};
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    assert_int_equal(partition_check_append(p, -1), KERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(bench_append(&b, p, 1, -1, NULL), KERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(partition_check_append(p, 1), KERR_NONE);
    assert_int_equal(bench_append(&b, p, 4, 1, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 0);
    l.isr_n = 2; /* broker 2 is in again, and has all */
    l.leader_epoch = 1;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(bench_fetch(&b, p, 2, 4, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 4);
    l.isr_n = 1; /* and out: what was committed stays so, but is not safe enough to confirm */
    l.leader_epoch = 2;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(partition_check_committed(p, 4, 0), KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    /* Nobody can ask for more in-sync replicas than there are replicas. */
    b.config.min_insync_replicas = 5;
    l = (struct lead){.leader = 1,
                      .leader_epoch = 3,
                      .isr = replicas,
                      .isr_n = 1,
                      .replicas = replicas,
                      .replicas_n = 1};
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(partition_check_append(p, -1), KERR_NONE);
    partition_unref(p);
    bench_close(&b);
}

static void lower_min_insync_lets_the_high_watermark_go(void **state)
{
    struct bench b;
    bench_open(&b);
    b.config.min_insync_replicas = 2;
    int32_t replicas[] = {1, 2};
    struct lead l = {.leader = 1,
                     .isr = replicas,
                     .isr_n = 1,
                     .replicas = replicas,
                     .replicas_n = 2,
                     .is_new = true};
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    bench_append(&b, p, 4, 1, NULL);
    assert_int_equal(bench_hw(p), 0);
    b.config.min_insync_replicas = 1;
    replica_manager_topic_config_changed(b.m, STR_LIT("other"));
    assert_int_equal(bench_hw(p), 0);
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(bench_hw(p), 4);
    partition_unref(p);
    bench_close(&b);
}

static void outsider_that_keeps_up_holds_the_high_watermark(void **state)
{
    struct bench b;
    bench_open(&b);
    int32_t replicas[] = {1, 2};
    assert_int_equal(bench_lead(&b, "t", 0,
                                (struct lead){.leader = 1,
                                              .isr = replicas,
                                              .isr_n = 1,
                                              .replicas = replicas,
                                              .replicas_n = 2,
                                              .is_new = true}),
                     KERR_NONE);
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    bench_append(&b, p, 4, 1, NULL);
    assert_int_equal(bench_hw(p), 4); /* broker 2 has never been caught up */
    bench_fetch(&b, p, 2, 4, NULL);   /* now it is */
    bench_append(&b, p, 4, 1, NULL);
    assert_int_equal(bench_hw(p), 4);
    assert_int_equal(bench_metadata(&b, 1, "t"), KERR_NONE); /* it died */
    bench_append(&b, p, 1, 1, NULL);
    assert_int_equal(bench_hw(p), 9);
    assert_int_equal(bench_metadata(&b, 3, "t"), KERR_NONE);
    bench_fetch(&b, p, 2, 9, NULL);
    bench_append(&b, p, 1, 1, NULL);
    assert_int_equal(bench_hw(p), 9);
    sim_clock_advance(&b.clock, 10001); /* it sleeps */
    bench_append(&b, p, 1, 1, NULL);
    assert_int_equal(bench_hw(p), 11);
    partition_unref(p);
    bench_close(&b);
}

static void caught_up_is_judged_by_the_end_at_the_last_fetch(void **state)
{
    struct remote_replica r = {.log_end = -1,
                               .log_start = -1,
                               .last_fetch_ms = -1,
                               .last_caught_up_ms = -1,
                               .leader_end_at_last_fetch = -1};
    assert_false(remote_replica_caught_up(&r, 5, 100, 50));
    remote_replica_fetched(&r, 0, 0, 10, 100);  /* has nothing of 10 */
    remote_replica_fetched(&r, 10, 0, 20, 200); /* has what there was at 100 */
    assert_int_equal(r.last_caught_up_ms, 100);
    assert_true(remote_replica_caught_up(&r, 20, 150, 50));
    assert_false(remote_replica_caught_up(&r, 20, 151, 50));
    assert_true(remote_replica_caught_up(&r, 10, 9999, 50)); /* it has all there is */
    remote_replica_fetched(&r, 19, 0, 30, 300);
    assert_int_equal(r.last_caught_up_ms, 100); /* not what there was at 200 */
    remote_replica_fetched(&r, 30, 3, 30, 400);
    assert_int_equal(r.last_caught_up_ms, 400);
    assert_int_equal(r.log_start, 3);
}

static void reelected_leader_remembers_its_followers(void **state)
{
    struct bench b;
    bench_open(&b);
    int32_t replicas[] = {1, 2};
    struct lead l = {.leader = 1,
                     .isr = replicas,
                     .isr_n = 2,
                     .replicas = replicas,
                     .replicas_n = 2,
                     .leader_epoch = 1};
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    bench_append(&b, p, 4, 1, NULL);
    bench_fetch(&b, p, 2, 4, NULL);
    assert_int_equal(bench_hw(p), 4);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(p->remotes[0].log_end, 4);
    l.leader = 2; /* another leads, then we again: nothing is known any more */
    l.leader_epoch = 2;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.leader = 1;
    l.leader_epoch = 3;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(p->remotes[0].log_end, -1);
    assert_int_equal(bench_hw(p), 4); /* never lowered */
    /* an epoch that it did not hear of: another may have led, and the follower cut its log */
    bench_fetch(&b, p, 2, 4, NULL);
    bench_append(&b, p, 1, 1, NULL);
    bench_fetch(&b, p, 2, 5, NULL);
    bench_append(&b, p, 1, 1, NULL);
    l.leader_epoch = 5;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(p->remotes[0].log_end, -1);
    assert_int_equal(bench_hw(p), 5);
    bench_fetch(&b, p, 2, 3, NULL);
    assert_int_equal(p->remotes[0].log_end, 3);
    partition_unref(p);
    bench_close(&b);
}

/* ---- other roles ---- */

static void follower_serves_new_consumers_only(void **state)
{
    struct bench b;
    struct partition_read read;
    struct offset_lookup found;
    int32_t replicas[] = {1, 2}, epoch;
    int64_t end;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    bench_append(&b, p, 3, 1, NULL);
    struct lead l = {.leader = 2,
                     .leader_epoch = 1,
                     .isr = replicas,
                     .isr_n = 2,
                     .replicas = replicas,
                     .replicas_n = 2};
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_false(partition_is_leader(p));
    assert_int_equal(partition_leader_id(p), 2);
    assert_int_equal(bench_append(&b, p, 1, 1, NULL), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(partition_check_committed(p, 1, 0), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(bench_fetch(&b, p, 2, 0, NULL), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(bench_fetch(&b, p, -1, 0, &read), KERR_NONE);
    struct partition_read_args old = {.replica_id = -1,
                                      .current_leader_epoch = -1,
                                      .last_fetched_epoch = -1,
                                      .leader_only = true};
    assert_int_equal(partition_read(p, &old, &b.a, &read), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(partition_list_offset(p, -1, 0, LIST_LATEST, -1, &found),
                     KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(partition_list_offset(p, -2, 0, LIST_LATEST, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, 3);
    assert_int_equal(partition_epoch_end(p, -1, 0, &epoch, &end), KERR_NOT_LEADER_OR_FOLLOWER);
    partition_unref(p);
    bench_close(&b);
}

static void divergence_is_told_instead_of_records(void **state)
{
    struct bench b;
    struct partition_read read;
    bench_open(&b);
    int32_t one[] = {1};
    struct lead l = {.leader = 1, .isr = one, .isr_n = 1, .replicas = one, .replicas_n = 1};
    struct partition *p = bench_leader(&b, NUMBERS(1));
    bench_append(&b, p, 8, 1, NULL); /* epoch 0: 0..7 */
    l.leader_epoch = 3;
    bench_lead(&b, "t", 0, l);
    bench_append(&b, p, 12, 1, NULL); /* epoch 3: 8..19 */
    struct {
        int64_t offset;
        int32_t last;
        enum kerr error;
        int32_t epoch; /* -1: no divergence */
        int64_t end;
    } t[] = {
        {15, 2, KERR_NONE, 0, 8},   /* knows an epoch that we do not */
        {9, 0, KERR_NONE, 0, 8},    /* has more of epoch 0 than there is */
        {8, 0, KERR_NONE, -1, -1},  /* all of it */
        {20, 3, KERR_NONE, -1, -1}, /* all there is */
        {20, 4, KERR_OFFSET_OUT_OF_RANGE, -1, -1},
        {0, 0, KERR_NONE, -1, -1},
        {-1, 0, KERR_OFFSET_OUT_OF_RANGE, -1, -1},
        {15, -1, KERR_NONE, -1, -1}, /* not asked */
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct partition_read_args args = {.replica_id = -1,
                                           .offset = t[i].offset,
                                           .current_leader_epoch = -1,
                                           .last_fetched_epoch = t[i].last,
                                           .max_bytes = 1000};
        int64_t bound;
        bool diverges;
        assert_int_equal(partition_read(p, &args, &b.a, &read), t[i].error);
        file_unref(read.slice.file);
        assert_int_equal(read.diverging_epoch, t[i].epoch);
        assert_int_equal(read.diverging_end_offset, t[i].end);
        if (t[i].epoch >= 0) {
            assert_int_equal(read.slice.len, 0);
            assert_int_equal(read.high_watermark, 20);
        }
        if (t[i].error == KERR_NONE) {
            assert_int_equal(partition_probe(p, &args, &bound, &diverges), KERR_NONE);
            assert_int_equal(diverges, t[i].epoch >= 0);
        }
    }
    partition_unref(p);
    bench_close(&b);
}

static void epoch_ends_follow_the_log(void **state)
{
    struct bench b;
    bench_open(&b);
    int32_t one[] = {1};
    struct lead l = {.leader = 1, .isr = one, .isr_n = 1, .replicas = one, .replicas_n = 1};
    struct partition *p = bench_leader(&b, NUMBERS(1));
    bench_append(&b, p, 8, 1, NULL);
    l.leader_epoch = 3;
    bench_lead(&b, "t", 0, l);
    bench_append(&b, p, 2, 1, NULL);
    struct {
        int32_t asked, epoch;
        int64_t end;
    } t[] = {{0, 0, 8}, {1, 0, 8}, {3, 3, 10}, {4, -1, -1}, {-1, -1, -1}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        int32_t epoch;
        int64_t end;
        assert_int_equal(partition_epoch_end(p, -1, t[i].asked, &epoch, &end), KERR_NONE);
        assert_int_equal(epoch, t[i].epoch);
        assert_int_equal(end, t[i].end);
    }
    partition_unref(p);
    bench_close(&b);
}

/* ---- offsets ---- */

static void latest_waits_for_the_high_watermark_of_the_epoch(void **state)
{
    struct bench b;
    struct offset_lookup found;
    bench_open(&b);
    int32_t replicas[] = {1, 2};
    struct lead l = {.leader = 1,
                     .leader_epoch = 1,
                     .isr = replicas,
                     .isr_n = 2,
                     .replicas = replicas,
                     .replicas_n = 2};
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    bench_append(&b, p, 4, 1, NULL);
    assert_int_equal(partition_list_offset(p, -1, 0, LIST_LATEST, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, 0);
    bench_lead(&b, "t", 0, l); /* epoch 1 begins at 4, high watermark 0 */
    assert_int_equal(partition_list_offset(p, -1, 0, LIST_LATEST, -1, &found),
                     KERR_OFFSET_NOT_AVAILABLE);
    assert_int_equal(partition_list_offset(p, -1, 0, b.clock.wall_ms + 1, -1, &found),
                     KERR_OFFSET_NOT_AVAILABLE);
    assert_int_equal(partition_list_offset(p, -1, 0, LIST_EARLIEST, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, 0);
    assert_int_equal(partition_list_offset(p, 2, 0, LIST_LATEST, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, 4); /* replicas are shown the end */
    bench_fetch(&b, p, 2, 4, NULL);
    assert_int_equal(partition_list_offset(p, -1, 0, LIST_LATEST, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, 4);
    assert_int_equal(found.timestamp, -1);
    assert_int_equal(found.leader_epoch, 1);
    assert_int_equal(partition_list_offset(p, -1, 0, b.clock.wall_ms + 1, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, -1);
    assert_int_equal(partition_list_offset(p, -1, 0, LIST_LATEST_TIERED, -1, &found), KERR_NONE);
    assert_int_equal(found.offset, -1);
    assert_int_equal(found.leader_epoch, -1);
    partition_unref(p);
    bench_close(&b);
}

/* ---- waiters ---- */

struct counting_waiter {
    struct partition_waiter w;
    int woken;
};

static void count(struct partition_waiter *w)
{
    list_entry(w, struct counting_waiter, w)->woken++;
}

static void waiters_are_woken_by_whatever_moves(void **state)
{
    struct bench b;
    bench_open(&b);
    struct counting_waiter w = {.w.wake = count}, other = {.w.wake = count};
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    partition_wait(p, &w.w);
    partition_wait(p, &other.w);
    bench_append(&b, p, 4, 1, NULL); /* the end moves, the high watermark does not */
    assert_int_equal(w.woken, 1);
    bench_fetch(&b, p, 2, 0, NULL); /* where the follower's log starts is news */
    assert_int_equal(w.woken, 2);
    bench_fetch(&b, p, 2, 0, NULL); /* nothing moves */
    assert_int_equal(w.woken, 2);
    bench_fetch(&b, p, 2, 4, NULL);
    assert_int_equal(w.woken, 3);
    partition_unwait(&other.w);
    partition_unwait(&other.w); /* harmless */
    bench_stop(&b, "t", 0, -1, false);
    assert_int_equal(w.woken, 4);
    bench_stop(&b, "t", 0, -2, true);
    assert_int_equal(w.woken, 5);
    assert_int_equal(other.woken, 3);
    assert_int_equal(partition_check_committed(p, 1, 0), KERR_NOT_LEADER_OR_FOLLOWER);
    partition_unwait(&w.w);
    partition_unref(p);
    bench_close(&b);
}

/* Who waits for acks=all and looks late must not take what is at his offsets now for his records.
 */
static void acks_all_ends_with_the_term(void **state)
{
    struct bench b;
    struct partition_append first, second;
    int32_t replicas[] = {1, 2};
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_append(&b, p, 2, -1, &first), KERR_NONE);
    struct lead l = {.leader = 1,
                     .leader_epoch = 1,
                     .isr = replicas,
                     .isr_n = 2,
                     .replicas = replicas,
                     .replicas_n = 2};
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE); /* leads on */
    assert_int_equal(bench_fetch(&b, p, 2, 2, NULL), KERR_NONE);
    assert_int_equal(partition_check_committed(p, first.required_offset, first.term), KERR_NONE);

    l.leader = 2;
    l.leader_epoch = 2;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.leader = 1;
    l.leader_epoch = 3;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(bench_hw(p), 2);
    assert_int_equal(partition_check_committed(p, first.required_offset, first.term),
                     KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(bench_append(&b, p, 1, -1, &second), KERR_NONE);
    assert_int_equal(partition_check_committed(p, second.required_offset, second.term),
                     KERR_REQUEST_TIMED_OUT);
    partition_unref(p);
    bench_close(&b);
}

/* ---- flushes ---- */

struct told_flush {
    struct partition_flush f;
    int told;
};

static void flush_told(struct partition_flush *f)
{
    container_of(f, struct told_flush, f)->told++;
}

static void flushes_are_gathered(void **state)
{
    struct bench b;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    bench_append(&b, p, 1, 1, NULL);
    struct told_flush f[20];
    uint64_t before = fs_fault_count(b.fault, FS_SYNC);
    for (int i = 0; i < 20; i++) {
        f[i] = (struct told_flush){
            .f = {.done = flush_told, .done_on = sim_executor_ex(b.sim), .up_to = 1}};
        partition_flush(p, b.workers, &f[i].f);
    }
    assert_int_equal(f[0].told, 0);
    sim_executor_drain(b.sim);
    uint64_t once = fs_fault_count(b.fault, FS_SYNC) - before;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(f[i].told, 1);
        assert_int_equal(f[i].f.error, KERR_NONE);
    }
    bench_append(&b, p, 1, 1, NULL);
    before = fs_fault_count(b.fault, FS_SYNC);
    partition_flush_soon(p, b.workers);
    partition_flush_soon(p, b.workers);
    sim_executor_drain(b.sim);
    assert_true(once > 0);
    assert_true(once <= 2 + 2 * (fs_fault_count(b.fault, FS_SYNC) - before));
    struct log *log = partition_log(p);
    assert_int_equal(log_recovery_point(log), 2);
    log_unref(log);
    partition_unref(p);
    bench_close(&b);
}

/* With flush.messages a consumer is not given what would go with the power. */
static void records_count_once_they_are_flushed(void **state)
{
    struct bench b;
    bench_open(&b);
    b.config.flush_messages = 1;
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_append(&b, p, 3, -1, NULL), KERR_NONE);
    assert_int_equal(bench_fetch(&b, p, 2, 3, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 0);
    partition_flush_soon(p, b.workers);
    sim_executor_drain(b.sim);
    assert_int_equal(bench_hw(p), 3);
    b.config.flush_messages = 3; /* two may be at risk */
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(bench_append(&b, p, 2, -1, NULL), KERR_NONE);
    assert_int_equal(bench_fetch(&b, p, 2, 5, NULL), KERR_NONE);
    assert_int_equal(bench_hw(p), 5);
    partition_unref(p);
    bench_close(&b);
}

static void followers_get_what_is_flushed(void **state)
{
    struct bench b;
    struct partition_read read;
    bench_open(&b);
    b.config.flush_messages = 1;
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_append(&b, p, 3, -1, NULL), KERR_NONE);
    assert_int_equal(bench_fetch(&b, p, 2, 0, &read), KERR_NONE);
    assert_int_equal(read.slice.len, 0);
    assert_int_equal(read.log_end_offset, 0);
    assert_int_equal(bench_fetch(&b, p, 2, 2, &read), KERR_NONE); /* it has two, from before */
    assert_int_equal(read.slice.len, 0);
    assert_int_equal(read.log_end_offset, 2);
    partition_flush_soon(p, b.workers);
    sim_executor_drain(b.sim);
    assert_int_equal(bench_fetch(&b, p, 2, 0, &read), KERR_NONE);
    assert_true(read.slice.len > 0);
    assert_int_equal(read.log_end_offset, 3);
    partition_unref(p);
    bench_close(&b);
}

/* A leader that begins with records which are not flushed does it by itself. */
static void a_new_leader_flushes_what_it_found(void **state)
{
    struct bench b;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_append(&b, p, 3, 1, NULL), KERR_NONE);
    b.config.flush_messages = 1;
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    struct lead l = {.leader = 1,
                     .leader_epoch = 1,
                     .isr = (const int32_t[]){1},
                     .isr_n = 1,
                     .replicas = (const int32_t[]){1, 2},
                     .replicas_n = 2};
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(bench_hw(p), 0);
    sim_executor_drain(b.sim);
    assert_int_equal(bench_hw(p), 3);
    partition_unref(p);
    bench_close(&b);
}

/* flush.messages is lowered below what is not flushed, and nobody writes any more: what is held
 * back from followers and consumers since would be so for ever. */
static void a_lowered_flush_messages_flushes_what_is_over(void **state)
{
    struct bench b;
    struct partition_read read;
    bench_open(&b);
    b.config.flush_messages = 100;
    struct partition *p = bench_leader(&b, NUMBERS(1, 2));
    assert_int_equal(bench_append(&b, p, 3, 1, NULL), KERR_NONE);
    b.config.flush_messages = 4; /* three may be at risk */
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    sim_executor_drain(b.sim);
    struct log *log = partition_log(p);
    assert_int_equal(log_recovery_point(log), 0);
    b.config.flush_messages = 3;
    replica_manager_topic_config_changed(b.m, STR_LIT("t"));
    assert_int_equal(bench_fetch(&b, p, 2, 0, &read), KERR_NONE);
    assert_int_equal(read.log_end_offset, 2);
    sim_executor_drain(b.sim);
    assert_int_equal(log_recovery_point(log), 3);
    assert_int_equal(bench_fetch(&b, p, 2, 0, &read), KERR_NONE);
    assert_int_equal(read.log_end_offset, 3);
    log_unref(log);
    partition_unref(p);
    bench_close(&b);
}

/* The log was cut below what a flush should reach: it ends, with the error of a leader that lost
 * its records. */
static void a_flush_above_the_end_of_the_log_ends(void **state)
{
    struct bench b;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    bench_append(&b, p, 5, 1, NULL);
    struct log *log = partition_log(p);
    assert_int_equal(log_truncate_to(log, 3), KERR_NONE);
    struct told_flush f[2] = {
        {.f = {.done = flush_told, .done_on = sim_executor_ex(b.sim), .up_to = 5}},
        {.f = {.done = flush_told, .done_on = sim_executor_ex(b.sim), .up_to = 3}}};
    for (int i = 0; i < 2; i++)
        partition_flush(p, b.workers, &f[i].f);
    for (int i = 0; i < 10; i++)
        sim_executor_step(b.sim);
    assert_int_equal(f[0].told, 1);
    assert_int_equal(f[0].f.error, KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(f[1].told, 1);
    assert_int_equal(f[1].f.error, KERR_NONE);
    log_unref(log);
    partition_unref(p);
    bench_close(&b);
}

/* A partition whose producers never pause: each flush finds one more to do. */
struct busy {
    struct bench *b;
    struct partition *p;
    struct told_flush f[4];
    int n;
    struct job other; /* another job of the workers */
    int asked_before_other;
};

static void look_at_busy(struct job *job)
{
    struct busy *y = container_of(job, struct busy, other);
    y->asked_before_other = y->n;
}

static void ask_for_one_more(void *arg)
{
    struct busy *y = arg;
    if (y->n == 4)
        return;
    struct partition_flush *f = &y->f[y->n++].f;
    bench_append(y->b, y->p, 1, 1, NULL);
    *f = (struct partition_flush){
        .done = flush_told, .done_on = sim_executor_ex(y->b->sim), .up_to = y->n};
    partition_flush(y->p, y->b->workers, f);
}

static void a_busy_partition_lets_others_flush(void **state)
{
    struct bench b;
    bench_open(&b);
    struct busy y = {.b = &b, .p = bench_leader(&b, NUMBERS(1))};
    fs_fault_add(
        b.fault,
        (struct fs_fault_rule){
            .call = FS_SYNC, .path = "*.log", .times = -1, .before = ask_for_one_more, .arg = &y});
    y.other.work = look_at_busy;
    ask_for_one_more(&y);
    workers_submit(b.workers, &y.other);
    sim_executor_drain(b.sim);
    assert_int_equal(y.asked_before_other, 2); /* one round, not all */
    fs_fault_clear(b.fault);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(y.f[i].told, 1);
        assert_int_equal(y.f[i].f.error, KERR_NONE);
    }
    partition_unref(y.p);
    bench_close(&b);
}

static void failed_flush_tells_all_and_takes_the_dir_offline(void **state)
{
    struct bench b;
    bench_open(&b);
    struct partition *p = bench_leader(&b, NUMBERS(1));
    bench_append(&b, p, 1, 1, NULL);
    fs_fault_add(
        b.fault,
        (struct fs_fault_rule){
            .call = FS_SYNC, .path = "*.log", .times = 1, .error = EIO, .write_bytes = -1});
    struct told_flush f[2];
    for (int i = 0; i < 2; i++) {
        f[i] = (struct told_flush){
            .f = {.done = flush_told, .done_on = sim_executor_ex(b.sim), .up_to = 1}};
        partition_flush(p, b.workers, &f[i].f);
    }
    sim_executor_drain(b.sim);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f[i].told, 1);
        assert_int_equal(f[i].f.error, KERR_KAFKA_STORAGE_ERROR);
    }
    enum kerr why;
    assert_null(replica_manager_find(b.m, bench_tp("t", 0), &why));
    assert_int_equal(why, KERR_KAFKA_STORAGE_ERROR);
    partition_unref(p);
    bench_close(&b);
}

UNIT_MAIN(unit_test(leader_alone_commits_at_once), unit_test(epochs_of_requests_are_checked),
          unit_test(high_watermark_is_the_least_of_the_isr),
          unit_test(followers_read_past_the_high_watermark_and_consumers_do_not),
          unit_test(rereads_do_not_count_as_fetches),
          unit_test(strangers_may_not_fetch_as_followers),
          unit_test(small_isr_refuses_acks_all_and_holds_the_high_watermark),
          unit_test(lower_min_insync_lets_the_high_watermark_go),
          unit_test(outsider_that_keeps_up_holds_the_high_watermark),
          unit_test(caught_up_is_judged_by_the_end_at_the_last_fetch),
          unit_test(reelected_leader_remembers_its_followers),
          unit_test(follower_serves_new_consumers_only), unit_test(acks_all_ends_with_the_term),
          unit_test(divergence_is_told_instead_of_records), unit_test(epoch_ends_follow_the_log),
          unit_test(latest_waits_for_the_high_watermark_of_the_epoch),
          unit_test(waiters_are_woken_by_whatever_moves), unit_test(flushes_are_gathered),
          unit_test(records_count_once_they_are_flushed),
          unit_test(a_new_leader_flushes_what_it_found),
          unit_test(a_lowered_flush_messages_flushes_what_is_over),
          unit_test(followers_get_what_is_flushed),
          unit_test(a_flush_above_the_end_of_the_log_ends),
          unit_test(a_busy_partition_lets_others_flush),
          unit_test(failed_flush_tells_all_and_takes_the_dir_offline))
