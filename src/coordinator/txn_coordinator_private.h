/* txn_coordinator_private.h - the insides of the transaction coordinator: txn_coordinator.c keeps
 * partitions and ids, txn_write.c changes ids, txn_requests.c answers, txn_cleanup.c sees to what
 * nobody asks for any more.
 *
 * THREADS  the coordinator's executor (txn_coordinator.h). */
#ifndef COORDINATOR_TXN_COORDINATOR_PRIVATE_H
#define COORDINATOR_TXN_COORDINATOR_PRIVATE_H

#include "coordinator/txn_coordinator.h"

#define TXN_TAG "TransactionCoordinator"

enum txn_home { TXN_ELSEWHERE, TXN_LOADING, TXN_HERE };

struct txn_partition {
    enum txn_home home;
    int32_t epoch;   /* newest leader epoch heard of; -1 */
    int64_t load_ms; /* when the newest load began; monotonic */
    uint64_t load;   /* the newest load; what was begun before it has come to nothing */
    bool again;      /* it has failed, and may do better later */
    struct list ids;
};

struct txn_coordinator {
    struct txn_coordinator_options o;
    bool active;
    struct hmap ids; /* one reference each */
    struct txn_partition *partitions;
    int loading_n;
    uint64_t loads;
    struct coordinator_loads loaded;
    struct txn_markers *markers;
    struct list again; /* struct txn_write of markers and ends that are tried again */
    struct timer again_timer, abort_timer, expire_timer;
};

struct txn *txn_coordinator_id(const struct txn_coordinator *c, struct str id);
/* Made, with one reference of the map. NULL without memory. */
struct txn *txn_coordinator_add(struct txn_coordinator *c, struct str id, int32_t partition);
void txn_coordinator_remove(struct txn_coordinator *c, struct txn *t);
/* May a call for the id be served here? *partition in any case. */
enum kerr txn_coordinator_admit(const struct txn_coordinator *c, struct str id, int32_t *partition);
/* Is it the partition's present load, and is the id still here? */
bool txn_coordinator_owns(const struct txn_coordinator *c, const struct txn *t, uint64_t load);

/* Loads that failed begin anew. */
void txn_coordinator_load_again(struct txn_coordinator *c);

/* ---- txn_write.c ---- */

/* Writes the image (taken in any case), puts it in place and answers the call; a prepared end then
 * goes on by itself: markers, the last image. The id has nothing pending. */
void txn_write_start(struct txn_coordinator *c, struct txn *t, struct txn_image *to,
                     struct txn_call *call);
/* Aborts its transaction with a raised epoch; the call (may be NULL) gets CONCURRENT_TRANSACTIONS
 * when that is on its way. */
void txn_write_fencing_abort(struct txn_coordinator *c, struct txn *t, struct txn_call *call);
/* It is prepared: sends its markers, then completes it. false without memory. */
bool txn_write_resume(struct txn_coordinator *c, struct txn *t);
/* All markers are written (the markers' callback). */
void txn_write_markers_written(void *coordinator, struct txn *t, uint64_t load);
/* The id is going from here; nothing is sent for it any more. */
void txn_write_give_up(struct txn *t);
/* Nothing is tried again. */
void txn_write_shut_down(struct txn_coordinator *c);
void txn_write_init(struct txn_coordinator *c);

/* ---- txn_requests.c ---- */
void txn_call_finish(struct txn_call *call, enum kerr e);

/* ---- txn_cleanup.c ---- */
void txn_cleanup_init(struct txn_coordinator *c);
void txn_cleanup_start(struct txn_coordinator *c);
void txn_cleanup_stop(struct txn_coordinator *c);

#endif
