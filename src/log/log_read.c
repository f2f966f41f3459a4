/* log_read.c - from an offset to a range of a file. No lock is taken: the segment list is pinned,
 * and everything below a published offset is in the files. */
#include <errno.h>
#include <string.h>

#include "log/log_private.h"

enum { TRIES = 16 /* segments that vanish while they are read: look again */ };

/* Where in s the records at and above `limit` begin. */
static int limit_position(const struct segment_list *l, int i, struct file *f, int64_t limit,
                          int64_t *pos)
{
    struct segment *s = l->v[i];
    struct batch b;
    int64_t size = segment_size(s);
    *pos = size;
    if (i + 1 < l->n && l->v[i + 1]->base <= limit)
        return 0;
    if (limit <= s->base) {
        *pos = 0;
        return 0;
    }
    int found = segment_find(s, f, limit, size, &b, pos);
    if (found == 0)
        *pos = size;
    return found < 0 ? found : 0;
}

static uint32_t slice_length(int64_t have, uint32_t first, uint32_t max, bool min_one, bool hard)
{
    int64_t want = max;
    if (!hard && first > want)
        want = min_one ? first : 0;
    return (uint32_t)(have < want ? have : want);
}

/* The slice in segment i. 1 found, 0 nothing of that offset in it, or -errno. */
static int read_segment(const struct segment_list *l, int i, int64_t offset, uint32_t max_bytes,
                        int64_t limit, bool min_one, bool hard, struct log_slice *out)
{
    struct segment *s = l->v[i];
    struct file *f;
    struct batch b;
    int64_t end, pos;
    if (segment_size(s) == 0)
        return 0;
    int err = segment_file(s, &f);
    if (err)
        return err;
    err = limit_position(l, i, f, limit, &end);
    int found = err ? err : segment_find(s, f, offset, end, &b, &pos);
    if (found == 1) {
        out->len = slice_length(end - pos, b.size, max_bytes, min_one, hard);
        out->first_incomplete = !hard && out->len == 0;
        out->pos = pos;
        out->first_offset = b.base_offset;
        out->older_segment = i + 1 < l->n && l->v[i + 1]->base < limit;
    }
    if (found == 1 && out->len > 0)
        out->file = f;
    else
        file_unref(f);
    return found;
}

/* -ESTALE when what was looked at is no longer what the log is made of. */
static int try_read(struct log *log, int64_t offset, uint32_t max_bytes, int64_t limit,
                    bool min_one, bool hard, struct log_slice *out)
{
    struct segment_list *l = log_pin(log);
    int i = segment_list_floor(l, offset);
    int found = 0;
    for (i = i < 0 ? 0 : i; i < l->n && found == 0 && l->v[i]->base < limit; i++) {
        found = read_segment(l, i, offset, max_bytes, limit, min_one, hard, out);
        if (found >= 0 && atomic_load(&l->v[i]->doomed))
            found = -ESTALE;
    }
    segment_list_unpin(l);
    if (found >= 0)
        return 0;
    file_unref(out->file);
    out->file = NULL;
    return found;
}

enum kerr log_read(struct log *log, int64_t offset, uint32_t max_bytes, int64_t limit_offset,
                   bool min_one, bool hard_limit, struct log_slice *out)
{
    for (int try = 0; try < TRIES; try++) {
        *out = (struct log_slice){.first_offset = -1};
        enum kerr code = log_usable(log);
        if (code)
            return code;
        int64_t end = log_end_offset(log);
        if (offset < log_start_offset(log) || offset > end)
            return KERR_OFFSET_OUT_OF_RANGE;
        int64_t limit = limit_offset < end ? limit_offset : end;
        if (offset >= limit)
            return KERR_NONE;
        int err = try_read(log, offset, max_bytes, limit, min_one, hard_limit, out);
        /* The start may have passed the offset meanwhile: what was found then lies behind a hole.
         */
        if (err == 0 && (!out->file || out->first_offset > offset) &&
            offset < log_start_offset(log)) {
            file_unref(out->file);
            *out = (struct log_slice){.first_offset = -1};
            return KERR_OFFSET_OUT_OF_RANGE;
        }
        if (err == 0)
            return KERR_NONE;
        if (err != -ESTALE)
            return log_kerr(err);
    }
    return KERR_OFFSET_OUT_OF_RANGE;
}

/* Position of an offset counted over all segments of the list, by the index alone. */
static int64_t rough_position(const struct segment_list *l, int64_t offset)
{
    int64_t pos = 0;
    for (int i = 0; i < l->n; i++) {
        struct segment *s = l->v[i];
        int64_t size = segment_size(s);
        bool last = i + 1 == l->n;
        if (!last && l->v[i + 1]->base <= offset) {
            pos += size;
            continue;
        }
        struct index_view v;
        if (offset > s->base && segment_offsets(s, &v) == 0) {
            int64_t at = offset_index_floor(&v, s->base, offset).position;
            pos += at < size ? at : size;
        }
        break;
    }
    return pos;
}

int64_t log_bytes_between(struct log *log, int64_t from, int64_t to)
{
    if (from >= to || log_usable(log))
        return 0;
    struct segment_list *l = log_pin(log);
    int64_t all = 0;
    for (int i = 0; i < l->n; i++)
        all += segment_size(l->v[i]);
    int64_t end = to >= log_end_offset(log) ? all : rough_position(l, to);
    int64_t n = end - rough_position(l, from);
    segment_list_unpin(l);
    return n > 0 ? n : 0;
}

/* ---- aborted transactions ---- */

/* The offset behind what the slice holds, as far as the index tells. */
static int slice_end(const struct segment_list *l, int i, int64_t log_end,
                     const struct log_slice *slice, int64_t *end)
{
    struct offset_position at;
    struct index_view v;
    int err = segment_offsets(l->v[i], &v);
    if (err)
        return err;
    if (offset_index_from_position(&v, l->v[i]->base, slice->pos + slice->len, &at) && !v.error)
        *end = at.offset;
    else
        *end = i + 1 < l->n ? l->v[i + 1]->base : log_end;
    return segment_failed(l->v[i], LOG_FILE_INDEX, v.error, "read");
}

struct aborted_list {
    struct arena *arena;
    struct aborted_txn *v;
    int n, cap;
};

static int add_aborted(void *arg, const struct txn_entry *e)
{
    struct aborted_list *a = arg;
    if (a->n == a->cap) {
        int cap = a->cap ? a->cap * 2 : 8;
        struct aborted_txn *v = arena_array(a->arena, struct aborted_txn, (size_t)cap);
        if (!v)
            return -ENOMEM;
        if (a->n)
            memcpy(v, a->v, (size_t)a->n * sizeof(*v));
        a->v = v;
        a->cap = cap;
    }
    a->v[a->n++] = (struct aborted_txn){e->producer_id, e->first_offset};
    return 0;
}

enum kerr log_aborted_txns(struct log *log, int64_t offset, const struct log_slice *slice,
                           struct arena *a, struct aborted_txn **out, int *n)
{
    struct aborted_list list = {.arena = a};
    *out = NULL;
    *n = 0;
    if (slice->len == 0)
        return KERR_NONE;
    enum kerr code = log_usable(log);
    if (code)
        return code;
    struct segment_list *l = log_pin(log);
    int i = segment_list_floor(l, slice->first_offset);
    i = i < 0 ? 0 : i;
    int64_t upper;
    int rc = slice_end(l, i, log_end_offset(log), slice, &upper);
    for (; i < l->n && rc == 0; i++)
        rc = segment_aborted(l->v[i], offset, upper, add_aborted, &list);
    segment_list_unpin(l);
    *out = list.v;
    *n = list.n;
    if (rc == -ESTALE) /* deleted meanwhile: the reader comes again and is told */
        return KERR_OFFSET_OUT_OF_RANGE;
    return rc < 0 ? log_kerr(rc) : KERR_NONE;
}

enum kerr log_read_committed(struct log *log, int64_t offset, uint32_t max_bytes,
                             int64_t limit_offset, bool min_one, bool hard_limit, struct arena *a,
                             struct log_slice *slice, struct aborted_txn **aborted, int *n)
{
    for (int try = 0; try < TRIES; try++) {
        uint64_t seen = atomic_load(&log->replacements);
        enum kerr code = log_read(log, offset, max_bytes, limit_offset, min_one, hard_limit, slice);
        if (!code)
            code = log_aborted_txns(log, offset, slice, a, aborted, n);
        if (!code && atomic_load(&log->replacements) == seen)
            return KERR_NONE;
        file_unref(slice->file);
        slice->file = NULL;
        if (code && atomic_load(&log->replacements) == seen)
            return code;
    }
    /* Replaced each time: nothing for now, the reader comes again. */
    *slice = (struct log_slice){.first_offset = -1};
    *aborted = NULL;
    *n = 0;
    return KERR_NONE;
}
