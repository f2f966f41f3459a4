/* bench.h - one broker's replicas on real logs in a temporary folder, with a simulated clock and
 * executor: what the tests of this room share. Broker 1 is under test; 1, 2 and 3 are alive. */
#ifndef TESTS_REPLICA_BENCH_H
#define TESTS_REPLICA_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs_fault.h"
#include "base/sim_executor.h"
#include "protocol/batch_builder.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"
#include "replica/partition_private.h"
#include "replica/replica_manager.h"
#include "unit.h"

#define UNUSED __attribute__((unused))
#define NUMBERS(...) \
    ((const int32_t[]){__VA_ARGS__}), (int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

struct fetchers;

struct bench {
    int32_t id;           /* of the broker */
    struct bench *shares; /* clock and executor of that one; NULL: its own */
    int moves[3]; /* how often brokers 1.. have moved to another port: 100 further each time */
    struct isr_writer *isr_writer; /* the same */
    struct fetchers *fetchers;     /* set before the logs are opened; NULL: none */
    char dirs[2][32];
    int dirs_n;
    struct sim_clock clock;
    struct sim_executor *sim;
    struct workers *workers;
    struct fs_fault *fault;
    struct metadata_cache *metadata;
    struct log_manager *logs;
    struct replica_manager *m;
    struct log_config config;  /* of every topic */
    atomic_int settings_asked; /* how often */
    struct arena a;
};

static UNUSED struct sim_clock *bench_clock(struct bench *b)
{
    return b->shares ? &b->shares->clock : &b->clock;
}

static UNUSED void bench_config(void *arg, struct str topic, struct log_config *c)
{
    struct bench *b = arg;
    atomic_fetch_add(&b->settings_asked, 1);
    *c = b->config;
}

static UNUSED void bench_dir_failed(void *arg, struct log_dir *d)
{
    struct bench *b = arg;
    if (b->m)
        replica_manager_dir_failed(b->m, d);
}

/* UpdateMetadata with brokers 1..n, and partitions 0 and 1 of a topic (or NULL) with this id. */
static UNUSED enum kerr bench_metadata_full(struct bench *b, int brokers, const char *topic,
                                            struct uuid id)
{
    static int32_t broker1 = 1;
    static const char *const hosts[] = {"host1", "host2", "host3"};
    struct update_metadata_request req;
    struct update_metadata_request_live_broker alive[3];
    struct update_metadata_request_endpoint endpoints[3];
    struct update_metadata_request_topic_state state;
    struct update_metadata_request_partition_state partitions[2];
    update_metadata_request_init(&req);
    for (int i = 0; i < brokers; i++) {
        update_metadata_request_live_broker_init(&alive[i]);
        update_metadata_request_endpoint_init(&endpoints[i]);
        endpoints[i].host = str_of(hosts[i]);
        endpoints[i].port = 9001 + i + 100 * b->moves[i];
        endpoints[i].listener = STR_LIT("PLAINTEXT");
        alive[i].id = i + 1;
        alive[i].endpoints.v = &endpoints[i];
        alive[i].endpoints.n = 1;
    }
    req.live_brokers.v = alive;
    req.live_brokers.n = brokers;
    if (topic) {
        update_metadata_request_topic_state_init(&state);
        state.topic_name = str_of(topic);
        state.topic_id = id;
        state.partition_states.v = partitions;
        state.partition_states.n = 2;
        for (int i = 0; i < 2; i++) {
            update_metadata_request_partition_state_init(&partitions[i]);
            partitions[i].partition_index = i;
            partitions[i].leader = 1;
            partitions[i].replicas.v = &broker1;
            partitions[i].replicas.n = 1;
        }
        req.topic_states.v = &state;
        req.topic_states.n = 1;
    }
    return replica_manager_update_metadata(b->m, &req);
}

static UNUSED enum kerr bench_metadata(struct bench *b, int brokers, const char *topic)
{
    return bench_metadata_full(b, brokers, topic, UUID_ZERO);
}

/* The topic gets the id whose first byte is `id`, the rest zero. */
static UNUSED void bench_metadata_ids(struct bench *b, const char *topic, uint8_t id)
{
    assert_int_equal(bench_metadata_full(b, 3, topic, (struct uuid){{id}}), KERR_NONE);
}

static UNUSED void bench_open_logs(struct bench *b)
{
    const char *dirs[] = {b->dirs[0], b->dirs[1]};
    char err[256] = "", cluster[64];
    int32_t id;
    struct log_manager_options lo = {.fs = fs_fault_fs(b->fault),
                                     .clock = &bench_clock(b)->clock,
                                     .dirs = dirs,
                                     .dirs_n = b->dirs_n,
                                     .defaults = b->config,
                                     .recovery_threads = 1,
                                     .broker_id = b->id,
                                     .cluster_id = "bench",
                                     .dir_failed = bench_dir_failed,
                                     .arg = b};
    assert_int_equal(log_manager_read_meta(&lo, &id, cluster, err, sizeof err), 0);
    assert_int_equal(log_manager_open(&lo, &b->logs, err, sizeof err), 0);
    struct replica_manager_options ro = {.broker_id = b->id,
                                         .fetchers = b->fetchers,
                                         .isr_writer = b->isr_writer,
                                         .logs = b->logs,
                                         .metadata = b->metadata,
                                         .workers = b->workers,
                                         .clock = &bench_clock(b)->clock,
                                         .replica_lag_ms = 10000,
                                         .topic_config = bench_config,
                                         .arg = b};
    assert_int_equal(replica_manager_new(&ro, &b->m), 0);
}

/* A clean stop; bench_open_logs starts again. */
static UNUSED void bench_stop_logs(struct bench *b)
{
    sim_executor_drain(b->sim);
    replica_manager_free(b->m);
    b->m = NULL;
    log_manager_close(b->logs);
}

/* With what is set already: id, shares, fetchers. */
static UNUSED void bench_open_as(struct bench *b, int dirs)
{
    b->dirs_n = dirs;
    for (int i = 0; i < dirs; i++) {
        snprintf(b->dirs[i], sizeof b->dirs[i], "%s/replica-test-XXXXXX",
                 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        assert_non_null(mkdtemp(b->dirs[i]));
    }
    if (b->shares) {
        b->sim = b->shares->sim;
    } else {
        sim_clock_init(&b->clock, 1700000000000);
        sim_clock_advance(&b->clock, 1000000); /* a machine that has been up for a while */
        b->sim = sim_executor_new(&b->clock);
    }
    assert_int_equal(workers_sim(sim_executor_ex(b->sim), &b->workers), 0);
    b->fault = fs_fault_new(fs_posix());
    b->metadata = metadata_cache_new();
    b->config = log_config_default();
    arena_init(&b->a, 0);
    bench_open_logs(b);
    assert_int_equal(bench_metadata(b, 3, "t"), KERR_NONE);
}

static UNUSED void bench_open_dirs(struct bench *b, int dirs)
{
    memset(b, 0, sizeof *b);
    b->id = 1;
    bench_open_as(b, dirs);
}

static UNUSED void bench_open(struct bench *b)
{
    bench_open_dirs(b, 1);
}

static UNUSED void bench_close(struct bench *b)
{
    sim_executor_drain(b->sim);
    fs_fault_clear(b->fault);
    replica_manager_free(b->m);
    log_manager_abandon(b->logs);
    metadata_cache_free(b->metadata);
    workers_stop(b->workers);
    if (!b->shares)
        sim_executor_free(b->sim);
    fs_fault_free(b->fault);
    arena_free(&b->a);
    for (int i = 0; i < b->dirs_n; i++)
        fs_remove_tree(fs_posix(), b->dirs[i]);
}

/* What one LeaderAndIsr says of partition `number` of topic t. */
struct lead {
    int32_t leader, leader_epoch, partition_epoch;
    const int32_t *isr;
    int32_t isr_n;
    const int32_t *replicas;
    int32_t replicas_n;
    const int32_t *adding; /* of a reassignment */
    int32_t adding_n;
    bool is_new;
    struct uuid id;
    int32_t controller_epoch;
    int64_t broker_epoch;
};

/* Sends it; the answer's code for the partition, or for the whole. */
static UNUSED enum kerr bench_lead_version(struct bench *b, int version, const char *topic,
                                           int32_t number, struct lead l)
{
    struct leader_and_isr_request req;
    struct leader_and_isr_request_topic_state state;
    struct leader_and_isr_request_partition_state p;
    struct leader_and_isr_response out;
    leader_and_isr_request_init(&req);
    leader_and_isr_response_init(&out);
    leader_and_isr_request_topic_state_init(&state);
    leader_and_isr_request_partition_state_init(&p);
    if (l.broker_epoch)
        req.broker_epoch = l.broker_epoch;
    req.controller_epoch = l.controller_epoch;
    state.topic_name = p.topic_name = str_of(topic);
    state.topic_id = l.id;
    state.partition_states.v = &p;
    state.partition_states.n = 1;
    p.partition_index = number;
    p.leader = l.leader;
    p.leader_epoch = l.leader_epoch;
    p.partition_epoch = l.partition_epoch;
    p.isr.v = (int32_t *)l.isr;
    p.isr.n = l.isr_n;
    p.replicas.v = (int32_t *)l.replicas;
    p.replicas.n = l.replicas_n;
    p.adding_replicas.v = (int32_t *)l.adding;
    p.adding_replicas.n = l.adding_n;
    p.is_new = l.is_new;
    if (version < 2) {
        req.ungrouped_partition_states.v = &p;
        req.ungrouped_partition_states.n = 1;
    } else {
        req.topic_states.v = &state;
        req.topic_states.n = 1;
    }
    replica_manager_become(b->m, version, &req, &b->a, &out);
    if (out.error_code)
        return (enum kerr)out.error_code;
    if (version >= 5) {
        assert_int_equal(out.topics.n, 1);
        assert_int_equal(out.topics.v[0].partition_errors.n, 1);
        assert_true(uuid_eq(out.topics.v[0].topic_id, l.id));
        return (enum kerr)out.topics.v[0].partition_errors.v[0].error_code;
    }
    assert_int_equal(out.partition_errors.n, 1);
    assert_true(str_eqz(out.partition_errors.v[0].topic_name, topic));
    assert_int_equal(out.partition_errors.v[0].partition_index, number);
    return (enum kerr)out.partition_errors.v[0].error_code;
}

static UNUSED enum kerr bench_lead(struct bench *b, const char *topic, int32_t number,
                                   struct lead l)
{
    return bench_lead_version(b, 7, topic, number, l);
}

static UNUSED enum kerr bench_stop(struct bench *b, const char *topic, int32_t number,
                                   int32_t leader_epoch, bool delete)
{
    struct stop_replica_request req;
    struct stop_replica_request_topic_state state;
    struct stop_replica_request_partition_state p;
    struct stop_replica_response out;
    stop_replica_request_init(&req);
    stop_replica_response_init(&out);
    stop_replica_request_topic_state_init(&state);
    stop_replica_request_partition_state_init(&p);
    state.topic_name = str_of(topic);
    state.partition_states.v = &p;
    state.partition_states.n = 1;
    p.partition_index = number;
    p.leader_epoch = leader_epoch;
    p.delete_partition = delete;
    req.topic_states.v = &state;
    req.topic_states.n = 1;
    replica_manager_stop(b->m, &req, &b->a, &out);
    if (out.error_code)
        return (enum kerr)out.error_code;
    assert_int_equal(out.partition_errors.n, 1);
    return (enum kerr)out.partition_errors.v[0].error_code;
}

static UNUSED struct topic_partition bench_tp(const char *topic, int32_t number)
{
    return (struct topic_partition){str_of(topic), number};
}

/* t-0 with this broker as leader of `replicas`, all in the ISR. Returns shared. */
static UNUSED struct partition *bench_leader(struct bench *b, const int32_t *replicas, int32_t n)
{
    assert_int_equal(bench_lead(b, "t", 0,
                                (struct lead){.leader = 1,
                                              .isr = replicas,
                                              .isr_n = n,
                                              .replicas = replicas,
                                              .replicas_n = n,
                                              .is_new = true}),
                     KERR_NONE);
    enum kerr why;
    struct partition *p = replica_manager_find(b->m, bench_tp("t", 0), &why);
    assert_non_null(p);
    return p;
}

/* Appends n records of 100 bytes as a client with these acks. */
static UNUSED enum kerr bench_append(struct bench *b, struct partition *p, int n, int16_t acks,
                                     struct partition_append *out)
{
    char value[100];
    struct arena a;
    struct buf bytes = BUF_INIT;
    struct prepared pr;
    struct partition_append ignored;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *batch = batch_builder_new(&o);
    memset(value, 'v', sizeof value);
    for (int i = 0; i < n; i++)
        assert_int_equal(batch_builder_add(batch, i, bench_clock(b)->wall_ms, BYTES_NULL,
                                           (struct bytes){(uint8_t *)value, sizeof value}, NULL, 0),
                         0);
    assert_int_equal(batch_builder_finish(batch, &bytes), 0);
    batch_builder_free(batch);
    struct append_policy policy = {.origin = APPEND_CLIENT,
                                   .produce_version = 9,
                                   .max_message_bytes = 1 << 20,
                                   .compression = COMPRESSION_PRODUCER,
                                   .level = CODEC_LEVEL_DEFAULT,
                                   .before_max_ms = INT64_MAX,
                                   .after_max_ms = INT64_MAX,
                                   .now_ms = bench_clock(b)->wall_ms};
    arena_init(&a, 0);
    assert_int_equal(records_prepare(&policy, bytes.p, bytes.len, &a, &pr), KERR_NONE);
    enum kerr e = partition_append(p, &pr, APPEND_CLIENT, acks, out ? out : &ignored);
    prepared_free(&pr);
    arena_free(&a);
    buf_free(&bytes);
    return e;
}

/* A fetch as `replica_id` (-1 a consumer) from `offset`; its slice is dropped. */
static UNUSED enum kerr bench_fetch(struct bench *b, struct partition *p, int32_t replica_id,
                                    int64_t offset, struct partition_read *out)
{
    struct partition_read ignored = {0}, *to = out ? out : &ignored;
    struct partition_read_args args = {.replica_id = replica_id,
                                       .offset = offset,
                                       .current_leader_epoch = -1,
                                       .last_fetched_epoch = -1,
                                       .max_bytes = 1 << 20,
                                       .leader_only = replica_id >= 0};
    enum kerr e = partition_read(p, &args, &b->a, to);
    file_unref(to->slice.file);
    to->slice.file = NULL;
    return e;
}

static UNUSED int64_t bench_hw(struct partition *p)
{
    struct log *log = partition_log(p);
    int64_t hw = log_high_watermark(log);
    log_unref(log);
    return hw;
}

#endif
