/* log_create.c - a log's folder: made, made durable, renamed, given up. What is in it at a start is
 * read by log_load.c.
 *
 * CRASH  a new log is nothing until its folder's name is synced; with the name come its files,
 * maybe empty, which loading takes for a log without records. A log that is deleted has another
 *        name first, durably; then nothing of it comes back. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "log/log_open.h"
#include "log/log_private.h"
#include "log/partition_metadata.h"
#include "log/segment_recover.h"

static int create_files(struct log *log, struct uuid topic_id)
{
    char path[LOG_PATH_MAX];
    struct segment *s;
    struct file *f;
    struct fs *fs = log_fs(log);
    int err = log_failed(log, fs_mkdir(fs, log_path(log)), "create", NULL);
    if (err)
        return err;
    err = segment_create(&log->folder, 0, &log->config->c, &s);
    if (err)
        return err;
    segment_close_files(s); /* it may be long before the first record comes */
    log->segments.now = segment_list_new(&s, 1);
    segment_unref(s);
    if (!log->segments.now)
        return -ENOMEM;
    log_path_join(path, log_path(log), EPOCH_FILE_NAME);
    err = fs_open(fs, path, O_RDWR | O_CREAT, &f);
    if (!err)
        file_unref(f);
    err = log_failed(log, err, "create", EPOCH_FILE_NAME);
    if (!err && !uuid_is_zero(topic_id)) {
        log->topic_id = topic_id;
        log->metadata_pending = true;
        err = log_failed(log, partition_metadata_write(fs, log_path(log), topic_id, false), "write",
                         PARTITION_METADATA_NAME);
    }
    atomic_store(&log->names_dirty, true);
    atomic_store(&log->unsynced_folder, true);
    return err;
}

/* partition.metadata, which was written without a sync; unless an append has done it. */
static int sync_metadata(struct log *log)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    pthread_mutex_lock(&log->lock);
    bool pending = log->metadata_pending;
    pthread_mutex_unlock(&log->lock);
    if (!pending)
        return 0;
    log_path_join(path, log_path(log), PARTITION_METADATA_NAME);
    int err = fs_open(log_fs(log), path, O_RDWR, &f);
    if (!err) { /* on failure the file is still pending: an append writes another one */
        err = file_sync(f);
        file_unref(f);
    }
    return log_failed(log, err, "sync", PARTITION_METADATA_NAME);
}

int log_sync_created(struct log *log)
{
    pthread_mutex_lock(&log->flush_lock);
    int err = log_usable(log) ? 0 : sync_metadata(log);
    if (!err && !log_usable(log) && atomic_exchange(&log->names_dirty, false)) {
        err = log_failed(log, fs_sync_dir(log_fs(log), log_path(log)), "sync", NULL);
        if (err)
            atomic_store(&log->names_dirty, true);
    }
    if (!err) {
        pthread_mutex_lock(&log->lock);
        log->metadata_pending = false;
        pthread_mutex_unlock(&log->lock);
    }
    pthread_mutex_unlock(&log->flush_lock);
    return err;
}

static int create_named(struct log_dir *dir, const char *name, struct topic_partition tp,
                        const struct log_config *c, struct uuid topic_id, struct log **out)
{
    *out = NULL;
    struct log *log = log_new(dir, name, tp, c);
    if (!log)
        return -ENOMEM;
    int err = create_files(log, topic_id);
    if (err) {
        if (!log_offline(log)) /* a shortage: the next attempt must find nothing */
            (void)fs_remove_tree(dir->fs, log_path(log));
        log_unref(log);
        return err;
    }
    log->touched = true;
    *out = log;
    return 0;
}

int log_create_unsynced(struct log_dir *dir, struct topic_partition tp, const struct log_config *c,
                        struct uuid topic_id, struct log **out)
{
    char name[FOLDER_NAME_MAX];
    folder_name(name, tp.topic, tp.partition);
    return create_named(dir, name, tp, c, topic_id, out);
}

/* Makes a log durable that has just been made; without success it goes. */
static int settle_created(struct log **log)
{
    struct log_dir *dir = (*log)->folder.dir;
    int err = log_sync_created(*log);
    if (!err)
        err = log_failed(*log, log_sync_folder(*log), "sync the dir of", NULL);
    if (err) {
        if (!log_offline(*log))
            (void)fs_remove_tree(dir->fs, log_path(*log));
        log_unref(*log);
        *log = NULL;
    }
    return err;
}

int log_create(struct log_dir *dir, struct topic_partition tp, const struct log_config *c,
               struct uuid topic_id, struct log **out)
{
    int err = log_create_unsynced(dir, tp, c, topic_id, out);
    return err ? err : settle_created(out);
}

int log_create_future(struct log_dir *dir, struct topic_partition tp, const struct log_config *c,
                      struct uuid topic_id, struct log **out)
{
    char name[FOLDER_NAME_MAX];
    *out = NULL;
    if (!folder_name_future(name, tp.topic, tp.partition, uuid_random()))
        return -ENAMETOOLONG;
    int err = create_named(dir, name, tp, c, topic_id, out);
    if (!err)
        err = settle_created(out);
    if (!err)
        atomic_store(&(*out)->future, true);
    return err;
}

/* The folder has the new path now; it was malloc'ed. */
static void take_path(struct log_folder *f, char *path)
{
    char *old = atomic_exchange(&f->path, path);
    f->old_paths[f->old_paths[0] != NULL] = old;
}

int log_become_current(struct log *log)
{
    char name[FOLDER_NAME_MAX], to[LOG_PATH_MAX];
    struct log_dir *dir = log->folder.dir;
    folder_name(name, str_of(log->topic), log->partition);
    log_path_join(to, dir->path, name);
    char *path = str_dup(str_of(to));
    if (!path)
        return -ENOMEM;
    pthread_mutex_lock(&log->flush_lock);
    pthread_mutex_lock(&log->lock);
    int err = log_usable(log) ? -ENOENT : 0;
    if (!err)
        err = log_failed(log, fs_rename(dir->fs, log_path(log), to), "rename", NULL);
    if (!err) {
        take_path(&log->folder, path);
        path = NULL;
        atomic_store(&log->future, false);
        err = log_failed(log, fs_sync_dir(dir->fs, dir->path), "sync the dir of", NULL);
    }
    pthread_mutex_unlock(&log->lock);
    pthread_mutex_unlock(&log->flush_lock);
    free(path);
    return err;
}

/* Readers that open a file from now on find no name: expected. Or, after all, it stays. */
static void set_leaving(struct log *log, bool leaving)
{
    struct segment_list *l = log->segments.now;
    atomic_store(&log->gone, leaving);
    atomic_store(&log->folder.leaving, leaving);
    for (int i = 0; i < l->n; i++)
        atomic_store(&l->v[i]->doomed, leaving);
}

int log_delete(struct log *log, int64_t delay_ms)
{
    char name[FOLDER_NAME_MAX], to[LOG_PATH_MAX];
    struct log_dir *dir = log->folder.dir;
    pthread_mutex_lock(&log->flush_lock);
    pthread_mutex_lock(&log->lock);
    int err = log_usable(log) ? -ENOENT : 0;
    char *path = NULL;
    if (!err) {
        folder_name_delete(name, str_of(log->topic), log->partition, uuid_random());
        log_path_join(to, dir->path, name);
        path = str_dup(str_of(to));
        err = path ? 0 : -ENOMEM;
    }
    if (!err) {
        set_leaving(log, true);
        err = log_failed(log, fs_rename(dir->fs, log_path(log), to), "rename", NULL);
        if (log_error_is_shortage(err))
            set_leaving(log, false);
    }
    if (!err) {
        take_path(&log->folder, path);
        path = NULL;
        err = log_failed(log, fs_sync_dir(dir->fs, dir->path), "sync the dir of", NULL);
        /* There is no way back. If the machine goes down before the name is on disk, the folder is
         * found again, and deleted again. */
        if (log_error_is_shortage(err))
            err = 0;
    }
    free(path);
    pthread_mutex_unlock(&log->lock);
    pthread_mutex_unlock(&log->flush_lock);
    if (!err)
        log_dir_doom(dir, to, true, delay_ms);
    return err;
}
