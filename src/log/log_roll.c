/* log_roll.c - when a segment is full or old enough, and beginning the next one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "log/log_private.h"
#include "log/producer_snapshot.h"

static int64_t roll_ms(const struct log_config *c)
{
    /* the active segment cannot be compacted, so it must not be older than compaction may lag */
    if ((c->cleanup_policy & CLEANUP_COMPACT) && c->max_compaction_lag_ms < c->segment_ms)
        return c->max_compaction_lag_ms;
    return c->segment_ms;
}

/* By the records' own times where there are any, so that a quiet partition does not roll. */
static int64_t waited_ms(const struct log *log, const struct segment *s, int64_t max_timestamp)
{
    int64_t waited;
    if (s->first_timestamp >= 0) /* timestamps are the clients' and may be anything */
        return __builtin_sub_overflow(max_timestamp, s->first_timestamp, &waited) ? 0 : waited;
    return clock_wall_ms(log->folder.dir->clock) - s->created_ms;
}

int log_should_roll(struct log *log, const struct segment *s, int64_t n, int64_t max_timestamp,
                    int64_t last_offset, bool *roll)
{
    const struct log_config *c = &log->config->c;
    int64_t size = segment_size(s);
    int64_t relative = last_offset - s->base;
    *roll = size > c->segment_bytes - n ||
            (size > 0 && waited_ms(log, s, max_timestamp) > roll_ms(c) - s->jitter_ms) ||
            index_file_full(&s->offsets, 0) || index_file_full(&s->times, 1) || relative < 0 ||
            relative > INT32_MAX;
    return 0;
}

int log_take_snapshot(struct log *log, int64_t offset, bool sync)
{
    char name[64];
    if (offset <= log->last_snapshot)
        return 0;
    int err = producer_snapshot_write(&log->producers, log_fs(log), log_path(log), offset, sync);
    if (log_error_is_shortage(err))
        return 0; /* the one before it does: more to read at the next start */
    atomic_store(&log->names_dirty, true);
    if (err) {
        snprintf(name, sizeof(name), "%020" PRId64 ".snapshot", offset);
        return log_failed(log, err, "write", name);
    }
    log->last_snapshot = offset;
    return 0;
}

int log_roll(struct log *log, int64_t base)
{
    struct segment_list *now = log->segments.now;
    struct segment *old = segment_list_active(now), *next;
    /* An empty one with this base is as good as a new one; only its age begins anew. */
    if (segment_size(old) == 0 && old->base == base) {
        old->created_ms = clock_wall_ms(log->folder.dir->clock);
        return 0;
    }
    int err = segment_create(&log->folder, base, &log->config->c, &next);
    if (err)
        return err;
    atomic_store(&log->names_dirty, true);
    log->touched = true;
    struct segment_list *l = segment_list_head(now, now->n, next);
    err = l ? segment_seal(old) : -ENOMEM;
    if (!err)
        err = log_take_snapshot(log, base, false);
    if (err) { /* sealing does no harm: the old one can go on being active */
        segment_discard(next);
        segment_list_unpin(l);
    } else {
        segment_lists_publish(&log->segments, l);
    }
    segment_unref(next);
    return err;
}
