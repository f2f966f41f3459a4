/* record_batch.c - the heads of entries, their checksums, and sequence arithmetic. */
#include "protocol/record_batch.h"

#include "base/checksum.h"
#include "protocol/legacy_message.h"

enum { LENGTH_MIN = 14 }; /* of an entry of any magic, without the prefix */

static void decode_v2(const uint8_t *p, struct batch *out)
{
    int16_t attributes = (int16_t)get_be16(p + BATCH_AT_ATTRIBUTES);
    int32_t last_delta = (int32_t)get_be32(p + BATCH_AT_LAST_OFFSET_DELTA);
    int32_t base_sequence = (int32_t)get_be32(p + BATCH_AT_BASE_SEQUENCE);
    out->codec = attributes & BATCH_CODEC_MASK;
    out->attributes = attributes;
    out->leader_epoch = (int32_t)get_be32(p + BATCH_AT_LEADER_EPOCH);
    out->crc = get_be32(p + BATCH_AT_CRC);
    out->base_offset = (int64_t)get_be64(p);
    out->last_offset = (int64_t)((uint64_t)out->base_offset + (uint64_t)last_delta);
    out->base_timestamp = (int64_t)get_be64(p + BATCH_AT_BASE_TIMESTAMP);
    out->max_timestamp = (int64_t)get_be64(p + BATCH_AT_MAX_TIMESTAMP);
    out->producer_id = (int64_t)get_be64(p + BATCH_AT_PRODUCER_ID);
    out->producer_epoch = (int16_t)get_be16(p + BATCH_AT_PRODUCER_EPOCH);
    out->base_sequence = base_sequence;
    out->last_sequence =
        base_sequence < 0 || last_delta < 0 ? NO_SEQUENCE : sequence_add(base_sequence, last_delta);
    out->record_count = (int32_t)get_be32(p + BATCH_AT_RECORD_COUNT);
}

static void decode_legacy(const uint8_t *p, struct batch *out)
{
    out->attributes = p[LEGACY_AT_ATTRIBUTES] & (out->magic == 0 ? BATCH_CODEC_MASK : 0xff);
    out->codec = out->attributes & BATCH_CODEC_MASK;
    out->leader_epoch = NO_LEADER_EPOCH;
    out->crc = get_be32(p + LEGACY_AT_CRC);
    out->base_offset = out->last_offset = (int64_t)get_be64(p);
    out->base_timestamp = out->max_timestamp =
        out->magic == 0 ? NO_TIMESTAMP : (int64_t)get_be64(p + LEGACY_AT_TIMESTAMP);
    out->producer_id = NO_PRODUCER_ID;
    out->producer_epoch = NO_PRODUCER_EPOCH;
    out->base_sequence = out->last_sequence = NO_SEQUENCE;
    out->record_count = -1;
}

enum batch_walk batch_decode(const uint8_t *p, size_t have, uint64_t left, struct batch *out)
{
    static const struct {
        uint8_t head; /* bytes that the fields of the head take */
        uint8_t size_min;
    } magics[] = {
        {LEGACY_HEAD_V0, LEGACY_MIN_V0}, {LEGACY_HEAD_V1, LEGACY_MIN_V1}, {BATCH_HEAD, BATCH_HEAD}};
    if (left < ENTRY_PREFIX || have < ENTRY_PREFIX)
        return BATCH_END;
    int32_t length = (int32_t)get_be32(p + BATCH_AT_LENGTH);
    if (length < LENGTH_MIN)
        return BATCH_CORRUPT;
    if (left < ENTRY_HEAD || have < ENTRY_HEAD)
        return BATCH_END;
    uint8_t magic = p[BATCH_AT_MAGIC];
    if (magic > 2)
        return BATCH_CORRUPT;
    uint32_t size = (uint32_t)length + ENTRY_PREFIX;
    if (size > left)
        return BATCH_END;
    if (size < magics[magic].size_min)
        return BATCH_CORRUPT;
    if (have < magics[magic].head)
        return BATCH_END;
    out->p = p;
    out->size = size;
    out->magic = (int8_t)magic;
    if (magic == 2)
        decode_v2(p, out);
    else
        decode_legacy(p, out);
    return BATCH_OK;
}

bool batch_crc_ok(const struct batch *b)
{
    if (b->magic == 2)
        return b->size >= BATCH_HEAD &&
               b->crc == crc32c(b->p + BATCH_AT_ATTRIBUTES, b->size - BATCH_AT_ATTRIBUTES);
    return b->size >= (b->magic == 0 ? LEGACY_MIN_V0 : LEGACY_MIN_V1) &&
           b->crc == legacy_crc(b->p, b->size);
}

/* In 64 bits: of damaged files the numbers may be any. */
static int32_t wrap_sequence(int64_t v)
{
    if (v > INT32_MAX)
        v -= INT64_C(1) << 31;
    return (int32_t)(v < 0 ? v + (INT64_C(1) << 31) : v);
}

int32_t sequence_add(int32_t s, int32_t n)
{
    return wrap_sequence((int64_t)s + n);
}

int32_t sequence_sub(int32_t s, int32_t n)
{
    return wrap_sequence((int64_t)s - n);
}
