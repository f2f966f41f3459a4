/* What members say that they own, and how much clients may say at all: lists of any length cost
 * what the group has, not what the client sends. */
#include "base/logline.h"
#include "cgroup_bench.h"
#include "protocol/msg/consumer_protocol.h"

enum { LONG = 300000 /* squared it would not end before the test is given up */ };

static struct bench *b;

static int make(void **state)
{
    (void)state;
    logline_set_level(LOGLINE_FATAL);
    b = bench_new();
    bench_topics(b, "t:4 u:2");
    b->config.consumers.upgrade = b->config.consumers.downgrade = true;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    bench_free(b);
    return 0;
}

/* ---- what is owned ---- */

/* A has t0-3 and must give up two of them for B. */
static void make_room(void)
{
    EXPECT_BEAT(BEAT(b, .member = "A"), 1, "t0-3");
    EXPECT_BEAT(BEAT(b, .member = "B"), 2, "");
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0-3"), 1, "t0,t1");
}

/* A heartbeat of A that names t0 n times. */
static struct beat_answer beat_with_many(int32_t epoch, int n)
{
    struct call *c = call_new(GROUP_CONSUMER_HEARTBEAT, 0);
    struct consumer_group_heartbeat_request *in = &c->in.beat;
    in->group_id = STR_LIT("g");
    in->member_id = STR_LIT("A");
    in->member_epoch = epoch;
    in->rebalance_timeout_ms = -1;
    in->subscribed_topic_names.n = -1;
    in->topic_partitions.v = consumer_group_heartbeat_request_topic_partition_new(&c->arena, 1);
    in->topic_partitions.n = 1;
    in->topic_partitions.v[0].topic_id = topic_id('t');
    in->topic_partitions.v[0].partitions.v = arena_array(&c->arena, int32_t, (size_t)n);
    in->topic_partitions.v[0].partitions.n = n;
    return beat_end(bench_submit(b, c));
}

static void who_names_too_many_has_given_up_nothing(void **state)
{
    (void)state;
    make_room();
    EXPECT_BEAT(beat_with_many(1, 5), 1, NULL);
    EXPECT_BEAT(beat_with_many(1, LONG), 1, NULL);
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 2, NULL); /* nothing is free */
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1"), 2, NULL);
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 2, "t2,t3");
}

static void who_names_one_twice_has_given_up_the_rest(void **state)
{
    (void)state;
    make_room();
    EXPECT_BEAT(beat_with_many(1, 2), 2, NULL);
    EXPECT_BEAT(BEAT(b, .member = "B", .epoch = 2), 2, "t2,t3");
}

/* What is not its own is not looked for among what is, but an old epoch with it is not believed. */
static void who_names_what_it_was_never_given(void **state)
{
    (void)state;
    make_room();
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1,u0"), 2, NULL);
    assert_int_equal(BEAT(b, .member = "A", .epoch = 1, .owned = "t0,u0").error,
                     KERR_FENCED_MEMBER_EPOCH);
    assert_int_equal(beat_with_many(1, 2).error, KERR_FENCED_MEMBER_EPOCH);
    assert_int_equal(beat_with_many(1, LONG).error, KERR_FENCED_MEMBER_EPOCH);
    EXPECT_BEAT(BEAT(b, .member = "A", .epoch = 1, .owned = "t0"), 2, NULL);
}

static void a_list_is_read_no_further_than_it_can_be_true(void **state)
{
    (void)state;
    struct cowned o;
    int32_t *many = calloc(LONG, sizeof(*many));
    make_room();
    const struct cmember *m = cmember_of(b, "g", "A");
    assert_int_equal(m->assigned.n + m->revoking.n, 4);
    assert_int_equal(cowned_begin(&o, m), 0);
    assert_true(cowned_say(&o, topic_id('t'), (const int32_t[]){3, 1}, 2));
    assert_true(cowned_say(&o, topic_id('x'), NULL, 0));
    assert_int_equal(cowned_end(&o), 0);
    assert_string_equal(parts_text(&o.parts), "t1,t3");
    assert_false(o.strange);
    assert_int_equal(o.looks, 2);
    assert_false(cowned_say(&o, topic_id('t'), many, LONG));
    assert_true(o.strange);
    assert_int_equal(o.looks, 2); /* none of them */
    part_set_free(&o.parts);
    assert_int_equal(cowned_end(&o), 0);
    assert_string_equal(parts_text(&o.parts), "t0,t1,t2,t3");
    cowned_free(&o);
    free(many);
}

/* Owners are noted in pages: one that begins or ends in the midst of what a member has. */
static void partitions_of_many_pages(void **state)
{
    (void)state;
    bench_topics(b, "w:130");
    BEAT(b, .member = "A", .names = "wt");
    BEAT(b, .member = "B", .names = "wt");
    const struct cmember *a = cmember_of(b, "g", "A"), *other = cmember_of(b, "g", "B");
    assert_int_equal(a->assigned.n, 134);
    struct part p = {topic_id('w'), 129}, beyond = {topic_id('w'), 130}, odd = {topic_id('w'), -1};
    assert_int_equal(cgroup_owner(a->cg, &p), a->epoch);
    assert_int_equal(cgroup_owner(a->cg, &beyond), -1);
    assert_int_equal(cgroup_owner(a->cg, &odd), -1);
    BEAT(b, .member = "A", .epoch = 1, .owned = "w0-129,t0-3");
    bench_restart(b);
    a = cmember_of(b, "g", "A");
    struct part_set kept = PART_SET_EMPTY;
    assert_int_equal(part_set_copy(&a->assigned, &kept), 0);
    char text[2048];
    snprintf(text, sizeof(text), "%s", parts_text(&kept));
    part_set_free(&kept);
    BEAT(b, .member = "A", .epoch = 1, .owned = text);
    BEAT(b, .member = "B", .epoch = 2);
    other = cmember_of(b, "g", "B");
    a = cmember_of(b, "g", "A");
    assert_int_equal(a->assigned.n + other->assigned.n, 134);
    assert_string_equal(cstate_of(b, "g"), "Stable");
    BEAT(b, .member = "A", .epoch = -1);
    BEAT(b, .member = "B", .epoch = -1);
    assert_int_equal(cgroup_of(b, "g")->owners.n, 0);
}

/* ---- what is read ---- */

/* Names of no topic, each another. */
static struct call *beat_with_names(const char *member, int n, int len)
{
    struct call *c = call_new(GROUP_CONSUMER_HEARTBEAT, 1);
    struct consumer_group_heartbeat_request *in = &c->in.beat;
    in->group_id = STR_LIT("g");
    in->member_id = str_of(member);
    in->rebalance_timeout_ms = 60000;
    in->subscribed_topic_names.v = arena_array(&c->arena, struct str, (size_t)n);
    in->subscribed_topic_names.n = n;
    in->topic_partitions.n = 0;
    for (int i = 0; i < n; i++)
        in->subscribed_topic_names.v[i] = str_of(arena_printf(&c->arena, "%0*d", len, i));
    return bench_submit(b, c);
}

/* Not after the fact: what cannot be written costs all groups of the partition a load. */
static void a_member_that_says_too_much_is_refused_before_anything_changes(void **state)
{
    (void)state;
    EXPECT_BEAT(BEAT(b, .member = "A"), 1, "t0-3");
    int records = b->log.records, loads = b->loads;
    assert_int_equal(beat_end(beat_with_names("B", 10000, 100)).error, KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(beat_end(beat_with_names("B", LONG, 9)).error, KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(b->log.records, records);
    assert_int_equal(b->loads, loads);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 1);
    assert_int_equal(beat_end(beat_with_names("B", 8000, 100)).error, KERR_NONE);
    assert_int_equal(b->loads, loads);
}

/* ---- members of the classic protocol ---- */

static struct bytes reads_t(struct arena *a, size_t more)
{
    struct consumer_protocol_subscription v;
    struct writer w = WRITER_INIT;
    struct str names[] = {STR_LIT("t")};
    consumer_protocol_subscription_init(&v);
    v.topics = (typeof(v.topics)){names, 1};
    if (more)
        v.user_data = (struct bytes){arena_calloc(a, more, 1), (int32_t)more};
    buf_put_i16(&w.buf, 1);
    consumer_protocol_subscription_encode(&v, 1, &w);
    uint8_t *p = arena_alloc(a, w.buf.len);
    memcpy(p, w.buf.p, w.buf.len);
    struct bytes out = {p, (int32_t)w.buf.len};
    writer_free(&w);
    return out;
}

/* Offers n protocols, the last of which is `last`; only the first says what is read. */
static enum kerr join_with_many(const char *member, int n, const char *first, const char *last,
                                size_t more)
{
    struct call *c = call_new(GROUP_JOIN, 3);
    struct join_group_request *in = &c->in.join;
    in->group_id = STR_LIT("g");
    in->member_id = str_of(member);
    in->protocol_type = STR_LIT("consumer");
    in->session_timeout_ms = 10000;
    in->rebalance_timeout_ms = 60000;
    in->protocols.v = join_group_request_protocol_new(&c->arena, n);
    in->protocols.n = n;
    for (int i = 0; i < n; i++) {
        in->protocols.v[i].name =
            i == n - 1 ? str_of(last) : str_of(arena_printf(&c->arena, "%s%d", first, i));
        in->protocols.v[i].metadata = (struct bytes){(const uint8_t *)"", 0};
    }
    in->protocols.v[0].metadata = reads_t(&c->arena, more);
    bench_submit(b, c);
    enum kerr e = c->done ? c->out.join.error_code : KERR_REBALANCE_IN_PROGRESS;
    if (!c->done)
        group_call_abandon(&c->c);
    bench_run(b);
    call_free(c);
    return e;
}

static void long_lists_of_protocols_are_compared_once(void **state)
{
    enum { MANY = 80000 };
    (void)state;
    BEAT(b, .member = "A");
    assert_int_equal(join_with_many("one", MANY, "x", "common", 0), KERR_NONE);
    assert_int_equal(join_with_many("two", MANY, "y", "other", 0),
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join_with_many("two", MANY, "y", "common", 0), KERR_NONE);
    assert_int_equal(join_with_many("two", MANY, "y", "common", 0), KERR_NONE); /* once more */
    assert_int_equal(join_with_many("one", MANY, "z", "other", 0),
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(leave(b, "g", STR_LIT("two")), KERR_NONE);
    /* its own former list does not bind it */
    assert_int_equal(join_with_many("one", MANY, "z", "other", 0), KERR_NONE);
    assert_int_equal(cgroup_of(b, "g")->protocols.n, MANY);
    assert_int_equal(leave(b, "g", STR_LIT("one")), KERR_NONE);
    assert_int_equal(cgroup_of(b, "g")->protocols.n, 0);
}

static void a_classic_member_that_says_too_much(void **state)
{
    (void)state;
    BEAT(b, .member = "A");
    int loads = b->loads;
    assert_int_equal(join_with_many("one", 2, "x", "y", 1 << 20), KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(b->loads, loads);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 1);
}

/* Two whose words fit into a record each, but not into the one record of a classic group: the group
 * stays what it is when its last member of the new protocol goes. */
static void a_group_that_said_too_much_is_not_downgraded(void **state)
{
    (void)state;
    BEAT(b, .member = "N");
    assert_int_equal(join_with_many("one", 2, "x", "y", 600 << 10), KERR_NONE);
    assert_int_equal(join_with_many("two", 2, "x", "y", 600 << 10), KERR_NONE);
    int loads = b->loads;
    BEAT(b, .member = "N", .epoch = -1);
    assert_int_equal(b->loads, loads);
    assert_int_equal(cgroup_of(b, "g")->classic_n, 2);
    /* with one of them less it fits */
    assert_int_equal(leave(b, "g", STR_LIT("two")), KERR_NONE);
    assert_int_equal(BEAT(b, .member = "N").error, KERR_NONE);
    BEAT(b, .member = "N", .epoch = -1);
    assert_null(cgroup_of(b, "g"));
    assert_int_equal(b->loads, loads);
}

/* n topics of one partition, with names as long as may be. */
static void long_named_topics(struct str *names, int n, struct arena *a)
{
    struct update_metadata_request r;
    static const int32_t replicas[] = {0};
    update_metadata_request_init(&r);
    r.topic_states.v = update_metadata_request_topic_state_new(a, n);
    r.topic_states.n = n;
    for (int i = 0; i < n; i++) {
        struct update_metadata_request_topic_state *t = &r.topic_states.v[i];
        names[i] = str_of(arena_printf(a, "%0249d", i));
        t->topic_name = names[i];
        t->topic_id = topic_id('x');
        memcpy(&t->topic_id.b[4], &i, sizeof(i));
        t->partition_states.v = update_metadata_request_partition_state_new(a, 1);
        t->partition_states.n = 1;
        t->partition_states.v[0].leader = 0;
        t->partition_states.v[0].replicas.v = (int32_t *)replicas;
        t->partition_states.v[0].replicas.n = 1;
        t->partition_states.v[0].isr.v = (int32_t *)replicas;
        t->partition_states.v[0].isr.n = 1;
    }
    assert_int_equal(metadata_cache_update(b->metadata, &r), 0);
    atomic_fetch_add(&b->metadata_version, 1);
}

/* A classic member that reads them all. */
static void join_reading(const char *member, struct str *names, int n)
{
    struct consumer_protocol_subscription v;
    struct writer w = WRITER_INIT;
    consumer_protocol_subscription_init(&v);
    v.topics = (typeof(v.topics)){names, n};
    buf_put_i16(&w.buf, 1);
    consumer_protocol_subscription_encode(&v, 1, &w);
    assert_false(w.buf.failed);
    struct call *c =
        JOIN(b, .member = member, .version = 3, .metadata = {w.buf.p, (int32_t)w.buf.len});
    assert_true(c->done);
    assert_int_equal(c->out.join.error_code, KERR_NONE);
    call_free(c);
    writer_free(&w);
}

/* The classic record has each topic's name twice: the member reads it, and has it assigned. With
 * half of the topics it fits. */
static void long_names_count_where_they_are_assigned(void **state)
{
    enum { MANY = 2100 };
    static struct str names[MANY];
    struct arena a;
    (void)state;
    arena_init(&a, 0);
    long_named_topics(names, MANY, &a);
    for (int half = 0; half < 2; half++) {
        BEAT(b, .member = "N");
        join_reading("X", names, half ? MANY / 2 : MANY);
        assert_int_equal(cmember_of(b, "g", "X")->target.n, half ? MANY / 2 : MANY);
        int loads = b->loads;
        assert_int_equal(BEAT(b, .member = "N", .epoch = -1).error, KERR_NONE);
        assert_int_equal(b->loads, loads);
        assert_int_equal(cgroup_of(b, "g") == NULL, half);
    }
    arena_free(&a);
}

/* Nor is a group upgraded whose members no record could hold; it goes on as it was. */
static void a_classic_group_that_said_too_much_stays_classic(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 0);
    struct call *j = JOIN(b, .version = 3, .metadata = reads_t(&a, 1 << 20));
    bench_advance(b, 3000);
    assert_int_equal(j->out.join.error_code, KERR_NONE);
    assert_int_equal(BEAT(b, .member = "N").error, KERR_GROUP_ID_NOT_FOUND);
    assert_string_equal(state_of(b, "g"), "CompletingRebalance");
    call_free(j);
    arena_free(&a);
}

/* ---- several at once ---- */

static void members_that_leave_together_make_one_epoch(void **state)
{
    (void)state;
    enum { N = 5 };
    const char *const ids[N] = {"A", "B", "C", "none", "A"};
    const enum kerr errors[N] = {KERR_NONE, KERR_NONE, KERR_NONE, KERR_UNKNOWN_MEMBER_ID,
                                 KERR_UNKNOWN_MEMBER_ID};
    BEAT(b, .member = "N");
    for (int i = 0; i < 3; i++)
        assert_int_equal(join_with_many(ids[i], 1, "", "range", 0), KERR_NONE);
    int32_t epoch = cgroup_epoch(cgroup_of(b, "g"));
    int appends = b->log.appends;
    struct call *c = call_new(GROUP_LEAVE, 5);
    c->in.leave.group_id = STR_LIT("g");
    c->in.leave.members.v = leave_group_request_member_new(&c->arena, N);
    for (int i = 0; i < N; i++)
        c->in.leave.members.v[c->in.leave.members.n++].member_id = str_of(ids[i]);
    bench_submit(b, c);
    assert_int_equal(c->out.leave.error_code, KERR_NONE);
    assert_int_equal(c->out.leave.members.n, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(c->out.leave.members.v[i].error_code, errors[i]);
        assert_true(str_eqz(c->out.leave.members.v[i].member_id, ids[i]));
    }
    call_free(c);
    assert_int_equal(cgroup_epoch(cgroup_of(b, "g")), epoch + 1);
    assert_int_equal(b->log.appends, appends + 1);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 1);
}

/* ---- lists of groups ---- */

static int listed(int32_t states_n, int32_t types_n, const char *state_name, const char *type_name)
{
    struct call *c = call_new(GROUP_LIST, 5);
    struct list_groups_request *in = &c->in.list;
    in->states_filter.v = arena_array(&c->arena, struct str, (size_t)states_n);
    in->types_filter.v = arena_array(&c->arena, struct str, (size_t)types_n);
    in->states_filter.n = states_n;
    in->types_filter.n = types_n;
    for (int i = 0; i < states_n; i++)
        in->states_filter.v[i] = i < states_n - 1 ? STR_LIT("empt") : str_of(state_name);
    for (int i = 0; i < types_n; i++)
        in->types_filter.v[i] = i < types_n - 1 ? STR_LIT("classi") : str_of(type_name);
    bench_submit(b, c);
    int n = c->out.list.groups.n;
    call_free(c);
    return n;
}

static void a_long_filter_is_read_once(void **state)
{
    enum { GROUPS = 300 };
    (void)state;
    char name[16];
    BEAT(b, .member = "A");
    for (int i = 0; i < GROUPS; i++) {
        snprintf(name, sizeof(name), "o%d", i);
        call_free(COMMIT(b, .group = name));
    }
    assert_int_equal(listed(LONG, LONG, "EMPTY", "Classic"), GROUPS);
    assert_int_equal(listed(LONG, LONG, "stable", "consumer"), 1);
    assert_int_equal(listed(LONG, LONG, "stable", "classic"), 0);
    assert_int_equal(listed(LONG, LONG, "none", "none"), 0);
    assert_int_equal(listed(0, 0, NULL, NULL), GROUPS + 1);
}

static void too_much(struct group_call *c)
{
    container_of(c, struct call, c)->done = true;
}

/* A request that names a group so often that no answer could hold it is refused as a whole. */
static void an_answer_that_is_too_long_is_refused(void **state)
{
    enum { TIMES = 200000, OFFSETS = 300 };
    static const enum group_api apis[] = {GROUP_FETCH, GROUP_DESCRIBE, GROUP_CONSUMER_DESCRIBE};
    (void)state;
    for (int i = 0; i < OFFSETS; i++)
        call_free(COMMIT(b, .group = "o", .partition = i));
    BEAT(b, .member = "A");
    char *member[1];
    stable_group(b, "c", 1, member);
    free_ids(member, 1);
    for (size_t k = 0; k < 3; k++) {
        struct call *c = call_new(apis[k], k == 0 ? 8 : 0);
        struct str *ids = arena_array(&c->arena, struct str, TIMES);
        struct offset_fetch_request_group *groups =
            offset_fetch_request_group_new(&c->arena, k == 0 ? TIMES : 1);
        for (int i = 0; i < TIMES; i++)
            ids[i] = k == 1 ? STR_LIT("c") : STR_LIT("g");
        for (int i = 0; k == 0 && i < TIMES; i++) {
            groups[i].group_id = STR_LIT("o");
            groups[i].topics.n = -1;
        }
        if (k == 0)
            c->in.fetch.groups = (typeof(c->in.fetch.groups)){groups, TIMES};
        else if (k == 1)
            c->in.describe.groups = (typeof(c->in.describe.groups)){ids, TIMES};
        else
            c->in.consumers.group_ids = (typeof(c->in.consumers.group_ids)){ids, TIMES};
        c->c.done = too_much;
        assert_true(group_call_lay_out(&c->c));
        c->arena.cap = c->arena.used + (1 << 20);
        group_shard_handle(b->shard, &c->c);
        group_call_end(&c->c);
        assert_true(c->c.no_memory);
        call_free(c);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
UNIT_MAIN(TEST(who_names_too_many_has_given_up_nothing),
          TEST(who_names_one_twice_has_given_up_the_rest), TEST(who_names_what_it_was_never_given),
          TEST(a_list_is_read_no_further_than_it_can_be_true), TEST(partitions_of_many_pages),
          TEST(a_member_that_says_too_much_is_refused_before_anything_changes),
          TEST(long_lists_of_protocols_are_compared_once),
          TEST(a_classic_member_that_says_too_much),
          TEST(a_group_that_said_too_much_is_not_downgraded),
          TEST(long_names_count_where_they_are_assigned),
          TEST(a_classic_group_that_said_too_much_stays_classic),
          TEST(members_that_leave_together_make_one_epoch), TEST(a_long_filter_is_read_once),
          TEST(an_answer_that_is_too_long_is_refused))
