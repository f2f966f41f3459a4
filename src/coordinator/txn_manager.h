/* txn_manager.h - the transaction coordinator of a broker: on an executor of its own, with the
 * partitions of __transaction_state as this broker wins and loses them, and loads on workers.
 *
 * THREADS  any may submit; news of partitions come from the threads that apply control requests and
 *          are handed on, for one partition in order.
 * LIFE     new -> (requests, news) -> shut_down -> free. */
#ifndef COORDINATOR_TXN_MANAGER_H
#define COORDINATOR_TXN_MANAGER_H

#include "base/workers.h"
#include "coordinator/txn_coordinator.h"
#include "coordinator/txn_verifier.h"
#include "replica/replica_manager.h"

struct txn_manager;

struct txn_manager_options {
    struct executor *ex; /* outlives the manager's shut down */
    struct replica_manager *replicas;
    struct workers *workers;
    const struct clock *clock;
    struct metadata_cache *metadata;
    struct txn_config config;
    int32_t partitions_n;        /* of __transaction_state */
    size_t load_buffer_size;     /* transaction.state.log.load.buffer.size */
    int loads_at_once;           /* partitions that are loaded at the same time; >= 1 */
    struct str listener;         /* where markers are sent; static text */
    struct remote_opener opener; /* on ex */
    const char *client_id;       /* copied */
    int64_t request_timeout_ms;  /* for markers */
    /* 0 and a fresh producer id, or -EAGAIN: none now. @thread ex's */
    int (*producer_id)(void *arg, int64_t *id);
    void *arg;
};

/* Listens to the replica manager from now on, so before its first control request; it must be freed
 * after the replica manager. 0 or -ENOMEM. */
int txn_manager_new(const struct txn_manager_options *o, struct txn_manager **out);
int32_t txn_manager_partitions(const struct txn_manager *m);

/* Hands the call to the coordinator; `done` comes on its thread, perhaps before this returns. */
void txn_manager_submit(struct txn_manager *m, struct txn_call *c);

/* Asks the coordinator of a transaction, wherever it is. @thread any */
void txn_manager_ask(struct txn_manager *m, struct txn_question *q);

/* @blocks until the coordinator has looked; before the shut down; @thread any but its own */
void txn_manager_count(struct txn_manager *m, struct txn_counts *out);
/* @thread any, until it is freed */
const struct txn_verifier_counts *txn_manager_verifier_counts(const struct txn_manager *m);

/* Ends what waits; from now on calls are answered with COORDINATOR_NOT_AVAILABLE. It is down when
 * no write and no load is under way any more. Once. */
void txn_manager_begin_shut_down(struct txn_manager *m);
bool txn_manager_is_down(struct txn_manager *m);
/* Both, and waits. @blocks; the workers must still run */
void txn_manager_shut_down(struct txn_manager *m);
/* After the shut down, and after the executor has run what was posted to it. NULL is fine. */
void txn_manager_free(struct txn_manager *m);

#endif
