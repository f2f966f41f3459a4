/* txn_guards.h - who may open a transaction in a log: a producer whose coordinator has been asked
 * (KIP-890). Without the question, a batch that was on its way for long could open one that nobody
 * ever ends.
 *
 * An entry is made before the coordinator is asked; its token must still be the entry's when the
 * batch is appended. Any marker of the producer, and the first batch of a transaction, end the
 * entry: an answer that was given before counts no more.
 *
 * THREADS  one at a time (the log's mutex). Memory is taken only once there is an entry. */
#ifndef LOG_TXN_GUARDS_H
#define LOG_TXN_GUARDS_H

#include "base/hmap.h"
#include "protocol/errors.h"

/* What an append has: struct prepared's txn_guard. */
enum {
    TXN_GUARD_OFF = 0,  /* nobody asks here: a transaction may open */
    TXN_GUARD_NONE = 1, /* nobody was asked: none may */
    TXN_GUARD_FIRST = 2 /* tokens, from here on */
};

struct txn_guards {
    struct hmap by_producer;
    uint64_t next; /* token */
};

void txn_guards_init(struct txn_guards *g);
void txn_guards_free(struct txn_guards *g); /* empty, ready for use again */

/* The producer's token, its entry made when missing; 0 without memory. sequence: of its first
 * batch, of which the least is kept; -1: of a coordinator, not looked at. */
uint64_t txn_guards_begin(struct txn_guards *g, int64_t producer_id, int16_t epoch,
                          int32_t sequence, int64_t now_ms);
/* May a batch open a transaction with this token? INVALID_TXN_STATE, or
 * OUT_OF_ORDER_SEQUENCE_NUMBER when the producer has an earlier batch on its way; sequence -1: not
 * looked at. */
enum kerr txn_guards_check(const struct txn_guards *g, int64_t producer_id, int32_t sequence,
                           uint64_t token, const char **why);
void txn_guards_end(struct txn_guards *g, int64_t producer_id);
/* Forgets what was made that long ago. */
void txn_guards_expire(struct txn_guards *g, int64_t now_ms, int64_t expiration_ms);

#endif
