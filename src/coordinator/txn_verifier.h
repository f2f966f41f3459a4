/* txn_verifier.h - asking the coordinators of transactions whether partitions are in them, before
 * anything is written there (KIP-890): AddPartitionsToTxn with VerifyOnly.
 *
 * ORDER    one request at a time to a broker; what is asked meanwhile goes with the next. Of two
 *          questions for one id that wait, the older one is given up: its producer has come again.
 * THREADS  any may ask; the rest, and `done`, on the executor. */
#ifndef COORDINATOR_TXN_VERIFIER_H
#define COORDINATOR_TXN_VERIFIER_H

#include "base/metrics.h"
#include "coordinator/txn_call.h"
#include "metadata/metadata_cache.h"
#include "net/remote.h"

struct txn_verifier;

struct txn_verifier_options {
    struct executor *ex;
    struct metadata_cache *metadata;
    int32_t partitions_n; /* of __transaction_state */
    struct str listener;  /* static text */
    struct remote_opener opener;
    const char *client_id; /* copied */
    int64_t timeout_ms;    /* for each answer */
};

struct txn_question { /* the asker's memory until `done` */
    struct str id;
    int64_t producer_id;
    int16_t epoch;
    /* Those asked about; their `error` is the answer:
     *   NONE                          it is in, or the coordinator is too old to be asked
     *   TRANSACTION_ABORTABLE         it is not
     *   COORDINATOR_NOT_AVAILABLE     nobody is known to lead its partition
     *   NETWORK_EXCEPTION             no answer
     *   INVALID_PRODUCER_EPOCH        the producer is fenced
     *   others                        as the coordinator says */
    struct txn_call_partition *partitions;
    int n;
    void (*done)(struct txn_question *q);
    /* private */
    struct task task;
    struct list link;
    struct txn_verifier *verifier;
    int64_t asked_ns; /* monotonic */
};

struct txn_verifier_counts {
    metric failed;            /* questions with a partition that may not be written to */
    struct histogram took_us; /* questions */
};
/* @thread any */
const struct txn_verifier_counts *txn_verifier_counts(const struct txn_verifier *v);

/* NULL without memory. */
struct txn_verifier *txn_verifier_new(const struct txn_verifier_options *o);
void txn_verifier_ask(struct txn_verifier *v, struct txn_question *q);
/* Ends what waits, and whatever comes later, with COORDINATOR_NOT_AVAILABLE. */
void txn_verifier_stop(struct txn_verifier *v);
/* After that, and after the executor has run what was posted. NULL is fine. */
void txn_verifier_free(struct txn_verifier *v);

#endif
