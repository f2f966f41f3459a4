/* buf.h - a growing byte buffer to write into, and a reader over bytes. Integers are big-endian.
 *
 * Errors are sticky: a put without memory sets `failed`, a get past the end sets `bad` and returns
 * zero or null; the caller tests once at the end. Neither ever touches memory outside its range.
 *
 * OWNERSHIP  buf owns its memory until buf_free or buf_take; reader borrows. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

struct buf {
    uint8_t *p;
    size_t len, cap;
    bool failed;
    bool secret; /* set by who puts a secret into it: memory is overwritten before it goes back */
};

#define BUF_INIT ((struct buf){0})

void buf_free(struct buf *b);
/* Room for `more` bytes behind len; false (and failed) without memory. */
bool buf_reserve(struct buf *b, size_t more);
/* Hands the memory to the caller (free()); the buffer is empty afterwards. Returns owned. */
uint8_t *buf_take(struct buf *b, size_t *len);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_put_zero(struct buf *b, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void put_be16(uint8_t *p, uint16_t v)
{
    v = htobe16(v);
    memcpy(p, &v, 2);
}
static inline void put_be32(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}
static inline void put_be64(uint8_t *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, 8);
}
static inline uint16_t get_be16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return be16toh(v);
}
static inline uint32_t get_be32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}
static inline uint64_t get_be64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return be64toh(v);
}

static inline void buf_put_i8(struct buf *b, int8_t v)
{
    if (buf_reserve(b, 1))
        b->p[b->len++] = (uint8_t)v;
}
static inline void buf_put_i16(struct buf *b, int16_t v)
{
    if (buf_reserve(b, 2)) {
        put_be16(b->p + b->len, (uint16_t)v);
        b->len += 2;
    }
}
static inline void buf_put_i32(struct buf *b, int32_t v)
{
    if (buf_reserve(b, 4)) {
        put_be32(b->p + b->len, (uint32_t)v);
        b->len += 4;
    }
}
static inline void buf_put_i64(struct buf *b, int64_t v)
{
    if (buf_reserve(b, 8)) {
        put_be64(b->p + b->len, (uint64_t)v);
        b->len += 8;
    }
}
/* Shortest forms: unsigned varint; zigzag varint and varlong. */
void buf_put_uvarint(struct buf *b, uint32_t v);
void buf_put_varint(struct buf *b, int32_t v);
void buf_put_varlong(struct buf *b, int64_t v);

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

/* p may be NULL when n is 0. */
static inline struct reader reader_of(const void *p, size_t n)
{
    if (!p)
        p = "";
    return (struct reader){(const uint8_t *)p, (const uint8_t *)p + n, false};
}
static inline size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}
/* Borrowed pointer to the next n bytes and past them; NULL and bad when fewer are left. */
static inline const uint8_t *reader_take(struct reader *r, size_t n)
{
    if (r->bad || reader_left(r) < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    return p;
}
static inline int8_t reader_i8(struct reader *r)
{
    const uint8_t *p = reader_take(r, 1);
    return p ? (int8_t)*p : 0;
}
static inline int16_t reader_i16(struct reader *r)
{
    const uint8_t *p = reader_take(r, 2);
    return p ? (int16_t)get_be16(p) : 0;
}
static inline int32_t reader_i32(struct reader *r)
{
    const uint8_t *p = reader_take(r, 4);
    return p ? (int32_t)get_be32(p) : 0;
}
static inline int64_t reader_i64(struct reader *r)
{
    const uint8_t *p = reader_take(r, 8);
    return p ? (int64_t)get_be64(p) : 0;
}
/* At most 5 (varint) or 10 (varlong) bytes; longer, or bits that do not fit, is bad. Padded forms
 * are fine. */
uint32_t reader_uvarint(struct reader *r);
int32_t reader_varint(struct reader *r);
int64_t reader_varlong(struct reader *r);

#endif
