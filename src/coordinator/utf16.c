/* utf16.c - see utf16.h. */
#include "coordinator/utf16.h"

#define REPLACEMENT 0xFFFDu

static bool is_tail(uint8_t b)
{
    return (b & 0xC0) == 0x80;
}

/* The code point at s[*at], and past it. */
static uint32_t next_point(const uint8_t *p, int32_t n, int32_t *at)
{
    uint8_t b = p[*at];
    int32_t left = n - *at, len = b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    static const uint8_t mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = b & mask[len];
    bool good = b < 0x80 || (b >= 0xC2 && b <= 0xF4 && len <= left);
    for (int32_t i = 1; good && i < len; i++) {
        good = is_tail(p[*at + i]);
        c = c << 6 | (p[*at + i] & 0x3F);
    }
    good = good && c >= least[len] && c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
    *at += good ? len : 1;
    return good ? c : REPLACEMENT;
}

int32_t utf16_hash(struct str s)
{
    uint32_t h = 0;
    for (int32_t at = 0; at < s.len;) {
        uint32_t c = next_point((const uint8_t *)s.p, s.len, &at);
        if (c >= 0x10000) {
            h = h * 31 + (0xD800 + ((c - 0x10000) >> 10));
            c = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        h = h * 31 + c;
    }
    return (int32_t)h;
}

int32_t utf16_length(struct str s)
{
    int32_t n = 0;
    for (int32_t at = 0; at < s.len; n++)
        if (next_point((const uint8_t *)s.p, s.len, &at) >= 0x10000)
            n++;
    return n;
}
