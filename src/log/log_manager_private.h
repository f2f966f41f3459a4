/* log_manager_private.h - inside of the log manager.
 *
 * LOCKS  change_lock (creating and deleting, one at a time; held over folder work), then a dir's
 *        checkpoint_lock (one writer of its files), then lock (the map; held for moments). A log's
 *        own locks are taken with none of them but change_lock held. */
#ifndef LOG_LOG_MANAGER_PRIVATE_H
#define LOG_LOG_MANAGER_PRIVATE_H

#include "base/hmap.h"
#include "log/checkpoint.h"
#include "log/cleaner.h"
#include "log/log_manager.h"
#include "log/log_open.h"
#include "log/open_files.h"

struct managed_dir {
    struct log_manager *manager;
    struct log_dir *dir;
    bool loaded; /* all its logs were: it may get a clean mark */
    bool clean;  /* its last stop was */
    /* The checkpoint files may name logs that are no more. A new log of such a name must not take
     * over what they say, so they are written anew before one is made. */
    atomic_bool stale;
    pthread_mutex_t checkpoint_lock;
    bool short_of; /* descriptors or memory, when the files were last written; under that lock */
    /* while loading */
    struct offset_checkpoint recovery_points, start_offsets, high_watermarks, cleaned;
};

struct log_manager {
    struct fs *fs;
    const struct clock *clock;
    struct managed_dir *dirs;
    int dirs_n;
    int threads; /* per dir, for recovery */
    struct open_files open_files;
    bool remove_topic_ids;
    void (*topic_config)(void *arg, struct str topic, struct log_config *c);
    void (*dir_failed)(void *arg, struct log_dir *d);
    void *arg;

    pthread_mutex_t change_lock;
    pthread_mutex_t lock;
    struct hmap logs;     /* by topic and partition; a reference each */
    struct hmap futures;  /* the same, of those that are being moved to another dir */
    struct log **created; /* since the last log_manager_sync_created; a reference each; lock */
    int created_n, created_cap;
    struct hmap preferred; /* of struct preferred: where logs to come are wanted */
    struct log_config defaults;
    struct cleaner *cleaner; /* set before others use the manager, or NULL */
};

/* NULL when it is not there. The manager's lock is held. */
struct log *log_map_find(const struct hmap *map, struct topic_partition tp);
struct managed_dir *log_manager_managed(struct log_manager *m, const struct log_dir *d);
/* As log_manager_add. */
int log_manager_add_future(struct log_manager *m, struct log *log);
/* With change_lock held. */
void log_manager_drop_future_locked(struct log_manager *m, struct topic_partition tp);
/* The dir that was wished for, once; NULL. */
struct log_dir *log_manager_take_preferred(struct log_manager *m, struct topic_partition tp);
void log_manager_forget_preferred(struct log_manager *m);

/* Logs of one dir (NULL: of all), futures included, as an array with a reference each. NULL without
 * memory. */
struct log **log_manager_snapshot(struct log_manager *m, const struct log_dir *d, int *n);
void log_manager_snapshot_free(struct log **v, int n);
/* 0, -EEXIST, -ENOMEM. Takes a reference. */
int log_manager_add(struct log_manager *m, struct log *log);

/* A log was made that log_manager_sync_created has to see to. */
void log_manager_note_created(struct log_manager *m, struct log *log);
void log_manager_forget_created(struct log_manager *m);

enum manager_file { FILE_RECOVERY_POINTS, FILE_START_OFFSETS, FILE_HIGH_WATERMARKS, FILE_CLEANED };
/* 0, a shortage (the file before stands, and a later write makes good), or -errno after
 * log_dir_fail. */
int managed_dir_write(struct managed_dir *md, enum manager_file which);
/* All of them, and not stale any more. */
int managed_dir_write_all(struct managed_dir *md);

/* Threads for a start or stop of n logs: that waits for the disk rather than works, so with many
 * logs more than are set for recovery. (log_dir_begin_recovery keeps to that for what is work.) */
int log_manager_light_threads(const struct log_manager *m, int n);
/* Runs work(arg, i) for i in [0, n), on `threads` threads or, if that is 1, here. */
void log_manager_parallel(const char *name, int threads, int n, void (*work)(void *arg, int i),
                          void *arg);

#endif
