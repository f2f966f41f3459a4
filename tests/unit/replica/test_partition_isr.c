/* The ISR of a leader: who joins, who leaves, what each answer to a change does, and what all of it
 * means for the high watermark and acks=all. */
#include "bench.h"

#include "base/logline.h"

enum { PROPOSALS_MAX = 8 };

struct rig {
    struct bench b;
    struct isr_writer writer;
    struct isr_proposal *got[PROPOSALS_MAX];
    int n;
    struct partition *p;
};

static void take(struct isr_writer *w, struct partition *p, struct isr_proposal *q)
{
    struct rig *g = container_of(w, struct rig, writer);
    assert_true(g->n < PROPOSALS_MAX);
    g->got[g->n++] = q;
}

static const int32_t all[] = {1, 2, 3};

static void lead(struct rig *g, int32_t epoch, int32_t partition_epoch, const int32_t *isr,
                 int32_t isr_n)
{
    assert_int_equal(bench_lead(&g->b, "t", 0,
                                (struct lead){.leader = 1,
                                              .leader_epoch = epoch,
                                              .partition_epoch = partition_epoch,
                                              .isr = isr,
                                              .isr_n = isr_n,
                                              .replicas = all,
                                              .replicas_n = 3,
                                              .is_new = true}),
                     KERR_NONE);
}

/* Leader 1 of replicas 1, 2, 3 in epoch 0, with this ISR. */
static void rig_open(struct rig *g, const int32_t *isr, int32_t isr_n, int32_t min_insync)
{
    memset(g, 0, sizeof(*g));
    logline_set_level(LOGLINE_FATAL);
    g->writer.propose = take;
    g->b.id = 1;
    g->b.isr_writer = &g->writer;
    bench_open_as(&g->b, 1);
    g->b.config.min_insync_replicas = min_insync;
    lead(g, 0, 0, isr, isr_n);
    enum kerr why;
    g->p = replica_manager_find(g->b.m, bench_tp("t", 0), &why);
    assert_non_null(g->p);
}

static void rig_close(struct rig *g)
{
    for (int i = 0; i < g->n; i++)
        isr_proposal_free(g->got[i]);
    partition_unref(g->p);
    bench_close(&g->b);
}

static void expect_isr(struct rig *g, bool pending, const int32_t *isr, int32_t n)
{
    int32_t ids[8];
    struct isr_view v = {ids, 8, 0, false};
    partition_isr(g->p, &v);
    assert_int_equal(v.n, n);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(ids[i], isr[i]);
    assert_int_equal(v.pending, pending);
}

static void expect_proposal(struct rig *g, int nth, const int32_t *isr, int32_t n)
{
    assert_true(g->n > nth);
    assert_int_equal(g->got[nth]->isr_n, n);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(g->got[nth]->isr[i], isr[i]);
}

/* The answer to the nth proposal: as it was asked for, in this epoch. */
static enum isr_next settle(struct rig *g, int nth, int32_t partition_epoch)
{
    struct isr_answer a = {.leader_epoch = g->got[nth]->leader_epoch,
                           .partition_epoch = partition_epoch,
                           .isr = g->got[nth]->isr,
                           .isr_n = g->got[nth]->isr_n};
    return partition_isr_answered(g->p, g->got[nth]->number, &a);
}

static enum isr_next refuse(struct rig *g, int nth, enum kerr e)
{
    struct isr_answer a = {.error = e};
    return partition_isr_answered(g->p, g->got[nth]->number, &a);
}

static void expect_changes(struct rig *g, uint64_t shrinks, uint64_t expands, uint64_t refused)
{
    uint64_t s, e, r;
    replica_manager_isr_changes(g->b.m, &s, &e, &r);
    assert_int_equal(s, shrinks);
    assert_int_equal(e, expands);
    assert_int_equal(r, refused);
}

static void changes_are_counted_when_they_are_answered(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1), 1);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    expect_changes(&g, 0, 0, 0); /* proposed only */
    settle(&g, 0, 1);
    expect_changes(&g, 0, 1, 0);
    sim_clock_advance(&g.b.clock, 1);
    assert_int_equal(bench_append(&g.b, g.p, 5, 1, NULL), KERR_NONE);
    sim_clock_advance(&g.b.clock, 10001);
    partition_shrink_isr(g.p);
    assert_int_equal(g.n, 2);
    refuse(&g, 1, KERR_UNKNOWN_SERVER_ERROR);
    expect_changes(&g, 0, 1, 1);
    settle(&g, 1, 2);
    expect_changes(&g, 1, 1, 1);
    settle(&g, 1, 2); /* told twice */
    expect_changes(&g, 1, 1, 1);
    rig_close(&g);
}

static void facts_of_a_leader(void **state)
{
    static const int32_t mins[] = {1, 2, 3, 9};
    for (size_t i = 0; i < sizeof(mins) / sizeof(*mins); i++) {
        struct rig g;
        struct partition_facts f;
        rig_open(&g, NUMBERS(1, 2), mins[i]);
        assert_int_equal(bench_append(&g.b, g.p, 10, 1, NULL), KERR_NONE);
        partition_facts(g.p, &f);
        assert_true(f.leads && f.has_log && !f.offline && f.under_replicated);
        assert_int_equal(f.isr_n, 2);
        assert_int_equal(f.replicas_n, 3);
        assert_int_equal(f.under_min_isr, mins[i] > 2); /* 9 is 3: there are no more */
        assert_int_equal(f.at_min_isr, mins[i] == 2);
        assert_int_equal(f.log_end, 10);
        assert_int_equal(f.log_start, 0);
        assert_int_equal(f.segments, 1);
        assert_true(f.size > 0);
        bench_lead(&g.b, "t", 0,
                   (struct lead){.leader = 2,
                                 .leader_epoch = 1,
                                 .partition_epoch = 1,
                                 .isr = all,
                                 .isr_n = 3,
                                 .replicas = all,
                                 .replicas_n = 3});
        partition_facts(g.p, &f);
        assert_true(!f.leads && f.has_log && !f.under_replicated && !f.under_min_isr);
        assert_int_equal(f.isr_n, 0);
        assert_int_equal(f.log_end, 10);
        rig_close(&g);
    }
}

static void a_reassignment_is_known(void **state)
{
    static const int32_t added[] = {3};
    struct rig g;
    struct partition_facts f;
    rig_open(&g, NUMBERS(1, 2), 1);
    partition_facts(g.p, &f);
    assert_true(!f.moving && !partition_adds_replica(g.p, 3));
    struct lead l = {.leader = 1,
                     .leader_epoch = 1,
                     .partition_epoch = 1,
                     .isr = all,
                     .isr_n = 2,
                     .replicas = all,
                     .replicas_n = 3,
                     .adding = added,
                     .adding_n = 1};
    assert_int_equal(bench_lead(&g.b, "t", 0, l), KERR_NONE);
    partition_facts(g.p, &f);
    assert_true(f.moving && partition_adds_replica(g.p, 3));
    assert_true(!f.under_replicated && f.isr_n == 2 && f.replicas_n == 3); /* 3 only comes */
    assert_true(!partition_adds_replica(g.p, 2) && !partition_adds_replica(g.p, 9));
    l.leader_epoch = l.partition_epoch = 2;
    l.isr_n = 1;
    assert_int_equal(bench_lead(&g.b, "t", 0, l), KERR_NONE);
    partition_facts(g.p, &f);
    assert_true(f.moving && f.under_replicated); /* but 2 is lacking */
    l.leader_epoch = l.partition_epoch = 3;
    l.adding_n = 0;
    l.isr_n = 2;
    assert_int_equal(bench_lead(&g.b, "t", 0, l), KERR_NONE);
    partition_facts(g.p, &f);
    assert_true(f.under_replicated); /* it is here, and lags */
    assert_true(!f.moving && !partition_adds_replica(g.p, 3));
    rig_close(&g);
}

static void a_follower_that_has_all_joins(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1), 1);
    assert_int_equal(bench_append(&g.b, g.p, 10, 1, NULL), KERR_NONE);
    assert_int_equal(bench_hw(g.p), 10);
    bench_fetch(&g.b, g.p, 2, 5, NULL); /* not there yet */
    assert_int_equal(g.n, 0);
    bench_fetch(&g.b, g.p, 2, 10, NULL);
    expect_proposal(&g, 0, NUMBERS(1, 2));
    expect_isr(&g, true, NUMBERS(1));
    assert_int_equal(g.got[0]->partition_epoch, 0);
    bench_fetch(&g.b, g.p, 3, 10, NULL); /* one change at a time */
    assert_int_equal(g.n, 1);
    assert_int_equal(settle(&g, 0, 1), ISR_SETTLED);
    expect_isr(&g, true, NUMBERS(1, 2)); /* and then the next */
    expect_proposal(&g, 1, NUMBERS(1, 2, 3));
    assert_int_equal(g.got[1]->partition_epoch, 1);
    rig_close(&g);
}

/* An idle follower was ripe while another change was under way, and has a fetch out since: the
 * answer to that change is when it is looked at again. Seen by chaos: a move never ended. */
static void who_was_ripe_meanwhile_joins_after_the_answer(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1), 1);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    bench_fetch(&g.b, g.p, 3, 0, NULL);
    assert_int_equal(g.n, 1);
    assert_int_equal(settle(&g, 0, 1), ISR_SETTLED);
    expect_proposal(&g, 1, NUMBERS(1, 2, 3));
    assert_int_equal(g.got[1]->partition_epoch, 1);
    assert_int_equal(settle(&g, 1, 2), ISR_SETTLED);
    expect_isr(&g, false, NUMBERS(1, 2, 3));
    assert_int_equal(g.n, 2);
    rig_close(&g);
}

/* Who has left for not fetching does not come back by that, nor who never fetched, nor who lags. */
static void who_does_not_fetch_does_not_join_after_an_answer(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1, 2), 3); /* the watermark stands still: it keeps nobody out */
    sim_clock_advance(&g.b.clock, 1);
    assert_int_equal(bench_append(&g.b, g.p, 10, 1, NULL), KERR_NONE);
    sim_clock_advance(&g.b.clock, 10001);
    partition_shrink_isr(g.p); /* 2 has fetched nothing */
    expect_proposal(&g, 0, NUMBERS(1));
    assert_int_equal(settle(&g, 0, 1), ISR_SETTLED);
    assert_int_equal(g.n, 1);
    bench_fetch(&g.b, g.p, 3, 10, NULL);
    expect_proposal(&g, 1, NUMBERS(1, 3));
    bench_fetch(&g.b, g.p, 2, 10, NULL); /* ripe, but gone when the answer comes */
    sim_clock_advance(&g.b.clock, 10001);
    assert_int_equal(settle(&g, 1, 2), ISR_SETTLED);
    assert_int_equal(g.n, 2);
    rig_close(&g);
}

/* The one that joins counts at once; the one that leaves as long as that is not written. */
static void the_watermark_waits_for_whom_it_must(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1), 1);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    assert_int_equal(g.n, 1);
    assert_int_equal(bench_append(&g.b, g.p, 10, 1, NULL), KERR_NONE);
    assert_int_equal(bench_hw(g.p), 0); /* 2 is joining, and has nothing */
    bench_fetch(&g.b, g.p, 2, 10, NULL);
    assert_int_equal(bench_hw(g.p), 10);
    settle(&g, 0, 1);
    sim_clock_advance(&g.b.clock, 1);
    assert_int_equal(bench_append(&g.b, g.p, 5, 1, NULL), KERR_NONE);
    sim_clock_advance(&g.b.clock, 10001);
    partition_shrink_isr(g.p);
    expect_proposal(&g, 1, NUMBERS(1));
    assert_int_equal(bench_hw(g.p), 10);
    expect_isr(&g, true, NUMBERS(1, 2));
    settle(&g, 1, 2);
    assert_int_equal(bench_hw(g.p), 15);
    expect_isr(&g, false, NUMBERS(1));
    rig_close(&g);
}

/* Nobody fetches again before the watermark is told: it must move with the refusal. */
static void a_refusal_lets_the_watermark_go_on(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1, 2), 1);
    bench_fetch(&g.b, g.p, 3, 0, NULL);
    expect_proposal(&g, 0, NUMBERS(1, 2, 3));
    assert_int_equal(bench_append(&g.b, g.p, 10, 1, NULL), KERR_NONE);
    bench_fetch(&g.b, g.p, 2, 10, NULL);
    assert_int_equal(bench_hw(g.p), 0); /* 3 is joining, and has nothing */
    refuse(&g, 0, KERR_INELIGIBLE_REPLICA);
    assert_int_equal(bench_hw(g.p), 10);
    bench_fetch(&g.b, g.p, 3, 10, NULL); /* not asked for again at once ... */
    assert_int_equal(g.n, 1);
    assert_int_equal(bench_append(&g.b, g.p, 5, 1, NULL), KERR_NONE);
    bench_fetch(&g.b, g.p, 2, 15, NULL);
    assert_int_equal(bench_hw(g.p), 15); /* ... nor waited for */
    sim_clock_advance(&g.b.clock, 1000);
    bench_fetch(&g.b, g.p, 3, 15, NULL);
    expect_proposal(&g, 1, NUMBERS(1, 2, 3));
    rig_close(&g);
}

static void only_those_that_lag_leave_and_all_at_once(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1, 2, 3), 1);
    partition_shrink_isr(g.p);
    assert_int_equal(g.n, 0);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    bench_fetch(&g.b, g.p, 3, 0, NULL);
    sim_clock_advance(&g.b.clock, 3600000); /* nothing was written: nobody lags */
    partition_shrink_isr(g.p);
    assert_int_equal(g.n, 0);
    assert_int_equal(bench_append(&g.b, g.p, 1, 1, NULL), KERR_NONE);
    bench_fetch(&g.b, g.p, 2, 1, NULL);
    partition_shrink_isr(g.p);
    expect_proposal(&g, 0, NUMBERS(1, 2));
    refuse(&g, 0, KERR_OPERATION_NOT_ATTEMPTED);
    assert_int_equal(bench_append(&g.b, g.p, 1, 1, NULL), KERR_NONE);
    sim_clock_advance(&g.b.clock, 10000);
    partition_shrink_isr(g.p); /* 2 is within its time */
    expect_proposal(&g, 1, NUMBERS(1, 2));
    refuse(&g, 1, KERR_INELIGIBLE_REPLICA);
    sim_clock_advance(&g.b.clock, 1);
    partition_shrink_isr(g.p);
    expect_proposal(&g, 2, NUMBERS(1));
    rig_close(&g);
}

/* A follower that reads on while more is written is caught up as of its last fetch. */
static void a_follower_that_keeps_up_stays(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1, 2), 1);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(bench_append(&g.b, g.p, 1, 1, NULL), KERR_NONE);
        bench_fetch(&g.b, g.p, 2, i, NULL); /* always one behind */
        sim_clock_advance(&g.b.clock, 5000);
        partition_shrink_isr(g.p);
    }
    assert_int_equal(g.n, 0);
    rig_close(&g);
}

static void nobody_joins_below_the_start_of_the_epoch(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1, 2), 3); /* the watermark stands still: the ISR is too small */
    assert_int_equal(bench_append(&g.b, g.p, 10, 1, NULL), KERR_NONE);
    lead(&g, 1, 1, NUMBERS(1, 2));
    bench_fetch(&g.b, g.p, 3, 5, NULL); /* above the watermark, below the epoch */
    assert_int_equal(bench_hw(g.p), 0);
    assert_int_equal(g.n, 0);
    bench_fetch(&g.b, g.p, 3, 10, NULL);
    expect_proposal(&g, 0, NUMBERS(1, 2, 3));
    rig_close(&g);
}

static void a_broker_that_is_not_alive_does_not_join(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1), 1);
    assert_int_equal(bench_metadata(&g.b, 2, "t"), KERR_NONE);
    bench_fetch(&g.b, g.p, 3, 0, NULL);
    assert_int_equal(g.n, 0);
    assert_int_equal(bench_metadata(&g.b, 3, "t"), KERR_NONE);
    bench_fetch(&g.b, g.p, 3, 0, NULL); /* tried though it did not move */
    assert_int_equal(g.n, 1);
    rig_close(&g);
}

static void each_answer_does_what_it_says(void **state)
{
    static const struct {
        enum kerr error;
        enum isr_next next;
        bool pending;
    } t[] = {{KERR_OPERATION_NOT_ATTEMPTED, ISR_SETTLED, false},
             {KERR_INELIGIBLE_REPLICA, ISR_SETTLED, false},
             {KERR_UNKNOWN_TOPIC_OR_PARTITION, ISR_SETTLED, true},
             {KERR_UNKNOWN_TOPIC_ID, ISR_SETTLED, true},
             {KERR_FENCED_LEADER_EPOCH, ISR_SETTLED, true},
             {KERR_INVALID_UPDATE_VERSION, ISR_SETTLED, true},
             {KERR_INVALID_REQUEST, ISR_SETTLED, true},
             {KERR_NEW_LEADER_ELECTED, ISR_SETTLED, true},
             {KERR_UNKNOWN_SERVER_ERROR, ISR_AGAIN, true},
             {KERR_REQUEST_TIMED_OUT, ISR_AGAIN, true}};
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct rig g;
        rig_open(&g, NUMBERS(1), 1);
        bench_fetch(&g.b, g.p, 2, 0, NULL);
        assert_int_equal(refuse(&g, 0, t[i].error), t[i].next);
        expect_isr(&g, t[i].pending, NUMBERS(1));
        if (t[i].error == KERR_INELIGIBLE_REPLICA) /* by then it may be able to */
            sim_clock_advance(&g.b.clock, 1000);
        bench_fetch(&g.b, g.p, 2, 0, NULL);
        assert_int_equal(g.n, t[i].pending ? 1 : 2);
        lead(&g, 1, 5, NUMBERS(1)); /* ends whatever was pending */
        expect_isr(&g, false, NUMBERS(1));
        assert_int_equal(settle(&g, 0, 6), ISR_SETTLED); /* late: of no effect */
        expect_isr(&g, false, NUMBERS(1));
        rig_close(&g);
    }
}

static void a_success_of_another_state_is_passed_over(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1), 1);
    lead(&g, 4, 7, NUMBERS(1));
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    static int32_t both[] = {1, 2};
    struct isr_answer a = {.leader_epoch = 5, .partition_epoch = 8, .isr = both, .isr_n = 2};
    assert_int_equal(partition_isr_answered(g.p, g.got[0]->number, &a), ISR_SETTLED);
    expect_isr(&g, true, NUMBERS(1)); /* its leader epoch is not ours */
    a = (struct isr_answer){.leader_epoch = 4, .partition_epoch = 6, .isr = both, .isr_n = 2};
    assert_int_equal(partition_isr_answered(g.p, g.got[0]->number, &a), ISR_SETTLED);
    expect_isr(&g, true, NUMBERS(1)); /* older than what we know */
    a.partition_epoch = 7;            /* the state was there already */
    assert_int_equal(partition_isr_answered(g.p, g.got[0]->number, &a), ISR_SETTLED);
    expect_isr(&g, false, NUMBERS(1, 2));
    rig_close(&g);
}

/* acks=all: before the append the committed ISR counts, afterwards the one that joins as well. */
static void acks_all_counts_the_isr(void **state)
{
    struct rig g;
    struct partition_append done;
    rig_open(&g, NUMBERS(1), 2);
    assert_int_equal(bench_append(&g.b, g.p, 1, -1, NULL), KERR_NOT_ENOUGH_REPLICAS);
    bench_fetch(&g.b, g.p, 2, 0, NULL);
    assert_int_equal(bench_append(&g.b, g.p, 1, -1, NULL), KERR_NOT_ENOUGH_REPLICAS);
    settle(&g, 0, 1);
    assert_int_equal(bench_append(&g.b, g.p, 3, -1, &done), KERR_NONE);
    assert_int_equal(partition_check_committed(g.p, done.required_offset, 0),
                     KERR_REQUEST_TIMED_OUT);
    bench_fetch(&g.b, g.p, 2, 3, NULL);
    assert_int_equal(partition_check_committed(g.p, done.required_offset, 0), KERR_NONE);
    sim_clock_advance(&g.b.clock, 1);
    assert_int_equal(bench_append(&g.b, g.p, 1, 1, NULL), KERR_NONE);
    sim_clock_advance(&g.b.clock, 20000);
    partition_shrink_isr(g.p);
    settle(&g, 1, 2);
    expect_isr(&g, false, NUMBERS(1));
    assert_int_equal(bench_hw(g.p), 3); /* stands still below min.insync.replicas */
    assert_int_equal(partition_check_committed(g.p, 3, 0), KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    assert_int_equal(partition_check_committed(g.p, 4, 0), KERR_REQUEST_TIMED_OUT);
    bench_fetch(&g.b, g.p, 2, 4, NULL);
    assert_int_equal(partition_check_committed(g.p, 3, 0), KERR_NONE); /* 2 is joining */
    assert_int_equal(bench_hw(g.p), 3);
    settle(&g, 2, 3);
    assert_int_equal(bench_hw(g.p), 4);
    rig_close(&g);
}

static void a_follower_has_no_isr(void **state)
{
    struct rig g;
    rig_open(&g, NUMBERS(1, 2), 1);
    assert_int_equal(bench_lead(&g.b, "t", 0,
                                (struct lead){.leader = 2,
                                              .leader_epoch = 1,
                                              .partition_epoch = 1,
                                              .isr = all,
                                              .isr_n = 2,
                                              .replicas = all,
                                              .replicas_n = 3}),
                     KERR_NONE);
    expect_isr(&g, false, NULL, 0);
    partition_shrink_isr(g.p);
    assert_int_equal(g.n, 0);
    rig_close(&g);
}

UNIT_MAIN(unit_test(a_reassignment_is_known), unit_test(changes_are_counted_when_they_are_answered),
          unit_test(facts_of_a_leader), unit_test(a_follower_that_has_all_joins),
          unit_test(who_was_ripe_meanwhile_joins_after_the_answer),
          unit_test(who_does_not_fetch_does_not_join_after_an_answer),
          unit_test(the_watermark_waits_for_whom_it_must),
          unit_test(a_refusal_lets_the_watermark_go_on),
          unit_test(only_those_that_lag_leave_and_all_at_once),
          unit_test(a_follower_that_keeps_up_stays),
          unit_test(nobody_joins_below_the_start_of_the_epoch),
          unit_test(a_broker_that_is_not_alive_does_not_join),
          unit_test(each_answer_does_what_it_says),
          unit_test(a_success_of_another_state_is_passed_over), unit_test(acks_all_counts_the_isr),
          unit_test(a_follower_has_no_isr))
