/* file_batches.h - walking the entries of a segment's file: heads only, or with their bytes.
 *
 * Reads through a window that the caller owns, so that a walk allocates nothing and many small
 * entries cost one read. An entry longer than the window is stepped over by its head; its checksum
 * is taken in pieces.
 *
 * THREADS  one per walk; the file may be read by others. */
#ifndef LOG_FILE_BATCHES_H
#define LOG_FILE_BATCHES_H

#include "base/file.h"
#include "protocol/record_batch.h"

struct file_batches {
    struct file *file;
    int64_t pos, end; /* next entry; end of what may be read */
    uint8_t *window;
    size_t window_n;    /* its size, >= FILE_BATCHES_WINDOW_MIN */
    int64_t window_pos; /* what is in it */
    size_t window_len;
    int error; /* -errno of a read; sticky */
    /* Set after init: never waits for the disk; error -EAGAIN where it would have to. */
    bool now;
};
#define FILE_BATCHES_WINDOW_MIN 256

void file_batches_init(struct file_batches *w, struct file *file, int64_t pos, int64_t end,
                       uint8_t *window, size_t window_n);
/* The next entry: its head, and its place in the file in *pos. b->p points into the window and is
 * good for the head only, until the next call. BATCH_END also on a read error. */
enum batch_walk file_batches_next(struct file_batches *w, struct batch *b, int64_t *pos);
/* Behind the entry; a head may say anything, so the last offset there is stays the last. */
static inline int64_t batch_next_offset(const struct batch *b)
{
    return b->last_offset == INT64_MAX ? INT64_MAX : b->last_offset + 1;
}
/* Checksum of the entry at pos; reads it through the window. 1 right, 0 wrong, -errno. */
int file_batches_crc_ok(struct file_batches *w, const struct batch *b, int64_t pos);
/* The whole entry into `out` (which is emptied first), and b->p made to point at it. 0; -EBADMSG
 * when the file ends before; -errno; -ENOMEM. */
int file_batch_load(struct file *file, int64_t pos, struct batch *b, struct buf *out);

#endif
