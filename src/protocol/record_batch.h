/* record_batch.h - the bytes of record batches (magic 2) and the common head of older entries:
 * layout, header access in place, checks, and iteration of records of every magic.
 *
 * A log file and a Produce or Fetch body hold the same thing: entries back to back. All begin with
 * offset (8), length of the rest (4), a word, and magic at 16, so a walk needs no knowledge of the
 * version. */
#ifndef PROTOCOL_RECORD_BATCH_H
#define PROTOCOL_RECORD_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "protocol/compression.h"

#define ENTRY_PREFIX 12 /* offset and length */
#define ENTRY_HEAD 17   /* up to and with magic */
#define BATCH_HEAD 61   /* magic 2, up to the first record */
#define NO_TIMESTAMP (-1)
#define NO_PRODUCER_ID (-1)
#define NO_PRODUCER_EPOCH (-1)
#define NO_SEQUENCE (-1)
#define NO_LEADER_EPOCH (-1)

enum batch_at { /* byte offsets in a magic 2 batch */
                BATCH_AT_BASE_OFFSET = 0,
                BATCH_AT_LENGTH = 8,
                BATCH_AT_LEADER_EPOCH = 12,
                BATCH_AT_MAGIC = 16,
                BATCH_AT_CRC = 17,
                BATCH_AT_ATTRIBUTES = 21,
                BATCH_AT_LAST_OFFSET_DELTA = 23,
                BATCH_AT_BASE_TIMESTAMP = 27,
                BATCH_AT_MAX_TIMESTAMP = 35,
                BATCH_AT_PRODUCER_ID = 43,
                BATCH_AT_PRODUCER_EPOCH = 51,
                BATCH_AT_BASE_SEQUENCE = 53,
                BATCH_AT_RECORD_COUNT = 57,
};
enum batch_attribute {
    BATCH_CODEC_MASK = 7,
    BATCH_LOG_APPEND_TIME = 1 << 3,
    BATCH_TRANSACTIONAL = 1 << 4,
    BATCH_CONTROL = 1 << 5,
    BATCH_DELETE_HORIZON = 1 << 6,
};

/* The head of one entry, decoded. For magic 0/1 the producer fields are -1, base_offset equals
 * last_offset, and record_count is -1 (unknown). */
struct batch {
    const uint8_t *p; /* start of the entry */
    uint32_t size;    /* with the 12-byte prefix */
    int8_t magic;
    int8_t codec;
    int16_t attributes;
    int32_t leader_epoch;
    uint32_t crc;
    int64_t base_offset, last_offset;
    int64_t base_timestamp, max_timestamp;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence, last_sequence;
    int32_t record_count;
};

enum batch_walk { BATCH_OK, BATCH_END /* nothing, or a partial entry, is left */, BATCH_CORRUPT };
/* Decodes the entry at p (needs at most BATCH_HEAD bytes present of an entry that may be longer
 * than `have`): `have` bytes are readable at p, `left` bytes belong to the range. BATCH_END when
 * the entry does not fit in `left`, or when fewer than its head's bytes are in `have`.
 * BATCH_CORRUPT when no entry of this magic has such a size, or the magic is none. What else the
 * head says is not judged: counts and deltas may be negative, offsets out of order. */
enum batch_walk batch_decode(const uint8_t *p, size_t have, uint64_t left, struct batch *out);
/* The whole entry is at b->p: is its CRC (CRC-32C or CRC-32 by magic) right, its size at least the
 * minimum? */
bool batch_crc_ok(const struct batch *b);

static inline bool batch_is_control(const struct batch *b)
{
    return b->magic == 2 && (b->attributes & BATCH_CONTROL);
}
static inline bool batch_is_transactional(const struct batch *b)
{
    return b->magic == 2 && (b->attributes & BATCH_TRANSACTIONAL);
}
/* s + n, with 2147483647 followed by 0; and s - n. */
int32_t sequence_add(int32_t s, int32_t n);
int32_t sequence_sub(int32_t s, int32_t n);

struct record_header {
    struct str key;
    struct bytes value;
};

/* One record as a consumer sees it. Borrowed from the batch's bytes, or from the iterator's
 * decompressed copy. */
struct record {
    int64_t offset, timestamp;
    struct bytes key, value;
    int32_t sequence; /* -1 without a producer id */
    int32_t headers_n;
    struct bytes headers; /* encoded; walk with record_header_next */
    bool log_append_time; /* timestamp type */
};

/* Iterates the records of one entry of any magic, compressed or not. */
struct record_iter;
/* 0; -EBADMSG malformed or over the decompression cap; -ENOMEM. Borrows the batch's bytes. *out is
 * owned. */
int record_iter_open(const struct batch *b, struct record_iter **out);
/* 1: *r is the next record, good until the iterator is closed; 0: end; -EBADMSG: malformed. */
int record_iter_next(struct record_iter *it, struct record *r);
void record_iter_close(struct record_iter *it);
/* Walks r->headers: `at` starts as reader_of(r->headers.p, r->headers.len). false at the end. */
bool record_header_next(struct reader *at, struct record_header *h);

#endif
