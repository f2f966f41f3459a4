/* The channel to a broker elsewhere, against a remote that the test plays. */
#include "controller/peer_channel.h"

#include <errno.h>

#include "base/logline.h"
#include "base/metrics.h"
#include "base/sim_executor.h"
#include "protocol/msg/update_metadata.h"
#include "unit.h"

enum { CALLS_MAX = 16 };

struct fake {
    struct remote base;
    peer_cb cb; /* of the request that is out; NULL none */
    void *arg;
    int16_t api;
    int version;
    const void *request;
    int sent;
    bool closed, no_memory;
    char host[16];
    int port;
};

static int fake_send(struct remote *r, int16_t api_key, int min_version, int max_version,
                     const void *request, int64_t timeout_ms, peer_cb cb, void *arg)
{
    struct fake *f = container_of(r, struct fake, base);
    assert_null(f->cb); /* one at a time */
    assert_int_equal(min_version, max_version);
    if (f->no_memory)
        return -ENOMEM;
    f->cb = cb;
    f->arg = arg;
    f->api = api_key;
    f->version = min_version;
    f->request = request;
    f->sent++;
    return 0;
}

static void fake_answer(struct fake *f, int status, const void *response)
{
    peer_cb cb = f->cb;
    assert_non_null(cb);
    f->cb = NULL;
    cb(f->arg, status, f->version, response);
}

static void fake_close(struct remote *r)
{
    struct fake *f = container_of(r, struct fake, base);
    f->closed = true;
    if (f->cb)
        fake_answer(f, -ECANCELED, NULL);
}

static struct remote *fake_open(void *arg, struct str host, int port, const char *client_id,
                                int64_t timeout_ms)
{
    static const struct remote_ops ops = {fake_send, fake_close};
    struct fake *f = arg;
    f->base.ops = &ops;
    snprintf(f->host, sizeof(f->host), "%.*s", STR_ARG(host));
    f->port = port;
    return &f->base;
}

struct result {
    int calls, status;
    const void *response;
    int nth;
};
static int results;

static void on_result(void *arg, int status, const void *response)
{
    struct result *r = arg;
    r->calls++;
    r->status = status;
    r->response = response;
    r->nth = ++results;
}

struct rig {
    struct sim_clock clock;
    struct sim_executor *e;
    struct fake fake;
    struct broker_channel *channel;
    struct result results[CALLS_MAX];
};

static void rig_open(struct rig *g)
{
    memset(g, 0, sizeof(*g));
    results = 0;
    logline_set_level(LOGLINE_FATAL);
    sim_clock_init(&g->clock, 1700000000000);
    g->e = sim_executor_new(&g->clock);
    struct remote_opener opener = {fake_open, &g->fake};
    struct peer_channel_options o = {.broker_id = 2,
                                     .host = STR_LIT("b2"),
                                     .port = 9092,
                                     .client_id = "1",
                                     .timeout_ms = 1000,
                                     .own_id = 1};
    g->channel = peer_channel_new(&o, &opener, sim_executor_ex(g->e));
    assert_string_equal(g->fake.host, "b2");
    assert_int_equal(g->fake.port, 9092);
}

static void queue(struct rig *g, int nth, int16_t api, const void *request)
{
    g->channel->send(g->channel, api, 7, request, on_result, &g->results[nth]);
}

static void requests_go_out_one_by_one_in_order(void **state)
{
    struct rig g;
    static const char a[] = "a", b[] = "b", answer[] = "answer";
    rig_open(&g);
    queue(&g, 0, API_LEADER_AND_ISR, a);
    queue(&g, 1, API_UPDATE_METADATA, b);
    assert_int_equal(g.fake.sent, 1);
    assert_ptr_equal(g.fake.request, a);
    assert_int_equal(g.fake.version, 7);
    fake_answer(&g.fake, 0, answer);
    assert_int_equal(g.results[0].calls, 1);
    assert_ptr_equal(g.results[0].response, answer);
    assert_int_equal(g.fake.sent, 2);
    assert_int_equal(g.fake.api, API_UPDATE_METADATA);
    fake_answer(&g.fake, 0, answer);
    assert_int_equal(g.results[1].nth, 2);
    g.channel->close(g.channel);
    sim_executor_free(g.e);
}

static void waits_are_counted_once(void **state)
{
    struct rig g;
    static const char a[] = "a", b[] = "b", answer[] = "answer";
    const struct histogram *waited;
    struct tally t = {0};
    rig_open(&g);
    assert_int_equal(g.channel->waiting(g.channel, &waited), 0);
    queue(&g, 0, API_LEADER_AND_ISR, a);
    queue(&g, 1, API_UPDATE_METADATA, b);
    assert_int_equal(g.channel->waiting(g.channel, &waited), 2);
    sim_executor_advance(g.e, 70);
    fake_answer(&g.fake, -ECONNRESET, NULL); /* it goes again */
    sim_executor_advance(g.e, 200);
    fake_answer(&g.fake, 0, answer);
    assert_int_equal(g.channel->waiting(g.channel, &waited), 1);
    tally_add(&t, waited);
    assert_int_equal(t.count, 2);
    assert_in_range(t.sum, 270000, 280000); /* the first had not waited */
    g.channel->close(g.channel);
    sim_executor_free(g.e);
}

static void what_is_not_answered_is_sent_again_until_it_is(void **state)
{
    struct rig g;
    static const char a[] = "a", b[] = "b", answer[] = "answer";
    static const int faults[] = {-ECONNREFUSED, -ETIMEDOUT, -ECONNRESET, -EPROTO, -ENOTSUP};
    enum { N = sizeof(faults) / sizeof(*faults) };
    rig_open(&g);
    queue(&g, 0, API_LEADER_AND_ISR, a);
    queue(&g, 1, API_STOP_REPLICA, b);
    for (int i = 0; i < N; i++) {
        fake_answer(&g.fake, faults[i], NULL);
        assert_int_equal(g.fake.sent, i + 1); /* a pause comes first */
        sim_executor_advance(g.e, 99);
        assert_int_equal(g.fake.sent, i + 1);
        sim_executor_advance(g.e, 1);
        assert_int_equal(g.fake.sent, i + 2);
        assert_ptr_equal(g.fake.request, a);
    }
    assert_int_equal(g.results[0].calls, 0);
    fake_answer(&g.fake, 0, answer);
    assert_int_equal(g.results[0].calls, 1);
    assert_int_equal(g.results[0].status, 0);
    assert_ptr_equal(g.fake.request, b);
    fake_answer(&g.fake, 0, answer);
    g.channel->close(g.channel);
    sim_executor_free(g.e);
}

static void a_send_that_lacks_memory_is_tried_again(void **state)
{
    struct rig g;
    rig_open(&g);
    g.fake.no_memory = true;
    queue(&g, 0, API_LEADER_AND_ISR, "a");
    assert_int_equal(g.fake.sent, 0);
    g.fake.no_memory = false;
    sim_executor_advance(g.e, 100);
    assert_int_equal(g.fake.sent, 1);
    fake_answer(&g.fake, 0, "answer");
    assert_int_equal(g.results[0].status, 0);
    g.channel->close(g.channel);
    sim_executor_free(g.e);
}

/* Closed with one out, one in the pause, one that waits. */
static void closing_ends_all_that_is_left(void **state)
{
    for (int paused = 0; paused < 2; paused++) {
        struct rig g;
        rig_open(&g);
        for (int i = 0; i < 3; i++)
            queue(&g, i, API_LEADER_AND_ISR, "a");
        if (paused)
            fake_answer(&g.fake, -ECONNREFUSED, NULL);
        g.channel->close(g.channel);
        assert_true(g.fake.closed);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(g.results[i].calls, 1);
            assert_int_equal(g.results[i].status, -ECANCELED);
        }
        sim_executor_advance(g.e, 1000);
        assert_int_equal(g.fake.sent, 1);
        sim_executor_free(g.e);
    }
}

UNIT_MAIN(unit_test(waits_are_counted_once), unit_test(requests_go_out_one_by_one_in_order),
          unit_test(what_is_not_answered_is_sent_again_until_it_is),
          unit_test(a_send_that_lacks_memory_is_tried_again),
          unit_test(closing_ends_all_that_is_left))
