/* log_replace.c - compacted segments take the place of those they were made from.
 *
 * ORDER     1 the list of segments is exchanged: readers see the new ones, whose files are open, so
 *           their names do not matter yet; 2 .cleaned becomes .swap, highest base first, and the
 *           folder is synced; 3 the old files become .deleted; 4 .swap becomes the real name,
 *           lowest base first, and the folder is synced; 5 the old files may go.
 *
 * CRASH     before all are .swap (2) the next start drops the new files and keeps the old ones;
 *           from then on it completes the exchange (log_swap.c). The sync between 2 and 3 is there
 *           because nothing promises that renames reach the disk in the order they were made.
 *
 * LOCKS     flush_lock over all of it: no truncation, retention or deletion meanwhile. lock only
 *           for the exchange of the list, so appends wait for no rename. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "log/log_private.h"

/* Index of old[0] in the list if all of `old` stand there in a row, in front of the active one. */
static int find_row(const struct segment_list *l, struct segment *const *old, int n)
{
    int at = segment_list_floor(l, old[0]->base);
    if (at < 0 || at + n >= l->n)
        return -1;
    for (int i = 0; i < n; i++)
        if (l->v[at + i] != old[i])
            return -1;
    return at;
}

static struct segment_list *list_with(const struct segment_list *l, int at, int old_n,
                                      struct segment *const *made, int made_n)
{
    int n = 0;
    struct segment **v = malloc((size_t)(l->n + made_n) * sizeof(*v));
    if (!v)
        return NULL;
    for (int i = 0; i < at; i++)
        v[n++] = l->v[i];
    for (int i = 0; i < made_n; i++)
        v[n++] = made[i];
    for (int i = at + old_n; i < l->n; i++)
        v[n++] = l->v[i];
    struct segment_list *out = segment_list_new(v, n);
    free(v);
    return out;
}

static int exchange(struct log *log, struct segment *const *old, int old_n,
                    struct segment *const *made, int made_n)
{
    struct segment_list *now = log->segments.now;
    int at = log_usable(log) ? -1 : find_row(now, old, old_n);
    if (at < 0)
        return -ECANCELED;
    struct segment_list *l = list_with(now, at, old_n, made, made_n);
    if (!l)
        return -ENOMEM;
    for (int i = 0; i < made_n; i++)
        made[i]->stage = LOG_STAGE_LIVE;
    /* In this order: whoever finds the new list sees the count, and whoever finds an old segment
     * doomed finds the new list. */
    atomic_fetch_add(&log->replacements, 1);
    segment_lists_publish(&log->segments, l);
    for (int i = 0; i < old_n; i++)
        atomic_store(&old[i]->doomed, true);
    return 0;
}

/* Renames the files of one base; those that may not exist are missed by nobody. */
static int rename_files(struct log *log, int64_t base, enum log_file_kind last,
                        enum log_file_stage from, enum log_file_stage to)
{
    for (int kind = LOG_FILE_DATA; kind <= (int)last; kind++) {
        char path[LOG_PATH_MAX], path_to[LOG_PATH_MAX];
        log_file_path(path, log_path(log), base, (enum log_file_kind)kind, from);
        log_file_path(path_to, log_path(log), base, (enum log_file_kind)kind, to);
        int err = fs_rename(log_fs(log), path, path_to);
        if (err == -ENOENT && kind != LOG_FILE_DATA)
            continue;
        if (err) {
            log_dir_fail(log->folder.dir, err, "rename %s", path);
            return err;
        }
    }
    return 0;
}

static bool has_base(struct segment *const *made, int n, int64_t base)
{
    for (int i = 0; i < n; i++)
        if (made[i]->base == base)
            return true;
    return false;
}

/* A snapshot of producers belongs to the segment of its base, whichever that is. */
static enum log_file_kind last_kind(const struct segment *old, struct segment *const *made, int n)
{
    return has_base(made, n, old->base) ? LOG_FILE_TXN : LOG_FILE_SNAPSHOT;
}

/* Shortages included: the log is made of the new segments already, so there is no way back. */
static int sync_folder(struct log *log)
{
    int err = fs_sync_dir(log_fs(log), log_path(log));
    if (err)
        log_dir_fail(log->folder.dir, err, "sync %s", log_path(log));
    return err;
}

static int rename_all(struct log *log, struct segment *const *old, int old_n,
                      struct segment *const *made, int made_n)
{
    int err = 0;
    for (int i = made_n - 1; i >= 0 && !err; i--)
        err = rename_files(log, made[i]->base, LOG_FILE_TXN, LOG_STAGE_CLEANED, LOG_STAGE_SWAP);
    if (!err)
        err = sync_folder(log);
    for (int i = 0; i < old_n && !err; i++)
        err = rename_files(log, old[i]->base, last_kind(old[i], made, made_n), LOG_STAGE_LIVE,
                           LOG_STAGE_DELETED);
    for (int i = 0; i < made_n && !err; i++)
        err = rename_files(log, made[i]->base, LOG_FILE_TXN, LOG_STAGE_SWAP, LOG_STAGE_LIVE);
    if (!err)
        err = sync_folder(log);
    return err;
}

/* Only now: what is gone for good must not come back by a name that was not on disk. */
static void doom_files(struct log *log, const struct segment *old, enum log_file_kind last,
                       int64_t delay_ms)
{
    for (int kind = LOG_FILE_DATA; kind <= (int)last; kind++) {
        char path[LOG_PATH_MAX];
        log_file_path(path, log_path(log), old->base, (enum log_file_kind)kind, LOG_STAGE_DELETED);
        log_dir_doom(log->folder.dir, path, false, delay_ms);
    }
}

int log_replace(struct log *log, struct segment *const *old, int old_n, struct segment *const *made,
                int made_n)
{
    pthread_mutex_lock(&log->flush_lock);
    pthread_mutex_lock(&log->lock);
    int64_t delay_ms = log->config->c.file_delete_delay_ms;
    int err = exchange(log, old, old_n, made, made_n);
    pthread_mutex_unlock(&log->lock);
    if (!err) /* every error from here on has taken the dir offline */
        err = rename_all(log, old, old_n, made, made_n);
    for (int i = 0; i < made_n && !err; i++)
        segment_economize(made[i]);
    for (int i = 0; i < old_n && !err; i++)
        doom_files(log, old[i], last_kind(old[i], made, made_n), delay_ms);
    pthread_mutex_unlock(&log->flush_lock);
    return err;
}

int log_cuts(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    int cuts = log->cuts;
    pthread_mutex_unlock(&log->lock);
    return cuts;
}

void log_set_cleaned(struct log *log, int64_t offset, int cuts)
{
    pthread_mutex_lock(&log->lock);
    if (log->cuts == cuts)
        atomic_store(&log->cleaned_to, offset);
    pthread_mutex_unlock(&log->lock);
}
