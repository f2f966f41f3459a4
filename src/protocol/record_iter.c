/* record_iter.c - the records of one entry, of any magic, compressed or not.
 *
 * A compressed body is decompressed whole when the iterator is opened, since the records handed out
 * point into it. Wrapped messages of magic 1 have offsets relative to a base that only the last of
 * them tells, so their heads are walked once more in front. */
#include "protocol/record_iter.h"

#include <errno.h>
#include <stdlib.h>

#include "protocol/legacy_message.h"
#include "protocol/record_v2.h"

static int malformed(struct record_iter *it, const char *why)
{
    it->why = why;
    return -EBADMSG;
}

static int decompress(struct record_iter *it, const uint8_t *p, size_t n, size_t cap)
{
    const struct batch *b = &it->batch;
    int rc = codec_decompress((enum codec)b->codec, b->magic, p, n, cap, &it->body);
    if (rc == -EBADMSG)
        return malformed(it, "The compressed data is malformed");
    it->too_large = rc == -EFBIG;
    if (rc == -EFBIG)
        return malformed(it, "The decompressed data is larger than allowed");
    if (rc)
        return rc;
    it->at = it->body.p;
    it->end = it->body.p + it->body.len;
    return 0;
}

/* ---- magic 2 ---- */

static int init_v2(struct record_iter *it, size_t cap)
{
    const struct batch *b = &it->batch;
    size_t body = b->size - BATCH_HEAD;
    it->at = b->p + BATCH_HEAD;
    it->end = it->at + body;
    it->left = b->record_count;
    if (b->record_count < 0)
        return malformed(it, "The record count is negative");
    if (b->codec >= CODECS)
        return malformed(it, "Unknown compression codec");
    bool compressed = b->codec != CODEC_NONE;
    if ((size_t)b->record_count > (compressed ? cap : body) / RECORD_SIZE_MIN)
        return malformed(it, "The record count is larger than the data");
    if (!compressed || b->record_count == 0)
        return 0;
    return decompress(it, it->at, body, cap);
}

static int next_v2(struct record_iter *it, struct record *r)
{
    const struct batch *b = &it->batch;
    if (it->left == 0)
        return it->at == it->end ? 0 : malformed(it, "Bytes are left behind the last record");
    struct record_v2 v;
    const uint8_t *next = record_get(it->at, it->end, &v);
    if (!next || v.offset_delta < 0)
        return malformed(it, "A record is malformed");
    it->at = next;
    it->left--;
    r->log_append_time = b->attributes & BATCH_LOG_APPEND_TIME;
    r->offset = (int64_t)((uint64_t)b->base_offset + (uint64_t)v.offset_delta);
    r->timestamp = r->log_append_time
                       ? b->max_timestamp
                       : (int64_t)((uint64_t)b->base_timestamp + (uint64_t)v.timestamp_delta);
    r->key = v.key;
    r->value = v.value;
    r->sequence =
        b->base_sequence < 0 ? NO_SEQUENCE : sequence_add(b->base_sequence, v.offset_delta);
    r->headers_n = v.headers_n;
    r->headers = (struct bytes){v.headers, (int32_t)(v.end - v.headers)};
    return 1;
}

/* ---- magic 0 and 1 ---- */

/* The inner message at `at`. */
static int inner_decode(struct record_iter *it, struct batch *inner)
{
    size_t left = (size_t)(it->end - it->at);
    if (batch_decode(it->at, left, left, inner) != BATCH_OK)
        return malformed(it, "An inner message is malformed");
    if (inner->magic != it->batch.magic)
        return malformed(it, "An inner message has another magic than its wrapper");
    if (inner->codec != CODEC_NONE)
        return malformed(it, "An inner message is compressed itself");
    return 0;
}

/* Offsets inside a magic 1 wrapper count from 0; the wrapper has the last one's absolute offset.
 * Some versions of librdkafka leave the wrapper's at 0: then the inner ones stand as they are. */
static int find_inner_base(struct record_iter *it)
{
    const uint8_t *start = it->at;
    struct batch inner = {0};
    while (it->at < it->end) {
        int rc = inner_decode(it, &inner);
        if (rc)
            return rc;
        it->at += inner.size;
    }
    it->at = start;
    int64_t wrapper = it->batch.base_offset;
    if (wrapper == 0)
        return 0;
    if (wrapper < inner.base_offset)
        return malformed(it, "The wrapper's offset is below that of its last inner message");
    it->inner_base = (uint64_t)wrapper - (uint64_t)inner.base_offset;
    return 0;
}

static int init_legacy(struct record_iter *it, size_t cap)
{
    const struct batch *b = &it->batch;
    struct bytes key, value;
    it->at = b->p;
    it->end = b->p + b->size;
    if (b->codec == CODEC_NONE)
        return 0;
    if (b->codec >= CODEC_ZSTD)
        return malformed(it, "A codec that this message format does not have");
    if (!legacy_fields(b, &key, &value))
        return malformed(it, "The wrapper message is malformed");
    if (value.len < 0)
        return malformed(it, "A compressed message set with null value");
    int rc = decompress(it, value.p, (size_t)value.len, cap);
    if (rc)
        return rc;
    if (it->at == it->end)
        return malformed(it, "A compressed message set without messages");
    return b->magic == 0 ? 0 : find_inner_base(it);
}

static int next_legacy(struct record_iter *it, struct record *r)
{
    const struct batch *b = &it->batch;
    if (it->at == it->end)
        return 0;
    struct batch inner = *b;
    if (b->codec != CODEC_NONE) {
        int rc = inner_decode(it, &inner);
        if (rc)
            return rc;
        if (it->verify_inner && !batch_crc_ok(&inner)) {
            it->inner_crc_failed = true;
            return malformed(it, "An inner message has a wrong checksum");
        }
    }
    if (!legacy_fields(&inner, &r->key, &r->value))
        return malformed(it, "A message is malformed");
    it->at += inner.size;
    r->log_append_time = b->attributes & BATCH_LOG_APPEND_TIME;
    r->offset = (int64_t)((uint64_t)inner.base_offset + it->inner_base);
    r->timestamp = r->log_append_time ? b->max_timestamp : inner.max_timestamp;
    r->sequence = NO_SEQUENCE;
    r->headers_n = 0;
    r->headers = (struct bytes){it->at, 0};
    return 1;
}

/* ---- all ---- */

int record_iter_init(struct record_iter *it, const struct batch *b, size_t cap)
{
    it->batch = *b;
    return b->magic == 2 ? init_v2(it, cap) : init_legacy(it, cap);
}

int record_iter_init_in_turn(struct record_iter *it, const struct batch *b)
{
    bool verify = it->verify_inner;
    size_t cap = codec_cap(b->size);
    int rc = record_iter_init(it, b, cap < CODEC_GIANT ? cap : CODEC_GIANT);
    if (rc != -EBADMSG || !it->too_large || cap <= CODEC_GIANT)
        return rc;
    record_iter_fini(it);
    codec_giant_begin();
    *it = (struct record_iter){.verify_inner = verify, .giant = true};
    return record_iter_init(it, b, cap);
}

void record_iter_fini(struct record_iter *it)
{
    buf_free(&it->body);
    if (it->giant)
        codec_giant_end();
    it->giant = false;
}

int record_iter_open(const struct batch *b, struct record_iter **out)
{
    *out = NULL;
    struct record_iter *it = calloc(1, sizeof(*it));
    if (!it)
        return -ENOMEM;
    int rc = record_iter_init(it, b, codec_cap(b->size));
    if (rc) {
        record_iter_close(it);
        return rc;
    }
    *out = it;
    return 0;
}

int record_iter_next(struct record_iter *it, struct record *r)
{
    return it->batch.magic == 2 ? next_v2(it, r) : next_legacy(it, r);
}

void record_iter_close(struct record_iter *it)
{
    if (!it)
        return;
    record_iter_fini(it);
    free(it);
}
