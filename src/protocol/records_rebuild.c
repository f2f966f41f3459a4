/* records_rebuild.c - see records_rebuild.h.
 *
 * A magic 2 batch whose records are in order only changes its codec: the records' bytes are moved
 * as they are. Otherwise each record is read and written again. */
#include "protocol/records_rebuild.h"

#include <errno.h>

#include "protocol/batch_builder.h"
#include "protocol/batch_head.h"
#include "protocol/record_iter.h"
#include "protocol/record_v2.h"

static enum kerr fail_rc(struct record_check *c, int rc)
{
    switch (rc) {
    case -ENOMEM:
        return prepare_fail(c->arena, c->out, KERR_UNKNOWN_SERVER_ERROR, "Out of memory");
    case -EMSGSIZE:
        return prepare_fail(c->arena, c->out, KERR_MESSAGE_TOO_LARGE,
                            "The rebuilt batch is larger than max.message.bytes");
    default:
        return prepare_fail(c->arena, c->out, KERR_INVALID_RECORD, "The records cannot be rebuilt");
    }
}

static int codec_level(const struct record_check *c)
{
    return c->policy->compression == COMPRESSION_PRODUCER ? CODEC_LEVEL_DEFAULT : c->policy->level;
}

/* ---- magic 2 ---- */

/* The head of the new batch: what the producer said, with the topic's kind of timestamp. */
static void write_head(const struct record_check *c, const struct batch *b, enum codec target,
                       uint8_t *p, size_t size)
{
    struct batch head = *b;
    bool append_time = c->policy->log_append_time;
    head.size = (uint32_t)size;
    head.attributes = (int16_t)((b->attributes & BATCH_TRANSACTIONAL) | (int)target |
                                (append_time ? BATCH_LOG_APPEND_TIME : 0));
    head.max_timestamp = append_time ? c->policy->now_ms : c->max_timestamp;
    batch_head_write(p, &head);
}

static int move_records(struct record_check *c, const struct batch *b, enum codec target,
                        const uint8_t *p, const uint8_t *end)
{
    struct buf *out = &c->out->rebuilt;
    if (!buf_reserve(out, BATCH_HEAD))
        return -ENOMEM;
    out->len = BATCH_HEAD;
    int rc = codec_compress(target, codec_level(c), 2, p, (size_t)(end - p), out);
    if (rc)
        return rc;
    if (out->len > INT32_MAX)
        return -EMSGSIZE;
    write_head(c, b, target, out->p, out->len);
    return 0;
}

static struct batch_options options_of(const struct record_check *c, const struct batch *b,
                                       enum codec target)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = target;
    o.level = codec_level(c);
    o.log_append_time = c->policy->log_append_time;
    o.log_append_timestamp = c->policy->now_ms;
    o.transactional = batch_is_transactional(b);
    o.producer_id = b->producer_id;
    o.producer_epoch = b->producer_epoch;
    o.base_sequence = b->base_sequence;
    return o;
}

/* The records have passed record_check_plain. */
static int rewrite_records(struct record_check *c, const struct batch *b, enum codec target,
                           const uint8_t *p, const uint8_t *end)
{
    struct batch_options o = options_of(c, b, target);
    struct batch_builder *builder = batch_builder_new(&o);
    int rc = builder ? 0 : -ENOMEM;
    for (int32_t i = 0; rc == 0 && i < b->record_count; i++) {
        struct record_v2 v;
        if (!(p = record_get(p, end, &v))) {
            rc = -EBADMSG;
            break;
        }
        struct record r = {
            .timestamp = (int64_t)((uint64_t)b->base_timestamp + (uint64_t)v.timestamp_delta),
            .key = v.key,
            .value = v.value,
            .headers_n = v.headers_n,
            .headers = {v.headers, (int32_t)(v.end - v.headers)},
        };
        rc = batch_builder_add_record(builder, i, &r);
    }
    if (rc == 0)
        rc = batch_builder_finish(builder, &c->out->rebuilt);
    batch_builder_free(builder);
    return rc;
}

static int decompress(const struct batch *b, size_t limit, struct buf *body, bool *giant)
{
    const uint8_t *p = b->p + BATCH_HEAD;
    size_t n = b->size - BATCH_HEAD;
    enum codec codec = (enum codec)b->codec;
    int rc = codec_decompress(codec, 2, p, n, limit < CODEC_GIANT ? limit : CODEC_GIANT, body);
    if (rc != -EFBIG || limit <= CODEC_GIANT)
        return rc;
    buf_free(body);
    *giant = true;
    codec_giant_begin();
    return codec_decompress(codec, 2, p, n, limit, body);
}

/* The records of b, plain: in place, or decompressed into `body`. *giant: the turn of those was
 * taken, and is to be given back when `body` is freed. */
static enum kerr plain_records(struct record_check *c, const struct batch *b, enum codec target,
                               struct buf *body, bool *giant, const uint8_t **p,
                               const uint8_t **end)
{
    *p = b->p + BATCH_HEAD;
    *end = b->p + b->size;
    if (b->codec == CODEC_NONE)
        return KERR_NONE;
    size_t n = b->size - BATCH_HEAD, cap = codec_cap(n);
    size_t limit = (size_t)c->policy->max_message_bytes;
    bool limited = target == CODEC_NONE && limit < cap; /* what will be refused need not be made */
    int rc = decompress(b, limited ? limit : cap, body, giant);
    if (rc == -EFBIG && limited)
        return fail_rc(c, -EMSGSIZE);
    if (rc == -ENOMEM)
        return fail_rc(c, rc);
    if (rc)
        return prepare_fail(c->arena, c->out, KERR_INVALID_RECORD, "%s",
                            rc == -EFBIG ? "The decompressed data is larger than allowed"
                                         : "The compressed data is malformed");
    *p = body->p;
    *end = body->p + body->len;
    return KERR_NONE;
}

enum kerr records_rebuild_v2(struct record_check *c, enum codec target)
{
    const struct batch *b = &c->out->batches[0].head;
    struct buf body = BUF_INIT;
    const uint8_t *p, *end;
    bool giant = false;
    enum kerr code = plain_records(c, b, target, &body, &giant, &p, &end);
    if (code == KERR_NONE)
        code = record_check_plain(c, b, p, end);
    if (code == KERR_NONE)
        code = record_check_result(c);
    if (code == KERR_NONE) {
        bool movable = c->dense && c->first_timestamp == b->base_timestamp;
        int rc = (movable ? move_records : rewrite_records)(c, b, target, p, end);
        if (rc)
            code = fail_rc(c, rc);
    }
    buf_free(&body);
    if (giant)
        codec_giant_end();
    return code;
}

/* ---- magic 0 and 1 ---- */

/* The records of one entry into the builder, which takes them only while none was at fault. */
static int take_entry(struct record_check *c, const struct batch *b, struct batch_builder *builder,
                      int32_t *index, size_t limit, struct record_iter *it)
{
    it->verify_inner = true;
    int rc = record_iter_init_in_turn(it, b);
    struct record r;
    while (rc == 0 && (rc = record_iter_next(it, &r)) > 0) {
        c->flagged = r.log_append_time;
        record_check_one(c, *index, r.timestamp, r.key.len >= 0);
        rc = 0;
        if (!c->out->errors_n) {
            rc = batch_builder_add_record(builder, *index, &r);
            if (rc == 0 && batch_builder_size(builder) > limit)
                rc = -EMSGSIZE;
        }
        (*index)++;
    }
    return rc;
}

enum kerr records_rebuild_legacy(struct record_check *c, enum codec target)
{
    struct prepared *out = c->out;
    const struct batch none = {.producer_id = NO_PRODUCER_ID,
                               .producer_epoch = NO_PRODUCER_EPOCH,
                               .base_sequence = NO_SEQUENCE};
    struct batch_options o = options_of(c, &none, target);
    struct batch_builder *builder = batch_builder_new(&o);
    size_t limit = target == CODEC_NONE ? (size_t)c->policy->max_message_bytes : INT32_MAX;
    enum kerr code = KERR_NONE;
    int rc = builder ? 0 : -ENOMEM;
    int32_t index = 0;
    for (int i = 0; rc == 0 && i < out->batches_n; i++) {
        struct record_iter it = {0};
        rc = take_entry(c, &out->batches[i].head, builder, &index, limit, &it);
        if (rc == -EBADMSG)
            code = prepare_fail(c->arena, out,
                                it.inner_crc_failed ? KERR_CORRUPT_MESSAGE : KERR_INVALID_RECORD,
                                "%s", it.why);
        record_iter_fini(&it);
    }
    if (rc == 0)
        code = record_check_result(c);
    if (rc == 0 && code == KERR_NONE)
        rc = batch_builder_finish(builder, &out->rebuilt);
    if (rc && code == KERR_NONE)
        code = fail_rc(c, rc);
    batch_builder_free(builder);
    return code;
}
