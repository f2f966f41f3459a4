#include "log/cleaner_group.h"

int cleaner_group(const struct cleaner_group_segment *v, int n, struct cleaner_group_limits limits)
{
    int64_t size = v[0].size, offsets = v[0].offset_index_bytes, times = v[0].time_index_bytes;
    int i = 1;
    for (; i < n; i++) {
        size += v[i].size;
        offsets += v[i].offset_index_bytes;
        times += v[i].time_index_bytes;
        if (size > limits.segment_bytes || offsets > limits.index_bytes ||
            times > limits.index_bytes)
            break;
        /* an empty one has no offsets to express, and would else be left behind for ever */
        if (v[i].size && v[i].last_offset - v[0].base > INT32_MAX)
            break;
    }
    return i;
}
