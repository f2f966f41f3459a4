/* log_dir_private.h - what the rest of this room knows of a log dir, and the folder of one log in
 * it.
 *
 * DOOMED  files (*.deleted) and folders (-delete) that wait for their delay before they are
 *         unlinked. What is not gone when the process ends goes at the next start.
 * THREADS any; the list of the doomed has a lock of its own, not held over I/O. */
#ifndef LOG_LOG_DIR_PRIVATE_H
#define LOG_LOG_DIR_PRIVATE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/list.h"
#include "log/log_dir.h"
#include "log/log_names.h"

#define CLEAN_MARK_NAME ".kafka_cleanshutdown"
#define LOCK_NAME ".lock"

struct log_dir {
    struct fs *fs;
    const struct clock *clock;
    char *path;
    int lock_fd, dir_fd;                              /* locks, of file and folder; -1: none */
    void (*on_failure)(void *arg, struct log_dir *d); /* may be NULL */
    void *failure_arg;
    /* A log's recovery point went down: the file on disk must follow before new records come. May
     * be NULL. */
    int (*save_recovery_points)(void *arg, struct log_dir *d);
    int (*save_cleaned)(void *arg, struct log_dir *d); /* the same for compaction's point */
    void *save_arg;
    atomic_bool offline;
    atomic_int logs;               /* for choosing the emptiest */
    struct open_files *open_files; /* of all dirs; NULL: no limit */
    struct histogram flushes_us;

    pthread_mutex_t lock;
    struct list doomed;              /* in order of arrival; lock */
    int recovering, recovering_most; /* logs that read much at the start; 0: no limit; lock */
    pthread_cond_t recovered;
};

/* Borrows fs and clock. Returns owned, or NULL without memory or when the path is too long. */
struct log_dir *log_dir_new(struct fs *fs, const struct clock *clock, const char *path);
void log_dir_free(struct log_dir *d); /* lets the lock go too */

/* Makes the folder and takes its lock. 0; -EAGAIN with a line in err when another process has it;
 * -errno after log_dir_fail. */
int log_dir_claim(struct log_dir *d, char *err, size_t err_n);
/* Was the last stop clean? Removes the mark before anything else is touched. 1, 0 or -errno after
 * log_dir_fail. */
int log_dir_take_clean_mark(struct log_dir *d);
int log_dir_put_clean_mark(struct log_dir *d);

/* Around the recovery of a log with much to read: waits while too many others are at it. */
void log_dir_begin_recovery(struct log_dir *d);
void log_dir_end_recovery(struct log_dir *d);

/* Unlink the file, or remove the folder, after delay_ms. Copies the path. */
void log_dir_doom(struct log_dir *d, const char *path, bool folder, int64_t delay_ms);
/* Removes what is due. */
void log_dir_remove_due(struct log_dir *d);
/* Monotonic ms of the next one due; -1 = nothing waits. */
int64_t log_dir_next_due(struct log_dir *d);

/* Errors that say nothing about the disk: too many descriptors, no memory. */
static inline bool log_error_is_shortage(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* What a failed fsync or msync means, whatever it is called: some pages may be lost, and a second
 * call would not tell. */
static inline int log_sync_failed(int error)
{
    return log_error_is_shortage(error) ? -EIO : error;
}

/* The folder of one log. It is renamed at most twice: from its -future form, and to its -delete
 * form. */
struct log_folder {
    struct log_dir *dir;
    _Atomic(char *) path;
    char *old_paths[2];  /* readers may still hold them */
    atomic_bool leaving; /* it is being renamed: names in it may not be found */
};

static inline const char *log_folder_path(const struct log_folder *f)
{
    return atomic_load_explicit(&f->path, memory_order_acquire);
}

#endif
