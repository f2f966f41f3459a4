/* txn_call.h - one request at the transaction coordinator.
 *
 * MEMORY   all of it is the caller's until `done`.
 * THREADS  between submission and `done` it belongs to the coordinator's thread. */
#ifndef COORDINATOR_TXN_CALL_H
#define COORDINATOR_TXN_CALL_H

#include "base/arena.h"
#include "base/executor.h"
#include "protocol/errors.h"

enum txn_api {
    TXN_CALL_INIT,     /* InitProducerId */
    TXN_CALL_ADD,      /* AddPartitionsToTxn, AddOffsetsToTxn */
    TXN_CALL_VERIFY,   /* the question of a partition's leader */
    TXN_CALL_END,      /* EndTxn */
    TXN_CALL_LIST,     /* ListTransactions */
    TXN_CALL_DESCRIBE, /* DescribeTransactions */
    TXN_CALLS
};

struct txn_call_partition {
    struct str topic;
    int32_t partition;
    enum kerr error; /* VERIFY's answer for it, when the call's is NONE */
};

struct txn_call {
    enum txn_api api;
    struct str id;
    int64_t producer_id; /* INIT: -1 when the producer names none; and its answer */
    int16_t epoch;       /* the same */
    int32_t timeout_ms;  /* INIT */
    bool commit;         /* END */
    struct txn_call_partition *partitions; /* ADD, VERIFY */
    int partitions_n;
    /* LIST, DESCRIBE: the generated request and response (initialised), and where the answer's
     * parts come from. DESCRIBE passes over ids that carry an error already. */
    const void *in;
    void *out;
    struct arena *arena;
    bool no_memory; /* the response must not be used */

    enum kerr error;
    /* Exactly once, on the coordinator's thread. */
    void (*done)(struct txn_call *c);
    void *owner; /* the caller's */

    /* private to the coordinator */
    struct task task;
    void *coordinator;
};

#endif
