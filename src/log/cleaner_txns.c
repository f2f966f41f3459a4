#include "log/cleaner_txns.h"

#include <errno.h>
#include <stdlib.h>

struct open_txn {
    struct hnode node;
    int64_t producer_id;
    bool aborted, met; /* data was met: of an aborted one, or of one that will commit */
    struct txn_entry entry;
};

void cleaner_txns_init(struct cleaner_txns *t)
{
    *t = (struct cleaner_txns){0};
    hmap_init(&t->open);
}

void cleaner_txns_free(struct cleaner_txns *t)
{
    for (struct hnode *n = hmap_first(&t->open), *next; n; n = next) {
        next = hmap_next(&t->open, n);
        free(hmap_entry(n, struct open_txn, node));
    }
    hmap_free(&t->open);
    free(t->coming);
    cleaner_txns_init(t);
}

int cleaner_txns_add(struct cleaner_txns *t, const struct txn_entry *e)
{
    if (t->at) { /* what was reached makes room */
        memmove(t->coming, t->coming + t->at, (t->n - t->at) * sizeof(*t->coming));
        t->n -= t->at;
        t->at = 0;
    }
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16;
        struct txn_entry *v = realloc(t->coming, cap * sizeof(*v));
        if (!v)
            return -ENOMEM;
        t->coming = v;
        t->cap = cap;
    }
    t->coming[t->n++] = *e;
    return 0;
}

static int by_first_offset(const void *a, const void *b)
{
    const struct txn_entry *x = a, *y = b;
    return (x->first_offset > y->first_offset) - (x->first_offset < y->first_offset);
}

void cleaner_txns_ready(struct cleaner_txns *t)
{
    if (t->n - t->at > 1)
        qsort(t->coming + t->at, t->n - t->at, sizeof(*t->coming), by_first_offset);
}

static bool id_equals(const struct hnode *node, const void *key)
{
    return hmap_entry(node, struct open_txn, node)->producer_id == *(const int64_t *)key;
}

static struct open_txn *find(const struct cleaner_txns *t, int64_t id)
{
    struct hnode *n = hmap_find(&t->open, hash_int((uint64_t)id), id_equals, &id);
    return n ? hmap_entry(n, struct open_txn, node) : NULL;
}

static struct open_txn *find_or_make(struct cleaner_txns *t, int64_t id)
{
    struct open_txn *x = find(t, id);
    if (x || !(x = calloc(1, sizeof(*x))))
        return x;
    x->producer_id = id;
    if (hmap_put(&t->open, &x->node, hash_int((uint64_t)id))) {
        free(x);
        return NULL;
    }
    return x;
}

/* Aborted transactions that begin at or below `offset` are open from now on. */
static int reach(struct cleaner_txns *t, int64_t offset)
{
    for (; t->at < t->n && t->coming[t->at].first_offset <= offset; t->at++) {
        const struct txn_entry *e = &t->coming[t->at];
        struct open_txn *x = find_or_make(t, e->producer_id);
        if (!x)
            return -ENOMEM;
        if (x->aborted)
            continue;
        x->aborted = true;
        x->met = false;
        x->entry = *e;
    }
    return 0;
}

int cleaner_txns_data(struct cleaner_txns *t, const struct batch *b, bool *removable)
{
    *removable = false;
    int err = reach(t, b->last_offset);
    if (err || !batch_is_transactional(b))
        return err;
    struct open_txn *x = find_or_make(t, b->producer_id);
    if (!x)
        return -ENOMEM;
    x->met = true;
    *removable = x->aborted;
    return 0;
}

int cleaner_txns_marker(struct cleaner_txns *t, const struct batch *b, const struct txn_marker *m,
                        bool *removable, struct txn_entry *entry, bool *has_entry)
{
    *has_entry = false;
    *removable = b->record_count == 0; /* emptied by an earlier compaction */
    int err = reach(t, b->last_offset);
    if (err || !m->valid) /* of a kind that we do not know: it stays */
        return err;
    struct open_txn *x = find(t, b->producer_id);
    bool met = x && x->met;
    *removable = !met;
    if (met && x->aborted) {
        *entry = x->entry;
        *has_entry = true;
    }
    if (x) {
        hmap_remove(&t->open, &x->node);
        free(x);
    }
    return 0;
}
