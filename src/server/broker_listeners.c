/* broker_listeners.c - the broker's network: what it listens on, what of it is advertised, and how
 * that changes while it serves.
 *
 * CHANGE  A listener is known by its name. One whose name is gone from `listeners`, or stands there
 *         with another address, is closed together with its connections; then the new ones are
 *         bound, so that a port can go from one to another; then limits are set, and only then
 *         clients are let in. Last, the registration in the store gets the new endpoints, from
 * where the controller tells all brokers. What cannot be bound is told and left out: the check
 *         before the change has tried it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "server/broker_private.h"
#include "server/broker_security.h"
#include "server/conn_limits.h"
#include "server/dynamic_config.h"
#include "server/request.h"

static const char component[] = "SocketServer";

/* A socket that listens. */
struct bound_listener {
    char *name, *host; /* owned */
    int asked;         /* port of the setting; 0 = any */
    int port;          /* bound */
};

/* ---- the list; listeners_lock is held, or nobody else knows the broker yet ---- */

static struct bound_listener *find(const struct broker *b, const char *name)
{
    for (int i = 0; i < b->bound_n; i++)
        if (strcmp(b->bound[i].name, name) == 0)
            return &b->bound[i];
    return NULL;
}

static bool is_at(const struct bound_listener *x, const struct listener_config *l)
{
    return strcmp(x->name, l->name) == 0 && strcmp(x->host, l->host) == 0 && x->asked == l->port;
}

static bool wanted(const struct config *c, const struct bound_listener *x)
{
    for (int i = 0; i < c->listeners_n; i++)
        if (is_at(x, &c->listeners[i]))
            return true;
    return false;
}

static void forget(struct broker *b, struct bound_listener *x)
{
    free(x->name);
    free(x->host);
    *x = b->bound[--b->bound_n];
}

static void say(const char *what, const struct bound_listener *x)
{
    bool v6 = strchr(x->host, ':') != NULL;
    say_info(component, "%s %s://%s%s%s:%d", what, x->name, v6 ? "[" : "", x->host, v6 ? "]" : "",
             x->port);
}

/* 0 or -errno (-EPROTO: it cannot be secured). The list has room. */
static int bind_one(struct broker *b, const struct listener_config *l)
{
    const struct listen_security *security = broker_security_listen(b->security, l);
    if (!security)
        return -EPROTO;
    struct bound_listener x = {strdup(l->name), strdup(l->host), l->port, 0};
    int rc = x.name && x.host
                 ? net_server_listen_secured(b->net, l->name, l->host, l->port, security, &x.port)
                 : -ENOMEM;
    if (rc) {
        free(x.name);
        free(x.host);
        return rc;
    }
    b->bound[b->bound_n++] = x;
    return 0;
}

static void close_unwanted(struct broker *b, const struct config *c)
{
    for (int i = b->bound_n - 1; i >= 0; i--) {
        if (wanted(c, &b->bound[i]))
            continue;
        (void)net_server_unlisten(b->net, b->bound[i].name); /* fails when all are closed */
        say("no longer listening on", &b->bound[i]);
        forget(b, &b->bound[i]);
    }
}

/* *failed: one that cannot be bound; then the others are all the same. */
static int bind_missing(struct broker *b, const struct config *c,
                        const struct listener_config **failed)
{
    int rc = 0;
    *failed = NULL;
    void *v = realloc(b->bound, (size_t)(b->bound_n + c->listeners_n) * sizeof(*b->bound));
    if (!v)
        return -ENOMEM;
    b->bound = v;
    for (int i = 0; i < c->listeners_n; i++) {
        const struct listener_config *l = &c->listeners[i];
        int one = find(b, l->name) ? 0 : bind_one(b, l);
        if (one && !rc) {
            rc = one;
            *failed = l;
        }
    }
    return rc;
}

static uint64_t fingerprint(const struct endpoint *e, int n)
{
    uint64_t h = 0;
    for (int i = 0; i < n; i++) {
        h = hash_int(h + hash_str(e[i].listener));
        h = hash_int(h + hash_str(e[i].host));
        h = hash_int(h + (uint64_t)e[i].port * 8 + (uint64_t)e[i].security_protocol);
    }
    return h;
}

int broker_endpoints(struct broker *b, const struct config *c, struct endpoint *out)
{
    int n = 0;
    for (int i = 0; i < c->listeners_n; i++) {
        const struct listener_config *l = &c->listeners[i];
        const struct bound_listener *x = find(b, l->name);
        if (x && l->advertised_host)
            out[n++] = (struct endpoint){.listener = str_of(l->name),
                                         .host = str_of(l->advertised_host),
                                         .port = l->advertised_port ? l->advertised_port : x->port,
                                         .security_protocol = l->security_protocol};
    }
    b->endpoints_told = fingerprint(out, n);
    return n;
}

/* ---- may it be? ---- */

static bool port_is_ours(struct broker *b, int port)
{
    for (int i = 0; i < b->bound_n; i++)
        if (b->bound[i].port == port)
            return true;
    return false;
}

static char *bind_problem(struct broker *b, const struct listener_config *l)
{
    char *text;
    if (l->port == 0 || port_is_ours(b, l->port)) /* ours is given up first, or stays */
        return NULL;
    int rc = net_can_listen(l->host, l->port);
    if (rc &&
        asprintf(&text,
                 "Invalid value %s://%s:%d for configuration listeners: cannot bind: %s; must "
                 "be a free port of an address of this machine",
                 l->name, l->host, l->port, strerror(-rc)) >= 0)
        return text;
    return NULL;
}

static char *check_change(void *arg, const struct config *now, const struct config *then)
{
    struct broker *b = arg;
    char err[1024], *problem = NULL;
    if (broker_check_supported(then, err, sizeof(err)) != 0) {
        err[strcspn(err, "\n")] = 0; /* one line for one answer */
        return strdup(err);
    }
    if (broker_security_check(b->security, then, err, sizeof(err)) != 0)
        return strdup(err);
    pthread_mutex_lock(&b->listeners_lock);
    for (int i = 0; i < then->listeners_n && !problem; i++)
        problem = bind_problem(b, &then->listeners[i]);
    pthread_mutex_unlock(&b->listeners_lock);
    return problem;
}

/* ---- start and end ---- */

static void on_request(void *arg, struct net_request *net)
{
    request_dispatch(arg, net);
}

static int make_network(struct broker *b, const struct config *c)
{
    struct net_limits limits = conn_limits_fixed(c);
    limits.count = b->metrics != NULL;
    b->conn_handler = (struct conn_handler){.request = on_request, .arg = b};
    b->network_threads = (int)config_int(c, "num.network.threads");
    int rc = reactor_pool_start(b->network_threads, &b->reactors);
    if (!rc && b->metrics) {
        reactor_pool_measure(b->reactors);
        workers_measure(b->workers);
    }
    return rc ? rc : net_server_new(b->reactors, &limits, &b->conn_handler, &b->net);
}

/* queued.max.requests: what requests left to the workers. Those that merely wait (for records,
 * members, replicas) are no work, and do not count, as in Kafka. */
static void on_crowd(void *arg, bool is)
{
    net_server_hold(arg, is);
}

int broker_bind_listeners(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = dynamic_config_ref(b->dynamic);
    const struct listener_config *failed = NULL;
    pthread_mutex_lock(&b->listeners_lock);
    int rc = broker_security_apply(b->security, c, err, err_n); /* it may have changed since */
    bool secured = rc == 0;
    if (!rc)
        rc = make_network(b, c);
    if (!rc)
        workers_watch(b->workers, (int)config_int(c, "queued.max.requests"), on_crowd, b->net);
    if (!rc)
        rc = bind_missing(b, c, &failed);
    if (!rc)
        rc = conn_limits_apply(c, b->net);
    pthread_mutex_unlock(&b->listeners_lock);
    if (failed)
        snprintf(err, err_n,
                 "listeners: cannot bind %s://%s:%d: %s; must be a free port of an address of this "
                 "machine",
                 failed->name, failed->host, failed->port, strerror(-rc));
    else if (rc && secured)
        snprintf(err, err_n, "num.network.threads=%lld: cannot start the network: %s",
                 (long long)config_int(c, "num.network.threads"), strerror(-rc));
    config_unref(c);
    return rc;
}

static int apply(struct broker *b, const struct config *c);

void broker_accept(struct broker *b)
{
    dynamic_config_set_check(b->dynamic, check_change, b);
    const struct config *c = dynamic_config_ref(b->dynamic);
    pthread_mutex_lock(&b->listeners_lock);
    b->listening = true;
    net_server_accept(b->net);
    for (int i = 0; i < b->bound_n; i++)
        say("listening on", &b->bound[i]);
    (void)apply(b, c); /* what has changed since they were bound; it tells what fails */
    pthread_mutex_unlock(&b->listeners_lock);
    config_unref(c);
}

struct net_server *broker_take_net(struct broker *b)
{
    pthread_mutex_lock(&b->listeners_lock);
    struct net_server *net = b->net;
    b->net = NULL;
    pthread_mutex_unlock(&b->listeners_lock);
    return net;
}

void broker_listeners_free(struct broker *b)
{
    while (b->bound_n > 0)
        forget(b, &b->bound[b->bound_n - 1]);
    free(b->bound);
}

/* ---- change ---- */

/* The registration follows, if it is not as it was. */
static int register_again(struct broker *b, const struct config *c)
{
    uint64_t before = b->endpoints_told;
    struct endpoint *endpoints = calloc((size_t)c->listeners_n, sizeof(*endpoints));
    if (!endpoints)
        return -ENOMEM;
    struct broker_info self = {.id = b->id,
                               .rack = str_of(config_string(b->config, "broker.rack")),
                               .endpoints = endpoints,
                               .endpoints_n = broker_endpoints(b, c, endpoints)};
    int rc = b->endpoints_told == before ? 0 : broker_registrar_update(b->registrar, &self);
    free(endpoints);
    if (rc) {
        b->endpoints_told = 0; /* next time again */
        say_error(component, "cannot register the listeners: %s", strerror(-rc));
    }
    return rc;
}

static void set_threads(struct broker *b, const struct config *c)
{
    int n = (int)config_int(c, "num.network.threads");
    int rc = n == b->network_threads ? 0 : net_server_set_threads(b->net, n);
    if (rc)
        say_error(component, "num.network.threads=%d: %s; there are %d", n, strerror(-rc),
                  b->network_threads);
    else
        b->network_threads = n;
}

static int apply(struct broker *b, const struct config *c)
{
    const struct listener_config *failed;
    set_threads(b, c);
    int before = b->bound_n;
    char err[1024];
    if (broker_security_apply(b->security, c, err, sizeof(err)) != 0)
        say_error(component, "%s", err);
    close_unwanted(b, c);
    before = b->bound_n < before ? b->bound_n : before;
    int rc = bind_missing(b, c, &failed);
    if (failed)
        say_error(component, "cannot listen on %s://%s:%d: %s", failed->name, failed->host,
                  failed->port, strerror(-rc));
    int limits = conn_limits_apply(c, b->net);
    net_server_accept(b->net);
    for (int i = before; i < b->bound_n; i++)
        say("listening on", &b->bound[i]);
    int told = register_again(b, c);
    return rc ? rc : limits ? limits : told;
}

int broker_listeners_apply(struct broker *b, const struct config *now)
{
    int rc = 0;
    pthread_mutex_lock(&b->listeners_lock);
    if (b->net && b->listening)
        rc = apply(b, now);
    else if (b->net)
        rc = conn_limits_apply(now, b->net);
    pthread_mutex_unlock(&b->listeners_lock);
    return rc;
}

void broker_stores_look(struct broker *b, const struct config *now)
{
    char err[1024];
    pthread_mutex_lock(&b->listeners_lock);
    if (b->listening && broker_security_apply(b->security, now, err, sizeof(err)) != 0)
        say_error(component, "%s", err);
    pthread_mutex_unlock(&b->listeners_lock);
}

int broker_limit_ip(struct broker *b, const struct in6_addr *ip, double rate)
{
    pthread_mutex_lock(&b->listeners_lock);
    int rc = b->net ? net_server_set_ip_rate(b->net, ip, rate) : 0;
    pthread_mutex_unlock(&b->listeners_lock);
    return rc;
}
