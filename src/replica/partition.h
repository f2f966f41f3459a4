/* partition.h - one replica of a partition on this broker: its role, epochs, ISR, and its log.
 *
 * ROLES    none yet -> leader | follower, moved only by LeaderAndIsr (replica_manager_become) and
 * StopReplica. offline: its log dir failed. WAITERS  a request that waits for this partition
 * (acks=all, fetch min bytes) hangs a waiter on it; it is woken when the log end (fetches of
 * followers), the high watermark, or the role changes. THREADS  role and ISR changes take the lock
 * for writing; append, read and watermark updates read it (so that they cannot straddle a change).
 * Waiters are woken after the lock is let go, on the waking thread. */
#ifndef REPLICA_PARTITION_H
#define REPLICA_PARTITION_H

#include "base/list.h"
#include "log/log.h"
#include "protocol/errors.h"

struct partition; /* reference counted */

void partition_unref(struct partition *p);
struct partition *partition_ref(struct partition *p);

struct topic_partition partition_tp(const struct partition *p);
int32_t partition_leader_epoch(const struct partition *p);
int32_t partition_leader_id(const struct partition *p); /* -1 unknown */
bool partition_is_leader(const struct partition *p);
struct uuid partition_topic_id(const struct partition *p);
/* Returns shared (log_unref); NULL when offline or not made yet. */
struct log *partition_log(struct partition *p);

/* Epoch sent by a client against ours: NONE, FENCED_LEADER_EPOCH (older), UNKNOWN_LEADER_EPOCH
 * (newer); -1 = not checked. */
enum kerr partition_check_epoch(const struct partition *p, int32_t current_leader_epoch);

struct partition_append {
    struct append_info info;
    int64_t required_offset; /* acks=all: wait until the high watermark is here; min.insync is
                                checked then */
};
/* Leader only: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS (required_acks -1
 * and too small an ISR), or what the log says. `pr` was made by records_prepare. Advances the high
 * watermark where the ISR allows, wakes waiters. */
enum kerr partition_append(struct partition *p, struct prepared *pr, enum append_origin origin,
                           int16_t required_acks, struct partition_append *out);
/* For acks=all: are the records up to `required_offset` committed? NONE yes; REQUEST_TIMED_OUT not
 * yet; otherwise the error to answer (not leader any more, NOT_ENOUGH_REPLICAS_AFTER_APPEND). */
enum kerr partition_check_committed(struct partition *p, int64_t required_offset);

enum isolation { READ_UNCOMMITTED = 0, READ_COMMITTED = 1 };
struct partition_read {
    struct log_slice slice;
    int64_t high_watermark, last_stable_offset, log_start_offset, log_end_offset;
    int32_t diverging_epoch; /* -1 = none */
    int64_t diverging_end_offset;
    struct aborted_txn *aborted; /* READ_COMMITTED, in the arena */
    int aborted_n;               /* -1 = null list */
};
struct partition_read_args {
    int32_t replica_id; /* -1 consumer */
    int64_t offset;
    int32_t current_leader_epoch, last_fetched_epoch; /* -1 = not given */
    int64_t fetcher_log_start;
    uint32_t max_bytes;
    enum isolation isolation;
    bool min_one, hard_limit;
};
/* On error the positions are filled as far as known (-1 otherwise). */
enum kerr partition_read(struct partition *p, const struct partition_read_args *args,
                         struct arena *a, struct partition_read *out);
/* Bound of a reader: log end (replica), high watermark, or last stable offset. */
int64_t partition_read_bound(struct partition *p, int32_t replica_id, enum isolation isolation);

enum kerr partition_list_offset(struct partition *p, int32_t replica_id, enum isolation isolation,
                                int64_t timestamp, int32_t current_leader_epoch,
                                struct offset_lookup *out);

struct partition_waiter {
    struct list link;
    struct partition *partition; /* a reference while linked */
    /* Something moved. On the thread that moved it, no lock held: post to your own executor and
     * re-check there. May be called after partition_unwait only if that call had begun before: keep
     * the memory until your own posted task ran. */
    void (*wake)(struct partition_waiter *w);
};
void partition_wait(struct partition *p, struct partition_waiter *w);
void partition_unwait(struct partition_waiter *w);

#endif
