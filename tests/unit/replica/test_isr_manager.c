/* ISR changes on their way to the controller: batches, versions, controllers that move, answers
 * that never come. The controller is a remote that the test plays. */
#include "bench.h"

#include "base/logline.h"
#include "protocol/ibp.h"
#include "protocol/msg/alter_partition.h"
#include "replica/isr_manager.h"

struct rig {
    struct bench b;
    struct isr_manager *m;
    struct controller_link *link;
    /* The remote. */
    struct remote base;
    peer_cb cb; /* of the request that is out; NULL none */
    void *arg;
    int version, sent, opened, closed, port;
    int version_max; /* that the controller knows */
    struct alter_partition_request request;
    struct arena arena;
    struct writer bytes;
    struct partition *p[2];
};

static struct rig rig;

static void forget_request(struct rig *g)
{
    arena_free(&g->arena);
    writer_free(&g->bytes);
    arena_init(&g->arena, 0);
    g->bytes = WRITER_INIT;
}

static int fake_send(struct remote *r, int16_t api_key, int min_version, int max_version,
                     const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct rig *g = container_of(r, struct rig, base);
    assert_null(g->cb);
    assert_int_equal(api_key, API_ALTER_PARTITION);
    g->cb = cb;
    g->arg = arg;
    g->version = max_version;
    g->sent++;
    forget_request(g);
    alter_partition_request_encode(request, max_version, &g->bytes);
    assert_false(g->bytes.unsupported);
    struct reader in = reader_of(g->bytes.buf.p, g->bytes.buf.len);
    assert_int_equal(alter_partition_request_decode(&g->request, max_version, &in, &g->arena), 0);
    return 0;
}

static void answer(struct rig *g, int status, const struct alter_partition_response *r)
{
    peer_cb cb = g->cb;
    assert_non_null(cb);
    g->cb = NULL;
    cb(g->arg, status, g->version, r);
}

static void fake_close(struct remote *r)
{
    struct rig *g = container_of(r, struct rig, base);
    g->closed++;
    if (g->cb)
        answer(g, -ECANCELED, NULL);
}

static struct remote *fake_open(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    static const struct remote_ops ops = {fake_send, fake_close};
    struct rig *g = arg;
    assert_string_equal(client_id, "1");
    g->base.ops = &ops;
    g->opened++;
    g->port = port;
    return &g->base;
}

static int64_t epoch(void *arg)
{
    return 77;
}

/* Brokers 1..3, controller as given; topic t. */
static void metadata(struct rig *g, int32_t controller)
{
    struct update_metadata_request req;
    struct update_metadata_request_live_broker alive[3];
    struct update_metadata_request_endpoint endpoints[3];
    update_metadata_request_init(&req);
    req.controller_id = controller;
    for (int i = 0; i < 3; i++) {
        update_metadata_request_live_broker_init(&alive[i]);
        update_metadata_request_endpoint_init(&endpoints[i]);
        endpoints[i].host = STR_LIT("h");
        endpoints[i].port = 9001 + i;
        endpoints[i].listener = STR_LIT("PLAINTEXT");
        alive[i].id = i + 1;
        alive[i].endpoints.v = &endpoints[i];
        alive[i].endpoints.n = 1;
    }
    req.live_brokers.v = alive;
    req.live_brokers.n = 3;
    assert_int_equal(metadata_cache_update(g->b.metadata, &req), 0);
}

static void lead(struct rig *g, int32_t number, int32_t leader_epoch, uint8_t id)
{
    static const int32_t all[] = {1, 2, 3};
    assert_int_equal(bench_lead(&g->b, "t", number,
                                (struct lead){.leader = 1,
                                              .leader_epoch = leader_epoch,
                                              .partition_epoch = leader_epoch,
                                              .isr = all,
                                              .isr_n = 1,
                                              .replicas = all,
                                              .replicas_n = 3,
                                              .is_new = true,
                                              .id = {{id}}}),
                     KERR_NONE);
}

/* Leader of t-0 and t-1, alone in their ISRs. */
static void rig_open(struct rig *g, int ibp, uint8_t id)
{
    memset(g, 0, sizeof(*g));
    logline_set_level(LOGLINE_FATAL);
    arena_init(&g->arena, 0);
    g->bytes = WRITER_INIT;
    g->b.id = 1;
    bench_open_as(&g->b, 1); /* without writer: it needs the executor and the cache */
    struct controller_link_options lo = {.metadata = g->b.metadata,
                                         .opener = {fake_open, g},
                                         .ex = sim_executor_ex(g->b.sim),
                                         .client_id = "1",
                                         .timeout_ms = 1000};
    g->link = controller_link_new(&lo);
    struct isr_manager_options mo = {.broker_id = 1,
                                     .ibp = ibp ? ibp : IBP_DEFAULT,
                                     .link = g->link,
                                     .ex = sim_executor_ex(g->b.sim),
                                     .broker_epoch = epoch};
    g->m = isr_manager_new(&mo);
    bench_stop_logs(&g->b);
    g->b.isr_writer = isr_manager_writer(g->m);
    bench_open_logs(&g->b);
    metadata(g, 2);
    for (int i = 0; i < 2; i++) {
        enum kerr why;
        lead(g, i, 0, id);
        g->p[i] = replica_manager_find(g->b.m, bench_tp("t", i), &why);
    }
}

static void rig_close(struct rig *g)
{
    isr_manager_stop(g->m);
    controller_link_close(g->link);
    sim_executor_drain(g->b.sim);
    isr_manager_free(g->m);
    for (int i = 0; i < 2; i++)
        partition_unref(g->p[i]);
    bench_close(&g->b);
    forget_request(g);
}

static void drain(struct rig *g)
{
    sim_executor_drain(g->b.sim);
}

/* Broker 2 is ripe to join. */
static void ripen(struct rig *g, int number)
{
    bench_fetch(&g->b, g->p[number], 2, 0, NULL);
    drain(g);
}

/* What the controller answers: each partition of the request with this error, or done. */
static void answer_all(struct rig *g, int16_t error)
{
    struct alter_partition_response r;
    struct arena a;
    arena_init(&a, 0);
    alter_partition_response_init(&r);
    r.topics.v = alter_partition_response_topic_new(&a, g->request.topics.n);
    r.topics.n = g->request.topics.n;
    for (int t = 0; t < r.topics.n; t++) {
        const struct alter_partition_request_topic *q = &g->request.topics.v[t];
        struct alter_partition_response_topic *o = &r.topics.v[t];
        if (g->version >= 2)
            o->topic_id = q->topic_id;
        else
            o->topic_name = q->topic_name;
        o->partitions.v = alter_partition_response_partition_new(&a, q->partitions.n);
        o->partitions.n = q->partitions.n;
        for (int i = 0; i < q->partitions.n; i++) {
            struct alter_partition_response_partition *p = &o->partitions.v[i];
            p->partition_index = q->partitions.v[i].partition_index;
            p->error_code = error;
            p->leader_id = 1;
            p->leader_epoch = q->partitions.v[i].leader_epoch;
            p->partition_epoch = q->partitions.v[i].partition_epoch + 1;
            int n = g->version >= 3 ? q->partitions.v[i].new_isr_with_epochs.n
                                    : q->partitions.v[i].new_isr.n;
            p->isr.v = arena_array(&a, int32_t, (size_t)n);
            p->isr.n = n;
            for (int k = 0; k < n; k++)
                p->isr.v[k] = g->version >= 3
                                  ? q->partitions.v[i].new_isr_with_epochs.v[k].broker_id
                                  : q->partitions.v[i].new_isr.v[k];
        }
    }
    answer(g, 0, &r);
    arena_free(&a);
    drain(g);
}

static void answer_error(struct rig *g, int16_t error)
{
    struct alter_partition_response r;
    alter_partition_response_init(&r);
    r.error_code = error;
    answer(g, 0, &r);
    drain(g);
}

static int isr_size(struct rig *g, int number)
{
    int32_t ids[4];
    struct isr_view v = {ids, 4, 0, false};
    partition_isr(g->p[number], &v);
    return v.pending ? -v.n : v.n;
}

static void a_change_is_asked_for_and_taken_over(void **state)
{
    struct rig *g = &rig;
    rig_open(g, 0, 7);
    ripen(g, 0);
    assert_int_equal(g->sent, 1);
    assert_int_equal(g->port, 9002);
    assert_int_equal(g->version, 3);
    assert_int_equal(g->request.broker_id, 1);
    assert_int_equal(g->request.broker_epoch, 77);
    assert_int_equal(g->request.topics.n, 1);
    assert_int_equal(g->request.topics.v[0].topic_id.b[0], 7);
    const struct alter_partition_request_partition *p = &g->request.topics.v[0].partitions.v[0];
    assert_int_equal(p->new_isr_with_epochs.n, 2);
    assert_int_equal(p->new_isr_with_epochs.v[1].broker_id, 2);
    assert_int_equal(p->new_isr_with_epochs.v[1].broker_epoch, -1);
    assert_int_equal(p->leader_recovery_state, 0);
    answer_all(g, 0);
    assert_int_equal(isr_size(g, 0), 2);
    assert_int_equal(g->sent, 1);
    rig_close(g);
}

/* Levels and topics without id say the same in an older version; so does an older controller. */
static void older_versions_say_the_same(void **state)
{
    static const struct {
        int ibp;
        uint8_t id;
        int known, version, sent;
    } t[] = {{0, 0, 3, 1, 1}, {IBP(2, 7, 2), 7, 3, 1, 1}, {0, 7, 2, 2, 2}, {0, 7, 0, 0, 4}};
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct rig *g = &rig;
        rig_open(g, t[i].ibp, t[i].id);
        ripen(g, 0);
        for (int k = 0; k < 5 && g->version > t[i].known; k++) {
            answer(g, -ENOTSUP, NULL);
            drain(g);
        }
        assert_int_equal(g->version, t[i].version);
        assert_int_equal(g->sent, t[i].sent);
        answer_all(g, 0);
        assert_int_equal(isr_size(g, 0), 2);
        rig_close(g);
    }
}

static void what_comes_meanwhile_goes_together(void **state)
{
    struct rig *g = &rig;
    rig_open(g, 0, 7);
    ripen(g, 0);
    ripen(g, 1);
    assert_int_equal(g->sent, 1);
    assert_int_equal(g->request.topics.v[0].partitions.n, 1);
    answer_all(g, 0);
    assert_int_equal(g->sent, 2); /* at once */
    assert_int_equal(g->request.topics.v[0].partitions.v[0].partition_index, 1);
    bench_fetch(&g->b, g->p[0], 3, 0, NULL);
    bench_fetch(&g->b, g->p[1], 3, 0, NULL); /* pending */
    drain(g);
    answer_all(g, 0);
    bench_fetch(&g->b, g->p[1], 3, 0, NULL);
    drain(g);
    answer_all(g, 0);
    if (g->cb)
        answer_all(g, 0);
    assert_int_equal(isr_size(g, 0), 3);
    assert_int_equal(isr_size(g, 1), 3);
    rig_close(g);
}

static void it_follows_the_controller(void **state)
{
    struct rig *g = &rig;
    rig_open(g, 0, 7);
    metadata(g, -1);
    ripen(g, 0);
    assert_int_equal(g->sent, 0);
    metadata(g, 3);
    sim_executor_advance(g->b.sim, 100);
    assert_int_equal(g->sent, 1);
    assert_int_equal(g->port, 9003);
    answer(g, -ECONNRESET, NULL);
    metadata(g, 2);
    sim_executor_advance(g->b.sim, 50);
    assert_int_equal(g->sent, 2);
    assert_int_equal(g->port, 9002);
    answer_error(g, KERR_NOT_CONTROLLER);
    assert_int_equal(g->closed, 2);
    sim_executor_advance(g->b.sim, 50);
    assert_int_equal(g->sent, 3);
    answer_all(g, KERR_NOT_CONTROLLER); /* in a partition alone */
    sim_executor_advance(g->b.sim, 50);
    assert_int_equal(g->sent, 4);
    answer(g, -ETIMEDOUT, NULL);
    sim_executor_advance(g->b.sim, 50);
    answer_all(g, 0);
    assert_int_equal(isr_size(g, 0), 2);
    rig_close(g);
}

static void errors_of_the_whole_are_tried_again_after_a_pause(void **state)
{
    static const int16_t errors[] = {KERR_STALE_BROKER_EPOCH, KERR_CLUSTER_AUTHORIZATION_FAILED,
                                     KERR_UNKNOWN_SERVER_ERROR};
    struct rig *g = &rig;
    rig_open(g, 0, 7);
    ripen(g, 0);
    for (int i = 0; i < 3; i++) {
        answer_error(g, errors[i]);
        assert_int_equal(g->sent, i + 1);
        sim_executor_advance(g->b.sim, 50);
        assert_int_equal(g->sent, i + 2);
        assert_int_equal(g->closed, 0);
    }
    answer_all(g, KERR_UNKNOWN_SERVER_ERROR); /* of a partition */
    assert_int_equal(isr_size(g, 0), -1);
    sim_executor_advance(g->b.sim, 50);
    answer_all(g, 0);
    assert_int_equal(isr_size(g, 0), 2);
    rig_close(g);
}

/* An answer that leaves partitions out: those stay, and go along with the next. */
static void what_is_not_in_the_answer_is_asked_again(void **state)
{
    struct rig *g = &rig;
    rig_open(g, 0, 7);
    ripen(g, 0);
    struct alter_partition_response r;
    alter_partition_response_init(&r);
    answer(g, 0, &r);
    drain(g);
    assert_int_equal(g->sent, 2);
    answer_all(g, 0);
    assert_int_equal(isr_size(g, 0), 2);
    rig_close(g);
}

/* A change of an earlier leadership is on its way: the next one is refused, and tried again. */
static void one_change_for_a_partition_at_a_time(void **state)
{
    struct rig *g = &rig;
    rig_open(g, 0, 7);
    ripen(g, 0);
    lead(g, 0, 1, 7);
    ripen(g, 0);
    assert_int_equal(isr_size(g, 0), 1); /* refused at once */
    answer_all(g, KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(g->sent, 1);
    ripen(g, 0);
    assert_int_equal(g->sent, 2);
    assert_int_equal(g->request.topics.v[0].partitions.v[0].leader_epoch, 1);
    answer_all(g, 0);
    assert_int_equal(isr_size(g, 0), 2);
    rig_close(g);
}

static void a_stop_ends_what_is_out(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct rig *g = &rig;
        rig_open(g, 0, 7);
        if (i == 1)
            metadata(g, -1);
        ripen(g, 0);
        if (i == 2)
            answer_error(g, KERR_UNKNOWN_SERVER_ERROR);
        rig_close(g);
    }
}

UNIT_MAIN(unit_test(a_change_is_asked_for_and_taken_over), unit_test(older_versions_say_the_same),
          unit_test(what_comes_meanwhile_goes_together), unit_test(it_follows_the_controller),
          unit_test(errors_of_the_whole_are_tried_again_after_a_pause),
          unit_test(what_is_not_in_the_answer_is_asked_again),
          unit_test(one_change_for_a_partition_at_a_time), unit_test(a_stop_ends_what_is_out))
