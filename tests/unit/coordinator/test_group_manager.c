/* test_group_manager.c - groups on real logs: appends that wait for replicas, loads, partitions
 * that are won and lost, failing disks. Broker 1 of 3, on a simulated clock. */
#include "coordinator/group_manager.h"

#include "protocol/msg/consumer_group_heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_fetch.h"
#include "replica/bench.h"

#define OFFSETS "__consumer_offsets"

enum { HOME = 3 /* of group "g" among 50 */ };

static const int32_t only_1[] = {1}, both[] = {1, 2};

struct rig {
    struct bench b;
    struct group_manager *m;
    struct executor *ex[3];
    int shards;
    enum codec codec;
    int16_t acks;
};

static void make_manager(struct rig *r)
{
    for (int i = 0; i < 3; i++)
        r->ex[i] = sim_executor_ex(r->b.sim);
    struct group_manager_options o = {.executors = r->ex,
                                      .shards = r->shards,
                                      .replicas = r->b.m,
                                      .workers = r->b.workers,
                                      .clock = &r->b.clock.clock,
                                      .metadata = r->b.metadata,
                                      .config = {.consumers = {.on = true,
                                                               .session_ms = 45000,
                                                               .heartbeat_ms = 5000,
                                                               .max_size = INT32_MAX,
                                                               .assignors_n = 1},
                                                 .min_session_ms = 6000,
                                                 .max_session_ms = 1800000,
                                                 .max_size = INT32_MAX,
                                                 .metadata_max = 1 << 20,
                                                 .retention_ms = 604800000,
                                                 .versions = {3, 3}},
                                      .partitions_n = 50,
                                      .check_interval_ms = 600000,
                                      .codec = r->codec,
                                      .required_acks = r->acks,
                                      .append_timeout_ms = 5000,
                                      .load_buffer_size = 1000, /* less than many batches */
                                      .loads_at_once = 2};
    o.config.consumers.assignors[0] = assignor_find(STR_LIT("uniform"));
    assert_int_equal(group_manager_new(&o, &r->m), 0);
}

static void rig_open(struct rig *r)
{
    int shards = r->shards;
    *r = (struct rig){.shards = shards ? shards : 1, .codec = r->codec, .acks = -1};
    bench_open(&r->b);
    r->b.config.cleanup_policy = CLEANUP_COMPACT;
    make_manager(r);
}

static void stop_manager(struct rig *r)
{
    group_manager_begin_shut_down(r->m);
    sim_executor_advance(r->b.sim, 10);
    assert_true(group_manager_is_down(r->m));
}

static void rig_close(struct rig *r)
{
    stop_manager(r);
    struct group_manager *m = r->m;
    bench_close(&r->b);
    group_manager_free(m);
}

/* A clean stop and a new life on the same folders. */
static void rig_restart(struct rig *r)
{
    stop_manager(r);
    bench_stop_logs(&r->b);
    group_manager_free(r->m);
    bench_open_logs(&r->b);
    assert_int_equal(bench_metadata(&r->b, 3, "t"), KERR_NONE);
    make_manager(r);
}

static void lead(struct rig *r, int32_t number, int32_t leader, int32_t epoch, const int32_t *isr,
                 int32_t n)
{
    struct lead l = {.leader = leader,
                     .leader_epoch = epoch,
                     .partition_epoch = epoch,
                     .isr = isr,
                     .isr_n = n,
                     .replicas = isr,
                     .replicas_n = n,
                     .is_new = true};
    assert_int_equal(bench_lead(&r->b, OFFSETS, number, l), KERR_NONE);
}

/* ---- calls ---- */

struct commit_call {
    struct group_call c;
    struct arena arena;
    bool done;
    struct offset_commit_request in;
    struct offset_commit_response out;
};

static void commit_done(struct group_call *c)
{
    struct commit_call *call = container_of(c, struct commit_call, c);
    assert_false(call->done);
    call->done = true;
}

static struct commit_call *commit(struct rig *r, const char *group, int32_t partition,
                                  int64_t offset, struct str metadata)
{
    struct commit_call *c = calloc(1, sizeof(*c));
    arena_init(&c->arena, 0);
    offset_commit_request_init(&c->in);
    offset_commit_response_init(&c->out);
    c->in.group_id = str_of(group);
    c->in.generation_id_or_member_epoch = -1;
    c->in.topics.v = arena_array(&c->arena, struct offset_commit_request_topic, 1);
    c->in.topics.n = 1;
    c->in.topics.v->name = STR_LIT("t");
    c->in.topics.v->partitions.v =
        arena_array(&c->arena, struct offset_commit_request_partition, 1);
    c->in.topics.v->partitions.n = 1;
    *c->in.topics.v->partitions.v =
        (struct offset_commit_request_partition){.partition_index = partition,
                                                 .committed_offset = offset,
                                                 .committed_leader_epoch = -1,
                                                 .committed_metadata = metadata};
    c->c = (struct group_call){.api = GROUP_COMMIT,
                               .version = 8,
                               .in = &c->in,
                               .out = &c->out,
                               .arena = &c->arena,
                               .done = commit_done};
    assert_true(group_call_lay_out(&c->c));
    group_manager_submit(r->m, &c->c);
    sim_executor_drain(r->b.sim);
    return c;
}

static enum kerr end(struct commit_call *c)
{
    assert_true(c->done);
    enum kerr e = c->out.topics.v->partitions.v->error_code;
    arena_free(&c->arena);
    free(c);
    return e;
}

static enum kerr commit_now(struct rig *r, const char *group, int32_t partition, int64_t offset)
{
    return end(commit(r, group, partition, offset, STR_NULL));
}

/* Fetches over OffsetFetch v8, which passes through all shards. */
struct fetch_call {
    struct group_call c;
    bool done;
};

static void fetch_done(struct group_call *c)
{
    container_of(c, struct fetch_call, c)->done = true;
}

static int64_t fetch(struct rig *r, const char *group, int32_t partition, enum kerr *error)
{
    struct arena a;
    struct offset_fetch_request in;
    struct offset_fetch_response out;
    arena_init(&a, 0);
    offset_fetch_request_init(&in);
    offset_fetch_response_init(&out);
    struct offset_fetch_request_group_topic t = {.name = STR_LIT("t"),
                                                 .partition_indexes = {&partition, 1}};
    struct offset_fetch_request_group g = {.group_id = str_of(group), .topics = {&t, 1}};
    in.groups.v = &g;
    in.groups.n = 1;
    struct fetch_call f = {.c = {.api = GROUP_FETCH,
                                 .version = 8,
                                 .in = &in,
                                 .out = &out,
                                 .arena = &a,
                                 .done = fetch_done}};
    assert_true(group_call_lay_out(&f.c));
    group_manager_submit(r->m, &f.c);
    sim_executor_drain(r->b.sim);
    assert_true(f.done);
    *error = out.groups.v[0].error_code;
    int64_t offset = *error ? -1 : out.groups.v[0].topics.v[0].partitions.v[0].committed_offset;
    arena_free(&a);
    return offset;
}

static int64_t fetch_ok(struct rig *r, const char *group, int32_t partition)
{
    enum kerr e;
    int64_t offset = fetch(r, group, partition, &e);
    assert_int_equal(e, KERR_NONE);
    return offset;
}

/* ---- tests ---- */

static void commits_go_through_the_log(void **state)
{
    for (int codec = CODEC_NONE; codec <= CODEC_ZSTD; codec++) {
        struct rig r = {.codec = (enum codec)codec};
        rig_open(&r);
        assert_int_equal(commit_now(&r, "g", 0, 1), KERR_NOT_COORDINATOR);
        lead(&r, HOME, 1, 0, only_1, 1);
        sim_executor_drain(r.b.sim);
        for (int i = 0; i < 100; i++)
            assert_int_equal(commit_now(&r, "g", i % 7, i), KERR_NONE);
        assert_int_equal(fetch_ok(&r, "g", 0), 98);
        rig_restart(&r);
        lead(&r, HOME, 1, 1, only_1, 1);
        sim_executor_drain(r.b.sim);
        assert_int_equal(fetch_ok(&r, "g", 0), 98);
        assert_int_equal(fetch_ok(&r, "g", 6), 97);
        assert_int_equal(fetch_ok(&r, "g", 7), -1);
        rig_close(&r);
    }
}

static struct partition *home(struct rig *r)
{
    enum kerr why;
    struct partition *p = replica_manager_find(r->b.m, bench_tp(OFFSETS, HOME), &why);
    assert_non_null(p);
    return p;
}

static void a_commit_waits_for_the_replicas(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct partition *p = home(&r);
    struct commit_call *c[3];
    for (int i = 0; i < 3; i++)
        c[i] = commit(&r, "g", i, i, STR_NULL);
    assert_false(c[0]->done);
    bench_fetch(&r.b, p, 2, 0, NULL);
    bench_fetch(&r.b, p, 2, 2, NULL); /* has the first two */
    sim_executor_drain(r.b.sim);
    assert_true(c[0]->done && c[1]->done);
    assert_false(c[2]->done);
    assert_int_equal(fetch_ok(&r, "g", 1), 1);
    assert_int_equal(fetch_ok(&r, "g", 2), -1);
    bench_fetch(&r.b, p, 2, 3, NULL);
    sim_executor_drain(r.b.sim);
    for (int i = 0; i < 3; i++)
        assert_int_equal(end(c[i]), KERR_NONE);
    partition_unref(p);
    rig_close(&r);
}

static void replicas_that_do_not_come(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct commit_call *first = commit(&r, "g", 0, 1, STR_NULL);
    sim_executor_advance(r.b.sim, 3000);
    struct commit_call *second = commit(&r, "g", 1, 2, STR_NULL);
    sim_executor_advance(r.b.sim, 1999);
    assert_false(first->done);
    sim_executor_advance(r.b.sim, 1);
    assert_int_equal(end(first), KERR_REQUEST_TIMED_OUT);
    assert_false(second->done);
    struct partition *p = home(&r);
    bench_fetch(&r.b, p, 2, 0, NULL);
    bench_fetch(&r.b, p, 2, 2, NULL);
    sim_executor_drain(r.b.sim);
    assert_int_equal(end(second), KERR_NONE);
    partition_unref(p);
    rig_close(&r);
}

static void acks_1_does_not_wait(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    stop_manager(&r);
    r.acks = 1;
    struct group_manager *old = r.m;
    make_manager(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    assert_int_equal(commit_now(&r, "g", 0, 1), KERR_NONE);
    rig_close(&r);
    group_manager_free(old);
}

static void too_few_replicas(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    r.b.config.min_insync_replicas = 2;
    struct lead l = {
        .leader = 1, .isr = only_1, .isr_n = 1, .replicas = both, .replicas_n = 2, .is_new = true};
    assert_int_equal(bench_lead(&r.b, OFFSETS, HOME, l), KERR_NONE);
    sim_executor_drain(r.b.sim);
    assert_int_equal(commit_now(&r, "g", 0, 1), KERR_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(fetch_ok(&r, "g", 0), -1);
    rig_close(&r);
}

static void losing_the_partition(void **state)
{
    struct rig r = {0};
    enum kerr e;
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct commit_call *c = commit(&r, "g", 0, 1, STR_NULL);
    lead(&r, HOME, 2, 1, both, 2);
    sim_executor_drain(r.b.sim);
    assert_int_equal(end(c), KERR_NOT_COORDINATOR);
    fetch(&r, "g", 0, &e);
    assert_int_equal(e, KERR_NOT_COORDINATOR);
    assert_int_equal(commit_now(&r, "g", 0, 1), KERR_NOT_COORDINATOR);
    lead(&r, HOME, 1, 2, both, 2);
    sim_executor_drain(r.b.sim);
    fetch(&r, "g", 0, &e); /* in our log, but who comes next may not have it */
    assert_int_equal(e, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    struct partition *p = home(&r);
    bench_fetch(&r.b, p, 2, 0, NULL);
    bench_fetch(&r.b, p, 2, 1, NULL);
    partition_unref(p);
    sim_executor_drain(r.b.sim);
    assert_int_equal(fetch_ok(&r, "g", 0), 1);
    bench_stop(&r.b, OFFSETS, HOME, 2, true);
    sim_executor_drain(r.b.sim);
    fetch(&r, "g", 0, &e);
    assert_int_equal(e, KERR_NOT_COORDINATOR);
    lead(&r, HOME, 1, 0, only_1, 1); /* a topic made anew */
    sim_executor_drain(r.b.sim);
    assert_int_equal(fetch_ok(&r, "g", 0), -1);
    rig_close(&r);
}

static void news_that_come_faster_than_they_are_taken(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct partition *p = home(&r);
    bench_fetch(&r.b, p, 2, 0, NULL);
    partition_unref(p);
    struct commit_call *c = commit(&r, "g", 0, 1, STR_NULL);
    lead(&r, HOME, 2, 1, both, 2);
    lead(&r, HOME, 1, 2, both, 2);
    lead(&r, HOME, 2, 3, both, 2);
    lead(&r, HOME, 1, 4, only_1, 1);
    sim_executor_drain(r.b.sim);
    end(c);
    assert_int_equal(fetch_ok(&r, "g", 0), 1); /* it has been loaded anew */
    assert_int_equal(commit_now(&r, "g", 0, 2), KERR_NONE);
    rig_close(&r);
}

static void more_partitions_than_loads_at_once(void **state)
{
    struct rig r = {.shards = 3};
    rig_open(&r);
    static const char *const groups[] = {"g", "group", "my-group", "txn-1", "my-tx"};
    for (int i = 0; i < 50; i++)
        lead(&r, i, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    for (int i = 0; i < 5; i++)
        assert_int_equal(commit_now(&r, groups[i], 0, i), KERR_NONE);
    rig_restart(&r);
    for (int i = 0; i < 50; i++)
        lead(&r, i, 1, 1, only_1, 1);
    sim_executor_drain(r.b.sim);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fetch_ok(&r, groups[i], 0), i);
    rig_close(&r);
}

static void a_commit_that_is_too_large(void **state)
{
    struct rig r = {0};
    static char metadata[20000];
    rig_open(&r);
    r.b.config.max_message_bytes = 10000;
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    memset(metadata, 'm', sizeof(metadata));
    assert_int_equal(end(commit(&r, "g", 0, 1, (struct str){metadata, 20000})),
                     KERR_INVALID_COMMIT_OFFSET_SIZE);
    assert_int_equal(end(commit(&r, "g", 0, 2, (struct str){metadata, 9000})), KERR_NONE);
    assert_int_equal(fetch_ok(&r, "g", 0), 2);
    rig_restart(&r); /* and a batch larger than the load's buffer is read */
    lead(&r, HOME, 1, 1, only_1, 1);
    sim_executor_drain(r.b.sim);
    assert_int_equal(fetch_ok(&r, "g", 0), 2);
    rig_close(&r);
}

static void tombstones_fit_into_batches(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    enum { N = 2000 };
    for (int i = 0; i < N; i++)
        assert_int_equal(commit_now(&r, "g", i, i), KERR_NONE);
    struct partition *p = home(&r);
    r.b.config.max_message_bytes = 300 << 10;
    replica_manager_topic_config_changed(r.b.m, STR_LIT(OFFSETS));
    sim_executor_advance(r.b.sim, 700000000); /* all expire */
    struct log *log = partition_log(p);
    assert_int_equal(log_end_offset(log), 2 * N);
    log_unref(log);
    partition_unref(p);
    assert_int_equal(fetch_ok(&r, "g", 0), -1);
    rig_close(&r);
}

static void a_deleted_topic_takes_its_offsets_along(void **state)
{
    struct rig r = {.shards = 2};
    rig_open(&r);
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    assert_int_equal(commit_now(&r, "g", 0, 1), KERR_NONE);
    assert_int_equal(commit_now(&r, "g", 5, 1), KERR_NONE);
    struct update_metadata_request req;
    struct update_metadata_request_topic_state t;
    struct update_metadata_request_partition_state p;
    update_metadata_request_init(&req);
    update_metadata_request_topic_state_init(&t);
    update_metadata_request_partition_state_init(&p);
    t.topic_name = STR_LIT("t");
    t.partition_states.v = &p;
    t.partition_states.n = 1;
    p.leader = -2;
    req.topic_states.v = &t;
    req.topic_states.n = 1;
    assert_int_equal(replica_manager_update_metadata(r.b.m, &req), KERR_NONE);
    sim_executor_drain(r.b.sim);
    assert_int_equal(fetch_ok(&r, "g", 0), -1);
    assert_int_equal(fetch_ok(&r, "g", 5), 1);
    rig_close(&r);
}

static void a_disk_that_fails(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    assert_int_equal(commit_now(&r, "g", 0, 1), KERR_NONE);
    fs_fault_add(r.b.fault, (struct fs_fault_rule){
                                .call = FS_PWRITEV, .path = "*.log", .times = -1, .error = EIO});
    assert_int_equal(commit_now(&r, "g", 0, 2), KERR_NOT_COORDINATOR);
    assert_int_equal(commit_now(&r, "g", 0, 3), KERR_NOT_COORDINATOR);
    rig_close(&r);
}

static void a_load_that_fails(void **state)
{
    struct rig r = {0};
    enum kerr e;
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct commit_call *c = commit(&r, "g", 0, 1, STR_NULL);
    lead(&r, HOME, 2, 1, both, 2);
    sim_executor_drain(r.b.sim);
    end(c);
    fs_fault_add(r.b.fault, (struct fs_fault_rule){
                                .call = FS_PREAD, .path = "*.log", .times = -1, .error = EIO});
    lead(&r, HOME, 1, 2, only_1, 1);
    sim_executor_drain(r.b.sim);
    fetch(&r, "g", 0, &e); /* better no answer than that there is no offset */
    assert_int_equal(e, KERR_NOT_COORDINATOR);
    rig_close(&r);
}

static void flushes_before_the_answer_where_the_topic_wants_it(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    r.b.config.flush_messages = 1;
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    uint64_t syncs = fs_fault_count(r.b.fault, FS_SYNC);
    assert_int_equal(commit_now(&r, "g", 0, 1), KERR_NONE);
    assert_true(fs_fault_count(r.b.fault, FS_SYNC) > syncs);
    fs_fault_add(r.b.fault,
                 (struct fs_fault_rule){.call = FS_SYNC, .path = "*", .times = -1, .error = EIO});
    assert_int_equal(commit_now(&r, "g", 0, 2), KERR_NOT_COORDINATOR);
    rig_close(&r);
}

/* ---- parked calls ---- */

struct join_call {
    struct group_call c;
    struct arena arena;
    struct join_group_request in;
    struct join_group_response out;
    struct join_group_request_protocol protocol;
    bool done, cancelled;
    struct group_cancel cancel;
};

static void join_done(struct group_call *c)
{
    container_of(c, struct join_call, c)->done = true;
}

static void join_cancelled(struct group_cancel *c)
{
    container_of(c, struct join_call, cancel)->cancelled = true;
}

static void join(struct rig *r, struct join_call *j)
{
    memset(j, 0, sizeof(*j));
    arena_init(&j->arena, 0);
    join_group_request_init(&j->in);
    join_group_response_init(&j->out);
    j->protocol = (struct join_group_request_protocol){STR_LIT("range"), {(const uint8_t *)"m", 1}};
    j->in.group_id = STR_LIT("g");
    j->in.session_timeout_ms = 10000;
    j->in.rebalance_timeout_ms = 10000;
    j->in.protocol_type = STR_LIT("consumer");
    j->in.protocols.v = &j->protocol;
    j->in.protocols.n = 1;
    j->c = (struct group_call){.api = GROUP_JOIN,
                               .version = 3,
                               .client_id = STR_LIT("c"),
                               .client_host = STR_LIT("/h"),
                               .in = &j->in,
                               .out = &j->out,
                               .arena = &j->arena,
                               .done = join_done};
    group_manager_submit(r->m, &j->c);
}

static void cancelling_and_shutting_down(void **state)
{
    struct rig r = {0};
    struct join_call first, second, third;
    rig_open(&r);
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    join(&r, &first);
    sim_executor_advance(r.b.sim, 0);
    join(&r, &second);
    second.cancel = (struct group_cancel){.call = &second.c, .cancelled = join_cancelled};
    group_manager_cancel(r.m, &second.cancel); /* before it was even looked at */
    while (!second.cancelled)
        assert_true(sim_executor_step(r.b.sim));
    assert_true(second.done);
    join(&r, &third);
    group_manager_begin_shut_down(r.m);
    sim_executor_drain(r.b.sim);
    assert_true(first.done && third.done);
    struct commit_call *late = commit(&r, "g", 0, 1, STR_NULL);
    assert_int_equal(end(late), KERR_COORDINATOR_NOT_AVAILABLE);
    assert_true(group_manager_is_down(r.m));
    struct group_manager *m = r.m;
    bench_close(&r.b);
    group_manager_free(m);
    arena_free(&first.arena);
    arena_free(&second.arena);
    arena_free(&third.arena);
}

/* ---- the new protocol ---- */

struct beat_call {
    struct group_call c;
    struct arena arena;
    struct consumer_group_heartbeat_request in;
    struct consumer_group_heartbeat_response out;
    struct str name;
    bool done;
};

static void beat_done(struct group_call *c)
{
    container_of(c, struct beat_call, c)->done = true;
}

static struct beat_call *beat(struct rig *r, const char *member, int32_t epoch)
{
    struct beat_call *b = calloc(1, sizeof(*b));
    arena_init(&b->arena, 0);
    consumer_group_heartbeat_request_init(&b->in);
    consumer_group_heartbeat_response_init(&b->out);
    b->name = STR_LIT("t");
    b->in.group_id = STR_LIT("g");
    b->in.member_id = str_of(member);
    b->in.member_epoch = epoch;
    b->in.subscribed_topic_names.n = b->in.topic_partitions.n = -1;
    if (epoch == 0) {
        b->in.rebalance_timeout_ms = 60000;
        b->in.subscribed_topic_names.v = &b->name;
        b->in.subscribed_topic_names.n = 1;
        b->in.topic_partitions.n = 0;
    }
    b->c = (struct group_call){.api = GROUP_CONSUMER_HEARTBEAT,
                               .client_id = STR_LIT("c"),
                               .client_host = STR_LIT("/h"),
                               .in = &b->in,
                               .out = &b->out,
                               .arena = &b->arena,
                               .done = beat_done};
    group_manager_submit(r->m, &b->c);
    sim_executor_drain(r->b.sim);
    return b;
}

/* The error; *epoch and *partitions (-1 = not told) as answered. */
static enum kerr beat_end(struct beat_call *b, int32_t *epoch, int *partitions)
{
    assert_true(b->done);
    enum kerr e = b->out.error_code;
    *epoch = b->out.member_epoch;
    *partitions = b->out.assignment ? 0 : -1;
    for (int i = 0; b->out.assignment && i < b->out.assignment->topic_partitions.n; i++)
        *partitions += b->out.assignment->topic_partitions.v[i].partitions.n;
    arena_free(&b->arena);
    free(b);
    return e;
}

static void consumers_wait_for_replicas_and_hear_of_topics(void **state)
{
    struct rig r = {0};
    int32_t epoch;
    int n;
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct partition *p = home(&r);
    struct beat_call *first = beat(&r, "A", 0);
    assert_false(first->done);
    bench_fetch(&r.b, p, 2, 0, NULL);
    bench_fetch(&r.b, p, 2, 4, NULL); /* member, epoch, assignment's epoch, member's state */
    sim_executor_drain(r.b.sim);
    assert_int_equal(beat_end(first, &epoch, &n), KERR_NONE);
    assert_int_equal(epoch, 1);
    assert_int_equal(n, 0); /* "t" has no id yet: it does not exist for this protocol */
    bench_metadata_ids(&r.b, "t", 7);
    struct beat_call *second = beat(&r, "A", 1);
    assert_false(second->done);
    bench_fetch(&r.b, p, 2, 9, NULL); /* the same but for the member, topics and a target */
    sim_executor_drain(r.b.sim);
    assert_int_equal(beat_end(second, &epoch, &n), KERR_NONE);
    assert_int_equal(n, 2);
    struct beat_call *late = beat(&r, "B", 0);
    sim_executor_advance(r.b.sim, 5000); /* the other replica is away */
    assert_int_equal(beat_end(late, &epoch, &n), KERR_COORDINATOR_NOT_AVAILABLE);
    partition_unref(p);
    rig_close(&r);
}

static void consumers_survive_a_restart(void **state)
{
    struct rig r = {0};
    int32_t epoch;
    int n;
    rig_open(&r);
    bench_metadata_ids(&r.b, "t", 7);
    lead(&r, HOME, 1, 0, only_1, 1);
    sim_executor_drain(r.b.sim);
    assert_int_equal(beat_end(beat(&r, "A", 0), &epoch, &n), KERR_NONE);
    assert_int_equal(n, 2);
    assert_int_equal(beat_end(beat(&r, "B", 0), &epoch, &n), KERR_NONE);
    rig_restart(&r);
    bench_metadata_ids(&r.b, "t", 7);
    assert_int_equal(beat_end(beat(&r, "A", 1), &epoch, &n), KERR_NOT_COORDINATOR);
    lead(&r, HOME, 1, 1, only_1, 1);
    sim_executor_drain(r.b.sim);
    assert_int_equal(beat_end(beat(&r, "A", 1), &epoch, &n), KERR_NONE);
    assert_int_equal(epoch, 1);
    assert_int_equal(n, 1); /* it must give one up */
    lead(&r, HOME, 2, 2, both, 2);
    sim_executor_drain(r.b.sim);
    assert_int_equal(beat_end(beat(&r, "A", 1), &epoch, &n), KERR_NOT_COORDINATOR);
    rig_close(&r);
}

static void a_shut_down_ends_what_waits(void **state)
{
    struct rig r = {0};
    rig_open(&r);
    lead(&r, HOME, 1, 0, both, 2);
    sim_executor_drain(r.b.sim);
    struct commit_call *c = commit(&r, "g", 0, 1, STR_NULL);
    assert_false(c->done);
    stop_manager(&r);
    assert_int_equal(end(c), KERR_NOT_COORDINATOR);
    struct group_manager *m = r.m;
    bench_close(&r.b);
    group_manager_free(m);
}

UNIT_MAIN(unit_test(commits_go_through_the_log), unit_test(a_commit_waits_for_the_replicas),
          unit_test(replicas_that_do_not_come), unit_test(acks_1_does_not_wait),
          unit_test(too_few_replicas), unit_test(losing_the_partition),
          unit_test(news_that_come_faster_than_they_are_taken),
          unit_test(more_partitions_than_loads_at_once), unit_test(a_commit_that_is_too_large),
          unit_test(tombstones_fit_into_batches),
          unit_test(a_deleted_topic_takes_its_offsets_along), unit_test(a_disk_that_fails),
          unit_test(a_load_that_fails),
          unit_test(flushes_before_the_answer_where_the_topic_wants_it),
          unit_test(consumers_wait_for_replicas_and_hear_of_topics),
          unit_test(consumers_survive_a_restart), unit_test(cancelling_and_shutting_down),
          unit_test(a_shut_down_ends_what_waits))
