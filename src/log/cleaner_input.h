/* cleaner_input.h - reading a segment through, whole batches at a time, for compaction.
 *
 * fill() reads a buffer full and next() gives the whole batches in it, checked: what is copied gets
 * a new checksum or other neighbours, so damage must be noticed here or it is there for good. A
 * batch longer than the buffer makes it grow to that batch; it shrinks again with the next segment.
 * THREADS  one. */
#ifndef LOG_CLEANER_INPUT_H
#define LOG_CLEANER_INPUT_H

#include "log/segment.h"

struct cleaner_input {
    size_t size; /* of the buffer, when no batch needs more */
    uint8_t *p;
    size_t cap;
    /* the segment at hand */
    struct segment *segment;
    struct file *file;
    int64_t pos, end;          /* of the next fill in the file; end of the segment */
    size_t have, at;           /* bytes in the buffer; the next batch in it */
    int64_t next_offset, upto; /* offsets must rise from here and stay below */
    const char *why;           /* after -EBADMSG: static, for people */
};

/* size: bytes of the buffer, at least 4 KiB are taken. Allocates nothing. */
void cleaner_input_init(struct cleaner_input *in, size_t size);
void cleaner_input_free(struct cleaner_input *in);
/* Begins with a batch at or in front of the one that holds `offset`. upto: the next segment's base.
 * Borrows the segment until cleaner_input_close. 0 or -errno. */
int cleaner_input_open(struct cleaner_input *in, struct segment *s, int64_t offset, int64_t upto);
void cleaner_input_close(struct cleaner_input *in);
/* Bytes read; 0 at the end of the segment; -EBADMSG: its data is damaged; -ESTALE: it is not part
 * of the log any more; -errno after the dir was taken offline, or of a shortage. */
ssize_t cleaner_input_fill(struct cleaner_input *in);
/* 1: the next batch, its bytes good until the next fill. 0: fill again. -EBADMSG. */
int cleaner_input_next(struct cleaner_input *in, struct batch *b);

#endif
