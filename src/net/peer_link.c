/* peer_link.c - a peer's connection: made by the dialer, then polled; answers in, requests out.
 *
 * An answer belongs to the oldest request that is due one; its correlation id must say the same.
 * Anything else on the wire breaks the connection: who is out of step never gets into step again.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/logline.h"
#include "net/peer_private.h"

enum { SCRATCH = 16 * 1024, TURN_BYTES = 4 << 20, SEND_BYTES = 4 << 20 };

/* ---- making and breaking ---- */

static void on_poll(uv_poll_t *h, int status, int events);

static void set_events(struct peer_link *l)
{
    int events = l->transport.ops->want(&l->transport, true, l->out.left > 0);
    if (events & TRANSPORT_AGAIN) /* bytes that no event tells of: room in the socket always does */
        events = (events & ~TRANSPORT_AGAIN) | UV_WRITABLE;
    if (events == l->events)
        return;
    l->events = events;
    uv_poll_start(&l->poll, events, on_poll);
}

/* NULL: the socket is still the caller's. */
static struct peer_link *link_new(struct peer *p, int fd)
{
    struct peer_link *l = calloc(1, sizeof(*l));
    struct tls *tls = p->options.security.tls;
    if (!l)
        return NULL;
    if (!tls)
        transport_plain_init(&l->transport, fd);
    else if (transport_tls_init(&l->transport, fd, tls, p->host, p->session) != 0)
        goto fail;
    if (uv_poll_init(p->loop, &l->poll, fd)) {
        transport_let_go(&l->transport);
        goto fail;
    }
    l->peer = p;
    framing_init(&l->in, p->options.max_response);
    chain_init(&l->out);
    return l;
fail:
    free(l);
    return NULL;
}

static void on_link_closed(uv_handle_t *h)
{
    free(container_of((uv_poll_t *)h, struct peer_link, poll));
}

static void link_close(struct peer_link *l)
{
    struct tls_session *session = tls_take_session(&l->transport);
    if (session) {
        tls_session_free(l->peer->session);
        l->peer->session = session;
    }
    framing_free(&l->in, &l->peer->frames);
    chain_free(&l->out);
    l->peer = NULL;
    uv_close((uv_handle_t *)&l->poll, on_link_closed);
    l->transport.ops->close(&l->transport);
}

void peer_disconnect(struct peer *p)
{
    if (p->dialer)
        dialer_cancel(p->dialer);
    if (p->link)
        link_close(p->link);
    p->dialer = NULL;
    p->link = NULL;
    p->state = PEER_IDLE;
    executor_timer_stop(p->ex, &p->secure);
    peer_login_forget(p);
}

void peer_say_failed(struct peer *p, const char *what, const char *why)
{
    snprintf(p->failure, sizeof(p->failure), "%s: %s", what, why);
    for (char *c = p->failure; *c; c++) /* the other side's words: for no terminal to obey */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    if (!p->options.quiet)
        say_warn("peer", "%s:%d: %s", p->host, p->port, p->failure);
}

void peer_break(struct peer *p, struct peer_request *first, int status)
{
    bool was_ready = p->state == PEER_READY;
    bool unseen = was_ready && list_empty(&p->sent) && list_empty(&p->leaving) &&
                  list_empty(&p->waiting) && p->options.lost;
    peer_disconnect(p);
    if (unseen)
        p->options.lost(p->options.lost_arg);
    else
        peer_fail_all(p, first, status, was_ready && first ? -ECONNRESET : status);
}

/* What is still in the socket must not arrive: a request that was given up may be followed by newer
 * ones on another connection (a controller's), and would be taken for news when it comes late. */
void peer_reset(struct peer *p, struct peer_request *first, int status)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (p->link)
        setsockopt(p->link->transport.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_break(p, first, status);
}

/* ---- TLS ---- */

static void secured(struct peer *p)
{
    set_events(p->link);
    p->state = PEER_HANDSHAKE;
    peer_login_begin(p);
}

/* The handshake goes on as far as it can. */
static void secure(struct peer *p)
{
    struct transport *t = &p->link->transport;
    int err = t->ops->secure(t);
    if (err == -EAGAIN) {
        set_events(p->link);
        return;
    }
    executor_timer_stop(p->ex, &p->secure);
    if (!err) {
        secured(p);
        return;
    }
    const char *why = transport_why(t);
    peer_say_failed(p, "TLS failed", why ? why : strerror(-err));
    peer_break(p, NULL, err);
}

void peer_secure_timed_out(struct timer *timer)
{
    struct peer *p = container_of(timer, struct peer, secure);
    peer_say_failed(p, "TLS failed",
                    "no answer in time (is the listener's security protocol SSL?)");
    peer_break(p, NULL, -ETIMEDOUT);
}

static void on_dialed(void *arg, int fd)
{
    struct peer *p = arg;
    p->dialer = NULL;
    if (fd >= 0)
        p->dial_failures = 0;
    else if (p->dial_failures < INT_MAX)
        p->dial_failures++;
    if (fd < 0) {
        peer_break(p, NULL, fd);
        return;
    }
    p->link = link_new(p, fd);
    if (!p->link) {
        close(fd);
        peer_break(p, NULL, -ENOMEM);
        return;
    }
    if (!p->link->transport.ops->secure) {
        secured(p);
        return;
    }
    p->state = PEER_SECURING;
    if (p->options.request_timeout_ms > 0)
        executor_timer_start(p->ex, &p->secure, p->options.request_timeout_ms);
    peer_enter(p);
    secure(p);
    peer_leave(p);
}

int64_t peer_connect_timeout(const struct peer *p)
{
    int64_t ms = p->options.connect_timeout_ms, most = p->options.connect_timeout_max_ms;
    for (int i = 0; i < p->dial_failures && ms > 0 && ms < most; i++)
        ms *= 2;
    return most > p->options.connect_timeout_ms && ms > most ? most : ms;
}

void peer_connect(struct peer *p)
{
    struct dialer_options o = {peer_connect_timeout(p), p->options.send_buffer,
                               p->options.receive_buffer, p->options.receive_least};
    p->failure[0] = 0;
    p->dialer = dialer_start(p->loop, p->ex, p->host, p->port, &o, on_dialed, p);
    if (p->dialer) {
        p->state = PEER_DIALING;
        return;
    }
    while (!list_empty(&p->waiting))
        peer_request_finish_later(list_entry(p->waiting.next, struct peer_request, link), -ENOMEM);
}

/* ---- out ---- */

void peer_link_flush(struct peer *p)
{
    struct peer_link *l = p->link;
    if (l->out.left > 0 && !l->full) {
        ssize_t n = l->transport.ops->send_chain(&l->transport, &l->out, SEND_BYTES);
        if (n > 0)
            l->sent += (uint64_t)n;
        if (n < 0)
            l->broken = (int)n;
        l->full = l->out.left > 0;
    }
    while (!list_empty(&p->leaving)) {
        struct peer_request *r = list_entry(p->leaving.next, struct peer_request, link);
        if (r->end > l->sent)
            break;
        peer_request_finish_later(r, 0);
    }
    set_events(l);
}

/* ---- in ---- */

static void give(struct peer *p, struct peer_request *r, struct reader *in, struct frame_mem *frame)
{
    struct arena arena;
    arena_init(&arena, 0); /* what decoding may take is bounded by the frame */
    void *response = arena_alloc(&arena, r->api->response->body->size);
    int err = response ? msg_decode(r->api->response, r->version, in, &arena, response) : -ENOMEM;
    if (err) {
        arena_free(&arena);
        frame_pool_put(&p->frames, frame);
        peer_break(p, r, err);
        return;
    }
    p->answer_frame = frame;
    p->answer_arena = &arena;
    peer_request_finish(r, 0, response);
    p->answer_frame = NULL;
    p->answer_arena = NULL;
    arena_free(&arena);
    frame_pool_put(&p->frames, frame);
}

/* A whole frame. */
static void on_frame(struct peer *p)
{
    struct frame_mem frame;
    uint32_t len = framing_take(&p->link->in, &p->frames, &frame);
    struct peer_request *r =
        list_empty(&p->sent) ? NULL : list_entry(p->sent.next, struct peer_request, link);
    struct reader in = reader_of(frame.p, len);
    int32_t id = -1;
    if (r && r->login) {
        peer_login_answer(p, r, frame.p, len);
        frame_pool_put(&p->frames, &frame);
        return;
    }
    if (!r || response_header_decode(&in, api_response_header_version(r->api, r->version), &id) ||
        id != r->correlation_id) {
        say_warn("peer", "%s:%d: answer %d is not the one that is due (%d): closing", p->host,
                 p->port, id, r ? r->correlation_id : -1);
        frame_pool_put(&p->frames, &frame);
        peer_break(p, r, -EPROTO);
    } else if (r->handshake) {
        peer_handshake_answer(p, r, &in);
        frame_pool_put(&p->frames, &frame);
    } else {
        give(p, r, &in, &frame);
    }
}

static void refuse(struct peer *p)
{
    char why[160];
    framing_complaint(&p->link->in, why, sizeof(why));
    say_warn("peer", "%s:%d: %s: closing", p->host, p->port, why);
    peer_break(p, NULL, -EPROTO);
}

/* Frames in p..p+n, until the link they came by is gone. */
static void feed(struct peer *p, struct peer_link *l, const uint8_t *at, size_t n)
{
    while (p->link == l) {
        switch (framing_feed(&l->in, &p->frames, &at, &n)) {
        case FRAMING_MORE:
            return;
        case FRAMING_LENGTH:
            if (framing_begin(&l->in, &p->frames) < 0)
                peer_break(p, NULL, -ENOMEM);
            break;
        case FRAMING_FRAME:
            on_frame(p);
            break;
        case FRAMING_BAD:
            refuse(p);
            break;
        case FRAMING_NOMEM:
            peer_break(p, NULL, -ENOMEM);
            break;
        }
    }
}

/* The end of the connection has one name. */
static int socket_error(int err)
{
    return err == 0 || err == -EPIPE ? -ECONNRESET : err;
}

/* One read. false: no more for now. */
static bool read_once(struct peer *p, struct peer_link *l, size_t *budget)
{
    uint8_t scratch[SCRATCH];
    struct iovec iov[2];
    int n = framing_places(&l->in, &p->frames, scratch, sizeof(scratch), iov);
    ssize_t got = n > 0 ? l->transport.ops->recv(&l->transport, iov, n) : -ENOMEM;
    if (got == -EAGAIN)
        return false;
    if (got <= 0) {
        const char *why = transport_why(&l->transport);
        if (why && p->state != PEER_READY)
            peer_say_failed(p, "TLS failed", why);
        peer_break(p, NULL, socket_error((int)got));
        return false;
    }
    size_t bytes = (size_t)got, asked = iov[0].iov_len + (n > 1 ? iov[1].iov_len : 0);
    *budget -= bytes < *budget ? bytes : *budget;
    feed(p, l, scratch, framing_placed(&l->in, iov, bytes));
    return bytes == asked;
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct peer_link *l = container_of(h, struct peer_link, poll);
    struct peer *p = l->peer;
    size_t budget = TURN_BYTES;
    if (status < 0)
        l->events = 0; /* libuv has stopped it; reading tells what is wrong */
    peer_enter(p);
    if (p->state == PEER_SECURING) {
        secure(p);
        peer_leave(p);
        return;
    }
    if ((events & UV_WRITABLE) || l->transport.crossed) {
        l->full = false;
        peer_link_flush(p);
    }
    while (p->link == l && budget > 0 && read_once(p, l, &budget))
        ;
    if (p->link == l && (l->broken || status < 0))
        peer_break(p, NULL, socket_error(l->broken));
    else if (p->link == l && l->transport.tls)
        set_events(l); /* what waits inside TLS now */
    peer_leave(p);
}
