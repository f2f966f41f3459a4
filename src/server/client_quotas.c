/* client_quotas.c - see client_quotas.h. */
#include "server/client_quotas.h"

#include "base/bucket.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What is owed of topic changes may take long to come in; who is quiet for so long may begin anew.
 */
enum { MUTATION_KEPT_MS = 3600000 };

struct counter {
    struct hnode node;
    struct list lru; /* oldest first */
    struct rate rate;
    struct bucket bucket; /* of QUOTA_MUTATION, in place of the rate */
    int64_t used_ms;
    struct str user, client; /* null where it is shared by all */
    char names[];
};

struct counters {
    struct hmap map;
    struct list lru;
};

struct client_quotas {
    struct rate_window window, mutation_window;
    atomic_bool any[QUOTA_KINDS];
    pthread_mutex_t lock; /* all below */
    struct quota_limits limits;
    struct counters counters[QUOTA_KINDS];
};

struct client_quotas *client_quotas_new(struct rate_window window)
{
    struct client_quotas *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->window = q->mutation_window = window;
    pthread_mutex_init(&q->lock, NULL);
    quota_limits_init(&q->limits);
    for (int i = 0; i < QUOTA_KINDS; i++) {
        atomic_init(&q->any[i], false);
        hmap_init(&q->counters[i].map);
        list_init(&q->counters[i].lru);
    }
    return q;
}

static void drop(struct counters *all, struct counter *c)
{
    hmap_remove(&all->map, &c->node);
    list_remove(&c->lru);
    rate_free(&c->rate);
    free(c);
}

static void drop_all(struct counters *all)
{
    while (!list_empty(&all->lru))
        drop(all, list_entry(all->lru.next, struct counter, lru));
}

void client_quotas_free(struct client_quotas *q)
{
    if (!q)
        return;
    for (int i = 0; i < QUOTA_KINDS; i++) {
        drop_all(&q->counters[i]);
        hmap_free(&q->counters[i].map);
    }
    quota_limits_free(&q->limits);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

int client_quotas_set(struct client_quotas *q, const struct quota_entity *e,
                      struct config_list list)
{
    pthread_mutex_lock(&q->lock);
    int rc = quota_limits_set(&q->limits, e, list);
    for (int i = 0; i < QUOTA_KINDS; i++) {
        bool any = quota_limits_any(&q->limits, (enum quota_kind)i);
        atomic_store(&q->any[i], any);
        if (!any)
            drop_all(&q->counters[i]);
    }
    pthread_mutex_unlock(&q->lock);
    return rc;
}

int client_quotas_set_default(struct client_quotas *q, enum quota_kind kind, double rate)
{
    int rc = quota_limits_set_default(&q->limits, kind, rate);
    atomic_store(&q->any[kind], rc == 0);
    return rc;
}

bool client_quotas_any(const struct client_quotas *q, enum quota_kind kind)
{
    return atomic_load_explicit(&q->any[kind], memory_order_relaxed);
}

/* ---- counters; the lock is held ---- */

struct counter_key {
    struct str user, client;
};

static bool key_equals(const struct hnode *h, const void *key)
{
    const struct counter *c = hmap_entry(h, struct counter, node);
    const struct counter_key *k = key;
    return str_eq(c->user, k->user) && str_eq(c->client, k->client);
}

/* A name that is missing and one that is empty are two things; the hash need not know. */
static uint64_t hash_key(const struct counter_key *k)
{
    return hash_int(hash_str(k->user) * 3 ^ hash_str(k->client));
}

/* Nothing of what these counted is in the window any more. */
static void drop_idle(struct client_quotas *q, struct counters *all, int64_t now_ms)
{
    int64_t kept_ms = (q->window.samples + 1) * q->window.sample_ms;
    if (all == &q->counters[QUOTA_MUTATION])
        kept_ms = MUTATION_KEPT_MS;
    while (!list_empty(&all->lru)) {
        struct counter *c = list_entry(all->lru.next, struct counter, lru);
        if (now_ms - c->used_ms < kept_ms)
            return;
        drop(all, c);
    }
}

static struct counter *counter_new(const struct counter_key *k)
{
    size_t user_n = k->user.len > 0 ? (size_t)k->user.len : 0;
    size_t client_n = k->client.len > 0 ? (size_t)k->client.len : 0;
    struct counter *c = calloc(1, sizeof(*c) + user_n + client_n);
    if (!c)
        return NULL;
    list_init(&c->lru);
    c->user = k->user;
    c->client = k->client;
    if (user_n)
        c->user.p = memcpy(c->names, k->user.p, user_n);
    if (client_n)
        c->client.p = memcpy(c->names + user_n, k->client.p, client_n);
    return c;
}

static struct counter_key key_at(enum quota_level level, struct str user, struct str client)
{
    struct counter_key k = {user, client};
    if (level == QUOTA_USER_ALONE || level == QUOTA_ANY_USER)
        k.client = STR_NULL;
    if (level == QUOTA_CLIENT_ALONE || level == QUOTA_ANY_CLIENT || level == QUOTA_FILE)
        k.user = STR_NULL;
    return k;
}

/* The counter of this client and its limit; NULL: no quota holds, or no memory (then nobody is held
 * back). */
static struct counter *counter_of(struct client_quotas *q, enum quota_kind kind, struct str user,
                                  struct str client, int64_t now_ms, double *limit)
{
    enum quota_level level;
    struct counters *all = &q->counters[kind];
    drop_idle(q, all, now_ms);
    if (!quota_limits_find(&q->limits, kind, user, client, limit, &level))
        return NULL;
    struct counter_key k = key_at(level, user, client);
    struct hnode *h = hmap_find(&all->map, hash_key(&k), key_equals, &k);
    struct counter *c = h ? hmap_entry(h, struct counter, node) : counter_new(&k);
    if (!c)
        return NULL;
    if (!h && hmap_put(&all->map, &c->node, hash_key(&k)) != 0) {
        free(c);
        return NULL;
    }
    list_remove(&c->lru);
    list_push_back(&all->lru, &c->lru);
    c->used_ms = now_ms;
    return c;
}

/* ---- counting ---- */

/* Time is made up for quickly, so a client is never held back longer than a sample. */
static int64_t bounded(const struct client_quotas *q, enum quota_kind kind, int64_t ms)
{
    bool capped = kind == QUOTA_REQUEST && ms > q->window.sample_ms;
    return capped ? q->window.sample_ms : ms;
}

int64_t client_quotas_record(struct client_quotas *q, enum quota_kind kind, struct str user,
                             struct str client, double value, int64_t now_ms)
{
    double limit;
    int64_t ms = 0;
    if (!client_quotas_any(q, kind))
        return 0;
    pthread_mutex_lock(&q->lock);
    struct counter *c = counter_of(q, kind, user, client, now_ms, &limit);
    if (c) {
        struct rate *r = &c->rate;
        rate_record(r, &q->window, value, now_ms);
        ms = bounded(q, kind, rate_throttle_ms(r, &q->window, limit, now_ms));
    }
    pthread_mutex_unlock(&q->lock);
    return ms;
}

static double burst(const struct client_quotas *q, double limit)
{
    return limit * (double)((q->window.samples - 1) * q->window.sample_ms) / 1000;
}

int64_t client_quotas_record_fetch(struct client_quotas *q, struct str user, struct str client,
                                   double bytes, int64_t now_ms, bool *empty)
{
    double limit;
    int64_t ms = 0;
    *empty = false;
    if (!client_quotas_any(q, QUOTA_FETCH))
        return 0;
    pthread_mutex_lock(&q->lock);
    struct counter *c = counter_of(q, QUOTA_FETCH, user, client, now_ms, &limit);
    if (c) {
        struct rate *r = &c->rate;
        double before = rate_measure(r, &q->window, now_ms, NULL);
        rate_record(r, &q->window, bytes, now_ms);
        ms = rate_throttle_ms(r, &q->window, limit, now_ms);
        *empty = ms > 0 && (bytes <= burst(q, limit) || before > limit);
        if (*empty)
            rate_record(r, &q->window, -bytes, now_ms);
    }
    pthread_mutex_unlock(&q->lock);
    return ms;
}

void client_quotas_set_mutation_window(struct client_quotas *q, struct rate_window window)
{
    q->mutation_window = window;
}

int64_t client_quotas_mutate(struct client_quotas *q, struct str user, struct str client,
                             double partitions, bool strict, int64_t now_ms, bool *refused)
{
    double limit;
    int64_t ms = 0;
    *refused = false;
    if (!client_quotas_any(q, QUOTA_MUTATION))
        return 0;
    pthread_mutex_lock(&q->lock);
    struct counter *c = counter_of(q, QUOTA_MUTATION, user, client, now_ms, &limit);
    if (c) {
        const struct rate_window *w = &q->mutation_window;
        double most = limit * (double)(w->samples * w->sample_ms) / 1000;
        ms = strict ? bucket_wait_ms(&c->bucket, limit, most, now_ms) : 0;
        *refused = ms > 0;
        if (!*refused)
            bucket_take(&c->bucket, limit, most, partitions, now_ms);
        if (!strict)
            ms = bucket_wait_ms(&c->bucket, limit, most, now_ms);
    }
    pthread_mutex_unlock(&q->lock);
    return ms;
}

void client_quotas_unrecord(struct client_quotas *q, enum quota_kind kind, struct str user,
                            struct str client, double value, int64_t now_ms)
{
    client_quotas_record(q, kind, user, client, -value, now_ms);
}

double client_quotas_burst(struct client_quotas *q, enum quota_kind kind, struct str user,
                           struct str client)
{
    double limit = INFINITY;
    enum quota_level level;
    if (!client_quotas_any(q, kind))
        return limit;
    pthread_mutex_lock(&q->lock);
    bool found = quota_limits_find(&q->limits, kind, user, client, &limit, &level);
    pthread_mutex_unlock(&q->lock);
    return found ? burst(q, limit) : INFINITY;
}

int client_quotas_counters(struct client_quotas *q, enum quota_kind kind)
{
    pthread_mutex_lock(&q->lock);
    int n = (int)q->counters[kind].map.n;
    pthread_mutex_unlock(&q->lock);
    return n;
}

void client_quotas_each(struct client_quotas *q, enum quota_kind kind, int64_t now_ms,
                        void (*each)(void *arg, struct str user, struct str client, double rate,
                                     int64_t throttle_ms),
                        void *arg)
{
    if (kind == QUOTA_MUTATION || !client_quotas_any(q, kind))
        return;
    pthread_mutex_lock(&q->lock);
    drop_idle(q, &q->counters[kind], now_ms);
    list_each (it, &q->counters[kind].lru) {
        struct counter *c = list_entry(it, struct counter, lru);
        double limit, rate = rate_measure(&c->rate, &q->window, now_ms, NULL);
        enum quota_level level;
        int64_t ms = 0;
        if (quota_limits_find(&q->limits, kind, c->user, c->client, &limit, &level))
            ms = bounded(q, kind, rate_throttle_ms(&c->rate, &q->window, limit, now_ms));
        each(arg, c->user, c->client, rate, ms);
    }
    pthread_mutex_unlock(&q->lock);
}
