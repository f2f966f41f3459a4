/* peer_login.c - the exchange by which a broker learns who we are (peer_auth.h), on a peer's
 * connection.
 *
 * Each of its frames stands in the line of requests that answers are due for, and so gets the
 * answer that is its own: when a session is renewed, what was asked before is still answered first,
 * and what is asked meanwhile waits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/logline.h"
#include "net/peer_private.h"

/* Those who wait hear of it by peer_break. */
static void nobody(void *arg, int status, int version, const void *response)
{
}

/* On libuv's threads, for an exchange that has slow work to do. */
struct login_work {
    uv_work_t req;
    struct peer *peer; /* NULL: nobody waits for it, and the exchange goes with it */
    struct peer_exchange *exchange;
};

static void end_exchange(struct peer *p)
{
    if (p->login_work) {
        p->login_work->peer = NULL;
        uv_cancel((uv_req_t *)&p->login_work->req);
    } else if (p->exchange) {
        p->exchange->ops->free(p->exchange);
    }
    p->exchange = NULL;
    p->login_work = NULL;
}

void peer_login_forget(struct peer *p)
{
    end_exchange(p);
    p->login_again_ms = 0;
}

static int send_frame(struct peer *p, struct writer *w)
{
    const struct api_desc *api = api_find(API_SASL_AUTHENTICATE);
    struct peer_request *r = peer_request_new(p, api, -1, -1, true, nobody, NULL);
    int err = r ? chain_add_writer(&p->link->out, w, true) : -ENOMEM;
    if (r)
        r->handshake = r->login = true;
    if (r && err) {
        peer_request_finish(r, err, NULL);
    } else if (r) {
        r->end = p->link->sent + p->link->out.left;
        list_push_back(&p->sent, &r->link);
        peer_request_arm(r, p->options.request_timeout_ms);
        peer_link_flush(p);
    }
    return err;
}

static void logged_in(struct peer *p)
{
    int64_t ms =
        p->exchange->ops->again_after_ms ? p->exchange->ops->again_after_ms(p->exchange) : 0;
    end_exchange(p);
    p->login_again_ms = ms > 0 ? executor_now_ms(p->ex) + ms : 0;
    if (p->state == PEER_READY)
        peer_send_waiting(p); /* it was a renewal */
    else
        peer_handshake_begin(p);
}

static void do_work(uv_work_t *req)
{
    struct peer_exchange *x = container_of(req, struct login_work, req)->exchange;
    x->ops->work(x);
}

static void after_work(uv_work_t *req, int status);

static int begin_work(struct peer *p)
{
    struct login_work *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->peer = p;
    w->exchange = p->exchange;
    int err = uv_queue_work(p->loop, &w->req, do_work, after_work);
    if (err)
        free(w);
    else
        p->login_work = w;
    return err;
}

/* 0, or -errno after a line in the log: the connection is of no use. */
static int step(struct peer *p, const void *in, size_t n)
{
    char why[256] = "";
    struct writer w = WRITER_INIT;
    int rc = p->exchange->ops->step(p->exchange, in, n, &w, why, sizeof(why));
    if (rc == PEER_AUTH_MORE)
        rc = send_frame(p, &w);
    else if (rc == PEER_AUTH_DONE)
        logged_in(p);
    else if (rc == PEER_AUTH_WORK)
        rc = begin_work(p);
    writer_free(&w);
    if (rc >= 0)
        return 0;
    peer_say_failed(p, "authentication failed", *why ? why : strerror(-rc));
    return rc;
}

static void after_work(uv_work_t *req, int status)
{
    struct login_work *w = container_of(req, struct login_work, req);
    struct peer *p = w->peer;
    if (!p) {
        w->exchange->ops->free(w->exchange);
        free(w);
        return;
    }
    free(w);
    p->login_work = NULL;
    peer_enter(p);
    int rc = step(p, NULL, 0);
    if (rc < 0)
        peer_break(p, NULL, rc);
    peer_leave(p);
}

static int begin(struct peer *p, bool again)
{
    const struct peer_auth *a = p->options.security.auth;
    struct peer_auth_with with = {p->host, p->port, p->options.client_id, again};
    p->exchange = a->ops->begin(a, &with);
    return p->exchange ? step(p, NULL, 0) : -ENOMEM;
}

void peer_login_begin(struct peer *p)
{
    if (!p->options.security.auth) {
        peer_handshake_begin(p);
        return;
    }
    int rc = begin(p, false);
    if (rc < 0)
        peer_break(p, NULL, rc);
}

bool peer_login_due(struct peer *p)
{
    return p->state == PEER_READY && !p->exchange && p->login_again_ms &&
           executor_now_ms(p->ex) >= p->login_again_ms;
}

void peer_login_again(struct peer *p)
{
    int rc = begin(p, true);
    if (rc >= 0)
        return;
    p->link->broken = rc; /* nobody may be called back now: the poll will */
    shutdown(p->link->transport.fd, SHUT_RDWR);
}

void peer_login_answer(struct peer *p, struct peer_request *r, const void *frame, size_t n)
{
    peer_request_finish(r, 0, NULL);
    int rc = p->exchange ? step(p, frame, n) : -EPROTO;
    if (rc < 0)
        peer_break(p, NULL, rc);
}
