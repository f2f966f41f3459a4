/* Requests of both protocols at one group, sensible and not, in any order: it changes sides now and
 * then, restarts, loses writes. Whatever is asked is answered in the end, and all invariants hold
 * after each step. */
#include "base/logline.h"
#include "cgroup_bench.h"
#include "protocol/msg/consumer_protocol.h"

enum { STEPS = 600, WALKS = 120, PARKED_MAX = 64 };

static struct bench *b;
static uint32_t seed;
static struct call *parked[PARKED_MAX];
static int parked_n;

static uint32_t chance(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static const char *any_of(const char *const *v, uint32_t n)
{
    return v[chance(n)];
}

static const char *any_member(void)
{
    static const char *const ids[] = {"A", "B", "C", "D", "", "X"};
    return any_of(ids, 6);
}

static const char *any_instance(void)
{
    static const char *const ids[] = {NULL, NULL, NULL, "i", "k", ""};
    return any_of(ids, chance(8) ? 5 : 6);
}

/* Mostly what the group is at. */
static int32_t any_epoch(void)
{
    struct group *g = group_shard_find(b->shard, STR_LIT("g"));
    int32_t now = !g                   ? 0
                  : group_consumers(g) ? cgroup_epoch(group_consumers(g))
                                       : group_generation(g);
    return chance(3) ? now - (int32_t)chance(2) : (int32_t)chance(6) - 2;
}

static void keep(struct call *c)
{
    if (c->done) {
        call_free(c);
        return;
    }
    if (parked_n == PARKED_MAX) {
        group_call_abandon(&parked[0]->c);
        bench_run(b);
    }
    for (int i = 0; i < parked_n; i++)
        if (parked[i]->done) {
            call_free(parked[i]);
            parked[i--] = parked[--parked_n];
        }
    assert_true(parked_n < PARKED_MAX);
    parked[parked_n++] = c;
}

/* Names of topics, or bytes that are no subscription. */
static struct bytes any_metadata(struct call *c)
{
    struct consumer_protocol_subscription v;
    struct writer w = WRITER_INIT;
    struct str names[] = {STR_LIT("t"), STR_LIT("u"), STR_LIT("none")};
    if (chance(12) == 0)
        return (struct bytes){(const uint8_t *)"meta", 4};
    consumer_protocol_subscription_init(&v);
    v.topics = (typeof(v.topics)){names, (int32_t)chance(4)};
    buf_put_i16(&w.buf, (int16_t)chance(5));
    consumer_protocol_subscription_encode(&v, 0, &w);
    struct str copy = arena_str(&c->arena, (struct str){(char *)w.buf.p, (int32_t)w.buf.len});
    writer_free(&w);
    return (struct bytes){(const uint8_t *)copy.p, copy.len};
}

static void any_join(void)
{
    static const char *const types[] = {"consumer", "consumer", "consumer", "consumer", "connect"};
    static const char *const names[] = {"range", "range", "range", "sticky"};
    struct call *c = call_new(GROUP_JOIN, (int)chance(10));
    struct join_group_request *in = &c->in.join;
    int32_t n = 1 + (int32_t)chance(2);
    in->group_id = STR_LIT("g");
    in->member_id = str_of(any_member());
    in->group_instance_id = c->c.version >= 5 ? str_of(any_instance()) : STR_NULL;
    in->protocol_type = str_of(any_of(types, 5));
    in->session_timeout_ms = 6000 + (int32_t)chance(30000);
    in->rebalance_timeout_ms = (int32_t)chance(20000);
    in->protocols.v = arena_array(&c->arena, struct join_group_request_protocol, (size_t)n);
    in->protocols.n = n;
    for (int i = 0; i < n; i++) {
        in->protocols.v[i].name = str_of(any_of(names, 4));
        in->protocols.v[i].metadata = any_metadata(c);
    }
    keep(bench_submit(b, c));
}

static void any_sync(void)
{
    struct call *c = call_new(GROUP_SYNC, 3);
    struct sync_group_request_assignment *v =
        arena_array(&c->arena, struct sync_group_request_assignment, 1);
    v->member_id = str_of(any_member());
    v->assignment = (struct bytes){(const uint8_t *)"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0", 17};
    if (chance(2))
        v->assignment = (struct bytes){(const uint8_t *)"x", 1};
    c->in.sync.group_id = STR_LIT("g");
    c->in.sync.member_id = str_of(any_member());
    c->in.sync.group_instance_id = str_of(any_instance());
    c->in.sync.generation_id = any_epoch();
    c->in.sync.assignments.v = v;
    c->in.sync.assignments.n = (int32_t)chance(2);
    keep(bench_submit(b, c));
}

static void any_beat(void)
{
    static const char *const names[] = {"t", "tu", "u", "", NULL};
    static const char *const owned[] = {"", "t0", "t0,t1", "u0", NULL, NULL};
    static const char *const assignors[] = {NULL, NULL, "range", "uniform", "none"};
    static const char *const patterns[] = {NULL, NULL, NULL, "[tu]", "", "("};
    int32_t epoch = chance(3) ? any_epoch() : 0;
    keep(beat_with(b, (struct beat_args){.version = (int)chance(2),
                                         .member = any_member(),
                                         .instance = any_instance(),
                                         .epoch = epoch,
                                         .bare = epoch == 0 && chance(8) == 0,
                                         .names = any_of(names, 5),
                                         .owned = epoch == 0 ? NULL : any_of(owned, 6),
                                         .assignor = any_of(assignors, chance(8) ? 4 : 5),
                                         .regex = any_of(patterns, chance(8) ? 5 : 6),
                                         .rebalance_ms = (int)chance(20000)}));
}

static void any_commit(void)
{
    keep(COMMIT(b, .version = chance(2) ? 9 : 8, .member = any_member(), .generation = any_epoch(),
                .exactly = true, .offset = chance(100)));
}

static void shake(void)
{
    static const char *const topics[] = {"t:1", "t:3", "u:2", "u:0", "t:0", "u:4"};
    switch (chance(8)) {
    case 0:
        bench_restart(b);
        break;
    case 1:
        bench_topics(b, any_of(topics, 6));
        break;
    case 2:
        b->log.next_error = chance(2) ? KERR_MESSAGE_TOO_LARGE : KERR_NOT_ENOUGH_REPLICAS;
        break;
    case 3:
        b->config.consumers.upgrade = chance(2);
        b->config.consumers.downgrade = chance(2);
        break;
    case 4:
        b->config.consumers.max_size = chance(3) ? INT32_MAX : 2;
        break;
    case 5:
        delete_group(b, "g");
        break;
    default:
        bench_advance(b, (int64_t)chance(15000));
    }
}

static void step(void)
{
    int32_t home = key_partition(STR_LIT("g"), BENCH_PARTITIONS);
    switch (chance(12)) {
    case 0:
    case 1:
    case 2:
        any_join();
        break;
    case 3:
        any_sync();
        break;
    case 4:
        heartbeat_as(b, "g", str_of(any_member()), any_instance(), any_epoch());
        break;
    case 5:
        if (chance(2))
            leave(b, "g", str_of(any_member()));
        break;
    case 6:
        any_commit();
        break;
    case 7:
        shake();
        break;
    default:
        any_beat();
    }
    bench_run(b);
    struct call *probe = COMMIT(b, .group = "g", .version = 9, .member = "nobody", .generation = 1);
    bool loading = commit_error(probe) == KERR_COORDINATOR_LOAD_IN_PROGRESS;
    if (loading)
        bench_finish_load(b, home);
    bench_run(b);
}

static void walk(uint32_t n)
{
    seed = n * 104729u + 3;
    b = bench_new();
    b->config.initial_delay_ms = chance(2) ? 0 : 3000;
    bench_topics(b, "t:3 u:2");
    for (int i = 0; i < STEPS; i++)
        step();
    group_shard_resigned(b->shard, key_partition(STR_LIT("g"), BENCH_PARTITIONS), 1);
    bench_run(b);
    for (int i = 0; i < parked_n; i++)
        call_free(parked[i]); /* all are answered */
    parked_n = 0;
    bench_free(b);
}

static void any_requests(void **state)
{
    logline_set_level(LOGLINE_FATAL);
    for (uint32_t n = 0; n < WALKS; n++)
        walk(n);
}

UNIT_MAIN(unit_test(any_requests))
