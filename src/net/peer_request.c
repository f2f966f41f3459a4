/* peer_request.c - a request from the caller's struct to its callback.
 *
 * LISTS  waiting -> sent (an answer is due) or leaving (none is) -> finished. posted: done or wrong
 * at once, but the callback must not come before peer_send returns. ending: the connection is gone,
 * callbacks come one after the other. A request that times out while it waits is simply over; one
 * that was sent takes the connection with it, as its answer would be taken for the next one's. */
#include <errno.h>
#include <stdlib.h>

#include "net/peer_private.h"

static void on_timeout(struct timer *t)
{
    struct peer_request *r = container_of(t, struct peer_request, timeout);
    struct peer *p = r->peer;
    if (r->body)
        peer_request_finish(r, -ETIMEDOUT, NULL);
    else
        peer_reset(p, r, -ETIMEDOUT);
}

struct peer_request *peer_request_new(struct peer *p, const struct api_desc *api, int min_version,
                                      int max_version, bool has_response, peer_cb cb, void *arg)
{
    struct peer_request *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    list_init(&r->link);
    r->peer = p;
    r->api = api;
    r->min_version = min_version;
    r->max_version = max_version;
    r->version = -1;
    r->has_response = has_response;
    r->cb = cb;
    r->arg = arg;
    timer_init(&r->timeout, on_timeout);
    arena_init(&r->arena, 0);
    return r;
}

void peer_request_arm(struct peer_request *r, int64_t timeout_ms)
{
    if (timeout_ms > 0)
        executor_timer_start(r->peer->ex, &r->timeout, timeout_ms);
}

/* Everything but its memory. */
static void let_go(struct peer_request *r)
{
    list_remove(&r->link);
    executor_timer_stop(r->peer->ex, &r->timeout);
    arena_free(&r->arena);
    r->body = NULL;
    if (!r->handshake)
        r->peer->requests_n--;
}

void peer_request_finish(struct peer_request *r, int status, const void *response)
{
    struct peer *p = r->peer;
    peer_cb cb = r->cb;
    void *arg = r->arg;
    int version = r->version;
    let_go(r);
    free(r);
    peer_enter(p);
    cb(arg, status, version, response);
    peer_leave(p);
}

/* ---- later ---- */

static void on_later(struct task *t)
{
    struct peer_request *r = container_of(t, struct peer_request, task);
    if (r->peer)
        peer_request_finish(r, r->status, NULL);
    else
        free(r);
}

void peer_request_finish_later(struct peer_request *r, int status)
{
    struct peer *p = r->peer;
    executor_timer_stop(p->ex, &r->timeout);
    list_remove(&r->link);
    list_push_back(&p->posted, &r->link);
    r->status = status;
    task_init(&r->task, on_later);
    executor_post(p->ex, &r->task);
}

/* The peer goes: calls back now; the task will find nothing left to do. */
static void finish_posted_now(struct peer_request *r, int status)
{
    struct peer *p = r->peer;
    let_go(r);
    r->peer = NULL;
    peer_enter(p);
    r->cb(r->arg, status, -1, NULL);
    peer_leave(p);
}

/* ---- all at once ---- */

static void move_to_ending(struct peer *p, struct list *from, int status)
{
    list_each (it, from)
        list_entry(it, struct peer_request, link)->status = status;
    list_splice(&p->ending, from);
}

/* They first go to a list of their own: callbacks may send again, and that is not meant; and may
 * free the peer, which must find those that are left. */
void peer_fail_all(struct peer *p, struct peer_request *first, int status, int others)
{
    peer_enter(p);
    move_to_ending(p, &p->sent, others);
    move_to_ending(p, &p->leaving, others);
    move_to_ending(p, &p->waiting, others);
    if (first)
        first->status = status;
    while (!list_empty(&p->ending)) {
        struct peer_request *r = list_entry(p->ending.next, struct peer_request, link);
        peer_request_finish(r, r->status, NULL);
    }
    peer_leave(p);
}

void peer_cancel_all(struct peer *p)
{
    list_each (it, &p->ending)
        list_entry(it, struct peer_request, link)->status = -ECANCELED;
    peer_fail_all(p, NULL, 0, -ECANCELED);
    while (!list_empty(&p->posted))
        finish_posted_now(list_entry(p->posted.next, struct peer_request, link), -ECANCELED);
}

/* ---- sending ---- */

int peer_choose_version(const struct peer *p, const struct api_desc *api, int min_version,
                        int max_version)
{
    int min = api->request->min, max = api->request->max;
    const struct peer_range *broker = &p->ranges[api->key];
    min = min_version > min ? min_version : min;
    min = broker->min > min ? broker->min : min;
    max = max_version >= 0 && max_version < max ? max_version : max;
    max = broker->max < max ? broker->max : max;
    return min <= max ? max : -1;
}

int peer_request_write(struct peer_request *r, const void *body)
{
    struct peer *p = r->peer;
    struct peer_link *link = p->link;
    struct writer w = WRITER_INIT;
    r->correlation_id = p->next_correlation_id++ & INT32_MAX;
    struct request_header h = {r->api->key, (int16_t)r->version, r->correlation_id,
                               str_of(p->options.client_id)};
    request_header_encode(&w, &h);
    msg_encode(r->api->request, r->version, &w, body);
    int err = w.unsupported ? -ENOTSUP : chain_add_writer(&link->out, &w, true);
    writer_free(&w);
    if (err)
        return err;
    r->end = link->sent + link->out.left;
    list_push_back(r->has_response ? &p->sent : &p->leaving, &r->link);
    return 0;
}

void peer_send_waiting(struct peer *p)
{
    while (!list_empty(&p->waiting)) {
        struct peer_request *r = list_entry(p->waiting.next, struct peer_request, link);
        list_remove(&r->link);
        r->version = peer_choose_version(p, r->api, r->min_version, r->max_version);
        int err = r->version < 0 ? -ENOTSUP : peer_request_write(r, r->body);
        r->body = NULL;
        arena_free(&r->arena);
        if (err)
            peer_request_finish_later(r, err);
    }
    peer_link_flush(p);
}
