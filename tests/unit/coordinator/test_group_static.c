/* test_group_static.c - static members (KIP-345): replaced without a rebalance, fenced, and gone
 * only by their session or by hand. */
#include "group_bench.h"

static enum kerr error_of(const struct call *c)
{
    assert_true(c->done);
    return c->out.join.error_code;
}

/* Two static members, a and b, in a stable generation 1; a leads. */
struct pair {
    struct bench *b;
    char *a, *c; /* member ids */
};

static struct pair pair_stable(void)
{
    struct pair p = {.b = bench_new()};
    struct call *a = JOIN(p.b, .instance = "a"), *c = JOIN(p.b, .instance = "b");
    bench_advance(p.b, 6000);
    p.a = join_id(a);
    p.c = join_id(c);
    struct str names[] = {str_of(p.a), str_of(p.c)};
    struct call *sc = sync_all(p.b, "g", str_of(p.c), "b", 1, NULL, 0, "");
    struct call *sa = sync_all(p.b, "g", str_of(p.a), "a", 1, names, 2, "share");
    assert_int_equal(sc->out.sync.assignment.len, 5);
    call_free(sa);
    call_free(sc);
    call_free(a);
    call_free(c);
    assert_string_equal(state_of(p.b, "g"), "Stable");
    return p;
}

static void pair_free(struct pair *p)
{
    free(p->a);
    free(p->c);
    bench_free(p->b);
}

/* 13 */
static void a_restart_within_the_session_moves_nothing(void **state)
{
    struct pair p = pair_stable();
    struct call *c = JOIN(p.b, .instance = "b", .client = "again");
    assert_int_equal(error_of(c), KERR_NONE);
    assert_int_equal(c->out.join.generation_id, 1);
    assert_false(str_eqz(c->out.join.member_id, p.c));
    assert_true(str_eqz(c->out.join.leader, p.a));
    assert_int_equal(c->out.join.members.n, 0);
    assert_false(c->out.join.skip_assignment);
    struct str id = c->out.join.member_id;
    struct call *s = sync_all(p.b, "g", id, "b", 1, NULL, 0, "");
    assert_int_equal(s->out.sync.assignment.len, 5);
    assert_int_equal(heartbeat_as(p.b, "g", str_of(p.a), "a", 1), KERR_NONE);
    assert_int_equal(heartbeat_as(p.b, "g", id, "b", 1), KERR_NONE);
    /* the old instance is fenced everywhere, whatever its generation */
    assert_int_equal(heartbeat_as(p.b, "g", str_of(p.c), "b", 1), KERR_FENCED_INSTANCE_ID);
    assert_int_equal(heartbeat_as(p.b, "g", str_of(p.c), "b", 0), KERR_FENCED_INSTANCE_ID);
    struct call *old = sync_all(p.b, "g", str_of(p.c), "b", 1, NULL, 0, "");
    assert_int_equal(old->out.sync.error_code, KERR_FENCED_INSTANCE_ID);
    call_free(old);
    old = JOIN(p.b, .member = p.c, .instance = "b");
    assert_int_equal(error_of(old), KERR_FENCED_INSTANCE_ID);
    call_free(old);
    assert_int_equal(
        commit_error(COMMIT(p.b, .member = p.c, .instance = "b", .generation = 1, .offset = 1)),
        KERR_FENCED_INSTANCE_ID);
    assert_int_equal(heartbeat(p.b, "g", str_of(p.c), 1), KERR_UNKNOWN_MEMBER_ID);
    call_free(s);
    call_free(c);
    pair_free(&p);
}

static void the_leader_comes_back(void **state)
{
    for (int version = 8; version <= 9; version++) {
        struct pair p = pair_stable();
        struct call *c = JOIN(p.b, .version = version, .instance = "a");
        assert_int_equal(error_of(c), KERR_NONE);
        bool told = version >= 9;
        assert_true(str_eq(c->out.join.leader, told ? c->out.join.member_id : str_of(p.a)));
        assert_int_equal(c->out.join.skip_assignment, told);
        assert_int_equal(c->out.join.members.n, told ? 2 : 0);
        if (told)
            assert_true(str_eqz(c->out.join.members.v[1].group_instance_id, "b"));
        assert_string_equal(state_of(p.b, "g"), "Stable");
        /* it leads all the same: its next join starts a rebalance */
        struct call *again = JOIN(p.b, .member = c->out.join.member_id.p, .instance = "a");
        assert_false(again->done);
        call_free(c);
        group_shard_shut_down(p.b->shard);
        call_free(again);
        pair_free(&p);
    }
}

static void the_new_id_is_in_the_log_before_it_is_told(void **state)
{
    struct pair p = pair_stable();
    p.b->log.hold = true;
    struct call *c = JOIN(p.b, .instance = "b");
    assert_false(c->done);
    bench_release(p.b, KERR_NONE);
    assert_int_equal(error_of(c), KERR_NONE);
    bench_restart(p.b);
    assert_int_equal(heartbeat_as(p.b, "g", c->out.join.member_id, "b", 1), KERR_NONE);
    assert_int_equal(heartbeat_as(p.b, "g", str_of(p.c), "b", 1), KERR_FENCED_INSTANCE_ID);
    call_free(c);
    pair_free(&p);
}

static void a_replacement_that_cannot_be_stored_is_undone(void **state)
{
    struct pair p = pair_stable();
    p.b->log.next_error = KERR_NOT_ENOUGH_REPLICAS;
    struct call *c = JOIN(p.b, .instance = "b", .session_ms = 20000);
    assert_int_equal(error_of(c), KERR_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(c->out.join.member_id.len, 0);
    assert_int_equal(c->out.join.generation_id, 1);
    assert_true(str_eqz(c->out.join.leader, p.a));
    assert_true(str_eqz(c->out.join.protocol_name, "range"));
    assert_int_equal(heartbeat_as(p.b, "g", str_of(p.c), "b", 1), KERR_NONE);
    assert_string_equal(state_of(p.b, "g"), "Stable");
    call_free(c);
    pair_free(&p);
}

static void a_rebalance_overtakes_the_store(void **state)
{
    for (int fails = 0; fails < 2; fails++) {
        struct pair p = pair_stable();
        p.b->log.hold = true;
        struct call *c = JOIN(p.b, .instance = "b");
        struct call *a = JOIN(p.b, .member = p.a, .instance = "a"); /* the leader rejoins */
        assert_true(c->done && a->done);                            /* both are here */
        assert_int_equal(c->out.join.generation_id, 2);
        bench_release(p.b, fails ? KERR_REQUEST_TIMED_OUT : KERR_NONE);
        assert_string_equal(state_of(p.b, "g"), "CompletingRebalance");
        assert_int_equal(heartbeat_as(p.b, "g", c->out.join.member_id, "b", 2), KERR_NONE);
        call_free(a);
        call_free(c);
        pair_free(&p);
    }
}

static void a_store_ends_while_the_group_prepares(void **state)
{
    for (int fails = 0; fails < 2; fails++) {
        struct pair p = pair_stable();
        p.b->log.hold = true;
        struct call *c = JOIN(p.b, .instance = "b");
        struct call *third = JOIN(p.b, .version = 3);
        assert_string_equal(state_of(p.b, "g"), "PreparingRebalance");
        bench_release(p.b, fails ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_NONE);
        if (fails)
            assert_int_equal(error_of(c), KERR_NOT_COORDINATOR);
        else
            assert_false(c->done);
        group_shard_shut_down(p.b->shard);
        call_free(c);
        call_free(third);
        pair_free(&p);
    }
}

static void two_instances_at_once_the_second_wins(void **state)
{
    struct bench *b = bench_new();
    struct call *first = JOIN(b, .instance = "i");
    struct call *second = JOIN(b, .instance = "i");
    assert_int_equal(error_of(first), KERR_FENCED_INSTANCE_ID);
    assert_false(second->done);
    bench_advance(b, 3000);
    assert_int_equal(error_of(second), KERR_NONE);
    assert_int_equal(second->out.join.members.n, 1);
    call_free(first);
    call_free(second);
    bench_free(b);
}

/* Trap: in the sync phase an assignment may name the old id already. */
static void a_replacement_in_the_sync_phase_starts_a_round(void **state)
{
    struct bench *b = bench_new();
    struct call *a = JOIN(b, .instance = "a"), *c = JOIN(b, .instance = "b");
    bench_advance(b, 6000);
    struct call *sync = sync_all(b, "g", c->out.join.member_id, "b", 1, NULL, 0, "");
    struct call *again = JOIN(b, .instance = "b");
    assert_int_equal(sync->out.sync.error_code, KERR_FENCED_INSTANCE_ID);
    assert_false(again->done);
    struct call *leader = JOIN(b, .member = a->out.join.member_id.p, .instance = "a");
    assert_int_equal(error_of(leader), KERR_NONE);
    assert_int_equal(again->out.join.generation_id, 2);
    call_free(a);
    call_free(c);
    call_free(sync);
    call_free(again);
    call_free(leader);
    bench_free(b);
}

static void another_protocol_starts_a_round(void **state)
{
    struct pair p = pair_stable();
    struct call *a = JOIN(p.b, .instance = "a", .protocols = {"roundrobin", "range"});
    assert_int_equal(error_of(a), KERR_NONE); /* b offers range alone: nothing changes */
    call_free(a);
    struct call *c = JOIN(p.b, .instance = "b", .protocols = {"roundrobin", "range"});
    assert_false(c->done);
    assert_string_equal(state_of(p.b, "g"), "PreparingRebalance");
    group_shard_shut_down(p.b->shard);
    call_free(c);
    pair_free(&p);
}

/* Trap: the new instance's timeouts count, also after a restart. */
static void new_timeouts_and_client_are_in_force(void **state)
{
    for (int restart = 0; restart < 2; restart++) {
        struct bench *b = bench_new();
        struct call *c = JOIN(b, .version = 5, .instance = "i", .session_ms = 60000);
        bench_advance(b, 3000);
        struct call *s = sync_all(b, "g", c->out.join.member_id, "i", 1, NULL, 0, "");
        call_free(s);
        call_free(c);
        c = JOIN(b, .version = 5, .instance = "i", .session_ms = 6000, .client = "other");
        assert_int_equal(error_of(c), KERR_NONE);
        if (restart)
            bench_restart(b);
        struct call *d = call_new(GROUP_DESCRIBE, 5);
        struct str g = STR_LIT("g");
        d->in.describe.groups.v = &g;
        d->in.describe.groups.n = 1;
        bench_submit(b, d);
        assert_int_equal(d->out.describe.groups.v[0].members.n, 1);
        assert_true(str_eqz(d->out.describe.groups.v[0].members.v[0].client_id, "other"));
        assert_true(str_eqz(d->out.describe.groups.v[0].members.v[0].group_instance_id, "i"));
        call_free(d);
        bench_advance(b, 5999);
        assert_string_equal(state_of(b, "g"), "Stable");
        bench_advance(b, 1);
        assert_string_equal(state_of(b, "g"), "Empty");
        call_free(c);
        bench_free(b);
    }
}

static void absent_static_members_stay_for_their_session(void **state)
{
    struct bench *b = bench_new();
    struct call *a = JOIN(b, .instance = "a", .session_ms = 600000, .rebalance_ms = 20000);
    struct call *c = JOIN(b, .version = 3, .session_ms = 600000, .rebalance_ms = 20000);
    bench_advance(b, 6000);
    char *id = join_id(c);
    call_free(c);
    struct call *rejoin = JOIN(b, .member = id, .version = 3, .session_ms = 600000,
                               .rebalance_ms = 20000, .metadata = {(const uint8_t *)"n", 1});
    assert_false(rejoin->done);
    bench_advance(b, 20000); /* a does not come: it is still a member, somebody else leads */
    assert_int_equal(error_of(rejoin), KERR_NONE);
    assert_int_equal(rejoin->out.join.members.n, 2);
    assert_true(str_eqz(rejoin->out.join.leader, id));
    call_free(rejoin);
    call_free(a);
    free(id);
    bench_free(b);
}

static void only_absent_static_members_the_phase_goes_on(void **state)
{
    struct pair p = pair_stable();
    struct call *third = JOIN(p.b, .version = 3);
    group_call_abandon(&third->c); /* the rebalance is on, nobody is here */
    call_free(third);
    struct group *g = group_shard_find(p.b->shard, STR_LIT("g"));
    for (int i = 0; i < 12; i++) {
        assert_int_equal(heartbeat_as(p.b, "g", str_of(p.a), "a", 1), KERR_REBALANCE_IN_PROGRESS);
        assert_int_equal(heartbeat_as(p.b, "g", str_of(p.c), "b", 1), KERR_REBALANCE_IN_PROGRESS);
        bench_advance(p.b, 9000);
    }
    assert_int_equal(group_generation(g), 1); /* 60 s came and went */
    struct call *a = JOIN(p.b, .member = p.a, .instance = "a");
    struct call *c = JOIN(p.b, .member = p.c, .instance = "b");
    assert_int_equal(a->out.join.generation_id, 2);
    assert_true(c->done);
    call_free(a);
    call_free(c);
    pair_free(&p);
}

/* Members that allow no time for a rebalance do not make the coordinator spin. */
static void absent_static_members_without_a_rebalance_timeout(void **state)
{
    struct bench *b = bench_new();
    struct call *join = JOIN(b, .instance = "i", .session_ms = 60000, .rebalance_ms = -5);
    bench_advance(b, 3000);
    char *id = join_id(join);
    struct str one = str_of(id);
    call_free(sync_all(b, "g", one, "i", 1, &one, 1, "A"));
    struct call *other = JOIN2(b, .rebalance_ms = -5);
    group_call_abandon(&other->c); /* it goes, and i does not come */
    int turns = 0;
    for (int64_t end = b->clock.wall_ms + 1000; b->clock.wall_ms < end; turns++)
        bench_advance(b, 50);
    assert_int_equal(turns, 20); /* it came to this line at all */
    bench_advance(b, 60000);
    assert_string_equal(state_of(b, "g"), "Empty");
    call_free(join);
    call_free(other);
    free(id);
    bench_free(b);
}

static void a_static_member_that_goes_quietly_is_removed_by_hand(void **state)
{
    struct pair p = pair_stable();
    struct call *c = call_new(GROUP_LEAVE, 3);
    struct leave_group_request_member who[] = {{STR_LIT(""), STR_LIT("a"), STR_NULL},
                                               {str_of(p.c), STR_LIT("b"), STR_NULL}};
    c->in.leave.group_id = STR_LIT("g");
    c->in.leave.members.v = who;
    c->in.leave.members.n = 2;
    bench_submit(p.b, c);
    assert_int_equal(c->out.leave.members.v[0].error_code, KERR_NONE);
    assert_int_equal(c->out.leave.members.v[1].error_code, KERR_NONE);
    assert_string_equal(state_of(p.b, "g"), "Empty");
    call_free(c);
    pair_free(&p);
}

UNIT_MAIN(unit_test(a_restart_within_the_session_moves_nothing), unit_test(the_leader_comes_back),
          unit_test(the_new_id_is_in_the_log_before_it_is_told),
          unit_test(a_replacement_that_cannot_be_stored_is_undone),
          unit_test(a_rebalance_overtakes_the_store),
          unit_test(a_store_ends_while_the_group_prepares),
          unit_test(two_instances_at_once_the_second_wins),
          unit_test(a_replacement_in_the_sync_phase_starts_a_round),
          unit_test(another_protocol_starts_a_round),
          unit_test(new_timeouts_and_client_are_in_force),
          unit_test(absent_static_members_stay_for_their_session),
          unit_test(only_absent_static_members_the_phase_goes_on),
          unit_test(absent_static_members_without_a_rebalance_timeout),
          unit_test(a_static_member_that_goes_quietly_is_removed_by_hand))
