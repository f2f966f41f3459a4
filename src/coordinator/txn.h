/* txn.h - one transactional id: what is known of it, and which requests it admits.
 *
 *   Empty ----add----> Ongoing --end--> PrepareCommit / PrepareAbort --all markers are written-->
 *     ^                  |  ^                                        CompleteCommit / CompleteAbort
 *     |                  +--+ add                                                |          |
 *     +---init (another epoch), from Empty and both Complete----------------------+   add ->
 * Ongoing
 *
 * CHANGE   in three steps: check, and note what is pending; write the new image into the log; put
 *          it in place once its replicas have it. While something is pending, everybody else is
 *          told CONCURRENT_TRANSACTIONS.
 * FENCING  whoever comes with an older epoch than the id has is not its producer any more. A broker
 *          that aborts a transaction itself raises the epoch first.
 *
 * Decisions only: no log, no clock, no thread. */
#ifndef COORDINATOR_TXN_H
#define COORDINATOR_TXN_H

#include "base/hmap.h"
#include "coordinator/txn_partitions.h"
#include "protocol/errors.h"

enum txn_state {
    TXN_EMPTY,
    TXN_ONGOING,
    TXN_PREPARE_COMMIT,
    TXN_PREPARE_ABORT,
    TXN_COMPLETE_COMMIT,
    TXN_COMPLETE_ABORT,
    TXN_DEAD,                /* pending only: it is being forgotten */
    TXN_PREPARE_EPOCH_FENCE, /* known by name; here it is one step with PrepareAbort */
    TXN_STATES
};
const char *txn_state_name(enum txn_state s);
/* -1: no such name. */
int txn_state_find(struct str name);

enum {
    TXN_NO_EPOCH = -1,
    TXN_LAST_EPOCH = INT16_MAX - 1, /* the last that a producer gets; one more is for fencing */
};
#define TXN_NO_PRODUCER (-1)

/* What the log says of an id, but that last_* are only in memory. */
struct txn_image {
    int64_t producer_id;
    int64_t last_producer_id; /* which it had before the epochs of that one were used up; -1 */
    int16_t epoch;            /* -1: none was given out yet */
    int16_t last_epoch;       /* before the last bump that a producer asked for; -1 */
    int32_t timeout_ms;
    enum txn_state state;
    struct txn_partitions partitions;
    int64_t start_ms; /* of the transaction, wall; -1: there was none */
    int64_t updated_ms;
};

struct txn {
    struct hnode node; /* by id */
    struct list link;  /* of its partition; unlinked: not coordinated here any more */
    int refs;
    int32_t partition; /* of __transaction_state */
    struct txn_image now;
    bool pending; /* a change is under way */
    enum txn_state pending_state;
    bool fence_failed;        /* the raised epoch is in memory, but could not be written */
    struct txn_write *ending; /* txn_write.c's, while its markers are written */
    struct str id;            /* behind this */
};

/* One reference, the caller's; not linked. NULL without memory. */
struct txn *txn_new(struct str id, int32_t partition);
struct txn *txn_ref(struct txn *t);
void txn_unref(struct txn *t); /* NULL is fine */
void txn_image_free(struct txn_image *i);

/* Nothing to be done but wait, or be used anew. */
static inline bool txn_is_idle(const struct txn *t)
{
    return t->now.state == TXN_EMPTY || t->now.state == TXN_COMPLETE_COMMIT ||
           t->now.state == TXN_COMPLETE_ABORT;
}

/* ---- InitProducerId ---- */

enum txn_init_step {
    TXN_INIT_BUMP,   /* the next epoch */
    TXN_INIT_ROTATE, /* the epochs are used up: another producer id */
    TXN_INIT_REPEAT, /* it was asked before: the answer of then, nothing is written */
    TXN_INIT_ABORT,  /* its transaction is aborted first, with a raised epoch */
};
/* producer_id, epoch: which the producer says it has; -1, -1 when it says nothing. */
enum kerr txn_check_init(const struct txn *t, int64_t producer_id, int16_t epoch,
                         enum txn_init_step *step);
/* The image that BUMP and ROTATE (with new_id) write. */
void txn_init_image(const struct txn *t, enum txn_init_step step, int64_t new_id, int16_t epoch,
                    int32_t timeout_ms, int64_t now_ms, struct txn_image *out);

/* ---- AddPartitionsToTxn, AddOffsetsToTxn ---- */

/* Is it this producer, with nothing else under way? */
enum kerr txn_check_add(const struct txn *t, int64_t producer_id, int16_t epoch);
/* May a partition be asked about? */
enum kerr txn_check_verify(const struct txn *t, int64_t producer_id, int16_t epoch);
/* Without `more`'s partitions, which the caller adds. 0 or -ENOMEM. */
int txn_add_image(const struct txn *t, int64_t now_ms, struct txn_image *out);

/* ---- the end ---- */

/* *write: there is something to do; else NONE says that it is done already. */
enum kerr txn_check_end(const struct txn *t, int64_t producer_id, int16_t epoch, bool commit,
                        bool *write);
/* Has it gone on for longer than its timeout, and may it be aborted now? */
bool txn_is_overdue(const struct txn *t, int64_t now_ms);
/* May it be forgotten? */
bool txn_is_expired(const struct txn *t, int64_t now_ms, int64_t expiration_ms);
/* Raises the epoch in memory, before an abort that the producer did not ask for. */
void txn_fence(struct txn *t);
/* PrepareCommit or PrepareAbort, with the partitions. 0 or -ENOMEM. */
int txn_end_image(const struct txn *t, bool commit, int64_t now_ms, struct txn_image *out);
/* CompleteCommit or CompleteAbort, after that. */
void txn_complete_image(const struct txn *t, int64_t now_ms, struct txn_image *out);

/* The image is in the log: it is what holds from now on. Takes its partitions. */
void txn_install(struct txn *t, struct txn_image *i);

#endif
