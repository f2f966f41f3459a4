/* legacy_message.c - checksum and fields of a message of magic 0 or 1. */
#include "protocol/legacy_message.h"

#include <zlib.h>

uint32_t legacy_crc(const uint8_t *p, uint32_t size)
{
    return (uint32_t)crc32(0, p + BATCH_AT_MAGIC, size - BATCH_AT_MAGIC);
}

bool legacy_fields(const struct batch *message, struct bytes *key, struct bytes *value)
{
    uint32_t head = message->magic == 0 ? LEGACY_HEAD_V0 : LEGACY_HEAD_V1;
    struct reader r = reader_of(message->p + head, message->size - head);
    struct bytes *fields[] = {key, value};
    for (int i = 0; i < 2; i++) {
        int32_t len = reader_i32(&r);
        *fields[i] = len < 0 ? BYTES_NULL : (struct bytes){reader_take(&r, (size_t)len), len};
        if (len < -1 || r.bad)
            return false;
    }
    return r.p == r.end;
}
