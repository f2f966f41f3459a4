/* buf.c - growth of byte buffers, and variable-length integers (7 bits a byte, lowest first; signed
 * ones zigzagged). */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/wipe.h"

enum { FIRST_CAP = 64 };

static void release(struct buf *b)
{
    if (b->secret)
        mem_wipe(b->p, b->cap);
    free(b->p);
}

void buf_free(struct buf *b)
{
    release(b);
    *b = BUF_INIT;
}

/* realloc leaves what it moves behind. */
static uint8_t *grown(struct buf *b, size_t cap)
{
    if (!b->secret)
        return realloc(b->p, cap);
    uint8_t *p = malloc(cap);
    if (!p)
        return NULL;
    if (b->len)
        memcpy(p, b->p, b->len);
    release(b);
    return p;
}

bool buf_reserve(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more <= b->cap - b->len)
        return true;
    size_t need, cap;
    if (__builtin_add_overflow(b->len, more, &need)) {
        b->failed = true;
        return false;
    }
    if (__builtin_add_overflow(b->cap, b->cap / 2 + FIRST_CAP, &cap) || cap < need)
        cap = need;
    uint8_t *p = grown(b, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

uint8_t *buf_take(struct buf *b, size_t *len)
{
    uint8_t *p = b->p;
    *len = b->len;
    *b = BUF_INIT;
    return p;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
    if (!n || !buf_reserve(b, n))
        return;
    memcpy(b->p + b->len, p, n);
    b->len += n;
}

void buf_put_zero(struct buf *b, size_t n)
{
    if (!n || !buf_reserve(b, n))
        return;
    memset(b->p + b->len, 0, n);
    b->len += n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
        return;
    }
    if (!buf_reserve(b, (size_t)n + 1)) /* vsnprintf ends with a NUL, which is not counted */
        return;
    va_start(args, fmt);
    vsnprintf((char *)b->p + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
}

static void put_leb128(struct buf *b, uint64_t v)
{
    if (!buf_reserve(b, 10))
        return;
    uint8_t *p = b->p + b->len;
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    b->len = (size_t)(p - b->p);
}

void buf_put_uvarint(struct buf *b, uint32_t v)
{
    put_leb128(b, v);
}

void buf_put_varint(struct buf *b, int32_t v)
{
    put_leb128(b, (uint32_t)v << 1 ^ (v < 0 ? UINT32_MAX : 0));
}

void buf_put_varlong(struct buf *b, int64_t v)
{
    put_leb128(b, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

/* At most `bits` bits in at most ceil(bits / 7) bytes. */
static uint64_t get_leb128(struct reader *r, int bits)
{
    uint64_t v = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        const uint8_t *p = reader_take(r, 1);
        if (!p)
            return 0;
        uint64_t part = *p & 0x7f;
        if (bits - shift < 7 && part >> (bits - shift))
            break;
        v |= part << shift;
        if (!(*p & 0x80))
            return v;
    }
    r->bad = true;
    return 0;
}

uint32_t reader_uvarint(struct reader *r)
{
    return (uint32_t)get_leb128(r, 32);
}

int32_t reader_varint(struct reader *r)
{
    uint32_t v = (uint32_t)get_leb128(r, 32);
    return (int32_t)(v >> 1 ^ (0 - (v & 1)));
}

int64_t reader_varlong(struct reader *r)
{
    uint64_t v = get_leb128(r, 64);
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}
