/* test_txn_verifier.c - asking whether partitions are in a transaction, against coordinators that
 * the test plays. */
#include "coordinator/txn_verifier.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sim_executor.h"
#include "coordinator/key_partition.h"
#include "protocol/msg/add_partitions_to_txn.h"
#include "protocol/msg/update_metadata.h"
#include "unit.h"

enum { PARTITIONS = 1, QUESTIONS_MAX = 8 };

struct rig {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct metadata_cache *metadata;
    struct txn_verifier *v;
    struct remote remote;
    peer_cb cb; /* of the request that is out; NULL none */
    void *arg;
    const struct add_partitions_to_txn_request *request;
    int sent, opened, port;
};

static int fake_send(struct remote *r, int16_t api_key, int min_version, int max_version,
                     const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct rig *rig = container_of(r, struct rig, remote);
    assert_int_equal(api_key, API_ADD_PARTITIONS_TO_TXN);
    assert_int_equal(min_version, 4);
    assert_int_equal(max_version, 5);
    assert_int_equal(timeout_ms, 30000);
    assert_null(rig->cb);
    rig->cb = cb;
    rig->arg = arg;
    rig->request = request;
    rig->sent++;
    return 0;
}

static void fake_end(struct rig *r, int status, const void *response)
{
    peer_cb cb = r->cb;
    assert_non_null(cb);
    r->cb = NULL;
    cb(r->arg, status, 5, response);
}

static void fake_close(struct remote *r)
{
    struct rig *rig = container_of(r, struct rig, remote);
    if (rig->cb)
        fake_end(rig, -ECANCELED, NULL);
}

static struct remote *fake_open(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    static const struct remote_ops ops = {fake_send, fake_close};
    struct rig *r = arg;
    (void)host;
    (void)client_id;
    (void)timeout_ms;
    r->remote.ops = &ops;
    r->port = port;
    r->opened++;
    return &r->remote;
}

/* Broker 1 leads __transaction_state-0, or nobody (leader -1). */
static void metadata(struct rig *r, int32_t leader, int port)
{
    static int32_t broker = 1;
    struct update_metadata_request req;
    struct update_metadata_request_live_broker alive;
    struct update_metadata_request_endpoint endpoint;
    struct update_metadata_request_topic_state topic;
    struct update_metadata_request_partition_state partition;
    update_metadata_request_init(&req);
    update_metadata_request_live_broker_init(&alive);
    update_metadata_request_endpoint_init(&endpoint);
    update_metadata_request_topic_state_init(&topic);
    update_metadata_request_partition_state_init(&partition);
    endpoint.host = STR_LIT("h");
    endpoint.port = port;
    endpoint.listener = STR_LIT("PLAINTEXT");
    alive.id = 1;
    alive.endpoints.v = &endpoint;
    alive.endpoints.n = 1;
    partition.leader = leader;
    partition.replicas.v = &broker;
    partition.replicas.n = 1;
    topic.topic_name = STR_LIT("__transaction_state");
    topic.partition_states.v = &partition;
    topic.partition_states.n = 1;
    req.live_brokers.v = &alive;
    req.live_brokers.n = 1;
    req.topic_states.v = &topic;
    req.topic_states.n = 1;
    assert_int_equal(metadata_cache_update(r->metadata, &req), 0);
}

static void setup(struct rig *r)
{
    *r = (struct rig){0};
    sim_clock_init(&r->clock, 0);
    r->sim = sim_executor_new(&r->clock);
    r->metadata = metadata_cache_new();
    struct txn_verifier_options o = {.ex = sim_executor_ex(r->sim),
                                     .metadata = r->metadata,
                                     .partitions_n = PARTITIONS,
                                     .listener = STR_LIT("PLAINTEXT"),
                                     .opener = {fake_open, r},
                                     .client_id = "1",
                                     .timeout_ms = 30000};
    r->v = txn_verifier_new(&o);
    assert_non_null(r->v);
}

static void teardown(struct rig *r)
{
    txn_verifier_stop(r->v);
    sim_executor_drain(r->sim);
    txn_verifier_free(r->v);
    metadata_cache_free(r->metadata);
    sim_executor_free(r->sim);
}

struct ask {
    struct txn_question q;
    struct txn_call_partition p[2];
    bool done;
};

static void done(struct txn_question *q)
{
    struct ask *a = container_of(q, struct ask, q);
    assert_false(a->done);
    a->done = true;
}

static void ask(struct rig *r, struct ask *a, const char *id, int16_t epoch)
{
    *a = (struct ask){
        .q = {.id = str_of(id), .producer_id = 7, .epoch = epoch, .n = 2, .done = done},
        .p = {{.topic = STR_LIT("t"), .partition = 3}, {.topic = STR_LIT("t"), .partition = 4}}};
    a->q.partitions = a->p;
    txn_verifier_ask(r->v, &a->q);
    sim_executor_drain(r->sim);
}

/* Every partition of every transaction gets these, in turn. */
static void answer(struct rig *r, enum kerr first, enum kerr second)
{
    const struct add_partitions_to_txn_request *in = r->request;
    struct add_partitions_to_txn_response out;
    struct arena a;
    arena_init(&a, 0);
    add_partitions_to_txn_response_init(&out);
    out.results_by_transaction.n = in->transactions.n;
    out.results_by_transaction.v =
        add_partitions_to_txn_response_transaction_result_new(&a, in->transactions.n);
    for (int32_t i = 0; i < in->transactions.n; i++) {
        struct add_partitions_to_txn_response_transaction_result *to =
            &out.results_by_transaction.v[i];
        assert_true(in->transactions.v[i].verify_only);
        assert_int_equal(in->transactions.v[i].topics.n, 1);
        to->transactional_id = in->transactions.v[i].transactional_id;
        to->topic_results.n = 1;
        to->topic_results.v = add_partitions_to_txn_response_topic_result_new(&a, 1);
        to->topic_results.v->name = STR_LIT("t");
        to->topic_results.v->results_by_partition.n = 2;
        to->topic_results.v->results_by_partition.v =
            add_partitions_to_txn_response_partition_result_new(&a, 2);
        for (int p = 0; p < 2; p++)
            to->topic_results.v->results_by_partition.v[p] =
                (struct add_partitions_to_txn_response_partition_result){
                    .partition_index = 3 + p,
                    .partition_error_code = (int16_t)(p ? second : first)};
    }
    fake_end(r, 0, &out);
    arena_free(&a);
    sim_executor_drain(r->sim);
}

static void assert_errors(const struct ask *a, enum kerr first, enum kerr second)
{
    assert_true(a->done);
    assert_int_equal(a->p[0].error, first);
    assert_int_equal(a->p[1].error, second);
}

static void answers_and_what_they_mean(void **state)
{
    (void)state;
    struct rig r;
    struct ask a;
    setup(&r);
    metadata(&r, 1, 9092);
    ask(&r, &a, "x", 0);
    answer(&r, KERR_NONE, KERR_TRANSACTION_ABORTABLE);
    assert_errors(&a, KERR_NONE, KERR_TRANSACTION_ABORTABLE);
    ask(&r, &a, "x", 0);
    answer(&r, KERR_PRODUCER_FENCED, KERR_INVALID_PRODUCER_ID_MAPPING);
    assert_errors(&a, KERR_INVALID_PRODUCER_EPOCH, KERR_INVALID_PRODUCER_ID_MAPPING);
    ask(&r, &a, "x", 0);
    answer(&r, KERR_CONCURRENT_TRANSACTIONS, KERR_NOT_COORDINATOR);
    assert_errors(&a, KERR_CONCURRENT_TRANSACTIONS, KERR_NOT_COORDINATOR);
    assert_int_equal(r.opened, 1);
    teardown(&r);
}

static void no_answer(void **state)
{
    (void)state;
    struct rig r;
    struct ask a;
    struct add_partitions_to_txn_response out;
    setup(&r);
    ask(&r, &a, "x", 0); /* nothing is known of the cluster */
    assert_errors(&a, KERR_COORDINATOR_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE);
    metadata(&r, -1, 9092);
    ask(&r, &a, "x", 0);
    assert_errors(&a, KERR_COORDINATOR_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE);
    metadata(&r, 1, 9092);
    ask(&r, &a, "x", 0);
    fake_end(&r, -ECONNRESET, NULL);
    assert_errors(&a, KERR_NETWORK_EXCEPTION, KERR_NETWORK_EXCEPTION);
    ask(&r, &a, "x", 0);
    assert_int_equal(r.opened, 2); /* what failed was closed */
    fake_end(&r, -ENOTSUP, NULL);  /* too old: as if nobody asked */
    assert_errors(&a, KERR_NONE, KERR_NONE);
    add_partitions_to_txn_response_init(&out);
    ask(&r, &a, "x", 0);
    fake_end(&r, 0, &out); /* an answer without this transaction */
    assert_errors(&a, KERR_NETWORK_EXCEPTION, KERR_NETWORK_EXCEPTION);
    out.error_code = KERR_CLUSTER_AUTHORIZATION_FAILED;
    ask(&r, &a, "x", 0);
    fake_end(&r, 0, &out);
    assert_errors(&a, KERR_INVALID_TXN_STATE, KERR_INVALID_TXN_STATE);
    metadata(&r, 1, 9093); /* the broker has moved */
    ask(&r, &a, "x", 0);
    assert_int_equal(r.port, 9093);
    answer(&r, KERR_NONE, KERR_NONE);
    teardown(&r);
}

static void what_is_asked_meanwhile_goes_together(void **state)
{
    (void)state;
    struct rig r;
    struct ask a, b, c;
    setup(&r);
    metadata(&r, 1, 9092);
    ask(&r, &a, "a", 0);
    ask(&r, &b, "b", 0);
    ask(&r, &c, "c", 0);
    assert_int_equal(r.sent, 1);
    answer(&r, KERR_NONE, KERR_NONE);
    assert_true(a.done && !b.done);
    assert_int_equal(r.sent, 2);
    assert_int_equal(r.request->transactions.n, 2);
    answer(&r, KERR_NONE, KERR_TRANSACTION_ABORTABLE);
    assert_errors(&b, KERR_NONE, KERR_TRANSACTION_ABORTABLE);
    assert_errors(&c, KERR_NONE, KERR_TRANSACTION_ABORTABLE);
    teardown(&r);
}

static void of_two_that_wait_for_one_id_the_older_goes(void **state)
{
    (void)state;
    struct rig r;
    struct ask out, a, b, c, d;
    setup(&r);
    metadata(&r, 1, 9092);
    ask(&r, &out, "x", 5); /* is out: stays */
    ask(&r, &a, "x", 5);
    ask(&r, &b, "x", 5);
    assert_errors(&a, KERR_NETWORK_EXCEPTION, KERR_NETWORK_EXCEPTION);
    ask(&r, &c, "x", 6);
    assert_errors(&b, KERR_INVALID_PRODUCER_EPOCH, KERR_INVALID_PRODUCER_EPOCH);
    ask(&r, &d, "x", 5);
    assert_errors(&d, KERR_INVALID_PRODUCER_EPOCH, KERR_INVALID_PRODUCER_EPOCH);
    answer(&r, KERR_NONE, KERR_NONE);
    answer(&r, KERR_NONE, KERR_NONE);
    assert_errors(&out, KERR_NONE, KERR_NONE);
    assert_errors(&c, KERR_NONE, KERR_NONE);
    teardown(&r);
}

static void a_stop_ends_all(void **state)
{
    (void)state;
    struct rig r;
    struct ask a, b, c;
    setup(&r);
    metadata(&r, 1, 9092);
    ask(&r, &a, "a", 0);
    ask(&r, &b, "b", 0);
    txn_verifier_stop(r.v);
    assert_errors(&a, KERR_COORDINATOR_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE);
    assert_errors(&b, KERR_COORDINATOR_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE);
    ask(&r, &c, "c", 0);
    assert_errors(&c, KERR_COORDINATOR_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE);
    teardown(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_and_what_they_mean),
        cmocka_unit_test(no_answer),
        cmocka_unit_test(what_is_asked_meanwhile_goes_together),
        cmocka_unit_test(of_two_that_wait_for_one_id_the_older_goes),
        cmocka_unit_test(a_stop_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
