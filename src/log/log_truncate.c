/* log_truncate.c - cutting a log back: a follower that has diverged from its leader.
 *
 * Readers keep the segments they pinned; a segment that is cut becomes a new object, so that no
 * index changes under anybody.
 *
 * CRASH  The cut is synced before the epoch file changes and before new records come: else a crash
 *        could bring back the old records under epochs that are not theirs, and nobody would see
 *        the divergence. The recovery point on disk must follow too, or records written later would
 *        be trusted unread; and the point up to which the log is compacted, or they would never be
 *        compacted. All of it is rare enough to be done under the locks. */
#include <errno.h>
#include <stdlib.h>

#include "log/log_load.h"
#include "log/log_private.h"

/* Dooms the segments of l from `first` on. */
static int doom_from(struct log *log, const struct segment_list *l, int first)
{
    int err = 0;
    int64_t delay = log->config->c.file_delete_delay_ms;
    for (int i = l->n - 1; i >= first && !err; i--) /* from the end: what is left is a prefix */
        err = segment_doom(l->v[i], delay);
    atomic_store(&log->names_dirty, true);
    return err;
}

static void lower(_Atomic int64_t *v, int64_t to)
{
    int64_t now = atomic_load(v);
    while (now > to && !atomic_compare_exchange_weak(v, &now, to))
        ;
}

/* What comes behind the cut is not compacted. */
static void cut_cleaned(struct log *log, int64_t end)
{
    log->cuts++;
    if (atomic_load(&log->cleaned_to) > end)
        atomic_store(&log->cleaned_saved, false);
    lower(&log->cleaned_to, end);
}

/* Once files are renamed away a shortage counts as a failure, too: half done is not an option. */
static int must(struct log *log, int err, const char *doing)
{
    if (err)
        log_dir_fail(log->folder.dir, err, "%s %s", doing, log_path(log));
    return err;
}

static int sync_names(struct log *log)
{
    return must(log, fs_sync_dir(log_fs(log), log_path(log)), "sync");
}

/* The segment that was cut or made, and its names, on disk. */
static int sync_cut(struct log *log, struct segment *s)
{
    int err = must(log, segment_sync(s, true), "cut");
    return err ? err : sync_names(log);
}

/* The log ends at `end` now. The watermark follows the end, and the rest the watermark. */
static int set_end(struct log *log, int64_t end)
{
    atomic_store(&log->end, end);
    lower(&log->recovery_point, end);
    lower(&log->start, end);
    cut_cleaned(log, end);
    log_bound_high_watermark(log);
    int err = 0;
    if (epoch_cache_cut_end(&log->epochs, end))
        err = log_save_epochs(log, true);
    if (!err)
        err = must(log, log_reload_producers(log, end), "reload the producers of");
    return err;
}

static int cut_segments(struct log *log, int64_t offset)
{
    struct segment_list *now = log->segments.now;
    struct segment *cut;
    int i = segment_list_floor(now, offset);
    int err = doom_from(log, now, i + 1);
    /* Later segments must not come back behind one that was cut: that would be a hole. */
    if (!err && i + 1 < now->n)
        err = sync_names(log);
    if (!err) {
        err = segment_truncated(now->v[i], offset, &log->config->c, &cut);
        if (i + 1 < now->n)
            must(log, err, "cut");
    }
    if (err)
        return err;
    struct segment_list *l = segment_list_head(now, i, cut);
    segment_unref(cut);
    if (!l)
        return must(log, -ENOMEM, "cut");
    segment_lists_publish(&log->segments, l);
    return sync_cut(log, segment_list_active(l));
}

static int start_over(struct log *log, int64_t offset)
{
    struct segment_list *now = log->segments.now;
    struct segment *fresh;
    int err = doom_from(log, now, 0);
    if (!err)
        err =
            must(log, segment_create(&log->folder, offset, &log->config->c, &fresh), "begin anew");
    if (err)
        return err;
    struct segment_list *l = segment_list_new(&fresh, 1);
    segment_unref(fresh);
    if (!l)
        return must(log, -ENOMEM, "begin anew");
    segment_lists_publish(&log->segments, l);
    return sync_cut(log, segment_list_active(l));
}

/* The points on disk must not be above what was cut. Without locks: it asks all logs. */
static int save_points(struct log *log)
{
    struct log_dir *d = log->folder.dir;
    int err = 0;
    if (atomic_load(&log->saved_recovery_point) > log_recovery_point(log) &&
        d->save_recovery_points)
        err = d->save_recovery_points(d->save_arg, d);
    if (!err && !atomic_exchange(&log->cleaned_saved, true) && d->save_cleaned)
        err = d->save_cleaned(d->save_arg, d);
    return err;
}

enum kerr log_truncate_fully(struct log *log, int64_t offset)
{
    if (offset < 0)
        offset = 0;
    if (offset >= LOG_OFFSET_LIMIT)
        return KERR_OFFSET_OUT_OF_RANGE;
    pthread_mutex_lock(&log->flush_lock);
    pthread_mutex_lock(&log->lock);
    enum kerr code = log_usable(log);
    if (!code) {
        log->touched = true;
        int err = start_over(log, offset);
        epoch_cache_clear(&log->epochs);
        if (!err)
            err = log_save_epochs(log, true);
        if (!err) {
            /* in an order in which no reader sees a start above the end */
            lower(&log->start, offset);
            atomic_store(&log->end, offset);
            atomic_store(&log->high_watermark, offset);
            atomic_store(&log->start, offset);
            lower(&log->recovery_point, offset);
            cut_cleaned(log, offset);
            err = must(log, log_reload_producers(log, offset), "reload the producers of");
        }
        code = log_kerr(err);
    }
    pthread_mutex_unlock(&log->lock);
    pthread_mutex_unlock(&log->flush_lock);
    if (!code)
        code = log_kerr(save_points(log));
    return code;
}

enum kerr log_truncate_to(struct log *log, int64_t offset)
{
    int64_t first_base;
    pthread_mutex_lock(&log->flush_lock);
    pthread_mutex_lock(&log->lock);
    first_base = log->segments.now->v[0]->base;
    enum kerr code = log_usable(log);
    bool whole = !code && offset < first_base;
    if (!code && !whole) {
        int err = 0;
        if (offset >= log_end_offset(log)) {
            if (epoch_cache_cut_end(&log->epochs, log_end_offset(log)))
                err = log_save_epochs(log, true);
        } else {
            log->touched = true;
            err = cut_segments(log, offset);
            if (!err)
                err = set_end(log, offset);
        }
        code = log_kerr(err);
    }
    pthread_mutex_unlock(&log->lock);
    pthread_mutex_unlock(&log->flush_lock);
    if (whole)
        return log_truncate_fully(log, offset);
    if (!code)
        code = log_kerr(save_points(log));
    return code;
}

int log_reload_producers(struct log *log, int64_t offset)
{
    struct segment_list *l = log_pin(log);
    int err = log_load_producers(log, l->v, l->n, offset, false);
    segment_list_unpin(l);
    if (!err)
        err = log_take_snapshot(log, offset, true);
    log_update_unstable(log);
    return err;
}
