/* offset_index.h - <base>.index: where in the segment's file the batches lie.
 *
 * FORMAT      8 bytes an entry: int32 offset relative to the segment's base, int32 position. The
 *             append that begins at `position` ends with `offset`.
 * INVARIANTS  offsets and positions strictly increase; a position is the start of a batch and
 *             never 0, since the first bytes of a file get no entry.
 * THREADS     any; a view belongs to one (index_file.h). */
#ifndef LOG_OFFSET_INDEX_H
#define LOG_OFFSET_INDEX_H

#include "log/index_file.h"

#define OFFSET_ENTRY_BYTES 8

struct offset_position {
    int64_t offset;
    int64_t position;
};

void offset_entry_encode(uint8_t out[OFFSET_ENTRY_BYTES], int64_t base, struct offset_position e);
struct offset_position offset_index_at(struct index_view *v, int64_t base, int32_t i);
/* The entry with the largest offset <= target; (base, 0) when there is none. */
struct offset_position offset_index_floor(struct index_view *v, int64_t base, int64_t target);
/* The first entry at or behind `position`; false when there is none. */
bool offset_index_from_position(struct index_view *v, int64_t base, int64_t position,
                                struct offset_position *out);
/* How many entries stay when everything from `offset` on goes. */
int32_t offset_index_kept(struct index_view *v, int64_t base, int64_t offset);
/* Does the end look like an index of a file with `log_bytes` bytes? */
bool offset_index_sane(struct index_view *v, int64_t base, int64_t log_bytes);

#endif
