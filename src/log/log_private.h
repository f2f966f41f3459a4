/* log_private.h - inside of a log, for the log_*.c of this room.
 *
 * LOCKS  flush_lock, then lock. flush_lock: one flush, truncation, retention or close at a time;
 *        held over fsync, never taken by appends or readers. lock: appends and every change of
 *        segments; held over the append's own writes, and over fsync only where the rare must be on
 *        disk first: a cut, a start that moves, the topic's id before the first record. */
#ifndef LOG_LOG_PRIVATE_H
#define LOG_LOG_PRIVATE_H

#include "log/cleaning_state.h"
#include "log/epoch_cache.h"
#include "log/log.h"
#include "log/producer_state.h"
#include "log/segment_list.h"
#include "log/txn_guards.h"

struct log {
    /* Fixed after opening. */
    struct hnode node; /* log_manager.logs */
    struct log_folder folder;
    char *topic;
    int32_t partition;
    atomic_int refs;

    /* Read anywhere. */
    _Atomic int64_t start, end, high_watermark, recovery_point;
    _Atomic int64_t first_unstable;       /* INT64_MAX: no transaction is open or unreplicated */
    _Atomic int64_t last_flush_ms;        /* wall clock */
    _Atomic int64_t saved_recovery_point; /* what the checkpoint file may say */
    atomic_bool gone;                     /* closed or deleted */
    atomic_bool future;                   /* is to take the place of the partition's log */
    atomic_bool names_dirty;              /* the folder has names that no fsync covered */
    atomic_bool unsynced_folder;          /* it was made, and no fsync covered its own name */
    atomic_bool unreplicated;             /* completed transactions wait for the high watermark */
    _Atomic int64_t cleaned_to;    /* compaction has been through all below; 0: it never ran */
    atomic_bool cleaned_saved;     /* false: a cut has lowered it, and the file must follow */
    _Atomic uint64_t replacements; /* counted up before segments are replaced by compacted ones */
    struct segment_lists segments;
    struct epoch_cache epochs;

    struct spin spin; /* guards the pointer config, and topic_id */
    struct config_box *config;
    struct uuid topic_id;

    pthread_mutex_t flush_lock;
    pthread_mutex_t lock;
    /* lock */
    struct producer_state producers;
    struct txn_guards guards;
    int64_t last_snapshot; /* offset of the newest snapshot file; 0 without one */
    int64_t restored_at;   /* offset of the snapshot that `producers` began with; 0: none */
    bool metadata_pending; /* topic_id is not on disk yet, or may not be */
    bool touched;          /* a clean stop has something to write */
    bool sealed;           /* it has written, and not synced yet; flush_lock */
    int cuts;              /* truncations so far */

    struct cleaning cleaning; /* cleaner.c; under its lock */
};

/* A published config: log_config_ref hands out &c. */
struct config_box {
    struct log_config c;
    atomic_int refs;
};

/* ---- log.c ---- */
/* A log without segments yet. NULL without memory. */
struct log *log_new(struct log_dir *dir, const char *folder, struct topic_partition tp,
                    const struct log_config *c);
/* What a failed call means for the one who asked. */
enum kerr log_kerr(int err);
/* Does cleanup.policy say so, now? */
bool log_is_compacted(struct log *log);
/* NONE, or why nothing can be done with the log any more. */
enum kerr log_usable(const struct log *log);
static inline struct fs *log_fs(const struct log *log)
{
    return log->folder.dir->fs;
}
static inline const char *log_path(const struct log *log)
{
    return log_folder_path(&log->folder);
}
/* Returns shared (segment_list_unpin). Counting references is no change that a reader's const
 * forbids. */
static inline struct segment_list *log_pin(const struct log *log)
{
    return segment_lists_pin((struct segment_lists *)(uintptr_t)&log->segments);
}
/* For who met -ESTALE: what he read from is about to be replaced. A cut makes its files anew under
 * the lock before it publishes them; looking again and again meanwhile would only end with a lie
 * about the offset. */
void log_await_change(struct log *log);
/* Takes the dir offline unless err is 0 or a shortage. Returns err. `name` is a file of the folder,
 * or NULL for the folder. */
int log_failed(struct log *log, int err, const char *doing, const char *name);
/* first_unstable from the transactions and the high watermark. Under the lock. */
void log_update_unstable(struct log *log);
/* Raises start, and the high watermark and recovery point with it. Under the lock. */
void log_move_start(struct log *log, int64_t start);
/* Lowers the high watermark to the log end where it is above. */
void log_bound_high_watermark(struct log *log);
/* Writes the epoch file after a cut. sync: durable now, else with the next flush. */
int log_save_epochs(struct log *log, bool sync);
/* partition.metadata, if it is still to be written, or to be synced. Under the lock. */
int log_flush_metadata(struct log *log);

/* ---- log_roll.c, under the lock ---- */
/* Would n bytes with these offsets and this timestamp need a new segment first? */
int log_should_roll(struct log *log, const struct segment *s, int64_t n, int64_t max_timestamp,
                    int64_t last_offset, bool *roll);
/* A new active segment at `base` (>= log end). */
int log_roll(struct log *log, int64_t base);
/* Snapshot of the producers at `offset` unless there is one already; sync: durable now, else with
 * the next flush (then `offset` must be the base of a segment). */
int log_take_snapshot(struct log *log, int64_t offset, bool sync);

/* ---- log_producers.c, under the lock ---- */
/* Producers that came from a snapshot get back their batches before it, as far as a stretch of the
 * log in front of it has them; once. */
void log_recall_producers(struct log *log);

/* ---- log_flush.c ---- */
/* Syncs segments, names and the snapshot, and raises the recovery point to `target`. Under
 * flush_lock. */
int log_sync_to(struct log *log, int64_t target);

/* ---- log_replace.c ---- */
/* The segments `old`, which stand in a row in the log, give way to `made` (ordered by base; sealed,
 * synced, open, still .cleaned), which hold what shall be left of their records. -ECANCELED when
 * the log is not made of them any more: nothing has happened then. Readers that hold the old ones
 * go on with them. Durable when it returns 0. @blocks */
int log_replace(struct log *log, struct segment *const *old, int old_n, struct segment *const *made,
                int made_n);
int log_cuts(struct log *log);
/* Compaction has been through all below `offset`, in the log as it was when log_cuts gave `cuts`;
 * no effect if it was cut since then. */
void log_set_cleaned(struct log *log, int64_t offset, int cuts);

/* ---- log_truncate.c ---- */
/* After snapshots or segments above `offset` are gone: producers as of it. Under the lock. */
int log_reload_producers(struct log *log, int64_t offset);

#endif
