/* conn.c - a connection's life: from the accepted socket to the last reference.
 *
 * STATES  OPEN -> ENDING           conn_read_no_more: a stop, the handler's wish, the client's
 *                                   end. Nothing more is read; it closes when no request is in line
 *                                   and nothing is unsent.
 *
 *         OPEN, ENDING -> CLOSED    conn_close: the socket is closed, requests in work are told.
 *
 *         The memory stays until the poll handle and every request have let go.
 *
 * END     a client that shuts down its side, and one that is gone, look the same (`ended`): what it
 *         sent is served and answered. Only a reset (`broken`) says that nobody listens.
 *
 * REENTRY  handlers are called from here and call back into here. Reading happens only in
 * conn_take_turn, which never nests: anything else that makes reading possible again asks for a
 * turn. While a turn runs (busy), answers only collect in `out`; its end sends them. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/logline.h"
#include "net/server_private.h"

static void on_unmute(struct timer *t);
static void ask_who(struct conn *c);

void conn_say(const struct conn *c, int level, const char *fmt, ...)
{
    char component[96], text[640];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(component, sizeof(component), "SocketServer listener=%s", c->listener->name);
    logline(level, component, "%s", text);
}

void conn_complain(const struct conn *c, const char *what, const char *then, const char *why)
{
    char more[64] = "";
    unsigned kept;
    if (!seldom_may(&c->shard->server->complaints, &c->ip, why,
                    executor_now_ms(shard_executor(c->shard)), &kept))
        return;
    if (kept)
        snprintf(more, sizeof(more), " (and %u more of this from its address before)", kept);
    conn_say(c, LOGLINE_WARN, "%s %s%s: %s%s", what, c->name, then, why, more);
}

struct conn *conn_new(struct net_shard *sh, struct listener *listener, int fd,
                      const struct sockaddr_storage *from)
{
    struct conn *c = calloc(1, sizeof(*c));
    struct tls *tls = listener->security.tls;
    int err = c ? 0 : -ENOMEM;
    if (c && tls)
        err = transport_tls_init(&c->transport, fd, tls, NULL, NULL);
    else if (c)
        transport_plain_init(&c->transport, fd);
    if (err) {
        free(c);
        close(fd);
        return NULL;
    }
    c->state = tls ? CONN_SECURING : CONN_OPEN;
    struct net_server *s = sh->server;
    c->shard = sh;
    c->listener = listener;
    c->refs = 1;
    c->id = atomic_fetch_add(&s->next_id, 1);
    c->ip = sock_ip(from);
    sock_text(from, c->host, c->name);
    framing_init(&c->in, s->limits.max_frame);
    c->max_pipelined = s->limits.max_pipelined;
    timer_init(&c->mute, on_unmute);
    list_init(&c->requests);
    chain_init(&c->out);
    list_init(&c->lru);
    list_init(&c->turn);
    list_init(&c->hungry);
    list_init(&c->secure);
    net_server_ref(s);
    atomic_fetch_add(&s->connections, 1);
    listener_ref(listener);
    if (listener->counts)
        c->counts = &listener->counts[reactor_index(sh->reactor)];
    atomic_fetch_add(&listener->connections, 1);
    return c;
}

void conn_ref(struct conn *c)
{
    c->refs++;
}

void conn_unref(struct conn *c)
{
    if (--c->refs > 0)
        return;
    struct net_server *s = c->shard->server;
    listener_unref(c->listener);
    free(c->principal);
    free(c);
    net_server_unref(s);
}

/* The socket is gone, and its place in the counts is free. */
static void give_back_slot(struct conn *c)
{
    struct net_server *s = c->shard->server;
    c->state = CONN_CLOSED;
    c->transport.ops->close(&c->transport);
    ip_count_drop(&s->ips, &c->ip);
    atomic_fetch_sub(&c->listener->connections, 1);
    atomic_fetch_sub(&s->connections, 1);
    listeners_slot_free(s);
}

static void on_poll_closed(uv_handle_t *h)
{
    struct conn *c = h->data;
    shard_handle_closed(c->shard);
    conn_unref(c);
}

static void shut(struct conn *c)
{
    conn_add(c, NET_CLOSED, 1);
    shard_remove(c->shard, c);
    executor_timer_stop(conn_executor(c), &c->mute);
    conn_drop_input(c);
    uv_close((uv_handle_t *)&c->poll, on_poll_closed);
    give_back_slot(c);
    c->unsent -= c->out.left;
    conn_count_memory(c, -(int64_t)c->out.memory);
    chain_free(&c->out);
}

void conn_open(struct conn *c)
{
    const struct conn_handler *h = &c->shard->server->handler;
    if (uv_poll_init(reactor_loop(c->shard->reactor), &c->poll, c->transport.fd) != 0) {
        give_back_slot(c);
        conn_unref(c);
        return;
    }
    c->poll.data = c;
    conn_add(c, NET_OPENED, 1);
    shard_add(c->shard, c);
    conn_say(c, LOGLINE_DEBUG, "connection of %s", c->name);
    conn_ref(c);
    if (h->opened && !h->opened(h->arg, c))
        shut(c);
    else if (c->state == CONN_SECURING)
        shard_secure_begin(c->shard, c);
    else
        ask_who(c);
    conn_settle(c);
    conn_unref(c);
}

/* The transport is ready for frames. */
static void ask_who(struct conn *c)
{
    const struct listen_security *l = &c->listener->security;
    if (c->state == CONN_OPEN && l->tls && !l->secured)
        conn_add(c, NET_LOGINS, 1);
    if (l->secured && !l->secured(l->arg, c))
        conn_close(c, LOGLINE_DEBUG, NULL);
}

/* The TLS handshake goes on as far as it can. What it has to say of its end goes out before the
 * socket closes. */
static void secure(struct conn *c)
{
    int err = c->transport.ops->secure(&c->transport);
    if (err == -EAGAIN)
        return;
    shard_secure_end(c->shard, c);
    if (err) {
        const char *why = transport_why(&c->transport);
        c->transport.ops->finish(&c->transport);
        if (why)
            conn_add(c, NET_LOGINS_FAILED, 1);
        if (why)
            conn_complain(c, "TLS handshake with", " failed", why);
        conn_close(c, LOGLINE_DEBUG, why ? NULL : "it ended during the TLS handshake");
        return;
    }
    c->state = CONN_OPEN;
    ask_who(c);
    if (c->state == CONN_OPEN)
        shard_schedule(c->shard, c); /* its first request may be here already, inside TLS */
}

void conn_close(struct conn *c, int level, const char *why)
{
    const struct conn_handler *h = &c->shard->server->handler;
    if (c->state == CONN_CLOSED)
        return;
    if (why)
        conn_say(c, level, "closing connection of %s: %s", c->name, why);
    conn_ref(c);
    shut(c);
    while (!list_empty(&c->requests))
        request_abort(list_entry(c->requests.next, struct net_request, link));
    if (c->gate && c->gate->closed)
        c->gate->closed(c->gate_arg, c);
    if (h->closed)
        h->closed(h->arg, c);
    conn_unref(c);
}

void conn_close_errno(struct conn *c, int err)
{
    /* What we promised is not there: our fault, and worth a line. All else is the client's doing.
     */
    const char *why = transport_why(&c->transport);
    if (err == -ENODATA)
        conn_close(c, LOGLINE_ERROR, "a file is shorter than what was to be sent of it");
    else
        conn_close(c, LOGLINE_DEBUG, why ? why : strerror(-err));
}

void conn_read_no_more(struct conn *c)
{
    conn_drop_input(c);
    if (c->state == CONN_OPEN || c->state == CONN_SECURING)
        c->state = CONN_ENDING;
    shard_secure_end(c->shard, c);
}

static bool waits_long(const struct conn *c)
{
    list_each (at, &c->requests) {
        const struct net_request *r = list_entry(at, struct net_request, link);
        if (r->state == REQUEST_IN_WORK && r->aborted)
            return true;
    }
    return false;
}

static struct net_request *first_to_hurry(const struct conn *c)
{
    list_each (at, &c->requests) {
        struct net_request *r = list_entry(at, struct net_request, link);
        if (r->state == REQUEST_IN_WORK && r->hurried)
            return r;
    }
    return NULL;
}

void conn_hurry(struct conn *c)
{
    if (c->ended)
        return;
    c->ended = true;
    c->busy++; /* the answers leave together */
    list_each (at, &c->requests)
        list_entry(at, struct net_request, link)->hurry = true;
    /* One that is answered takes others off the line with it: so each time from the start. */
    struct net_request *r;
    while ((r = first_to_hurry(c)))
        request_hurry(r);
    c->busy--;
}

void conn_end(struct conn *c)
{
    static const char why[] = "its listener is no more";
    if (waits_long(c)) {
        conn_close(c, LOGLINE_DEBUG, why);
        return;
    }
    conn_read_no_more(c);
    conn_settle(c);
}

/* ---- what the loop waits for ---- */

static void on_secure_poll(struct conn *c, int status)
{
    if (status < 0)
        c->events = 0; /* libuv has stopped it; the socket's error is the handshake's end */
    secure(c);
    conn_settle(c);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct conn *c = h->data;
    conn_ref(c);
    if (c->state == CONN_SECURING) {
        on_secure_poll(c, status);
        conn_unref(c);
        return;
    }
    bool crossed = c->transport.crossed;
    if (status < 0) {
        /* An error is pending on the socket: reading, or writing, tells which. libuv has stopped
         * the poll. */
        c->events = 0;
        c->broken = true;
    }
    if (events & UV_PRIORITIZED) {
        c->urgent = true;
        c->broken |= sock_broken(c->transport.fd);
    }
    if (events & UV_DISCONNECT)
        conn_hurry(c);
    if (status < 0 || (events & UV_WRITABLE) || crossed) {
        c->full = false;
        conn_flush(c);
    }
    if (status < 0 || (events & UV_READABLE) || crossed)
        conn_take_turn(c);
    else
        conn_settle(c);
    conn_unref(c);
}

/* The client has ended or broken the connection while we were not reading. Bytes it sent before may
 * still wait in the socket, and are requests like any others (acks=0 and close). If there are none,
 * no more will come; if nobody can hear what is being worked for, whoever works is told now. */
static void look_at_end(struct conn *c)
{
    char byte;
    if (c->broken && (c->requests_n > 0 || c->state == CONN_ENDING)) {
        conn_close_errno(c, -ECONNRESET);
        return;
    }
    if (c->state != CONN_OPEN || conn_holds(c) || transport_holds(&c->transport))
        return;
    ssize_t n = recv(c->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0)
        conn_read_no_more(c);
    else if (n < 0 && errno != EAGAIN)
        conn_close_errno(c, -errno);
}

static void set_events(struct conn *c)
{
    bool read = conn_may_read(c) && !conn_holds(c);
    const struct transport_ops *ops = c->transport.ops;
    int events = ops->want(&c->transport, read, c->out.left > 0);
    if (events & TRANSPORT_AGAIN)
        shard_schedule(c->shard, c);
    events &= ~TRANSPORT_AGAIN;
    if (c->state == CONN_SECURING)
        ; /* it reads, or writes, to the end */
    else if (!(events & UV_READABLE) && !c->ended && !c->broken)
        events |= UV_DISCONNECT;
    else if (events == 0 && !c->broken && !c->urgent)
        events |=
            UV_PRIORITIZED; /* an error would come with it; by itself it cannot be asked for */
    if (events == c->events)
        return;
    c->events = events;
    if (events)
        uv_poll_start(&c->poll, events, on_poll);
    else
        uv_poll_stop(&c->poll);
}

/* The line is full behind a request that waits: as nothing more is read, nothing is heard of the
 * client, not even its end, which lies behind what it has sent. So the wait ends. */
static void hurry_head(struct conn *c)
{
    struct net_request *head = list_entry(c->requests.next, struct net_request, link);
    if (c->requests_n < 2 || conn_has_room(c) || !head->hurried)
        return;
    c->busy++;
    request_hurry(head);
    c->busy--;
}

void conn_settle(struct conn *c)
{
    if (c->busy > 0)
        return;
    hurry_head(c);
    conn_flush(c);
    if ((c->ended || c->broken) && c->state != CONN_CLOSED && !conn_may_read(c))
        look_at_end(c);
    if (c->state == CONN_ENDING && list_empty(&c->requests) && c->out.left == 0) {
        c->transport.ops->finish(&c->transport);
        conn_close(c, LOGLINE_DEBUG, c->ended ? "ended by the client" : "finished");
    }
    if (c->state == CONN_CLOSED)
        return;
    conn_resume(c);
    set_events(c);
}

void conn_resume(struct conn *c)
{
    if (conn_may_read(c) && conn_holds(c))
        shard_schedule(c->shard, c);
}

void conn_take_turn(struct conn *c)
{
    assert(c->busy == 0);
    conn_ref(c);
    c->busy++;
    conn_read(c);
    c->busy--;
    conn_settle(c);
    conn_unref(c);
}

/* ---- for handlers ---- */

void conn_count(struct conn *c, enum net_count what)
{
    conn_add(c, what, 1);
}

static void on_unmute(struct timer *t)
{
    struct conn *c = container_of(t, struct conn, mute);
    c->muted = false;
    conn_settle(c);
}

void conn_mute_for(struct conn *c, int64_t ms)
{
    if (c->state == CONN_CLOSED || ms <= 0)
        return;
    struct executor *ex = conn_executor(c);
    if (c->muted && c->mute.deadline_ms >= executor_now_ms(ex) + ms)
        return;
    c->muted = true;
    executor_timer_start(ex, &c->mute, ms);
    conn_settle(c);
}

void conn_set_max_frame(struct conn *c, uint32_t bytes)
{
    c->in.max_frame = bytes;
}

void conn_set_max_pipelined(struct conn *c, int requests)
{
    c->max_pipelined = requests > 0 ? requests : c->shard->server->limits.max_pipelined;
}

void conn_set_gate(struct conn *c, const struct conn_gate *gate, void *arg)
{
    c->gate = gate;
    c->gate_arg = arg;
}

static const char *certified_name(const struct conn *c)
{
    const struct transport *t = &c->transport;
    return t->ops->principal ? t->ops->principal(t) : NULL;
}

enum conn_login conn_login(const struct conn *c)
{
    return c->by_token                         ? CONN_BY_TOKEN
           : c->principal || certified_name(c) ? CONN_KNOWN
                                               : CONN_NOBODY;
}

void conn_set_by_token(struct conn *c, bool by_token)
{
    c->by_token = by_token;
}

struct str conn_principal(const struct conn *c)
{
    const char *certified = certified_name(c);
    return c->principal ? str_of(c->principal)
           : certified  ? str_of(certified)
                        : STR_LIT("ANONYMOUS");
}

int conn_set_principal(struct conn *c, struct str name)
{
    char *own = str_dup(name);
    if (!own)
        return -ENOMEM;
    free(c->principal);
    c->principal = own;
    return 0;
}

struct executor *conn_executor(const struct conn *c)
{
    return shard_executor(c->shard);
}

const char *conn_peer(const struct conn *c)
{
    return c->name;
}

const char *conn_peer_host(const struct conn *c)
{
    return c->host;
}

struct in6_addr conn_peer_ip(const struct conn *c)
{
    return c->ip;
}

const char *conn_listener_name(const struct conn *c)
{
    return c->listener->name;
}

uint64_t conn_id(const struct conn *c)
{
    return c->id;
}

void conn_set_user(struct conn *c, void *user)
{
    c->user = user;
}

void *conn_user(const struct conn *c)
{
    return c->user;
}
