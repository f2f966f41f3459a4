/* sim_keyed.c - see sim_keyed.h. */
#include "sim_keyed.h"

#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"

enum kind { PLAIN, OPEN, COMMITTED, ABORTED, MARKER };
enum { NONE = -1, SLOTS = 1 << 12, COMMIT = 1 /* a marker's type, behind its version */ };

struct one {
    int64_t offset, producer;
    uint64_t key, value; /* hashes */
    enum kind kind;
    int32_t next;  /* the next one of the same key */
    int32_t chain; /* the one before in its slot */
};

struct keyed {
    struct one *v;
    int32_t n, cap;
    int32_t slots[SLOTS]; /* latest of each key's slot */
    int32_t *open;        /* of transactions that go on */
    int32_t open_n, open_cap;
};

struct keyed *keyed_new(void)
{
    struct keyed *k = calloc(1, sizeof(*k));
    for (int i = 0; i < SLOTS; i++)
        k->slots[i] = NONE;
    return k;
}

static uint64_t hash_of(struct bytes b)
{
    return b.len < 0 ? 0 : hash_bytes(b.p, (size_t)b.len) | 1;
}

/* ---- what was committed ---- */

static int32_t latest_of(const struct keyed *k, uint64_t key)
{
    int32_t i = k->slots[key % SLOTS];
    while (i != NONE && k->v[i].key != key)
        i = k->v[i].chain;
    return i;
}

static void add(struct keyed *k, const struct one *x)
{
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 256;
        k->v = realloc(k->v, (size_t)k->cap * sizeof(*k->v));
    }
    k->v[k->n] = *x;
    k->v[k->n].next = NONE;
    if (x->kind != MARKER) {
        int32_t *slot = &k->slots[x->key % SLOTS], before = latest_of(k, x->key);
        if (before != NONE)
            k->v[before].next = k->n;
        k->v[k->n].chain = *slot;
        *slot = k->n;
    }
    if (x->kind == OPEN) {
        if (k->open_n == k->open_cap) {
            k->open_cap = k->open_cap ? 2 * k->open_cap : 64;
            k->open = realloc(k->open, (size_t)k->open_cap * sizeof(*k->open));
        }
        k->open[k->open_n++] = k->n;
    }
    k->n++;
}

static void end_transaction(struct keyed *k, int64_t producer, bool committed)
{
    int32_t left = 0;
    for (int32_t i = 0; i < k->open_n; i++) {
        struct one *x = &k->v[k->open[i]];
        if (x->producer == producer)
            x->kind = committed ? COMMITTED : ABORTED;
        else
            k->open[left++] = k->open[i];
    }
    k->open_n = left;
}

static bool is_commit(struct bytes key)
{
    return key.len >= 4 && key.p[2] == 0 && key.p[3] == COMMIT;
}

static struct one one_of(const struct batch *b, const struct record *r)
{
    return (struct one){.offset = r->offset,
                        .producer = b->producer_id,
                        .key = hash_of(r->key),
                        .value = hash_of(r->value),
                        .kind = batch_is_control(b)         ? MARKER
                                : batch_is_transactional(b) ? OPEN
                                                            : PLAIN};
}

static struct record_iter *records_of(const struct batch *b)
{
    struct record_iter *it;
    if (record_iter_open(b, &it) != 0)
        sim_violation("M4: the batch at %lld cannot be read", (long long)b->base_offset);
    return it;
}

void keyed_add(struct keyed *k, const struct batch *b)
{
    struct record_iter *it = records_of(b);
    struct record r;
    while (record_iter_next(it, &r) == 1) {
        struct one x = one_of(b, &r);
        add(k, &x);
        if (x.kind == MARKER)
            end_transaction(k, b->producer_id, is_commit(r.key));
    }
    record_iter_close(it);
}

/* ---- what a replica has ---- */

static int32_t first_from(const struct keyed *k, int64_t offset)
{
    int32_t low = 0, high = k->n;
    while (low < high) {
        int32_t mid = (low + high) / 2;
        if (k->v[mid].offset < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool may_be_gone(const struct keyed_look *l, const struct one *x)
{
    if (x->kind == MARKER || x->kind == OPEN)
        return false;
    if (x->kind == ABORTED)
        return true;
    for (int32_t i = x->next; i != NONE && l->k->v[i].offset < l->has; i = l->k->v[i].next)
        if (l->k->v[i].kind == PLAIN || l->k->v[i].kind == COMMITTED)
            return true;
    return false;
}

/* All from where it stands up to this one are missing. What stands for them may be seen first when
 * the walk goes on: a cleaner can have been faster than the look at what was committed. */
static void miss(struct keyed_look *l, int64_t offset)
{
    for (int32_t i = first_from(l->k, l->at); i < l->k->n && l->k->v[i].offset < offset; i++) {
        if ((l->missing_n & (l->missing_n + 1)) == 0) /* 0, 1, 3, 7 ...: it is full */
            l->missing = realloc(l->missing, 2 * (size_t)(l->missing_n + 1) * sizeof(*l->missing));
        l->missing[l->missing_n++] = i;
    }
    l->at = offset;
}

/* It may have been cleaned away wherever it was looked for. */
static bool is_older(const struct keyed *k, const struct one *x)
{
    int32_t i = latest_of(k, x->key);
    return i != NONE && k->v[i].offset > x->offset;
}

static void compare(struct keyed_look *l, const struct batch *b)
{
    struct record_iter *it = records_of(b);
    struct record r;
    while (record_iter_next(it, &r) == 1) {
        if (r.offset < l->at)
            continue;
        struct one x = one_of(b, &r);
        miss(l, r.offset);
        int32_t i = first_from(l->k, r.offset);
        const struct one *known = i < l->k->n ? &l->k->v[i] : NULL;
        l->at = r.offset + 1;
        if ((!known || known->offset != x.offset) && is_older(l->k, &x))
            continue;
        if (!known || known->offset != x.offset || known->key != x.key || known->value != x.value ||
            known->producer != x.producer || (known->kind == MARKER) != (x.kind == MARKER))
            sim_violation("M4: %s has another record at %lld than was committed", l->who(),
                          (long long)r.offset);
    }
    record_iter_close(it);
}

void keyed_see(struct keyed_look *l, const struct batch *b, bool same)
{
    if (b->base_offset > l->at)
        miss(l, b->base_offset);
    if (!same) {
        compare(l, b);
        if (b->last_offset >= l->at)
            miss(l, b->last_offset + 1);
    } else if (b->last_offset >= l->at) {
        l->at = b->last_offset + 1;
    }
}

void keyed_seen(struct keyed_look *l)
{
    static const char *const kinds[] = {"", " of an open transaction", " of a transaction", "",
                                        ", a marker"};
    if (l->at < l->to)
        miss(l, l->to);
    for (int32_t i = 0; i < l->missing_n; i++) {
        const struct one *x = &l->k->v[l->missing[i]];
        if (!may_be_gone(l, x))
            sim_violation("M4: %s lacks the committed record at %lld%s, and there is none of its "
                          "key behind it",
                          l->who(), (long long)x->offset, kinds[x->kind]);
    }
    free(l->missing);
    l->missing = NULL;
    l->missing_n = 0;
}
