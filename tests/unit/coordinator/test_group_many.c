/* test_group_many.c - large numbers, and a long random life: whatever clients do, every call is
 * answered once, the invariants hold after each step, and what was acknowledged is there after a
 * restart. */
#include "base/logline.h"
#include "coordinator/group_private.h"
#include "group_bench.h"

/* A bench_check after each of 10,000 calls would look at all members each time. */
static struct call *submit_unchecked(struct bench *b, struct call *c)
{
    group_shard_handle(b->shard, &c->c);
    return c;
}

static struct call *quick_join(struct bench *b, struct str member, int version)
{
    struct call *c = call_new(GROUP_JOIN, version);
    static struct join_group_request_protocol range = {.name = {"range", 5},
                                                       .metadata = {(const uint8_t *)"m", 1}};
    c->in.join.group_id = STR_LIT("g");
    c->in.join.member_id = member;
    c->in.join.session_timeout_ms = 60000;
    c->in.join.rebalance_timeout_ms = 60000;
    c->in.join.protocol_type = STR_LIT("consumer");
    c->in.join.protocols.v = &range;
    c->in.join.protocols.n = 1;
    return submit_unchecked(b, c);
}

static void ten_thousand_members_join_at_once(void **state)
{
    enum { N = 10000 };
    struct bench *b = bench_new();
    struct call **c = calloc(N, sizeof(*c)), **syncs = calloc(N, sizeof(*syncs));
    struct str *ids = calloc(N, sizeof(*ids));
    for (int i = 0; i < N; i++)
        c[i] = quick_join(b, STR_LIT(""), 3);
    bench_advance(b, 60000);
    int leader = -1;
    for (int i = 0; i < N; i++) {
        assert_true(c[i]->done);
        assert_int_equal(c[i]->out.join.generation_id, 1);
        ids[i] = c[i]->out.join.member_id;
        if (str_eq(ids[i], c[i]->out.join.leader))
            leader = i;
    }
    assert_int_equal(c[leader]->out.join.members.n, N);
    for (int i = 0; i < N; i++) {
        syncs[i] = call_new(GROUP_SYNC, 5);
        syncs[i]->in.sync.group_id = STR_LIT("g");
        syncs[i]->in.sync.member_id = ids[i];
        syncs[i]->in.sync.generation_id = 1;
        if (i == leader) {
            struct sync_group_request_assignment *v =
                arena_array(&syncs[i]->arena, struct sync_group_request_assignment, N);
            for (int k = 0; k < N; k++)
                v[k] = (struct sync_group_request_assignment){ids[k], {(const uint8_t *)"x", 1}};
            syncs[i]->in.sync.assignments.v = v;
            syncs[i]->in.sync.assignments.n = N;
        }
        submit_unchecked(b, syncs[i]);
    }
    bench_run(b);
    for (int i = 0; i < N; i++)
        assert_int_equal(syncs[i]->out.sync.assignment.len, 1);
    assert_string_equal(state_of(b, "g"), "Stable");
    bench_restart(b);
    assert_int_equal(group_members_n(group_shard_find(b->shard, STR_LIT("g"))), N);
    bench_advance(b, 60000); /* and all are silent */
    assert_string_equal(state_of(b, "g"), "Empty");
    for (int i = 0; i < N; i++) {
        call_free(c[i]);
        call_free(syncs[i]);
    }
    free(c);
    free(syncs);
    free(ids);
    bench_free(b);
}

static void a_thousand_protocols(void **state)
{
    enum { N = 1000, MEMBERS = 20 };
    struct bench *b = bench_new();
    struct call *c[MEMBERS];
    static char names[N][16];
    for (int i = 0; i < N; i++)
        snprintf(names[i], sizeof(names[i]), "p%d", i);
    for (int m = 0; m < MEMBERS; m++) {
        c[m] = call_new(GROUP_JOIN, 3);
        struct join_group_request *in = &c[m]->in.join;
        in->group_id = STR_LIT("g");
        in->session_timeout_ms = in->rebalance_timeout_ms = 60000;
        in->protocol_type = STR_LIT("consumer");
        in->protocols.v = arena_array(&c[m]->arena, struct join_group_request_protocol, N);
        in->protocols.n = N;
        for (int i = 0; i < N; i++) /* each has another order; the last one offers only one */
            in->protocols.v[i] = (struct join_group_request_protocol){
                .name = str_of(names[m == MEMBERS - 1 ? 999 : (i + 50 * m) % N]),
                .metadata = {(const uint8_t *)"m", 1}};
        submit_unchecked(b, c[m]);
    }
    bench_advance(b, 60000);
    for (int m = 0; m < MEMBERS; m++) {
        assert_true(str_eqz(c[m]->out.join.protocol_name, "p999"));
        call_free(c[m]);
    }
    bench_free(b);
}

/* ---- a random life ---- */

enum { STEPS = 6000, KNOWN = 12, OPEN = 400, PARTS = 5 };

struct life {
    struct bench *b;
    uint64_t seed;
    char *known[KNOWN]; /* member ids that were told some time */
    struct call *open[OPEN];
    int open_n;
    int64_t acknowledged[PARTS], asked[PARTS]; /* newest offset committed in "simple" */
};

static unsigned dice(struct life *l, unsigned n)
{
    l->seed = l->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(l->seed >> 33) % n;
}

static const char *some_member(struct life *l)
{
    const char *m = l->known[dice(l, KNOWN)];
    return m && dice(l, 10) ? m : "";
}

static const char *some_instance(struct life *l)
{
    static const char *const names[] = {NULL, NULL, NULL, "i", "j"};
    return names[dice(l, 5)];
}

static void learn(struct life *l, struct str id)
{
    int at = (int)dice(l, KNOWN);
    if (id.len == 0)
        return;
    free(l->known[at]);
    l->known[at] = str_dup(id);
}

/* Closes what is answered. */
static void collect(struct life *l)
{
    int kept = 0;
    for (int i = 0; i < l->open_n; i++) {
        struct call *c = l->open[i];
        if (!c->done) {
            l->open[kept++] = c;
            continue;
        }
        if (c->c.api == GROUP_JOIN)
            learn(l, c->out.join.member_id);
        if (c->c.api == GROUP_COMMIT && str_eqz(c->in.commit.group_id, "simple") &&
            c->out.commit.topics.v[0].partitions.v[0].error_code == KERR_NONE) {
            const struct offset_commit_request_partition *p =
                &c->in.commit.topics.v[0].partitions.v[0];
            if (p->committed_offset > l->acknowledged[p->partition_index])
                l->acknowledged[p->partition_index] = p->committed_offset;
        }
        call_free(c);
    }
    l->open_n = kept;
}

static void keep(struct life *l, struct call *c)
{
    assert_true(l->open_n < OPEN);
    l->open[l->open_n++] = c;
}

static void step_join(struct life *l)
{
    static const char *const clients[] = {"a", "b"};
    struct join_args a = {.version = (int)dice(l, 10),
                          .version_0 = true,
                          .client = clients[dice(l, 2)],
                          .session_ms = 6000 + (int)dice(l, 20000),
                          .rebalance_ms = (int)dice(l, 40000)};
    char *member = str_dup(str_of(some_member(l)));
    a.member = member;
    a.instance = a.version >= 5 ? some_instance(l) : NULL;
    a.protocols[0] = dice(l, 8) ? "range" : "sticky";
    a.protocols[1] = dice(l, 3) ? "range" : NULL;
    struct call *c = join_with(l->b, a);
    c->in.join.member_id = arena_str(&c->arena, str_of(member));
    free(member);
    keep(l, c);
}

static int32_t generation_now(struct life *l)
{
    struct group *g = group_shard_find(l->b->shard, STR_LIT("g"));
    return (g ? group_generation(g) : 0) - (dice(l, 8) == 0);
}

static void step_sync(struct life *l)
{
    struct str names[KNOWN];
    int n = 0;
    for (int i = 0; i < KNOWN; i++)
        if (l->known[i])
            names[n++] = str_of(l->known[i]);
    struct group *g = group_shard_find(l->b->shard, STR_LIT("g"));
    bool leads = g && g->leader && dice(l, 2);
    char *id = str_dup(leads ? g->leader->id : str_of(some_member(l)));
    char *instance = leads ? str_dup(g->leader->instance) : str_dup(str_of(some_instance(l)));
    int32_t generation = leads ? g->generation : generation_now(l);
    struct call *c = sync_all(l->b, "g", str_of(id), instance, generation, names, n, "share");
    c->in.sync.group_instance_id = STR_NULL;
    free(id);
    free(instance);
    keep(l, c);
}

static void step_commit(struct life *l)
{
    bool simple = dice(l, 2);
    int p = (int)dice(l, PARTS);
    struct call *c =
        COMMIT(l->b, .group = simple ? "simple" : "g", .member = simple ? "" : some_member(l),
               .generation = simple ? -1 : generation_now(l), .exactly = !simple, .partition = p,
               .offset = simple ? ++l->asked[p] : 1);
    c->in.commit.member_id = STR_LIT("");
    keep(l, c);
}

static void step(struct life *l)
{
    struct bench *b = l->b;
    static const enum kerr errors[] = {KERR_NOT_ENOUGH_REPLICAS, KERR_REQUEST_TIMED_OUT,
                                       KERR_NOT_LEADER_OR_FOLLOWER, KERR_MESSAGE_TOO_LARGE};
    switch (dice(l, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        step_join(l);
        break;
    case 4:
    case 5:
    case 6:
        step_sync(l);
        break;
    case 7:
        step_commit(l);
        break;
    case 8:
        heartbeat_as(b, "g", str_of(some_member(l)), some_instance(l), generation_now(l));
        break;
    case 9:
        if (dice(l, 3) == 0)
            leave(b, "g", str_of(some_member(l)));
        break;
    case 10:
        if (dice(l, 4) == 0)
            b->log.next_error = errors[dice(l, 4)];
        break;
    case 11:
        b->log.hold = true;
        break;
    case 12:
        bench_release(b, dice(l, 4) ? KERR_NONE : errors[dice(l, 2)]);
        break;
    case 13:
        bench_advance(b, dice(l, 9000));
        break;
    case 14:
        if (l->open_n)
            group_call_abandon(&l->open[dice(l, (unsigned)l->open_n)]->c);
        bench_check(b);
        break;
    default:
        if (dice(l, 12) == 0) {
            bench_release(b, KERR_NONE);
            bench_restart(b);
        } else {
            bench_advance(b, dice(l, 500));
        }
    }
}

static void live(uint64_t seed)
{
    struct life l = {.b = bench_new(), .seed = seed};
    for (int p = 0; p < PARTS; p++)
        l.acknowledged[p] = -1;
    for (int i = 0; i < STEPS; i++) {
        step(&l);
        collect(&l);
        while (l.open_n > OPEN - 2) {
            bench_release(l.b, KERR_NONE);
            bench_advance(l.b, 60000);
            collect(&l);
        }
    }
    bench_release(l.b, KERR_NONE);
    l.b->log.next_error = KERR_NONE;
    bench_restart(l.b);
    collect(&l);
    assert_int_equal(l.open_n, 0); /* every call was answered */
    for (int p = 0; p < PARTS; p++) {
        int64_t offset = fetch_one(l.b, "simple", "t", p, true, NULL);
        assert_true(offset >= l.acknowledged[p] && offset <= l.asked[p]);
    }
    for (int i = 0; i < KNOWN; i++)
        free(l.known[i]);
    bench_free(l.b);
}

static void random_lives(void **state)
{
    const char *given = getenv("KAFKAD_TEST_SEED");
    uint64_t first = given ? strtoull(given, NULL, 0) : 1;
    logline_set_level(LOGLINE_FATAL);
    for (uint64_t seed = first; seed < first + (given ? 1 : 20); seed++)
        live(seed);
}

UNIT_MAIN(unit_test(ten_thousand_members_join_at_once), unit_test(a_thousand_protocols),
          unit_test(random_lives))
