/* test_group_sync.c - SyncGroup, Heartbeat, LeaveGroup, and the record that stands between a
 * generation's join and its stability. */
#include "group_bench.h"

static enum kerr sync_error(struct call *c)
{
    assert_true(c->done);
    enum kerr e = c->out.sync.error_code;
    call_free(c);
    return e;
}

/* Two members that have joined generation 1 and not synced. */
struct two {
    struct bench *b;
    struct call *leader_join, *join;
    struct str leader, follower;
};

static struct two two_joined(void)
{
    struct two t = {.b = bench_new()};
    t.leader_join = JOIN2(t.b);
    t.join = JOIN2(t.b);
    bench_advance(t.b, 6000);
    assert_true(t.join->done);
    t.leader = t.leader_join->out.join.member_id;
    t.follower = t.join->out.join.member_id;
    return t;
}

static void two_free(struct two *t)
{
    call_free(t->leader_join);
    call_free(t->join);
    bench_free(t->b);
}

static struct call *sync_leader(struct two *t)
{
    return sync_all(t->b, "g", t->leader, NULL, 1, &t->follower, 1, "for the follower");
}

/* 8 */
static void answers_come_when_the_record_is_stored(void **state)
{
    struct two t = two_joined();
    struct call *follower = sync_one(t.b, "g", t.follower, 1);
    assert_false(follower->done);
    t.b->log.hold = true;
    struct call *leader = sync_leader(&t);
    assert_false(leader->done || follower->done);
    assert_string_equal(state_of(t.b, "g"), "CompletingRebalance");
    bench_release(t.b, KERR_NONE);
    assert_string_equal(state_of(t.b, "g"), "Stable");
    assert_int_equal(follower->out.sync.assignment.len, 16);
    assert_memory_equal(follower->out.sync.assignment.p, "for the follower", 16);
    assert_true(str_eqz(follower->out.sync.protocol_type, "consumer"));
    assert_true(str_eqz(follower->out.sync.protocol_name, "range"));
    assert_int_equal(leader->out.sync.assignment.len, 0); /* nobody gave it anything */
    assert_int_equal(sync_error(leader), KERR_NONE);
    call_free(follower);
    /* later ones get the same */
    follower = sync_one(t.b, "g", t.follower, 1);
    assert_int_equal(follower->out.sync.assignment.len, 16);
    call_free(follower);
    two_free(&t);
}

static void what_was_synced_survives_a_restart(void **state)
{
    struct two t = two_joined();
    struct call *follower = sync_one(t.b, "g", t.follower, 1), *leader = sync_leader(&t);
    call_free(follower);
    call_free(leader);
    bench_restart(t.b);
    assert_string_equal(state_of(t.b, "g"), "Stable");
    assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_NONE);
    assert_int_equal(heartbeat(t.b, "g", t.follower, 1), KERR_NONE);
    follower = sync_one(t.b, "g", t.follower, 1);
    assert_memory_equal(follower->out.sync.assignment.p, "for the follower", 16);
    call_free(follower);
    /* 6: the generation goes on from there */
    struct call *a = JOIN(t.b, .member = arena_str(&t.join->arena, t.leader).p);
    struct call *c = JOIN(t.b, .member = arena_str(&t.join->arena, t.follower).p);
    assert_int_equal(a->out.join.generation_id, 2);
    assert_int_equal(a->out.join.members.n, 2);
    call_free(a);
    call_free(c);
    two_free(&t);
}

/* 8 */
static void a_coordinator_that_stops_before_the_record_forces_a_rejoin(void **state)
{
    struct two t = two_joined();
    bench_restart(t.b);
    assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(sync_error(sync_one(t.b, "g", t.follower, 1)), KERR_UNKNOWN_MEMBER_ID);
    two_free(&t);
}

static void a_failed_store_is_told_to_all_and_starts_over(void **state)
{
    static const struct {
        enum kerr log, client;
    } rows[] = {
        {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
        {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
        {KERR_REQUEST_TIMED_OUT, KERR_REBALANCE_IN_PROGRESS},
        {KERR_MESSAGE_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
        {KERR_RECORD_LIST_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
        {KERR_INVALID_FETCH_SIZE, KERR_UNKNOWN_SERVER_ERROR},
        {KERR_CORRUPT_MESSAGE, KERR_CORRUPT_MESSAGE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct two t = two_joined();
        struct call *follower = sync_one(t.b, "g", t.follower, 1);
        t.b->log.next_error = rows[i].log;
        struct call *leader = sync_leader(&t);
        assert_int_equal(sync_error(follower), rows[i].client);
        assert_int_equal(sync_error(leader), rows[i].client);
        assert_string_equal(state_of(t.b, "g"), "PreparingRebalance");
        two_free(&t);
    }
}

static void a_store_that_comes_too_late_changes_nothing(void **state)
{
    for (int i = 0; i < 2; i++) { /* well or badly */
        struct two t = two_joined();
        t.b->log.hold = true;
        struct call *leader = sync_leader(&t);
        struct call *third = JOIN(t.b, .version = 3);
        assert_int_equal(sync_error(leader), KERR_REBALANCE_IN_PROGRESS);
        bench_release(t.b, i ? KERR_NOT_ENOUGH_REPLICAS : KERR_NONE);
        assert_string_equal(state_of(t.b, "g"), "PreparingRebalance");
        assert_false(third->done);
        bench_advance(t.b, 60000);
        call_free(third);
        two_free(&t);
    }
}

static void the_leader_may_sync_twice_and_is_written_once(void **state)
{
    struct two t = two_joined();
    t.b->log.hold = true;
    int appends = t.b->log.appends;
    struct call *first = sync_leader(&t), *second = sync_leader(&t);
    assert_int_equal(sync_error(first), KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(t.b->log.appends, appends + 1);
    bench_release(t.b, KERR_NONE);
    assert_int_equal(sync_error(second), KERR_NONE);
    two_free(&t);
}

static void assignments_of_strangers_are_passed_over(void **state)
{
    struct two t = two_joined();
    struct str names[3] = {STR_LIT("stranger"), t.follower, STR_LIT("")};
    struct call *leader = sync_all(t.b, "g", t.leader, NULL, 1, names, 3, "x");
    assert_int_equal(sync_error(leader), KERR_NONE);
    struct call *follower = sync_one(t.b, "g", t.follower, 1);
    assert_int_equal(follower->out.sync.assignment.len, 1);
    call_free(follower);
    two_free(&t);
}

static void sync_is_checked_before_it_counts(void **state)
{
    struct two t = two_joined();
    assert_int_equal(sync_error(sync_one(t.b, "g", STR_LIT("x"), 1)), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(sync_error(sync_one(t.b, "nope", t.leader, 1)), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(sync_error(sync_one(t.b, "", t.leader, 1)), KERR_INVALID_GROUP_ID);
    assert_int_equal(sync_error(sync_one(t.b, "g", t.leader, 0)), KERR_ILLEGAL_GENERATION);
    assert_int_equal(sync_error(sync_one(t.b, "g", t.leader, 2)), KERR_ILLEGAL_GENERATION);
    struct call *c = call_new(GROUP_SYNC, 5);
    c->in.sync.group_id = STR_LIT("g");
    c->in.sync.member_id = t.leader;
    c->in.sync.generation_id = 1;
    c->in.sync.protocol_type = STR_LIT("connect");
    assert_int_equal(sync_error(bench_submit(t.b, c)), KERR_INCONSISTENT_GROUP_PROTOCOL);
    c = call_new(GROUP_SYNC, 5);
    c->in.sync.group_id = STR_LIT("g");
    c->in.sync.member_id = t.leader;
    c->in.sync.generation_id = 1;
    c->in.sync.protocol_name = STR_LIT("sticky");
    assert_int_equal(sync_error(bench_submit(t.b, c)), KERR_INCONSISTENT_GROUP_PROTOCOL);
    struct call *rejoin = JOIN(t.b, .version = 3);
    assert_int_equal(sync_error(sync_one(t.b, "g", t.leader, 1)), KERR_REBALANCE_IN_PROGRESS);
    bench_advance(t.b, 60000);
    call_free(rejoin);
    two_free(&t);
}

/* 11 */
static void a_member_that_never_syncs_is_removed(void **state)
{
    struct two t = two_joined();
    struct call *leader = sync_leader(&t);
    assert_int_equal(sync_error(leader), KERR_NONE);
    for (int i = 0; i < 10; i++) {
        assert_string_equal(state_of(t.b, "g"), "Stable");
        assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_NONE);
        assert_int_equal(heartbeat(t.b, "g", t.follower, 1), KERR_NONE); /* it lives, but */
        bench_advance(t.b, 6000);
    }
    assert_string_equal(state_of(t.b, "g"), "PreparingRebalance");
    assert_int_equal(heartbeat(t.b, "g", t.follower, 1), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_REBALANCE_IN_PROGRESS);
    two_free(&t);
}

static void a_leader_that_never_syncs_is_replaced(void **state)
{
    struct two t = two_joined();
    struct call *follower = sync_one(t.b, "g", t.follower, 1);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_NONE);
        assert_false(follower->done);
        bench_advance(t.b, 6000);
    }
    assert_int_equal(sync_error(follower), KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_UNKNOWN_MEMBER_ID);
    struct call *c = JOIN(t.b, .member = t.follower.p);
    assert_int_equal(c->out.join.members.n, 1);
    call_free(c);
    two_free(&t);
}

static void a_sync_whose_connection_closes(void **state)
{
    struct two t = two_joined();
    struct call *follower = sync_one(t.b, "g", t.follower, 1);
    group_call_abandon(&follower->c);
    bench_check(t.b);
    call_free(follower);
    struct call *leader = sync_leader(&t);
    assert_int_equal(sync_error(leader), KERR_NONE);
    follower = sync_one(t.b, "g", t.follower, 1);
    assert_int_equal(sync_error(follower), KERR_NONE);
    two_free(&t);
}

/* ---- Heartbeat ---- */

static void heartbeats_in_each_state(void **state)
{
    struct two t = two_joined();
    assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_NONE); /* CompletingRebalance */
    assert_int_equal(heartbeat(t.b, "g", t.leader, 0), KERR_ILLEGAL_GENERATION);
    assert_int_equal(heartbeat(t.b, "g", STR_LIT("x"), 1), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(heartbeat(t.b, "nope", t.leader, 1), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(heartbeat(t.b, "", t.leader, 1), KERR_INVALID_GROUP_ID);
    assert_int_equal(heartbeat_as(t.b, "g", t.leader, "i", 1), KERR_UNKNOWN_MEMBER_ID);
    struct call *leader = sync_leader(&t);
    assert_int_equal(sync_error(leader), KERR_NONE);
    assert_int_equal(heartbeat(t.b, "g", t.leader, 1), KERR_NONE); /* Stable */
    struct call *c = JOIN(t.b, .member = t.leader.p);
    assert_int_equal(heartbeat(t.b, "g", t.follower, 1), KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(leave(t.b, "g", t.leader), KERR_NONE);
    call_free(c);
    assert_int_equal(leave(t.b, "g", t.follower), KERR_NONE);
    assert_string_equal(state_of(t.b, "g"), "Empty");
    assert_int_equal(heartbeat(t.b, "g", t.follower, 1), KERR_UNKNOWN_MEMBER_ID);
    two_free(&t);
}

static void a_heartbeat_keeps_a_member_in_the_join_phase_alive(void **state)
{
    struct two t = two_joined();
    assert_int_equal(sync_error(sync_leader(&t)), KERR_NONE);
    assert_int_equal(sync_error(sync_one(t.b, "g", t.follower, 1)), KERR_NONE);
    struct call *c = JOIN(t.b, .member = t.leader.p);
    for (int i = 0; i < 4; i++) {
        bench_advance(t.b, 9000);
        assert_int_equal(heartbeat(t.b, "g", t.follower, 1), KERR_REBALANCE_IN_PROGRESS);
    }
    assert_false(c->done);
    bench_advance(t.b, 10000);
    assert_true(c->done); /* silent for a session: gone */
    assert_int_equal(c->out.join.members.n, 1);
    call_free(c);
    two_free(&t);
}

/* ---- LeaveGroup ---- */

/* 14 */
static void leaving_in_batches(void **state)
{
    struct two t = two_joined();
    struct call *fixed = JOIN(t.b, .instance = "fixed");
    bench_advance(t.b, 10000); /* the others are silent */
    struct call *pending = JOIN(t.b);
    assert_true(fixed->done);
    struct call *c = call_new(GROUP_LEAVE, 5);
    struct leave_group_request_member who[] = {
        {fixed->out.join.member_id, STR_LIT("other"), STR_NULL},
        {STR_LIT(""), STR_LIT("fixed"), STR_LIT("shrinking")},
        {STR_LIT(""), STR_LIT("fixed"), STR_NULL}, /* gone already */
        {STR_LIT("nobody"), STR_NULL, STR_NULL},
        {pending->out.join.member_id, STR_NULL, STR_NULL},
        {STR_LIT(""), STR_NULL, STR_NULL},
    };
    static const enum kerr want[] = {KERR_UNKNOWN_MEMBER_ID, KERR_NONE, KERR_UNKNOWN_MEMBER_ID,
                                     KERR_UNKNOWN_MEMBER_ID, KERR_NONE, KERR_UNKNOWN_MEMBER_ID};
    c->in.leave.group_id = STR_LIT("g");
    c->in.leave.members.v = who;
    c->in.leave.members.n = 6;
    bench_submit(t.b, c);
    assert_int_equal(c->out.leave.error_code, KERR_NONE);
    assert_int_equal(c->out.leave.members.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_true(str_eq(c->out.leave.members.v[i].member_id, who[i].member_id));
        assert_true(str_eq(c->out.leave.members.v[i].group_instance_id, who[i].group_instance_id));
        assert_int_equal(c->out.leave.members.v[i].error_code, want[i]);
    }
    call_free(c);
    call_free(fixed);
    call_free(pending);
    two_free(&t);
}

static void a_pending_id_may_leave(void **state)
{
    struct two t = two_joined();
    struct call *pending = JOIN(t.b);
    char *id = str_dup(pending->out.join.member_id);
    struct call *a = JOIN(t.b, .member = t.leader.p, .metadata = {(const uint8_t *)"2", 1});
    struct call *c = JOIN(t.b, .member = t.follower.p);
    assert_false(a->done || c->done);
    assert_int_equal(leave(t.b, "g", str_of(id)), KERR_NONE);
    assert_true(a->done && c->done);
    assert_int_equal(leave(t.b, "g", str_of(id)), KERR_UNKNOWN_MEMBER_ID);
    free(id);
    call_free(a);
    call_free(c);
    call_free(pending);
    two_free(&t);
}

static void old_leaves_have_one_error(void **state)
{
    for (int version = 0; version < 3; version++) {
        struct bench *b = bench_new();
        struct call *c = call_new(GROUP_LEAVE, version);
        c->in.leave.group_id = STR_LIT("nope");
        c->in.leave.member_id = STR_LIT("m");
        bench_submit(b, c);
        assert_int_equal(c->out.leave.error_code, KERR_UNKNOWN_MEMBER_ID);
        assert_int_equal(c->out.leave.members.n, 0);
        call_free(c);
        bench_free(b);
    }
    struct bench *b = bench_new();
    struct call *c = call_new(GROUP_LEAVE, 3); /* a missing group: the members' errors */
    struct leave_group_request_member who = {STR_LIT("m"), STR_NULL, STR_NULL};
    c->in.leave.group_id = STR_LIT("nope");
    c->in.leave.members.v = &who;
    c->in.leave.members.n = 1;
    bench_submit(b, c);
    assert_int_equal(c->out.leave.error_code, KERR_NONE);
    assert_int_equal(c->out.leave.members.v[0].error_code, KERR_UNKNOWN_MEMBER_ID);
    call_free(c);
    bench_free(b);
}

static void a_leaving_leader_hands_over(void **state)
{
    struct two t = two_joined();
    struct call *follower = sync_one(t.b, "g", t.follower, 1);
    assert_int_equal(leave(t.b, "g", t.leader), KERR_NONE);
    assert_int_equal(sync_error(follower), KERR_REBALANCE_IN_PROGRESS);
    struct call *c = JOIN(t.b, .member = t.follower.p);
    assert_true(str_eq(c->out.join.leader, t.follower));
    assert_int_equal(c->out.join.members.n, 1);
    call_free(c);
    two_free(&t);
}

static void a_member_leaves_while_it_waits(void **state)
{
    struct two t = two_joined();
    struct call *sync = sync_one(t.b, "g", t.follower, 1);
    assert_int_equal(leave(t.b, "g", t.follower), KERR_NONE);
    assert_int_equal(sync_error(sync), KERR_UNKNOWN_MEMBER_ID);
    struct call *join = JOIN(t.b, .version = 3);
    assert_false(join->done);
    struct call *again = JOIN(t.b, .member = t.leader.p);
    assert_true(join->done && again->done);
    call_free(join);
    call_free(again);
    two_free(&t);
}

UNIT_MAIN(unit_test(answers_come_when_the_record_is_stored),
          unit_test(what_was_synced_survives_a_restart),
          unit_test(a_coordinator_that_stops_before_the_record_forces_a_rejoin),
          unit_test(a_failed_store_is_told_to_all_and_starts_over),
          unit_test(a_store_that_comes_too_late_changes_nothing),
          unit_test(the_leader_may_sync_twice_and_is_written_once),
          unit_test(assignments_of_strangers_are_passed_over),
          unit_test(sync_is_checked_before_it_counts),
          unit_test(a_member_that_never_syncs_is_removed),
          unit_test(a_leader_that_never_syncs_is_replaced),
          unit_test(a_sync_whose_connection_closes), unit_test(heartbeats_in_each_state),
          unit_test(a_heartbeat_keeps_a_member_in_the_join_phase_alive),
          unit_test(leaving_in_batches), unit_test(a_pending_id_may_leave),
          unit_test(old_leaves_have_one_error), unit_test(a_leaving_leader_hands_over),
          unit_test(a_member_leaves_while_it_waits))
