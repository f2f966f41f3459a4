/* group_bench.h - a shard of groups on a simulated clock, with a log that obeys the test: it keeps
 * real record batches, acknowledges when told to, fails when told to. */
#ifndef TESTS_COORDINATOR_GROUP_BENCH_H
#define TESTS_COORDINATOR_GROUP_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/sim_executor.h"
#include "bench_log.h"
#include "coordinator/group_loading.h"
#include "coordinator/group_shard.h"
#include "coordinator/key_partition.h"
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
#include "protocol/msg/offset_delete.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/sync_group.h"
#include "protocol/msg/txn_offset_commit.h"
#include "unit.h"

enum { BENCH_CALL_ARENA = 64 << 20 };

/* ---- the bench ---- */

struct bench {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct bench_log log;
    struct group_config config;
    struct metadata_cache *metadata;
    atomic_ullong metadata_version;
    struct group_shard *shard;
    uint64_t load; /* the last that was asked for */
    int loads;
};

static inline void bench_load(void *arg, int32_t partition, int32_t epoch, uint64_t load)
{
    struct bench *b = arg;
    (void)partition;
    (void)epoch;
    b->load = load;
    b->loads++;
}

static inline void bench_check(struct bench *b)
{
    const char *wrong = group_shard_check(b->shard);
    if (wrong)
        fail_msg("%s", wrong);
}

static inline void bench_run(struct bench *b)
{
    sim_executor_drain(b->sim);
    bench_check(b);
}

static inline void bench_advance(struct bench *b, int64_t ms)
{
    sim_executor_advance(b->sim, ms);
    sim_executor_drain(b->sim);
    bench_check(b);
}

/* Acknowledges the held appends with `error`. */
static inline void bench_release(struct bench *b, enum kerr error)
{
    struct list *l;
    b->log.hold = false;
    while ((l = list_pop(&b->log.held)) != NULL) {
        struct group_append *a = list_entry(l, struct group_append, link);
        a->error = a->error != KERR_NONE ? a->error : error;
        a->done(a);
    }
    bench_run(b);
}

static inline void bench_new_shard(struct bench *b)
{
    struct group_shard_options o = {.env = {.ex = sim_executor_ex(b->sim),
                                            .log = &b->log.log,
                                            .config = &b->config,
                                            .metadata = b->metadata,
                                            .metadata_version = &b->metadata_version},
                                    .partitions_n = BENCH_PARTITIONS,
                                    .shards = 1,
                                    .check_interval_ms = 600000,
                                    .load = bench_load,
                                    .arg = b};
    assert_int_equal(group_shard_new(&o, &b->shard), 0);
}

/* Reads what is in the log of the partition into the shard. */
static inline void bench_finish_load(struct bench *b, int32_t partition)
{
    struct group_loading *l = group_loading_new(partition);
    const struct buf *bytes = &b->log.batches[partition];
    struct batch batch;
    for (size_t at = 0; at < bytes->len; at += batch.size) {
        assert_int_equal(batch_decode(bytes->p + at, bytes->len - at, bytes->len - at, &batch),
                         BATCH_OK);
        assert_int_equal(group_loading_add(l, &batch), 0);
    }
    int n = group_loading_groups(l);
    struct group **groups = calloc((size_t)n + 1, sizeof(*groups));
    assert_int_equal(group_loading_finish(l, group_shard_env(b->shard), groups), 0);
    group_shard_loaded(b->shard, partition, b->load, groups, n, 0);
    free(groups);
    group_loading_free(l);
    bench_check(b);
}

static inline void bench_own_all(struct bench *b)
{
    for (int32_t i = 0; i < BENCH_PARTITIONS; i++) {
        group_shard_elected(b->shard, i, 0);
        bench_finish_load(b, i);
    }
    bench_run(b);
}

static inline struct bench *bench_new(void)
{
    struct bench *b = calloc(1, sizeof(*b));
    sim_clock_init(&b->clock, BENCH_START_MS);
    b->sim = sim_executor_new(&b->clock);
    b->log.log.ops = &bench_log_ops;
    b->log.ex = sim_executor_ex(b->sim);
    list_init(&b->log.held);
    b->config = (struct group_config){.min_session_ms = 6000,
                                      .max_session_ms = 1800000,
                                      .initial_delay_ms = 3000,
                                      .max_size = INT32_MAX,
                                      .metadata_max = 4096,
                                      .retention_ms = 604800000,
                                      .versions = {.offset = 3, .group = 3},
                                      .consumers = {.on = true,
                                                    .session_ms = 45000,
                                                    .heartbeat_ms = 5000,
                                                    .max_size = INT32_MAX,
                                                    .assignors_n = 2}};
    b->config.consumers.assignors[0] = assignor_find(STR_LIT("uniform"));
    b->config.consumers.assignors[1] = assignor_find(STR_LIT("range"));
    b->metadata = metadata_cache_new();
    atomic_init(&b->metadata_version, 1);
    bench_new_shard(b);
    bench_own_all(b);
    return b;
}

static inline void bench_free(struct bench *b)
{
    group_shard_shut_down(b->shard);
    sim_executor_drain(b->sim);
    group_shard_free(b->shard);
    for (int32_t i = 0; i < BENCH_PARTITIONS; i++)
        buf_free(&b->log.batches[i]);
    metadata_cache_free(b->metadata);
    sim_executor_free(b->sim);
    free(b);
}

/* The broker goes and comes back; the log is as it was. */
static inline void bench_restart(struct bench *b)
{
    group_shard_shut_down(b->shard);
    sim_executor_drain(b->sim);
    group_shard_free(b->shard);
    bench_new_shard(b);
    bench_own_all(b);
}

/* ---- calls ---- */

struct call {
    struct group_call c;
    struct arena arena;
    bool done;
    union {
        struct join_group_request join;
        struct sync_group_request sync;
        struct heartbeat_request heartbeat;
        struct leave_group_request leave;
        struct offset_commit_request commit;
        struct txn_offset_commit_request txn;
        struct offset_fetch_request fetch;
        struct list_groups_request list;
        struct describe_groups_request describe;
        struct delete_groups_request del;
        struct offset_delete_request offset_delete;
        struct consumer_group_heartbeat_request beat;
        struct consumer_group_describe_request consumers;
    } in;
    union {
        struct join_group_response join;
        struct sync_group_response sync;
        struct heartbeat_response heartbeat;
        struct leave_group_response leave;
        struct offset_commit_response commit;
        struct txn_offset_commit_response txn;
        struct offset_fetch_response fetch;
        struct list_groups_response list;
        struct describe_groups_response describe;
        struct delete_groups_response del;
        struct offset_delete_response offset_delete;
        struct consumer_group_heartbeat_response beat;
        struct consumer_group_describe_response consumers;
    } out;
};

static inline void call_done(struct group_call *c)
{
    struct call *call = container_of(c, struct call, c);
    assert_false(call->done);
    assert_false(c->no_memory);
    assert_null(c->parked);
    call->done = true;
}

static inline struct call *call_new(enum group_api api, int version)
{
    static const struct {
        const struct msg_desc *in, *out;
    } descs[GROUP_APIS] = {
        [GROUP_JOIN] = {&join_group_request_desc, &join_group_response_desc},
        [GROUP_SYNC] = {&sync_group_request_desc, &sync_group_response_desc},
        [GROUP_HEARTBEAT] = {&heartbeat_request_desc, &heartbeat_response_desc},
        [GROUP_LEAVE] = {&leave_group_request_desc, &leave_group_response_desc},
        [GROUP_COMMIT] = {&offset_commit_request_desc, &offset_commit_response_desc},
        [GROUP_TXN_COMMIT] = {&txn_offset_commit_request_desc, &txn_offset_commit_response_desc},
        [GROUP_FETCH] = {&offset_fetch_request_desc, &offset_fetch_response_desc},
        [GROUP_LIST] = {&list_groups_request_desc, &list_groups_response_desc},
        [GROUP_DESCRIBE] = {&describe_groups_request_desc, &describe_groups_response_desc},
        [GROUP_DELETE] = {&delete_groups_request_desc, &delete_groups_response_desc},
        [GROUP_OFFSET_DELETE] = {&offset_delete_request_desc, &offset_delete_response_desc},
        [GROUP_CONSUMER_HEARTBEAT] = {&consumer_group_heartbeat_request_desc,
                                      &consumer_group_heartbeat_response_desc},
        [GROUP_CONSUMER_DESCRIBE] = {&consumer_group_describe_request_desc,
                                     &consumer_group_describe_response_desc},
    };
    struct call *c = calloc(1, sizeof(*c));
    arena_init(&c->arena, BENCH_CALL_ARENA);
    msg_init(descs[api].in, &c->in);
    msg_init(descs[api].out, &c->out);
    c->c = (struct group_call){.api = api,
                               .version = version,
                               .client_id = STR_LIT("client"),
                               .client_host = STR_LIT("/127.0.0.1"),
                               .in = &c->in,
                               .out = &c->out,
                               .arena = &c->arena,
                               .done = call_done};
    return c;
}

static inline void call_free(struct call *c)
{
    assert_true(c->done);
    arena_free(&c->arena);
    free(c);
}

/* Lays out and hands over; lists end at once. */
static inline struct call *bench_submit(struct bench *b, struct call *c)
{
    struct str id;
    assert_true(group_call_lay_out(&c->c));
    bool single = group_call_single(&c->c, &id);
    group_shard_handle(b->shard, &c->c);
    if (!single)
        call_done(&c->c);
    bench_run(b);
    return c;
}

/* ---- JoinGroup ---- */

struct join_args {
    int version; /* 0 = 9 */
    bool version_0;
    const char *group, *member, *instance, *client;
    const char *type;             /* NULL = "consumer" */
    const char *protocols[4];     /* none = "range" */
    struct bytes metadata;        /* of all protocols; none = "meta" */
    int session_ms, rebalance_ms; /* 0 = 10000, 60000 */
};

static inline struct call *join_with(struct bench *b, struct join_args a)
{
    struct call *c = call_new(GROUP_JOIN, a.version || a.version_0 ? a.version : 9);
    struct join_group_request *in = &c->in.join;
    int n = 0;
    while (n < 4 && a.protocols[n])
        n++;
    if (!n)
        a.protocols[n++] = "range";
    in->group_id = str_of(a.group ? a.group : "g");
    in->member_id = str_of(a.member ? a.member : "");
    in->group_instance_id = str_of(a.instance);
    in->protocol_type = str_of(a.type ? a.type : "consumer");
    in->session_timeout_ms = a.session_ms ? a.session_ms : 10000;
    in->rebalance_timeout_ms = a.rebalance_ms ? a.rebalance_ms : 60000;
    in->protocols.v = arena_array(&c->arena, struct join_group_request_protocol, (size_t)n);
    in->protocols.n = n;
    for (int i = 0; i < n; i++) {
        in->protocols.v[i].name = str_of(a.protocols[i]);
        in->protocols.v[i].metadata =
            a.metadata.p ? a.metadata : (struct bytes){(const uint8_t *)"meta", 4};
    }
    if (a.client)
        c->c.client_id = str_of(a.client);
    return bench_submit(b, c);
}
#define JOIN(b, ...) join_with(b, (struct join_args){__VA_ARGS__})

static inline char *join_id(const struct call *c)
{
    assert_true(c->done);
    return str_dup(c->out.join.member_id);
}

/* JoinGroup without an id, then with the one that was given: the second call, parked or done. */
static inline struct call *join_twice(struct bench *b, struct join_args a)
{
    struct call *first = join_with(b, a);
    assert_true(first->done);
    assert_int_equal(first->out.join.error_code, KERR_MEMBER_ID_REQUIRED);
    char *id = join_id(first);
    a.member = id;
    struct call *second = join_with(b, a);
    second->in.join.member_id = arena_str(&second->arena, str_of(id));
    free(id);
    call_free(first);
    return second;
}
#define JOIN2(b, ...) join_twice(b, (struct join_args){__VA_ARGS__})

/* ---- the rest ---- */

static inline struct call *sync_all(struct bench *b, const char *group, struct str member,
                                    const char *instance, int32_t generation,
                                    const struct str *members, int n, const char *assignment)
{
    struct call *c = call_new(GROUP_SYNC, 5);
    struct sync_group_request *in = &c->in.sync;
    in->group_id = str_of(group);
    in->member_id = arena_str(&c->arena, member);
    in->group_instance_id = str_of(instance);
    in->generation_id = generation;
    in->protocol_type = STR_LIT("consumer");
    in->protocol_name = STR_LIT("range");
    in->assignments.v = arena_array(&c->arena, struct sync_group_request_assignment, (size_t)n);
    in->assignments.n = n;
    for (int i = 0; i < n; i++) {
        in->assignments.v[i].member_id = arena_str(&c->arena, members[i]);
        in->assignments.v[i].assignment =
            (struct bytes){(const uint8_t *)assignment, (int32_t)strlen(assignment)};
    }
    return bench_submit(b, c);
}

static inline struct call *sync_one(struct bench *b, const char *group, struct str member,
                                    int32_t generation)
{
    return sync_all(b, group, member, NULL, generation, NULL, 0, "");
}

static inline enum kerr heartbeat_as(struct bench *b, const char *group, struct str member,
                                     const char *instance, int32_t generation)
{
    struct call *c = call_new(GROUP_HEARTBEAT, 4);
    c->in.heartbeat.group_id = str_of(group);
    c->in.heartbeat.member_id = member;
    c->in.heartbeat.group_instance_id = str_of(instance);
    c->in.heartbeat.generation_id = generation;
    bench_submit(b, c);
    enum kerr e = c->out.heartbeat.error_code;
    call_free(c);
    return e;
}

static inline enum kerr heartbeat(struct bench *b, const char *group, struct str member,
                                  int32_t generation)
{
    return heartbeat_as(b, group, member, NULL, generation);
}

static inline enum kerr leave(struct bench *b, const char *group, struct str member)
{
    struct call *c = call_new(GROUP_LEAVE, 2);
    c->in.leave.group_id = str_of(group);
    c->in.leave.member_id = member;
    bench_submit(b, c);
    enum kerr e = c->out.leave.error_code;
    call_free(c);
    return e;
}

struct commit_args {
    int version; /* 0 = 8 */
    const char *group, *member, *instance, *topic, *metadata;
    int32_t generation; /* 0 = -1; use `exactly` for 0 */
    bool exactly;
    int32_t partition, epoch;
    int64_t offset, retention, timestamp; /* retention, timestamp: 0 = -1 */
};

static inline struct call *commit_with(struct bench *b, struct commit_args a)
{
    struct call *c = call_new(GROUP_COMMIT, a.version ? a.version : 8);
    struct offset_commit_request *in = &c->in.commit;
    in->group_id = str_of(a.group ? a.group : "g");
    in->member_id = str_of(a.member ? a.member : "");
    in->group_instance_id = str_of(a.instance);
    in->generation_id_or_member_epoch = a.generation || a.exactly ? a.generation : -1;
    in->retention_time_ms = a.retention ? a.retention : -1;
    in->topics.v = arena_array(&c->arena, struct offset_commit_request_topic, 1);
    in->topics.n = 1;
    in->topics.v[0].name = str_of(a.topic ? a.topic : "t");
    in->topics.v[0].partitions.v =
        arena_array(&c->arena, struct offset_commit_request_partition, 1);
    in->topics.v[0].partitions.n = 1;
    in->topics.v[0].partitions.v[0] =
        (struct offset_commit_request_partition){.partition_index = a.partition,
                                                 .committed_offset = a.offset,
                                                 .committed_leader_epoch = a.epoch,
                                                 .commit_timestamp = a.timestamp ? a.timestamp : -1,
                                                 .committed_metadata = str_of(a.metadata)};
    return bench_submit(b, c);
}
#define COMMIT(b, ...) commit_with(b, (struct commit_args){__VA_ARGS__})

static inline enum kerr commit_error(struct call *c)
{
    assert_true(c->done);
    enum kerr e = c->out.commit.topics.v[0].partitions.v[0].error_code;
    call_free(c);
    return e;
}

/* The committed offset of one partition, -1 without; *error may be NULL. */
static inline int64_t fetch_one(struct bench *b, const char *group, const char *topic,
                                int32_t partition, bool stable, enum kerr *error)
{
    struct call *c = call_new(GROUP_FETCH, 7);
    struct offset_fetch_request_topic t = {.name = str_of(topic),
                                           .partition_indexes = {&partition, 1}};
    c->in.fetch.group_id = str_of(group);
    c->in.fetch.require_stable = stable;
    c->in.fetch.topics.v = &t;
    c->in.fetch.topics.n = 1;
    bench_submit(b, c);
    int64_t offset = -1;
    enum kerr e = c->out.fetch.error_code;
    if (e == KERR_NONE) {
        assert_int_equal(c->out.fetch.topics.n, 1);
        offset = c->out.fetch.topics.v[0].partitions.v[0].committed_offset;
        e = c->out.fetch.topics.v[0].partitions.v[0].error_code;
    }
    if (error)
        *error = e;
    call_free(c);
    return offset;
}

/* State as DescribeGroups names it. */
static inline const char *state_of(struct bench *b, const char *group)
{
    static char name[32];
    struct call *c = call_new(GROUP_DESCRIBE, 5);
    struct str id = str_of(group);
    c->in.describe.groups.v = &id;
    c->in.describe.groups.n = 1;
    bench_submit(b, c);
    assert_int_equal(c->out.describe.groups.v[0].error_code, KERR_NONE);
    struct str s = c->out.describe.groups.v[0].group_state;
    snprintf(name, sizeof(name), "%.*s", STR_ARG(s));
    call_free(c);
    return name;
}

static inline enum kerr delete_group(struct bench *b, const char *group)
{
    struct call *c = call_new(GROUP_DELETE, 2);
    struct str id = str_of(group);
    c->in.del.groups_names.v = &id;
    c->in.del.groups_names.n = 1;
    bench_submit(b, c);
    enum kerr e = c->out.del.results.v[0].error_code;
    call_free(c);
    return e;
}

/* A group "g" that is stable with n dynamic members; their ids in ids[] (free them). Returns the
 * generation. */
static inline int32_t stable_group(struct bench *b, const char *group, int n, char **ids)
{
    struct call *joins[16];
    struct call *syncs[16];
    for (int i = 0; i < n; i++)
        joins[i] = JOIN2(b, .group = group);
    bench_advance(b, 3000);
    for (int i = 0; i < n && !joins[n - 1]->done; i++)
        bench_advance(b, 3000);
    int32_t generation = joins[0]->out.join.generation_id;
    for (int i = n - 1; i >= 0; i--) {
        struct join_group_response *out = &joins[i]->out.join;
        assert_true(joins[i]->done);
        assert_int_equal(out->error_code, KERR_NONE);
        ids[i] = join_id(joins[i]);
        struct str all[16];
        for (int j = 0; j < out->members.n; j++)
            all[j] = out->members.v[j].member_id;
        syncs[i] = sync_all(b, group, str_of(ids[i]), NULL, generation, all, out->members.n, "A");
    }
    for (int i = 0; i < n; i++) {
        assert_true(syncs[i]->done);
        assert_int_equal(syncs[i]->out.sync.error_code, KERR_NONE);
        call_free(joins[i]);
        call_free(syncs[i]);
    }
    assert_string_equal(state_of(b, group), "Stable");
    return generation;
}

static inline void free_ids(char **ids, int n)
{
    for (int i = 0; i < n; i++)
        free(ids[i]);
}

#endif
