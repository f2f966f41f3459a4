#include "log/cleaner_output.h"

#include <errno.h>
#include <stdlib.h>

enum {
    /* Written back step by step: one sync of a whole segment at the end would make everybody's
     * writes wait behind it. */
    SYNC_BYTES = 16 << 20
};

struct cleaner_piece {
    const uint8_t *p; /* NULL: built, at `at` */
    size_t at, len;
    int64_t last_offset, max_timestamp;
};

void cleaner_output_init(struct cleaner_output *out)
{
    *out = (struct cleaner_output){.bytes_max = INT32_MAX};
}

void cleaner_output_free(struct cleaner_output *out)
{
    buf_free(&out->built);
    free(out->pieces);
    free(out->iov);
    free(out->v);
    cleaner_output_init(out);
}

static struct segment *current(struct cleaner_output *out)
{
    return out->v[out->n - 1];
}

static int add_segment(struct cleaner_output *out, int64_t base)
{
    struct segment **v = realloc(out->v, (size_t)(out->n + 1) * sizeof(*v));
    if (!v)
        return -ENOMEM;
    out->v = v;
    int err = segment_create_cleaned(out->folder, base, out->config, &v[out->n]);
    if (!err)
        out->n++;
    out->unsynced = 0;
    return err;
}

int cleaner_output_begin(struct cleaner_output *out, const struct log_folder *folder,
                         const struct log_config *config, int64_t base)
{
    out->folder = folder;
    out->config = config;
    out->base = base;
    out->last_offset = base - 1;
    out->bytes = 0;
    out->pieces_n = out->queued = 0;
    out->built.len = out->built_queued = 0;
    return add_segment(out, base);
}

/* The first offset that a segment may be named after which begins with this batch. An old
 * compressed set does not tell its first one. */
static int64_t base_for(const struct cleaner_output *out, const struct batch *b)
{
    if (b->magic == 2)
        return b->base_offset;
    int64_t least = b->last_offset - INT32_MAX;
    return out->last_offset + 1 > least ? out->last_offset + 1 : least;
}

/* Sees to a segment that has room for the batch. */
static int make_room(struct cleaner_output *out, const struct batch *b)
{
    const struct segment *s = current(out);
    if (segment_size(s) + (int64_t)(out->queued + b->size) <= out->bytes_max &&
        b->last_offset - s->base <= INT32_MAX)
        return 0;
    if (segment_size(s) + (int64_t)out->queued == 0) /* no other one would do better */
        return -EOVERFLOW;
    ssize_t n = cleaner_output_flush(out);
    return n < 0 ? (int)n : add_segment(out, base_for(out, b));
}

static int queue(struct cleaner_output *out, const struct batch *b, const uint8_t *p, size_t at)
{
    if (out->pieces_n == out->pieces_cap) {
        size_t cap = out->pieces_cap ? out->pieces_cap * 2 : 256;
        struct cleaner_piece *v = realloc(out->pieces, cap * sizeof(*v));
        if (!v)
            return -ENOMEM;
        out->pieces = v;
        struct iovec *iov = realloc(out->iov, cap * sizeof(*iov));
        if (!iov)
            return -ENOMEM;
        out->iov = iov;
        out->pieces_cap = cap;
    }
    out->pieces[out->pieces_n++] = (struct cleaner_piece){.p = p,
                                                          .at = at,
                                                          .len = b->size,
                                                          .last_offset = b->last_offset,
                                                          .max_timestamp = b->max_timestamp};
    out->queued += b->size;
    out->last_offset = b->last_offset;
    return 0;
}

int cleaner_output_keep(struct cleaner_output *out, const struct batch *b,
                        const struct txn_entry *txn)
{
    int err = make_room(out, b);
    if (!err && txn)
        err = segment_add_txn(current(out), *txn);
    return err ? err : queue(out, b, b->p, 0);
}

int cleaner_output_built(struct cleaner_output *out, const struct txn_entry *txn)
{
    struct batch b;
    size_t n = out->built.len - out->built_queued;
    if (batch_decode(out->built.p + out->built_queued, n, n, &b) != BATCH_OK || b.size != n)
        return -EBADMSG;
    int err = make_room(out, &b); /* a flush moves it to the front */
    if (!err && txn)
        err = segment_add_txn(current(out), *txn);
    if (!err)
        err = queue(out, &b, NULL, out->built_queued);
    if (!err)
        out->built_queued = out->built.len;
    return err;
}

/* Neighbours in memory become one piece of the write. */
static int gather(struct cleaner_output *out)
{
    int n = 0;
    for (size_t i = 0; i < out->pieces_n; i++) {
        const struct cleaner_piece *x = &out->pieces[i];
        uint8_t *p = x->p ? (uint8_t *)(uintptr_t)x->p : out->built.p + x->at;
        if (n && (uint8_t *)out->iov[n - 1].iov_base + out->iov[n - 1].iov_len == p)
            out->iov[n - 1].iov_len += x->len;
        else
            out->iov[n++] = (struct iovec){p, x->len};
    }
    return n;
}

static int index_pieces(struct cleaner_output *out, struct segment *s)
{
    int64_t pos = segment_size(s);
    int err = 0;
    for (size_t i = 0; i < out->pieces_n && !err; i++) {
        const struct cleaner_piece *x = &out->pieces[i];
        err = segment_index(s, pos, x->len, x->last_offset,
                            (struct time_offset){x->max_timestamp, x->last_offset},
                            out->config->index_interval_bytes);
        pos += (int64_t)x->len;
    }
    return err;
}

static int sync_data(struct segment *s)
{
    struct file *f;
    int err = segment_file(s, &f);
    if (err)
        return err;
    err = segment_failed(s, LOG_FILE_DATA, file_sync(f), "sync");
    file_unref(f);
    return err;
}

ssize_t cleaner_output_flush(struct cleaner_output *out)
{
    struct segment *s = current(out);
    size_t n = out->queued;
    if (!n)
        return 0;
    int err = segment_writev(s, out->iov, gather(out));
    if (!err)
        err = index_pieces(out, s);
    if (err)
        return err;
    segment_publish(s, n);
    out->bytes += (int64_t)n;
    out->unsynced += (int64_t)n;
    out->pieces_n = out->queued = 0;
    out->built.len -= out->built_queued;
    if (out->built.len)
        memmove(out->built.p, out->built.p + out->built_queued, out->built.len);
    out->built_queued = 0;
    if (out->unsynced >= SYNC_BYTES) {
        out->unsynced = 0;
        err = sync_data(s);
    }
    return err ? err : (ssize_t)n;
}

static int finish_one(struct segment *s, int64_t mtime_ms)
{
    int err = segment_seal(s);
    if (!err)
        err = segment_set_mtime(s, mtime_ms);
    if (!err)
        err = segment_sync(s, true);
    return err ? err : segment_reopen(s);
}

int cleaner_output_finish(struct cleaner_output *out, int64_t mtime_ms)
{
    ssize_t n = cleaner_output_flush(out);
    int err = n < 0 ? (int)n : 0;
    for (int i = 0; i < out->n && !err; i++)
        err = finish_one(out->v[i], mtime_ms);
    return err;
}

void cleaner_output_release(struct cleaner_output *out)
{
    for (int i = 0; i < out->n; i++)
        segment_unref(out->v[i]);
    out->n = 0;
}

void cleaner_output_drop(struct cleaner_output *out)
{
    for (int i = out->n - 1; i >= 0; i--)
        if (out->v[i]->stage == LOG_STAGE_CLEANED && !log_dir_offline(out->folder->dir))
            segment_discard(out->v[i]);
    cleaner_output_release(out);
}
