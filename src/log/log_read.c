/* log_read.c - from an offset to a range of a file. No lock is taken, but to wait for the end of a
 * cut that is in the way: the segment list is pinned, and everything below a published offset is in
 * the files. `now` in the arguments: as log_read_now,
 * without waiting for the disk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log_private.h"

enum {
    TRIES = 16,             /* segments that vanish while they are read: look again */
    PROBE_STEP = 128 << 10, /* the kernel reads ahead by as much: so one page of that tells */
    PAGE = 4096,
    WARM_CHUNK = 256 << 10
};

static int find(struct segment *s, struct file *f, int64_t offset, int64_t end, bool now,
                struct batch *b, int64_t *pos)
{
    return now ? segment_find_now(s, f, offset, end, b, pos)
               : segment_find(s, f, offset, end, b, pos);
}

/* Where in s the records at and above `limit` begin. */
static int limit_position(const struct segment_list *l, int i, struct file *f, int64_t limit,
                          bool now, int64_t *pos)
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
    int found = find(s, f, limit, size, now, &b, pos);
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

/* 0, or -EAGAIN when not all of the range is in memory. Its first page was just looked at. */
static int probe(struct file *f, int64_t pos, uint32_t len)
{
    uint8_t byte;
    int64_t last = pos + len - 1;
    for (int64_t at = pos + PROBE_STEP; at < last; at += PROBE_STEP) {
        ssize_t got = file_pread_now(f, &byte, 1, at);
        if (got < 0)
            return (int)got;
    }
    if (last / PAGE == pos / PAGE)
        return 0;
    ssize_t got = file_pread_now(f, &byte, 1, last);
    return got < 0 ? (int)got : 0;
}

/* The slice in segment i. 1 found, 0 nothing of that offset in it, or -errno. */
static int read_segment(const struct segment_list *l, int i, int64_t offset, uint32_t max_bytes,
                        int64_t limit, bool min_one, bool hard, bool now, struct log_slice *out)
{
    struct segment *s = l->v[i];
    struct file *f;
    struct batch b;
    int64_t end, pos;
    if (segment_size(s) == 0)
        return 0;
    int err = now ? segment_file_now(s, &f) : segment_file(s, &f);
    if (err)
        return err;
    err = limit_position(l, i, f, limit, now, &end);
    int found = err ? err : find(s, f, offset, end, now, &b, &pos);
    if (found == 1) {
        out->len = slice_length(end - pos, b.size, max_bytes, min_one, hard);
        err = now && out->len ? probe(f, pos, out->len) : 0;
        if (err) {
            file_unref(f);
            return segment_failed(s, LOG_FILE_DATA, err, "read");
        }
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
                    bool min_one, bool hard, bool now, struct log_slice *out)
{
    struct segment_list *l = log_pin(log);
    int i = segment_list_floor(l, offset);
    int found = 0;
    for (i = i < 0 ? 0 : i; i < l->n && found == 0 && l->v[i]->base < limit; i++) {
        found = read_segment(l, i, offset, max_bytes, limit, min_one, hard, now, out);
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

static enum kerr read_slice(struct log *log, int64_t offset, uint32_t max_bytes,
                            int64_t limit_offset, bool min_one, bool hard_limit, bool now,
                            struct log_slice *out)
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
        int err = try_read(log, offset, max_bytes, limit, min_one, hard_limit, now, out);
        if (err == -EAGAIN) {
            *out = (struct log_slice){.first_offset = -1, .cold = true};
            return KERR_NONE;
        }
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
        if (!now)
            log_await_change(log);
    }
    *out = (struct log_slice){.first_offset = -1, .cold = now};
    return now ? KERR_NONE : KERR_KAFKA_STORAGE_ERROR; /* the reader comes again */
}

enum kerr log_read(struct log *log, int64_t offset, uint32_t max_bytes, int64_t limit_offset,
                   bool min_one, bool hard_limit, struct log_slice *out)
{
    return read_slice(log, offset, max_bytes, limit_offset, min_one, hard_limit, false, out);
}

enum kerr log_read_now(struct log *log, int64_t offset, uint32_t max_bytes, int64_t limit_offset,
                       bool min_one, bool hard_limit, struct log_slice *out)
{
    return read_slice(log, offset, max_bytes, limit_offset, min_one, hard_limit, true, out);
}

void log_slice_warm(const struct log_slice *slice)
{
    uint8_t *scratch = slice->len ? malloc(WARM_CHUNK) : NULL;
    uint32_t at = 0;
    while (scratch && at < slice->len) {
        uint32_t left = slice->len - at;
        ssize_t got = file_pread(slice->file, scratch, left < WARM_CHUNK ? left : WARM_CHUNK,
                                 slice->pos + at);
        if (got <= 0)
            break;
        at += (uint32_t)got;
    }
    free(scratch);
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
        struct index_view v = {0};
        if (offset > s->base && segment_offsets(s, &v) == 0) {
            int64_t at = offset_index_floor(&v, s->base, offset).position;
            pos += at < size ? at : size;
        }
        index_view_close(&v);
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
                     const struct log_slice *slice, bool now, int64_t *end)
{
    struct offset_position at;
    struct index_view v;
    int err = now ? segment_offsets_now(l->v[i], &v) : segment_offsets(l->v[i], &v);
    *end = i + 1 < l->n ? l->v[i + 1]->base : log_end;
    if (!err && offset_index_from_position(&v, l->v[i]->base, slice->pos + slice->len, &at) &&
        !v.error)
        *end = at.offset;
    index_view_close(&v);
    if (err)
        return err;
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

/* Why nothing was found, though nothing is wrong. */
enum excuse {
    NO_EXCUSE,
    COLD, /* it would have meant to wait */
    STALE /* the segments have been replaced or deleted meanwhile */
};

static enum kerr aborted_txns(struct log *log, int64_t offset, const struct log_slice *slice,
                              struct arena *a, bool now, struct aborted_txn **out, int *n,
                              enum excuse *excuse)
{
    struct aborted_list list = {.arena = a};
    *out = NULL;
    *n = 0;
    *excuse = NO_EXCUSE;
    if (slice->len == 0)
        return KERR_NONE;
    enum kerr code = log_usable(log);
    if (code)
        return code;
    struct segment_list *l = log_pin(log);
    int i = segment_list_floor(l, slice->first_offset);
    i = i < 0 ? 0 : i;
    int64_t upper;
    int rc = slice_end(l, i, log_end_offset(log), slice, now, &upper);
    for (; i < l->n && rc == 0; i++)
        rc = segment_aborted(l->v[i], offset, upper, now, add_aborted, &list);
    segment_list_unpin(l);
    *excuse = rc == -EAGAIN ? COLD : rc == -ESTALE ? STALE : NO_EXCUSE;
    if (*excuse)
        return KERR_NONE;
    *out = list.v;
    *n = list.n;
    return rc < 0 ? log_kerr(rc) : KERR_NONE;
}

static enum kerr read_committed(struct log *log, int64_t offset, uint32_t max_bytes,
                                int64_t limit_offset, bool min_one, bool hard_limit, bool now,
                                struct arena *a, struct log_slice *slice,
                                struct aborted_txn **aborted, int *n)
{
    for (int try = 0; try < TRIES; try++) {
        enum excuse excuse = NO_EXCUSE;
        uint64_t seen = atomic_load(&log->replacements);
        enum kerr code =
            read_slice(log, offset, max_bytes, limit_offset, min_one, hard_limit, now, slice);
        if (!code)
            code = aborted_txns(log, offset, slice, a, now, aborted, n, &excuse);
        if (!code && excuse == COLD) {
            file_unref(slice->file);
            *slice = (struct log_slice){.first_offset = -1, .cold = true};
        }
        if (!code && excuse != STALE && atomic_load(&log->replacements) == seen)
            return KERR_NONE;
        file_unref(slice->file);
        slice->file = NULL;
        if (code && atomic_load(&log->replacements) == seen)
            return code;
        if (excuse == STALE && !now)
            log_await_change(log);
    }
    /* Replaced each time: nothing for now, the reader comes again. */
    *slice = (struct log_slice){.first_offset = -1, .cold = now};
    *aborted = NULL;
    *n = 0;
    return KERR_NONE;
}

enum kerr log_read_committed(struct log *log, int64_t offset, uint32_t max_bytes,
                             int64_t limit_offset, bool min_one, bool hard_limit, struct arena *a,
                             struct log_slice *slice, struct aborted_txn **aborted, int *n)
{
    return read_committed(log, offset, max_bytes, limit_offset, min_one, hard_limit, false, a,
                          slice, aborted, n);
}

enum kerr log_read_committed_now(struct log *log, int64_t offset, uint32_t max_bytes,
                                 int64_t limit_offset, bool min_one, bool hard_limit,
                                 struct arena *a, struct log_slice *slice,
                                 struct aborted_txn **aborted, int *n)
{
    return read_committed(log, offset, max_bytes, limit_offset, min_one, hard_limit, true, a, slice,
                          aborted, n);
}
