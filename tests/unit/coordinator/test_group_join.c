/* test_group_join.c - the join phase: who comes in, how long it lasts, who leads. The numbers are
 * those of the specification's invariants. */
#include "group_bench.h"

static enum kerr error_of(const struct call *c)
{
    assert_true(c->done);
    return c->out.join.error_code;
}

static enum kerr join_error(struct call *c)
{
    enum kerr e = error_of(c);
    call_free(c);
    return e;
}

/* 3 */
static void a_dynamic_member_gets_its_id_first(void **state)
{
    struct bench *b = bench_new();
    struct call *c = JOIN(b, .version = 4);
    assert_int_equal(error_of(c), KERR_MEMBER_ID_REQUIRED);
    assert_int_equal(c->out.join.generation_id, -1);
    assert_int_equal(c->out.join.member_id.len, 6 + 1 + 36); /* client-<uuid> */
    assert_memory_equal(c->out.join.member_id.p, "client-", 7);
    assert_int_equal(c->out.join.member_id.p[7 + 14], '4');
    assert_string_equal(state_of(b, "g"), "Empty");
    call_free(c);
    bench_free(b);
}

/* 3 */
static void old_versions_and_static_members_join_at_once(void **state)
{
    for (int version = 0; version <= 9; version++) {
        struct bench *b = bench_new();
        struct call *c = JOIN(b, .version = version, .version_0 = !version,
                              .instance = version >= 5 ? "i" : NULL);
        if (version == 4) { /* dynamic, with ids from here on */
            assert_int_equal(join_error(c), KERR_MEMBER_ID_REQUIRED);
            bench_free(b);
            continue;
        }
        assert_false(c->done);
        assert_string_equal(state_of(b, "g"), "PreparingRebalance");
        bench_advance(b, 3000);
        assert_int_equal(error_of(c), KERR_NONE);
        assert_int_equal(c->out.join.generation_id, 1);
        assert_int_equal(c->out.join.members.n, 1);
        assert_true(str_eq(c->out.join.leader, c->out.join.member_id));
        assert_memory_equal(c->out.join.member_id.p, version >= 5 ? "i-" : "client-", 2);
        call_free(c);
        bench_free(b);
    }
}

/* 4 */
static void an_id_that_is_not_used_is_forgotten(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 1, ids);
    struct call *pending = JOIN(b, .session_ms = 6000);
    assert_int_equal(error_of(pending), KERR_MEMBER_ID_REQUIRED);
    struct call *rejoin = JOIN(b, .member = ids[0], .session_ms = 30000);
    assert_false(rejoin->done); /* the id that is out blocks it */
    bench_advance(b, 5999);
    assert_false(rejoin->done);
    bench_advance(b, 1);
    assert_true(rejoin->done);
    assert_int_equal(rejoin->out.join.generation_id, 2);
    char *id = join_id(pending);
    assert_int_equal(join_error(JOIN(b, .member = id)), KERR_UNKNOWN_MEMBER_ID);
    free(id);
    call_free(pending);
    call_free(rejoin);
    free_ids(ids, 1);
    bench_free(b);
}

/* 5 */
static void the_first_join_phase_lasts_the_initial_delay(void **state)
{
    struct bench *b = bench_new();
    struct call *c = JOIN2(b);
    bench_advance(b, 2999);
    assert_false(c->done);
    bench_advance(b, 1);
    assert_true(c->done);
    call_free(c);
    bench_free(b);
}

/* 5 */
static void the_delay_goes_on_while_members_come(void **state)
{
    struct bench *b = bench_new();
    struct call *c[7];
    for (int i = 0; i < 7; i++) { /* one every 2 s, rebalance timeout 10 s */
        c[i] = JOIN2(b, .rebalance_ms = 10000);
        bench_advance(b, i < 5 ? 2000 : 0);
        if (i < 4)
            assert_false(c[0]->done);
    }
    /* 3 + 3 + 3 + 1 s are over: the first five are in generation 1 */
    for (int i = 0; i < 5; i++)
        assert_int_equal(c[i]->out.join.generation_id, 1);
    assert_false(c[5]->done || c[6]->done);
    bench_advance(b, 10000);
    for (int i = 0; i < 7; i++)
        call_free(c[i]);
    bench_free(b);
}

static void without_company_the_delay_is_not_repeated(void **state)
{
    struct bench *b = bench_new();
    struct call *first = JOIN2(b, .rebalance_ms = 60000);
    bench_advance(b, 1000);
    struct call *second = JOIN2(b, .rebalance_ms = 60000);
    bench_advance(b, 4999); /* 3 s, and 3 s more because of the second */
    assert_false(first->done);
    bench_advance(b, 1);
    assert_true(first->done && second->done);
    call_free(first);
    call_free(second);
    bench_free(b);
}

/* 5 */
static void no_delay_means_none(void **state)
{
    struct bench *b = bench_new();
    b->config.initial_delay_ms = 0;
    struct call *c = JOIN2(b);
    bench_advance(b, 0);
    assert_true(c->done);
    call_free(c);
    bench_free(b);
}

/* 6, 7 */
static void one_leader_a_generation_and_only_it_gets_the_members(void **state)
{
    struct bench *b = bench_new();
    char *ids[3];
    int32_t generation = stable_group(b, "g", 3, ids);
    assert_int_equal(generation, 1);
    for (int round = 2; round < 5; round++) {
        struct call *c[3];
        for (int i = 0; i < 3; i++)
            c[i] = JOIN(b, .member = ids[i], .metadata = {(const uint8_t *)&round, sizeof(round)});
        int leaders = 0;
        for (int i = 0; i < 3; i++) {
            struct join_group_response *out = &c[i]->out.join;
            assert_int_equal(error_of(c[i]), KERR_NONE);
            assert_int_equal(out->generation_id, round);
            assert_true(str_eq(out->leader, c[0]->out.join.leader));
            bool leads = str_eq(out->leader, out->member_id);
            leaders += leads;
            assert_int_equal(out->members.n, leads ? 3 : 0);
            assert_true(str_eqz(out->protocol_type, "consumer"));
            assert_true(str_eqz(out->protocol_name, "range"));
        }
        assert_int_equal(leaders, 1);
        assert_string_equal(state_of(b, "g"), "CompletingRebalance");
        for (int i = 0; i < 3; i++) {
            assert_int_equal(heartbeat(b, "g", str_of(ids[i]), round), KERR_NONE);
            assert_int_equal(heartbeat(b, "g", str_of(ids[i]), round - 1), KERR_ILLEGAL_GENERATION);
            call_free(c[i]);
        }
    }
    free_ids(ids, 3);
    bench_free(b);
}

static void the_leader_gets_everyones_metadata(void **state)
{
    struct bench *b = bench_new();
    struct call *first = JOIN2(b, .metadata = {(const uint8_t *)"one", 3});
    struct call *second =
        JOIN2(b, .instance = NULL, .metadata = {(const uint8_t *)"second", 6}, .client = "other");
    bench_advance(b, 6000);
    struct join_group_response *out = &first->out.join;
    assert_int_equal(out->members.n, 2);
    assert_int_equal(out->members.v[0].metadata.len, 3);
    assert_memory_equal(out->members.v[0].metadata.p, "one", 3);
    assert_int_equal(out->members.v[1].metadata.len, 6);
    assert_memory_equal(out->members.v[1].metadata.p, "second", 6);
    assert_true(str_eq(out->members.v[1].member_id, second->out.join.member_id));
    assert_memory_equal(second->out.join.member_id.p, "other-", 6);
    assert_true(str_is_null(out->members.v[0].group_instance_id));
    call_free(first);
    call_free(second);
    bench_free(b);
}

/* 9 */
static void a_joiner_without_a_common_protocol_is_refused(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    assert_int_equal(join_error(JOIN(b, .protocols = {"sticky"})),
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join_error(JOIN(b, .type = "connect")), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join_error(JOIN(b, .member = ids[0], .protocols = {"sticky"})),
                     KERR_NONE + KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_string_equal(state_of(b, "g"), "Stable");
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_NONE);
    free_ids(ids, 1);
    bench_free(b);
}

static void a_first_joiner_must_offer_something(void **state)
{
    struct bench *b = bench_new();
    struct call *c = call_new(GROUP_JOIN, 9);
    c->in.join.group_id = STR_LIT("g");
    c->in.join.session_timeout_ms = 10000;
    c->in.join.protocol_type = STR_LIT("consumer"); /* no protocols */
    assert_int_equal(join_error(bench_submit(b, c)), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join_error(JOIN(b, .type = "")), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(group_shard_groups(b->shard), 0); /* a refused join leaves no group behind */
    bench_free(b);
}

/* 9 */
static void the_protocol_with_most_votes_that_all_know(void **state)
{
    struct bench *b = bench_new();
    struct call *c[3] = {JOIN2(b, .protocols = {"a", "b", "c"}),
                         JOIN2(b, .protocols = {"x", "c", "b", "a"}),
                         JOIN2(b, .protocols = {"c", "b"})};
    bench_advance(b, 9000);
    for (int i = 0; i < 3; i++) { /* b, c, c of the candidates b and c */
        assert_true(str_eqz(c[i]->out.join.protocol_name, "c"));
        call_free(c[i]);
    }
    bench_free(b);
}

static void of_equal_votes_the_leaders_first(void **state)
{
    struct bench *b = bench_new();
    struct call *first = JOIN2(b, .protocols = {"b", "a"});
    struct call *second = JOIN2(b, .protocols = {"a", "b"});
    bench_advance(b, 6000);
    assert_true(str_eqz(first->out.join.protocol_name, "b"));
    assert_true(str_eqz(second->out.join.protocol_name, "b"));
    call_free(first);
    call_free(second);
    bench_free(b);
}

static void a_protocol_named_twice_counts_once(void **state)
{
    struct bench *b = bench_new();
    struct call *first = JOIN2(b, .protocols = {"a", "a", "b", "a"});
    struct call *second = JOIN2(b, .protocols = {"a"});
    bench_advance(b, 6000);
    assert_true(str_eqz(first->out.join.protocol_name, "a"));
    char *id = join_id(first);
    struct call *again = JOIN(b, .member = id, .protocols = {"a", "b"}); /* the counts still fit */
    assert_int_equal(leave(b, "g", str_of(id)), KERR_NONE);
    assert_int_equal(join_error(again), KERR_UNKNOWN_MEMBER_ID);
    free(id);
    call_free(first);
    call_free(second);
    bench_free(b);
}

/* 10 */
static void session_timeouts_have_limits(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(join_error(JOIN(b, .session_ms = 5999)), KERR_INVALID_SESSION_TIMEOUT);
    assert_int_equal(join_error(JOIN(b, .session_ms = 1800001)), KERR_INVALID_SESSION_TIMEOUT);
    assert_int_equal(join_error(JOIN(b, .session_ms = 1)), KERR_INVALID_SESSION_TIMEOUT);
    assert_int_equal(join_error(JOIN(b, .session_ms = -1)), KERR_INVALID_SESSION_TIMEOUT);
    assert_int_equal(join_error(JOIN(b, .session_ms = 6000)), KERR_MEMBER_ID_REQUIRED);
    assert_int_equal(join_error(JOIN(b, .session_ms = 1800000)), KERR_MEMBER_ID_REQUIRED);
    bench_free(b);
}

static void a_rebalance_timeout_without_end(void **state)
{
    struct bench *b = bench_new();
    static char reason[30000];
    memset(reason, 'r', sizeof(reason) - 1);
    char *ids[1];
    stable_group(b, "g", 1, ids);
    struct call *c = JOIN2(b, .rebalance_ms = INT32_MAX);
    assert_false(c->done);
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_REBALANCE_IN_PROGRESS);
    bench_advance(b, 9999);
    assert_false(c->done); /* no timer overflowed */
    struct call *rejoin = call_new(GROUP_JOIN, 9);
    rejoin->in.join = (struct join_group_request){.group_id = STR_LIT("g"),
                                                  .member_id = str_of(ids[0]),
                                                  .protocol_type = STR_LIT("consumer"),
                                                  .session_timeout_ms = 10000,
                                                  .rebalance_timeout_ms = INT32_MAX,
                                                  .group_instance_id = STR_NULL,
                                                  .protocols = c->in.join.protocols,
                                                  .reason = str_of(reason)};
    bench_submit(b, rejoin);
    assert_int_equal(error_of(rejoin), KERR_NONE);
    assert_true(c->done);
    call_free(c);
    call_free(rejoin);
    free_ids(ids, 1);
    bench_free(b);
}

static void unknown_members_and_groups(void **state)
{
    struct bench *b = bench_new();
    assert_int_equal(join_error(JOIN(b, .member = "nobody")), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(group_shard_groups(b->shard), 0);
    char *ids[1];
    stable_group(b, "g", 1, ids);
    assert_int_equal(join_error(JOIN(b, .member = "nobody")), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(join_error(JOIN(b, .member = "nobody", .instance = "i")),
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(b, "g", str_of(ids[0])), KERR_NONE);
    assert_string_equal(state_of(b, "g"), "Empty");
    assert_int_equal(join_error(JOIN(b, .member = ids[0])), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(join_error(JOIN(b, .group = "")), KERR_INVALID_GROUP_ID);
    free_ids(ids, 1);
    bench_free(b);
}

static void errors_in_the_form_of_each_version(void **state)
{
    for (int version = 0; version <= 9; version++) {
        struct bench *b = bench_new();
        struct call *c = JOIN(b, .version = version, .version_0 = !version, .member = "x");
        assert_int_equal(error_of(c), KERR_UNKNOWN_MEMBER_ID);
        assert_int_equal(c->out.join.generation_id, -1);
        assert_true(str_eqz(c->out.join.member_id, "x"));
        assert_true(str_eqz(c->out.join.leader, ""));
        assert_true(str_eqz(c->out.join.protocol_name, version >= 7 ? NULL : ""));
        struct writer w = WRITER_INIT;
        join_group_response_encode(&c->out.join, version, &w);
        assert_false(w.unsupported);
        writer_free(&w);
        call_free(c);
        bench_free(b);
    }
}

static void a_known_member_in_each_state(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    /* Stable: a follower without news is answered at once */
    struct call *c = JOIN(b, .member = ids[1]);
    assert_int_equal(error_of(c), KERR_NONE);
    assert_int_equal(c->out.join.generation_id, 1);
    assert_int_equal(c->out.join.members.n, 0);
    call_free(c);
    assert_string_equal(state_of(b, "g"), "Stable");
    /* with other metadata it starts a rebalance */
    c = JOIN(b, .member = ids[1], .metadata = {(const uint8_t *)"new", 3});
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
    /* so does the leader, whatever it says */
    struct call *leader = JOIN(b, .member = ids[0]);
    assert_true(c->done && leader->done);
    assert_int_equal(leader->out.join.members.n, 2);
    call_free(c);
    call_free(leader);
    /* CompletingRebalance: who asks again gets the same answer again */
    assert_string_equal(state_of(b, "g"), "CompletingRebalance");
    leader = JOIN(b, .member = ids[0]);
    assert_int_equal(leader->out.join.members.n, 2);
    assert_int_equal(leader->out.join.generation_id, 2);
    c = JOIN(b, .member = ids[1], .metadata = {(const uint8_t *)"new", 3});
    assert_int_equal(c->out.join.members.n, 0);
    assert_true(str_eq(c->out.join.leader, leader->out.join.member_id));
    call_free(c);
    call_free(leader);
    /* other metadata: a new round; the same member may ask twice meanwhile */
    c = JOIN(b, .member = ids[1], .metadata = {(const uint8_t *)"newer", 5});
    struct call *again = JOIN(b, .member = ids[1], .metadata = {(const uint8_t *)"newest", 6});
    assert_int_equal(error_of(c), KERR_REBALANCE_IN_PROGRESS);
    assert_false(again->done);
    leader = JOIN(b, .member = ids[0]);
    assert_int_equal(error_of(leader), KERR_NONE);
    assert_int_equal(leader->out.join.members.v[1].metadata.len, 6);
    call_free(c);
    call_free(again);
    call_free(leader);
    free_ids(ids, 2);
    bench_free(b);
}

static void a_rebalance_waits_for_members_as_long_as_they_asked_for(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    struct call *c = JOIN2(b, .rebalance_ms = 40000);
    for (int i = 0; i < 6; i++) { /* ids[0] heartbeats and does not rejoin, ids[1] is silent */
        bench_advance(b, 9000);
        assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_REBALANCE_IN_PROGRESS);
        assert_false(c->done);
    }
    bench_advance(b, 6000); /* the longest of all is 60 s */
    assert_int_equal(error_of(c), KERR_NONE);
    assert_int_equal(c->out.join.members.n, 1);
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_UNKNOWN_MEMBER_ID);
    call_free(c);
    free_ids(ids, 2);
    bench_free(b);
}

/* 10 */
static void a_silent_member_is_removed_after_its_session(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    for (int i = 0; i < 3; i++) {
        bench_advance(b, 4000);
        enum kerr e = heartbeat(b, "g", str_of(ids[0]), 1);
        assert_int_equal(e, i < 2 ? KERR_NONE : KERR_REBALANCE_IN_PROGRESS);
    }
    struct call *c = JOIN(b, .member = ids[0]);
    assert_int_equal(error_of(c), KERR_NONE);
    assert_int_equal(c->out.join.members.n, 1);
    assert_int_equal(heartbeat(b, "g", str_of(ids[1]), 1), KERR_UNKNOWN_MEMBER_ID);
    call_free(c);
    free_ids(ids, 2);
    bench_free(b);
}

static void a_parked_member_is_alive(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    struct call *c = JOIN(b, .member = ids[0]); /* session 10 s */
    for (int i = 0; i < 5; i++) {
        bench_advance(b, 9000);
        assert_int_equal(heartbeat(b, "g", str_of(ids[1]), 1), KERR_REBALANCE_IN_PROGRESS);
    }
    assert_false(c->done);
    struct call *d = JOIN(b, .member = ids[1]);
    assert_int_equal(error_of(c), KERR_NONE);
    assert_int_equal(c->out.join.members.n, 2);
    bench_advance(b, 9000); /* its session began with the answer */
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 2), KERR_NONE);
    call_free(c);
    call_free(d);
    free_ids(ids, 2);
    bench_free(b);
}

static void a_new_member_is_parked_for_five_minutes_at_most(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    struct call *c = JOIN2(b, .rebalance_ms = 1800000);
    for (int i = 0; i < 33; i++) {
        bench_advance(b, 9000);
        assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_REBALANCE_IN_PROGRESS);
    }
    assert_false(c->done);
    bench_advance(b, 3000);
    assert_int_equal(error_of(c), KERR_UNKNOWN_MEMBER_ID);
    call_free(c);
    free_ids(ids, 1);
    bench_free(b);
}

/* Trap: members of old clients whose connections went must not stay. */
static void a_new_member_whose_connection_closes_is_forgotten(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    stable_group(b, "g", 1, ids);
    for (int i = 0; i < 200; i++) {
        struct call *c = JOIN(b, .version = 3);
        assert_false(c->done);
        group_call_abandon(&c->c);
        bench_check(b);
        assert_int_equal(error_of(c), KERR_UNKNOWN_MEMBER_ID);
        call_free(c);
    }
    assert_int_equal(group_members_n(group_shard_find(b->shard, STR_LIT("g"))), 1);
    free_ids(ids, 1);
    bench_free(b);
}

static void a_known_member_whose_connection_closes_may_come_back(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    struct call *c = JOIN(b, .member = ids[0]);
    group_call_abandon(&c->c);
    bench_check(b);
    call_free(c);
    struct call *other = JOIN(b, .member = ids[1]);
    assert_false(other->done);
    c = JOIN(b, .member = ids[0]);
    assert_int_equal(error_of(c), KERR_NONE);
    assert_int_equal(error_of(other), KERR_NONE);
    call_free(c);
    call_free(other);
    /* and is forgotten after its session when it does not */
    c = JOIN(b, .member = ids[0]);
    group_call_abandon(&c->c);
    call_free(c);
    other = JOIN(b, .member = ids[1], .metadata = {(const uint8_t *)"n", 1});
    bench_advance(b, 9999);
    assert_false(other->done);
    bench_advance(b, 1);
    assert_int_equal(other->out.join.members.n, 1);
    call_free(other);
    free_ids(ids, 2);
    bench_free(b);
}

/* 12 */
static void a_full_group_takes_nobody(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    b->config.max_size = 2;
    stable_group(b, "g", 2, ids);
    struct call *c = JOIN(b, .version = 3);
    assert_int_equal(error_of(c), KERR_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(c->out.join.member_id.len, 0);
    call_free(c);
    assert_string_equal(state_of(b, "g"), "Stable");
    /* in the join phase those who are parked count */
    c = JOIN(b, .member = ids[0]);
    struct call *quick = JOIN(b, .version = 3);
    assert_false(quick->done);
    assert_int_equal(join_error(JOIN(b, .member = ids[1])), KERR_GROUP_MAX_SIZE_REACHED);
    assert_true(c->done && quick->done); /* with the late one out, all are here */
    assert_int_equal(c->out.join.members.n, 2);
    call_free(c);
    call_free(quick);
    free_ids(ids, 2);
    bench_free(b);
}

static void an_id_in_hand_is_worth_nothing_when_the_group_is_full(void **state)
{
    struct bench *b = bench_new();
    char *ids[1];
    b->config.max_size = 1;
    struct call *late = JOIN(b);
    char *id = join_id(late);
    stable_group(b, "g", 1, ids);
    assert_int_equal(join_error(JOIN(b, .member = id)), KERR_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(join_error(JOIN(b, .member = id)), KERR_GROUP_MAX_SIZE_REACHED);
    assert_string_equal(state_of(b, "g"), "Stable");
    free(id);
    call_free(late);
    free_ids(ids, 1);
    bench_free(b);
}

static void an_id_in_hand_with_an_instance_is_nonsense(void **state)
{
    struct bench *b = bench_new();
    struct call *c = JOIN(b);
    char *id = join_id(c);
    assert_int_equal(join_error(JOIN(b, .member = id, .instance = "i")), KERR_UNKNOWN_SERVER_ERROR);
    free(id);
    call_free(c);
    bench_free(b);
}

static void everybody_leaves_and_somebody_comes(void **state)
{
    struct bench *b = bench_new();
    char *ids[2];
    stable_group(b, "g", 2, ids);
    int appends = b->log.appends;
    assert_int_equal(leave(b, "g", str_of(ids[0])), KERR_NONE);
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
    assert_int_equal(leave(b, "g", str_of(ids[1])), KERR_NONE);
    assert_string_equal(state_of(b, "g"), "Empty");
    assert_int_equal(b->log.appends, appends + 1); /* that it is empty is written down */
    assert_int_equal(group_generation(group_shard_find(b->shard, STR_LIT("g"))), 2);
    struct call *c = JOIN2(b, .type = "connect");
    bench_advance(b, 3000);
    assert_int_equal(c->out.join.generation_id, 3);
    call_free(c);
    free_ids(ids, 2);
    bench_free(b);
}

static void the_pending_ids_have_a_limit(void **state)
{
    struct bench *b = bench_new();
    struct call *first = JOIN(b, .session_ms = 1800000);
    char *id = join_id(first);
    for (int i = 0; i < GROUP_PENDING_MAX; i++)
        call_free(JOIN(b, .session_ms = 1800000));
    struct group *g = group_shard_find(b->shard, STR_LIT("g"));
    assert_int_equal(group_pending_n(g), GROUP_PENDING_MAX); /* the oldest made room */
    assert_int_equal(join_error(JOIN(b, .member = id)), KERR_UNKNOWN_MEMBER_ID);
    free(id);
    call_free(first);
    bench_free(b);
}

UNIT_MAIN(unit_test(a_dynamic_member_gets_its_id_first),
          unit_test(old_versions_and_static_members_join_at_once),
          unit_test(an_id_that_is_not_used_is_forgotten),
          unit_test(the_first_join_phase_lasts_the_initial_delay),
          unit_test(the_delay_goes_on_while_members_come),
          unit_test(without_company_the_delay_is_not_repeated), unit_test(no_delay_means_none),
          unit_test(one_leader_a_generation_and_only_it_gets_the_members),
          unit_test(the_leader_gets_everyones_metadata),
          unit_test(a_joiner_without_a_common_protocol_is_refused),
          unit_test(a_first_joiner_must_offer_something),
          unit_test(the_protocol_with_most_votes_that_all_know),
          unit_test(of_equal_votes_the_leaders_first),
          unit_test(a_protocol_named_twice_counts_once), unit_test(session_timeouts_have_limits),
          unit_test(a_rebalance_timeout_without_end), unit_test(unknown_members_and_groups),
          unit_test(errors_in_the_form_of_each_version), unit_test(a_known_member_in_each_state),
          unit_test(a_rebalance_waits_for_members_as_long_as_they_asked_for),
          unit_test(a_silent_member_is_removed_after_its_session),
          unit_test(a_parked_member_is_alive),
          unit_test(a_new_member_is_parked_for_five_minutes_at_most),
          unit_test(a_new_member_whose_connection_closes_is_forgotten),
          unit_test(a_known_member_whose_connection_closes_may_come_back),
          unit_test(a_full_group_takes_nobody),
          unit_test(an_id_in_hand_is_worth_nothing_when_the_group_is_full),
          unit_test(an_id_in_hand_with_an_instance_is_nonsense),
          unit_test(everybody_leaves_and_somebody_comes), unit_test(the_pending_ids_have_a_limit))
