/* log_lookup.c - ListOffsets: an offset by time, or one of the special times. */
#include <errno.h>
#include <stdlib.h>

#include "log/log_private.h"

enum { TRIES = 3, WINDOW = 16 << 10 };

struct search {
    struct log *log;
    int64_t timestamp;
    int64_t from; /* no record below counts */
    bool exact;   /* exactly that time, instead of that or later */
    struct offset_lookup *out;
};

/* The first record of the batch that matches. 1 found, 0 none, -errno. */
static int search_batch(const struct search *q, struct file *f, struct batch *b, int64_t pos,
                        struct buf *bytes)
{
    struct record_iter *it;
    struct record r;
    int rc = file_batch_load(f, pos, b, bytes);
    if (!rc)
        rc = record_iter_open(b, &it);
    if (rc)
        return rc;
    while ((rc = record_iter_next(it, &r)) == 1) {
        if (r.offset < q->from ||
            (q->exact ? r.timestamp != q->timestamp : r.timestamp < q->timestamp))
            continue;
        *q->out = (struct offset_lookup){r.offset, r.timestamp, b->leader_epoch};
        break;
    }
    record_iter_close(it);
    return rc;
}

static int search_segment(const struct search *q, struct segment *s, int64_t near)
{
    uint8_t *window = malloc(WINDOW);
    struct buf bytes = BUF_INIT;
    struct file_batches w;
    struct batch b;
    struct file *f = NULL;
    int64_t pos, size = segment_size(s);
    int rc = window ? segment_file(s, &f) : -ENOMEM;
    if (!rc)
        rc = segment_walk(s, f, near, size, window, WINDOW, &w);
    while (!rc && file_batches_next(&w, &b, &pos) == BATCH_OK) {
        if (b.last_offset < q->from ||
            (q->exact ? b.max_timestamp != q->timestamp : b.max_timestamp < q->timestamp))
            continue;
        rc = search_batch(q, f, &b, pos, &bytes);
        if (rc == -EBADMSG) /* not readable: as if the batch had no such record */
            rc = 0;
    }
    if (!rc)
        rc = w.error;
    if (rc < 0 && rc != -ESTALE)
        rc = segment_failed(s, LOG_FILE_DATA, rc, "read");
    file_unref(f);
    buf_free(&bytes);
    free(window);
    return rc;
}

/* Largest timestamp of a segment; without any, when its file was changed last. */
static int newest_time(struct segment *s, int64_t *t)
{
    struct time_offset max;
    int err = segment_max_time(s, &max);
    if (!err && max.timestamp < 0)
        err = segment_mtime(s, &max.timestamp);
    *t = max.timestamp;
    return err;
}

static int by_time(const struct search *q, const struct segment_list *l)
{
    for (int i = 0; i < l->n; i++) {
        struct segment *s = l->v[i];
        struct index_view v;
        int64_t newest;
        if (i + 1 < l->n && l->v[i + 1]->base <= q->from)
            continue;
        int rc = newest_time(s, &newest);
        if (rc)
            return rc;
        if (newest < q->timestamp)
            continue;
        int64_t near = s->base;
        rc = segment_times(s, &v);
        if (!rc)
            near = time_index_floor(&v, s->base, q->timestamp).offset;
        index_view_close(&v);
        if (rc)
            return rc;
        if (v.error)
            return segment_failed(s, LOG_FILE_TIME, v.error, "read");
        rc = search_segment(q, s, near > q->from ? near : q->from);
        if (rc)
            return rc;
    }
    return 0;
}

static int by_max(struct search *q, const struct segment_list *l)
{
    struct segment *best = NULL;
    struct time_offset max = {-1, -1};
    for (int i = 0; i < l->n; i++) {
        struct time_offset t;
        int rc = segment_max_time(l->v[i], &t);
        if (rc)
            return rc;
        if (t.timestamp > max.timestamp) {
            max = t;
            best = l->v[i];
        }
    }
    if (!best)
        return 0;
    q->timestamp = max.timestamp;
    q->exact = true;
    return search_segment(q, best, max.offset);
}

static int search_records(struct log *log, int64_t timestamp, struct offset_lookup *out)
{
    int rc = -ESTALE;
    for (int try = 0; try < TRIES && rc == -ESTALE; try++) {
        uint64_t seen = atomic_load(&log->replacements);
        struct search q = {
            .log = log, .timestamp = timestamp, .from = log_start_offset(log), .out = out};
        struct segment_list *l = log_pin(log);
        rc = timestamp == LIST_MAX_TIMESTAMP ? by_max(&q, l) : by_time(&q, l);
        segment_list_unpin(l);
        if (atomic_load(&log->replacements) != seen) /* names may have led to newer files */
            rc = -ESTALE;
        if (rc == -ESTALE)
            log_await_change(log);
    }
    return rc;
}

enum kerr log_lookup(struct log *log, int64_t timestamp, int64_t limit_offset,
                     struct offset_lookup *out)
{
    const struct offset_lookup nothing = {-1, -1, -1};
    *out = nothing;
    enum kerr code = log_usable(log);
    if (code)
        return code;
    switch (timestamp) {
    case LIST_LATEST:
        *out = (struct offset_lookup){limit_offset, -1, epoch_cache_latest(&log->epochs)};
        return KERR_NONE;
    case LIST_EARLIEST:
    case LIST_EARLIEST_LOCAL:
        out->offset = log_start_offset(log);
        out->leader_epoch = epoch_cache_earliest(&log->epochs, out->offset);
        return KERR_NONE;
    case LIST_LATEST_TIERED:
        return KERR_NONE;
    default:
        break;
    }
    if (timestamp < 0 && timestamp != LIST_MAX_TIMESTAMP)
        return KERR_NONE;
    int rc = search_records(log, timestamp, out);
    if (rc != 1 || out->offset >= limit_offset)
        *out = nothing;
    return rc < 0 ? log_kerr(rc) : KERR_NONE;
}

/* ---- ListOffsets v0 ---- */

struct offset_time {
    int64_t offset, time_ms;
};

/* Segment starts with the times of their last change, then the log end with the time now. */
static int collect_starts(struct log *log, const struct segment_list *l, struct offset_time *v,
                          int *n)
{
    int64_t start = log_start_offset(log), end = log_end_offset(log);
    *n = 0;
    for (int i = 0; i < l->n; i++) {
        struct segment *s = l->v[i];
        if (s->base > end) /* rolled meanwhile */
            break;
        int rc = segment_mtime(s, &v[*n].time_ms);
        if (rc)
            return rc;
        v[(*n)++].offset = s->base > start ? s->base : start;
    }
    if (segment_size(segment_list_active(l)) > 0)
        v[(*n)++] = (struct offset_time){end, clock_wall_ms(log->folder.dir->clock)};
    return 0;
}

/* The newest entry at or below the time; all of them for LATEST, the first for EARLIEST. */
static int pick(const struct offset_time *v, int n, int64_t timestamp)
{
    if (timestamp == LIST_LATEST)
        return n - 1;
    if (timestamp == LIST_EARLIEST)
        return 0;
    int i = n - 1;
    while (i >= 0 && v[i].time_ms > timestamp)
        i--;
    return i;
}

static int offsets_before(struct log *log, int64_t timestamp, int64_t limit_offset, int max,
                          struct arena *a, int64_t **out, int *n)
{
    *out = NULL;
    *n = 0;
    struct segment_list *l = log_pin(log);
    struct offset_time *v = malloc(((size_t)l->n + 1) * sizeof(*v));
    int found = 0;
    int rc = v ? collect_starts(log, l, v, &found) : -ENOMEM;
    int at = rc ? -1 : pick(v, found, timestamp);
    int most = at + 1 < max ? at + 1 : max;
    if (most > 0 && !(*out = arena_array(a, int64_t, (size_t)most)))
        rc = -ENOMEM;
    for (; !rc && *n < most && at >= 0; at--) {
        /* the bound of what this reader may see stands for all that lies above */
        int64_t offset = v[at].offset < limit_offset ? v[at].offset : limit_offset;
        if (*n == 0 || (*out)[*n - 1] != offset)
            (*out)[(*n)++] = offset;
    }
    free(v);
    segment_list_unpin(l);
    return rc;
}

enum kerr log_offsets_before(struct log *log, int64_t timestamp, int64_t limit_offset, int max,
                             struct arena *a, int64_t **out, int *n)
{
    *out = NULL;
    *n = 0;
    enum kerr code = log_usable(log);
    if (code)
        return code;
    int rc = -ESTALE;
    for (int try = 0; try < TRIES && rc == -ESTALE; try++)
        if ((rc = offsets_before(log, timestamp, limit_offset, max, a, out, n)) == -ESTALE)
            log_await_change(log);
    return log_kerr(rc);
}
