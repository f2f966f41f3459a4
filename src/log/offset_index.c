#include "log/offset_index.h"

#include "base/buf.h"

enum { AT_OFFSET = 0, AT_POSITION = 4 };

void offset_entry_encode(uint8_t out[OFFSET_ENTRY_BYTES], int64_t base, struct offset_position e)
{
    put_be32(out + AT_OFFSET, (uint32_t)(e.offset - base));
    put_be32(out + AT_POSITION, (uint32_t)e.position);
}

struct offset_position offset_index_at(struct index_view *v, int64_t base, int32_t i)
{
    return (struct offset_position){base + index_view_key(v, i, AT_OFFSET, 4),
                                    index_view_key(v, i, AT_POSITION, 4)};
}

/* An offset relative to base, kept in the range of what entries can hold. */
static int64_t relative(int64_t base, int64_t offset)
{
    if (offset < base)
        return -1;
    return offset - base > INT32_MAX ? INT32_MAX : offset - base;
}

struct offset_position offset_index_floor(struct index_view *v, int64_t base, int64_t target)
{
    int32_t i = index_view_floor(v, AT_OFFSET, 4, relative(base, target));
    return i < 0 ? (struct offset_position){base, 0} : offset_index_at(v, base, i);
}

bool offset_index_from_position(struct index_view *v, int64_t base, int64_t position,
                                struct offset_position *out)
{
    int32_t i = index_view_floor(v, AT_POSITION, 4, position - 1) + 1;
    if (i >= v->n)
        return false;
    *out = offset_index_at(v, base, i);
    return true;
}

int32_t offset_index_kept(struct index_view *v, int64_t base, int64_t offset)
{
    return index_view_floor(v, AT_OFFSET, 4, relative(base, offset - 1)) + 1;
}

bool offset_index_sane(struct index_view *v, int64_t base, int64_t log_bytes)
{
    if (v->n == 0)
        return true;
    struct offset_position last = offset_index_at(v, base, v->n - 1);
    /* position 0: zeros that were never cut off */
    if (last.offset < base || last.position <= 0 || last.position >= log_bytes)
        return false;
    if (v->n == 1)
        return true;
    struct offset_position before = offset_index_at(v, base, v->n - 2);
    return before.offset < last.offset && before.position < last.position;
}
