/* record_v2.h - the fields of one record inside a magic 2 batch, inside the room. Inline: this is
 * the inner loop of every produce.
 *
 * FORMAT  varint length, then: int8 attributes (ignored), varlong timestamp delta, varint offset
 *         delta, varint key length and key, varint value length and value, varint header count,
 *         then per header varint key length and key, varint value length and value. Length -1 is
 *         null, not allowed for header keys. The fields fill the length exactly. */
#ifndef PROTOCOL_RECORD_V2_H
#define PROTOCOL_RECORD_V2_H

#include "protocol/record_batch.h"

enum {
    RECORD_LENGTH_MIN = 6, /* one byte for each field */
    RECORD_SIZE_MIN = 7,   /* with the length itself */
    VARINT_MAX = 5,
    VARLONG_MAX = 10,
};

/* A call for each record, with its fields in memory, would cost half as much again. */
#define RECORD_INLINE static inline __attribute__((always_inline))

struct record_v2 {
    int64_t timestamp_delta;
    int32_t offset_delta;
    int32_t headers_n;
    struct bytes key, value;
    const uint8_t *headers, *end;
};

/* A number and the place behind it; p is NULL when it is cut short, too long, or has bits that do
 * not fit. By value, so that the callers' variables can stay in registers. */
struct varint {
    const uint8_t *p;
    int64_t v;
};
#define RECORD_RARE __attribute__((cold, noinline)) /* out of the way of the common forms */
RECORD_RARE struct varint varint_get_long(const uint8_t *p, const uint8_t *end);
RECORD_RARE struct varint varlong_get_long(const uint8_t *p, const uint8_t *end);

static inline int64_t unzigzag(uint32_t v)
{
    return (int32_t)(v >> 1 ^ (0 - (v & 1)));
}

/* Forms of one and two bytes, which are most. */
#define VARINT_GET_SHORT(p, end)                                              \
    if (__builtin_expect((end) - (p) >= 2, 1)) {                              \
        uint32_t a_ = (p)[0], b_ = (p)[1];                                    \
        if (a_ < 0x80)                                                        \
            return (struct varint){(p) + 1, unzigzag(a_)};                    \
        if (b_ < 0x80)                                                        \
            return (struct varint){(p) + 2, unzigzag((a_ & 0x7f) | b_ << 7)}; \
    }

RECORD_INLINE struct varint varint_get(const uint8_t *p, const uint8_t *end)
{
    VARINT_GET_SHORT(p, end)
    return varint_get_long(p, end);
}

RECORD_INLINE struct varint varlong_get(const uint8_t *p, const uint8_t *end)
{
    VARINT_GET_SHORT(p, end)
    return varlong_get_long(p, end);
}

/* As varint_get, for what is hardly ever negative: the common forms are decoded on the shortest
 * way, since where the next field and record are found waits for it. */
RECORD_INLINE struct varint length_get(const uint8_t *p, const uint8_t *end)
{
    if (__builtin_expect(end - p >= 2 && !(p[0] & 1), 1)) {
        size_t a = p[0], b = p[1];
        if (a < 0x80)
            return (struct varint){p + 1, (int64_t)(a >> 1)};
        if (b < 0x80)
            return (struct varint){p + 2, (int64_t)((a >> 1 & 0x3f) + (b << 6))};
    }
    return varint_get_long(p, end);
}

/* A length and as many bytes; -1 is null. The place behind them, or NULL. */
RECORD_INLINE const uint8_t *record_bytes_get(const uint8_t *p, const uint8_t *end,
                                              struct bytes *out)
{
    if (p < end && *p == 1) {
        *out = BYTES_NULL;
        return p + 1;
    }
    struct varint len = length_get(p, end);
    if (!len.p || len.v > end - len.p)
        return NULL;
    if (__builtin_expect(len.v < 0, 0)) { /* null again, in a longer form */
        *out = BYTES_NULL;
        return len.v == -1 ? len.p : NULL;
    }
    *out = (struct bytes){len.p, (int32_t)len.v};
    return len.p + len.v;
}

/* Walks `n` headers that must end at `end`. */
bool record_headers_ok(const uint8_t *p, const uint8_t *end, int32_t n);

/* The fields behind the length, which fill [p, end): end - p >= RECORD_LENGTH_MIN. */
RECORD_INLINE bool record_fields_get(const uint8_t *p, const uint8_t *end, struct record_v2 *r)
{
    struct varint time = varlong_get(p + 1, end); /* behind the attributes */
    if (!time.p)
        return false;
    struct varint offset = length_get(time.p, end);
    if (!offset.p || !(p = record_bytes_get(offset.p, end, &r->key)) ||
        !(p = record_bytes_get(p, end, &r->value)))
        return false;
    /* No headers is the common case, and then this is the last byte. */
    struct varint headers = {end, 0};
    if (p + 1 != end || *p != 0)
        headers = varint_get(p, end);
    if (!headers.p)
        return false;
    r->timestamp_delta = time.v;
    r->offset_delta = (int32_t)offset.v;
    r->headers_n = (int32_t)headers.v;
    r->headers = headers.p;
    r->end = end;
    return r->headers_n == 0 ? headers.p == end : record_headers_ok(headers.p, end, r->headers_n);
}

/* The record at p; returns the next one's place, NULL when it is malformed or does not end before
 * `end`. */
RECORD_INLINE const uint8_t *record_get(const uint8_t *p, const uint8_t *end, struct record_v2 *r)
{
    struct varint len = length_get(p, end);
    if (!len.p || len.v < RECORD_LENGTH_MIN || len.v > end - len.p)
        return NULL;
    const uint8_t *next = len.p + len.v;
    return record_fields_get(len.p, next, r) ? next : NULL;
}

#endif
