/* sim_server.c - reactor.h and server_conn.h on simulated connections: requests are handed over as
 * they come, answers leave in the order of the requests. Limits and quotas of connections are not
 * simulated: no client here passes one. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uv_executor.h"
#include "net/server_conn.h"
#include "sim_net.h"

enum { REACTORS_MAX = 16 };

/* ---- reactors ---- */

struct reactor {
    struct uv_executor *ex;
};

struct reactor_pool {
    struct reactor r[REACTORS_MAX];
    int n, used, next;
};

int reactor_pool_grow(struct reactor_pool *p, int n)
{
    for (; p->n < n && p->n < REACTORS_MAX; p->n++)
        uv_executor_start("reactor", &p->r[p->n].ex);
    return 0;
}

int reactor_pool_start(int n, struct reactor_pool **out)
{
    struct reactor_pool *p = calloc(1, sizeof(*p));
    *out = p;
    p->used = n;
    return reactor_pool_grow(p, n);
}

void reactor_pool_stop(struct reactor_pool *p)
{
    for (int i = 0; i < p->n; i++)
        uv_executor_stop(p->r[i].ex);
    free(p);
}

void reactor_pool_use(struct reactor_pool *p, int n)
{
    p->used = n;
}

void reactor_pool_measure(struct reactor_pool *p)
{
    (void)p;
}

uint64_t reactor_pool_idle_ns(struct reactor_pool *p, int i)
{
    (void)p, (void)i;
    return 0;
}

int reactor_pool_size(const struct reactor_pool *p)
{
    return p->n;
}

int reactor_pool_capacity(const struct reactor_pool *p)
{
    (void)p;
    return REACTORS_MAX;
}

struct reactor *reactor_pool_at(struct reactor_pool *p, int i)
{
    return &p->r[i];
}

struct reactor *reactor_pool_next(struct reactor_pool *p)
{
    return &p->r[p->next++ % p->used];
}

struct executor *reactor_executor(struct reactor *r)
{
    return uv_executor_ex(r->ex);
}

uv_loop_t *reactor_loop(struct reactor *r)
{
    return uv_executor_loop(r->ex);
}

/* ---- servers ---- */

struct listening {
    struct list link;
    struct sim_listener at;
    char name[64];
    struct net_server *server;
};

struct net_server {
    struct sim_host *host;
    struct reactor_pool *pool;
    struct conn_handler handler;
    struct net_limits limits;
    struct list listeners, conns;
    uint64_t next_id;
    bool stopped;
};

struct conn {
    struct list link;
    struct net_server *server;
    struct sim_link *l;
    struct executor *ex;
    char listener[64], peer[32], peer_host[16];
    uint64_t id;
    void *user;
    struct list requests; /* in order of coming */
    bool opened, closed;
    int holds; /* arrivals on their way, and whoever works on it now */
};

struct call { /* a request, and the place of its answer */
    struct net_request net;
    struct list link;
    struct conn *conn;
    bool finished;
    uint8_t *answer; /* NULL: none */
    size_t answer_n;
    bool close; /* instead */
};

/* Something that came for a connection, on its executor. */
struct arrival {
    struct task task;
    struct conn *conn;
    enum { ARRIVAL_OPEN, ARRIVAL_FRAME, ARRIVAL_CLOSED } what;
    uint8_t *bytes;
    size_t n;
};

static void conn_release(struct conn *c)
{
    if (!c->closed || c->holds || !list_empty(&c->requests))
        return;
    list_remove(&c->link);
    free(c);
}

static void close_conn(struct conn *c)
{
    if (c->closed)
        return;
    c->closed = true;
    c->holds++;
    sim_link_close(c->l, SIDE_SERVER);
    /* a request may end from within `aborted`, and take its neighbours' place on the list */
    for (bool more = true; more;) {
        more = false;
        list_each (it, &c->requests) {
            struct call *r = list_entry(it, struct call, link);
            if (r->finished || r->net.gone)
                continue;
            r->net.gone = true;
            if (r->net.aborted)
                r->net.aborted(&r->net);
            more = true;
            break;
        }
    }
    if (c->opened && c->server->handler.closed)
        c->server->handler.closed(c->server->handler.arg, c);
    c->holds--;
    conn_release(c);
}

static void take_frame(struct conn *c, uint8_t *bytes, size_t n)
{
    struct call *r = calloc(1, sizeof(*r));
    r->conn = c;
    r->net.conn = c;
    r->net.frame = bytes;
    r->net.frame_len = (uint32_t)n;
    r->net.received_ns = sim_now();
    arena_init(&r->net.arena, c->server->limits.arena_cap);
    list_push_back(&c->requests, &r->link);
    c->server->handler.request(c->server->handler.arg, &r->net);
}

static void on_arrival(struct task *task)
{
    struct arrival *a = container_of(task, struct arrival, task);
    struct conn *c = a->conn;
    const struct conn_handler *h = &c->server->handler;
    if (a->what == ARRIVAL_FRAME && !c->closed) {
        take_frame(c, a->bytes, a->n);
    } else if (a->what == ARRIVAL_FRAME) {
        free(a->bytes);
    } else if (a->what == ARRIVAL_CLOSED) {
        close_conn(c);
    } else if (!c->closed) {
        c->opened = !h->opened || h->opened(h->arg, c);
        if (!c->opened)
            close_conn(c);
    }
    free(a);
    c->holds--;
    conn_release(c);
}

static void arrive(struct conn *c, struct arrival arrival)
{
    struct arrival *a = malloc(sizeof(*a));
    *a = arrival;
    a->conn = c;
    c->holds++;
    task_init(&a->task, on_arrival);
    executor_post(c->ex, &a->task);
}

static void on_frame(void *arg, uint8_t *bytes, size_t n)
{
    arrive(arg, (struct arrival){.what = ARRIVAL_FRAME, .bytes = bytes, .n = n});
}

static void on_closed(void *arg, int error)
{
    (void)error;
    arrive(arg, (struct arrival){.what = ARRIVAL_CLOSED});
}

static void on_accept(void *arg, struct sim_link *l)
{
    struct listening *at = arg;
    struct net_server *s = at->server;
    struct conn *c = calloc(1, sizeof(*c));
    c->server = s;
    c->l = l;
    c->id = ++s->next_id;
    c->ex = reactor_executor(reactor_pool_next(s->pool));
    snprintf(c->listener, sizeof(c->listener), "%s", at->name);
    snprintf(c->peer_host, sizeof(c->peer_host), "%s", sim_host(sim_link_peer(l))->name);
    snprintf(c->peer, sizeof(c->peer), "%s:%d", c->peer_host, (int)(c->id % 60000));
    list_init(&c->requests);
    list_push_back(&s->conns, &c->link);
    sim_link_attach(l, (struct sim_end){.frame = on_frame, .closed = on_closed, .arg = c});
    arrive(c, (struct arrival){.what = ARRIVAL_OPEN});
}

/* ---- finishing requests ---- */

static void flush(struct conn *c)
{
    while (!list_empty(&c->requests)) {
        struct call *r = list_entry(c->requests.next, struct call, link);
        if (!r->finished)
            break;
        list_remove(&r->link);
        bool close = r->close;
        if (r->answer && !c->closed)
            sim_link_send(c->l, SIDE_SERVER, r->answer, r->answer_n);
        else
            free(r->answer);
        free(r);
        if (close && !c->closed) {
            close_conn(c); /* may free it */
            return;
        }
    }
    conn_release(c);
}

static void finish(struct call *r)
{
    struct conn *c = r->conn;
    if (r->finished)
        sim_violation("a request is answered twice");
    if (!executor_on_thread(c->ex))
        sim_violation("a request is answered on another thread than its connection's");
    free(r->net.frame);
    arena_free(&r->net.arena);
    r->finished = true;
    flush(c);
}

static void take_answer(struct call *r, struct chain *chain)
{
    size_t n = chain->left;
    uint8_t *all = malloc(n + 1);
    for (size_t at = 0; at < n;) {
        ssize_t got = chain_read(chain, all + at, n - at);
        if (got <= 0) { /* the file was cut meanwhile: as a real connection would */
            r->close = true;
            break;
        }
        at += (size_t)got;
    }
    chain_free(chain);
    if (r->close) {
        free(all);
    } else {
        r->answer_n = n - 4;
        r->answer = malloc(n);
        memcpy(r->answer, all + 4, n - 4);
        free(all);
    }
}

void net_request_answer(struct net_request *net, struct chain *chain)
{
    struct call *r = container_of(net, struct call, net);
    take_answer(r, chain);
    finish(r);
}

static void tell_why(const struct call *r, const char *fmt, va_list ap)
{
    char why[256];
    vsnprintf(why, sizeof(why), fmt, ap);
    sim_say("%s closes a connection: %s", r->conn->server->host->name, why);
}

void net_request_answer_and_close(struct net_request *net, struct chain *chain, const char *fmt,
                                  ...)
{
    struct call *r = container_of(net, struct call, net);
    va_list ap;
    va_start(ap, fmt);
    tell_why(r, fmt, ap);
    va_end(ap);
    take_answer(r, chain);
    r->close = true;
    finish(r);
}

void net_request_no_answer(struct net_request *net)
{
    finish(container_of(net, struct call, net));
}

void net_request_close_conn(struct net_request *net, const char *fmt, ...)
{
    struct call *r = container_of(net, struct call, net);
    va_list ap;
    va_start(ap, fmt);
    tell_why(r, fmt, ap);
    va_end(ap);
    r->close = true;
    finish(r);
}

void net_request_release_frame(struct net_request *r)
{
    free(r->frame);
    r->frame = NULL;
}

void net_request_reserve(struct net_request *r, uint32_t bytes)
{
    (void)r, (void)bytes;
}

struct executor *conn_executor(const struct conn *c)
{
    return c->ex;
}

const char *conn_peer(const struct conn *c)
{
    return c->peer;
}

const char *conn_peer_host(const struct conn *c)
{
    return c->peer_host;
}

struct in6_addr conn_peer_ip(const struct conn *c)
{
    struct in6_addr ip = IN6ADDR_ANY_INIT;
    (void)net_ip_of(c->peer_host, &ip);
    return ip;
}

const char *conn_listener_name(const struct conn *c)
{
    return c->listener;
}

struct str conn_principal(const struct conn *c)
{
    (void)c;
    return STR_LIT("ANONYMOUS");
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

void conn_mute_for(struct conn *c, int64_t ms)
{
    (void)c, (void)ms;
}

void conn_set_max_pipelined(struct conn *c, int requests)
{
    (void)c, (void)requests;
}

void conn_set_max_frame(struct conn *c, uint32_t bytes)
{
    (void)c, (void)bytes;
}

/* Its listeners are plain: nobody logs in. */
void conn_set_gate(struct conn *c, const struct conn_gate *gate, void *arg)
{
    (void)c, (void)gate, (void)arg;
}

void conn_pass(struct net_request *r)
{
    (void)r;
}

void conn_count(struct conn *c, enum net_count what)
{
    (void)c, (void)what;
}

enum conn_login conn_login(const struct conn *c)
{
    (void)c;
    return CONN_NOBODY;
}

void conn_set_by_token(struct conn *c, bool by_token)
{
    (void)c, (void)by_token;
}

int conn_set_principal(struct conn *c, struct str name)
{
    (void)c, (void)name;
    return 0;
}

/* ---- the server's life ---- */

struct net_limits net_limits_default(void)
{
    return (struct net_limits){.max_frame = 100 << 20, .arena_cap = 64 << 20};
}

int net_ip_of(const char *host, struct in6_addr *out)
{
    (void)host;
    memset(out, 0, sizeof(*out));
    return 0;
}

int net_can_listen(const char *host, int port)
{
    (void)host, (void)port;
    return 0;
}

int net_server_new(struct reactor_pool *pool, const struct net_limits *limits,
                   const struct conn_handler *handler, struct net_server **out)
{
    struct net_server *s = calloc(1, sizeof(*s));
    s->host = sim_here();
    s->pool = pool;
    s->limits = *limits;
    s->handler = *handler;
    list_init(&s->listeners);
    list_init(&s->conns);
    *out = s;
    return 0;
}

int net_server_listen_secured(struct net_server *s, const char *listener_name, const char *host,
                              int port, const struct listen_security *security, int *bound_port)
{
    (void)host, (void)security;
    struct listening *at = calloc(1, sizeof(*at));
    at->server = s;
    snprintf(at->name, sizeof(at->name), "%s", listener_name);
    at->at = (struct sim_listener){
        .host = s->host, .life = s->host->life, .port = port, .accept = on_accept, .arg = at};
    list_push_back(&s->listeners, &at->link);
    sim_listen(&at->at);
    *bound_port = port;
    return 0;
}

int net_server_unlisten(struct net_server *s, const char *listener_name)
{
    (void)s, (void)listener_name;
    return -ENOENT;
}

void net_server_accept(struct net_server *s)
{
    list_each (it, &s->listeners)
        list_entry(it, struct listening, link)->at.accepting = true;
}

int net_server_set_threads(struct net_server *s, int n)
{
    reactor_pool_use(s->pool, n);
    return 0;
}

int net_server_set_admission(struct net_server *s, const struct net_admission *limits)
{
    (void)s, (void)limits;
    return 0;
}

int net_server_set_ip_rate(struct net_server *s, const struct in6_addr *ip, double rate)
{
    (void)s, (void)ip, (void)rate;
    return 0;
}

/* Why it is held (too much waits in the produce purgatory) does not come about here. */
void net_server_hold(struct net_server *s, bool hold)
{
    (void)s, (void)hold;
}

static bool busy(const struct net_server *s)
{
    list_each (it, &s->conns)
        if (!list_empty(&list_entry(it, struct conn, link)->requests))
            return true;
    return false;
}

static bool any_open(const struct net_server *s)
{
    list_each (it, &s->conns)
        if (!list_entry(it, struct conn, link)->closed)
            return true;
    return false;
}

void net_server_stop(struct net_server *s, int64_t grace_ms)
{
    if (s->stopped)
        return;
    s->stopped = true;
    struct list *it;
    while ((it = list_pop(&s->listeners))) {
        struct listening *at = list_entry(it, struct listening, link);
        sim_unlisten(&at->at);
        free(at);
    }
    for (int64_t end = sim_now() + grace_ms * SIM_MS; busy(s) && sim_now() < end;)
        fiber_sleep(10 * SIM_MS);
    list_each (at, &s->conns)
        arrive(list_entry(at, struct conn, link), (struct arrival){.what = ARRIVAL_CLOSED});
    while (any_open(s))
        fiber_sleep(SIM_MS);
}

void net_server_free(struct net_server *s)
{
    if (!s)
        return;
    net_server_stop(s, 0);
    while (!list_empty(&s->conns)) /* those whose requests are still worked on */
        fiber_sleep(SIM_MS);
    free(s);
}

int net_server_look(struct net_server *s, struct net_figures **out)
{
    (void)s;
    *out = NULL;
    return 0;
}

int net_server_connections(const struct net_server *s)
{
    int n = 0;
    list_each (it, &s->conns)
        n++;
    return n;
}
