/* txn_cleanup.c - what nobody asks for any more: transactions that outlive their timeout are
 * aborted, ids that were not used for long are forgotten. Nor does anybody ask again for a load
 * that failed: it is tried again with the first.
 *
 * Forgetting writes a tombstone for each id, several in a batch; the id is pending until that is
 * written, and stays as it was if it cannot be. */
#include "coordinator/txn_coordinator_private.h"

#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/txn_records.h"

enum {
    BATCH_BYTES = 256 << 10, /* of keys; they must fit whatever the topic allows */
    RECORD_BYTES = 32,       /* about what a record takes beside its key */
    BATCH_TIMEOUT_MS = 30000,
};

static int64_t now_ms(const struct txn_coordinator *c)
{
    return clock_wall_ms(c->o.ex->clock);
}

/* ---- transactions that take too long ---- */

static void abort_overdue(struct txn_coordinator *c)
{
    int64_t now = now_ms(c);
    for (int32_t p = 0; p < c->o.partitions_n; p++)
        list_each_safe (l, &c->partitions[p].ids) {
            struct txn *t = list_entry(l, struct txn, link);
            if (!txn_is_overdue(t, now))
                continue;
            say_info(TXN_TAG, "%.*s: its transaction is aborted after more than %d ms",
                     STR_ARG(t->id), (int)t->now.timeout_ms);
            txn_write_fencing_abort(c, t, NULL);
        }
}

static void abort_due(struct timer *timer)
{
    struct txn_coordinator *c = container_of(timer, struct txn_coordinator, abort_timer);
    txn_coordinator_load_again(c);
    abort_overdue(c);
    executor_timer_start(c->o.ex, timer, c->o.config.abort_interval_ms);
}

/* ---- ids that are not used ---- */

struct expiry { /* one batch */
    struct group_append append;
    struct txn_coordinator *c;
    uint64_t load;
    int n, cap;
    struct txn **ids; /* one reference each */
    struct group_record *records;
    struct buf keys;
};

static void expiry_free(struct expiry *x)
{
    for (int i = 0; i < x->n; i++)
        txn_unref(x->ids[i]);
    buf_free(&x->keys);
    free(x->ids);
    free(x->records);
    free(x);
}

static void forgotten(struct group_append *a)
{
    struct expiry *x = container_of(a, struct expiry, append);
    for (int i = 0; i < x->n; i++) {
        struct txn *t = x->ids[i];
        t->pending = false;
        if (a->error == KERR_NONE && txn_coordinator_owns(x->c, t, x->load))
            txn_coordinator_remove(x->c, t);
    }
    if (a->error != KERR_NONE)
        say_warn(TXN_TAG, "__transaction_state-%d: %d unused ids could not be forgotten: %s",
                 (int)a->partition, x->n, kerr_name((int16_t)a->error));
    expiry_free(x);
}

static struct expiry *expiry_new(struct txn_coordinator *c, int32_t partition, int cap)
{
    struct expiry *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    x->c = c;
    x->load = c->partitions[partition].load;
    x->cap = cap;
    x->ids = calloc((size_t)cap, sizeof(struct txn *));
    x->records = calloc((size_t)cap, sizeof(*x->records));
    x->append = (struct group_append){.partition = partition,
                                      .producer_id = -1,
                                      .producer_epoch = -1,
                                      .timeout_ms = BATCH_TIMEOUT_MS,
                                      .done = forgotten};
    if (x->ids && x->records)
        return x;
    expiry_free(x);
    return NULL;
}

static bool is_full(const struct expiry *x)
{
    return x->n == x->cap || (x->n > 0 && x->keys.len + (size_t)x->n * RECORD_BYTES >= BATCH_BYTES);
}

/* Expired ids of the partition, as many as a batch takes, are pending from now on. */
static void gather(struct expiry *x, int32_t partition)
{
    int64_t now = now_ms(x->c);
    list_each (l, &x->c->partitions[partition].ids) {
        struct txn *t = list_entry(l, struct txn, link);
        if (is_full(x))
            break;
        if (!txn_is_expired(t, now, x->c->o.config.expiration_ms))
            continue;
        x->ids[x->n] = txn_ref(t);
        txn_key_put(&x->keys, t->id);
        x->records[x->n++].key.len = (int32_t)x->keys.len; /* its end, for now */
    }
    int32_t at = 0;
    for (int i = 0; i < x->n; i++) {
        int32_t end = x->records[i].key.len;
        x->records[i].key = (struct bytes){x->keys.p + at, end - at};
        x->records[i].value = BYTES_NULL;
        at = end;
    }
}

static int count_expired(const struct txn_coordinator *c, int32_t partition)
{
    int64_t now = now_ms(c);
    int n = 0;
    list_each (l, &c->partitions[partition].ids)
        n += txn_is_expired(list_entry(l, struct txn, link), now, c->o.config.expiration_ms);
    return n;
}

/* false: no memory, or nothing to do. */
static bool forget_some(struct txn_coordinator *c, int32_t partition, int expired)
{
    struct expiry *x = expired > 0 ? expiry_new(c, partition, expired) : NULL;
    if (!x)
        return false;
    gather(x, partition);
    if (x->keys.failed || x->n == 0) {
        expiry_free(x);
        return false;
    }
    for (int i = 0; i < x->n; i++) {
        x->ids[i]->pending = true;
        x->ids[i]->pending_state = TXN_DEAD;
    }
    c->o.log->ops->append(c->o.log, &x->append, x->records, x->n);
    return true;
}

static void expire_due(struct timer *timer)
{
    struct txn_coordinator *c = container_of(timer, struct txn_coordinator, expire_timer);
    for (int32_t p = 0; p < c->o.partitions_n; p++)
        while (forget_some(c, p, count_expired(c, p))) {
        }
    executor_timer_start(c->o.ex, timer, c->o.config.expire_interval_ms);
}

/* ---- life ---- */

void txn_cleanup_init(struct txn_coordinator *c)
{
    timer_init(&c->abort_timer, abort_due);
    timer_init(&c->expire_timer, expire_due);
}

void txn_cleanup_start(struct txn_coordinator *c)
{
    executor_timer_start(c->o.ex, &c->abort_timer, c->o.config.abort_interval_ms);
    executor_timer_start(c->o.ex, &c->expire_timer, c->o.config.expire_interval_ms);
}

void txn_cleanup_stop(struct txn_coordinator *c)
{
    executor_timer_stop(c->o.ex, &c->abort_timer);
    executor_timer_stop(c->o.ex, &c->expire_timer);
}
