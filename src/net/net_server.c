/* net_server.c - building a server, its limits, and the order of its end.
 *
 * STOP  (1) on reactor 0 all listeners close: from here on no connection is dealt out; (2) each
 * shard is told to stop, behind the connections that were dealt to it before; (3) each shard says
 * when its last connection is closed. What requests in work still need lives on by the server's
 * reference count. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "net/server_private.h"

struct net_limits net_limits_default(void)
{
    return (struct net_limits){
        .max_frame = 100 << 20,
        .max_pipelined = 64,
        .max_pipelined_bytes = 16 << 20,
        .max_unsent = 8 << 20,
        .max_answer_bytes = 256 << 20,
        .max_inflight_bytes = 0,
        .max_idle_ms = 600000,
        .max_stall_ms = 5000,
        .max_secure_ms = 30000,
        .max_securing = 1000,
        .max_connections = INT_MAX,
        .max_connections_per_ip = INT_MAX,
        .send_buffer = 100 << 10,
        .receive_buffer = 100 << 10,
        .arena_cap = 64 << 20,
        .backlog = 50,
        .rate_samples = 11,
        .rate_sample_ms = 1000,
    };
}

static struct executor *reactor_0(struct net_server *s)
{
    return reactor_executor(reactor_pool_at(s->pool, 0));
}

/* ---- tasks on reactor 0 ---- */

static void on_close_all(struct task *t)
{
    struct net_server *s = container_of(t, struct net_server, close_all);
    held_socks_end(&s->held);
    s->ended = true;
    s->listeners_open = 1; /* this loop itself, so that the count cannot end early */
    list_each (it, &s->listeners) {
        s->listeners_open++;
        listener_close(list_entry(it, struct listener, link));
    }
    if (--s->listeners_open == 0)
        sem_post(&s->done);
    net_server_unref(s);
}

static void on_accept_resume(struct task *t)
{
    struct net_server *s = container_of(t, struct net_server, accept_resume);
    atomic_store(&s->accepting, ACCEPT_ON);
    list_each (it, &s->listeners)
        listener_resume(list_entry(it, struct listener, link));
    net_server_unref(s);
}

static void post_to_reactor_0(struct net_server *s, struct task *t)
{
    net_server_ref(s);
    executor_post(reactor_0(s), t);
}

void listeners_slot_free(struct net_server *s)
{
    int paused = ACCEPT_PAUSED;
    if (atomic_compare_exchange_strong(&s->accepting, &paused, ACCEPT_RESUMING))
        post_to_reactor_0(s, &s->accept_resume);
}

int net_server_set_admission(struct net_server *s, const struct net_admission *limits)
{
    int err = admission_set(&s->admission, limits);
    if (err)
        return err;
    listeners_slot_free(s);
    if (admission_exceeded(&s->admission, atomic_load(&s->connections)))
        net_server_shed(s);
    return 0;
}

int net_server_set_ip_rate(struct net_server *s, const struct in6_addr *ip, double rate)
{
    return admission_set_ip_rate(&s->admission, ip, rate);
}

void net_server_hold(struct net_server *s, bool hold)
{
    atomic_store(&s->on_hold, hold);
    if (!hold)
        shards_feed(s);
}

int net_ip_of(const char *host, struct in6_addr *out)
{
    return sock_resolve(host, out);
}

/* ---- making room ---- */

static void shed_on(struct net_server *s, int shard)
{
    s->shed_at = shard;
    executor_post(shard_executor(&s->shards[shard]), &s->shed);
}

/* From shard to shard until it is enough. */
static void on_shed(struct task *t)
{
    struct net_server *s = container_of(t, struct net_server, shed);
    int next = s->shed_at + 1;
    shard_shed(&s->shards[s->shed_at]);
    if (next < s->shards_n && admission_exceeded(&s->admission, atomic_load(&s->connections))) {
        shed_on(s, next);
    } else if (atomic_exchange(&s->shedding, SHED_NOT) == SHED_AGAIN) {
        net_server_shed(s);
        net_server_unref(s);
    } else {
        net_server_unref(s);
    }
}

void net_server_shed(struct net_server *s)
{
    int not = SHED_NOT, busy = SHED_BUSY;
    if (!atomic_compare_exchange_strong(&s->shedding, &not, SHED_BUSY)) {
        /* Or it ends just now: then the next new connection asks again. */
        atomic_compare_exchange_strong(&s->shedding, &busy, SHED_AGAIN);
        return;
    }
    net_server_ref(s);
    shed_on(s, 0);
}

/* ---- life ---- */

/* For reactors that have none yet. */
static void add_shards(struct net_server *s)
{
    for (int i = atomic_load(&s->shards_n); i < reactor_pool_size(s->pool); i++) {
        shard_init(&s->shards[i], s, reactor_pool_at(s->pool, i));
        atomic_store(&s->shards_n, i + 1);
    }
}

int net_server_new(struct reactor_pool *pool, const struct net_limits *limits,
                   const struct conn_handler *handler, struct net_server **out)
{
    *out = NULL;
    struct net_server *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->shards = calloc((size_t)reactor_pool_capacity(pool), sizeof(*s->shards));
    if (!s->shards) {
        free(s);
        return -ENOMEM;
    }
    s->pool = pool;
    s->limits = *limits;
    s->handler = *handler;
    list_init(&s->listeners);
    ip_count_init(&s->ips);
    seldom_init(&s->complaints);
    admission_init(&s->admission, limits);
    held_socks_init(&s->held, reactor_0(s));
    task_init(&s->shed, on_shed);
    atomic_init(&s->refs, 1);
    task_init(&s->close_all, on_close_all);
    task_init(&s->accept_resume, on_accept_resume);
    sem_init(&s->done, 0, 0);
    add_shards(s);
    *out = s;
    return 0;
}

int net_server_set_threads(struct net_server *s, int n)
{
    int err = reactor_pool_grow(s->pool, n);
    add_shards(s);
    if (!err)
        reactor_pool_use(s->pool, n);
    return err;
}

void net_server_ref(struct net_server *s)
{
    atomic_fetch_add(&s->refs, 1);
}

void net_server_unref(struct net_server *s)
{
    if (atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    while (!list_empty(&s->listeners))
        listener_unref(list_entry(s->listeners.next, struct listener, link));
    for (int i = 0; i < s->shards_n; i++)
        shard_free(&s->shards[i]);
    free(s->shards);
    ip_count_free(&s->ips);
    seldom_free(&s->complaints);
    admission_free(&s->admission);
    sem_destroy(&s->done);
    free(s);
}

static void wait_done(struct net_server *s)
{
    while (sem_wait(&s->done) < 0 && errno == EINTR)
        ;
}

void net_server_stop(struct net_server *s, int64_t grace_ms)
{
    s->stopped = true;
    s->grace_ms = grace_ms;
    post_to_reactor_0(s, &s->close_all);
    wait_done(s);
    for (int i = 0; i < s->shards_n; i++)
        shard_stop(&s->shards[i]);
    for (int i = 0; i < s->shards_n; i++)
        wait_done(s);
}

void net_server_free(struct net_server *s)
{
    if (!s)
        return;
    if (!s->stopped)
        net_server_stop(s, 0);
    net_server_unref(s);
}

int net_server_connections(const struct net_server *s)
{
    return atomic_load(&s->connections);
}
