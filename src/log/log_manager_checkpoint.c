/* log_manager_checkpoint.c - the checkpoint files of the log dirs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "log/log_manager_private.h"
#include "log/log_private.h"

static const char *const file_names[] = {[FILE_RECOVERY_POINTS] = CHECKPOINT_RECOVERY_POINT,
                                         [FILE_START_OFFSETS] = CHECKPOINT_LOG_START,
                                         [FILE_HIGH_WATERMARKS] = CHECKPOINT_HIGH_WATERMARK,
                                         [FILE_CLEANED] = CHECKPOINT_CLEANER};

/* The recovery point for the file. A truncation lowers the point first and looks at `saved` then;
 * here it is the other way round, so one of the two sees the other. */
static int64_t recovery_point_to_save(struct log *log)
{
    int64_t rp = atomic_load(&log->recovery_point), now;
    atomic_store(&log->saved_recovery_point, rp);
    while ((now = atomic_load(&log->recovery_point)) < rp) {
        rp = now;
        atomic_store(&log->saved_recovery_point, rp);
    }
    return rp;
}

/* false: the log needs no line in this file. */
static bool value_of(struct log *log, enum manager_file which, int64_t *v)
{
    if (which == FILE_RECOVERY_POINTS) {
        *v = recovery_point_to_save(log);
        return true;
    }
    if (which == FILE_HIGH_WATERMARKS) {
        *v = log_high_watermark(log);
        return true;
    }
    if (which == FILE_CLEANED) {
        *v = log_cleaned_to(log);
        return *v > 0;
    }
    struct segment_list *l = log_pin(log);
    int64_t first = l->v[0]->base;
    segment_list_unpin(l);
    *v = log_start_offset(log);
    return *v > first;
}

static int write_locked(struct managed_dir *md, enum manager_file which)
{
    char path[LOG_PATH_MAX];
    int n;
    size_t used = 0;
    struct log **logs = log_manager_snapshot(md->manager, md->dir, &n);
    struct offset_entry *v = malloc(((size_t)n + 1) * sizeof(*v));
    int err = logs && v ? 0 : -ENOMEM;
    for (int i = 0; i < n && !err; i++) {
        struct topic_partition tp = log_topic_partition(logs[i]);
        v[used] = (struct offset_entry){tp.topic, tp.partition, 0};
        if (value_of(logs[i], which, &v[used].offset))
            used++;
    }
    log_path_join(path, md->dir->path, file_names[which]);
    if (!err)
        err = offset_checkpoint_write(md->dir->fs, path, v, used);
    free(v);
    log_manager_snapshot_free(logs, n);
    if (err && !log_error_is_shortage(err))
        log_dir_fail(md->dir, err, "write %s", path);
    else if (err && !md->short_of)
        say_warn("log", "cannot write %s for now, the one before stands: %s", path, strerror(-err));
    md->short_of = err != 0;
    return err;
}

int managed_dir_write(struct managed_dir *md, enum manager_file which)
{
    int err = -EIO;
    pthread_mutex_lock(&md->checkpoint_lock);
    if (!log_dir_offline(md->dir))
        err = write_locked(md, which);
    pthread_mutex_unlock(&md->checkpoint_lock);
    return err;
}

int managed_dir_write_all(struct managed_dir *md)
{
    atomic_store(&md->stale, false); /* first: a deletion from now on counts again */
    int err = managed_dir_write(md, FILE_RECOVERY_POINTS);
    if (!err)
        err = managed_dir_write(md, FILE_START_OFFSETS);
    if (!err)
        err = managed_dir_write(md, FILE_HIGH_WATERMARKS);
    if (!err)
        err = managed_dir_write(md, FILE_CLEANED);
    if (err)
        atomic_store(&md->stale, true);
    return err;
}

static void write_everywhere(struct log_manager *m, enum manager_file which)
{
    for (int i = 0; i < m->dirs_n; i++)
        if (!log_dir_offline(m->dirs[i].dir))
            (void)managed_dir_write(&m->dirs[i], which);
}

void log_manager_checkpoint_recovery_points(struct log_manager *m)
{
    write_everywhere(m, FILE_RECOVERY_POINTS);
}

void log_manager_checkpoint_start_offsets(struct log_manager *m)
{
    write_everywhere(m, FILE_START_OFFSETS);
}

void log_manager_checkpoint_high_watermarks(struct log_manager *m)
{
    write_everywhere(m, FILE_HIGH_WATERMARKS);
}
