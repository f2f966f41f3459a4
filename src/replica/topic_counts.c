/* topic_counts.c - see topic_counts.h. */
#include "replica/topic_counts.h"

#include <stdlib.h>
#include <string.h>

/* On lines of its own. */
struct topic_slot {
    _Alignas(METRICS_CACHE_LINE) metric n[TOPIC_COUNTS];
};

static bool is_topic(const struct hnode *node, const void *key)
{
    return str_eq(topic_counts_topic(hmap_entry(node, struct topic_counts, node)),
                  *(const struct str *)key);
}

static struct topic_counts *counts_new(struct hmap *set, struct str topic, uint64_t hash)
{
    struct topic_counts *c = calloc(1, sizeof(*c) + (size_t)topic.len);
    if (!c)
        return NULL;
    atomic_init(&c->refs, 1);
    c->len = topic.len;
    memcpy(c->topic, topic.p, (size_t)topic.len);
    if (hmap_put(set, &c->node, hash) == 0)
        return c;
    free(c);
    return NULL;
}

struct topic_counts *topic_counts_enter(struct hmap *set, struct str topic)
{
    uint64_t hash = hash_str(topic);
    struct hnode *n = hmap_find(set, hash, is_topic, &topic);
    struct topic_counts *c =
        n ? hmap_entry(n, struct topic_counts, node) : counts_new(set, topic, hash);
    if (!c)
        return NULL;
    c->partitions++;
    return topic_counts_ref(c);
}

void topic_counts_leave(struct hmap *set, struct topic_counts *c)
{
    if (!c || --c->partitions > 0)
        return;
    hmap_remove(set, &c->node);
    topic_counts_unref(c);
}

struct topic_counts *topic_counts_ref(struct topic_counts *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void topic_counts_unref(struct topic_counts *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (int i = 0; i < METRICS_SLOTS; i++)
        free(atomic_load_explicit(&c->slots[i], memory_order_relaxed));
    free(c);
}

/* ---- counting ---- */

/* Two threads may share a slot: who is second takes the first one's. */
static struct topic_slot *make_slot(struct topic_slot *_Atomic *at)
{
    struct topic_slot *none = NULL;
    struct topic_slot *made = aligned_alloc(METRICS_CACHE_LINE, sizeof(*made));
    if (!made)
        return NULL;
    memset(made, 0, sizeof(*made));
    if (atomic_compare_exchange_strong(at, &none, made))
        return made;
    free(made);
    return none;
}

void topic_counts_add(struct topic_counts *c, enum topic_count what, uint64_t n)
{
    struct topic_slot *_Atomic *at = &c->slots[metrics_slot()];
    struct topic_slot *s = atomic_load_explicit(at, memory_order_acquire);
    if (!s)
        s = make_slot(at);
    if (s)
        metric_add(&s->n[what], n);
}

uint64_t topic_counts_read(const struct topic_counts *c, enum topic_count what)
{
    uint64_t n = 0;
    for (int i = 0; i < METRICS_SLOTS; i++) {
        const struct topic_slot *s = atomic_load_explicit(&c->slots[i], memory_order_acquire);
        if (s)
            n += metric_read(&s->n[what]);
    }
    return n;
}
