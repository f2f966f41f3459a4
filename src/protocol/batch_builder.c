/* batch_builder.c - records are encoded into `body` as they come; the head, and the wrapper of
 * magic 0 and 1, are made when the batch is finished. */
#include "protocol/batch_builder.h"

#include <errno.h>
#include <stdlib.h>

#include "protocol/batch_head.h"
#include "protocol/legacy_message.h"
#include "protocol/record_v2.h"

struct batch_builder {
    struct batch_options o;
    /* Records, or messages. In magic 2 they lie behind BATCH_HEAD free bytes, so that a batch
     * without codec is finished where it lies. */
    struct buf body;
    int32_t count;
    int64_t first_offset, last_offset;
    int64_t base_timestamp, max_timestamp; /* of what was added */
};

static const size_t batch_max = INT32_MAX;

struct batch_builder *batch_builder_new(const struct batch_options *o)
{
    struct batch_builder *b = calloc(1, sizeof(*b));
    if (b)
        b->o = *o;
    return b;
}

void batch_builder_free(struct batch_builder *b)
{
    if (!b)
        return;
    buf_free(&b->body);
    free(b);
}

void batch_builder_reset(struct batch_builder *b, const struct batch_options *o)
{
    b->o = *o;
    b->count = 0;
    b->body.len = 0;
}

/* Bytes in front of the records. */
static size_t head_room(const struct batch_builder *b)
{
    return b->o.magic == 2 ? BATCH_HEAD : 0;
}

/* Of the records alone. */
static size_t body_size(const struct batch_builder *b)
{
    return b->body.len ? b->body.len - head_room(b) : 0;
}

static bool begin_body(struct batch_builder *b)
{
    if (b->body.len == 0 && head_room(b)) {
        if (!buf_reserve(&b->body, head_room(b)))
            return false;
        b->body.len = head_room(b);
    }
    return true;
}

bool batch_builder_reserve(struct batch_builder *b, size_t bytes)
{
    bool ok = begin_body(b) && (bytes <= b->body.len || buf_reserve(&b->body, bytes - b->body.len));
    b->body.failed = false;
    return ok;
}

int32_t batch_builder_count(const struct batch_builder *b)
{
    return b->count;
}

void batch_builder_set_producer(struct batch_builder *b, int64_t id, int16_t epoch,
                                int32_t base_sequence)
{
    b->o.producer_id = id;
    b->o.producer_epoch = epoch;
    b->o.base_sequence = base_sequence;
}

/* ---- sizes ---- */

static size_t varlong_size(int64_t v)
{
    uint64_t u = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
    return (size_t)(70 - __builtin_clzll(u | 1)) / 7;
}

static size_t bytes_size(int32_t len)
{
    return len < 0 ? 1 : varlong_size(len) + (size_t)len;
}

static size_t bytes_size_max(int32_t len)
{
    return VARINT_MAX + (len < 0 ? 0 : (size_t)len);
}

static size_t legacy_head(int magic)
{
    return magic == 0 ? LEGACY_HEAD_V0 : LEGACY_HEAD_V1;
}

static size_t legacy_size(int magic, struct bytes key, struct bytes value)
{
    return legacy_head(magic) + 4 + (key.len < 0 ? 0 : (size_t)key.len) + 4 +
           (value.len < 0 ? 0 : (size_t)value.len);
}

size_t batch_builder_size(const struct batch_builder *b)
{
    if (b->o.magic == 2)
        return BATCH_HEAD + body_size(b);
    return b->body.len +
           (b->o.codec == CODEC_NONE ? 0 : legacy_size(b->o.magic, BYTES_NULL, BYTES_NULL));
}

size_t batch_builder_record_size(const struct batch_options *o, struct bytes key,
                                 struct bytes value, const struct record_header *headers,
                                 int headers_n)
{
    if (o->magic < 2)
        return legacy_size(o->magic, key, value);
    size_t n = VARINT_MAX + 1 + VARLONG_MAX + VARINT_MAX + bytes_size_max(key.len) +
               bytes_size_max(value.len) + VARINT_MAX;
    for (int i = 0; i < headers_n; i++)
        n += bytes_size_max(headers[i].key.len) + bytes_size_max(headers[i].value.len);
    return n;
}

/* ---- adding ---- */

static uint8_t *put_varlong(uint8_t *p, int64_t v)
{
    uint64_t u = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
    for (; u >= 0x80; u >>= 7)
        *p++ = (uint8_t)(u | 0x80);
    *p++ = (uint8_t)u;
    return p;
}

static uint8_t *put_bytes(uint8_t *p, const void *data, int32_t len)
{
    if (len < 0)
        return put_varlong(p, -1);
    p = put_varlong(p, len);
    if (len)
        memcpy(p, data, (size_t)len);
    return p + len;
}

/* Headers in either form: pairs, or as encoded in a record. */
struct headers {
    const struct record_header *pairs;
    struct bytes encoded; /* when pairs is NULL */
    int32_t n;
};

static size_t headers_size(const struct headers *h)
{
    if (!h->pairs)
        return (size_t)h->encoded.len;
    size_t n = 0;
    for (int i = 0; i < h->n; i++)
        n += bytes_size(h->pairs[i].key.len) + bytes_size(h->pairs[i].value.len);
    return n;
}

static uint8_t *put_headers(uint8_t *p, const struct headers *h)
{
    if (!h->pairs) {
        if (h->encoded.len)
            memcpy(p, h->encoded.p, (size_t)h->encoded.len);
        return p + h->encoded.len;
    }
    for (int i = 0; i < h->n; i++) {
        p = put_bytes(p, h->pairs[i].key.p, h->pairs[i].key.len);
        p = put_bytes(p, h->pairs[i].value.p, h->pairs[i].value.len);
    }
    return p;
}

static int add_v2(struct batch_builder *b, int64_t offset, int64_t timestamp, struct bytes key,
                  struct bytes value, const struct headers *h)
{
    int64_t offset_delta = offset - b->first_offset;
    int64_t timestamp_delta = (int64_t)((uint64_t)timestamp - (uint64_t)b->base_timestamp);
    size_t len = 1 + varlong_size(timestamp_delta) + varlong_size(offset_delta) +
                 bytes_size(key.len) + bytes_size(value.len) + varlong_size(h->n) + headers_size(h);
    if (len > batch_max - VARINT_MAX - BATCH_HEAD - body_size(b))
        return -EMSGSIZE;
    if (!begin_body(b) || !buf_reserve(&b->body, VARINT_MAX + len))
        return -ENOMEM;
    uint8_t *p = put_varlong(b->body.p + b->body.len, (int64_t)len);
    *p++ = 0; /* attributes */
    p = put_varlong(p, timestamp_delta);
    p = put_varlong(p, offset_delta);
    p = put_bytes(p, key.p, key.len);
    p = put_bytes(p, value.p, value.len);
    p = put_varlong(p, h->n);
    p = put_headers(p, h);
    b->body.len = (size_t)(p - b->body.p);
    return 0;
}

static uint8_t *put_bytes_legacy(uint8_t *p, struct bytes v)
{
    put_be32(p, (uint32_t)(v.len < 0 ? -1 : v.len));
    p += 4;
    if (v.len > 0)
        memcpy(p, v.p, (size_t)v.len);
    return p + (v.len < 0 ? 0 : v.len);
}

/* The fields in front of key and value, with the checksum; the message is `size` bytes at p. */
static void legacy_head_write(uint8_t *p, size_t size, int magic, int attributes, int64_t offset,
                              int64_t timestamp)
{
    put_be64(p, (uint64_t)offset);
    put_be32(p + BATCH_AT_LENGTH, (uint32_t)(size - ENTRY_PREFIX));
    p[BATCH_AT_MAGIC] = (uint8_t)magic;
    p[LEGACY_AT_ATTRIBUTES] = (uint8_t)attributes;
    if (magic > 0)
        put_be64(p + LEGACY_AT_TIMESTAMP, (uint64_t)timestamp);
    put_be32(p + LEGACY_AT_CRC, legacy_crc(p, (uint32_t)size));
}

static int time_attribute(const struct batch_options *o)
{
    return o->magic > 0 && o->log_append_time ? BATCH_LOG_APPEND_TIME : 0;
}

static int add_legacy(struct batch_builder *b, int64_t offset, int64_t timestamp, struct bytes key,
                      struct bytes value)
{
    const struct batch_options *o = &b->o;
    size_t size = legacy_size(o->magic, key, value);
    if (size > batch_max - LEGACY_MIN_V1 - b->body.len)
        return -EMSGSIZE;
    if (!buf_reserve(&b->body, size))
        return -ENOMEM;
    uint8_t *p = b->body.p + b->body.len;
    put_bytes_legacy(put_bytes_legacy(p + legacy_head(o->magic), key), value);
    bool inner = o->codec != CODEC_NONE;
    if (!inner && o->log_append_time)
        timestamp = o->log_append_timestamp;
    if (inner && o->magic == 1)
        offset -= b->first_offset;
    legacy_head_write(p, size, o->magic, time_attribute(o), offset, timestamp);
    b->body.len += size;
    return 0;
}

static bool offset_fits(const struct batch_builder *b, int64_t offset)
{
    int64_t last = b->o.last_offset;
    if (offset < 0 || (b->count && offset <= b->last_offset) || (last >= 0 && offset > last))
        return false;
    return offset >= b->first_offset && offset - b->first_offset <= INT32_MAX;
}

static int add(struct batch_builder *b, int64_t offset, int64_t timestamp, struct bytes key,
               struct bytes value, const struct headers *h)
{
    const struct batch_options *o = &b->o;
    if (!b->count) {
        b->first_offset = o->base_offset >= 0 ? o->base_offset : offset;
        b->base_timestamp = o->delete_horizon >= 0 ? o->delete_horizon : timestamp;
        b->max_timestamp = timestamp;
    }
    if (!offset_fits(b, offset))
        return -EINVAL;
    int rc = o->magic == 2 ? add_v2(b, offset, timestamp, key, value, h)
                           : add_legacy(b, offset, timestamp, key, value);
    if (rc) {
        b->body.failed = false;
        return rc;
    }
    if (timestamp > b->max_timestamp)
        b->max_timestamp = timestamp;
    b->last_offset = offset;
    b->count++;
    return 0;
}

int batch_builder_add(struct batch_builder *b, int64_t offset, int64_t timestamp, struct bytes key,
                      struct bytes value, const struct record_header *headers, int headers_n)
{
    struct headers h = {headers, {NULL, 0}, headers ? headers_n : 0};
    return add(b, offset, timestamp, key, value, &h);
}

int batch_builder_add_record(struct batch_builder *b, int64_t offset, const struct record *r)
{
    struct headers h = {NULL, r->headers, r->headers_n};
    return add(b, offset, r->timestamp, r->key, r->value, &h);
}

/* ---- finishing ---- */

/* `head` free bytes and the body, compressed as told, behind out->len; out->len stays. */
static int put_body(const struct batch_builder *b, size_t head, struct buf *out, size_t *size)
{
    size_t start = out->len;
    if (!buf_reserve(out, head))
        return -ENOMEM;
    out->len += head;
    int rc = codec_compress(b->o.codec, b->o.level, b->o.magic, b->body.p + head_room(b),
                            body_size(b), out);
    *size = out->len - start;
    out->len = start;
    return rc ? rc : *size > batch_max ? -EMSGSIZE : 0;
}

static int finish_v2(struct batch_builder *b, struct buf *out)
{
    const struct batch_options *o = &b->o;
    size_t size;
    int rc = 0;
    if (o->codec == CODEC_NONE && out->cap == 0) { /* the body itself becomes the batch */
        *out = b->body;
        b->body = BUF_INIT;
        size = out->len;
        out->len = 0;
    } else {
        rc = put_body(b, BATCH_HEAD, out, &size);
    }
    if (rc)
        return rc;
    struct batch head = {
        .size = (uint32_t)size,
        .attributes = (int16_t)(o->codec | (o->log_append_time ? BATCH_LOG_APPEND_TIME : 0) |
                                (o->transactional ? BATCH_TRANSACTIONAL : 0) |
                                (o->control ? BATCH_CONTROL : 0) |
                                (o->delete_horizon >= 0 ? BATCH_DELETE_HORIZON : 0)),
        .leader_epoch = o->leader_epoch,
        .base_offset = b->first_offset,
        .last_offset = o->last_offset >= 0 ? o->last_offset : b->last_offset,
        .base_timestamp = b->base_timestamp,
        .max_timestamp = o->log_append_time ? o->log_append_timestamp : b->max_timestamp,
        .producer_id = o->producer_id,
        .producer_epoch = o->producer_epoch,
        .base_sequence = o->base_sequence,
        .record_count = b->count,
    };
    batch_head_write(out->p + out->len, &head);
    out->len += size;
    return 0;
}

static int finish_wrapper(struct batch_builder *b, struct buf *out)
{
    const struct batch_options *o = &b->o;
    if (o->codec >= CODEC_ZSTD)
        return -EINVAL;
    size_t head = legacy_size(o->magic, BYTES_NULL, BYTES_NULL), size;
    int rc = put_body(b, head, out, &size);
    if (rc)
        return rc;
    uint8_t *p = out->p + out->len;
    put_be32(put_bytes_legacy(p + legacy_head(o->magic), BYTES_NULL), (uint32_t)(size - head));
    legacy_head_write(p, size, o->magic, (int)o->codec | time_attribute(o), b->last_offset,
                      o->log_append_time ? o->log_append_timestamp : b->max_timestamp);
    out->len += size;
    return 0;
}

int batch_builder_finish(struct batch_builder *b, struct buf *out)
{
    if (!b->count)
        return 0;
    int rc = 0;
    if (b->o.magic == 2) {
        rc = finish_v2(b, out);
    } else if (b->o.codec != CODEC_NONE) {
        rc = finish_wrapper(b, out);
    } else {
        buf_put(out, b->body.p, b->body.len);
        rc = out->failed ? -ENOMEM : 0;
    }
    if (rc == 0) {
        b->count = 0;
        b->body.len = 0;
    }
    return rc;
}

int batch_build_empty(const struct batch *original, struct buf *out)
{
    if (!buf_reserve(out, BATCH_HEAD))
        return -ENOMEM;
    struct batch head = *original;
    head.size = BATCH_HEAD;
    head.attributes &= ~(BATCH_CODEC_MASK | BATCH_DELETE_HORIZON);
    head.base_timestamp = NO_TIMESTAMP;
    head.record_count = 0;
    batch_head_write(out->p + out->len, &head);
    out->len += BATCH_HEAD;
    return 0;
}

int batch_build_marker(bool commit, int64_t offset, int64_t timestamp, int32_t leader_epoch,
                       int64_t producer_id, int16_t producer_epoch, int32_t coordinator_epoch,
                       struct buf *out)
{
    struct batch_builder b = {.o = BATCH_OPTIONS_DEFAULT};
    b.o.transactional = b.o.control = true;
    b.o.leader_epoch = leader_epoch;
    b.o.producer_id = producer_id;
    b.o.producer_epoch = producer_epoch;
    uint8_t key[4] = {0}, value[6] = {0}; /* version 0 of both */
    key[3] = commit;                      /* ABORT 0, COMMIT 1 */
    put_be32(value + 2, (uint32_t)coordinator_epoch);
    int rc = batch_builder_add(&b, offset, timestamp, (struct bytes){key, sizeof(key)},
                               (struct bytes){value, sizeof(value)}, NULL, 0);
    if (rc == 0)
        rc = batch_builder_finish(&b, out);
    buf_free(&b.body);
    return rc;
}
