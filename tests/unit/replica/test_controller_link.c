/* Requests to whoever is the controller: order, limits, closing. (Controllers that move are in
 * test_isr_manager.c.) */
#include "base/sim_executor.h"
#include "protocol/msg/allocate_producer_ids.h"
#include "protocol/msg/update_metadata.h"
#include "replica/controller_link.h"
#include "unit.h"

struct asked {
    struct controller_request r;
    struct allocate_producer_ids_request body;
    int calls, status, nth;
};

struct rig {
    struct sim_clock clock;
    struct sim_executor *e;
    struct metadata_cache *metadata;
    struct controller_link *link;
    struct remote base;
    peer_cb cb;
    void *arg;
    int sent;
    int64_t timeout_ms;  /* of the request that is out */
    bool not_controller; /* what the next answer is taken for */
    int calls;
};

static struct rig rig;

static int fake_send(struct remote *r, int16_t api_key, int min_version, int max_version,
                     const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct rig *g = container_of(r, struct rig, base);
    assert_null(g->cb);
    g->cb = cb;
    g->arg = arg;
    g->timeout_ms = timeout_ms;
    g->sent++;
    return 0;
}

static void answer(struct rig *g, int status)
{
    static struct allocate_producer_ids_response response;
    peer_cb cb = g->cb;
    assert_non_null(cb);
    g->cb = NULL;
    cb(g->arg, status, 0, status ? NULL : &response);
}

static void fake_close(struct remote *r)
{
    struct rig *g = container_of(r, struct rig, base);
    if (g->cb)
        answer(g, -ECANCELED);
}

static struct remote *fake_open(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    static const struct remote_ops ops = {fake_send, fake_close};
    struct rig *g = arg;
    g->base.ops = &ops;
    return &g->base;
}

static bool on_done(struct controller_request *r, int status, int version, const void *response)
{
    struct asked *a = container_of(r, struct asked, r);
    if (status == 0 && rig.not_controller) {
        rig.not_controller = false;
        return true;
    }
    a->calls++;
    a->status = status;
    a->nth = ++rig.calls;
    return false;
}

/* Broker 1, which is the controller or not. */
static void metadata(struct rig *g, bool controller)
{
    struct update_metadata_request req;
    struct update_metadata_request_live_broker alive;
    struct update_metadata_request_endpoint endpoint;
    update_metadata_request_init(&req);
    update_metadata_request_live_broker_init(&alive);
    update_metadata_request_endpoint_init(&endpoint);
    req.controller_id = controller ? 1 : -1;
    endpoint.host = STR_LIT("h");
    endpoint.port = 9001;
    endpoint.listener = STR_LIT("PLAINTEXT");
    alive.id = 1;
    alive.endpoints.v = &endpoint;
    alive.endpoints.n = 1;
    req.live_brokers.v = &alive;
    req.live_brokers.n = 1;
    assert_int_equal(metadata_cache_update(g->metadata, &req), 0);
}

static void rig_open(struct rig *g, bool controller)
{
    memset(g, 0, sizeof(*g));
    sim_clock_init(&g->clock, 1700000000000);
    g->e = sim_executor_new(&g->clock);
    g->metadata = metadata_cache_new();
    metadata(g, controller);
    struct controller_link_options o = {.metadata = g->metadata,
                                        .listener = STR_LIT("PLAINTEXT"),
                                        .opener = {fake_open, g},
                                        .ex = sim_executor_ex(g->e),
                                        .client_id = "1",
                                        .timeout_ms = 1000};
    g->link = controller_link_new(&o);
}

static void rig_close(struct rig *g)
{
    controller_link_close(g->link);
    metadata_cache_free(g->metadata);
    sim_executor_free(g->e);
}

static void ask(struct rig *g, struct asked *a, int64_t limit_ms)
{
    memset(a, 0, sizeof(*a));
    allocate_producer_ids_request_init(&a->body);
    a->r = (struct controller_request){.api_key = API_ALLOCATE_PRODUCER_IDS,
                                       .min_version = -1,
                                       .max_version = -1,
                                       .request = &a->body,
                                       .limit_ms = limit_ms,
                                       .done = on_done};
    controller_link_send(g->link, &a->r);
}

static void requests_are_answered_in_order(void **state)
{
    struct rig *g = &rig;
    struct asked a[3];
    rig_open(g, true);
    for (int i = 0; i < 3; i++)
        ask(g, &a[i], 0);
    assert_int_equal(g->sent, 1);
    answer(g, 0);
    g->not_controller = true;
    answer(g, 0); /* the second is asked again, before the third */
    assert_int_equal(a[1].calls, 0);
    sim_executor_advance(g->e, 50);
    answer(g, 0);
    answer(g, -ENOTSUP); /* told as it is */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i].calls, 1);
        assert_int_equal(a[i].nth, i + 1);
        assert_int_equal(a[i].status, i == 2 ? -ENOTSUP : 0);
    }
    rig_close(g);
}

/* With a limit a request ends, whether no controller is known, or one that does not answer. */
static void a_request_with_a_limit_ends(void **state)
{
    for (int known = 0; known < 2; known++) {
        struct rig *g = &rig;
        struct asked a, b;
        rig_open(g, known);
        ask(g, &a, 500);
        ask(g, &b, 0);
        if (known) {
            assert_int_equal(g->timeout_ms, 500); /* not longer than its limit */
            sim_executor_advance(g->e, 500);
            answer(g, -ETIMEDOUT);
            sim_executor_advance(g->e, 50);
        } else {
            sim_executor_advance(g->e, 400);
            assert_int_equal(a.calls, 0);
            sim_executor_advance(g->e, 200);
            metadata(g, true);
            sim_executor_advance(g->e, 100);
        }
        assert_int_equal(a.calls, 1);
        assert_int_equal(a.status, -ETIMEDOUT);
        assert_int_equal(b.calls, 0);
        answer(g, 0);
        assert_int_equal(b.status, 0);
        rig_close(g);
    }
}

static void closing_ends_all(void **state)
{
    struct rig *g = &rig;
    struct asked a[2];
    for (int known = 0; known < 2; known++) {
        rig_open(g, known);
        for (int i = 0; i < 2; i++)
            ask(g, &a[i], 0);
        rig_close(g);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(a[i].calls, 1);
            assert_int_equal(a[i].status, -ECANCELED);
        }
    }
}

UNIT_MAIN(unit_test(requests_are_answered_in_order), unit_test(a_request_with_a_limit_ends),
          unit_test(closing_ends_all))
