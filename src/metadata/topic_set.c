/* topic_set.c - see topic_set.h.
 *
 * A shard with one reference belongs to the set at hand alone and is changed in place; every other
 * one is copied first. (A shard that a published snapshot holds has at least that reference beside
 * ours, since the writer works on a copy of the snapshot in force.) */
#include "metadata/topic_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"

enum { SHARD_AVERAGE = 24, SHARD_SLACK = 8 };

struct slot {
    uint64_t hash;
    struct topic_entry *topic; /* a reference */
};

struct topic_shard {
    atomic_int refs;
    uint32_t n, cap;
    struct slot slots[];
};

void topic_entry_unref(struct topic_entry *t)
{
    if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
        free(t);
}

static struct topic_entry *entry_ref(struct topic_entry *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

static void shard_unref(struct topic_shard *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        topic_entry_unref(s->slots[i].topic);
    free(s);
}

static uint64_t hash_of(enum topic_key key, const struct topic_info *t)
{
    return key == TOPIC_BY_NAME ? hash_str(t->name) : hash_bytes(t->id.b, sizeof(t->id.b));
}

static bool same_key(enum topic_key key, const struct topic_info *a, const struct topic_info *b)
{
    return key == TOPIC_BY_NAME ? str_eq(a->name, b->name) : uuid_eq(a->id, b->id);
}

void topic_set_init(struct topic_set *s, enum topic_key key)
{
    *s = (struct topic_set){.key = key, .mask = UINT64_MAX};
}

static uint64_t shards_n(const struct topic_set *s)
{
    return s->mask + 1; /* 0 while there are none */
}

void topic_set_free(struct topic_set *s)
{
    for (uint64_t i = 0; i < shards_n(s); i++)
        shard_unref(s->shards[i]);
    free(s->shards);
    topic_set_init(s, s->key);
}

int topic_set_copy(const struct topic_set *from, struct topic_set *to)
{
    topic_set_init(to, from->key);
    if (!shards_n(from))
        return 0;
    to->shards = malloc(shards_n(from) * sizeof(struct topic_shard *));
    if (!to->shards)
        return -ENOMEM;
    to->mask = from->mask;
    to->n = from->n;
    for (uint64_t i = 0; i < shards_n(from); i++) {
        to->shards[i] = from->shards[i];
        if (to->shards[i])
            atomic_fetch_add_explicit(&to->shards[i]->refs, 1, memory_order_relaxed);
    }
    return 0;
}

static int find_slot(const struct topic_set *s, const struct topic_shard *shard, uint64_t hash,
                     const struct topic_info *key)
{
    for (uint32_t i = 0; shard && i < shard->n; i++)
        if (shard->slots[i].hash == hash && same_key(s->key, &shard->slots[i].topic->info, key))
            return (int)i;
    return -1;
}

static struct topic_entry *find(const struct topic_set *s, const struct topic_info *key)
{
    if (!s->n)
        return NULL;
    uint64_t hash = hash_of(s->key, key);
    const struct topic_shard *shard = s->shards[hash & s->mask];
    int at = find_slot(s, shard, hash, key);
    return at < 0 ? NULL : shard->slots[at].topic;
}

struct topic_entry *topic_set_by_name(const struct topic_set *s, struct str name)
{
    return find(s, &(struct topic_info){.name = name});
}

struct topic_entry *topic_set_by_id(const struct topic_set *s, struct uuid id)
{
    return find(s, &(struct topic_info){.id = id});
}

/* Makes the shard ours alone, with room for one more. Returns borrowed; NULL without memory. */
static struct topic_shard *own_shard(struct topic_set *s, uint64_t i)
{
    struct topic_shard *old = s->shards[i];
    uint32_t n = old ? old->n : 0;
    bool ours = old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1;
    if (ours && n < old->cap)
        return old;
    uint32_t cap = n + SHARD_SLACK;
    size_t size = sizeof(struct topic_shard) + cap * sizeof(struct slot);
    struct topic_shard *shard = ours ? realloc(old, size) : malloc(size);
    if (!shard)
        return NULL;
    if (!ours) {
        atomic_init(&shard->refs, 1);
        shard->n = n;
        for (uint32_t k = 0; k < n; k++)
            shard->slots[k] = (struct slot){old->slots[k].hash, entry_ref(old->slots[k].topic)};
        shard_unref(old);
    }
    shard->cap = cap;
    return s->shards[i] = shard;
}

/* Four times the shards, all of them fresh. */
static int grow(struct topic_set *s)
{
    struct topic_set bigger = {.key = s->key, .n = s->n};
    bigger.mask = shards_n(s) ? shards_n(s) * 4 - 1 : 3;
    bigger.shards = calloc(shards_n(&bigger), sizeof(struct topic_shard *));
    if (!bigger.shards)
        return -ENOMEM;
    for (uint64_t i = 0; i < shards_n(s); i++)
        for (uint32_t k = 0; s->shards[i] && k < s->shards[i]->n; k++) {
            struct slot *from = &s->shards[i]->slots[k];
            struct topic_shard *to = own_shard(&bigger, from->hash & bigger.mask);
            if (!to) {
                topic_set_free(&bigger);
                return -ENOMEM;
            }
            to->slots[to->n++] = (struct slot){from->hash, entry_ref(from->topic)};
        }
    topic_set_free(s);
    *s = bigger;
    return 0;
}

int topic_set_put(struct topic_set *s, struct topic_entry *t)
{
    if ((uint64_t)s->n >= shards_n(s) * SHARD_AVERAGE) {
        int err = grow(s);
        if (err && !shards_n(s)) /* else: fuller shards, still right */
            return err;
    }
    uint64_t hash = hash_of(s->key, &t->info);
    struct topic_shard *shard = own_shard(s, hash & s->mask);
    if (!shard)
        return -ENOMEM;
    int at = find_slot(s, shard, hash, &t->info);
    if (at >= 0) {
        entry_ref(t);
        topic_entry_unref(shard->slots[at].topic);
        shard->slots[at].topic = t;
        return 0;
    }
    shard->slots[shard->n++] = (struct slot){hash, entry_ref(t)};
    s->n++;
    return 0;
}

int topic_set_remove(struct topic_set *s, const struct topic_entry *t)
{
    if (!find(s, &t->info))
        return 0;
    uint64_t hash = hash_of(s->key, &t->info);
    struct topic_shard *shard = own_shard(s, hash & s->mask);
    if (!shard)
        return -ENOMEM;
    int at = find_slot(s, shard, hash, &t->info);
    struct topic_entry *gone = shard->slots[at].topic;
    shard->slots[at] = shard->slots[--shard->n];
    s->n--;
    topic_entry_unref(gone);
    return 0;
}

void topic_set_list(const struct topic_set *s, const struct topic_info **out)
{
    size_t n = 0;
    for (uint64_t i = 0; i < shards_n(s); i++)
        for (uint32_t k = 0; s->shards[i] && k < s->shards[i]->n; k++)
            out[n++] = &s->shards[i]->slots[k].topic->info;
}
