/* time_index.h - <base>.timeindex: up to which offset nothing is newer than a time.
 *
 * FORMAT      12 bytes an entry: int64 timestamp, int32 offset relative to the segment's base. No
 *             record up to `offset` has a timestamp above `timestamp`; offset is the last one of
 *             the batch that held the maximum when the entry was made.
 * INVARIANTS  timestamps strictly increase, offsets never decrease. The last entry of a segment
 *             that is no longer active holds its maximum.
 * THREADS     any; a view belongs to one (index_file.h). */
#ifndef LOG_TIME_INDEX_H
#define LOG_TIME_INDEX_H

#include "log/index_file.h"

#define TIME_ENTRY_BYTES 12

struct time_offset {
    int64_t timestamp;
    int64_t offset;
};

void time_entry_encode(uint8_t out[TIME_ENTRY_BYTES], int64_t base, struct time_offset e);
struct time_offset time_index_at(struct index_view *v, int64_t base, int32_t i);
/* The last entry; (-1, base) when there is none. */
struct time_offset time_index_last(struct index_view *v, int64_t base);
/* The last entry with timestamp <= target; (-1, base) when there is none. */
struct time_offset time_index_floor(struct index_view *v, int64_t base, int64_t target);
/* How many entries stay when everything from `offset` on goes. */
int32_t time_index_kept(struct index_view *v, int64_t base, int64_t offset);
bool time_index_sane(struct index_view *v, int64_t base);

#endif
