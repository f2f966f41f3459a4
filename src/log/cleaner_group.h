/* cleaner_group.h - which neighbouring segments become one. Decides on facts handed in.
 *
 * THREADS    any: no state.
 *
 * OWNERSHIP  borrows the facts for the call. */
#ifndef LOG_CLEANER_GROUP_H
#define LOG_CLEANER_GROUP_H

#include <stdint.h>

struct cleaner_group_segment {
    int64_t base;
    int64_t size, offset_index_bytes, time_index_bytes;
    int64_t last_offset; /* nothing in it is above: the next segment's base - 1 */
};

struct cleaner_group_limits {
    int64_t segment_bytes, index_bytes;
};

/* How many of the n segments, from the first on, form the next group: as many as fit, by bytes of
 * data and of each index, and by the offsets that a segment of the first one's base can express. At
 * least 1. */
int cleaner_group(const struct cleaner_group_segment *v, int n, struct cleaner_group_limits limits);

#endif
