/* Groups that change their protocol: without members either way, upgraded while in use, members of
 * the classic protocol in a group of the new one, and the way back. */
#include "base/logline.h"
#include "cgroup_bench.h"
#include "protocol/msg/consumer_protocol.h"

static struct bench *b;

static int make(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    b = bench_new();
    bench_topics(b, "t:4 u:2");
    b->config.consumers.upgrade = b->config.consumers.downgrade = true;
    return 0;
}

static int drop(void **state)
{
    bench_free(b);
    return 0;
}

/* ---- what classic consumers send ---- */

static struct bytes bytes_of(struct writer *w, void *memory, size_t max)
{
    assert_true(w->buf.len <= max);
    memcpy(memory, w->buf.p, w->buf.len);
    struct bytes out = {memory, (int32_t)w->buf.len};
    writer_free(w);
    return out;
}

/* Reads the topics (letters), owns `owned`. Static memory, several at a time. */
static struct bytes subscription(const char *topics, const char *owned)
{
    static uint8_t memory[8][512];
    static int turn;
    struct str names[8];
    struct consumer_protocol_subscription v;
    struct consumer_protocol_subscription_owned_partition parts[8];
    static int32_t numbers[64];
    struct part_set s = parts_of(owned);
    struct writer w = WRITER_INIT;
    consumer_protocol_subscription_init(&v);
    int n = (int)strlen(topics), k = 0;
    for (int i = 0; i < n; i++)
        names[i] = (struct str){topics + i, 1};
    v.topics = (typeof(v.topics)){names, n};
    for (int i = 0, end; i < s.n; i = end, k++) {
        end = part_set_run(&s, i);
        static char letters[8][1];
        letters[k][0] = (char)s.v[i].topic.b[0];
        parts[k] = (struct consumer_protocol_subscription_owned_partition){
            .topic = {letters[k], 1}, .partitions = {numbers + i, end - i}};
        for (int j = i; j < end; j++)
            numbers[j] = s.v[j].partition;
    }
    v.owned_partitions = (typeof(v.owned_partitions)){parts, k};
    buf_put_i16(&w.buf, 1);
    consumer_protocol_subscription_encode(&v, 1, &w);
    part_set_free(&s);
    return bytes_of(&w, memory[turn++ % 8], sizeof(memory[0]));
}

static struct bytes assignment_of(const char *text)
{
    static uint8_t memory[8][512];
    static int turn;
    static int32_t numbers[64];
    struct consumer_protocol_assignment v;
    struct consumer_protocol_assignment_assigned_partition parts[8];
    struct part_set s = parts_of(text);
    struct writer w = WRITER_INIT;
    int k = 0;
    consumer_protocol_assignment_init(&v);
    for (int i = 0, end; i < s.n; i = end, k++) {
        end = part_set_run(&s, i);
        static char letters[8][1];
        letters[k][0] = (char)s.v[i].topic.b[0];
        parts[k] = (struct consumer_protocol_assignment_assigned_partition){
            .topic = {letters[k], 1}, .partitions = {numbers + i, end - i}};
        for (int j = i; j < end; j++)
            numbers[j] = s.v[j].partition;
    }
    v.assigned_partitions = (typeof(v.assigned_partitions)){parts, k};
    buf_put_i16(&w.buf, 1);
    consumer_protocol_assignment_encode(&v, 1, &w);
    part_set_free(&s);
    return bytes_of(&w, memory[turn++ % 8], sizeof(memory[0]));
}

/* As text. Static. */
static const char *assigned_text(struct bytes bytes)
{
    struct consumer_protocol_assignment v;
    struct reader r = reader_of(bytes.p, (size_t)bytes.len);
    struct arena a;
    struct part_set s = PART_SET_EMPTY;
    arena_init(&a, 0);
    assert_int_equal(reader_i16(&r), 1);
    assert_int_equal(consumer_protocol_assignment_decode(&v, 1, &r, &a), 0);
    for (int t = 0; t < v.assigned_partitions.n; t++)
        for (int i = 0; i < v.assigned_partitions.v[t].partitions.n; i++)
            part_set_add(&s, topic_id(v.assigned_partitions.v[t].topic.p[0]),
                         v.assigned_partitions.v[t].partitions.v[i]);
    part_set_sort(&s);
    const char *text = parts_text(&s);
    part_set_free(&s);
    arena_free(&a);
    return text;
}

struct joined {
    enum kerr error;
    int32_t generation;
    char id[80];
};

static struct joined join_end(struct call *c)
{
    struct joined j = {c->out.join.error_code, c->out.join.generation_id, ""};
    assert_true(c->done);
    snprintf(j.id, sizeof(j.id), "%.*s", STR_ARG(c->out.join.member_id));
    if (j.error == KERR_NONE) {
        assert_true(str_eqz(c->out.join.protocol_type, "consumer"));
        assert_true(str_eqz(c->out.join.protocol_name, "range"));
        assert_int_equal(c->out.join.leader.len, 0);
        assert_int_equal(c->out.join.members.n, 0);
    }
    call_free(c);
    return j;
}
#define JOIN_CLASSIC(topics, owned, ...) \
    join_end(JOIN(b, .metadata = subscription((topics), (owned)), __VA_ARGS__))

/* The member's assignment, or NULL and the error. */
static const char *synced(const char *id, int32_t generation, enum kerr *error)
{
    struct call *c = sync_one(b, "g", str_of(id), generation);
    assert_true(c->done);
    *error = c->out.sync.error_code;
    const char *text = *error == KERR_NONE ? assigned_text(c->out.sync.assignment) : NULL;
    call_free(c);
    return text;
}

static void expect_sync(const char *id, int32_t generation, const char *expected)
{
    enum kerr e;
    struct part_set s = parts_of(expected);
    const char *text = synced(id, generation, &e);
    assert_int_equal(e, KERR_NONE);
    assert_string_equal(text, parts_text(&s));
    part_set_free(&s);
}

/* A classic group "g" with these assignments; ids are to be freed. */
static int32_t classic_group(int n, const char *const *parts, char **ids)
{
    struct call *joins[4], *syncs[4];
    for (int i = 0; i < n; i++)
        joins[i] = JOIN2(b, .metadata = subscription("t", ""));
    bench_advance(b, 3000);
    for (int i = 0; i < n && !joins[n - 1]->done; i++)
        bench_advance(b, 3000);
    int32_t generation = joins[0]->out.join.generation_id;
    for (int i = 0; i < n; i++)
        ids[i] = join_id(joins[i]);
    for (int i = n - 1; i >= 0; i--) {
        syncs[i] = call_new(GROUP_SYNC, 3);
        struct sync_group_request *in = &syncs[i]->in.sync;
        in->group_id = STR_LIT("g");
        in->member_id = str_of(ids[i]);
        in->generation_id = generation;
        in->assignments.v = arena_array(&syncs[i]->arena, struct sync_group_request_assignment, 4);
        in->assignments.n = n;
        for (int j = 0; j < n; j++) {
            in->assignments.v[j].member_id = str_of(ids[j]);
            in->assignments.v[j].assignment = assignment_of(parts[j]);
        }
        bench_submit(b, syncs[i]);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(syncs[i]->out.sync.error_code, KERR_NONE);
        call_free(joins[i]);
        call_free(syncs[i]);
    }
    assert_string_equal(state_of(b, "g"), "Stable");
    return generation;
}

/* ---- without members ---- */

static void an_empty_group_takes_either_protocol(void **state)
{
    char *ids[1];
    int32_t generation = classic_group(1, (const char *const[]){"t0"}, ids);
    call_free(COMMIT(b, .member = ids[0], .generation = generation, .offset = 5));
    assert_int_equal(leave(b, "g", str_of(ids[0])), KERR_NONE);
    free_ids(ids, 1);
    EXPECT_BEAT(BEAT(b, .member = "A"), 1, "t0-3");
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 5);
    bench_restart(b); /* the classic record is buried */
    assert_string_equal(cstate_of(b, "g"), "Stable");
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "X", .type = "connect").error,
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    BEAT(b, .member = "A", .epoch = -1);
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "X", .version = 3).generation, 3);
    assert_int_equal(leave(b, "g", STR_LIT("X")), KERR_NONE);
    bench_run(b);
    ids[0] = NULL;
    classic_group(1, (const char *const[]){"t0"}, ids);
    free_ids(ids, 1);
    assert_null(cgroup_of(b, "g"));
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 5);
    bench_restart(b);
    assert_null(cgroup_of(b, "g"));
    assert_string_equal(state_of(b, "g"), "Stable");
}

static void offsets_alone_take_either_protocol(void **state)
{
    call_free(COMMIT(b, .offset = 5));
    BEAT(b, .member = "A");
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 5);
    bench_restart(b);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 5);
    assert_string_equal(cstate_of(b, "g"), "Stable");
}

/* ---- upgrade ---- */

static void refused_where_the_policy_says_no(void **state)
{
    char *ids[1];
    b->config.consumers.upgrade = false;
    classic_group(1, (const char *const[]){"t0"}, ids);
    assert_int_equal(BEAT(b, .member = "N").error, KERR_GROUP_ID_NOT_FOUND);
    assert_string_equal(state_of(b, "g"), "Stable");
    b->config.consumers.upgrade = true;
    b->config.consumers.max_size = 0;
    assert_int_equal(BEAT(b, .member = "N").error, KERR_GROUP_ID_NOT_FOUND);
    free_ids(ids, 1);
}

static void refused_when_members_cannot_be_read(void **state)
{
    char *ids[1];
    stable_group(b, "g", 1, ids); /* its metadata is "meta" */
    assert_int_equal(BEAT(b, .member = "N").error, KERR_GROUP_ID_NOT_FOUND);
    assert_string_equal(state_of(b, "g"), "Stable");
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), 1), KERR_NONE);
    free_ids(ids, 1);
}

static void members_go_over_with_what_they_have(void **state)
{
    char *ids[2];
    int32_t g = classic_group(2, (const char *const[]){"t0,t1", "t2,t3"}, ids);
    EXPECT_BEAT(BEAT(b, .member = "N"), g + 1, "");
    struct cmember *one = cmember_of(b, "g", ids[0]);
    assert_true(one->classic);
    assert_int_equal(one->epoch, g);
    assert_string_equal(parts_text(&one->assigned), "t0,t1");
    assert_int_equal(cgroup_of(b, "g")->classic_n, 2);
    /* they hear of it by their heartbeats, and join again to learn what to give up */
    assert_int_equal(heartbeat(b, "g", str_of(ids[0]), g), KERR_REBALANCE_IN_PROGRESS);
    bench_restart(b);
    assert_true(cmember_of(b, "g", ids[0])->classic);
    for (int i = 0; i < 2; i++) {
        const char *owned = i ? "t2,t3" : "t0,t1";
        struct joined j = JOIN_CLASSIC("t", owned, .member = ids[i]);
        assert_int_equal(j.error, KERR_NONE);
        enum kerr e;
        const char *left = synced(ids[i], j.generation, &e);
        assert_int_equal(e, KERR_NONE);
        if (strlen(left) < 5) { /* it was asked to give up, and does */
            assert_int_equal(heartbeat(b, "g", str_of(ids[i]), j.generation),
                             KERR_REBALANCE_IN_PROGRESS);
            j = JOIN_CLASSIC("t", left, .member = ids[i]);
            assert_int_equal(j.generation, g + 1);
            expect_sync(ids[i], j.generation, left);
        }
        assert_int_equal(heartbeat(b, "g", str_of(ids[i]), j.generation), KERR_NONE);
    }
    struct beat_answer n = BEAT(b, .member = "N", .epoch = g + 1);
    assert_int_equal(strlen(n.parts), 5); /* "N" comes before them: two of four */
    assert_string_equal(cstate_of(b, "g"), "Stable");
    free_ids(ids, 2);
}

static void parked_members_are_told_to_come_again(void **state)
{
    char *ids[2];
    int32_t g = classic_group(2, (const char *const[]){"t0,t1", "t2,t3"}, ids);
    struct call *j = JOIN(b, .member = ids[0], .metadata = subscription("tu", ""));
    assert_false(j->done);
    assert_int_equal(BEAT(b, .member = "N").epoch, g + 1);
    assert_int_equal(join_end(j).error, KERR_REBALANCE_IN_PROGRESS);
    free_ids(ids, 2);
}

/* ---- members of the classic protocol ---- */

static void a_classic_member_joins(void **state)
{
    BEAT(b, .member = "A");
    struct joined j = JOIN_CLASSIC("t", "", .version = 9);
    assert_int_equal(j.error, KERR_MEMBER_ID_REQUIRED);
    j = JOIN_CLASSIC("t", "", .member = j.id);
    assert_int_equal(j.error, KERR_NONE);
    assert_int_equal(j.generation, 2);
    expect_sync(j.id, 2, "");
    assert_int_equal(heartbeat(b, "g", str_of(j.id), 2), KERR_NONE); /* A has all still */
    BEAT(b, .member = "A", .epoch = 1);
    BEAT(b, .member = "A", .epoch = 1, .owned = "t0,t1");
    assert_int_equal(heartbeat(b, "g", str_of(j.id), 2), KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(JOIN_CLASSIC("t", "", .member = j.id).generation, 2);
    expect_sync(j.id, 2, "t2,t3");
    assert_string_equal(cstate_of(b, "g"), "Stable");
    assert_int_equal(heartbeat(b, "g", str_of(j.id), 2), KERR_NONE);
    /* identity and generation */
    enum kerr e;
    synced(j.id, 1, &e);
    assert_int_equal(e, KERR_ILLEGAL_GENERATION);
    synced("A", 2, &e);
    assert_int_equal(e, KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(heartbeat(b, "g", str_of(j.id), 1), KERR_ILLEGAL_GENERATION);
    assert_int_equal(heartbeat(b, "g", STR_LIT("A"), 2), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(b, "g", STR_LIT("A")), KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit_error(COMMIT(b, .version = 8, .member = j.id, .generation = 2)),
                     KERR_NONE);
    assert_int_equal(commit_error(COMMIT(b, .version = 8, .member = j.id, .generation = 1)),
                     KERR_ILLEGAL_GENERATION);
    /* its session is its own */
    bench_advance(b, 9999);
    assert_non_null(cmember_of(b, "g", j.id));
    bench_advance(b, 1);
    assert_null(cmember_of(b, "g", j.id));
}

static void a_classic_static_member(void **state)
{
    BEAT(b, .member = "A");
    struct joined j = JOIN_CLASSIC("t", "", .instance = "i");
    assert_int_equal(j.error, KERR_NONE);
    struct joined again = JOIN_CLASSIC("t", "", .instance = "i");
    assert_int_equal(again.error, KERR_NONE);
    assert_string_not_equal(again.id, j.id);
    assert_int_equal(heartbeat_as(b, "g", str_of(j.id), "i", j.generation),
                     KERR_FENCED_INSTANCE_ID);
    assert_int_equal(JOIN_CLASSIC("t", "", .instance = "i", .member = j.id).error,
                     KERR_FENCED_INSTANCE_ID);
    assert_int_equal(JOIN_CLASSIC("t", "", .instance = "k", .member = j.id).error,
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 2);
    /* it learns the new protocol */
    struct beat_answer r = BEAT(b, .member = "new", .instance = "i");
    assert_int_equal(r.error, KERR_NONE);
    assert_int_equal(cgroup_of(b, "g")->classic_n, 0);
    int16_t error = -1;
    cgroup_leave(group_shard_find(b->shard, STR_LIT("g")),
                 &(struct cleaving){STR_LIT(""), STR_LIT("i"), &error}, 1);
    assert_int_equal(error, KERR_NONE);
    bench_run(b);
    assert_int_equal(cgroup_members_n(cgroup_of(b, "g")), 1);
}

/* Found by fuzzing: what it must give up is waited for as before. */
static void one_that_must_give_up_learns_the_new_protocol(void **state)
{
    char *ids[1];
    int32_t g = classic_group(1, (const char *const[]){"t0,t1,t2,t3"}, ids);
    EXPECT_BEAT(BEAT(b, .member = "N"), g + 1, "");
    assert_int_equal(JOIN_CLASSIC("t", "t0,t1,t2,t3", .member = ids[0]).error, KERR_NONE);
    assert_int_equal(cmember_of(b, "g", ids[0])->state, CMEMBER_UNREVOKED);
    assert_int_equal(BEAT(b, .member = ids[0], .epoch = g).error, KERR_NONE);
    assert_false(cmember_of(b, "g", ids[0])->classic);
    for (int i = 0; i < 3; i++) {
        bench_advance(b, 20000 - (i == 2));
        assert_int_equal(BEAT(b, .member = ids[0], .epoch = g).error, KERR_NONE);
        BEAT(b, .member = "N", .epoch = g + 1);
    }
    bench_advance(b, 1);
    assert_null(cmember_of(b, "g", ids[0]));
    EXPECT_BEAT(BEAT(b, .member = "N", .epoch = g + 1), g + 2, "t0-3");
    free_ids(ids, 1);
}

static void joins_that_cannot_be(void **state)
{
    BEAT(b, .member = "A");
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "X", .type = "connect").error,
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join_end(JOIN(b, .member = "X")).error, /* metadata that is none */
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "X").error, KERR_NONE);
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "Y", .protocols = {"sticky"}).error,
                     KERR_INCONSISTENT_GROUP_PROTOCOL);
    b->config.consumers.max_size = 2;
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "Y").error, KERR_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "X").error, KERR_NONE);
}

static void who_does_not_sync_or_join_is_fenced(void **state)
{
    BEAT(b, .member = "A");
    JOIN_CLASSIC("t", "", .member = "X", .session_ms = 30000, .rebalance_ms = 10000);
    bench_advance(b, 10000);
    assert_null(cmember_of(b, "g", "X"));
    BEAT(b, .member = "A", .epoch = 1);
    struct joined j =
        JOIN_CLASSIC("t", "", .member = "X", .session_ms = 30000, .rebalance_ms = 10000);
    enum kerr e;
    synced("X", j.generation, &e);
    bench_advance(b, 20000);
    assert_int_equal(heartbeat(b, "g", STR_LIT("X"), j.generation), KERR_NONE);
    BEAT(b, .member = "A", .epoch = 3, .names = "tu");
    BEAT(b, .member = "B");
    assert_int_equal(heartbeat(b, "g", STR_LIT("X"), j.generation), KERR_REBALANCE_IN_PROGRESS);
    bench_advance(b, 9999);
    assert_int_equal(heartbeat(b, "g", STR_LIT("X"), j.generation), KERR_REBALANCE_IN_PROGRESS);
    bench_advance(b, 1);
    assert_null(cmember_of(b, "g", "X"));
}

/* ---- downgrade ---- */

static void the_last_new_member_leaves_a_classic_group(void **state)
{
    BEAT(b, .member = "A");
    struct joined j = JOIN_CLASSIC("t", "", .member = "X", .rebalance_ms = 20000);
    enum kerr e;
    synced("X", j.generation, &e);
    call_free(COMMIT(b, .version = 8, .member = "X", .generation = j.generation, .offset = 3));
    assert_int_equal(BEAT(b, .member = "A", .epoch = -1).error, KERR_NONE);
    assert_null(cgroup_of(b, "g"));
    assert_string_equal(state_of(b, "g"), "PreparingRebalance"); /* at once */
    assert_int_equal(heartbeat(b, "g", STR_LIT("X"), j.generation), KERR_REBALANCE_IN_PROGRESS);
    struct call *c = JOIN(b, .member = "X", .metadata = subscription("t", ""));
    assert_true(c->done);
    assert_int_equal(c->out.join.error_code, KERR_NONE);
    assert_int_equal(c->out.join.generation_id, j.generation + 1);
    assert_true(str_eqz(c->out.join.leader, "X"));
    call_free(c);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 3);
    bench_restart(b);
    assert_null(cgroup_of(b, "g"));
    /* its leader had not shared out: what A had would be nobody's for ever */
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
    assert_int_equal(heartbeat(b, "g", STR_LIT("X"), j.generation), KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(fetch_one(b, "g", "t", 0, false, NULL), 3);
    c = JOIN(b, .member = "X", .metadata = subscription("t", ""));
    assert_true(c->done);
    assert_int_equal(c->out.join.error_code, KERR_NONE);
    int32_t again = c->out.join.generation_id;
    call_free(c);
    call_free(sync_one(b, "g", STR_LIT("X"), again));
    bench_restart(b);
    assert_string_equal(state_of(b, "g"), "Stable"); /* and now it has */
}

/* An administrator removes it by its instance, and with it one that is not there: what LeaveGroup
 * says of them is what it found, not what is true after the downgrade. */
static void the_last_new_member_is_removed_from_a_classic_group(void **state)
{
    static const char *const instances[] = {"i", "none"};
    BEAT(b, .member = "A", .instance = "i");
    JOIN_CLASSIC("t", "", .member = "X", .session_ms = 60000);
    struct call *c = call_new(GROUP_LEAVE, 5);
    c->in.leave.group_id = STR_LIT("g");
    c->in.leave.members.v = leave_group_request_member_new(&c->arena, 2);
    for (int i = 0; i < 2; i++) {
        c->in.leave.members.v[i].member_id = STR_LIT("");
        c->in.leave.members.v[i].group_instance_id = str_of(instances[i]);
    }
    c->in.leave.members.n = 2;
    bench_submit(b, c);
    assert_true(c->done);
    assert_int_equal(c->out.leave.error_code, KERR_NONE);
    assert_int_equal(c->out.leave.members.n, 2);
    assert_int_equal(c->out.leave.members.v[0].error_code, KERR_NONE);
    assert_int_equal(c->out.leave.members.v[1].error_code, KERR_UNKNOWN_MEMBER_ID);
    for (int i = 0; i < 2; i++)
        assert_true(str_eqz(c->out.leave.members.v[i].group_instance_id, instances[i]));
    call_free(c);
    assert_null(cgroup_of(b, "g"));
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
}

/* What it was to give up it has still: a group that goes to and fro knows that. */
static void members_come_back_with_what_they_have(void **state)
{
    char *ids[1];
    int32_t g = classic_group(1, (const char *const[]){"t0-3"}, ids);
    EXPECT_BEAT(BEAT(b, .member = "A"), g + 1, "");
    assert_int_equal(BEAT(b, .member = "A", .epoch = -1).error, KERR_NONE);
    assert_null(cgroup_of(b, "g"));
    assert_string_equal(BEAT(b, .member = "B").parts, "");
    assert_string_equal(parts_text(&cmember_of(b, "g", ids[0])->assigned), "t0,t1,t2,t3");
    /* also what it has begun to give up, and in the log */
    struct joined j = JOIN_CLASSIC("t", "t0-3", .member = ids[0], .rebalance_ms = 20000);
    assert_int_equal(j.error, KERR_NONE);
    assert_int_equal(cmember_of(b, "g", ids[0])->revoking.n, 2);
    assert_int_equal(BEAT(b, .member = "B", .epoch = -1).error, KERR_NONE);
    assert_null(cgroup_of(b, "g"));
    bench_restart(b);
    assert_string_equal(BEAT(b, .member = "C").parts, "");
    assert_string_equal(parts_text(&cmember_of(b, "g", ids[0])->assigned), "t0,t1,t2,t3");
    free_ids(ids, 1);
}

static void the_last_new_member_falls_silent(void **state)
{
    BEAT(b, .member = "A");
    JOIN_CLASSIC("t", "", .member = "X", .session_ms = 60000);
    enum kerr e;
    synced("X", 2, &e);
    bench_advance(b, 45000);
    assert_null(cgroup_of(b, "g"));
    assert_string_equal(state_of(b, "g"), "PreparingRebalance");
}

static void no_downgrade_where_the_policy_says_no(void **state)
{
    b->config.consumers.downgrade = false;
    BEAT(b, .member = "A");
    JOIN_CLASSIC("t", "", .member = "X");
    BEAT(b, .member = "A", .epoch = -1);
    assert_non_null(cgroup_of(b, "g"));
    assert_int_equal(cgroup_of(b, "g")->classic_n, 1);
    assert_int_equal(heartbeat(b, "g", STR_LIT("X"), 2), KERR_REBALANCE_IN_PROGRESS);
    assert_int_equal(JOIN_CLASSIC("t", "", .member = "X").generation, 3);
    expect_sync("X", 3, "t0-3");
    /* nor when the group would be too large */
    b->config.consumers.downgrade = true;
    b->config.max_size = 0;
    BEAT(b, .member = "B");
    BEAT(b, .member = "B", .epoch = -1);
    assert_non_null(cgroup_of(b, "g"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
UNIT_MAIN(TEST(an_empty_group_takes_either_protocol), TEST(offsets_alone_take_either_protocol),
          TEST(refused_where_the_policy_says_no), TEST(refused_when_members_cannot_be_read),
          TEST(members_go_over_with_what_they_have), TEST(parked_members_are_told_to_come_again),
          TEST(a_classic_member_joins), TEST(a_classic_static_member),
          TEST(one_that_must_give_up_learns_the_new_protocol), TEST(joins_that_cannot_be),
          TEST(who_does_not_sync_or_join_is_fenced),
          TEST(the_last_new_member_leaves_a_classic_group),
          TEST(the_last_new_member_is_removed_from_a_classic_group),
          TEST(members_come_back_with_what_they_have), TEST(the_last_new_member_falls_silent),
          TEST(no_downgrade_where_the_policy_says_no))
