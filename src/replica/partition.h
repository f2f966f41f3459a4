/* partition.h - one replica of a partition on this broker: its role, epochs, ISR, and its log.
 *
 * ROLES    none yet -> leader | follower, moved only by LeaderAndIsr (replica_manager_become) and
 *          StopReplica. offline: its log dir failed. gone: deleted here, kept alive by those who
 *          still hold it.
 *
 * WAITERS  a request that waits for this partition (acks=all, fetch min bytes) hangs a waiter on it
 *          (mostly through pending.h); it is woken when the log end, the high watermark, or the
 *          role changes.
 *
 * THREADS  role and ISR changes take the lock for writing; append, read and watermark updates read
 *          it (so that they cannot straddle a change). Waiters are woken after the lock is let go,
 *          on the thread that moved something. Lock order: partition lock, marks (follower states,
 *          high watermark), the log's own; the list of waiters has a lock of its own that is taken
 *          alone. */
#ifndef REPLICA_PARTITION_H
#define REPLICA_PARTITION_H

#include "base/executor.h"
#include "base/list.h"
#include "base/workers.h"
#include "log/log.h"
#include "protocol/errors.h"

struct partition; /* reference counted */
struct topic_counts;

void partition_unref(struct partition *p);
struct partition *partition_ref(struct partition *p);

struct topic_partition partition_tp(const struct partition *p);
int32_t partition_leader_epoch(const struct partition *p);
int32_t partition_leader_id(const struct partition *p); /* -1 unknown */
bool partition_is_leader(const struct partition *p);
struct uuid partition_topic_id(const struct partition *p);
/* Returns shared (log_unref); NULL when offline or not made yet. */
struct log *partition_log(struct partition *p);

/* NULL: nobody counts. Borrowed from the partition. */
struct topic_counts *partition_counts(const struct partition *p);

/* What an operator asks. */
struct partition_facts {
    bool offline, leads, has_log;
    bool moving; /* leads, and is being reassigned */
    bool follows;
    int32_t leader;
    int64_t lag; /* followers: records behind the leader; -1: not known */
    /* with a log */
    int64_t size, log_start, log_end;
    int segments;
    struct log_producer_counts producers;
    /* of a leader, else 0 */
    int32_t isr_n, replicas_n;
    bool under_replicated, under_min_isr, at_min_isr;
    int64_t stable_lag; /* high watermark - last stable offset */
};
void partition_facts(struct partition *p, struct partition_facts *f);
/* Does a reassignment bring the replica of this partition to that broker? Of its leader. */
bool partition_adds_replica(struct partition *p, int32_t broker);

/* Epoch sent by a client against ours: NONE, FENCED_LEADER_EPOCH (older), UNKNOWN_LEADER_EPOCH
 * (newer); -1 = not checked. */
enum kerr partition_check_epoch(const struct partition *p, int32_t current_leader_epoch);

struct partition_append {
    struct append_info info;
    int64_t required_offset; /* acks=all: wait until the high watermark is here; min.insync is
                                checked then */
    uint32_t term;           /* of this leader, for partition_check_committed */
};
/* Would partition_append go as far as the log? Leader only: NOT_LEADER_OR_FOLLOWER,
 * KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS (required_acks -1 and too small an ISR). Asked before
 * the work of records_prepare. */
enum kerr partition_check_append(struct partition *p, int16_t required_acks);
/* The same errors, or what the log says. `pr` was made by records_prepare. Advances the high
 * watermark where the ISR allows, wakes waiters. On error out->info.log_start_offset is filled in
 * where the partition has a log; the other positions are -1. */
enum kerr partition_append(struct partition *p, struct prepared *pr, enum append_origin origin,
                           int16_t required_acks, struct partition_append *out);
/* For acks=all: are the records up to `required_offset`, appended in `term`, committed? NONE yes;
 * REQUEST_TIMED_OUT not yet; otherwise the error to answer (not leader any more,
 * NOT_ENOUGH_REPLICAS_AFTER_APPEND). A term is the time from becoming leader to the next other
 * role, however many epochs that spans: who asks late, when this broker follows and leads again,
 * must not take the records that are at those offsets now for his. */
enum kerr partition_check_committed(struct partition *p, int64_t required_offset, uint32_t term);
/* For who reads the log up to `offset` in `term`: will the next leader have it, unless it is
 * elected uncleanly? So when the high watermark has passed it, and also when the whole ISR has it
 * while the high watermark stands still, the ISR being too small for acks=all. The errors are those
 * of partition_check_committed, but for NOT_ENOUGH_REPLICAS_AFTER_APPEND. */
enum kerr partition_check_held(struct partition *p, int64_t offset, uint32_t term);

/* The term that this leader is in. */
uint32_t partition_term(struct partition *p);

enum isolation { READ_UNCOMMITTED = 0, READ_COMMITTED = 1 };
struct partition_read {
    struct log_slice slice;
    int64_t high_watermark, last_stable_offset, log_start_offset;
    int64_t log_end_offset;  /* for a replica: the end of what it may have */
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
    bool leader_only; /* followers, and consumers that cannot be sent to a follower (Fetch < v11) */
    bool reread;      /* from the purgatory: not a new fetch of the follower */
    bool now;         /* without waiting for the disk: else the slice is empty and `cold` */
};
/* Epoch checks, role, divergence, then the read. A follower's fetch updates what the leader knows
 * of it. On error, and when the fetcher's log diverges, there is no slice; on error all positions
 * are -1. Without an arena aborted transactions are not looked up. */
enum kerr partition_read(struct partition *p, const struct partition_read_args *args,
                         struct arena *a, struct partition_read *out);
/* What partition_read would answer, without reading: the error (offsets out of range excepted), or
 * *bound = end of what the reader may see (log end for replicas, high watermark, last stable
 * offset) and whether its log diverges. For waiting fetches. */
enum kerr partition_probe(struct partition *p, const struct partition_read_args *args,
                          int64_t *bound, bool *diverges);

/* Does this leader count the broker among its committed ISR? */
bool partition_in_sync(struct partition *p, int32_t broker);
/* The replica other than this leader that a consumer in the rack should read this offset from: in
 * sync, with that offset, in that rack, with an endpoint on the listener. -1: stay here. */
int32_t partition_nearest_replica(struct partition *p, int64_t offset, struct str rack,
                                  struct str listener);

/* ListOffsets. replica_id: -1 consumer, >= 0 replica, -2 debugging (asks any replica).
 * KERR_OFFSET_NOT_AVAILABLE while the high watermark has not reached this leader's epoch. @blocks
 * unless the timestamp is one of LIST_LATEST, LIST_EARLIEST(_LOCAL), LIST_LATEST_TIERED. */
enum kerr partition_list_offset(struct partition *p, int32_t replica_id, enum isolation isolation,
                                int64_t timestamp, int32_t current_leader_epoch,
                                struct offset_lookup *out);
/* ListOffsets v0. *offsets in the arena. */
enum kerr partition_offsets_before(struct partition *p, int32_t replica_id, int64_t timestamp,
                                   int max, struct arena *a, int64_t **offsets, int *n);
/* OffsetForLeaderEpoch: (-1, -1) when undefined. Leader only. */
enum kerr partition_epoch_end(struct partition *p, int32_t current_leader_epoch, int32_t epoch,
                              int32_t *found_epoch, int64_t *end_offset);

/* DeleteRecords. Raises the log start to the offset (PARTITION_HIGH_WATERMARK: to that), which is
 * then *raised_to; lower is no change. Leader only: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR;
 * POLICY_VIOLATION when the topic does not delete, OFFSET_OUT_OF_RANGE. @blocks on the epoch file
 */
#define PARTITION_HIGH_WATERMARK (-1)
enum kerr partition_delete_records(struct partition *p, int64_t offset, int64_t *raised_to);
/* The least log start of the leader and its live followers: all have deleted what is below. Leader
 * only. */
enum kerr partition_low_watermark(struct partition *p, int64_t *low);

/* Flushes of the log on a worker, one at a time per partition however many wait: each takes along
 * all appends before it. */
struct partition_flush { /* the caller's memory until done */
    struct list link;
    struct task task;
    struct executor *done_on;
    void (*done)(struct partition_flush *f); /* on done_on */
    int64_t up_to;                           /* until the recovery point is here */
    enum kerr error;                         /* result */
};
void partition_flush(struct partition *p, struct workers *w, struct partition_flush *f);
/* The same without anybody to tell. */
void partition_flush_soon(struct partition *p, struct workers *w);

struct partition_waiter {
    struct list link;
    struct partition *partition; /* a reference while linked */
    /* Something moved. On the thread that moved it, under the lock of the list of waiters: post to
     * your own executor and re-check there, call nothing of this room. */
    void (*wake)(struct partition_waiter *w);
};
/* Whatever moves after this call wakes the waiter; so check once more after it. */
void partition_wait(struct partition *p, struct partition_waiter *w);
/* Afterwards wake is not running and will not be called. Harmless when not waiting (partition is
 * NULL then). */
void partition_unwait(struct partition_waiter *w);

#endif
