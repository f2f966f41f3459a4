/* handler_bench.h - handlers driven without a network: a request struct goes in encoded and decoded
 * at its version, as a frame would bring it; what the handler answers is encoded, its file ranges
 * read in, and decoded again. Replicas and logs are real (replica/bench.h), time is simulated.
 *
 * It defines the broker's and the request's functions that handlers call. */
#ifndef TESTS_HANDLER_BENCH_H
#define TESTS_HANDLER_BENCH_H

#include "base/turns.h"
#include "replica/bench.h"
#include "server/authorizer.h"
#include "server/broker.h"
#include "server/broker_cluster.h"
#include "server/broker_metrics.h"
#include "server/client_quotas.h"
#include "server/control_gate.h"
#include "server/control_queue.h"
#include "server/fetch_session.h"
#include "server/handlers.h"
#include "server/replication_throttle.h"
#include "server/request.h"

struct broker {
    struct bench bench;
    struct fetch_sessions *sessions;
    struct control_queue *control;
    struct control_gate gate; /* epoch INT_MAX: knows all; else the test has a store */
    struct turns *warming;
    int64_t fetch_max_bytes;
    struct replication_throttle *throttle;
    const char *selector; /* replica.selector.class */
    bool hold_followers;  /* the replication rate is above its limit */
    struct client_quotas *quotas;
    struct broker_metrics *metrics;
    struct authorizer *authorizer;
    int async;
};

struct conn { /* stands for net's */
    void *user;
    const char *principal;
};

enum how { WAITING, ANSWERED, NO_ANSWER, CLOSED };

struct call {
    struct broker *broker;
    struct request req;
    struct net_request net;
    struct arena arena; /* the request's: freed when it is finished, as net would */
    enum how how;
    struct arena out; /* of the answer */
    void *answer;     /* decoded response struct */
    char why[256];    /* CLOSED */
    struct conn own_conn;
    size_t frame_n;
};

/* ---- what handlers call ---- */

void conn_set_user(struct conn *c, void *user)
{
    c->user = user;
}
void *conn_user(const struct conn *c)
{
    return c->user;
}
struct str conn_principal(const struct conn *c)
{
    return c->principal ? str_of(c->principal) : STR_LIT("ANONYMOUS");
}

/* Nobody is asked about transactions here. */
struct txn_manager *broker_txn_verifier(const struct broker *b)
{
    (void)b;
    return NULL;
}

struct replication_throttle *broker_throttle(const struct broker *b)
{
    return b->throttle;
}
bool broker_may_replicate(const struct broker *b, bool as_leader, struct topic_partition tp)
{
    return !b->hold_followers;
}
struct replica_manager *broker_replicas(const struct broker *b)
{
    return b->bench.m;
}
struct metadata_cache *broker_metadata(const struct broker *b)
{
    return b->bench.metadata;
}
struct workers *broker_workers(const struct broker *b)
{
    return b->bench.workers;
}

struct turns *broker_warming(const struct broker *b)
{
    return b->warming;
}
struct fetch_sessions *broker_fetch_sessions(const struct broker *b)
{
    return b->sessions;
}
struct control_queue *broker_control_queue(const struct broker *b)
{
    return b->control;
}
struct control_gate *broker_control_gate(struct broker *b)
{
    return &b->gate;
}
const char *conn_peer(const struct conn *c)
{
    return "127.0.0.1:9";
}
const char *conn_peer_host(const struct conn *c)
{
    return "127.0.0.1";
}
struct in6_addr conn_peer_ip(const struct conn *c)
{
    return (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
}
struct authorizer *broker_authorizer(const struct broker *b)
{
    return b->authorizer;
}
const struct clock *broker_clock(const struct broker *b)
{
    return &b->bench.clock.clock;
}
const struct config *broker_config(const struct broker *b)
{
    return (const struct config *)b;
}
const char *config_string(const struct config *c, const char *name)
{
    return ((const struct broker *)c)->selector; /* the one that handlers here ask for */
}
int64_t config_int(const struct config *c, const char *name)
{
    assert_string_equal(name, "fetch.max.bytes");
    return ((const struct broker *)c)->fetch_max_bytes;
}
struct executor *request_executor(const struct request *req)
{
    return sim_executor_ex(req->broker->bench.sim);
}
void net_request_release_frame(struct net_request *r)
{
    memset(r->frame, 0xa5, container_of(r, struct call, net)->frame_n); /* as others would */
    r->frame = NULL;
}
void net_request_reserve(struct net_request *r, uint32_t bytes)
{
    r->reserved += bytes;
}
struct str request_listener(const struct request *req)
{
    return STR_LIT("PLAINTEXT");
}

static UNUSED void finish_call(struct call *c, enum how how)
{
    assert_int_equal(c->how, WAITING); /* exactly one answer */
    c->how = how;
    arena_free(&c->arena);
    memset(&c->net, 0xdd, sizeof c->net);
}

void request_respond_none(struct request *req)
{
    finish_call(container_of(req, struct call, req), NO_ANSWER);
}

void request_no_memory(struct request *req)
{
    finish_call(container_of(req, struct call, req), CLOSED);
}

void broker_async_begin(struct broker *b)
{
    b->async++;
}
void broker_async_end(struct broker *b)
{
    assert_true(b->async-- > 0);
}

void request_close(struct request *req, const char *fmt, ...)
{
    struct call *c = container_of(req, struct call, req);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    finish_call(c, CLOSED);
}

/* The bytes that would leave: memory and file ranges in order. Returns owned. */
static UNUSED uint8_t *wire_bytes(struct writer *w, size_t *n)
{
    *n = writer_size(w);
    uint8_t *all = malloc(*n + 1);
    size_t at = 0, from = 0;
    for (int i = 0; i <= w->splices_n; i++) {
        size_t to = i < w->splices_n ? w->splices[i].at : w->buf.len;
        memcpy(all + at, w->buf.p + from, to - from);
        at += to - from;
        from = to;
        if (i < w->splices_n) {
            assert_int_equal(file_pread(w->splices[i].file, all + at, (size_t)w->splices[i].len,
                                        w->splices[i].pos),
                             w->splices[i].len);
            at += (size_t)w->splices[i].len;
        }
    }
    assert_int_equal(at, *n);
    return all;
}

struct broker_metrics *broker_metrics(const struct broker *b)
{
    return b->metrics;
}

struct client_quotas *broker_quotas(const struct broker *b)
{
    return b->quotas;
}

void request_respond(struct request *req, void *response)
{
    struct call *c = container_of(req, struct call, req);
    const struct msg_desc *d = req->api->response;
    int version = request_version(req);
    struct writer w = WRITER_INIT;
    msg_encode(d, version, &w, response);
    assert_false(w.buf.failed);
    assert_false(w.unsupported); /* nothing that this version cannot carry */
    finish_call(c, ANSWERED);    /* as net does: all that the request owned is gone */
    size_t n;
    uint8_t *bytes = wire_bytes(&w, &n);
    uint8_t *kept = arena_alloc(&c->out, n + 1);
    memcpy(kept, bytes, n);
    free(bytes);
    writer_free(&w);
    struct reader r = reader_of(kept, n);
    c->answer = arena_calloc(&c->out, 1, d->body->size);
    assert_int_equal(msg_decode(d, version, &r, &c->out, c->answer), 0);
    assert_int_equal(reader_left(&r), 0);
}

/* ---- the bench ---- */

static UNUSED void broker_open(struct broker *b)
{
    memset(b, 0, sizeof *b);
    bench_open(&b->bench);
    b->sessions = fetch_sessions_new(10, &b->bench.clock.clock);
    b->fetch_max_bytes = 57671680;
    b->throttle =
        replication_throttle_new(1, (struct rate_window){11, 1000}, &b->bench.clock.clock);
    b->quotas = client_quotas_new((struct rate_window){11, 1000});
    assert_int_equal(control_queue_new(b->bench.workers, &b->control), 0);
    control_gate_init(&b->gate, NULL);
    atomic_store(&b->gate.epoch, INT32_MAX);
    b->warming = turns_new(b->bench.workers, 2);
    assert_non_null(b->warming);
}

static UNUSED void broker_close(struct broker *b)
{
    sim_executor_drain(b->bench.sim);
    assert_int_equal(b->async, 0);
    fetch_sessions_free(b->sessions);
    client_quotas_free(b->quotas);
    replication_throttle_free(b->throttle);
    control_queue_free(b->control);
    turns_free(b->warming);
    bench_close(&b->bench);
}

static UNUSED void drain(struct broker *b)
{
    sim_executor_drain(b->bench.sim);
}

/* Sends the request to its handler, on a connection of the caller's. */
static UNUSED void call_on(struct broker *b, struct conn *conn, struct call *c, int16_t key,
                           int version, void (*handle)(struct request *), const void *body,
                           const char *client_id)
{
    memset(c, 0, sizeof *c);
    c->broker = b;
    c->net.conn = conn;
    arena_init(&c->arena, 64 << 20);
    arena_init(&c->out, 0);
    const struct api_desc *api = api_find(key);
    struct writer w = WRITER_INIT;
    msg_encode(api->request, version, &w, body);
    assert_false(w.unsupported);
    uint8_t *frame = arena_alloc(&c->arena, w.buf.len + 1);
    memcpy(frame, w.buf.p, w.buf.len);
    c->net.frame = frame;
    c->frame_n = w.buf.len;
    struct reader r = reader_of(frame, w.buf.len);
    void *decoded = arena_calloc(&c->arena, 1, api->request->body->size);
    assert_int_equal(msg_decode(api->request, version, &r, &c->arena, decoded), 0);
    writer_free(&w);
    c->req = (struct request){
        .broker = b,
        .net = &c->net,
        .api = api,
        .header = {.api_key = key, .api_version = (int16_t)version, .client_id = str_of(client_id)},
        .body = decoded,
        .arena = &c->arena};
    handle(&c->req);
}

/* The same on a connection that has nothing else in work. */
static UNUSED void call(struct broker *b, struct call *c, int16_t key, int version,
                        void (*handle)(struct request *), const void *body, const char *client_id)
{
    call_on(b, &c->own_conn, c, key, version, handle, body, client_id);
}

/* The connection closes while the request waits. */
static UNUSED void disconnect(struct call *c)
{
    assert_int_equal(c->how, WAITING);
    c->net.gone = true;
    if (c->net.aborted)
        c->net.aborted(&c->net);
}

/* Its client ends its side, but may listen. */
static UNUSED void end_side(struct call *c)
{
    c->net.hurry = true;
    if (c->net.hurried)
        c->net.hurried(&c->net);
}

static UNUSED void call_free(struct call *c)
{
    assert_int_not_equal(c->how, WAITING);
    arena_free(&c->out);
}

#endif
