#include "log/time_index.h"

#include "base/buf.h"

enum { AT_TIMESTAMP = 0, AT_OFFSET = 8 };

void time_entry_encode(uint8_t out[TIME_ENTRY_BYTES], int64_t base, struct time_offset e)
{
    put_be64(out + AT_TIMESTAMP, (uint64_t)e.timestamp);
    put_be32(out + AT_OFFSET, (uint32_t)(e.offset - base));
}

struct time_offset time_index_at(struct index_view *v, int64_t base, int32_t i)
{
    return (struct time_offset){index_view_key(v, i, AT_TIMESTAMP, 8),
                                base + index_view_key(v, i, AT_OFFSET, 4)};
}

struct time_offset time_index_last(struct index_view *v, int64_t base)
{
    return v->n ? time_index_at(v, base, v->n - 1) : (struct time_offset){-1, base};
}

struct time_offset time_index_floor(struct index_view *v, int64_t base, int64_t target)
{
    int32_t i = index_view_floor(v, AT_TIMESTAMP, 8, target);
    return i < 0 ? (struct time_offset){-1, base} : time_index_at(v, base, i);
}

int32_t time_index_kept(struct index_view *v, int64_t base, int64_t offset)
{
    if (offset <= base)
        return 0;
    int64_t last = offset - 1 - base > INT32_MAX ? INT32_MAX : offset - 1 - base;
    return index_view_floor(v, AT_OFFSET, 4, last) + 1;
}

bool time_index_sane(struct index_view *v, int64_t base)
{
    if (v->n == 0)
        return true;
    struct time_offset first = time_index_at(v, base, 0);
    struct time_offset last = time_index_at(v, base, v->n - 1);
    /* equal times in two entries: zeros that were never cut off */
    return last.offset >= base && first.timestamp >= 0 &&
           (v->n == 1 || last.timestamp > first.timestamp);
}
