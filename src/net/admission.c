/* admission.c - see admission.h. */
#include "net/admission.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rate configured for one address. */
struct ip_rate {
    struct hnode node;
    struct in6_addr ip;
    double rate;
};

/* What an address has done of late. */
struct ip_seen {
    struct hnode node;
    struct list lru;
    struct in6_addr ip;
    struct rate rate;
    int64_t used_ms;
};

/* ---- life ---- */

void admission_init(struct admission *a, const struct net_limits *limits)
{
    *a = (struct admission){.window = {limits->rate_samples, limits->rate_sample_ms},
                            .max_connections = limits->max_connections,
                            .max_per_ip = limits->max_connections_per_ip,
                            .max_rate = INFINITY,
                            .ip_rate = INFINITY};
    pthread_mutex_init(&a->lock, NULL);
    list_init(&a->listeners);
    list_init(&a->ip_lru);
    hmap_init(&a->ip_rates);
    hmap_init(&a->ip_seen);
}

static void drop_seen(struct admission *a, struct ip_seen *s)
{
    hmap_remove(&a->ip_seen, &s->node);
    list_remove(&s->lru);
    rate_free(&s->rate);
    free(s);
}

static void free_listener(struct admission_listener *l)
{
    rate_free(&l->rate);
    free(l->name);
    free(l);
}

void admission_listener_free(struct admission *a, struct admission_listener *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&a->lock);
    list_remove(&l->link);
    pthread_mutex_unlock(&a->lock);
    free_listener(l);
}

void admission_free(struct admission *a)
{
    for (struct list *at; (at = list_pop(&a->listeners));)
        free_listener(list_entry(at, struct admission_listener, link));
    for (struct hnode *h; (h = hmap_first(&a->ip_rates));) {
        hmap_remove(&a->ip_rates, h);
        free(hmap_entry(h, struct ip_rate, node));
    }
    while (!list_empty(&a->ip_lru))
        drop_seen(a, list_entry(a->ip_lru.next, struct ip_seen, lru));
    hmap_free(&a->ip_rates);
    hmap_free(&a->ip_seen);
    rate_free(&a->rate);
    free(a->ip_limits);
    pthread_mutex_destroy(&a->lock);
}

struct admission_listener *admission_listener_new(struct admission *a, const char *name)
{
    struct admission_listener *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->name = strdup(name);
    l->max_connections = INT32_MAX;
    l->max_rate = INFINITY;
    if (!l->name) {
        free(l);
        return NULL;
    }
    pthread_mutex_lock(&a->lock);
    list_push_back(&a->listeners, &l->link);
    pthread_mutex_unlock(&a->lock);
    return l;
}

/* ---- limits ---- */

static int by_ip(const void *x, const void *y)
{
    return memcmp(&((const struct net_ip_limit *)x)->ip, &((const struct net_ip_limit *)y)->ip,
                  sizeof(struct in6_addr));
}

/* The lock is held. */
static void set_listener(struct admission_listener *l, const struct net_admission *limits)
{
    l->max_connections = INT32_MAX;
    l->max_rate = INFINITY;
    l->exempt = limits->exempt_listener && strcmp(limits->exempt_listener, l->name) == 0;
    for (int i = 0; i < limits->listeners_n; i++) {
        if (strcmp(limits->listeners[i].listener, l->name) != 0)
            continue;
        l->max_connections = limits->listeners[i].max_connections;
        l->max_rate = limits->listeners[i].max_rate;
    }
}

int admission_set(struct admission *a, const struct net_admission *limits)
{
    size_t n = (size_t)limits->ip_limits_n;
    struct net_ip_limit *copy = n ? malloc(n * sizeof(*copy)) : NULL;
    if (n && !copy)
        return -ENOMEM;
    if (n) {
        memcpy(copy, limits->ip_limits, n * sizeof(*copy));
        qsort(copy, n, sizeof(*copy), by_ip);
    }
    pthread_mutex_lock(&a->lock);
    free(a->ip_limits);
    a->ip_limits = copy;
    a->ip_limits_n = limits->ip_limits_n;
    a->max_connections = limits->max_connections;
    a->max_per_ip = limits->max_connections_per_ip;
    a->max_rate = limits->max_rate;
    list_each (at, &a->listeners)
        set_listener(list_entry(at, struct admission_listener, link), limits);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static bool rate_has_ip(const struct hnode *h, const void *ip)
{
    return memcmp(&hmap_entry(h, struct ip_rate, node)->ip, ip, sizeof(struct in6_addr)) == 0;
}

static bool seen_has_ip(const struct hnode *h, const void *ip)
{
    return memcmp(&hmap_entry(h, struct ip_seen, node)->ip, ip, sizeof(struct in6_addr)) == 0;
}

static uint64_t hash_ip(const struct in6_addr *ip)
{
    return hash_bytes(ip, sizeof(*ip));
}

/* The lock is held. */
static int put_ip_rate(struct admission *a, const struct in6_addr *ip, double rate)
{
    struct hnode *h = hmap_find(&a->ip_rates, hash_ip(ip), rate_has_ip, ip);
    struct ip_rate *r = h ? hmap_entry(h, struct ip_rate, node) : NULL;
    if (isinf(rate)) {
        if (r)
            hmap_remove(&a->ip_rates, &r->node);
        free(r);
        return 0;
    }
    if (!r) {
        r = calloc(1, sizeof(*r));
        if (!r || hmap_put(&a->ip_rates, &r->node, hash_ip(ip)) != 0) {
            free(r);
            return -ENOMEM;
        }
        r->ip = *ip;
    }
    r->rate = rate;
    return 0;
}

int admission_set_ip_rate(struct admission *a, const struct in6_addr *ip, double rate)
{
    int rc = 0;
    pthread_mutex_lock(&a->lock);
    if (ip)
        rc = put_ip_rate(a, ip, rate);
    else
        a->ip_rate = rate;
    pthread_mutex_unlock(&a->lock);
    return rc;
}

/* ---- numbers ---- */

bool admission_slot_free(struct admission *a, const struct admission_listener *l, int on_listener,
                         int on_all)
{
    pthread_mutex_lock(&a->lock);
    bool is_free = on_listener < l->max_connections && (l->exempt || on_all < a->max_connections);
    pthread_mutex_unlock(&a->lock);
    return is_free;
}

bool admission_exceeded(struct admission *a, int on_all)
{
    pthread_mutex_lock(&a->lock);
    bool exceeded = on_all > a->max_connections;
    pthread_mutex_unlock(&a->lock);
    return exceeded;
}

bool admission_exempt(struct admission *a, const struct admission_listener *l)
{
    pthread_mutex_lock(&a->lock);
    bool exempt = l->exempt;
    pthread_mutex_unlock(&a->lock);
    return exempt;
}

int admission_max_per_ip(struct admission *a, const struct in6_addr *ip)
{
    struct net_ip_limit key = {.ip = *ip};
    pthread_mutex_lock(&a->lock);
    const struct net_ip_limit *own =
        a->ip_limits_n ? bsearch(&key, a->ip_limits, (size_t)a->ip_limits_n, sizeof(key), by_ip)
                       : NULL;
    int max = own ? own->max : a->max_per_ip;
    pthread_mutex_unlock(&a->lock);
    return max;
}

/* ---- rates ---- */

/* The lock is held. */
static int64_t count(struct admission *a, struct rate *r, double limit, int64_t now_ms)
{
    if (isinf(limit))
        return 0;
    rate_record(r, &a->window, 1, now_ms);
    int64_t ms = rate_throttle_ms(r, &a->window, limit, now_ms);
    return ms < a->window.sample_ms ? ms : a->window.sample_ms;
}

int64_t admission_new_ms(struct admission *a, struct admission_listener *l, int64_t now_ms)
{
    pthread_mutex_lock(&a->lock);
    int64_t all = l->exempt ? 0 : count(a, &a->rate, a->max_rate, now_ms);
    int64_t own = count(a, &l->rate, l->max_rate, now_ms);
    pthread_mutex_unlock(&a->lock);
    return all > own ? all : own;
}

static double rate_of(const struct admission *a, const struct in6_addr *ip)
{
    struct hnode *h = hmap_find(&a->ip_rates, hash_ip(ip), rate_has_ip, ip);
    return h ? hmap_entry(h, struct ip_rate, node)->rate : a->ip_rate;
}

/* What these have done is out of the window. */
static void forget_ips(struct admission *a, int64_t now_ms)
{
    int64_t kept_ms = (a->window.samples + 1) * a->window.sample_ms;
    while (!list_empty(&a->ip_lru)) {
        struct ip_seen *s = list_entry(a->ip_lru.next, struct ip_seen, lru);
        if (now_ms - s->used_ms < kept_ms)
            return;
        drop_seen(a, s);
    }
}

static struct ip_seen *seen(struct admission *a, const struct in6_addr *ip, int64_t now_ms)
{
    struct hnode *h = hmap_find(&a->ip_seen, hash_ip(ip), seen_has_ip, ip);
    struct ip_seen *s = h ? hmap_entry(h, struct ip_seen, node) : calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    if (!h) {
        s->ip = *ip;
        list_init(&s->lru);
        if (hmap_put(&a->ip_seen, &s->node, hash_ip(ip)) != 0) {
            free(s);
            return NULL;
        }
    }
    list_remove(&s->lru);
    list_push_back(&a->ip_lru, &s->lru);
    s->used_ms = now_ms;
    return s;
}

int64_t admission_ip_ms(struct admission *a, const struct in6_addr *ip, int64_t now_ms)
{
    int64_t ms = 0;
    pthread_mutex_lock(&a->lock);
    forget_ips(a, now_ms);
    double limit = rate_of(a, ip);
    struct ip_seen *s = isinf(limit) ? NULL : seen(a, ip, now_ms);
    if (s)
        ms = count(a, &s->rate, limit, now_ms);
    if (ms > 0)
        rate_record(&s->rate, &a->window, -1, now_ms);
    pthread_mutex_unlock(&a->lock);
    return ms;
}

int admission_ips_seen(struct admission *a)
{
    pthread_mutex_lock(&a->lock);
    int n = (int)a->ip_seen.n;
    pthread_mutex_unlock(&a->lock);
    return n;
}
