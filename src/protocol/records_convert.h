/* records_convert.h - older formats for older clients: batches of magic 2 (or 1) as message sets of
 * magic 1 or 0.
 *
 * Control batches and headers are dropped; compressed batches are recompressed with their codec as
 * one wrapper. */
#ifndef PROTOCOL_RECORDS_CONVERT_H
#define PROTOCOL_RECORDS_CONVERT_H

#include "protocol/errors.h"
#include "protocol/record_batch.h"

/* Converts whole entries in [p, p+n) to `magic`, appending to out; entries at or below that magic
 * are passed on as they are. Uncompressed records below `from_offset` are left out. Stops in front
 * of a zstd batch; *used = bytes of input consumed. KERR_UNSUPPORTED_COMPRESSION_TYPE when the
 * first entry already is zstd, KERR_CORRUPT_MESSAGE when it does not decode. */
enum kerr records_down_convert(const uint8_t *p, size_t n, int magic, int64_t from_offset,
                               struct buf *out, size_t *used);

/* Adds the filler entry that old clients skip: offset -1, a length larger than what follows, zero
 * bytes, so that exactly `owed` bytes (>= 12) are appended. */
int records_filler(size_t owed, struct buf *out);

#endif
