/* txn.h - a producer's transactions: its state, and the requests to the two coordinators.
 *
 *   UNINITIALIZED --init--> INITIALIZING ------> READY --begin--> IN_TRANSACTION
 *         ^                      |               ^   ^             | commit  | abort
 *         +--- not permitted ----+               |   +-- COMMITTING+         |
 *         |                                      +------ ABORTING <----------+
 *         +--- not permitted --------------------------------+   ^
 *                                                            |   | abort
 *   INITIALIZING, IN_TRANSACTION, COMMITTING, ABORTING --> ABORTABLE_ERROR
 *   every state --> FATAL_ERROR
 *
 * FILES     txn.c           the state, the public calls, what other parts of the producer ask
 *           txn_requests.c  which request is due; requests and answers
 *           txn_errors.c    what an error means: the table
 * REQUESTS  One under way at a time. Which one is due is read off the state, so nothing is queued:
 *           InitProducerId while initializing; then partitions, then offsets; EndTxn when all
 *           batches have their outcome; InitProducerId again when an abort ends with a new epoch.
 * GATE      A partition's batches go out when the coordinator has it in the transaction, not
 *           before (pqueue.in_txn).
 * OPEN      EndTxn of a transaction that the coordinator knows nothing of is an error there, so it
 *           is sent only when something was added. While nobody knows whether it was (the answer
 *           to the first request got lost), an abort repeats that request until it is answered.
 * COUNT     Sequence numbers go on over transactions. A batch that has one and was given up leaves
 *           its partition's count unclear: the abort then ends with a new epoch, under which all
 *           partitions count from 0. Coordinators before 2.5 cannot give one: the error is fatal
 *           then.
 * LOCK      the producer's, but for what is marked. */
#ifndef CLIENT_TXN_H
#define CLIENT_TXN_H

#include "client/coordinator.h"
#include "client/group_metadata.h"
#include "client/producer_private.h"

enum txn_state {
    TXN_UNINITIALIZED,
    TXN_INITIALIZING,
    TXN_READY,
    TXN_IN_TRANSACTION,
    TXN_COMMITTING,
    TXN_ABORTING,
    TXN_ABORTABLE_ERROR,
    TXN_FATAL_ERROR,
    TXN_STATES
};

#define BIT(i) (1u << (i))

enum txn_request {
    TXN_NOTHING,
    TXN_INIT_ID,
    TXN_ADD_PARTITIONS,
    TXN_ADD_OFFSETS,
    TXN_COMMIT_OFFSETS,
    TXN_END,
    TXN_REQUESTS
};

/* What to do about an error. */
enum txn_verdict {
    VERDICT_RETRY,     /* the same again, after a backoff */
    VERDICT_FIND,      /* the same of another coordinator */
    VERDICT_ABORTABLE, /* the transaction can only be aborted */
    VERDICT_BUMP,      /* the same, with a new epoch; fatal where there is none */
    VERDICT_REFUSED,   /* not permitted: init_transactions may be called again */
    VERDICT_FENCED,    /* another producer has this transactional id now */
    VERDICT_FATAL,
};

enum txn_op { TXN_OP_NONE, TXN_OP_INIT, TXN_OP_COMMIT, TXN_OP_ABORT };

/* Offsets to be committed with the transaction. */
struct txn_offsets {
    int refs;                  /* the caller's, and the transaction's */
    kafka_offset_list_t *list; /* err KAFKA_OK: the group's coordinator has it */
    kafka_group_metadata_t *group;
    bool added; /* the transaction's coordinator knows of the group */
    bool done;
    kafka_err_t err;
    char why[600];
};

struct txn {
    kafka_producer_t *p;
    const char *id; /* conf's */
    int32_t timeout_ms;
    pthread_cond_t changed; /* op or offsets have an outcome */

    enum txn_state state;
    kafka_err_t err; /* of the two error states */
    char why[600];
    bool can_bump;                    /* the coordinator gives new epochs */
    bool bump;                        /* the abort ends with one */
    bool open;                        /* the coordinator has something of this transaction */
    unsigned unclear;                 /* it may have: BIT(request) whose answer was lost */
    bool skip_end;                    /* it has lost the producer's id: no EndTxn */
    struct list wanted, asked, added; /* pqueue.txn_link: partitions of this transaction */
    struct txn_offsets *offsets;      /* under way; one reference. NULL: none */

    /* init, commit or abort, until its caller has the outcome */
    enum txn_op op;
    bool op_done;
    int op_waiters;
    kafka_err_t op_err;
    char op_why[600];

    /* background thread */
    struct coordinator coordinator, group;
    char refused_topic[256]; /* the last that may not be written, for lines about it */
    char *group_id;          /* `group` is for this one; NULL: none yet */
    enum txn_request asking;
    struct node *asked_node;
    int attempts;
    int64_t retry_at_ms;
};

/* ---- txn.c ---- */

/* With transactional.id. NULL without memory. The cluster may come later: see txn_start. */
struct txn *txn_new(kafka_producer_t *p, const char *id, int32_t timeout_ms);
/* Once there is a cluster. */
void txn_start(struct txn *t);
/* No more requests. @thread background, lock not held */
void txn_stop(struct txn *t);
void txn_free(struct txn *t); /* NULL is fine */
/* For close: ends a transaction that is open, at most until then. Takes the lock. @blocks */
void txn_close(struct txn *t, int64_t deadline_ms);

/* May a record be taken? Lock held, as in all that follow. */
kafka_err_t txn_check_send(const struct txn *t);
/* A record for the partition was taken. */
void txn_add_partition(struct txn *t, struct pqueue *q);
/* Are batches to go without waiting for more? */
bool txn_hurries(const struct txn *t);
/* Is the transaction to be aborted, so that nothing is sent (again)? *why: what its batches end
 * with. */
bool txn_is_lost(const struct txn *t, kafka_err_t *why);
/* Of a lost one: is the batch failed instead of sent (again)? */
bool txn_gives_up(const struct txn *t, const struct pbatch *b);
/* A batch has failed for good. `unclear`: it may have been written. */
void txn_batch_failed(struct txn *t, struct pbatch *b, kafka_err_t err, bool unclear);
/* A numbered batch was given up. */
void txn_lost_count(struct txn *t);

/* The only writer of `state`. */
void txn_set_state(struct txn *t, enum txn_state to);
const char *txn_state_name(enum txn_state state);
/* Errors of the whole; the first one counts. */
void txn_abortable(struct txn *t, kafka_err_t err, const char *why);
void txn_fatal(struct txn *t, kafka_err_t err, const char *why);
/* The same for `err`, by which brokers say of `what` that our epoch is an old one. */
void txn_fenced(struct txn *t, kafka_err_t err, const char *what);
/* The call under way, if any, has its outcome. why: NULL without an error. */
void txn_finish_op(struct txn *t, kafka_err_t err, const char *why);
void txn_finish_offsets(struct txn *t, kafka_err_t err, const char *why);
/* Committed or aborted, so far as it could be: READY, or UNINITIALIZED with the call's error. */
void txn_complete(struct txn *t, enum txn_state to, kafka_err_t err, const char *why);

/* ---- txn_requests.c; background thread, lock not held ---- */
/* Sends what is due; *wait_ms shrinks to when to look again. */
void txn_run(struct txn *t, int64_t *wait_ms);

/* ---- txn_errors.c ---- */
enum txn_verdict txn_judge(enum txn_request r, kafka_err_t err);
/* Of a batch in a transaction, which is not sent again: FENCED, FATAL or ABORTABLE. */
enum txn_verdict txn_judge_batch(kafka_err_t err);

#endif
