/* txn_guards.c - see txn_guards.h. */
#include "log/txn_guards.h"

#include <stdlib.h>

struct guard {
    struct hnode node;
    int64_t producer_id;
    int64_t made_ms;
    uint64_t token;
    int32_t sequence; /* the least; -1: none */
    int16_t epoch;
};

void txn_guards_init(struct txn_guards *g)
{
    hmap_init(&g->by_producer);
    g->next = TXN_GUARD_FIRST;
}

void txn_guards_free(struct txn_guards *g)
{
    uint64_t next = g->next;
    for (struct hnode *n = hmap_first(&g->by_producer), *after; n; n = after) {
        after = hmap_next(&g->by_producer, n);
        free(hmap_entry(n, struct guard, node));
    }
    hmap_free(&g->by_producer);
    txn_guards_init(g);
    g->next = next; /* never twice */
}

static bool is_producer(const struct hnode *n, const void *key)
{
    return hmap_entry(n, struct guard, node)->producer_id == *(const int64_t *)key;
}

static struct guard *find(const struct txn_guards *g, int64_t producer_id)
{
    struct hnode *n = g->by_producer.n ? hmap_find(&g->by_producer, hash_int((uint64_t)producer_id),
                                                   is_producer, &producer_id)
                                       : NULL;
    return n ? hmap_entry(n, struct guard, node) : NULL;
}

static struct guard *make(struct txn_guards *g, int64_t producer_id, int16_t epoch,
                          int32_t sequence, int64_t now_ms)
{
    struct guard *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    *x = (struct guard){.producer_id = producer_id,
                        .made_ms = now_ms,
                        .token = g->next,
                        .sequence = sequence,
                        .epoch = epoch};
    if (hmap_put(&g->by_producer, &x->node, hash_int((uint64_t)producer_id)) != 0) {
        free(x);
        return NULL;
    }
    g->next++;
    return x;
}

uint64_t txn_guards_begin(struct txn_guards *g, int64_t producer_id, int16_t epoch,
                          int32_t sequence, int64_t now_ms)
{
    struct guard *x = find(g, producer_id);
    if (!x)
        x = make(g, producer_id, epoch, sequence, now_ms);
    if (!x)
        return 0;
    if (epoch > x->epoch) {
        x->epoch = epoch;
        x->sequence = sequence;
    } else if (epoch == x->epoch && sequence < x->sequence) {
        x->sequence = sequence;
    }
    return x->token;
}

enum kerr txn_guards_check(const struct txn_guards *g, int64_t producer_id, int32_t sequence,
                           uint64_t token, const char **why)
{
    const struct guard *x = find(g, producer_id);
    if (!x || x->token != token) {
        *why = "the transaction's coordinator has not been asked about this partition, or what it "
               "said is out of date";
        return KERR_INVALID_TXN_STATE;
    }
    if (sequence >= 0 && x->sequence >= 0 && sequence > x->sequence) {
        *why = "a batch with a lower sequence comes first";
        return KERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    }
    return KERR_NONE;
}

void txn_guards_end(struct txn_guards *g, int64_t producer_id)
{
    struct guard *x = find(g, producer_id);
    if (!x)
        return;
    hmap_remove(&g->by_producer, &x->node);
    free(x);
}

void txn_guards_expire(struct txn_guards *g, int64_t now_ms, int64_t expiration_ms)
{
    for (struct hnode *n = hmap_first(&g->by_producer), *after; n; n = after) {
        struct guard *x = hmap_entry(n, struct guard, node);
        after = hmap_next(&g->by_producer, n);
        if (now_ms - x->made_ms < expiration_ms)
            continue;
        hmap_remove(&g->by_producer, n);
        free(x);
    }
}
