/* Groups of the new protocol: joins, leaves, reconciliation, epochs, static members, timers, topics
 * that change, offsets, and what tools see. */
#include "base/logline.h"
#include "cgroup_bench.h"

static struct bench *b;

static int make(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    b = bench_new();
    bench_topics(b, "t:4 u:2");
    return 0;
}

static int drop(void **state)
{
    bench_free(b);
    return 0;
}

/* ---- joining and sharing ---- */

static void the_first_member_gets_all(void **state)
{
    struct beat_answer r = BEAT(b, .names = "t");
    assert_int_equal(r.error, KERR_NONE);
    assert_int_equal(strlen(r.id), 22); /* made by the broker */
    assert_int_equal(r.epoch, 1);
    assert_int_equal(r.interval, 5000);
    assert_string_equal(r.parts, "t0,t1,t2,t3");
    assert_string_equal(cstate_of(b, "g"), "Stable");
    /* nothing new: nothing is told, nothing is written */
    int records = b->log.records;
    EXPECT_BEAT(BEAT(b, .member = r.id, .epoch = 1, .owned = "t0-3"), 1, NULL);
    EXPECT_BEAT(BEAT(b, .member = r.id, .epoch = 1), 1, NULL);
    assert_int_equal(b->log.records, records);
    /* who says all is told all */
    EXPECT_BEAT(
        BEAT(b, .member = r.id, .epoch = 1, .rebalance_ms = 60000, .names = "t", .owned = "t0-3"),
        1, "t0-3");
}

/* The example of the protocol's description. */
static void a_second_member_waits_for_what_the_first_gives_up(void **state)
{
    EXPECT_BEAT(BEAT(b, .member = "A"), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .member = "B"), 2, "");
    assert_string_equal(cstate_of(b, "g"), "Reconciling");
    assert_int_equal(cmember_of(b, "g", "B")->state, CMEMBER_UNRELEASED);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1), 1, "t0,t1");
    assert_int_equal(cmember_of(b, "g", "A")->state, CMEMBER_UNREVOKED);
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 2, NULL); /* not yet */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0-3"), 1, NULL);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1"), 2, NULL);
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 2, "t2,t3");
    assert_string_equal(cstate_of(b, "g"), "Stable");
}

static void a_member_that_must_give_up_twice(void **state)
{
    BEAT(b, .member = "A");
    BEAT(b, .member = "B");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1), 1, "t0,t1");
    BEAT(b, .member = "C"); /* epoch 3: A shall have less still */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1"), 3, NULL);
    EXPECT_BEAT(BEAT(b, .member = "C", .epoch = 3), 3, "t3");
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 3, "t2");
    assert_string_equal(cstate_of(b, "g"), "Stable");
    BEAT(b, .member = "D");
    BEAT(b, .member = "A", .epoch = 3);
    BEAT(b, .member = "E"); /* the target changes before A has obeyed */
    assert_int_equal(cmember_of(b, "g", "A")->state, CMEMBER_UNREVOKED);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 3, .owned = "t0"), 5, NULL);
}

static void who_leaves_makes_room(void **state)
{
    BEAT(b, .member = "A");
    BEAT(b, .member = "B");
    BEAT(b, .member = "A", .epoch = 1);
    BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1");
    BEAT(b, .member = "B", .epoch = 2);
    struct beat_answer r = BEAT(b, .member = "B", .epoch = -1);
    assert_int_equal(r.error, KERR_NONE);
    assert_int_equal(r.epoch, -1);
    assert_string_equal(r.id, "B");
    assert_false(r.told);
    assert_string_equal(cstate_of(b, "g"), "Assigning");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 2), 3, "t0-3");
    assert_int_equal(BEAT(b, .member = "B", .epoch = 2).error, KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(BEAT(b, .member = "B", .epoch = -1).error, KERR_UNKNOWN_MEMBER_ID);
    BEAT(b, .member = "A", .epoch = -1);
    assert_string_equal(cstate_of(b, "g"), "Empty");
    EXPECT_BEAT(BEAT(b, .member = "A"), 5, "t0-3"); /* epochs go on */
}

/* ---- epochs ---- */

static void an_answer_that_got_lost(void **state)
{
    BEAT(b, .member = "A");
    BEAT(b, .member = "B");
    BEAT(b, .member = "A", .epoch = 1);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1"), 2, NULL);
    /* again, as if that had not arrived; what it owns tells that it is the same one */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1"), 2, NULL);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1).error, KERR_FENCED_MEMBER_EPOCH);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1, .owned = "t0-2").error,
                     KERR_FENCED_MEMBER_EPOCH);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 3, .owned = "t0,t1").error,
                     KERR_FENCED_MEMBER_EPOCH);
    assert_int_equal(BEAT(b, .member = "A").error, KERR_FENCED_MEMBER_EPOCH);
    /* a join whose answer got lost */
    EXPECT_BEAT(BEAT(b, .member = "C", .group = "h"), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .member = "C", .group = "h"), 1, "t0-3");
}

static void requests_that_make_no_sense(void **state)
{
    static const struct {
        struct beat_args a;
        enum kerr error;
    } bad[] = {
        {{.group = "", .member = "A"}, KERR_INVALID_REQUEST},
        {{.member = "A", .instance = ""}, KERR_INVALID_REQUEST},
        {{.member = "A", .rack = ""}, KERR_INVALID_REQUEST},
        {{.epoch = 1}, KERR_INVALID_REQUEST},
        {{.epoch = -1}, KERR_INVALID_REQUEST},
        {{.epoch = -2, .instance = "i"}, KERR_INVALID_REQUEST},
        {{.member = "A", .epoch = -2}, KERR_INVALID_REQUEST},
        {{.member = "A", .epoch = -3}, KERR_INVALID_REQUEST},
        {{.member = "A", .bare = true, .names = "t", .owned = ""}, KERR_INVALID_REQUEST},
        {{.member = "A", .bare = true, .rebalance_ms = 1, .owned = ""}, KERR_INVALID_REQUEST},
        {{.member = "A", .bare = true, .rebalance_ms = 1, .names = "t"}, KERR_INVALID_REQUEST},
        {{.member = "A", .owned = "t0"}, KERR_INVALID_REQUEST},
        {{.version = 1}, KERR_INVALID_REQUEST}, /* from v1 on clients make their ids */
        {{.member = "A", .assignor = "sticky"}, KERR_UNSUPPORTED_ASSIGNOR},
        {{.version = 1, .member = "A", .regex = "("}, KERR_INVALID_REGULAR_EXPRESSION},
        {{.member = "A", .epoch = 1}, KERR_GROUP_ID_NOT_FOUND},
        {{.member = "A", .epoch = -1}, KERR_GROUP_ID_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct beat_answer r = beat_end(beat_with(b, bad[i].a));
        if (r.error != bad[i].error)
            fail_msg("request %zu: %s instead of %s", i, kerr_name((int16_t)r.error),
                     kerr_name((int16_t)bad[i].error));
        assert_true(strlen(r.message) > 0);
        assert_int_equal(group_shard_groups(b->shard), 0);
    }
    assert_int_equal(b->log.records, 0);
}

static void a_group_that_is_full(void **state)
{
    b->config.consumers.max_size = 2;
    BEAT(b, .member = "A");
    BEAT(b, .member = "B");
    assert_int_equal(BEAT(b, .member = "C").error, KERR_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(BEAT(b, .member = "B", .epoch = 2).error, KERR_NONE);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 2);
}

/* ---- what members say ---- */

static void a_changed_subscription_makes_an_epoch(void **state)
{
    BEAT(b, .member = "A", .names = "t");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .names = "tu"), 2, "t0-3,u0,u1");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 2, .names = "ut"), 2, NULL); /* the same */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 2, .names = "u"), 2, "u0,u1");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 2, .owned = "u0,u1"), 3, NULL);
    /* other words about itself make none */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 3, .rack = "r", .rebalance_ms = 7000), 3, NULL);
    assert_int_equal(cmember_of(b, "g", "A")->rebalance_ms, 7000);
    assert_true(str_eqz(cmember_of(b, "g", "A")->rack, "r"));
    assert_true(cgroup_subscribed(cgroup_of(b, "g"), STR_LIT("u")));
    assert_false(cgroup_subscribed(cgroup_of(b, "g"), STR_LIT("t")));
}

static void members_vote_for_an_assignor(void **state)
{
    bench_topics(b, "t:3 u:3");
    BEAT(b, .member = "A", .names = "tu", .assignor = "range");
    BEAT(b, .member = "B", .names = "tu", .assignor = "range");
    assert_string_equal(parts_text(&cmember_of(b, "g", "A")->target), "t0,t1,u0,u1");
    assert_string_equal(cgroup_assignor(cgroup_of(b, "g"))->name, "range");
    BEAT(b, .member = "C", .names = "tu", .assignor = "uniform");
    assert_string_equal(cgroup_assignor(cgroup_of(b, "g"))->name, "range");
    BEAT(b, .member = "A", .epoch = -1);
    BEAT(b, .member = "D", .names = "tu"); /* one vote each: the first that is configured */
    assert_string_equal(cgroup_assignor(cgroup_of(b, "g"))->name, "uniform");
}

static void patterns_are_the_brokers_business(void **state)
{
    EXPECT_BEAT(BEAT(b, .version = 1, .member = "A", .regex = "[tv]"), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .version = 1, .member = "B", .names = "u", .regex = "v"), 2, "u0,u1");
    bench_topics(b, "v:2");
    EXPECT_BEAT(BEAT(b, .version = 1, .member = "A", .epoch = 1), 3, NULL); /* t keeps it busy */
    EXPECT_BEAT(BEAT(b, .version = 1, .member = "B", .epoch = 2), 3, "u0,u1,v0,v1");
    assert_true(cgroup_subscribed(cgroup_of(b, "g"), STR_LIT("v")));
    struct part_set both = PART_SET_EMPTY;
    part_set_union(&cmember_of(b, "g", "A")->target, &cmember_of(b, "g", "B")->target, &both);
    assert_int_equal(both.n, 8);
    part_set_free(&both);
    bench_restart(b); /* patterns are in the members' records */
    assert_true(cgroup_subscribed(cgroup_of(b, "g"), STR_LIT("u")));
    assert_int_equal(BEAT(b, .version = 1, .member = "A", .epoch = 3).epoch, 4);
    assert_true(cgroup_subscribed(cgroup_of(b, "g"), STR_LIT("v")));
    BEAT(b, .version = 1, .member = "A", .epoch = 4, .regex = "", .names = "t");
    BEAT(b, .version = 1, .member = "B", .epoch = 3, .regex = "(");
    assert_true(str_is_null(cmember_of(b, "g", "A")->regex));
    assert_true(str_eqz(cmember_of(b, "g", "B")->regex, "v"));
}

/* What is told of an assignment hangs on rights: with others it is told once more. */
static void changed_rights_tell_the_assignment_again(void **state)
{
    EXPECT_BEAT(BEAT(b, .member = "A", .rights = 1), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .rights = 1), 1, NULL);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .rights = 2), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .rights = 2), 1, NULL);
    bench_restart(b);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .rights = 2), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .rights = 2), 1, NULL);
}

/* ---- topics change ---- */

static void topics_that_grow_come_and_go(void **state)
{
    EXPECT_BEAT(BEAT(b, .member = "A", .names = "tw"), 1, "t0-3");
    bench_topics(b, "u:3"); /* none of its business */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1), 1, NULL);
    bench_topics(b, "t:6");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1), 2, "t0-5");
    bench_topics(b, "w:1");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 2), 3, "t0-5,w0");
    bench_topics(b, "t:0");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 3), 3, "w0");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 3, .owned = "w0"), 4, NULL);
    assert_string_equal(cstate_of(b, "g"), "Stable");
}

/* ---- static members ---- */

static void a_static_member_comes_back(void **state)
{
    EXPECT_BEAT(BEAT(b, .member = "A", .instance = "i"), 1, "t0-3");
    assert_int_equal(BEAT(b, .member = "X", .instance = "i").error, KERR_UNRELEASED_INSTANCE_ID);
    struct beat_answer r = BEAT(b, .member = "A", .instance = "i", .epoch = -2);
    assert_int_equal(r.error, KERR_NONE);
    assert_int_equal(r.epoch, -2);
    assert_string_equal(cstate_of(b, "g"), "Reconciling");
    BEAT(b, .member = "B");
    assert_string_equal(parts_text(&cmember_of(b, "g", "A")->assigned), "t0,t1,t2,t3");
    EXPECT_BEAT(BEAT(b, .member = "A2", .instance = "i"), 2, "t0,t1");
    assert_null(cmember_of(b, "g", "A"));
    assert_int_equal(BEAT(b, .member = "A", .instance = "i", .epoch = 1).error,
                     KERR_FENCED_INSTANCE_ID);
    assert_int_equal(BEAT(b, .member = "A", .instance = "i", .epoch = -1).error,
                     KERR_FENCED_INSTANCE_ID);
    assert_int_equal(BEAT(b, .member = "A", .instance = "k", .epoch = 1).error,
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(cgroup_of(b, "g")->epoch, 2); /* no epoch for the change of ids */
}

static void a_static_member_with_somebody_elses_id(void **state)
{
    BEAT(b, .member = "A");
    assert_int_equal(BEAT(b, .member = "A", .instance = "i").error, KERR_INVALID_REQUEST);
    BEAT(b, .member = "B", .instance = "i");
    BEAT(b, .member = "B", .instance = "i", .epoch = -2);
    assert_int_equal(BEAT(b, .member = "A", .instance = "i").error, KERR_INVALID_REQUEST);
    assert_int_equal(BEAT(b, .member = "B", .instance = "i").error, KERR_NONE); /* its own */
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 2);
}

static void a_static_member_that_stays_away(void **state)
{
    BEAT(b, .member = "A", .instance = "i");
    bench_advance(b, 40000);
    BEAT(b, .member = "B");
    BEAT(b, .member = "A", .instance = "i", .epoch = -2);
    bench_advance(b, 4999); /* the session that ran goes on */
    assert_non_null(cmember_of(b, "g", "A"));
    bench_advance(b, 1);
    assert_null(cmember_of(b, "g", "A"));
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 3, "t0-3");
}

/* ---- time ---- */

static void the_silent_are_fenced(void **state)
{
    BEAT(b, .member = "A");
    bench_advance(b, 44999);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1).error, KERR_NONE);
    bench_advance(b, 44999);
    assert_string_equal(cstate_of(b, "g"), "Stable");
    bench_advance(b, 1);
    assert_string_equal(cstate_of(b, "g"), "Empty");
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1).error, KERR_UNKNOWN_MEMBER_ID);
}

static void who_does_not_give_up_is_fenced(void **state)
{
    BEAT(b, .member = "A", .rebalance_ms = 10000);
    BEAT(b, .member = "B", .rebalance_ms = 10000);
    BEAT(b, .member = "A", .epoch = 1);
    bench_advance(b, 9999);
    BEAT(b, .member = "A", .epoch = 1, .owned = "t0-3"); /* alive, but does not obey */
    bench_advance(b, 1);
    assert_null(cmember_of(b, "g", "A"));
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 3, "t0-3");
}

static void who_gives_up_is_not(void **state)
{
    BEAT(b, .member = "A", .rebalance_ms = 10000);
    BEAT(b, .member = "B");
    BEAT(b, .member = "A", .epoch = 1);
    BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1");
    bench_advance(b, 20000);
    assert_non_null(cmember_of(b, "g", "A"));
}

/* ---- the log ---- */

static void a_restart_changes_nothing(void **state)
{
    bench_topics(b, "t:4 u:2");
    BEAT(b, .member = "A", .names = "tu", .rack = "r1", .instance = "i", .assignor = "range");
    BEAT(b, .member = "B", .names = "t");
    BEAT(b, .member = "A", .instance = "i", .epoch = 1);
    BEAT(b, .member = "C", .names = "u");
    struct cgroup *cg = cgroup_of(b, "g");
    int32_t epoch = cg->epoch, assignment = cg->assignment_epoch;
    char assigned[64], revoking[64], target[64];
    const struct cmember *a = cmember_of(b, "g", "A");
    snprintf(assigned, sizeof(assigned), "%s", parts_text(&a->assigned));
    snprintf(revoking, sizeof(revoking), "%s", parts_text(&a->revoking));
    snprintf(target, sizeof(target), "%s", parts_text(&a->target));
    assert_true(strlen(revoking) > 0);
    bench_restart(b);
    cg = cgroup_of(b, "g");
    a = cmember_of(b, "g", "A");
    assert_int_equal(cg->epoch, epoch);
    assert_int_equal(cg->assignment_epoch, assignment);
    assert_int_equal(cgroup_members_n(cg), 3);
    assert_string_equal(parts_text(&a->assigned), assigned);
    assert_string_equal(parts_text(&a->revoking), revoking);
    assert_string_equal(parts_text(&a->target), target);
    assert_int_equal(a->state, CMEMBER_UNREVOKED);
    assert_int_equal(a->epoch, 1);
    assert_int_equal(a->previous_epoch, 1);
    assert_true(str_eqz(a->rack, "r1") && str_eqz(a->instance, "i") &&
                str_eqz(a->assignor, "range"));
    assert_true(str_eqz(a->client_host, "/127.0.0.1") && str_eqz(a->client_id, "client"));
    assert_int_equal(a->rebalance_ms, 60000);
    /* a heartbeat finds the same topics: no epoch for the restart */
    bench_advance(b, 10000);
    BEAT(b, .member = "A", .instance = "i", .epoch = 1);
    assert_int_equal(cg->epoch, epoch);
    /* sessions and rebalances run anew */
    bench_advance(b, 34999);
    assert_int_equal(cgroup_members_n(cg), 3);
    bench_advance(b, 1);
    assert_int_equal(cgroup_members_n(cg), 1);
    assert_non_null(cmember_of(b, "g", "A"));
}

static void what_has_gone_does_not_come_back(void **state)
{
    BEAT(b, .member = "A");
    BEAT(b, .member = "B");
    BEAT(b, .member = "A", .epoch = -1);
    bench_restart(b);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 1);
    BEAT(b, .member = "B", .epoch = -1);
    bench_restart(b);
    assert_string_equal(cstate_of(b, "g"), "Empty");
    assert_int_equal(delete_group(b, "g"), KERR_NONE);
    bench_restart(b);
    assert_int_equal(group_shard_groups(b->shard), 0);
}

static void answers_wait_for_the_log(void **state)
{
    b->log.hold = true;
    struct call *first = beat_with(b, (struct beat_args){.member = "A"});
    struct call *second = beat_with(b, (struct beat_args){.member = "B"});
    struct call *third = beat_with(b, (struct beat_args){.member = "A", .epoch = 1});
    /* nothing to write, but what it would tell is not in the log yet */
    struct call *fourth = beat_with(b, (struct beat_args){.member = "B", .epoch = 2});
    assert_false(first->done || second->done || third->done || fourth->done);
    bench_release(b, KERR_NONE);
    EXPECT_BEAT(beat_end(first), 1, "t0-3");
    EXPECT_BEAT(beat_end(second), 2, "");
    EXPECT_BEAT(beat_end(third), 1, "t0,t1");
    EXPECT_BEAT(beat_end(fourth), 2, NULL);
}

static void a_step_that_cannot_be_written_is_undone(void **state)
{
    BEAT(b, .member = "A");
    int loads = b->loads;
    b->log.next_error = KERR_MESSAGE_TOO_LARGE;
    assert_int_equal(BEAT(b, .member = "B").error, KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(b->loads, loads + 1); /* the log knows how it was */
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1).error, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_finish_load(b, key_partition(STR_LIT("g"), BENCH_PARTITIONS));
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 1);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0-3"), 1, NULL);
}

/* It is in the log, and may stay, or go with this leader: until that is known nobody may hear of
 * it, so the log is read again, and its load waits for the high watermark. */
static void a_step_whose_replicas_are_late(void **state)
{
    b->log.hold = true;
    struct call *c = beat_with(b, (struct beat_args){.member = "A"});
    int loads = b->loads;
    bench_release(b, KERR_REQUEST_TIMED_OUT);
    assert_int_equal(beat_end(c).error, KERR_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(b->loads, loads + 1);
    assert_int_equal(BEAT(b, .member = "A").error, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    bench_finish_load(b, key_partition(STR_LIT("g"), BENCH_PARTITIONS));
    EXPECT_BEAT(BEAT(b, .member = "A"), 1, "t0-3");
}

static void resigned_in_the_midst(void **state)
{
    b->log.hold = true;
    struct call *c = beat_with(b, (struct beat_args){.member = "A"});
    group_shard_resigned(b->shard, key_partition(STR_LIT("g"), BENCH_PARTITIONS), 1);
    bench_release(b, KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(beat_end(c).error, KERR_NOT_COORDINATOR);
    assert_int_equal(BEAT(b, .member = "A").error, KERR_NOT_COORDINATOR);
}

/* ---- offsets ---- */

static void offsets_want_the_members_epoch(void **state)
{
    BEAT(b, .member = "A");
    assert_int_equal(
        commit_error(COMMIT(b, .version = 9, .member = "A", .generation = 1, .offset = 7)),
        KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 7);
    assert_int_equal(commit_error(COMMIT(b, .version = 8, .member = "A", .generation = 1)),
                     KERR_UNSUPPORTED_VERSION);
    assert_int_equal(commit_error(COMMIT(b, .version = 9, .member = "A", .exactly = true)),
                     KERR_STALE_MEMBER_EPOCH);
    assert_int_equal(commit_error(COMMIT(b, .version = 9, .member = "A", .generation = 2)),
                     KERR_STALE_MEMBER_EPOCH);
    assert_int_equal(commit_error(COMMIT(b, .version = 9, .member = "B", .generation = 1)),
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit_error(COMMIT(b, .version = 9)), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(
        commit_error(COMMIT(b, .version = 9, .group = "none", .member = "A", .generation = 1)),
        KERR_GROUP_ID_NOT_FOUND);
    assert_int_equal(
        commit_error(COMMIT(b, .version = 8, .group = "none", .member = "A", .generation = 1)),
        KERR_ILLEGAL_GENERATION);
    BEAT(b, .member = "A", .epoch = -1);
    assert_int_equal(commit_error(COMMIT(b, .version = 9, .offset = 8)), KERR_NONE);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 8);
}

static enum kerr fetch_as(const char *member, int32_t epoch)
{
    struct call *c = call_new(GROUP_FETCH, 9);
    struct offset_fetch_request_group g;
    msg_struct_init(&offset_fetch_request_group_struct, &g);
    g.group_id = STR_LIT("g");
    g.member_id = str_of(member);
    g.member_epoch = epoch;
    g.topics.n = -1;
    c->in.fetch.groups.v = &g;
    c->in.fetch.groups.n = 1;
    bench_submit(b, c);
    enum kerr e = c->out.fetch.groups.v[0].error_code;
    call_free(c);
    return e;
}

static void fetches_may_want_it_too(void **state)
{
    BEAT(b, .member = "A");
    assert_int_equal(fetch_as(NULL, -1), KERR_NONE);
    assert_int_equal(fetch_as("A", 1), KERR_NONE);
    assert_int_equal(fetch_as("A", 2), KERR_STALE_MEMBER_EPOCH);
    assert_int_equal(fetch_as("B", 1), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(fetch_as(NULL, 1), KERR_UNKNOWN_MEMBER_ID);
}

static void offsets_that_are_read_do_not_expire(void **state)
{
    group_shard_start(b->shard);
    b->config.retention_ms = 1000000;
    BEAT(b, .member = "A", .names = "t");
    call_free(COMMIT(b, .version = 9, .member = "A", .generation = 1, .offset = 1, .topic = "t"));
    call_free(COMMIT(b, .version = 9, .member = "A", .generation = 1, .offset = 2, .topic = "u"));
    for (int i = 0; i < 60; i++) {
        BEAT(b, .member = "A", .epoch = 1);
        bench_advance(b, 30000);
    }
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 1);
    assert_int_equal(fetch_one(b, "g", "u", 0, false, NULL), -1);
    BEAT(b, .member = "A", .epoch = -1);
    bench_advance(b, 1200000);
    assert_int_equal(group_shard_groups(b->shard), 0);
    bench_restart(b);
    assert_int_equal(group_shard_groups(b->shard), 0);
}

/* ---- for tools ---- */

static struct call *describe(const char *group, int version)
{
    struct call *c = call_new(GROUP_CONSUMER_DESCRIBE, version);
    static struct str id;
    id = str_of(group);
    c->in.consumers.group_ids.v = &id;
    c->in.consumers.group_ids.n = 1;
    return bench_submit(b, c);
}

static void described(void **state)
{
    BEAT(b, .member = "A", .names = "tu", .rack = "r", .instance = "i");
    BEAT(b, .member = "B", .names = "t");
    struct call *c = describe("g", 1);
    struct consumer_group_describe_response_group *g = &c->out.consumers.groups.v[0];
    assert_int_equal(g->error_code, KERR_NONE);
    assert_true(str_eqz(g->group_state, "Reconciling"));
    assert_true(str_eqz(g->assignor_name, "uniform"));
    assert_int_equal(g->group_epoch, 2);
    assert_int_equal(g->assignment_epoch, 2);
    assert_int_equal(g->members.n, 2);
    const struct consumer_group_describe_response_member *m = &g->members.v[0];
    assert_true(str_eqz(m->member_id, "A") && str_eqz(m->instance_id, "i"));
    assert_true(str_eqz(m->rack_id, "r") && str_eqz(m->client_id, "client"));
    assert_int_equal(m->member_epoch, 1);
    assert_int_equal(m->member_type, 1);
    assert_int_equal(m->subscribed_topic_names.n, 2);
    assert_int_equal(m->assignment.topic_partitions.n, 2);
    assert_true(str_eqz(m->assignment.topic_partitions.v[0].topic_name, "t"));
    assert_int_equal(m->assignment.topic_partitions.v[0].partitions.n, 4);
    assert_true(m->target_assignment.topic_partitions.n > 0);
    call_free(c);
    c = describe("none", 0);
    assert_int_equal(c->out.consumers.groups.v[0].error_code, KERR_GROUP_ID_NOT_FOUND);
    call_free(c);
    call_free(COMMIT(b, .group = "old", .offset = 1));
    c = describe("old", 0);
    assert_int_equal(c->out.consumers.groups.v[0].error_code, KERR_GROUP_ID_NOT_FOUND);
    call_free(c);
    assert_string_equal(state_of(b, "g"), "Dead"); /* to the old API */
}

static int listed(const char *type, const char *state)
{
    struct call *c = call_new(GROUP_LIST, 5);
    struct str t = str_of(type), s = str_of(state);
    if (type)
        c->in.list.types_filter = (typeof(c->in.list.types_filter)){&t, 1};
    if (state)
        c->in.list.states_filter = (typeof(c->in.list.states_filter)){&s, 1};
    bench_submit(b, c);
    int n = c->out.list.groups.n;
    for (int i = 0; i < n; i++)
        if (str_eqz(c->out.list.groups.v[i].group_id, "g")) {
            assert_true(str_eqz(c->out.list.groups.v[i].group_type, "consumer"));
            assert_true(str_eqz(c->out.list.groups.v[i].protocol_type, "consumer"));
        }
    call_free(c);
    return n;
}

static void listed_by_type_and_state(void **state)
{
    BEAT(b, .member = "A");
    call_free(COMMIT(b, .group = "old", .offset = 1));
    assert_int_equal(listed(NULL, NULL), 2);
    assert_int_equal(listed("consumer", NULL), 1);
    assert_int_equal(listed("Classic", NULL), 1);
    assert_int_equal(listed("share", NULL), 0);
    assert_int_equal(listed(NULL, "stable"), 1);
    assert_int_equal(listed("classic", "Stable"), 0);
}

static enum kerr delete_offset(const char *topic)
{
    struct call *c = call_new(GROUP_OFFSET_DELETE, 0);
    struct offset_delete_request_partition p = {.partition_index = 0};
    struct offset_delete_request_topic t = {.name = str_of(topic), .partitions = {&p, 1}};
    c->in.offset_delete.group_id = STR_LIT("g");
    c->in.offset_delete.topics.v = &t;
    c->in.offset_delete.topics.n = 1;
    bench_submit(b, c);
    enum kerr e = c->out.offset_delete.error_code
                      ? c->out.offset_delete.error_code
                      : c->out.offset_delete.topics.v[0].partitions.v[0].error_code;
    call_free(c);
    return e;
}

static void deleted(void **state)
{
    BEAT(b, .member = "A", .names = "t");
    call_free(COMMIT(b, .version = 9, .member = "A", .generation = 1, .topic = "t"));
    call_free(COMMIT(b, .version = 9, .member = "A", .generation = 1, .topic = "u"));
    assert_int_equal(delete_group(b, "g"), KERR_NON_EMPTY_GROUP);
    assert_int_equal(delete_offset("t"), KERR_GROUP_SUBSCRIBED_TO_TOPIC);
    assert_int_equal(delete_offset("u"), KERR_NONE);
    BEAT(b, .member = "A", .epoch = -1);
    assert_int_equal(delete_offset("t"), KERR_NONE);
    assert_int_equal(delete_group(b, "g"), KERR_GROUP_ID_NOT_FOUND); /* nothing of it was left */
    bench_restart(b);
    assert_int_equal(group_shard_groups(b->shard), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
UNIT_MAIN(TEST(the_first_member_gets_all), TEST(a_second_member_waits_for_what_the_first_gives_up),
          TEST(a_member_that_must_give_up_twice), TEST(who_leaves_makes_room),
          TEST(an_answer_that_got_lost), TEST(requests_that_make_no_sense),
          TEST(a_group_that_is_full), TEST(a_changed_subscription_makes_an_epoch),
          TEST(members_vote_for_an_assignor), TEST(patterns_are_the_brokers_business),
          TEST(changed_rights_tell_the_assignment_again), TEST(topics_that_grow_come_and_go),
          TEST(a_static_member_comes_back), TEST(a_static_member_with_somebody_elses_id),
          TEST(a_static_member_that_stays_away), TEST(the_silent_are_fenced),
          TEST(who_does_not_give_up_is_fenced), TEST(who_gives_up_is_not),
          TEST(a_restart_changes_nothing), TEST(what_has_gone_does_not_come_back),
          TEST(answers_wait_for_the_log), TEST(a_step_that_cannot_be_written_is_undone),
          TEST(a_step_whose_replicas_are_late), TEST(resigned_in_the_midst),
          TEST(offsets_want_the_members_epoch), TEST(fetches_may_want_it_too),
          TEST(offsets_that_are_read_do_not_expire), TEST(described),
          TEST(listed_by_type_and_state), TEST(deleted))
