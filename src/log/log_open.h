/* log_open.h - making, loading and deleting the log of one partition; for the log manager and
 * tests. */
#ifndef LOG_LOG_OPEN_H
#define LOG_LOG_OPEN_H

#include "log/log.h"
#include "log/log_dir_private.h"

struct log_open_args {
    struct log_dir *dir;
    struct topic_partition tp;
    const char *folder; /* its name where that is not the usual one; NULL */
    const struct log_config *config;
    bool clean; /* the last stop was: nothing above the recovery point needs a look */
    /* as the checkpoints say; 0 when they say nothing */
    int64_t recovery_point, start_offset, high_watermark, cleaned_to;
    bool remove_topic_id; /* partition.metadata is deleted */
};
/* Loads a folder that exists. On error *out is NULL and the dir is offline, unless it was -ENOMEM
 * or another shortage. @blocks */
int log_open(const struct log_open_args *a, struct log **out);
/* Makes folder and files; durable, names included, when it returns 0. topic_id may be zero.
 * @blocks */
int log_create(struct log_dir *dir, struct topic_partition tp, const struct log_config *c,
               struct uuid topic_id, struct log **out);
/* The same, not durable yet: log_sync_created and log_sync_folder make it so, for many at a time
 * after one write-back; a flush, and the first append for the topic's id, do if nobody else did.
 * @blocks */
int log_create_unsynced(struct log_dir *dir, struct topic_partition tp, const struct log_config *c,
                        struct uuid topic_id, struct log **out);
/* What is in the folder; 0 for a log that has gone meanwhile, or -errno. @blocks */
int log_sync_created(struct log *log);
/* The name of the folder itself, if no fsync of the dir covers it yet. 0 or -errno: the caller
 * reports. @blocks */
int log_sync_folder(struct log *log);
/* The same in the -future form. -ENAMETOOLONG, too. @blocks */
int log_create_future(struct log_dir *dir, struct topic_partition tp, const struct log_config *c,
                      struct uuid topic_id, struct log **out);
/* Gives the folder the usual name; there must be none in the dir. 0 or -errno. @blocks */
int log_become_current(struct log *log);
/* Clean stop of one log: last index entries, snapshot at the log end, all synced. Nothing can be
 * done with it afterwards. 0 or -errno. @blocks */
int log_close(struct log *log);
/* The first half of log_close, all but the syncs: for many logs, whose dirty pages can then be
 * written back at once. */
int log_seal(struct log *log);
/* Renames the folder to its -delete form; it goes after delay_ms. Whoever still uses the log gets
 * NOT_LEADER_OR_FOLLOWER. 0 or -errno. @blocks */
int log_delete(struct log *log, int64_t delay_ms);
struct log *log_ref(struct log *log);
void log_unref(struct log *log); /* closes files without syncing */

#endif
