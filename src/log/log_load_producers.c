/* log_load_producers.c - the producers' state from snapshots and batches. */
#include <errno.h>
#include <inttypes.h>

#include "base/logline.h"
#include "log/log_load.h"
#include "log/log_private.h"
#include "log/producer_snapshot.h"
#include "log/segment_recover.h"

static int remove_snapshot(struct log *log, int64_t offset)
{
    char path[LOG_PATH_MAX];
    log_file_path(path, log_path(log), offset, LOG_FILE_SNAPSHOT, LOG_STAGE_LIVE);
    int err = fs_unlink(log_fs(log), path);
    if (err == -ENOENT)
        return 0;
    if (err)
        log_dir_fail(log->folder.dir, err, "remove %s", path);
    return err;
}

/* The newest snapshot that reads well; -1 without one. Those that are no use are removed. */
static int newest_snapshot(struct log *log, const struct log_names *names, int64_t upto,
                           int64_t *found)
{
    int64_t start = log_start_offset(log);
    int err = 0;
    *found = -1;
    for (int i = names->n - 1; i >= 0 && !err; i--) {
        const struct log_file_name *f = &names->v[i];
        if (f->kind != LOG_FILE_SNAPSHOT || f->stage != LOG_STAGE_LIVE)
            continue;
        if (f->base > upto || f->base <= start) {
            err = remove_snapshot(log, f->base);
            continue;
        }
        if (*found >= 0)
            continue;
        int rc = producer_snapshot_read(&log->producers, log_fs(log), log_path(log), f->base,
                                        clock_wall_ms(log->folder.dir->clock),
                                        log->config->c.producer_id_expiration_ms);
        if (rc == 0) {
            *found = f->base;
        } else if (rc == -EBADMSG) {
            say_warn("log", "%s/%020" PRId64 ".snapshot is damaged: the one before it is used",
                     log_path(log), f->base);
            err = remove_snapshot(log, f->base);
        } else if (rc != -ENOENT) {
            err = log_failed(log, rc, "read a snapshot in", NULL);
        }
    }
    return err;
}

/* Applies the batches in [from, upto), with a snapshot at the last two segments' bases, where a
 * truncation or the next start may want to begin. */
static int replay(struct log *log, struct segment *const *segments, int n, int64_t from,
                  int64_t upto)
{
    int err = 0;
    for (int i = 0; i < n && !err; i++) {
        struct segment *s = segments[i];
        if (i + 1 < n && segments[i + 1]->base <= from)
            continue;
        if (s->base >= upto)
            break;
        if (i >= n - 2 && s->base > from)
            err = log_take_snapshot(log, s->base, false);
        if (!err && segment_size(s) > 0)
            err = segment_replay_producers(s, from, upto, &log->producers);
    }
    return err;
}

/* No producers so far: snapshots that say so spare the next start, or a truncation, the search. */
static int mark_empty(struct log *log, struct segment *const *segments, int n)
{
    int err = 0;
    for (int i = n >= 2 ? n - 2 : 0; i < n && !err; i++)
        if (segments[i]->base > log_start_offset(log))
            err = log_take_snapshot(log, segments[i]->base, false);
    return err;
}

int log_load_producers(struct log *log, struct segment *const *segments, int n, int64_t upto,
                       bool reset_ok)
{
    struct log_names names;
    int64_t from;
    producer_state_free(&log->producers);
    log->last_snapshot = log->restored_at = 0;
    int err = log_failed(log, log_names_list(log_fs(log), log_path(log), &names), "list", NULL);
    if (err)
        return err;
    err = newest_snapshot(log, &names, upto, &from);
    log_names_free(&names);
    if (err)
        return err;
    if (from >= 0)
        log->last_snapshot = log->restored_at = from;
    else if (reset_ok)
        return mark_empty(log, segments, n);
    if (from < log_start_offset(log))
        from = log_start_offset(log);
    return from < upto ? replay(log, segments, n, from, upto) : 0;
}
