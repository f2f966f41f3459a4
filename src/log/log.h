/* log.h - the log of one partition: segments in a folder, appended at the end, read by offset.
 *
 * POSITIONS   log start: first offset that readers see. high watermark: last committed offset + 1.
 *             last stable offset: end of what read_committed sees. log end: offset of the next
 *             record. recovery point: all below is known to be on stable storage.
 *
 * INVARIANTS  log start <= last stable <= high watermark <= log end; recovery point <= log end. The
 *             log end is published only after the bytes are in the file, so a reader that sees it
 *             can read up to it. log_check.h has them all.
 *
 * THREADS     appends, rolls, truncation and deletion of segments happen under the log's mutex,
 *             taken inside; readers never take it: they pin the segment list and read up to
 *             published positions. It is not held over fsync, but for a new epoch and a truncation.
 *             Everything may be called from any thread unless it says otherwise.
 *
 * FAULTS      an I/O error takes the whole log dir offline (log_dir.h) and returns
 *             KERR_KAFKA_STORAGE_ERROR; so does every later call. Too many open files and the like
 *             only fail the call. A log that was deleted or closed answers
 *             NOT_LEADER_OR_FOLLOWER.
 *
 * CRASH       what is above the recovery point is read through at the next start and cut at the
 *             first batch that is not whole (log_load.h). */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hmap.h"
#include "log/log_config.h"
#include "protocol/errors.h"
#include "protocol/records_append.h"

struct log;
struct log_dir;

struct topic_partition {
    struct str topic;
    int32_t partition;
};
static inline uint64_t topic_partition_hash(struct topic_partition tp)
{
    return hash_str(tp.topic) ^ hash_int((uint32_t)tp.partition);
}
static inline bool topic_partition_eq(struct topic_partition a, struct topic_partition b)
{
    return a.partition == b.partition && str_eq(a.topic, b.topic);
}

/* ---- facts, any thread, no lock ---- */
struct topic_partition log_topic_partition(const struct log *log); /* borrowed from the log */
int64_t log_start_offset(const struct log *log);
int64_t log_end_offset(const struct log *log);
int64_t log_high_watermark(const struct log *log);
int64_t log_last_stable_offset(const struct log *log);
int64_t log_recovery_point(const struct log *log);
struct log_dir *log_dir_of(const struct log *log);
/* Is it a copy that is to take the place of the partition's log (log_manager.h)? */
bool log_is_future(const struct log *log);
bool log_offline(const struct log *log);
/* Zero until one is known. */
struct uuid log_topic_id(const struct log *log);
/* KERR_INCONSISTENT_TOPIC_ID when another is known already; else it is on disk before the next
 * record. */
enum kerr log_set_topic_id(struct log *log, struct uuid id);
/* Returns shared: config stays valid until log_config_unref. */
const struct log_config *log_config_ref(struct log *log);
void log_config_unref(const struct log_config *c);
void log_set_config(struct log *log, const struct log_config *c); /* copies */

/* ---- append ---- */
struct append_info {
    int64_t first_offset, last_offset;
    int64_t log_append_time; /* -1 unless the topic is LogAppendTime */
    int64_t log_start_offset;
    bool duplicate; /* an idempotent producer's batch that is there already: nothing was written */
    /* flush.messages or more records are not flushed: each append that finds it so is acknowledged
     * only after a log_flush that begins after it (on a worker; partition_flush gathers them). */
    bool needs_flush;
    bool rolled; /* a new segment was begun: log_flush on a worker, soon; nobody waits for it */
};
/* Before a transactional batch whose producer may have no transaction open here: *guard is what the
 * append needs in pr->txn_guard. True: after its coordinator was asked; false: at once, for a
 * transaction is open. sequence -1: of a coordinator. 0 for *guard: no memory. */
bool log_begin_txn(struct log *log, int64_t producer_id, int16_t epoch, int32_t sequence,
                   int64_t now_ms, uint64_t *guard);
/* Leader's append of what records_prepare passed: gives offsets, checks producer sequences, rolls
 * if due, writes with one pwritev, publishes the log end. */
enum kerr log_append(struct log *log, struct prepared *pr, int32_t leader_epoch,
                     enum append_origin origin, struct append_info *out);
/* Follower's append: offsets and epochs as they are. */
enum kerr log_append_as_follower(struct log *log, struct prepared *pr, struct append_info *out);
/* Notes (epoch, log end) in the epoch file when a leader starts. */
enum kerr log_begin_epoch(struct log *log, int32_t leader_epoch);

/* Records below this are safe enough to count: all, but for flush.messages or more that are not
 * flushed. May lie above the log end. */
int64_t log_flush_bound(struct log *log);

/* ---- read ---- */
/* A range of one segment's file that begins at the batch holding `offset`. */
struct log_slice {
    struct file *file; /* one reference, the receiver's (file_unref); NULL when len is 0 */
    int64_t pos;
    uint32_t len;
    int64_t first_offset;  /* base offset of the first batch; -1 when empty */
    bool older_segment;    /* of what is below the limit, some lies in later segments */
    bool first_incomplete; /* the first batch is longer than max_bytes and was left out (min_one
                              false) */
    bool cold; /* of the calls that do not wait: what was asked for is on the disk only */
};
/* At most max_bytes of whole-file bytes below `limit_offset` (high watermark, LSO or log end: the
 * caller's choice). With min_one the first batch comes whole even if it is longer; without, a first
 * batch that does not fit leaves the slice empty. `hard_limit` (Fetch v0-2): cut at max_bytes even
 * inside the first batch. KERR_OFFSET_OUT_OF_RANGE below log start or above log end. Waits for
 * the disk, and for a cut (log_truncate_*) that is under way where it reads. @blocks */
enum kerr log_read(struct log *log, int64_t offset, uint32_t max_bytes, int64_t limit_offset,
                   bool min_one, bool hard_limit, struct log_slice *out);
/* The same without waiting, neither here nor (as far as one can look ahead) where the
 * slice is sent: else the slice is empty and `cold`. */
enum kerr log_read_now(struct log *log, int64_t offset, uint32_t max_bytes, int64_t limit_offset,
                       bool min_one, bool hard_limit, struct log_slice *out);
/* Reads the slice's bytes into memory, so that log_read_now finds them there. What fails is left to
 * whoever needs the bytes. @blocks */
void log_slice_warm(const struct log_slice *slice);
/* Bytes between two offsets, as far as the index tells (fetch min bytes). */
int64_t log_bytes_between(struct log *log, int64_t from, int64_t to);

struct aborted_txn {
    int64_t producer_id, first_offset;
};
/* For read_committed: also the aborted transactions that a reader of [offset, slice end) must know,
 * in the arena; of the same segments as the slice, whatever compaction replaces meanwhile. On
 * failure there is no slice to let go. */
enum kerr log_read_committed(struct log *log, int64_t offset, uint32_t max_bytes,
                             int64_t limit_offset, bool min_one, bool hard_limit, struct arena *a,
                             struct log_slice *slice, struct aborted_txn **aborted, int *n);
enum kerr log_read_committed_now(struct log *log, int64_t offset, uint32_t max_bytes,
                                 int64_t limit_offset, bool min_one, bool hard_limit,
                                 struct arena *a, struct log_slice *slice,
                                 struct aborted_txn **aborted, int *n);

struct offset_lookup {
    int64_t offset, timestamp; /* -1 when nothing was found */
    int32_t leader_epoch;
};
#define LIST_LATEST (-1)
#define LIST_EARLIEST (-2)
#define LIST_MAX_TIMESTAMP (-3)
#define LIST_EARLIEST_LOCAL (-4)
#define LIST_LATEST_TIERED (-5)
/* By time, or one of LIST_*: `limit_offset` is what LATEST answers and the bound of the others.
 * @blocks reads files */
enum kerr log_lookup(struct log *log, int64_t timestamp, int64_t limit_offset,
                     struct offset_lookup *out);
/* ListOffsets v0: up to max offsets (segment starts and the end), newest first. *out in the arena.
 */
enum kerr log_offsets_before(struct log *log, int64_t timestamp, int64_t limit_offset, int max,
                             struct arena *a, int64_t **out, int *n);
/* Fetch divergence and OffsetForLeaderEpoch: (-1, -1) when undefined. */
void log_end_offset_for_epoch(struct log *log, int32_t epoch, int32_t *found_epoch,
                              int64_t *end_offset);
int32_t log_latest_epoch(struct log *log); /* -1 without any */

/* ---- producers ---- */
struct active_producer {
    int64_t id;
    int16_t epoch;
    int32_t last_sequence; /* -1 = none known */
    int64_t last_timestamp;
    int32_t coordinator_epoch; /* -1 = no marker seen */
    int64_t txn_first_offset;  /* of its open transaction; -1 = none */
};
/* Those the log knows of, in no order. Count of *out (in the arena), or -ENOMEM. */
int log_active_producers(struct log *log, struct arena *a, struct active_producer **out);

/* ---- positions that others move ---- */
/* Clamped to [log start, log end]; moves the LSO. Returns the value in force. */
int64_t log_set_high_watermark(struct log *log, int64_t hw);
/* DeleteRecords, or a follower's leader: > high watermark is OFFSET_OUT_OF_RANGE. */
enum kerr log_raise_start_offset(struct log *log, int64_t offset);
/* Follower: drop everything at and above offset / start over at offset. */
enum kerr log_truncate_to(struct log *log, int64_t offset);
/* KERR_OFFSET_OUT_OF_RANGE beyond what a log can have. */
enum kerr log_truncate_fully(struct log *log, int64_t offset);

/* ---- upkeep, on workers or the scheduler; @blocks ---- */
/* fsync up to the log end as of now, then raise the recovery point. */
enum kerr log_flush(struct log *log);
/* Retention by start offset, size and time. Number of segments deleted. */
int log_retention(struct log *log, int64_t now_ms);
/* For metrics: how many producers it knows, and when the one whose open transaction began first
 * last wrote; -1: none is open. */
struct log_producer_counts {
    int64_t producers, oldest_txn_ms;
};
void log_count_producers(struct log *log, struct log_producer_counts *out);
/* Forget producers without a record for producer.id.expiration.ms. */
void log_expire_producers(struct log *log, int64_t now_ms);
int64_t log_size(const struct log *log); /* bytes of all segments */
int64_t log_last_flush_ms(const struct log *log);
int log_segment_count(const struct log *log);
/* First offset that compaction has not been through; 0: it never ran. */
int64_t log_cleaned_to(const struct log *log);

#endif
