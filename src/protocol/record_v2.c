/* record_v2.c - the rare forms: long varints, headers. */
#include "protocol/record_v2.h"

/* At most `bits` bits, seven a byte, lowest first; padded forms are fine. */
static const uint8_t *leb128_get(const uint8_t *p, const uint8_t *end, int bits, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < bits && p < end; shift += 7) {
        uint64_t part = *p & 0x7f;
        if (bits - shift < 7 && part >> (bits - shift))
            return NULL;
        *v |= part << shift;
        if (!(*p++ & 0x80))
            return p;
    }
    return NULL;
}

struct varint varint_get_long(const uint8_t *p, const uint8_t *end)
{
    uint64_t u;
    p = leb128_get(p, end, 32, &u);
    return (struct varint){p, unzigzag((uint32_t)u)};
}

struct varint varlong_get_long(const uint8_t *p, const uint8_t *end)
{
    uint64_t u;
    p = leb128_get(p, end, 64, &u);
    return (struct varint){p, (int64_t)(u >> 1 ^ (0 - (u & 1)))};
}

bool record_headers_ok(const uint8_t *p, const uint8_t *end, int32_t n)
{
    if (n < 0 || n > (end - p) / 2)
        return false;
    struct bytes key, value;
    for (; n > 0; n--)
        if (!(p = record_bytes_get(p, end, &key)) || key.len < 0 ||
            !(p = record_bytes_get(p, end, &value)))
            return false;
    return p == end;
}

bool record_header_next(struct reader *at, struct record_header *h)
{
    struct bytes key;
    const uint8_t *p = at->p;
    if (at->bad || p == at->end)
        return false;
    if (!(p = record_bytes_get(p, at->end, &key)) || key.len < 0 ||
        !(p = record_bytes_get(p, at->end, &h->value))) {
        at->bad = true;
        return false;
    }
    h->key = (struct str){(const char *)key.p, key.len};
    at->p = p;
    return true;
}
