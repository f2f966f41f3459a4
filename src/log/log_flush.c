/* log_flush.c - making a log durable, and its clean end.
 *
 * The recovery point rises only after every sync has succeeded, and only here. One flush at a time:
 * the kernel reports a lost page to one fsync only, and a second one that ran beside it would
 * believe all is well. */
#include <errno.h>
#include <fcntl.h>

#include "log/log_open.h"
#include "log/log_private.h"

static int sync_snapshot(struct log *log, int64_t offset)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    log_file_path(path, log_path(log), offset, LOG_FILE_SNAPSHOT, LOG_STAGE_LIVE);
    int err = fs_open(log_fs(log), path, O_RDWR, &f);
    if (err == -ENOENT) /* gone with its segment */
        return 0;
    if (!err) {
        err = log_sync_failed(file_sync(f));
        file_unref(f);
    }
    if (err && !log_error_is_shortage(err))
        log_dir_fail(log->folder.dir, err, "sync %s", path);
    return err;
}

static void raise_recovery_point(struct log *log, int64_t to)
{
    int64_t now = atomic_load(&log->recovery_point);
    while (now < to && !atomic_compare_exchange_weak(&log->recovery_point, &now, to))
        ;
}

int log_sync_folder(struct log *log)
{
    if (!atomic_exchange(&log->unsynced_folder, false))
        return 0;
    int err = fs_sync_dir(log_fs(log), log->folder.dir->path);
    if (err) /* after a shortage the next one has to do it */
        atomic_store(&log->unsynced_folder, true);
    return err;
}

static int sync_to(struct log *log, int64_t target)
{
    int64_t from = log_recovery_point(log);
    struct segment_list *l = log_pin(log); /* after `target` was read: it holds all below */
    int err = 0;
    /* The one before as well: if the last flush came just before a roll, it was sealed after it. */
    int floor = segment_list_floor(l, from);
    for (int i = floor > 0 ? floor - 1 : 0; i < l->n && !err; i++) {
        struct segment *s = l->v[i];
        if (s->base > target)
            break;
        if (atomic_load(&s->doomed)) /* cut or deleted meanwhile: not what the log is made of */
            continue;
        /* recovered data was written by an earlier process, and nobody knows whether it is safe */
        err = segment_sync(s, i >= floor && segment_size(s) > 0 && target > from);
        if (!err && s->base >= from && s->base > 0)
            err = sync_snapshot(log, s->base); /* of the roll that made it */
        if (err == -ESTALE)
            err = 0;
    }
    segment_list_unpin(l);
    bool named = false;
    if (!err)
        err = log_failed(log, epoch_cache_sync(&log->epochs, log_fs(log), log_path(log), &named),
                         "sync", EPOCH_FILE_NAME);
    if (named)
        atomic_store(&log->names_dirty, true);
    if (!err)
        err = log_failed(log, log_sync_folder(log), "sync the dir of", NULL);
    if (!err && atomic_exchange(&log->names_dirty, false)) {
        err = log_failed(log, fs_sync_dir(log_fs(log), log_path(log)), "sync", NULL);
        if (err) /* after a shortage the next flush has to do it */
            atomic_store(&log->names_dirty, true);
    }
    if (!err && log_offline(log))
        err = -EIO; /* another thread met the error that ours may have missed */
    if (err)
        return err;
    raise_recovery_point(log, target);
    atomic_store_explicit(&log->last_flush_ms, clock_wall_ms(log->folder.dir->clock),
                          memory_order_relaxed);
    return 0;
}

int log_sync_to(struct log *log, int64_t target)
{
    struct log_dir *d = log->folder.dir;
    int64_t began = clock_mono_ns(d->clock);
    int err = sync_to(log, target);
    histogram_add(&d->flushes_us, (uint64_t)(clock_mono_ns(d->clock) - began) / 1000);
    return err;
}

int64_t log_flush_bound(struct log *log)
{
    const struct log_config *c = log_config_ref(log);
    int64_t most = c->flush_messages - 1, flushed = log_recovery_point(log);
    log_config_unref(c);
    return most < INT64_MAX - flushed ? flushed + most : INT64_MAX;
}

enum kerr log_flush(struct log *log)
{
    pthread_mutex_lock(&log->flush_lock);
    enum kerr code = log_usable(log);
    int64_t target = log_end_offset(log);
    if (!code && (target > log_recovery_point(log) || atomic_load(&log->names_dirty)))
        code = log_kerr(log_sync_to(log, target));
    pthread_mutex_unlock(&log->flush_lock);
    return code;
}

static int seal_locked(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    atomic_store(&log->gone, true); /* nobody appends any more */
    int err = log_flush_metadata(log);
    if (!err)
        err = log_take_snapshot(log, log_end_offset(log), false);
    if (!err)
        err = segment_seal(segment_list_active(log->segments.now));
    pthread_mutex_unlock(&log->lock);
    return err;
}

int log_seal(struct log *log)
{
    int err = 0;
    pthread_mutex_lock(&log->flush_lock);
    if (log_offline(log))
        err = -EIO;
    else if (!atomic_load(&log->gone) && log->touched) {
        err = seal_locked(log);
        log->sealed = !err;
    }
    atomic_store(&log->gone, true);
    pthread_mutex_unlock(&log->flush_lock);
    return err;
}

int log_close(struct log *log)
{
    int err = log_seal(log);
    pthread_mutex_lock(&log->flush_lock);
    if (!err && log->sealed) {
        err = log->last_snapshot ? sync_snapshot(log, log->last_snapshot) : 0;
        if (!err)
            err = log_sync_to(log, log_end_offset(log));
        log->sealed = false;
    }
    pthread_mutex_unlock(&log->flush_lock);
    return err;
}
