/* legacy_message.h - one message of magic 0 or 1, inside the room.
 *
 * FORMAT  offset 8, size 4, crc 4 (CRC-32 of all that follows), magic 1, attributes 1, in magic 1
 *         timestamp 8, key length 4 and key, value length 4 and value; length -1 is null. */
#ifndef PROTOCOL_LEGACY_MESSAGE_H
#define PROTOCOL_LEGACY_MESSAGE_H

#include "protocol/record_batch.h"

enum {
    LEGACY_AT_CRC = 12,
    LEGACY_AT_ATTRIBUTES = 17,
    LEGACY_AT_TIMESTAMP = 18, /* magic 1 */
    LEGACY_HEAD_V0 = 18,      /* up to the key length */
    LEGACY_HEAD_V1 = 26,
    LEGACY_MIN_V0 = LEGACY_HEAD_V0 + 8, /* both lengths */
    LEGACY_MIN_V1 = LEGACY_HEAD_V1 + 8,
};

/* p has at least LEGACY_MIN_V0 readable bytes, `size` of them. */
uint32_t legacy_crc(const uint8_t *p, uint32_t size);

/* Key and value of a whole message; false unless they fill it exactly. Borrowed. */
bool legacy_fields(const struct batch *message, struct bytes *key, struct bytes *value);

#endif
