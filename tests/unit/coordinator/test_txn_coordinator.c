/* test_txn_coordinator.c - the transaction coordinator on a log that obeys the test, with brokers
 * that the test plays: whole transactions, markers that fail, partitions that are won and lost. */
#include "coordinator/txn_coordinator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sim_executor.h"
#include "bench_log.h"
#include "coordinator/key_partition.h"
#include "coordinator/txn_loading.h"
#include "protocol/msg/describe_transactions.h"
#include "protocol/msg/list_transactions.h"
#include "protocol/msg/update_metadata.h"
#include "protocol/msg/write_txn_markers.h"

enum {
    BROKERS = 3,
    MAX_TIMEOUT = 900000,
    ABORT_MS = 10000,
    EXPIRE_MS = 3600000,
    EXPIRATION_MS = 7000000
};

struct fake_broker {
    struct remote base;
    peer_cb cb; /* of the request that is out; NULL none */
    void *arg;
    const struct write_txn_markers_request *request;
    int sent;
};

struct rig {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct bench_log log;
    struct metadata_cache *metadata;
    struct fake_broker brokers[BROKERS + 1];
    struct txn_coordinator *c;
    int64_t next_producer;
    bool no_producers;
    uint64_t load;
    int loads;
};

/* ---- brokers ---- */

static int fake_send(struct remote *r, int16_t api_key, int min_version, int max_version,
                     const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct fake_broker *f = container_of(r, struct fake_broker, base);
    (void)min_version;
    (void)max_version;
    assert_int_equal(api_key, API_WRITE_TXN_MARKERS);
    assert_int_equal(timeout_ms, 30000);
    assert_null(f->cb); /* one at a time */
    f->cb = cb;
    f->arg = arg;
    f->request = request;
    f->sent++;
    return 0;
}

static void fake_end(struct fake_broker *f, int status, const void *response)
{
    peer_cb cb = f->cb;
    assert_non_null(cb);
    f->cb = NULL;
    cb(f->arg, status, 1, response);
}

static void fake_close(struct remote *r)
{
    struct fake_broker *f = container_of(r, struct fake_broker, base);
    if (f->cb)
        fake_end(f, -ECANCELED, NULL);
}

static struct remote *fake_open(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    static const struct remote_ops ops = {fake_send, fake_close};
    struct rig *r = arg;
    (void)client_id;
    (void)timeout_ms;
    (void)host;
    struct fake_broker *f = &r->brokers[port % 10];
    f->base.ops = &ops;
    return &f->base;
}

/* Answers all partitions of the request that is out with `error`, but those of `but`. */
static void answer_but(struct rig *r, int broker, enum kerr error, const char *but,
                       enum kerr but_error)
{
    struct fake_broker *f = &r->brokers[broker];
    const struct write_txn_markers_request *in = f->request;
    struct write_txn_markers_response out;
    struct arena a;
    arena_init(&a, 0);
    write_txn_markers_response_init(&out);
    out.markers.v = write_txn_markers_response_marker_new(&a, in->markers.n);
    out.markers.n = in->markers.n;
    for (int32_t m = 0; m < in->markers.n; m++) {
        struct write_txn_markers_response_marker *to = &out.markers.v[m];
        to->producer_id = in->markers.v[m].producer_id;
        to->topics.n = in->markers.v[m].topics.n;
        to->topics.v = write_txn_markers_response_topic_new(&a, to->topics.n);
        for (int32_t t = 0; t < to->topics.n; t++) {
            const struct write_txn_markers_request_topic *from = &in->markers.v[m].topics.v[t];
            to->topics.v[t].name = from->name;
            to->topics.v[t].partitions.n = from->partition_indexes.n;
            to->topics.v[t].partitions.v =
                write_txn_markers_response_partition_new(&a, from->partition_indexes.n);
            for (int32_t p = 0; p < from->partition_indexes.n; p++) {
                bool other = but && str_eqz(from->name, but);
                to->topics.v[t].partitions.v[p].partition_index = from->partition_indexes.v[p];
                to->topics.v[t].partitions.v[p].error_code = (int16_t)(other ? but_error : error);
            }
        }
    }
    fake_end(f, 0, &out);
    arena_free(&a);
    sim_executor_drain(r->sim);
}

static void answer(struct rig *r, int broker, enum kerr error)
{
    answer_but(r, broker, error, NULL, KERR_NONE);
}

/* ---- the cluster ---- */

static void add_topic(struct update_metadata_request_topic_state *to,
                      struct update_metadata_request_partition_state *v, const char *name,
                      int32_t leader)
{
    static const int32_t replicas[] = {1, 2, 3};
    update_metadata_request_topic_state_init(to);
    to->topic_name = str_of(name);
    to->partition_states.v = v;
    to->partition_states.n = 2;
    for (int i = 0; i < 2; i++) {
        update_metadata_request_partition_state_init(&v[i]);
        v[i].partition_index = i;
        v[i].leader = leader;
        v[i].replicas.v = (int32_t *)replicas;
        v[i].replicas.n = 3;
    }
}

/* Topics "one", "two", "three" are led by brokers 1, 2, 3; but broker `dead` is away, and what it
 * led is led by `heir`. leader -2 deletes. */
static void metadata(struct rig *r, int dead, int32_t heir)
{
    static const char *const names[] = {"one", "two", "three"};
    struct update_metadata_request req;
    struct update_metadata_request_live_broker alive[BROKERS];
    struct update_metadata_request_endpoint endpoints[BROKERS];
    struct update_metadata_request_topic_state topics[BROKERS + 1];
    struct update_metadata_request_partition_state partitions[BROKERS + 1][2];
    int n = 0;
    update_metadata_request_init(&req);
    for (int id = 1; id <= BROKERS; id++) {
        add_topic(&topics[id - 1], partitions[id - 1], names[id - 1], id == dead ? heir : id);
        if (id == dead)
            continue;
        update_metadata_request_live_broker_init(&alive[n]);
        update_metadata_request_endpoint_init(&endpoints[n]);
        endpoints[n].host = STR_LIT("h");
        endpoints[n].port = 9000 + id;
        endpoints[n].listener = STR_LIT("PLAINTEXT");
        alive[n].id = id;
        alive[n].endpoints.v = &endpoints[n];
        alive[n].endpoints.n = 1;
        n++;
    }
    add_topic(&topics[BROKERS], partitions[BROKERS], "__transaction_state", 1);
    req.live_brokers.v = alive;
    req.live_brokers.n = n;
    req.topic_states.v = topics;
    req.topic_states.n = BROKERS + 1;
    assert_int_equal(metadata_cache_update(r->metadata, &req), 0);
    txn_coordinator_metadata_changed(r->c);
    sim_executor_drain(r->sim);
}

static int producer_id(void *arg, int64_t *id)
{
    struct rig *r = arg;
    if (r->no_producers)
        return -EAGAIN;
    *id = r->next_producer++;
    return 0;
}

static void load(void *arg, int32_t partition, int32_t leader_epoch, uint64_t number)
{
    struct rig *r = arg;
    (void)partition;
    (void)leader_epoch;
    r->load = number;
    r->loads++;
}

static void make_coordinator(struct rig *r)
{
    struct txn_coordinator_options o = {.ex = sim_executor_ex(r->sim),
                                        .log = &r->log.log,
                                        .partitions_n = BENCH_PARTITIONS,
                                        .config = {MAX_TIMEOUT, EXPIRATION_MS, ABORT_MS, EXPIRE_MS},
                                        .markers = {.ex = sim_executor_ex(r->sim),
                                                    .metadata = r->metadata,
                                                    .listener = STR_LIT("PLAINTEXT"),
                                                    .opener = {fake_open, r},
                                                    .client_id = "1",
                                                    .timeout_ms = 30000},
                                        .producer_id = producer_id,
                                        .load = load,
                                        .arg = r};
    assert_int_equal(txn_coordinator_new(&o, &r->c), 0);
    txn_coordinator_start(r->c);
}

/* Reads what the log has, as of the last load. */
static void finish_load(struct rig *r, int32_t partition)
{
    struct txn_loading *l = txn_loading_new(partition);
    const struct buf *bytes = &r->log.batches[partition];
    struct txn **ids;
    struct batch batch;
    int n;
    for (size_t at = 0; at < bytes->len; at += batch.size) {
        assert_int_equal(batch_decode(bytes->p + at, bytes->len - at, bytes->len - at, &batch),
                         BATCH_OK);
        assert_int_equal(txn_loading_add(l, &batch), 0);
    }
    assert_int_equal(txn_loading_take(l, &ids, &n), 0);
    txn_coordinator_loaded(r->c, partition, r->load, ids, n, 0);
    free(ids);
    txn_loading_free(l);
    sim_executor_drain(r->sim);
}

static void own(struct rig *r, int32_t partition, int32_t epoch)
{
    txn_coordinator_elected(r->c, partition, epoch);
    finish_load(r, partition);
}

static void setup(struct rig *r)
{
    *r = (struct rig){.next_producer = 7};
    sim_clock_init(&r->clock, BENCH_START_MS);
    r->sim = sim_executor_new(&r->clock);
    r->log.log.ops = &bench_log_ops;
    r->log.ex = sim_executor_ex(r->sim);
    list_init(&r->log.held);
    r->metadata = metadata_cache_new();
    make_coordinator(r);
    metadata(r, 0, 0);
    for (int32_t p = 0; p < BENCH_PARTITIONS; p++)
        own(r, p, 4);
}

static void teardown(struct rig *r)
{
    txn_coordinator_shut_down(r->c);
    sim_executor_drain(r->sim);
    txn_coordinator_free(r->c);
    metadata_cache_free(r->metadata);
    for (int i = 0; i < BENCH_PARTITIONS; i++)
        buf_free(&r->log.batches[i]);
    sim_executor_free(r->sim);
}

/* ---- calls ---- */

struct call {
    struct txn_call c;
    struct txn_call_partition partitions[3];
    bool done;
};

static void call_done(struct txn_call *c)
{
    struct call *call = container_of(c, struct call, c);
    assert_false(call->done);
    call->done = true;
}

static void begin(struct rig *r, struct call *c, struct txn_call in)
{
    c->done = false;
    c->c = in;
    c->c.done = call_done;
    if (in.partitions_n)
        c->c.partitions = c->partitions;
    txn_coordinator_handle(r->c, &c->c);
}

static enum kerr run(struct rig *r, struct call *c, struct txn_call in)
{
    begin(r, c, in);
    sim_executor_drain(r->sim);
    assert_true(c->done);
    return c->c.error;
}

static struct txn_call init_call(const char *id, int64_t producer, int16_t epoch)
{
    return (struct txn_call){.api = TXN_CALL_INIT,
                             .id = str_of(id),
                             .producer_id = producer,
                             .epoch = epoch,
                             .timeout_ms = 60000};
}

static struct txn_call end_call(const char *id, int64_t producer, int16_t epoch, bool commit)
{
    return (struct txn_call){.api = TXN_CALL_END,
                             .id = str_of(id),
                             .producer_id = producer,
                             .epoch = epoch,
                             .commit = commit};
}

static enum kerr init(struct rig *r, const char *id)
{
    struct call c;
    return run(r, &c, init_call(id, -1, -1));
}

/* n partitions number 0 of topics one, two, three */
static enum kerr add_or_verify(struct rig *r, enum txn_api api, const char *id, int64_t producer,
                               int16_t epoch, int n)
{
    static const char *const names[] = {"one", "two", "three"};
    struct call c = {0};
    for (int i = 0; i < n; i++)
        c.partitions[i].topic = str_of(names[i]);
    enum kerr e = run(r, &c,
                      (struct txn_call){.api = api,
                                        .id = str_of(id),
                                        .producer_id = producer,
                                        .epoch = epoch,
                                        .partitions_n = n});
    for (int i = 0; i < n && e == KERR_NONE; i++)
        if (c.partitions[i].error != KERR_NONE)
            e = c.partitions[i].error;
    return e;
}

static enum kerr add(struct rig *r, const char *id, int64_t producer, int16_t epoch, int n)
{
    return add_or_verify(r, TXN_CALL_ADD, id, producer, epoch, n);
}

static enum kerr end(struct rig *r, const char *id, int64_t producer, int16_t epoch, bool commit)
{
    struct call c;
    return run(r, &c, end_call(id, producer, epoch, commit));
}

static enum txn_state state_of(const struct rig *r, const char *id)
{
    const struct txn *t = txn_coordinator_find(r->c, str_of(id));
    assert_non_null(t);
    return t->now.state;
}

/* ---- tests ---- */

static void a_commit(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    setup(&r);
    assert_int_equal(run(&r, &c, init_call("x", -1, -1)), KERR_NONE);
    assert_int_equal(c.c.producer_id, 7);
    assert_int_equal(c.c.epoch, 0);
    assert_int_equal(add(&r, "x", 7, 0, 3), KERR_NONE);
    int appends = r.log.appends;
    assert_int_equal(add(&r, "x", 7, 0, 2), KERR_NONE); /* nothing new: nothing is written */
    assert_int_equal(r.log.appends, appends);
    assert_int_equal(state_of(&r, "x"), TXN_ONGOING);
    assert_int_equal(add_or_verify(&r, TXN_CALL_VERIFY, "x", 7, 0, 3), KERR_NONE);
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_NONE); /* before the markers are written */
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_COMMIT);
    for (int b = 1; b <= 3; b++) {
        const struct write_txn_markers_request *in = r.brokers[b].request;
        assert_int_equal(r.brokers[b].sent, 1);
        assert_int_equal(in->markers.n, 1);
        assert_int_equal(in->markers.v->producer_id, 7);
        assert_int_equal(in->markers.v->producer_epoch, 0);
        assert_int_equal(in->markers.v->coordinator_epoch, 4);
        assert_true(in->markers.v->transaction_result);
        assert_int_equal(in->markers.v->topics.n, 1);
    }
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_CONCURRENT_TRANSACTIONS);
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_CONCURRENT_TRANSACTIONS);
    assert_int_equal(init(&r, "x"), KERR_CONCURRENT_TRANSACTIONS);
    answer(&r, 1, KERR_NONE);
    answer(&r, 3, KERR_NONE);
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_COMMIT);
    answer(&r, 2, KERR_NONE);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_COMMIT);
    assert_int_equal(txn_coordinator_markers_waiting(r.c), 0);
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_NONE);
    assert_int_equal(end(&r, "x", 7, 0, false), KERR_INVALID_TXN_STATE);
    assert_int_equal(run(&r, &c, init_call("x", -1, -1)), KERR_NONE);
    assert_int_equal(c.c.epoch, 1);
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_PRODUCER_FENCED);
    teardown(&r);
}

static void an_init_in_a_transaction_aborts_it_first(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 1);
    assert_int_equal(init(&r, "x"), KERR_CONCURRENT_TRANSACTIONS);
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_ABORT);
    assert_int_equal(r.brokers[1].request->markers.v->producer_epoch, 1);
    assert_false(r.brokers[1].request->markers.v->transaction_result);
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_PRODUCER_FENCED);
    answer(&r, 1, KERR_NONE);
    assert_int_equal(run(&r, &c, init_call("x", -1, -1)), KERR_NONE);
    assert_int_equal(c.c.epoch, 2);
    teardown(&r);
}

/* What becomes of a marker by the answer to it. */
static void markers_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum kerr error;
        bool again, fenced;
    } rows[] = {
        {KERR_UNKNOWN_TOPIC_OR_PARTITION, true, false},
        {KERR_NOT_LEADER_OR_FOLLOWER, true, false},
        {KERR_NOT_ENOUGH_REPLICAS, true, false},
        {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, true, false},
        {KERR_REQUEST_TIMED_OUT, true, false},
        {KERR_KAFKA_STORAGE_ERROR, true, false},
        {KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, false, false},
        {KERR_UNSUPPORTED_VERSION, false, false},
        {KERR_INVALID_PRODUCER_EPOCH, false, true},
        {KERR_TRANSACTION_COORDINATOR_FENCED, false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rig r;
        setup(&r);
        init(&r, "x");
        add(&r, "x", 7, 0, 2);
        end(&r, "x", 7, 0, false);
        answer(&r, 2, KERR_NONE);
        answer(&r, 1, rows[i].error);
        sim_executor_advance(r.sim, 99);
        assert_int_equal(r.brokers[1].sent, 1); /* not at once: it would be asked without end */
        sim_executor_advance(r.sim, 101);
        assert_int_equal(r.brokers[1].sent, rows[i].again ? 2 : 1);
        assert_int_equal(r.brokers[2].sent, 1);
        if (rows[i].again)
            answer(&r, 1, KERR_NONE);
        assert_int_equal(state_of(&r, "x"),
                         rows[i].fenced ? TXN_PREPARE_ABORT : TXN_COMPLETE_ABORT);
        assert_int_equal(txn_coordinator_markers_waiting(r.c), 0);
        teardown(&r);
    }
}

static void a_fenced_marker_ends_those_that_are_out_too(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 3);
    end(&r, "x", 7, 0, true);
    answer(&r, 2, KERR_TRANSACTION_COORDINATOR_FENCED);
    answer(&r, 1, KERR_NOT_LEADER_OR_FOLLOWER);
    answer(&r, 3, KERR_NONE);
    sim_executor_advance(r.sim, 1000);
    for (int b = 1; b <= 3; b++)
        assert_int_equal(r.brokers[b].sent, 1);
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_COMMIT);
    teardown(&r);
}

static void markers_follow_the_leader(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 2);
    metadata(&r, 2, -1); /* nobody leads "two" */
    end(&r, "x", 7, 0, true);
    answer(&r, 1, KERR_NONE);
    sim_executor_advance(r.sim, 5000);
    assert_int_equal(r.brokers[2].sent, 0);
    metadata(&r, 2, 3); /* now broker 3 does */
    assert_int_equal(r.brokers[3].sent, 1);
    fake_end(&r.brokers[3], -ECONNRESET, NULL);
    sim_executor_advance(r.sim, 200);
    assert_int_equal(r.brokers[3].sent, 2);
    answer(&r, 3, KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(r.brokers[2].sent, 0);
    metadata(&r, 0, 0); /* the news are waited for no longer than they take */
    assert_int_equal(r.brokers[2].sent, 1);
    fake_end(&r.brokers[2], -ETIMEDOUT, NULL);
    sim_executor_advance(r.sim, 200);
    answer(&r, 2, KERR_NONE);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_COMMIT);
    teardown(&r);
}

static void a_partition_that_is_gone_needs_no_marker(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 2);
    metadata(&r, 2, -2);
    end(&r, "x", 7, 0, true);
    answer(&r, 1, KERR_NONE);
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_COMMIT);
    sim_executor_advance(r.sim, 31000);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_COMMIT);
    add(&r, "x", 7, 0, 1);
    metadata(&r, 1, -2); /* and now there is nothing left to write */
    assert_int_equal(end(&r, "x", 7, 0, false), KERR_NONE);
    sim_executor_advance(r.sim, 31000);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_ABORT);
    teardown(&r);
}

/* A broker that has just come hears of the cluster in pieces: of __transaction_state, and later of
 * what its transactions wrote to. */
static void a_partition_that_is_not_known_yet_gets_its_marker(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 2);
    metadata(&r, 2, -2);
    end(&r, "x", 7, 0, true);
    answer(&r, 1, KERR_NONE);
    sim_executor_advance(r.sim, 20000);
    metadata(&r, 0, 0);
    assert_int_equal(r.brokers[2].sent, 1);
    fake_end(&r.brokers[2], -ECONNRESET, NULL); /* what it was missed before does not count */
    metadata(&r, 2, -2);
    sim_executor_advance(r.sim, 20000);
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_COMMIT);
    metadata(&r, 0, 0);
    sim_executor_advance(r.sim, 200);
    answer(&r, 2, KERR_NONE);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_COMMIT);
    teardown(&r);
}

static void many_transactions_share_a_request(void **state)
{
    (void)state;
    struct rig r;
    char id[16];
    setup(&r);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof(id), "id-%d", i);
        assert_int_equal(init(&r, id), KERR_NONE);
        assert_int_equal(add(&r, id, 7 + i, 0, 2), KERR_NONE);
        assert_int_equal(end(&r, id, 7 + i, 0, i % 2), KERR_NONE);
    }
    assert_int_equal(r.brokers[1].sent, 1); /* one is out, the rest waits */
    answer(&r, 1, KERR_NONE);
    assert_int_equal(r.brokers[1].sent, 2);
    assert_int_equal(r.brokers[1].request->markers.n, 19);
    answer_but(&r, 1, KERR_NONE, "one", KERR_NOT_LEADER_OR_FOLLOWER);
    sim_executor_advance(r.sim, 200);
    assert_int_equal(r.brokers[1].request->markers.n, 19);
    answer(&r, 1, KERR_NONE);
    answer(&r, 2, KERR_NONE);
    answer(&r, 2, KERR_NONE);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof(id), "id-%d", i);
        assert_int_equal(state_of(&r, id), i % 2 ? TXN_COMPLETE_COMMIT : TXN_COMPLETE_ABORT);
    }
    teardown(&r);
}

/* ---- failing writes ---- */

static void what_the_log_says_is_told_in_the_coordinators_words(void **state)
{
    (void)state;
    static const struct {
        enum kerr log, client;
    } rows[] = {
        {KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_ENOUGH_REPLICAS, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_REQUEST_TIMED_OUT, KERR_COORDINATOR_NOT_AVAILABLE},
        {KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_COORDINATOR},
        {KERR_KAFKA_STORAGE_ERROR, KERR_NOT_COORDINATOR},
        {KERR_MESSAGE_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
        {KERR_RECORD_LIST_TOO_LARGE, KERR_UNKNOWN_SERVER_ERROR},
    };
    struct rig r;
    struct call c;
    setup(&r);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        r.log.next_error = rows[i].log;
        assert_int_equal(init(&r, "x"), rows[i].client);
    }
    assert_int_equal(run(&r, &c, init_call("x", -1, -1)), KERR_NONE); /* none was given out */
    assert_int_equal(c.c.epoch, 0);
    r.log.next_error = KERR_NOT_ENOUGH_REPLICAS;
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(state_of(&r, "x"), TXN_EMPTY);
    add(&r, "x", 7, 0, 1);
    r.log.next_error = KERR_NOT_ENOUGH_REPLICAS;
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(state_of(&r, "x"), TXN_ONGOING);
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_NONE);
    teardown(&r);
}

static void a_fence_that_cannot_be_written_is_not_raised_twice(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 1);
    for (int i = 0; i < 3; i++) {
        r.log.next_error = KERR_NOT_ENOUGH_REPLICAS;
        assert_int_equal(init(&r, "x"), KERR_COORDINATOR_NOT_AVAILABLE);
    }
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_PRODUCER_FENCED);
    assert_int_equal(init(&r, "x"), KERR_CONCURRENT_TRANSACTIONS);
    assert_int_equal(r.brokers[1].request->markers.v->producer_epoch, 1);
    teardown(&r);
}

static void the_last_record_is_tried_until_it_is_written(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 1);
    end(&r, "x", 7, 0, true);
    for (int i = 0; i < 5; i++) {
        r.log.next_error = KERR_NOT_ENOUGH_REPLICAS;
        if (i == 0)
            answer(&r, 1, KERR_NONE);
        else
            sim_executor_advance(r.sim, 100);
        assert_int_equal(state_of(&r, "x"), TXN_PREPARE_COMMIT);
    }
    sim_executor_advance(r.sim, 100);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_COMMIT);
    assert_int_equal(r.brokers[1].sent, 1);
    teardown(&r);
}

static int64_t held_timeout(struct rig *r)
{
    sim_executor_drain(r->sim);
    struct list *l = list_pop(&r->log.held);
    assert_non_null(l);
    struct group_append *append = list_entry(l, struct group_append, link);
    int64_t ms = append->timeout_ms;
    append->done(append);
    return ms;
}

/* One of a millisecond, as those who only fence have it, would else never get a write to its
 * replicas in time, nor would whoever comes after it. */
static void a_write_waits_as_long_as_its_own_producer_says(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    struct txn_call brief = init_call("x", -1, -1), patient = brief;
    brief.timeout_ms = 1;
    setup(&r);
    r.log.hold = true;
    begin(&r, &c, brief);
    assert_int_equal(held_timeout(&r), 1);
    begin(&r, &c, patient);
    assert_int_equal(held_timeout(&r), patient.timeout_ms);
    begin(&r, &c, brief);
    held_timeout(&r);
    r.log.hold = false;
    assert_int_equal(add(&r, "x", 7, 2, 1), KERR_NONE);
    assert_int_equal(end(&r, "x", 7, 2, true), KERR_NONE);
    r.log.hold = true;
    answer(&r, 1, KERR_NONE);
    assert_int_equal(held_timeout(&r), 0); /* the last image: as long as the log has it */
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_COMMIT);
    teardown(&r);
}

static void everybody_waits_for_a_write(void **state)
{
    (void)state;
    struct rig r;
    struct call a, b;
    setup(&r);
    init(&r, "x");
    r.log.hold = true;
    begin(&r, &a, init_call("x", -1, -1));
    sim_executor_drain(r.sim);
    assert_false(a.done);
    assert_int_equal(run(&r, &b, init_call("x", -1, -1)), KERR_CONCURRENT_TRANSACTIONS);
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_CONCURRENT_TRANSACTIONS);
    r.log.hold = false;
    struct list *l = list_pop(&r.log.held);
    struct group_append *append = list_entry(l, struct group_append, link);
    append->done(append);
    assert_true(a.done);
    assert_int_equal(a.c.epoch, 1);
    teardown(&r);
}

/* ---- partitions ---- */

static void ids_are_served_where_their_partition_is(void **state)
{
    (void)state;
    struct rig r;
    int32_t home = key_partition(STR_LIT("x"), BENCH_PARTITIONS);
    setup(&r);
    init(&r, "x");
    txn_coordinator_resigned(r.c, home, 5);
    assert_int_equal(init(&r, "x"), KERR_NOT_COORDINATOR);
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_NOT_COORDINATOR);
    txn_coordinator_elected(r.c, home, 4); /* old news */
    assert_int_equal(init(&r, "x"), KERR_NOT_COORDINATOR);
    txn_coordinator_elected(r.c, home, 6);
    assert_int_equal(init(&r, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    txn_coordinator_resigned(r.c, home, 5); /* the same */
    assert_int_equal(init(&r, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    struct call c;
    struct txn_call long_one = init_call("x", -1, -1);
    long_one.timeout_ms = MAX_TIMEOUT + 1; /* is wrong at any coordinator */
    assert_int_equal(run(&r, &c, long_one), KERR_INVALID_TRANSACTION_TIMEOUT);
    uint64_t old = r.load;
    txn_coordinator_resigned(r.c, home, 7);
    txn_coordinator_elected(r.c, home, 8);
    txn_coordinator_loaded(r.c, home, old, NULL, 0, 0); /* an old load */
    assert_int_equal(init(&r, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    txn_coordinator_loaded(r.c, home, r.load, NULL, 0, -EIO);
    assert_int_equal(init(&r, "x"), KERR_NOT_COORDINATOR);
    own(&r, home, 9);
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_NONE);
    assert_int_equal(add(&r, "", 7, 0, 1), KERR_INVALID_REQUEST);
    assert_int_equal(add(&r, "unknown", 7, 0, 1), KERR_INVALID_PRODUCER_ID_MAPPING);
    teardown(&r);
}

/* Nobody else would: this broker leads, as far as the others know. */
static void a_load_that_failed_is_tried_again(void **state)
{
    static const struct {
        int error;
        bool again;
    } rows[] = {{-ENOMEM, true}, {-EIO, true}, {-EBADMSG, false}, {-ECANCELED, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rig r;
        int32_t home = key_partition(STR_LIT("x"), BENCH_PARTITIONS);
        setup(&r);
        init(&r, "x");
        txn_coordinator_resigned(r.c, home, 5);
        txn_coordinator_elected(r.c, home, 6);
        for (int failure = 0; failure < 2; failure++) {
            uint64_t failed = r.load;
            txn_coordinator_loaded(r.c, home, failed, NULL, 0, rows[i].error);
            assert_int_equal(init(&r, "x"), KERR_NOT_COORDINATOR);
            sim_executor_advance(r.sim, ABORT_MS);
            assert_int_equal(r.load != failed, rows[i].again);
        }
        if (rows[i].again) {
            finish_load(&r, home);
            assert_int_equal(add(&r, "x", 7, 0, 1), KERR_NONE);
            txn_coordinator_resigned(r.c, home, 7);
            txn_coordinator_elected(r.c, home, 8);
            txn_coordinator_loaded(r.c, home, r.load, NULL, 0, rows[i].error);
            txn_coordinator_resigned(r.c, home, 9); /* another leads now */
            uint64_t last = r.load;
            sim_executor_advance(r.sim, ABORT_MS);
            assert_int_equal(r.load, last);
        }
        teardown(&r);
    }
}

static void a_new_leader_brings_what_is_prepared_to_its_end(void **state)
{
    (void)state;
    for (int commit = 0; commit <= 1; commit++) {
        struct rig r;
        int32_t home = key_partition(STR_LIT("x"), BENCH_PARTITIONS);
        setup(&r);
        init(&r, "x");
        add(&r, "x", 7, 0, 2);
        end(&r, "x", 7, 0, commit);
        answer(&r, 1, KERR_NONE);
        txn_coordinator_resigned(r.c, home, 5);
        assert_int_equal(txn_coordinator_markers_waiting(r.c), 0);
        own(&r, home, 6);
        assert_int_equal(r.brokers[1].sent, 2);
        assert_int_equal(r.brokers[1].request->markers.v->coordinator_epoch, 6);
        assert_int_equal(r.brokers[1].request->markers.v->transaction_result, commit);
        answer(&r, 1, KERR_NONE);
        answer(&r, 2, KERR_TRANSACTION_COORDINATOR_FENCED); /* of the request sent before */
        answer(&r, 2, KERR_NONE);
        assert_int_equal(state_of(&r, "x"), commit ? TXN_COMPLETE_COMMIT : TXN_COMPLETE_ABORT);
        teardown(&r);
    }
}

static void a_write_of_an_old_leadership_comes_to_nothing(void **state)
{
    (void)state;
    static const enum kerr ends[] = {KERR_NONE, KERR_NOT_LEADER_OR_FOLLOWER};
    for (size_t i = 0; i < 2; i++) {
        struct rig r;
        struct call c;
        int32_t home = key_partition(STR_LIT("x"), BENCH_PARTITIONS);
        setup(&r);
        init(&r, "x");
        r.log.hold = true;
        begin(&r, &c, init_call("x", -1, -1));
        txn_coordinator_resigned(r.c, home, 5);
        own(&r, home, 6);
        int16_t loaded = txn_coordinator_find(r.c, STR_LIT("x"))->now.epoch;
        struct list *l = list_pop(&r.log.held);
        struct group_append *append = list_entry(l, struct group_append, link);
        append->error = ends[i];
        append->done(append);
        assert_true(c.done);
        assert_int_equal(c.c.error, KERR_NOT_COORDINATOR);
        assert_int_equal(txn_coordinator_find(r.c, STR_LIT("x"))->now.epoch, loaded);
        assert_false(txn_coordinator_find(r.c, STR_LIT("x"))->pending);
        teardown(&r);
    }
}

static void the_epoch_may_move_on_while_the_leader_stays(void **state)
{
    (void)state;
    struct rig r;
    struct call c;
    int32_t home = key_partition(STR_LIT("x"), BENCH_PARTITIONS);
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 1);
    r.log.hold = true;
    begin(&r, &c, end_call("x", 7, 0, true));
    txn_coordinator_elected(r.c, home, 5);
    r.log.hold = false;
    struct list *l = list_pop(&r.log.held);
    struct group_append *append = list_entry(l, struct group_append, link);
    append->done(append);
    sim_executor_drain(r.sim);
    assert_int_equal(c.c.error, KERR_NONE);
    assert_int_equal(r.brokers[1].request->markers.v->coordinator_epoch, 5);
    teardown(&r);
}

/* ---- time ---- */

static void a_transaction_that_takes_too_long_is_aborted(void **state)
{
    (void)state;
    struct rig r;
    setup(&r);
    init(&r, "x");
    add(&r, "x", 7, 0, 1);
    sim_executor_advance(r.sim, 60000);
    assert_int_equal(state_of(&r, "x"), TXN_ONGOING);
    sim_executor_advance(r.sim, ABORT_MS);
    assert_int_equal(state_of(&r, "x"), TXN_PREPARE_ABORT);
    assert_int_equal(r.brokers[1].request->markers.v->producer_epoch, 1);
    assert_int_equal(end(&r, "x", 7, 0, true), KERR_PRODUCER_FENCED);
    answer(&r, 1, KERR_NONE);
    assert_int_equal(state_of(&r, "x"), TXN_COMPLETE_ABORT);
    assert_int_equal(add(&r, "x", 7, 0, 1), KERR_PRODUCER_FENCED);
    teardown(&r);
}

static void timeouts_that_are_refused(void **state)
{
    (void)state;
    static const int32_t bad[] = {0, -1, MAX_TIMEOUT + 1, INT32_MIN};
    struct rig r;
    struct call c;
    setup(&r);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct txn_call in = init_call("x", -1, -1);
        in.timeout_ms = bad[i];
        assert_int_equal(run(&r, &c, in), KERR_INVALID_TRANSACTION_TIMEOUT);
    }
    r.no_producers = true;
    assert_int_equal(init(&r, "x"), KERR_COORDINATOR_LOAD_IN_PROGRESS);
    assert_null(txn_coordinator_find(r.c, STR_LIT("x")));
    teardown(&r);
}

static void ids_that_are_not_used_are_forgotten(void **state)
{
    (void)state;
    enum { IDS = 20000 };
    struct rig r;
    char id[64];
    setup(&r);
    for (int i = 0; i < IDS; i++) {
        snprintf(id, sizeof(id), "an-id-with-a-name-that-takes-some-bytes-%d", i);
        assert_int_equal(init(&r, id), KERR_NONE);
    }
    init(&r, "busy");
    add(&r, "busy", 7 + IDS, 0, 1);
    int tombstones = r.log.tombstones;
    sim_executor_advance(r.sim, EXPIRATION_MS - 1); /* the busy one is being aborted by now */
    r.log.next_error = KERR_NOT_ENOUGH_REPLICAS;    /* of the first batch: its ids stay */
    sim_executor_advance(r.sim, EXPIRE_MS);
    size_t left = txn_coordinator_count(r.c);
    assert_in_range(left, 2, IDS / 2);
    sim_executor_advance(r.sim, EXPIRE_MS);
    assert_int_equal(txn_coordinator_count(r.c), 1);
    assert_int_equal(r.log.tombstones - tombstones, IDS);
    assert_non_null(txn_coordinator_find(r.c, STR_LIT("busy")));
    assert_int_equal(init(&r, "an-id-with-a-name-that-takes-some-bytes-3"), KERR_NONE);
    teardown(&r);
}

/* ---- lists ---- */

static int list(struct rig *r, const struct list_transactions_request *in, int unknown)
{
    struct list_transactions_response out;
    struct arena a;
    struct call c;
    arena_init(&a, 0);
    list_transactions_response_init(&out);
    assert_int_equal(
        run(r, &c, (struct txn_call){.api = TXN_CALL_LIST, .in = in, .out = &out, .arena = &a}),
        KERR_NONE);
    assert_int_equal(out.unknown_state_filters.n, unknown);
    int n = out.transaction_states.n;
    arena_free(&a);
    return n;
}

static void lists_and_their_filters(void **state)
{
    (void)state;
    struct rig r;
    struct list_transactions_request in;
    struct str ongoing = STR_LIT("Ongoing"), nonsense = STR_LIT("nonsense");
    struct str both[] = {ongoing, nonsense};
    int64_t producer = 8;
    setup(&r);
    init(&r, "a");
    init(&r, "b");
    init(&r, "c");
    add(&r, "c", 9, 0, 1);
    sim_executor_advance(r.sim, 1000);
    list_transactions_request_init(&in);
    assert_int_equal(list(&r, &in, 0), 3);
    in.state_filters.v = both;
    in.state_filters.n = 2;
    assert_int_equal(list(&r, &in, 1), 1);
    in.state_filters.v = &nonsense;
    in.state_filters.n = 1;
    assert_int_equal(list(&r, &in, 1), 0);
    in.state_filters.n = 0;
    in.producer_id_filters.v = &producer;
    in.producer_id_filters.n = 1;
    assert_int_equal(list(&r, &in, 0), 1);
    in.producer_id_filters.n = 0;
    in.duration_filter = 1000; /* not longer than that; those that never began have begun at -1 */
    assert_int_equal(list(&r, &in, 0), 2);
    in.duration_filter = 999;
    assert_int_equal(list(&r, &in, 0), 3);
    teardown(&r);
}

static void descriptions(void **state)
{
    (void)state;
    struct rig r;
    struct describe_transactions_response out;
    struct arena a;
    struct call c;
    arena_init(&a, 0);
    setup(&r);
    init(&r, "c");
    add(&r, "c", 7, 0, 2);
    describe_transactions_response_init(&out);
    out.transaction_states.v = describe_transactions_response_transaction_state_new(&a, 3);
    out.transaction_states.n = 3;
    out.transaction_states.v[0].transactional_id = STR_LIT("c");
    out.transaction_states.v[1].transactional_id = STR_LIT("d");
    out.transaction_states.v[2].transactional_id = STR_LIT("");
    run(&r, &c, (struct txn_call){.api = TXN_CALL_DESCRIBE, .out = &out, .arena = &a});
    const struct describe_transactions_response_transaction_state *d = out.transaction_states.v;
    assert_int_equal(d[0].error_code, KERR_NONE);
    assert_true(str_eqz(d[0].transaction_state, "Ongoing"));
    assert_int_equal(d[0].transaction_start_time_ms, BENCH_START_MS);
    assert_int_equal(d[0].producer_id, 7);
    assert_int_equal(d[0].topics.n, 2);
    assert_true(str_eqz(d[0].topics.v[1].topic, "two"));
    assert_int_equal(d[1].error_code, KERR_TRANSACTIONAL_ID_NOT_FOUND);
    assert_int_equal(d[2].error_code, KERR_INVALID_REQUEST);
    arena_free(&a);
    teardown(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit),
        cmocka_unit_test(an_init_in_a_transaction_aborts_it_first),
        cmocka_unit_test(markers_that_are_refused),
        cmocka_unit_test(a_fenced_marker_ends_those_that_are_out_too),
        cmocka_unit_test(markers_follow_the_leader),
        cmocka_unit_test(a_partition_that_is_gone_needs_no_marker),
        cmocka_unit_test(a_partition_that_is_not_known_yet_gets_its_marker),
        cmocka_unit_test(many_transactions_share_a_request),
        cmocka_unit_test(what_the_log_says_is_told_in_the_coordinators_words),
        cmocka_unit_test(a_fence_that_cannot_be_written_is_not_raised_twice),
        cmocka_unit_test(the_last_record_is_tried_until_it_is_written),
        cmocka_unit_test(a_write_waits_as_long_as_its_own_producer_says),
        unit_test(everybody_waits_for_a_write),
        cmocka_unit_test(ids_are_served_where_their_partition_is),
        cmocka_unit_test(a_load_that_failed_is_tried_again),
        unit_test(a_new_leader_brings_what_is_prepared_to_its_end),
        cmocka_unit_test(a_write_of_an_old_leadership_comes_to_nothing),
        cmocka_unit_test(the_epoch_may_move_on_while_the_leader_stays),
        cmocka_unit_test(a_transaction_that_takes_too_long_is_aborted),
        cmocka_unit_test(timeouts_that_are_refused),
        cmocka_unit_test(ids_that_are_not_used_are_forgotten),
        cmocka_unit_test(lists_and_their_filters),
        cmocka_unit_test(descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
