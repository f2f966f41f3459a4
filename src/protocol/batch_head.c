/* batch_head.c - see batch_head.h. */
#include "protocol/batch_head.h"

#include "base/checksum.h"

void batch_head_write(uint8_t *p, const struct batch *h)
{
    put_be64(p, (uint64_t)h->base_offset);
    put_be32(p + BATCH_AT_LENGTH, h->size - ENTRY_PREFIX);
    put_be32(p + BATCH_AT_LEADER_EPOCH, (uint32_t)h->leader_epoch);
    p[BATCH_AT_MAGIC] = 2;
    put_be16(p + BATCH_AT_ATTRIBUTES, (uint16_t)(h->attributes & BATCH_ATTRIBUTES_KNOWN));
    put_be32(p + BATCH_AT_LAST_OFFSET_DELTA, (uint32_t)(h->last_offset - h->base_offset));
    put_be64(p + BATCH_AT_BASE_TIMESTAMP, (uint64_t)h->base_timestamp);
    put_be64(p + BATCH_AT_MAX_TIMESTAMP, (uint64_t)h->max_timestamp);
    put_be64(p + BATCH_AT_PRODUCER_ID, (uint64_t)h->producer_id);
    put_be16(p + BATCH_AT_PRODUCER_EPOCH, (uint16_t)h->producer_epoch);
    put_be32(p + BATCH_AT_BASE_SEQUENCE, (uint32_t)h->base_sequence);
    put_be32(p + BATCH_AT_RECORD_COUNT, (uint32_t)h->record_count);
    batch_head_seal(p, h->size);
}

void batch_head_seal(uint8_t *p, uint32_t size)
{
    put_be32(p + BATCH_AT_CRC, crc32c(p + BATCH_AT_ATTRIBUTES, size - BATCH_AT_ATTRIBUTES));
}
