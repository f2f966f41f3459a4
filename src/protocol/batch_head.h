/* batch_head.h - writing the head of a magic 2 batch, inside the room. */
#ifndef PROTOCOL_BATCH_HEAD_H
#define PROTOCOL_BATCH_HEAD_H

#include "protocol/record_batch.h"

/* Writes all BATCH_HEAD bytes in front of the records that are there already (h->size - BATCH_HEAD
 * bytes), with the CRC. Attributes are cut to the known bits. h->p, codec and crc are not read. */
void batch_head_write(uint8_t *p, const struct batch *h);
/* The CRC anew, after attributes or a timestamp changed. */
void batch_head_seal(uint8_t *p, uint32_t size);

enum {
    BATCH_ATTRIBUTES_KNOWN = BATCH_CODEC_MASK | BATCH_LOG_APPEND_TIME | BATCH_TRANSACTIONAL |
                             BATCH_CONTROL | BATCH_DELETE_HORIZON
};

#endif
