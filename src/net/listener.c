/* listener.c - accepts connections on reactor 0 and deals them out to the reactors in turn.
 *
 * A listening socket is polled like any other; each wake accepts a bounded number, so that a storm
 * of connections does not starve those that reactor 0 serves itself.
 *
 * LIMITS  (admission.c) Numbers over all and of one listener: accepting pauses, further clients
 * wait in the kernel's backlog until a slot is free. Rates of these: accepting pauses for a time.
 * Per address: the excess connection is accepted and closed, or, when it comes too soon after
 * others, held and closed later. No descriptors left: one kept in reserve is closed to accept and
 * close the connection that waits (its client learns of it at once, and the socket does not stay
 * readable), then accepting rests a little. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/logline.h"
#include "net/server_private.h"

enum { ACCEPT_BATCH = 64, BACKOFF_MS = 100 };

static void say(const struct listener *l, int level, const char *what, const char *why)
{
    logline(level, "SocketServer", "listener %s: %s%s%s", l->name, what, why ? ": " : "",
            why ? why : "");
}

static void take_reserve(struct listener *l)
{
    if (l->reserve_fd < 0)
        l->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_backoff(struct timer *t)
{
    struct listener *l = container_of(t, struct listener, backoff);
    take_reserve(l);
    listener_resume(l);
}

int listener_new(struct net_server *s, const char *name, const char *host, int port,
                 const struct listen_security *security, struct listener **out)
{
    *out = NULL;
    struct listener *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    list_init(&l->link);
    l->server = s;
    atomic_init(&l->refs, 1);
    l->fd = l->reserve_fd = -1;
    timer_init(&l->backoff, on_backoff);
    if (security)
        l->security = *security;
    if (l->security.tls)
        tls_ref(l->security.tls);
    int err = -ENOMEM;
    if (!(l->name = strdup(name)) || !(l->limits = admission_listener_new(&s->admission, name)))
        goto fail;
    if (s->limits.count &&
        !(l->counts = calloc((size_t)reactor_pool_capacity(s->pool), sizeof(*l->counts))))
        goto fail;
    if ((err = sock_listen(host, port, s->limits.backlog, s->limits.receive_buffer)) < 0)
        goto fail;
    l->fd = err;
    take_reserve(l);
    *out = l;
    return 0;
fail:
    listener_unref(l);
    return err;
}

static void close_fds(struct listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->reserve_fd >= 0)
        close(l->reserve_fd);
    l->fd = l->reserve_fd = -1;
}

void listener_ref(struct listener *l)
{
    atomic_fetch_add(&l->refs, 1);
}

void listener_unref(struct listener *l)
{
    if (atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    list_remove(&l->link);
    close_fds(l);
    admission_listener_free(&l->server->admission, l->limits);
    tls_unref(l->security.tls);
    free(l->counts);
    free(l->name);
    free(l);
}

static struct executor *executor_of(const struct listener *l)
{
    return shard_executor(&l->server->shards[0]);
}

/* ---- accepting ---- */

static void pause_polling(struct listener *l)
{
    uv_poll_stop(&l->poll);
    l->polling = false;
}

static void back_off(struct listener *l, int64_t ms)
{
    pause_polling(l);
    executor_timer_start(executor_of(l), &l->backoff, ms);
}

static bool slot_available(const struct listener *l)
{
    struct net_server *s = l->server;
    return admission_slot_free(&s->admission, l->limits, atomic_load(&l->connections),
                               atomic_load(&s->connections));
}

/* Is there a slot? If not, polling is paused until one is. */
static bool slot_free(struct listener *l)
{
    struct net_server *s = l->server;
    while (!slot_available(l)) {
        int on = ACCEPT_ON;
        atomic_compare_exchange_strong(&s->accepting, &on, ACCEPT_PAUSED);
        /* A connection that closed just before saw ACCEPT_ON and posted nothing. */
        int paused = ACCEPT_PAUSED;
        if (!slot_available(l) ||
            !atomic_compare_exchange_strong(&s->accepting, &paused, ACCEPT_ON)) {
            pause_polling(l);
            return false;
        }
        list_each (it, &s->listeners) /* others may have paused, too */
            listener_resume(list_entry(it, struct listener, link));
    }
    return true;
}

/* Is it not too soon for another? If it is, polling is paused for as long as it takes. */
static bool rate_allows(struct listener *l)
{
    if (l->counted)
        return true;
    l->counted = true;
    int64_t ms =
        admission_new_ms(&l->server->admission, l->limits, executor_now_ms(executor_of(l)));
    if (ms > 0)
        back_off(l, ms);
    return ms == 0;
}

static void on_open(struct task *t)
{
    conn_open(container_of(t, struct conn, open));
}

static void say_refused(const struct listener *l, int level, const struct sockaddr_storage *from,
                        const char *why)
{
    char host[SOCK_HOST_MAX], name[SOCK_NAME_MAX];
    sock_text(from, host, name);
    logline(level, "SocketServer", "listener %s: closing connection of %s: %s", l->name, name, why);
}

/* May the address have one more? If not, the socket is gone. */
static bool address_allows(struct listener *l, int fd, const struct sockaddr_storage *from)
{
    struct net_server *s = l->server;
    struct in6_addr ip = sock_ip(from);
    int64_t ms = admission_ip_ms(&s->admission, &ip, executor_now_ms(executor_of(l)));
    if (ms > 0) {
        say_refused(l, LOGLINE_DEBUG, from, "too soon after others (connection_creation_rate)");
        held_socks_add(&s->held, fd, ms);
        return false;
    }
    int max = admission_max_per_ip(&s->admission, &ip);
    if (ip_count_add(&s->ips, &ip, max))
        return true;
    char why[80];
    snprintf(why, sizeof(why), "the address has %d already (max.connections.per.ip)", max);
    say_refused(l, LOGLINE_INFO, from, why);
    close(fd);
    return false;
}

/* Takes the socket. */
static void admit(struct listener *l, int fd, const struct sockaddr_storage *from)
{
    struct net_server *s = l->server;
    struct in6_addr ip = sock_ip(from);
    if (!address_allows(l, fd, from))
        return;
    sock_tune(fd, s->limits.send_buffer, s->limits.receive_buffer);
    struct net_shard *sh = &s->shards[reactor_index(reactor_pool_next(s->pool))];
    struct conn *c = conn_new(sh, l, fd, from);
    if (!c) {
        ip_count_drop(&s->ips, &ip);
        say(l, LOGLINE_ERROR, "closing a new connection", "out of memory");
        return;
    }
    if (executor_on_thread(shard_executor(sh))) {
        conn_open(c);
    } else {
        task_init(&c->open, on_open);
        executor_post(shard_executor(sh), &c->open);
    }
    if (admission_exceeded(&s->admission, atomic_load(&s->connections)))
        net_server_shed(s); /* this listener is exempt: others make room */
}

/* Out of descriptors: lets the client that waits go. */
static void shed(struct listener *l)
{
    if (l->reserve_fd < 0)
        return;
    close(l->reserve_fd);
    l->reserve_fd = -1;
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    take_reserve(l);
}

/* Errors of the connection that was to be accepted, and of nothing else (see accept(2)). */
static bool passing(int err)
{
    static const int errors[] = {EINTR,       ECONNABORTED, EPROTO, ENETDOWN,
                                 ENOPROTOOPT, EHOSTDOWN,    ENONET, EHOSTUNREACH,
                                 EOPNOTSUPP,  ENETUNREACH,  EPERM};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i] == err)
            return true;
    return false;
}

/* false: no more for now. */
static bool accept_failed(struct listener *l, int err)
{
    if (err == EAGAIN || err == EWOULDBLOCK)
        return false;
    if (passing(err))
        return true;
    if (!l->told)
        say(l, LOGLINE_ERROR, "cannot accept connections, closing new ones until it gets better",
            strerror(err));
    l->told = true;
    if (err == EMFILE || err == ENFILE)
        shed(l);
    back_off(l, BACKOFF_MS);
    return false;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    for (int i = 0; i < ACCEPT_BATCH && slot_free(l) && rate_allows(l); i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof(from);
        int fd = accept4(l->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            l->told = l->counted = false;
            admit(l, fd, &from);
        } else if (!accept_failed(l, errno)) {
            return;
        }
    }
}

/* ---- life on reactor 0 ---- */

void listener_begin(struct listener *l)
{
    if (l->has_poll)
        return;
    int err = uv_poll_init(reactor_loop(l->server->shards[0].reactor), &l->poll, l->fd);
    if (err) {
        say(l, LOGLINE_ERROR, "cannot accept connections", uv_strerror(err));
        return;
    }
    l->poll.data = l;
    l->has_poll = true;
    listener_resume(l);
}

void listener_resume(struct listener *l)
{
    if (!l->has_poll || l->polling || timer_armed(&l->backoff))
        return;
    l->polling = uv_poll_start(&l->poll, UV_READABLE, on_readable) == 0;
}

static void count_down(struct net_server *s)
{
    if (--s->listeners_open == 0)
        sem_post(&s->done);
}

static void on_closed(uv_handle_t *h)
{
    struct listener *l = h->data;
    count_down(l->server);
}

static void on_removed(uv_handle_t *h)
{
    struct listener *l = h->data;
    struct net_server *s = l->server;
    listener_unref(l);
    net_server_unref(s);
}

static void sweep_on(struct listener *l, int shard)
{
    l->sweep_at = shard;
    executor_post(shard_executor(&l->server->shards[shard]), &l->sweep);
}

/* From shard to shard; behind the connections that were dealt to each. */
static void on_sweep(struct task *t)
{
    struct listener *l = container_of(t, struct listener, sweep);
    struct net_server *s = l->server;
    shard_end_listener(&s->shards[l->sweep_at], l);
    if (l->sweep_at + 1 < s->shards_n) {
        sweep_on(l, l->sweep_at + 1);
        return;
    }
    listener_unref(l);
    net_server_unref(s);
}

void listener_remove(struct listener *l)
{
    struct net_server *s = l->server;
    list_remove(&l->link);
    executor_timer_stop(executor_of(l), &l->backoff);
    net_server_ref(s);
    if (l->has_poll) {
        net_server_ref(s);
        listener_ref(l);
        l->has_poll = l->polling = false;
        uv_close((uv_handle_t *)&l->poll, on_removed);
    }
    close_fds(l);
    task_init(&l->sweep, on_sweep);
    sweep_on(l, 0); /* with the server's reference */
}

void listener_close(struct listener *l)
{
    executor_timer_stop(executor_of(l), &l->backoff);
    bool had_poll = l->has_poll;
    l->has_poll = l->polling = false;
    if (had_poll)
        uv_close((uv_handle_t *)&l->poll, on_closed);
    close_fds(l);
    if (!had_poll)
        count_down(l->server);
}
