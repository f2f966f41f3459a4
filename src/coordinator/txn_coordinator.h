/* txn_coordinator.h - the transactional ids of the partitions of __transaction_state that this
 * broker leads.
 *
 * A partition is elsewhere, is being loaded, or is here; an id that is not here is refused
 * (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS). Nothing is answered before it is in the log and
 * its replicas have it. What is prepared is brought to its end by whoever leads the partition:
 * after a load the markers are sent again.
 *
 *   elsewhere --elected--> loading --loaded--> here
 *   loading, here --failed, resigned--> elsewhere
 *
 * THREADS  the executor's. */
#ifndef COORDINATOR_TXN_COORDINATOR_H
#define COORDINATOR_TXN_COORDINATOR_H

#include "coordinator/coordinator_loads.h"
#include "coordinator/group_log.h"
#include "coordinator/txn.h"
#include "coordinator/txn_call.h"
#include "coordinator/txn_markers.h"

struct txn_coordinator;

struct txn_config {
    int32_t max_timeout_ms;     /* transaction.max.timeout.ms */
    int64_t expiration_ms;      /* transactional.id.expiration.ms */
    int64_t abort_interval_ms;  /* transaction.abort.timed.out.transaction.cleanup.interval.ms */
    int64_t expire_interval_ms; /* transaction.remove.expired.transaction.cleanup.interval.ms */
};

struct txn_coordinator_options {
    struct executor *ex;
    struct group_log *log;
    int32_t partitions_n; /* of __transaction_state */
    struct txn_config config;
    struct txn_markers_options markers; /* `written` and `arg` are the coordinator's */
    /* 0 and a fresh producer id, or -EAGAIN: none now. */
    int (*producer_id)(void *arg, int64_t *id);
    /* Have the partition read: txn_coordinator_loaded with this number follows, later, unless a
     * newer load of the same partition is asked for before. */
    void (*load)(void *arg, int32_t partition, int32_t leader_epoch, uint64_t number);
    void *arg;
};

/* For metrics. */
struct txn_counts {
    int64_t ids;
    int64_t homeless_markers; /* whose partition has no leader that is known */
    int64_t writes_again;     /* to its log, that are to be tried again */
    struct coordinator_loads loads;
};
/* @thread the executor's */
void txn_coordinator_look(const struct txn_coordinator *c, struct txn_counts *out);

/* 0 or -ENOMEM. Nothing is timed out before txn_coordinator_start. */
int txn_coordinator_new(const struct txn_coordinator_options *o, struct txn_coordinator **out);
void txn_coordinator_start(struct txn_coordinator *c);
/* From now on calls are answered with COORDINATOR_NOT_AVAILABLE, and no marker is sent. */
void txn_coordinator_shut_down(struct txn_coordinator *c);
/* Shut down, with no write under way; after that the executor is not needed. NULL is fine. */
void txn_coordinator_free(struct txn_coordinator *c);

void txn_coordinator_elected(struct txn_coordinator *c, int32_t partition, int32_t leader_epoch);
/* leader_epoch -1: whatever was seen before. */
void txn_coordinator_resigned(struct txn_coordinator *c, int32_t partition, int32_t leader_epoch);
/* Takes the ids' references (not the array). error: it failed, none. */
void txn_coordinator_loaded(struct txn_coordinator *c, int32_t partition, uint64_t number,
                            struct txn **ids, int n, int error);
/* The cluster's metadata have changed. */
void txn_coordinator_metadata_changed(struct txn_coordinator *c);

void txn_coordinator_handle(struct txn_coordinator *c, struct txn_call *call);

/* For tests and figures. NULL when there is none; borrowed. */
const struct txn *txn_coordinator_find(const struct txn_coordinator *c, struct str id);
size_t txn_coordinator_count(const struct txn_coordinator *c);
int txn_coordinator_markers_waiting(const struct txn_coordinator *c);

#endif
