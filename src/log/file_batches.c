#include "log/file_batches.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/checksum.h"

void file_batches_init(struct file_batches *w, struct file *file, int64_t pos, int64_t end,
                       uint8_t *window, size_t window_n)
{
    *w = (struct file_batches){.file = file,
                               .pos = pos,
                               .end = end,
                               .window = window,
                               .window_n = window_n,
                               .window_pos = pos};
}

/* At least `need` bytes at pos in the window, or as many as there are before the end. Returns how
 * many are there. */
static size_t fill(struct file_batches *w, int64_t pos, size_t need)
{
    int64_t have = w->window_pos + (int64_t)w->window_len - pos;
    if (pos >= w->window_pos && have >= (int64_t)need)
        return (size_t)have;
    int64_t left = w->end - pos;
    size_t n = left < (int64_t)w->window_n ? (size_t)left : w->window_n;
    if (left <= 0 || w->error)
        return 0;
    if (have == left && pos >= w->window_pos)
        return (size_t)have; /* the end is in the window already */
    ssize_t got = w->now ? file_pread_now(w->file, w->window, n, pos)
                         : file_pread(w->file, w->window, n, pos);
    if (w->now && got >= 0 && (size_t)got < n && (size_t)got < need)
        got = -EAGAIN;
    if (got < 0) {
        w->error = (int)got;
        w->window_len = 0;
        return 0;
    }
    w->window_pos = pos;
    w->window_len = (size_t)got;
    return (size_t)got;
}

enum batch_walk file_batches_next(struct file_batches *w, struct batch *b, int64_t *pos)
{
    size_t have = fill(w, w->pos, BATCH_HEAD);
    if (!have)
        return BATCH_END;
    enum batch_walk r =
        batch_decode(w->window + (w->pos - w->window_pos), have, (uint64_t)(w->end - w->pos), b);
    if (r == BATCH_OK) {
        *pos = w->pos;
        w->pos += b->size;
    }
    return r;
}

/* The piece of the entry that begins at `at`; NULL when the file ends (or fails) there. */
static const uint8_t *piece(struct file_batches *w, int64_t at, int64_t end, size_t *n)
{
    size_t have = fill(w, at, 1);
    if (!have)
        return NULL;
    *n = (int64_t)have < end - at ? have : (size_t)(end - at);
    return w->window + (at - w->window_pos);
}

int file_batches_crc_ok(struct file_batches *w, const struct batch *b, int64_t pos)
{
    int64_t at = pos + (b->magic == 2 ? BATCH_AT_ATTRIBUTES : ENTRY_HEAD - 1);
    int64_t end = pos + b->size;
    uint32_t crc = 0;
    uint32_t want = b->crc;
    if (b->magic == 2 ? b->size < BATCH_HEAD : b->size < (b->magic ? 34 : 26))
        return 0;
    while (at < end) {
        size_t n;
        const uint8_t *p = piece(w, at, end, &n);
        if (!p)
            return w->error;
        crc = b->magic == 2 ? crc32c_update(crc, p, n) : (uint32_t)crc32(crc, p, (uInt)n);
        at += (int64_t)n;
    }
    return crc == want;
}

int file_batch_load(struct file *file, int64_t pos, struct batch *b, struct buf *out)
{
    out->len = 0;
    if (!buf_reserve(out, b->size))
        return -ENOMEM;
    ssize_t got = file_pread(file, out->p, b->size, pos);
    if (got < 0)
        return (int)got;
    if ((size_t)got != b->size)
        return -EBADMSG;
    out->len = b->size;
    b->p = out->p;
    return 0;
}
