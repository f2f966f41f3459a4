/* replication_throttle.c - see replication_throttle.h. */
#include "server/replication_throttle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"

/* What one topic lists for this broker. */
struct listed {
    bool all;
    int32_t *partitions; /* owned */
    int n;
};

struct throttled_topic {
    struct hnode node;
    char *name;
    int32_t name_len;
    struct listed sides[THROTTLE_SIDES];
};

struct replication_throttle {
    int32_t broker_id;
    struct rate_window window;
    const struct clock *clock;
    pthread_rwlock_t lock;
    struct hmap topics;  /* that list anything; under lock */
    atomic_int topics_n; /* of them: mostly none, and then nobody takes the lock */
    pthread_mutex_t rates_lock;
    struct rate rates[THROTTLE_SIDES];
};

struct replication_throttle *replication_throttle_new(int32_t broker_id, struct rate_window window,
                                                      const struct clock *clock)
{
    struct replication_throttle *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->broker_id = broker_id;
    t->window = window;
    t->clock = clock;
    pthread_rwlock_init(&t->lock, NULL);
    pthread_mutex_init(&t->rates_lock, NULL);
    hmap_init(&t->topics);
    return t;
}

static void topic_free(struct throttled_topic *x)
{
    for (int i = 0; i < THROTTLE_SIDES; i++)
        free(x->sides[i].partitions);
    free(x->name);
    free(x);
}

void replication_throttle_free(struct replication_throttle *t)
{
    if (!t)
        return;
    for (struct hnode *h; (h = hmap_first(&t->topics)) != NULL;) {
        hmap_remove(&t->topics, h);
        topic_free(hmap_entry(h, struct throttled_topic, node));
    }
    hmap_free(&t->topics);
    for (int i = 0; i < THROTTLE_SIDES; i++)
        rate_free(&t->rates[i]);
    pthread_rwlock_destroy(&t->lock);
    pthread_mutex_destroy(&t->rates_lock);
    free(t);
}

/* ---- lists ---- */

static bool is_topic(const struct hnode *h, const void *key)
{
    const struct throttled_topic *x = hmap_entry(h, struct throttled_topic, node);
    return str_eq((struct str){x->name, x->name_len}, *(const struct str *)key);
}

static struct throttled_topic *find(struct replication_throttle *t, struct str topic)
{
    struct hnode *h = hmap_find(&t->topics, hash_str(topic), is_topic, &topic);
    return h ? hmap_entry(h, struct throttled_topic, node) : NULL;
}

/* The pairs that name this broker. false without memory. */
static bool parse(const char *text, int32_t broker_id, struct listed *out)
{
    size_t room = 1;
    *out = (struct listed){.all = text && strcmp(text, "*") == 0};
    if (!text || !*text || out->all)
        return true;
    for (const char *p = text; *p; p++)
        room += *p == ',';
    out->partitions = calloc(room, sizeof(*out->partitions));
    if (!out->partitions)
        return false;
    for (const char *p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char *colon;
        long partition = strtol(p, &colon, 10);
        if (*colon == ':' && strtol(colon + 1, NULL, 10) == broker_id)
            out->partitions[out->n++] = (int32_t)partition;
    }
    return true;
}

static struct throttled_topic *topic_new(struct replication_throttle *t, struct str topic,
                                         const char *leader, const char *follower)
{
    struct throttled_topic *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    x->name = str_dup(topic);
    x->name_len = topic.len;
    if (x->name && parse(leader, t->broker_id, &x->sides[THROTTLE_LEADER]) &&
        parse(follower, t->broker_id, &x->sides[THROTTLE_FOLLOWER]))
        return x;
    topic_free(x);
    return NULL;
}

static bool lists_any(const struct throttled_topic *x)
{
    bool any = false;
    for (int i = 0; i < THROTTLE_SIDES; i++)
        any |= x->sides[i].all || x->sides[i].n > 0;
    return any;
}

void replication_throttle_set(struct replication_throttle *t, struct str topic, const char *leader,
                              const char *follower)
{
    bool nothing = (!leader || !*leader) && (!follower || !*follower);
    if (nothing && atomic_load(&t->topics_n) == 0)
        return;
    struct throttled_topic *now = topic_new(t, topic, leader, follower);
    if (!now) {
        say_error("ReplicaManager", "no memory for the throttled replicas of %.*s", STR_ARG(topic));
        return;
    }
    pthread_rwlock_wrlock(&t->lock);
    struct throttled_topic *old = find(t, topic);
    if (old)
        hmap_remove(&t->topics, &old->node);
    bool keep = lists_any(now) && !hmap_put(&t->topics, &now->node, hash_str(topic));
    atomic_store(&t->topics_n, (int)t->topics.n);
    pthread_rwlock_unlock(&t->lock);
    if (!keep)
        topic_free(now);
    if (old)
        topic_free(old);
}

bool replication_throttle_lists(struct replication_throttle *t, enum throttle_side side,
                                struct topic_partition tp)
{
    if (atomic_load_explicit(&t->topics_n, memory_order_relaxed) == 0)
        return false;
    pthread_rwlock_rdlock(&t->lock);
    const struct throttled_topic *x = find(t, tp.topic);
    bool listed = x && x->sides[side].all;
    for (int i = 0; x && !listed && i < x->sides[side].n; i++)
        listed = x->sides[side].partitions[i] == tp.partition;
    pthread_rwlock_unlock(&t->lock);
    return listed;
}

/* ---- rates ---- */

/* Kafka measures these by the time since the oldest sample, at least one sample's. */
static double measure(struct replication_throttle *t, struct rate *r, int64_t now)
{
    int64_t over, oldest = now;
    double per_second = rate_measure(r, &t->window, now, &over);
    for (int i = 0; i < r->n; i++)
        if (r->v[i].value > 0 && r->v[i].start_ms < oldest)
            oldest = r->v[i].start_ms;
    int64_t elapsed = now - oldest > t->window.sample_ms ? now - oldest : t->window.sample_ms;
    return per_second * (double)over / (double)elapsed;
}

bool replication_throttle_exceeded(struct replication_throttle *t, enum throttle_side side,
                                   double limit)
{
    pthread_mutex_lock(&t->rates_lock);
    bool exceeded = measure(t, &t->rates[side], clock_mono_ms(t->clock)) > limit;
    pthread_mutex_unlock(&t->rates_lock);
    return exceeded;
}

double replication_throttle_rate(struct replication_throttle *t, enum throttle_side side)
{
    pthread_mutex_lock(&t->rates_lock);
    double rate = measure(t, &t->rates[side], clock_mono_ms(t->clock));
    pthread_mutex_unlock(&t->rates_lock);
    return rate;
}

void replication_throttle_count(struct replication_throttle *t, enum throttle_side side,
                                int64_t bytes)
{
    pthread_mutex_lock(&t->rates_lock);
    rate_record(&t->rates[side], &t->window, (double)bytes, clock_mono_ms(t->clock));
    pthread_mutex_unlock(&t->rates_lock);
}
