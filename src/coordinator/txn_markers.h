/* txn_markers.h - telling the partitions of a transaction how it ended: WriteTxnMarkers to their
 * leaders, until all have it.
 *
 * WHERE    the leader that the metadata cache names; a partition that the cluster has not had for
 *          30 s is left out; one without a leader that can be reached waits. This broker is asked
 *          over its own listener like any other.
 * ORDER    one request at a time to a broker; what comes meanwhile goes with the next. What failed
 *          goes again, to whoever leads then, after a pause or news of the cluster.
 * FENCED   a leader that knows of a newer coordinator or epoch ends the sending for good, without a
 *          word: another coordinator sees to it.
 * THREADS  the executor's. */
#ifndef COORDINATOR_TXN_MARKERS_H
#define COORDINATOR_TXN_MARKERS_H

#include "base/executor.h"
#include "coordinator/txn.h"
#include "metadata/metadata_cache.h"
#include "net/remote.h"

struct txn_markers;

struct txn_markers_options {
    struct executor *ex;
    struct metadata_cache *metadata;
    struct str listener; /* where brokers are reached; static text */
    struct remote_opener opener;
    const char *client_id; /* copied */
    int64_t timeout_ms;    /* for each answer */
    /* All partitions have the marker. From none of the calls below but look_again. */
    void (*written)(void *arg, struct txn *t, uint64_t token);
    void *arg;
};

/* NULL without memory. */
struct txn_markers *txn_markers_new(const struct txn_markers_options *o);
/* The id is in PrepareCommit or PrepareAbort, with partitions, and stays so until `written`, which
 * comes later. `token` is the caller's. 0 or -ENOMEM. */
int txn_markers_send(struct txn_markers *m, struct txn *t, uint64_t token,
                     int32_t coordinator_epoch);
/* Ids of this partition of __transaction_state are somebody else's: nothing more is sent for them.
 */
enum { TXN_MARKERS_ALL = -1 }; /* partitions */
void txn_markers_drop(struct txn_markers *m, int32_t partition);
/* Leaders may have changed. */
void txn_markers_look_again(struct txn_markers *m);
/* Markers that have not been acknowledged. */
int txn_markers_waiting(const struct txn_markers *m);
/* Of these, those that are for no broker (yet). */
int txn_markers_homeless(const struct txn_markers *m);
/* Drops all and closes the connections. */
void txn_markers_stop(struct txn_markers *m);
void txn_markers_free(struct txn_markers *m); /* stopped; NULL is fine */

#endif
