/* fuzz_records.h - a coordinator's log of record batches: written, and loaded again. For the
 * targets of groups and of transactions. */
#ifndef TESTS_FUZZ_FUZZ_RECORDS_H
#define TESTS_FUZZ_FUZZ_RECORDS_H

#include <string.h>

#include "base/buf.h"
#include "base/checksum.h"
#include "coordinator/group_log.h"
#include "fuzz.h"
#include "protocol/batch_builder.h"
#include "protocol/record_batch.h"

/* Records in one batch behind what is in the log. */
static inline void records_append(struct buf *log, int64_t *next, int64_t at_ms,
                                  const struct group_record *r, int n)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *builder = batch_builder_new(&o);
    must(builder != NULL);
    for (int i = 0; i < n; i++)
        must(batch_builder_add(builder, (*next)++, at_ms, r[i].key, r[i].value, NULL, 0) == 0);
    must(batch_builder_finish(builder, log) == 0);
    batch_builder_free(builder);
}

/* Gives the whole batches at the beginning of the log to `add`, which answers 0, their checksums
 * made right. From a copy that goes afterwards: nothing may borrow from it. */
static inline void records_load(const struct buf *log, int (*add)(void *arg, const struct batch *b),
                                void *arg)
{
    uint8_t *copy = malloc(log->len + 1);
    struct batch b;
    must(copy != NULL);
    if (log->len)
        memcpy(copy, log->p, log->len);
    for (size_t at = 0, n = log->len; batch_decode(copy + at, n - at, n - at, &b) == BATCH_OK;
         at += b.size) {
        if (b.magic == 2)
            put_be32(copy + at + BATCH_AT_CRC,
                     crc32c(copy + at + BATCH_AT_ATTRIBUTES, b.size - BATCH_AT_ATTRIBUTES));
        must(batch_decode(copy + at, n - at, n - at, &b) == BATCH_OK);
        must(add(arg, &b) == 0);
    }
    free(copy);
}

#endif
