/* records_append.c - from the bytes of a request to bytes that a log can take.
 *
 * The common case, one magic 2 batch that keeps its codec, never moves: its CRC is computed once
 * over the bytes as they lie, its records are walked once, and of the head only what the topic's
 * timestamp type demands is changed (with a new CRC only then). */
#include "protocol/records_append.h"

#include <inttypes.h>

#include "protocol/batch_head.h"
#include "protocol/legacy_message.h"
#include "protocol/record_check.h"
#include "protocol/records_rebuild.h"

/* Produce versions at which rules begin. */
enum { PRODUCE_V2_ONLY = 3, PRODUCE_ZSTD = 7 };

/* ---- the entries ---- */

/* Number of whole entries and their bytes; false when one is malformed. */
static bool count_entries(const uint8_t *p, size_t n, int *count, size_t *bytes)
{
    struct batch b;
    enum batch_walk w;
    *count = 0;
    *bytes = 0;
    if (n == 0) /* and p may be NULL */
        return true;
    while ((w = batch_decode(p + *bytes, n - *bytes, n - *bytes, &b)) == BATCH_OK) {
        ++*count;
        *bytes += b.size;
    }
    return w == BATCH_END;
}

static enum kerr find_entries(uint8_t *p, size_t n, struct arena *a, struct prepared *out)
{
    int count;
    if (!count_entries(p, n, &count, &out->len))
        return prepare_fail(a, out, KERR_CORRUPT_MESSAGE,
                            "An entry's size or magic is out of range");
    if (!count)
        return KERR_NONE;
    out->batches = arena_array(a, struct prepared_batch, (size_t)count);
    if (!out->batches)
        return prepare_fail(a, out, KERR_UNKNOWN_SERVER_ERROR, "Out of memory");
    for (size_t at = 0; at < out->len; out->batches_n++) {
        struct prepared_batch *b = &out->batches[out->batches_n];
        batch_decode(p + at, out->len - at, out->len - at, &b->head);
        b->at = at;
        at += b->head.size;
        if (b->head.codec != CODEC_NONE && b->head.codec < CODECS)
            out->source_codec = (enum codec)b->head.codec;
    }
    return KERR_NONE;
}

/* What Produce demands of its records field by version, before anything else is looked at. */
static enum kerr check_request(int version, struct arena *a, struct prepared *out)
{
    if (version < PRODUCE_V2_ONLY)
        return KERR_NONE;
    if (out->batches_n == 0)
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Produce requests with version %d must have at least one record batch",
                            version);
    if (out->batches[0].head.magic != 2) {
        out->fault = FAULT_MAGIC;
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Produce requests with version %d are only allowed to contain record "
                            "batches with magic version 2",
                            version);
    }
    if (version < PRODUCE_ZSTD && out->batches[0].head.codec == CODEC_ZSTD)
        return prepare_fail(a, out, KERR_UNSUPPORTED_COMPRESSION_TYPE,
                            "Produce requests with version %d are not allowed to use zstd",
                            version);
    if (out->batches_n > 1)
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Produce requests with version %d must have exactly one record batch",
                            version);
    return KERR_NONE;
}

/* Checks that need no more than the entry itself. */
static enum kerr check_entry(const struct append_policy *policy, const struct batch *b,
                             struct arena *a, struct prepared *out)
{
    if (policy->origin == APPEND_CLIENT && b->magic == 2 && b->base_offset != 0) {
        out->fault = FAULT_OFFSET;
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "The base offset of the record batch should be 0, but it is %" PRId64,
                            b->base_offset);
    }
    if (policy->origin != APPEND_REPLICATION && b->size > (uint32_t)policy->max_message_bytes)
        return prepare_fail(a, out, KERR_MESSAGE_TOO_LARGE,
                            "The record batch has %" PRIu32
                            " bytes, more than the maximum of %" PRId32,
                            b->size, policy->max_message_bytes);
    if (!batch_crc_ok(b)) {
        out->fault = FAULT_CRC;
        return prepare_fail(a, out, KERR_CORRUPT_MESSAGE,
                            "Record is corrupt: the checksum is not the stored %08" PRIx32, b->crc);
    }
    if (b->codec >= CODECS || (b->magic < 2 && b->codec >= CODEC_ZSTD))
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Compression codec %d does not exist in format %d", b->codec, b->magic);
    return KERR_NONE;
}

/* Offsets of the whole, and its largest timestamp. */
static void summarize(struct prepared *out)
{
    const struct batch *first = &out->batches[0].head;
    out->first_offset = first->base_offset;
    out->max_timestamp = NO_TIMESTAMP;
    out->max_timestamp_delta = 0;
    out->offsets_n = 0;
    for (int i = 0; i < out->batches_n; i++) {
        const struct batch *b = &out->batches[i].head;
        out->last_offset = b->last_offset;
        out->offsets_n += b->last_offset - b->base_offset + 1;
        if (b->max_timestamp > out->max_timestamp) {
            out->max_timestamp = b->max_timestamp;
            out->max_timestamp_delta = b->last_offset - out->first_offset;
        }
    }
}

/* ---- replication: offsets stand as they are ---- */

static enum kerr prepare_replicated(struct arena *a, struct prepared *out)
{
    int64_t last = -1;
    for (int i = 0; i < out->batches_n; i++) {
        const struct batch *b = &out->batches[i].head;
        if (b->base_offset <= last || b->last_offset < b->base_offset)
            return prepare_fail(a, out, KERR_CORRUPT_MESSAGE,
                                "Offsets are out of order: %" PRId64 " to %" PRId64
                                " behind %" PRId64,
                                b->base_offset, b->last_offset, last);
        last = b->last_offset;
    }
    summarize(out);
    return KERR_NONE;
}

/* ---- leader ---- */

static enum kerr check_set(struct arena *a, struct prepared *out)
{
    const struct batch *first = &out->batches[0].head;
    if (out->batches_n > 1 && (first->magic == 2 || out->source_codec != CODEC_NONE))
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Compressed data, or a record batch, must come alone");
    for (int i = 1; i < out->batches_n; i++)
        if (out->batches[i].head.magic != first->magic) {
            out->fault = FAULT_MAGIC;
            return prepare_fail(a, out, KERR_INVALID_RECORD,
                                "Batch magic %d is not the same as the first batch's magic %d",
                                out->batches[i].head.magic, first->magic);
        }
    return KERR_NONE;
}

static enum kerr check_counts(const struct batch *b, struct arena *a, struct prepared *out)
{
    if (b->base_offset < 0 || b->last_offset < b->base_offset) {
        out->fault = FAULT_OFFSET;
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Batch has an invalid offset range: [%" PRId64 ", %" PRId64 "]",
                            b->base_offset, b->last_offset);
    }
    if (b->record_count <= 0)
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Invalid reported count for record batch: %" PRId32, b->record_count);
    if (b->last_offset - b->base_offset != b->record_count - 1) {
        out->fault = FAULT_OFFSET;
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Inconsistent batch offset range [%" PRId64 ", %" PRId64
                            "] and count of records %" PRId32,
                            b->base_offset, b->last_offset, b->record_count);
    }
    size_t body = b->size - BATCH_HEAD;
    size_t most = b->codec == CODEC_NONE ? body : codec_cap(body);
    if ((size_t)b->record_count > most / 7) /* the smallest record */
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Count of records %" PRId32 " is more than %zu bytes can hold",
                            b->record_count, body);
    return KERR_NONE;
}

static enum kerr check_producer(const struct append_policy *policy, const struct batch *b,
                                struct arena *a, struct prepared *out)
{
    if (policy->origin != APPEND_CLIENT)
        return KERR_NONE;
    if (batch_is_control(b))
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Clients are not allowed to write control records");
    if (b->producer_id != NO_PRODUCER_ID && b->base_sequence < 0) {
        out->fault = FAULT_OFFSET;
        return prepare_fail(a, out, KERR_INVALID_RECORD,
                            "Invalid sequence number %" PRId32
                            " in record batch with producer id %" PRId64,
                            b->base_sequence, b->producer_id);
    }
    return KERR_NONE;
}

/* Timestamp type and maximum as the topic wants them. The CRC covers both. */
static void settle_timestamps(const struct record_check *c, uint8_t *p, struct batch *b)
{
    bool append_time = c->policy->log_append_time;
    int16_t attributes =
        (int16_t)((b->attributes & ~(BATCH_LOG_APPEND_TIME | BATCH_DELETE_HORIZON)) |
                  (append_time ? BATCH_LOG_APPEND_TIME : 0));
    int64_t max = append_time ? c->policy->now_ms : c->max_timestamp;
    if (attributes == b->attributes && max == b->max_timestamp)
        return;
    b->attributes = attributes & BATCH_ATTRIBUTES_KNOWN;
    b->max_timestamp = max;
    put_be16(p + BATCH_AT_ATTRIBUTES, (uint16_t)b->attributes);
    put_be64(p + BATCH_AT_MAX_TIMESTAMP, (uint64_t)max);
    batch_head_seal(p, b->size);
    b->crc = get_be32(p + BATCH_AT_CRC);
}

static enum kerr check_in_place(struct record_check *c, const struct batch *b)
{
    c->dense_required = b->codec == CODEC_NONE;
    enum kerr code = b->codec == CODEC_NONE
                         ? record_check_plain(c, b, b->p + BATCH_HEAD, b->p + b->size)
                         : record_check_compressed(c, b);
    return code != KERR_NONE ? code : record_check_result(c);
}

/* Makes the rebuilt bytes the result. */
static enum kerr take_rebuilt(const struct append_policy *policy, struct arena *a,
                              struct prepared *out)
{
    out->p = out->rebuilt.p;
    out->len = out->rebuilt.len;
    out->batches_n = 1;
    out->batches[0].at = 0;
    batch_decode(out->p, out->len, out->len, &out->batches[0].head);
    if (out->len > (size_t)policy->max_message_bytes)
        return prepare_fail(a, out, KERR_MESSAGE_TOO_LARGE,
                            "The record batch has %zu bytes once rebuilt, more than the maximum "
                            "of %" PRId32,
                            out->len, policy->max_message_bytes);
    return KERR_NONE;
}

static enum kerr prepare_v2(const struct append_policy *policy, enum codec target, struct arena *a,
                            struct prepared *out)
{
    struct batch *b = &out->batches[0].head;
    struct record_check c;
    enum kerr code = check_counts(b, a, out);
    if (code == KERR_NONE)
        code = check_producer(policy, b, a, out);
    if (code != KERR_NONE)
        return code;
    record_check_init(&c, policy, a, out);
    if ((enum codec)b->codec == target || batch_is_control(b)) {
        code = check_in_place(&c, b);
        if (code != KERR_NONE)
            return code;
        if (c.dense) {
            settle_timestamps(&c, out->p, b);
            return KERR_NONE;
        }
        record_check_init(&c, policy, a, out);
    }
    c.dense_required = b->codec == CODEC_NONE;
    code = records_rebuild_v2(&c, target);
    return code != KERR_NONE ? code : take_rebuilt(policy, a, out);
}

static enum kerr prepare_legacy(const struct append_policy *policy, enum codec target,
                                struct arena *a, struct prepared *out)
{
    struct record_check c;
    record_check_init(&c, policy, a, out);
    enum kerr code = records_rebuild_legacy(&c, target);
    return code != KERR_NONE ? code : take_rebuilt(policy, a, out);
}

static enum kerr prepare_leader(const struct append_policy *policy, struct arena *a,
                                struct prepared *out)
{
    enum kerr code = check_set(a, out);
    if (code != KERR_NONE)
        return code;
    enum codec target = policy->compression == COMPRESSION_PRODUCER
                            ? out->source_codec
                            : (enum codec)policy->compression;
    code = (out->batches[0].head.magic == 2 ? prepare_v2 : prepare_legacy)(policy, target, a, out);
    if (code == KERR_NONE)
        summarize(out);
    return code;
}

enum kerr records_prepare(const struct append_policy *policy, uint8_t *p, size_t n, struct arena *a,
                          struct prepared *out)
{
    *out = (struct prepared){
        .p = p,
        .max_timestamp = NO_TIMESTAMP,
        .first_offset = -1,
        .last_offset = -1,
        .source_codec = CODEC_NONE,
    };
    enum kerr code = find_entries(p, n, a, out);
    if (code == KERR_NONE)
        code = check_request(policy->produce_version, a, out);
    for (int i = 0; code == KERR_NONE && i < out->batches_n; i++)
        code = check_entry(policy, &out->batches[i].head, a, out);
    if (code != KERR_NONE || out->batches_n == 0)
        return code;
    return policy->origin == APPEND_REPLICATION ? prepare_replicated(a, out)
                                                : prepare_leader(policy, a, out);
}

void prepared_free(struct prepared *pr)
{
    buf_free(&pr->rebuilt);
}

void records_assign(struct prepared *pr, int64_t first_offset, int32_t leader_epoch)
{
    int64_t next = first_offset;
    for (int i = 0; i < pr->batches_n; i++) {
        struct batch *b = &pr->batches[i].head;
        uint8_t *p = pr->p + pr->batches[i].at;
        int64_t delta = b->last_offset - b->base_offset;
        put_be64(p, (uint64_t)next);
        put_be32(p + BATCH_AT_LEADER_EPOCH, (uint32_t)leader_epoch);
        b->base_offset = next;
        b->last_offset = next + delta;
        b->leader_epoch = leader_epoch;
        next = b->last_offset + 1;
    }
    if (pr->batches_n == 0)
        return;
    pr->first_offset = first_offset;
    pr->last_offset = next - 1;
}
