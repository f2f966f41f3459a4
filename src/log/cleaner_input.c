#include "log/cleaner_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MIN = 4096 };

void cleaner_input_init(struct cleaner_input *in, size_t size)
{
    *in = (struct cleaner_input){.size = size < SIZE_MIN ? SIZE_MIN : size};
}

void cleaner_input_free(struct cleaner_input *in)
{
    cleaner_input_close(in);
    free(in->p);
    in->p = NULL;
    in->cap = 0;
}

int cleaner_input_open(struct cleaner_input *in, struct segment *s, int64_t offset, int64_t upto)
{
    uint8_t none[FILE_BATCHES_WINDOW_MIN];
    struct file_batches walk;
    in->segment = s;
    in->end = segment_size(s);
    in->have = in->at = 0;
    in->pos = 0;
    in->why = NULL;
    in->next_offset = s->base;
    in->upto = upto;
    int err = segment_file(s, &in->file);
    if (err)
        return err;
    if (offset > s->base) {
        err = segment_walk(s, in->file, offset, in->end, none, sizeof(none), &walk);
        in->pos = walk.pos;
    }
    if (err)
        cleaner_input_close(in);
    return err;
}

void cleaner_input_close(struct cleaner_input *in)
{
    file_unref(in->file);
    in->file = NULL;
    if (in->cap > in->size) {
        free(in->p);
        in->p = NULL;
        in->cap = 0;
    }
}

static int grow(struct cleaner_input *in, size_t want)
{
    if (want <= in->cap)
        return 0;
    uint8_t *p = realloc(in->p, want);
    if (!p)
        return -ENOMEM;
    in->p = p;
    in->cap = want;
    return 0;
}

static int damaged(struct cleaner_input *in, const char *why)
{
    /* a file that was cut under our hands is no damage */
    if (atomic_load(&in->segment->doomed))
        return -ESTALE;
    in->why = why;
    return -EBADMSG;
}

/* The batch that does not end in the buffer, moved to its front: the buffer must hold all of it. */
static int carry_over(struct cleaner_input *in)
{
    size_t left = in->have - in->at, want = in->size;
    if (left >= ENTRY_PREFIX) {
        size_t size = (size_t)get_be32(in->p + in->at + BATCH_AT_LENGTH) + ENTRY_PREFIX;
        if (size > left + (uint64_t)(in->end - in->pos))
            return damaged(in, "a batch is longer than what is left of the file");
        if (size > want)
            want = size;
    }
    if (left)
        memmove(in->p, in->p + in->at, left);
    in->have = left;
    in->at = 0;
    return grow(in, want);
}

ssize_t cleaner_input_fill(struct cleaner_input *in)
{
    int err = carry_over(in);
    if (err)
        return err;
    int64_t left = in->end - in->pos;
    if (left == 0)
        return in->have ? damaged(in, "the file ends inside a batch") : 0;
    size_t n = in->cap - in->have;
    if ((int64_t)n > left)
        n = (size_t)left;
    ssize_t got = file_pread(in->file, in->p + in->have, n, in->pos);
    if (got < 0)
        return segment_failed(in->segment, LOG_FILE_DATA, (int)got, "read");
    if ((size_t)got < n)
        return damaged(in, "the file is shorter than its segment");
    in->pos += got;
    in->have += n;
    return got;
}

int cleaner_input_next(struct cleaner_input *in, struct batch *b)
{
    size_t have = in->have - in->at;
    enum batch_walk walk = batch_decode(in->p + in->at, have, have, b);
    if (walk == BATCH_CORRUPT)
        return damaged(in, "no batch begins where one should");
    if (walk == BATCH_END)
        return 0;
    if (!batch_crc_ok(b))
        return damaged(in, "the checksum of a batch is wrong");
    /* no checksum covers the offset */
    int64_t first = b->magic == 2 ? b->base_offset : b->last_offset;
    if (first < in->next_offset || b->last_offset < first || b->last_offset >= in->upto)
        return damaged(in, "the offsets of a batch do not fit where it stands");
    in->next_offset = b->last_offset + 1;
    in->at += b->size;
    return 1;
}
