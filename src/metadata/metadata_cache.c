/* metadata_cache.c - the published snapshot: taking and letting go of it, looking into it. How an
 * update makes the next one is in metadata_update.c.
 *
 * PUBLISHED  `current` holds the pointer to the snapshot in its low 48 bits and, above, how many
 *            references readers have taken through it. So one atomic addition both finds the
 *            snapshot and pins it; there is no moment between in which it could be freed.
 * REFS       the snapshot's own count starts at BIAS, which stands for being published. Taking it
 *            out of `current` adds the readers counted there and takes BIAS off. A reader that sees
 *            the upper bits filling up moves them over in between. */
#include "metadata/metadata_snapshot.h"

#include <pthread.h>
#include <stdlib.h>

_Static_assert(sizeof(void *) == 8, "pointers are packed with a counter of 16 bits");

#define COUNT_ONE ((uint64_t)1 << 48)
#define POINTER_MASK (COUNT_ONE - 1)
#define BIAS ((int64_t)1 << 40)
enum { COUNT_FULL = 0x4000 };

struct metadata_cache {
    _Atomic uint64_t current;
    struct metadata_snapshot *latest; /* the same; the writer's */
    pthread_mutex_t lock;             /* listeners */
    struct list listeners;
};

static struct metadata_snapshot *pointer_in(uint64_t word)
{
    return (struct metadata_snapshot *)(uintptr_t)(word & POINTER_MASK);
}

static int64_t count_in(uint64_t word)
{
    return (int64_t)(word >> 48);
}

static uint64_t word_of(struct metadata_snapshot *s)
{
    uint64_t word = (uint64_t)(uintptr_t)s;
    if (word & ~POINTER_MASK) /* no user space that we run on gives such an address */
        abort();
    return word;
}

static void add_refs(struct metadata_snapshot *s, int64_t n)
{
    if (atomic_fetch_add_explicit(&s->refs, n, memory_order_acq_rel) + n == 0)
        metadata_snapshot_free(s);
}

struct metadata_cache *metadata_cache_new(void)
{
    struct metadata_cache *c = calloc(1, sizeof(*c));
    struct metadata_snapshot *first = metadata_snapshot_new();
    if (!c || !first) {
        free(c);
        metadata_snapshot_free(first);
        return NULL;
    }
    atomic_store(&first->refs, BIAS);
    atomic_init(&c->current, word_of(first));
    c->latest = first;
    pthread_mutex_init(&c->lock, NULL);
    list_init(&c->listeners);
    return c;
}

/* Swaps in the next one, or none at the end. */
static void publish(struct metadata_cache *c, struct metadata_snapshot *next)
{
    uint64_t old =
        atomic_exchange_explicit(&c->current, next ? word_of(next) : 0, memory_order_acq_rel);
    c->latest = next;
    add_refs(pointer_in(old), count_in(old) - BIAS);
}

void metadata_cache_free(struct metadata_cache *c)
{
    if (!c)
        return;
    publish(c, NULL);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int metadata_cache_update(struct metadata_cache *c, const struct update_metadata_request *req)
{
    struct metadata_snapshot *next;
    int err = metadata_snapshot_update(c->latest, req, &next);
    if (err)
        return err;
    atomic_store(&next->refs, BIAS);
    publish(c, next);
    pthread_mutex_lock(&c->lock);
    list_each_safe (at, &c->listeners) {
        struct metadata_listener *l = list_entry(at, struct metadata_listener, link);
        l->updated(l);
    }
    pthread_mutex_unlock(&c->lock);
    return 0;
}

void metadata_cache_listen(struct metadata_cache *c, struct metadata_listener *l)
{
    pthread_mutex_lock(&c->lock);
    list_push_back(&c->listeners, &l->link);
    pthread_mutex_unlock(&c->lock);
}

void metadata_cache_unlisten(struct metadata_cache *c, struct metadata_listener *l)
{
    pthread_mutex_lock(&c->lock);
    list_remove(&l->link);
    pthread_mutex_unlock(&c->lock);
}

/* Moves the references counted in `word` into the snapshot, where there is more room. Added there
 * first, so that they are never missing from both. */
static void move_count(struct metadata_cache *c, uint64_t word)
{
    struct metadata_snapshot *s = pointer_in(word);
    int64_t n = count_in(word);
    add_refs(s, n);
    if (!atomic_compare_exchange_strong_explicit(&c->current, &word, word_of(s),
                                                 memory_order_acq_rel, memory_order_relaxed))
        add_refs(s, -n); /* cannot be the last: we hold one */
}

const struct metadata_snapshot *metadata_acquire(struct metadata_cache *c)
{
    uint64_t word =
        atomic_fetch_add_explicit(&c->current, COUNT_ONE, memory_order_acq_rel) + COUNT_ONE;
    if (count_in(word) >= COUNT_FULL)
        move_count(c, word);
    return pointer_in(word);
}

void metadata_release(const struct metadata_snapshot *s)
{
    if (s)
        add_refs((struct metadata_snapshot *)s, -1);
}

int32_t metadata_controller(const struct metadata_snapshot *s)
{
    return s->controller;
}

int metadata_brokers(const struct metadata_snapshot *s, const struct broker_info **out)
{
    *out = s->brokers;
    return s->brokers_n;
}

static int by_id(const void *key, const void *at)
{
    int32_t id = *(const int32_t *)key, other = ((const struct broker_info *)at)->id;
    return (id > other) - (id < other);
}

const struct broker_info *metadata_broker(const struct metadata_snapshot *s, int32_t id)
{
    if (!s->brokers_n)
        return NULL;
    return bsearch(&id, s->brokers, (size_t)s->brokers_n, sizeof(*s->brokers), by_id);
}

const struct endpoint *broker_endpoint(const struct broker_info *b, struct str listener)
{
    for (int i = 0; i < b->endpoints_n; i++)
        if (str_eq(b->endpoints[i].listener, listener))
            return &b->endpoints[i];
    return NULL;
}

const struct topic_info *metadata_topic(const struct metadata_snapshot *s, struct str name)
{
    struct topic_entry *t = topic_set_by_name(&s->by_name, name);
    return t ? &t->info : NULL;
}

const struct topic_info *metadata_topic_by_id(const struct metadata_snapshot *s, struct uuid id)
{
    struct topic_entry *t = topic_set_by_id(&s->by_id, id);
    return t ? &t->info : NULL;
}

const struct partition_info *metadata_partition(const struct metadata_snapshot *s, struct str topic,
                                                int32_t partition)
{
    const struct topic_info *t = metadata_topic(s, topic);
    if (!t || partition < 0 || partition >= t->partitions_n)
        return NULL;
    const struct partition_info *p = &t->partitions[partition];
    return p->replicas_n ? p : NULL;
}

int metadata_topics_n(const struct metadata_snapshot *s)
{
    return s->by_name.n;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp((*(const struct topic_info *const *)a)->name,
                   (*(const struct topic_info *const *)b)->name);
}

/* Sorted by whoever needs it first; of two at once the later one's is dropped. NULL without
 * memory. */
static const struct topic_info **sorted_topics(const struct metadata_snapshot *s)
{
    _Atomic(const struct topic_info **) *at = &((struct metadata_snapshot *)s)->sorted;
    const struct topic_info **have = atomic_load_explicit(at, memory_order_acquire);
    if (have)
        return have;
    const struct topic_info **made = malloc(((size_t)s->by_name.n + 1) * sizeof(*made));
    if (!made)
        return NULL;
    topic_set_list(&s->by_name, made);
    qsort(made, (size_t)s->by_name.n, sizeof(*made), by_name);
    if (atomic_compare_exchange_strong_explicit(at, &have, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    free(made);
    return have;
}

const struct topic_info **metadata_topics(const struct metadata_snapshot *s, struct arena *a)
{
    const struct topic_info **sorted = sorted_topics(s);
    size_t n = (size_t)s->by_name.n;
    const struct topic_info **out = arena_alloc(a, (n + 1) * sizeof(*out));
    if (!sorted || !out)
        return NULL;
    memcpy(out, sorted, n * sizeof(*out));
    return out;
}
