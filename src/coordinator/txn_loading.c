/* txn_loading.c - see txn_loading.h. */
#include "coordinator/txn_loading.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/logline.h"
#include "coordinator/txn_records.h"

#define LOADING_TAG "TransactionStateManager"

enum { COMPLAINTS_MAX = 10 };

struct txn_loading {
    int32_t partition;
    struct hmap ids; /* of struct txn, one reference each */
    int64_t records;
    int complaints;
    struct arena scratch; /* for one record */
};

struct txn_loading *txn_loading_new(int32_t partition)
{
    struct txn_loading *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->partition = partition;
    hmap_init(&l->ids);
    arena_init(&l->scratch, 0);
    return l;
}

void txn_loading_free(struct txn_loading *l)
{
    if (!l)
        return;
    for (struct hnode *n = hmap_first(&l->ids), *next; n; n = next) {
        next = hmap_next(&l->ids, n);
        txn_unref(hmap_entry(n, struct txn, node));
    }
    hmap_free(&l->ids);
    arena_free(&l->scratch);
    free(l);
}

int64_t txn_loading_records(const struct txn_loading *l)
{
    return l->records;
}

static void complain(struct txn_loading *l, int64_t offset, const char *what)
{
    if (++l->complaints > COMPLAINTS_MAX)
        return;
    say_warn(LOADING_TAG, "__transaction_state-%d, offset %lld: %s, passed over%s",
             (int)l->partition, (long long)offset, what,
             l->complaints == COMPLAINTS_MAX ? " (there will be no more such lines)" : "");
}

/* ---- records ---- */

static bool is_id(const struct hnode *n, const void *key)
{
    return str_eq(hmap_entry(n, struct txn, node)->id, *(const struct str *)key);
}

static struct txn *find(const struct txn_loading *l, struct str id)
{
    struct hnode *n = hmap_find(&l->ids, hash_str(id), is_id, &id);
    return n ? hmap_entry(n, struct txn, node) : NULL;
}

static void forget(struct txn_loading *l, struct str id)
{
    struct txn *t = find(l, id);
    if (!t)
        return;
    hmap_remove(&l->ids, &t->node);
    txn_unref(t);
}

static int set(struct txn_loading *l, struct str id, struct txn_image *i)
{
    struct txn *t = find(l, id);
    if (!t) {
        t = txn_new(id, l->partition);
        if (!t || hmap_put(&l->ids, &t->node, hash_str(t->id)) != 0) {
            txn_unref(t);
            txn_image_free(i);
            return -ENOMEM;
        }
    }
    txn_install(t, i);
    return 0;
}

static int add_value(struct txn_loading *l, struct str id, const struct record *r)
{
    struct txn_image i;
    if (r->value.len < 0) {
        forget(l, id);
        return 0;
    }
    int rc = txn_value_decode(r->value, &l->scratch, &i);
    if (rc == 0)
        return set(l, id, &i);
    if (rc == -ENOMEM)
        return rc;
    complain(l, r->offset,
             rc == -ENOTSUP ? "a transaction in a version that is not known"
                            : "a transaction that cannot be read");
    return 0;
}

static int add_record(struct txn_loading *l, const struct record *r)
{
    struct str id;
    l->records++;
    int rc = txn_key_decode(r->key, &id);
    if (rc == 0)
        return add_value(l, id, r);
    complain(l, r->offset,
             rc == -ENOTSUP ? "a kind of record that is not known"
                            : "a record without a key that can be read");
    return 0;
}

int txn_loading_add(struct txn_loading *l, const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    if (batch_is_control(b))
        return 0;
    int rc = batch_crc_ok(b) ? record_iter_open(b, &it) : -EBADMSG;
    if (rc == -ENOMEM)
        return rc;
    if (rc) {
        complain(l, b->base_offset, "a batch that cannot be read");
        return 0;
    }
    while ((rc = record_iter_next(it, &r)) == 1) {
        rc = add_record(l, &r);
        arena_reset(&l->scratch);
        if (rc)
            break;
    }
    record_iter_close(it);
    if (rc == -EBADMSG) {
        complain(l, b->base_offset, "the rest of a batch that cannot be read");
        rc = 0;
    }
    return rc;
}

int txn_loading_take(struct txn_loading *l, struct txn ***ids, int *n)
{
    struct txn **v = calloc(l->ids.n + 1, sizeof(struct txn *));
    int at = 0;
    if (!v)
        return -ENOMEM;
    for (struct hnode *node = hmap_first(&l->ids), *next; node; node = next) {
        next = hmap_next(&l->ids, node);
        hmap_remove(&l->ids, node);
        v[at++] = hmap_entry(node, struct txn, node);
    }
    *ids = v;
    *n = at;
    return 0;
}
