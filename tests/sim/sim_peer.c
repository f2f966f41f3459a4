/* sim_peer.c - peer.h on a simulated connection. Versions are not negotiated: every broker here is
 * of this build, so its table of what is served tells. */
#include "net/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "server/request.h"
#include "sim_net.h"

struct peer_link; /* outlives the peer while something of it is under way */

struct peer {
    struct executor *ex;
    struct sim_host *host;
    char target[64];
    int port;
    char client_id[64];
    int64_t connect_ms, request_ms;
    int32_t correlation;
    struct list requests; /* in order of sending */
    struct peer_link *link;
};

struct peer_link {
    struct peer *peer; /* NULL: the peer has let go */
    struct sim_link *l;
    bool connected;
};

struct peer_request {
    struct list link;
    struct peer *p;
    struct executor *ex;
    const struct api_desc *api;
    int version;
    int32_t correlation;
    uint8_t *bytes; /* until sent */
    size_t n;
    bool has_response, sent;
    int failed; /* the answer is this, by a task */
    peer_cb cb;
    void *arg;
    struct timer timer;
    struct task task;
};

struct peer *peer_new(uv_loop_t *loop, struct executor *ex, const char *host, int port,
                      const struct peer_options *o)
{
    (void)loop;
    struct peer *p = calloc(1, sizeof(*p));
    p->ex = ex;
    p->host = sim_here();
    p->port = port;
    snprintf(p->target, sizeof(p->target), "%s", host);
    snprintf(p->client_id, sizeof(p->client_id), "%s", o->client_id ? o->client_id : "");
    p->connect_ms = o->connect_timeout_ms;
    p->request_ms = o->request_timeout_ms;
    list_init(&p->requests);
    return p;
}

static void finish(struct peer_request *q, int status, const void *response)
{
    list_remove(&q->link);
    executor_timer_stop(q->ex, &q->timer);
    peer_cb cb = q->cb;
    void *arg = q->arg;
    int version = q->version;
    free(q->bytes);
    free(q);
    cb(arg, status, version, response);
}

static void let_go(struct peer *p)
{
    if (!p->link)
        return;
    p->link->peer = NULL;
    sim_link_close(p->link->l, SIDE_CLIENT);
    p->link = NULL;
}

/* Requests that were there before; a callback may send others, or free the peer. */
static void fail_all(struct list *requests, int status)
{
    struct list *it;
    while ((it = list_pop(requests)))
        finish(list_entry(it, struct peer_request, link), status, NULL);
}

static void break_off(struct peer *p, int status)
{
    struct list broken;
    let_go(p);
    list_init(&broken);
    list_splice(&broken, &p->requests);
    fail_all(&broken, status);
}

void peer_free(struct peer *p)
{
    if (!p)
        return;
    break_off(p, -ECANCELED);
    free(p);
}

/* ---- what comes, on the executor ---- */

struct news {
    struct task task;
    struct peer_link *link;
    enum { NEWS_CONNECTED, NEWS_FRAME, NEWS_CLOSED } what;
    uint8_t *bytes;
    size_t n;
    int error;
};

static void send_now(struct peer_request *q)
{
    q->sent = true;
    sim_link_send(q->p->link->l, SIDE_CLIENT, q->bytes, q->n);
    q->bytes = NULL;
}

static void show(const char *from, const char *to, const struct msg_desc *d, int version,
                 const void *message)
{
    struct buf text = BUF_INIT;
    if (!sim_shows_requests())
        return;
    msg_print(d, version, message, &text);
    sim_say("%s to %s: %s v%d %.*s", from, to, d->name, version, (int)text.len,
            (const char *)text.p);
    buf_free(&text);
}

static void take_answer(struct peer *p, uint8_t *bytes, size_t n)
{
    if (list_empty(&p->requests))
        sim_violation("%s gets an answer from %s that it did not ask for", p->host->name,
                      p->target);
    struct peer_request *q = list_entry(p->requests.next, struct peer_request, link);
    struct reader r = reader_of(bytes, n);
    struct arena a;
    int32_t correlation;
    arena_init(&a, 0);
    int rc =
        response_header_decode(&r, api_response_header_version(q->api, q->version), &correlation);
    if (rc || correlation != q->correlation)
        sim_violation("an answer of %s to %s is not the one that is due", p->target, q->api->name);
    void *response = arena_calloc(&a, 1, q->api->response->body->size);
    rc = msg_decode(q->api->response, q->version, &r, &a, response);
    if (rc || reader_left(&r))
        sim_violation("an answer of %s to %s version %d does not decode", p->target, q->api->name,
                      q->version);
    show(p->target, p->host->name, q->api->response, q->version, response);
    finish(q, 0, response);
    arena_free(&a);
}

static void on_news(struct task *task)
{
    struct news *news = container_of(task, struct news, task);
    struct peer *p = news->link->peer;
    if (p && news->what == NEWS_FRAME) {
        take_answer(p, news->bytes, news->n);
    } else if (p && news->what == NEWS_CONNECTED) {
        p->link->connected = true;
        list_each (it, &p->requests) {
            struct peer_request *q = list_entry(it, struct peer_request, link);
            if (!q->sent)
                send_now(q);
        }
    } else if (p) {
        break_off(p, news->error);
    }
    free(news->bytes);
    free(news);
}

static void tell(struct peer_link *l, struct news news)
{
    if (!l->peer)
        return free(news.bytes);
    struct news *n = malloc(sizeof(*n));
    *n = news;
    n->link = l;
    task_init(&n->task, on_news);
    executor_post(l->peer->ex, &n->task);
}

static void on_frame(void *arg, uint8_t *bytes, size_t n)
{
    tell(arg, (struct news){.what = NEWS_FRAME, .bytes = bytes, .n = n});
}

static void on_connected(void *arg)
{
    tell(arg, (struct news){.what = NEWS_CONNECTED});
}

static void on_closed(void *arg, int error)
{
    tell(arg, (struct news){.what = NEWS_CLOSED, .error = error});
}

/* ---- sending ---- */

static void connect_to(struct peer *p)
{
    struct peer_link *l = calloc(1, sizeof(*l)); /* left, as the link is */
    l->peer = p;
    p->link = l;
    l->l = sim_link_connect(
        p->host, p->target, p->port, p->connect_ms * SIM_MS,
        (struct sim_end){
            .frame = on_frame, .closed = on_closed, .connected = on_connected, .arg = l});
}

static void on_timeout(struct timer *t)
{
    struct peer_request *q = container_of(t, struct peer_request, timer);
    struct peer *p = q->p;
    let_go(p);
    struct list broken;
    list_init(&broken);
    list_remove(&q->link);
    list_splice(&broken, &p->requests);
    list_init(&q->link);
    finish(q, -ETIMEDOUT, NULL);
    fail_all(&broken, -ECONNRESET);
}

static void fail_task(struct task *task)
{
    struct peer_request *q = container_of(task, struct peer_request, task);
    finish(q, q->failed, NULL);
}

int peer_version(const struct peer *p, int16_t api_key, int min_version, int max_version)
{
    (void)p;
    const struct api_row *row = api_row_find(api_key);
    const struct api_desc *api = api_find(api_key);
    int max = max_version < 0 || max_version > api->request->max ? api->request->max : max_version;
    int min = min_version < 0 ? api->request->min : min_version;
    if (row && row->max < max)
        max = row->max;
    return row && max >= min && max >= row->min ? max : -1;
}

static void encode(struct peer *p, struct peer_request *q, const void *request)
{
    struct writer w = WRITER_INIT;
    struct request_header h = {.api_key = q->api->key,
                               .api_version = (int16_t)q->version,
                               .correlation_id = q->correlation,
                               .client_id = str_of(p->client_id)};
    show(p->host->name, p->target, q->api->request, q->version, request);
    request_header_encode(&w, &h);
    msg_encode(q->api->request, q->version, &w, request);
    if (w.buf.failed || w.splices_n || w.unsupported)
        q->failed = w.unsupported ? -ENOTSUP : -ENOMEM;
    q->n = w.buf.len;
    q->bytes = malloc(q->n + 1);
    memcpy(q->bytes, w.buf.p, q->n);
    writer_free(&w);
}

int peer_send(struct peer *p, int16_t api_key, int min_version, int max_version,
              const void *request, int64_t timeout_ms, bool has_response, peer_cb cb, void *arg)
{
    struct peer_request *q = calloc(1, sizeof(*q));
    q->p = p;
    q->ex = p->ex;
    q->api = api_find(api_key);
    q->cb = cb;
    q->arg = arg;
    q->has_response = has_response;
    q->correlation = p->correlation++;
    timer_init(&q->timer, on_timeout);
    task_init(&q->task, fail_task);
    q->version = peer_version(p, api_key, min_version, max_version);
    if (q->version < 0)
        q->failed = -ENOTSUP;
    else
        encode(p, q, request);
    if (q->failed) {
        list_init(&q->link);
        executor_post(p->ex, &q->task);
        return 0;
    }
    list_push_back(&p->requests, &q->link);
    int64_t ms = timeout_ms < 0 ? p->request_ms : timeout_ms;
    if (ms > 0)
        executor_timer_start(p->ex, &q->timer, ms);
    if (!p->link)
        connect_to(p);
    else if (p->link->connected)
        send_now(q);
    return 0;
}

bool peer_connected(const struct peer *p)
{
    return p->link && p->link->connected;
}

const char *peer_failure(const struct peer *p)
{
    (void)p;
    return NULL;
}

int peer_in_flight(const struct peer *p)
{
    int n = 0;
    list_each (it, &p->requests)
        n++;
    return n;
}

bool peer_api_range(const struct peer *p, int16_t api_key, int16_t *min, int16_t *max)
{
    (void)p;
    const struct api_row *row = api_row_find(api_key);
    if (row) {
        *min = row->min;
        *max = row->max;
    }
    return row != NULL;
}
