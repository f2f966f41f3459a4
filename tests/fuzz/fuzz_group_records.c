/* fuzz_group_records.c - a partition of __consumer_offsets with any content: what loads becomes
 * groups whose invariants hold, and which their members, strangers and tools can use like any
 * other, whatever states a damaged log gave them.
 *
 * INPUT  record batches; their checksums are made right first. Of some inputs the log takes what
 *        the groups write, and after all is over it is loaded once more; of others it refuses all,
 *        so that each change makes the shard load anew.
 *
 * Rooms: coordinator */
#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/logline.h"
#include "base/sim_executor.h"
#include "coordinator/cgroup_private.h"
#include "coordinator/group_loading.h"
#include "coordinator/group_shard_private.h"
#include "metadata/metadata_cache.h"
#include "protocol/batch_builder.h"
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/consumer_group_heartbeat.h"
#include "protocol/msg/delete_groups.h"
#include "protocol/msg/describe_groups.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/list_groups.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/sync_group.h"
#include "protocol/msg/update_metadata.h"

#include "fuzz_records.h"

enum { START_MS = 1700000000, GROUPS_USED = 4, MEMBERS_USED = 3, RELOADS_MAX = 20 };

/* ---- the log and the shard on it ---- */

struct bench {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct group_log log;
    struct buf bytes; /* the input, and what was appended */
    bool accepts;
    int64_t next;
    struct group_config config;
    struct metadata_cache *metadata;
    atomic_ullong version;
    struct group_shard *shard;
    uint64_t wanted; /* a load; 0 = none */
    int loads;
};

static void write_batch(struct bench *b, const struct group_record *r, int n)
{
    struct group_key k;
    for (int i = 0; i < n; i++)
        must(group_key_decode(r[i].key, &k) == 0);
    records_append(&b->bytes, &b->next, START_MS, r, n);
}

static void appended(struct task *t)
{
    struct group_append *a = container_of(t, struct group_append, task);
    a->done(a);
}

static void append(struct group_log *log, struct group_append *a, const struct group_record *r,
                   int n)
{
    struct bench *b = container_of(log, struct bench, log);
    a->error = b->accepts ? KERR_NONE : KERR_NOT_LEADER_OR_FOLLOWER;
    a->base_offset = b->accepts ? b->next : -1;
    if (b->accepts)
        write_batch(b, r, n);
    task_init(&a->task, appended);
    executor_post(sim_executor_ex(b->sim), &a->task);
}

static enum kerr append_now(struct group_log *log, int32_t partition, const struct group_record *r,
                            int n)
{
    struct bench *b = container_of(log, struct bench, log);
    (void)partition;
    for (int i = 0; i < n; i++)
        must(r[i].value.len < 0);
    if (b->accepts)
        write_batch(b, r, n);
    return b->accepts ? KERR_NONE : KERR_NOT_LEADER_OR_FOLLOWER;
}

static void want_load(void *arg, int32_t partition, int32_t epoch, uint64_t load)
{
    (void)partition;
    (void)epoch;
    ((struct bench *)arg)->wanted = load;
}

static int add_batch(void *loading, const struct batch *b)
{
    return group_loading_add(loading, b);
}

/* The partition's groups as its bytes say now. */
static void load(struct bench *b)
{
    struct group_loading *l = group_loading_new(0);
    uint64_t number = b->wanted;
    must(l != NULL);
    b->wanted = 0;
    records_load(&b->bytes, add_batch, l);
    int n = group_loading_groups(l);
    struct group **groups = calloc((size_t)n + 1, sizeof(*groups));
    must(groups && group_loading_finish(l, group_shard_env(b->shard), groups) == 0);
    group_loading_free(l);
    group_shard_loaded(b->shard, 0, number, groups, n, 0);
    free(groups);
}

static void settle(struct bench *b)
{
    sim_executor_drain(b->sim);
    while (b->wanted && b->loads++ < RELOADS_MAX) {
        load(b);
        sim_executor_drain(b->sim);
    }
    const char *wrong = group_shard_check(b->shard);
    if (wrong)
        fprintf(stderr, "%s\n", wrong);
    must(!wrong);
}

/* The topics t and u, as the members in the corpus read them. */
static void know_topics(struct bench *b)
{
    static const int32_t replicas[] = {0};
    struct arena a;
    struct update_metadata_request r;
    arena_init(&a, 0);
    update_metadata_request_init(&r);
    r.topic_states.v = update_metadata_request_topic_state_new(&a, 2);
    for (r.topic_states.n = 0; r.topic_states.n < 2; r.topic_states.n++) {
        struct update_metadata_request_topic_state *t = &r.topic_states.v[r.topic_states.n];
        t->topic_name = r.topic_states.n ? STR_LIT("u") : STR_LIT("t");
        t->topic_id.b[0] = (uint8_t)t->topic_name.p[0];
        t->topic_id.b[15] = 1;
        t->partition_states.v = update_metadata_request_partition_state_new(&a, 3);
        for (int p = 0; p < 3; p++) {
            struct update_metadata_request_partition_state *s = &t->partition_states.v[p];
            s->partition_index = p;
            s->replicas.v = (int32_t *)replicas;
            s->replicas.n = 1;
            s->isr = (typeof(s->isr)){(int32_t *)replicas, 1};
        }
        t->partition_states.n = 3;
    }
    must(metadata_cache_update(b->metadata, &r) == 0);
    arena_free(&a);
}

static void start(struct bench *b, const uint8_t *p, size_t n)
{
    static const struct group_log_ops ops = {append, append_now};
    *b = (struct bench){.log = {&ops}, .next = 1 << 30, .accepts = n % 3 != 0};
    sim_clock_init(&b->clock, START_MS * 1000LL);
    b->sim = sim_executor_new(&b->clock);
    b->metadata = metadata_cache_new();
    must(b->sim && b->metadata);
    atomic_init(&b->version, 1);
    know_topics(b);
    b->config = (struct group_config){.min_session_ms = 1,
                                      .max_session_ms = INT32_MAX,
                                      .max_size = 3,
                                      .metadata_max = 100,
                                      .retention_ms = 1000,
                                      .versions = {3, 3}};
    b->config.consumers = (struct cgroup_config){.on = true,
                                                 .session_ms = 45000,
                                                 .heartbeat_ms = 5000,
                                                 .max_size = 3,
                                                 .upgrade = n % 2 != 0,
                                                 .downgrade = n % 5 != 0,
                                                 .assignors_n = 2};
    b->config.consumers.assignors[0] = assignor_find(STR_LIT("uniform"));
    b->config.consumers.assignors[1] = assignor_find(STR_LIT("range"));
    buf_put(&b->bytes, p, n);
    must(!b->bytes.failed);
    struct group_shard_options o = {.env = {.ex = sim_executor_ex(b->sim),
                                            .log = &b->log,
                                            .config = &b->config,
                                            .metadata = b->metadata,
                                            .metadata_version = &b->version},
                                    .partitions_n = 1,
                                    .shards = 1,
                                    .check_interval_ms = 1000000000000,
                                    .load = want_load,
                                    .arg = b};
    must(group_shard_new(&o, &b->shard) == 0);
    group_shard_elected(b->shard, 0, 0);
    settle(b);
}

static void end(struct bench *b)
{
    group_shard_shut_down(b->shard);
    sim_executor_drain(b->sim);
    group_shard_free(b->shard);
    sim_executor_free(b->sim);
    metadata_cache_free(b->metadata);
    buf_free(&b->bytes);
}

/* ---- requests ---- */

struct call {
    struct group_call c;
    struct arena arena;
    bool done;
};

static void call_done(struct group_call *c)
{
    struct call *call = container_of(c, struct call, c);
    must(!call->done && !c->no_memory);
    call->done = true;
}

static const struct {
    const struct msg_desc *in, *out;
    int version;
} apis[GROUP_APIS] = {
    [GROUP_JOIN] = {&join_group_request_desc, &join_group_response_desc, 9},
    [GROUP_SYNC] = {&sync_group_request_desc, &sync_group_response_desc, 5},
    [GROUP_HEARTBEAT] = {&heartbeat_request_desc, &heartbeat_response_desc, 4},
    [GROUP_LEAVE] = {&leave_group_request_desc, &leave_group_response_desc, 5},
    [GROUP_COMMIT] = {&offset_commit_request_desc, &offset_commit_response_desc, 9},
    [GROUP_FETCH] = {&offset_fetch_request_desc, &offset_fetch_response_desc, 9},
    [GROUP_LIST] = {&list_groups_request_desc, &list_groups_response_desc, 5},
    [GROUP_DESCRIBE] = {&describe_groups_request_desc, &describe_groups_response_desc, 5},
    [GROUP_DELETE] = {&delete_groups_request_desc, &delete_groups_response_desc, 2},
    [GROUP_CONSUMER_HEARTBEAT] = {&consumer_group_heartbeat_request_desc,
                                  &consumer_group_heartbeat_response_desc, 1},
    [GROUP_CONSUMER_DESCRIBE] = {&consumer_group_describe_request_desc,
                                 &consumer_group_describe_response_desc, 0},
};

/* The request, to be filled in. */
static void *call_begin(struct call *c, enum group_api api)
{
    *c = (struct call){0};
    arena_init(&c->arena, 64 << 20);
    void *in = arena_calloc(&c->arena, 1, apis[api].in->body->size);
    void *out = arena_calloc(&c->arena, 1, apis[api].out->body->size);
    must(in && out);
    msg_init(apis[api].in, in);
    msg_init(apis[api].out, out);
    c->c = (struct group_call){.api = api,
                               .version = apis[api].version,
                               .client_id = STR_LIT("client"),
                               .client_host = STR_LIT("/127.0.0.1"),
                               .in = in,
                               .out = out,
                               .arena = &c->arena,
                               .done = call_done};
    return in;
}

/* Asks and waits; what is parked is let go. Every answer can be encoded. */
static void call_run(struct bench *b, struct call *c)
{
    struct str id;
    struct writer w = WRITER_INIT;
    must(group_call_lay_out(&c->c));
    bool single = group_call_single(&c->c, &id);
    group_shard_handle(b->shard, &c->c);
    if (!single)
        call_done(&c->c);
    settle(b);
    if (!c->done)
        sim_executor_advance(b->sim, 10);
    settle(b);
    if (!c->done)
        group_call_abandon(&c->c);
    settle(b);
    must(c->done);
    msg_encode(apis[c->c.api].out, c->c.version, &w, c->c.out);
    must(!w.buf.failed && !w.unsupported);
    writer_free(&w);
    arena_free(&c->arena);
}

/* ---- what a member, known or not, does ---- */

struct who {
    struct str id, instance;
    int32_t epoch;
    const struct part_set *owned; /* NULL = says nothing */
};

static void heartbeat(struct bench *b, struct str group, const struct who *m, bool subscribes)
{
    struct call c;
    struct consumer_group_heartbeat_request *in = call_begin(&c, GROUP_CONSUMER_HEARTBEAT);
    static struct str names[] = {{"t", 1}, {"v", 1}};
    in->group_id = arena_str(&c.arena, group);
    in->member_id = arena_str(&c.arena, m->id);
    in->instance_id = arena_str(&c.arena, m->instance);
    in->member_epoch = m->epoch;
    in->topic_partitions.n = m->owned || m->epoch == 0 ? 0 : -1;
    in->subscribed_topic_names.n = -1;
    if (subscribes) {
        in->rebalance_timeout_ms = 60000;
        in->subscribed_topic_names.v = names;
        in->subscribed_topic_names.n = 2;
        in->subscribed_topic_regex = STR_LIT("u|t");
    }
    if (m->owned && m->owned->n > 0) {
        in->topic_partitions.v =
            consumer_group_heartbeat_request_topic_partition_new(&c.arena, m->owned->n);
        for (int i = 0; i < m->owned->n; i++) {
            in->topic_partitions.v[i].topic_id = m->owned->v[i].topic;
            in->topic_partitions.v[i].partitions.v = arena_new(&c.arena, int32_t);
            in->topic_partitions.v[i].partitions.v[0] = m->owned->v[i].partition;
            in->topic_partitions.v[i].partitions.n = 1;
        }
        in->topic_partitions.n = m->owned->n;
    }
    call_run(b, &c);
}

static void join(struct bench *b, struct str group, const struct who *m)
{
    /* version 1: topics t and u, no data, t-0 owned */
    static const uint8_t said[] = {0, 1, 0, 0, 0, 2, 0,   1, 't', 0, 1, 'u', 0, 0, 0, 0,
                                   0, 0, 0, 1, 0, 1, 't', 0, 0,   0, 1, 0,   0, 0, 0};
    static struct join_group_request_protocol protocols[] = {
        {.name = {"range", 5}, .metadata = {said, sizeof(said)}},
        {.name = {"", 0}, .metadata = {said, sizeof(said)}}};
    struct call c;
    struct join_group_request *in = call_begin(&c, GROUP_JOIN);
    in->group_id = arena_str(&c.arena, group);
    in->member_id = arena_str(&c.arena, m->id);
    in->group_instance_id = arena_str(&c.arena, m->instance);
    in->session_timeout_ms = 10000;
    in->rebalance_timeout_ms = 5;
    in->protocol_type = STR_LIT("consumer");
    in->protocols.v = protocols;
    in->protocols.n = 2;
    call_run(b, &c);
}

static void sync_and_beat(struct bench *b, struct str group, const struct who *m)
{
    struct call c;
    struct sync_group_request *sync = call_begin(&c, GROUP_SYNC);
    sync->group_id = arena_str(&c.arena, group);
    sync->member_id = arena_str(&c.arena, m->id);
    sync->group_instance_id = arena_str(&c.arena, m->instance);
    sync->generation_id = m->epoch;
    call_run(b, &c);
    struct heartbeat_request *beat = call_begin(&c, GROUP_HEARTBEAT);
    beat->group_id = arena_str(&c.arena, group);
    beat->member_id = arena_str(&c.arena, m->id);
    beat->group_instance_id = arena_str(&c.arena, m->instance);
    beat->generation_id = m->epoch;
    call_run(b, &c);
}

static void leave(struct bench *b, struct str group, const struct who *m)
{
    struct call c;
    struct leave_group_request *in = call_begin(&c, GROUP_LEAVE);
    in->group_id = arena_str(&c.arena, group);
    in->members.v = leave_group_request_member_new(&c.arena, 2);
    must(in->members.v != NULL);
    for (in->members.n = 0; in->members.n < 2; in->members.n++) { /* twice */
        in->members.v[in->members.n].member_id = arena_str(&c.arena, m->id);
        in->members.v[in->members.n].group_instance_id = arena_str(&c.arena, m->instance);
    }
    call_run(b, &c);
}

static void commit_and_fetch(struct bench *b, struct str group, const struct who *m)
{
    struct call c;
    struct offset_commit_request *in = call_begin(&c, GROUP_COMMIT);
    in->group_id = arena_str(&c.arena, group);
    in->member_id = arena_str(&c.arena, m->id);
    in->group_instance_id = arena_str(&c.arena, m->instance);
    in->generation_id_or_member_epoch = m->epoch;
    in->topics.v = offset_commit_request_topic_new(&c.arena, 1);
    in->topics.v[0].name = STR_LIT("t");
    in->topics.v[0].partitions.v = offset_commit_request_partition_new(&c.arena, 1);
    in->topics.v[0].partitions.n = in->topics.n = 1;
    in->topics.v[0].partitions.v[0].committed_offset = 7;
    call_run(b, &c);
    struct offset_fetch_request *fetch = call_begin(&c, GROUP_FETCH);
    fetch->groups.v = offset_fetch_request_group_new(&c.arena, 1);
    fetch->groups.n = 1;
    fetch->groups.v[0].group_id = arena_str(&c.arena, group);
    fetch->groups.v[0].topics.n = -1;
    fetch->require_stable = m->epoch % 2 == 0;
    call_run(b, &c);
}

/* ---- what tools do ---- */

static void describe(struct bench *b, struct str group)
{
    struct call c;
    struct str ids[] = {group};
    struct describe_groups_request *classic = call_begin(&c, GROUP_DESCRIBE);
    classic->groups = (typeof(classic->groups)){ids, 1};
    call_run(b, &c);
    struct consumer_group_describe_request *consumers = call_begin(&c, GROUP_CONSUMER_DESCRIBE);
    consumers->group_ids = (typeof(consumers->group_ids)){ids, 1};
    call_run(b, &c);
    call_begin(&c, GROUP_LIST);
    call_run(b, &c);
}

static void delete (struct bench *b, struct str group)
{
    struct call c;
    struct str ids[] = {group};
    struct delete_groups_request *in = call_begin(&c, GROUP_DELETE);
    in->groups_names = (typeof(in->groups_names)){ids, 1};
    call_run(b, &c);
}

/* ---- all of it ---- */

/* As it stands now, in the arena; the group may be loaded anew with each request. */
static bool nth_member(struct bench *b, struct str group, int n, struct arena *a, struct who *out,
                       struct part_set *owned)
{
    const struct group *g = group_shard_find(b->shard, group);
    const struct cgroup *cg = g ? group_consumers(g) : NULL;
    const struct list *l = cg ? &cg->member_list : g ? &g->member_list : NULL, *head = l;
    part_set_free(owned);
    for (int i = 0; l && i <= n; i++) {
        l = l->next;
        if (l == head)
            return false;
    }
    if (!l)
        return false;
    if (cg) {
        const struct cmember *m = list_entry(l, struct cmember, link);
        must(part_set_union(&m->assigned, &m->revoking, owned) == 0);
        *out = (struct who){arena_str(a, m->id), arena_str(a, m->instance), m->epoch, owned};
    } else {
        const struct member *m = list_entry(l, struct member, link);
        *out = (struct who){arena_str(a, m->id), arena_str(a, m->instance), g->generation, NULL};
    }
    return true;
}

static void use(struct bench *b, struct str group)
{
    struct arena a;
    struct part_set owned = PART_SET_EMPTY;
    struct who m, stranger = {STR_LIT("stranger"), STR_NULL, 0, NULL};
    const struct who nobody = {STR_LIT(""), STR_NULL, -1, NULL};
    arena_init(&a, 0);
    describe(b, group);
    for (int i = 0; i < MEMBERS_USED && nth_member(b, group, i, &a, &m, &owned); i++) {
        commit_and_fetch(b, group, &m);
        heartbeat(b, group, &m, false);
        sync_and_beat(b, group, &m);
    }
    heartbeat(b, group, &stranger, true);
    commit_and_fetch(b, group, &nobody);
    for (int i = 0; i < MEMBERS_USED && nth_member(b, group, i, &a, &m, &owned); i++) {
        m.owned = &PART_SET_EMPTY; /* it has given up what it had */
        heartbeat(b, group, &m, true);
        join(b, group, &m);
        m.epoch = 0; /* and comes back as another process */
        heartbeat(b, group, &m, true);
    }
    join(b, group, &stranger);
    stranger.id = STR_LIT("");
    join(b, group, &stranger);
    describe(b, group);
    if (nth_member(b, group, 0, &a, &m, &owned))
        leave(b, group, &m);
    if (nth_member(b, group, 0, &a, &m, &owned)) {
        m.epoch = str_is_null(m.instance) ? -1 : -2;
        heartbeat(b, group, &m, false);
    }
    part_set_free(&owned);
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bench b;
    struct arena a;
    struct str ids[GROUPS_USED];
    int ids_n = 0;
    logline_set_level(LOGLINE_FATAL);
    start(&b, p, n);
    arena_init(&a, 0);
    hmap_each (node, &b.shard->groups)
        if (ids_n < GROUPS_USED)
            ids[ids_n++] = arena_str(&a, hmap_entry(node, struct group, node)->id);
    for (int i = 0; i < ids_n; i++)
        use(&b, ids[i]);
    struct group *g = ids_n ? group_shard_find(b.shard, ids[0]) : NULL;
    if (g)
        group_expire_offsets(g, b.clock.wall_ms + 1000000000);
    if (g)
        group_shard_reap(b.shard, g);
    settle(&b);
    if (b.accepts) { /* another broker takes over what this one has written */
        group_shard_resigned(b.shard, 0, 1);
        group_shard_elected(b.shard, 0, 2);
        settle(&b);
    }
    sim_executor_advance(b.sim, 400000); /* no member is heard of */
    settle(&b);
    for (int i = 0; i < ids_n; i++)
        delete (&b, ids[i]);
    arena_free(&a);
    end(&b);
    return 0;
}
