/* record_iter.h - the iterator's inside, for users in the room that keep it on the stack or want to
 * know why it failed. */
#ifndef PROTOCOL_RECORD_ITER_H
#define PROTOCOL_RECORD_ITER_H

#include "protocol/record_batch.h"

struct record_iter {
    struct batch batch;
    struct buf body; /* the records decompressed; owned */
    const uint8_t *at, *end;
    int32_t left;          /* magic 2: records still to come */
    uint64_t inner_base;   /* magic 0, 1 compressed: what to add to inner offsets */
    bool verify_inner;     /* magic 0, 1 compressed: check each inner checksum; set before init */
    bool inner_crc_failed; /* why next answered -EBADMSG */
    bool too_large;        /* the same */
    bool giant;            /* has the turn of those (codec_giant_begin) */
    const char *why;       /* after -EBADMSG: for people; static */
};

/* As record_iter_open, into memory of the caller, all zero but for verify_inner and a body of
 * length 0 whose memory is used again. `cap` bounds the decompressed size. */
int record_iter_init(struct record_iter *it, const struct batch *b, size_t cap);
/* The same with the cap of the batch's size, and with the turn of giants if it needs it: to be
 * ended on the same thread. @blocks */
int record_iter_init_in_turn(struct record_iter *it, const struct batch *b);
/* Also after a failed init. */
void record_iter_fini(struct record_iter *it);

#endif
