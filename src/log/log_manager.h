/* log_manager.h - all logs of a broker in all its log dirs: load at start, create, find, delete,
 * flush, retain, checkpoint, close.
 *
 * START    each dir: lock, meta.properties check, note and remove the clean mark, read checkpoints,
 *          load partitions with num.recovery.threads.per.data.dir threads (all dirs at once; with
 *          many logs that have little to check, with more, since that only waits for the disk),
 *          unclean ones recovered, progress lines.
 *
 * STOP     log_manager_close: flush, producer snapshots, checkpoints, clean mark, unlock. All
 *          references to logs must have been let go.
 *
 * THREADS  start and close: one thread, blocking. The rest: any. */
#ifndef LOG_LOG_MANAGER_H
#define LOG_LOG_MANAGER_H

#include "base/clock.h"
#include "base/workers.h"
#include "log/log.h"
#include "log/log_dir.h"

struct log_manager;

struct log_manager_options {
    struct fs *fs;
    const struct clock *clock;
    const char *const *dirs; /* log.dirs in order */
    int dirs_n;
    struct log_config defaults;
    int recovery_threads;   /* per dir */
    int32_t broker_id;      /* configured; -1 = take what meta.properties says */
    const char *cluster_id; /* NULL = take what meta.properties says */
    int max_open_files;     /* of segments; 0 = by RLIMIT_NOFILE */
    bool remove_topic_ids;  /* inter.broker.protocol.version < 2.8 */
    /* A topic's settings at load time. May be NULL: defaults. Fills *c (starts as the defaults). */
    void (*topic_config)(void *arg, struct str topic, struct log_config *c);
    /* A dir went offline (any thread, once each). NULL = nothing. */
    void (*dir_failed)(void *arg, struct log_dir *d);
    void *arg;
};

/* meta.properties of all dirs, before anything else. 0, or -EINVAL with the reason in err (a line
 * for people: names file, found and allowed). Found values: broker_id -1 / cluster_id "" when no
 * dir has one. */
int log_manager_read_meta(const struct log_manager_options *o, int32_t *broker_id,
                          char cluster_id[64], char *err, size_t err_n);

/* Opens and loads. 0, or -errno/-EINVAL with err filled (lock held, two folders of one partition,
 * ...). All dirs offline = -EIO. Dirs that are new get meta.properties with options' ids. */
int log_manager_open(const struct log_manager_options *o, struct log_manager **out, char *err,
                     size_t err_n);
/* Clean stop. @blocks */
void log_manager_close(struct log_manager *m);
/* Ends without the clean mark, as a crash would (tests). */
void log_manager_abandon(struct log_manager *m);

/* Returns shared (log_unref), NULL when there is none. */
struct log *log_manager_find(struct log_manager *m, struct topic_partition tp);
/* Finds or makes the log, in the online dir with the fewest logs. KERR_KAFKA_STORAGE_ERROR when
 * is_new is false and some dir is offline, or none is left. config: copied. *out shared
 * (log_unref). @blocks folder work */
enum kerr log_manager_get_or_create(struct log_manager *m, struct topic_partition tp, bool is_new,
                                    struct uuid topic_id, const struct log_config *config,
                                    struct log **out);
/* Logs that get_or_create has made since the last call become durable, all at once: thousands cost
 * little more than one. Until then a crash of the machine may lose them (and what was appended to
 * them, but for what was flushed). @blocks on fsync */
void log_manager_sync_created(struct log_manager *m);
void log_unref(struct log *log);
struct log *log_ref(struct log *log);
/* Renames the folder to its -delete form, drops it from the maps and checkpoints; files go after
 * file.delete.delay.ms. @blocks */
enum kerr log_manager_delete(struct log_manager *m, struct topic_partition tp);

/* ---- moving a log to another dir ----
 * A partition may have a second log in another dir, its future: a copy that is to take its place.
 * Who copies is replica/log_mover.h. Futures are loaded at the start and closed at the end like the
 * others, but neither found, cleaned nor retained. */
/* NULL: no dir of log.dirs is called so. */
struct log_dir *log_manager_dir(struct log_manager *m, const char *path);
/* The next log made of this partition is wanted in this dir; a wish. */
void log_manager_prefer_dir(struct log_manager *m, struct topic_partition tp, struct log_dir *d);
/* Returns shared (log_unref), NULL when there is none. */
struct log *log_manager_future(struct log_manager *m, struct topic_partition tp);
void log_manager_each_future(struct log_manager *m, void (*each)(void *arg, struct log *log),
                             void *arg);
/* Makes an empty future of this log; one that is in that dir already will do. KAFKA_STORAGE_ERROR
 * while any dir is offline; INVALID_TOPIC_EXCEPTION when the folder's name would be too long;
 * CONCURRENT_TRANSACTIONS when things are not as the caller believes: the log was replaced, is in
 * that dir itself, or has a future in a third one. Look again then.
 * @blocks */
enum kerr log_manager_make_future(struct log_manager *m, struct log *current, struct log_dir *d);
/* Gives the move up: this copy goes, if it still is the partition's. @blocks */
void log_manager_drop_future(struct log_manager *m, struct log *future);
/* The future takes the place of this log, which is deleted. Nobody may append to either meanwhile,
 * and both have the same records. @blocks */
enum kerr log_manager_swap_future(struct log_manager *m, struct log *current, struct log *future);

/* Calls each(log) for all logs (a snapshot; refs held during the call). */
void log_manager_each(struct log_manager *m, void (*each)(void *arg, struct log *log), void *arg);
int log_manager_count(struct log_manager *m);
int log_manager_dirs(struct log_manager *m, struct log_dir **out, int max);
int log_manager_online_dirs(struct log_manager *m);

/* Upkeep, called by the broker's scheduler on a worker; @blocks */
void log_manager_checkpoint_recovery_points(struct log_manager *m);
void log_manager_checkpoint_start_offsets(struct log_manager *m);
void log_manager_checkpoint_high_watermarks(struct log_manager *m);
void log_manager_flush_due(struct log_manager *m); /* flush.ms */
void log_manager_retention(struct log_manager *m);
void log_manager_delete_due(
    struct log_manager *m); /* .deleted files and -delete folders whose delay is over */
int64_t log_manager_next_delete_ms(struct log_manager *m); /* monotonic; -1 = nothing waits */
void log_manager_expire_producers(struct log_manager *m);
void log_manager_set_defaults(struct log_manager *m, const struct log_config *c);

#endif
