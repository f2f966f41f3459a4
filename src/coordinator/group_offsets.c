/* group_offsets.c - see group_offsets.h. A group mostly has few topics and a run of partitions of
 * each, so an entry is found by a hash of the topic and a search in a sorted array. */
#include "coordinator/group_offsets.h"

#include <errno.h>
#include <stdlib.h>

/* Its entries are what the transaction would commit: `pending` is the commit that writes the value,
 * `position` is known when that is done. */
struct txn_offsets {
    struct hnode node;
    int64_t producer_id;
    struct hmap topics;
};

static const char no_metadata[] = "";

void group_offsets_init(struct group_offsets *o)
{
    *o = (struct group_offsets){0};
    hmap_init(&o->topics);
    hmap_init(&o->txns);
}

bool group_offsets_empty(const struct group_offsets *o)
{
    return o->topics.n == 0;
}

/* ---- values ---- */

/* *v with metadata of its own. 0 or -ENOMEM. */
static int value_copy(struct offset_value *to, const struct offset_value *v)
{
    const char *p = no_metadata;
    if (v->metadata.len > 0 && !(p = str_dup(v->metadata)))
        return -ENOMEM;
    *to = *v;
    to->metadata = (struct str){p, v->metadata.len > 0 ? v->metadata.len : 0};
    return 0;
}

static void value_free(struct offset_value *v)
{
    if (v->metadata.len > 0)
        free((void *)v->metadata.p);
    v->metadata = (struct str){no_metadata, 0};
}

/* ---- topics and entries ---- */

static bool is_topic(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct offset_topic, node)->name, *(const struct str *)key);
}

static struct offset_topic *find_topic(const struct hmap *topics, struct str name)
{
    struct hnode *n = topics->n ? hmap_find(topics, hash_str(name), is_topic, &name) : NULL;
    return n ? hmap_entry(n, struct offset_topic, node) : NULL;
}

static void topic_free(struct offset_topic *t)
{
    for (int i = 0; i < t->n; i++)
        value_free(&t->entries[i].value);
    free(t->entries);
    free((void *)t->name.p);
    free(t);
}

static struct offset_topic *make_topic(struct hmap *topics, struct str name)
{
    struct offset_topic *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->name = (struct str){str_dup(name), name.len};
    if (!t->name.p || hmap_put(topics, &t->node, hash_str(name)) != 0) {
        free((void *)t->name.p);
        free(t);
        return NULL;
    }
    return t;
}

/* Where the partition is, or belongs. */
static int place_of(const struct offset_topic *t, int32_t partition)
{
    int low = 0, high = t->n;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (t->entries[mid].partition < partition)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct offset_entry *find_entry(const struct offset_topic *t, int32_t partition)
{
    int i = place_of(t, partition);
    return i < t->n && t->entries[i].partition == partition ? &t->entries[i] : NULL;
}

static struct offset_entry *insert_entry(struct offset_topic *t, int32_t partition)
{
    if (t->n == t->cap) {
        int cap = t->cap ? t->cap * 2 : 1;
        struct offset_entry *more = realloc(t->entries, (size_t)cap * sizeof(*more));
        if (!more)
            return NULL;
        t->entries = more;
        t->cap = cap;
    }
    int i = place_of(t, partition);
    memmove(&t->entries[i + 1], &t->entries[i], (size_t)(t->n - i) * sizeof(*t->entries));
    t->n++;
    t->entries[i] = (struct offset_entry){.partition = partition, .position = -1};
    t->entries[i].value.metadata = (struct str){no_metadata, 0};
    return &t->entries[i];
}

static bool entry_is_idle(const struct offset_entry *e)
{
    return e->position < 0 && !e->pending && e->txns == 0;
}

/* Drops the entry when nothing holds it any more, and the topic with the last of its entries. */
static void settle(struct hmap *topics, struct offset_topic *t, struct offset_entry *e)
{
    if (!entry_is_idle(e))
        return;
    int i = (int)(e - t->entries);
    value_free(&e->value);
    t->n--;
    memmove(e, e + 1, (size_t)(t->n - i) * sizeof(*e));
    if (t->n == 0) {
        hmap_remove(topics, &t->node);
        topic_free(t);
    }
}

/* Found, or made. *topic tells whose it is. NULL without memory. */
static struct offset_entry *get_entry(struct hmap *topics, struct str topic, int32_t partition,
                                      struct offset_topic **t)
{
    *t = find_topic(topics, topic);
    if (!*t && !(*t = make_topic(topics, topic)))
        return NULL;
    struct offset_entry *e = find_entry(*t, partition);
    if (!e && !(e = insert_entry(*t, partition)) && (*t)->n == 0) {
        hmap_remove(topics, &(*t)->node);
        topic_free(*t);
    }
    return e;
}

/* Found; *topic tells whose it is. */
static struct offset_entry *seek_entry(const struct hmap *topics, struct str topic,
                                       int32_t partition, struct offset_topic **t)
{
    *t = find_topic(topics, topic);
    return *t ? find_entry(*t, partition) : NULL;
}

static void topics_free(struct hmap *topics)
{
    for (struct hnode *n = hmap_first(topics), *next; n; n = next) {
        next = hmap_next(topics, n);
        topic_free(hmap_entry(n, struct offset_topic, node));
    }
    hmap_free(topics);
}

/* Gives the entry a copy of the value. 0 or -ENOMEM. */
static int entry_set(struct offset_entry *e, const struct offset_value *v)
{
    struct offset_value copy;
    if (value_copy(&copy, v) != 0)
        return -ENOMEM;
    value_free(&e->value);
    e->value = copy;
    return 0;
}

/* ---- committed ---- */

bool group_offsets_has_topic(const struct group_offsets *o, struct str topic)
{
    return find_topic(&o->topics, topic) != NULL;
}

const struct offset_entry *group_offsets_find(const struct group_offsets *o, struct str topic,
                                              int32_t partition)
{
    struct offset_topic *t;
    return seek_entry(&o->topics, topic, partition, &t);
}

static void uncommit(struct group_offsets *o, struct offset_entry *e)
{
    value_free(&e->value);
    if (e->position >= 0)
        o->committed_n--;
    e->position = -1;
}

int group_offsets_set(struct group_offsets *o, struct str topic, int32_t partition,
                      const struct offset_value *v, int64_t position)
{
    struct offset_topic *t;
    struct offset_entry *e = get_entry(&o->topics, topic, partition, &t);
    if (!e)
        return -ENOMEM;
    if (e->position > position)
        return 0;
    if (entry_set(e, v) != 0) {
        settle(&o->topics, t, e);
        return -ENOMEM;
    }
    o->committed_n += e->position < 0;
    e->position = position;
    return 0;
}

bool group_offsets_remove(struct group_offsets *o, struct str topic, int32_t partition)
{
    struct offset_topic *t;
    struct offset_entry *e = seek_entry(&o->topics, topic, partition, &t);
    if (!e || e->position < 0)
        return false;
    uncommit(o, e);
    settle(&o->topics, t, e);
    return true;
}

/* ---- pending ---- */

int group_offsets_pend(struct group_offsets *o, struct str topic, int32_t partition,
                       const void *commit)
{
    struct offset_topic *t;
    struct offset_entry *e = get_entry(&o->topics, topic, partition, &t);
    if (!e)
        return -ENOMEM;
    o->pending_n += !e->pending;
    e->pending = commit;
    return 0;
}

void group_offsets_unpend(struct group_offsets *o, struct str topic, int32_t partition,
                          const void *commit)
{
    struct offset_topic *t;
    struct offset_entry *e = seek_entry(&o->topics, topic, partition, &t);
    if (!e || e->pending != commit)
        return;
    e->pending = NULL;
    o->pending_n--;
    settle(&o->topics, t, e);
}

/* ---- transactions ---- */

static bool is_producer(const struct hnode *n, const void *key)
{
    return hmap_entry(n, struct txn_offsets, node)->producer_id == *(const int64_t *)key;
}

static struct txn_offsets *find_txn(const struct group_offsets *o, int64_t producer_id)
{
    struct hnode *n =
        hmap_find(&o->txns, hash_int((uint64_t)producer_id), is_producer, &producer_id);
    return n ? hmap_entry(n, struct txn_offsets, node) : NULL;
}

static struct txn_offsets *get_txn(struct group_offsets *o, int64_t producer_id)
{
    struct txn_offsets *x = find_txn(o, producer_id);
    if (x || !(x = calloc(1, sizeof(*x))))
        return x;
    x->producer_id = producer_id;
    hmap_init(&x->topics);
    if (hmap_put(&o->txns, &x->node, hash_int((uint64_t)producer_id)) != 0) {
        free(x);
        return NULL;
    }
    return x;
}

static void txn_free(struct group_offsets *o, struct txn_offsets *x)
{
    hmap_remove(&o->txns, &x->node);
    topics_free(&x->topics);
    free(x);
}

/* The committed side knows how many transactions hold it. */
static void release(struct group_offsets *o, struct str topic, int32_t partition)
{
    struct offset_topic *t;
    struct offset_entry *e = seek_entry(&o->topics, topic, partition, &t);
    if (!e)
        return;
    e->txns--;
    settle(&o->topics, t, e);
}

/* Drops the transaction's entry, and the transaction with its last. */
static void drop_txn_entry(struct group_offsets *o, struct txn_offsets *x, struct offset_topic *t,
                           struct offset_entry *e)
{
    release(o, t->name, e->partition);
    e->position = -1;
    e->pending = NULL;
    settle(&x->topics, t, e);
    if (x->topics.n == 0)
        txn_free(o, x);
}

/* Found, or made and counted on the committed side. */
static struct offset_entry *get_txn_entry(struct group_offsets *o, struct txn_offsets *x,
                                          struct str topic, int32_t partition,
                                          struct offset_topic **t)
{
    struct offset_topic *held_topic;
    struct offset_entry *e = seek_entry(&x->topics, topic, partition, t);
    if (e)
        return e;
    struct offset_entry *held = get_entry(&o->topics, topic, partition, &held_topic);
    e = held ? get_entry(&x->topics, topic, partition, t) : NULL;
    if (e)
        held->txns++;
    else if (held)
        settle(&o->topics, held_topic, held);
    return e;
}

int group_offsets_txn_put(struct group_offsets *o, int64_t producer_id, struct str topic,
                          int32_t partition, const struct offset_value *v, int64_t position,
                          const void *commit)
{
    struct offset_topic *t;
    struct txn_offsets *x = get_txn(o, producer_id);
    struct offset_entry *e = x ? get_txn_entry(o, x, topic, partition, &t) : NULL;
    if (e && entry_set(e, v) == 0) {
        e->position = position;
        e->pending = commit;
        return 0;
    }
    if (e && entry_is_idle(e))
        drop_txn_entry(o, x, t, e);
    else if (x && x->topics.n == 0)
        txn_free(o, x);
    return -ENOMEM;
}

void group_offsets_txn_written(struct group_offsets *o, int64_t producer_id, struct str topic,
                               int32_t partition, const void *commit, int64_t position)
{
    struct offset_topic *t;
    struct txn_offsets *x = find_txn(o, producer_id);
    struct offset_entry *e = x ? seek_entry(&x->topics, topic, partition, &t) : NULL;
    if (!e || e->pending != commit)
        return;
    if (position < 0) {
        drop_txn_entry(o, x, t, e);
        return;
    }
    e->pending = NULL;
    e->position = position;
}

void group_offsets_txn_drop(struct group_offsets *o, int64_t producer_id, struct str topic,
                            int32_t partition)
{
    struct offset_topic *t;
    struct txn_offsets *x = find_txn(o, producer_id);
    struct offset_entry *e = x ? seek_entry(&x->topics, topic, partition, &t) : NULL;
    if (e)
        drop_txn_entry(o, x, t, e);
}

int group_offsets_txn_end(struct group_offsets *o, int64_t producer_id, bool commit)
{
    struct txn_offsets *x = find_txn(o, producer_id);
    int lost = 0;
    if (!x)
        return 0;
    hmap_each (n, &x->topics) {
        const struct offset_topic *t = hmap_entry(n, struct offset_topic, node);
        for (int i = 0; i < t->n; i++) {
            const struct offset_entry *e = &t->entries[i];
            if (commit && (e->position < 0 || group_offsets_set(o, t->name, e->partition, &e->value,
                                                                e->position) != 0))
                lost++;
            release(o, t->name, e->partition);
        }
    }
    txn_free(o, x);
    return lost;
}

bool group_offsets_has_txns(const struct group_offsets *o)
{
    return o->txns.n > 0;
}

/* ---- all of it ---- */

void group_offsets_free(struct group_offsets *o)
{
    for (struct hnode *n = hmap_first(&o->txns), *next; n; n = next) {
        next = hmap_next(&o->txns, n);
        struct txn_offsets *x = hmap_entry(n, struct txn_offsets, node);
        topics_free(&x->topics);
        free(x);
    }
    hmap_free(&o->txns);
    topics_free(&o->topics);
    group_offsets_init(o);
}

void group_offsets_take(struct group_offsets *to, struct group_offsets *from)
{
    *to = *from;
    group_offsets_init(from);
}

void group_offsets_each(struct group_offsets *o,
                        bool (*each)(void *arg, const struct offset_topic *t,
                                     const struct offset_entry *e),
                        void *arg)
{
    for (struct hnode *n = hmap_first(&o->topics), *next; n; n = next) {
        next = hmap_next(&o->topics, n);
        struct offset_topic *t = hmap_entry(n, struct offset_topic, node);
        for (int i = t->n - 1; i >= 0; i--) { /* from the end: what is behind moves up */
            struct offset_entry *e = &t->entries[i];
            if ((e->position < 0 && !e->pending) || !each(arg, t, e))
                continue;
            uncommit(o, e);
            bool last = t->n == 1 && entry_is_idle(e);
            settle(&o->topics, t, e);
            if (last)
                break; /* the topic went with it */
        }
    }
}

/* Entries of the transactions, or why the table cannot be. */
static const char *count_txn_entries(const struct group_offsets *o, int64_t *n_entries)
{
    hmap_each (n, &o->txns) {
        const struct txn_offsets *x = hmap_entry(n, struct txn_offsets, node);
        if (x->topics.n == 0)
            return "O3: an empty transaction";
        hmap_each (m, &x->topics)
            *n_entries += hmap_entry(m, struct offset_topic, node)->n;
    }
    return NULL;
}

const char *group_offsets_check(const struct group_offsets *o)
{
    int committed = 0, pending = 0;
    int64_t held = 0, holds = 0;
    hmap_each (n, &o->topics) {
        const struct offset_topic *t = hmap_entry(n, struct offset_topic, node);
        for (int i = 0; i < t->n; i++) {
            const struct offset_entry *e = &t->entries[i];
            committed += e->position >= 0;
            pending += e->pending != NULL;
            held += e->txns;
            if (entry_is_idle(e))
                return "O3: an idle entry";
            if (i > 0 && t->entries[i - 1].partition >= e->partition)
                return "entries out of order";
        }
        if (t->n == 0)
            return "O3: an empty topic";
    }
    const char *wrong = count_txn_entries(o, &holds);
    if (wrong)
        return wrong;
    if (committed != o->committed_n || pending != o->pending_n)
        return "O1: counts";
    return held == holds ? NULL : "O2: holds of transactions";
}
