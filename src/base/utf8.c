#include "base/utf8.h"

#include <errno.h>
#include <string.h>

/* What the second byte may be, by the first: no overlong forms, no surrogates, nothing above
 * U+10FFFF. */
static bool second_fits(uint8_t first, uint8_t second)
{
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

static size_t wanted(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

size_t utf8_next(const uint8_t *p, size_t n, bool *ok)
{
    size_t want = wanted(p[0]), have = 1;
    *ok = want > 0;
    while (*ok && have < want) {
        bool fits =
            have < n && (have == 1 ? second_fits(p[0], p[1]) : p[have] >= 0x80 && p[have] <= 0xbf);
        *ok = fits;
        have += fits;
    }
    return have;
}

bool utf8_valid(const void *p, size_t n)
{
    const uint8_t *at = p, *end = at + n;
    while (at < end) {
        uint64_t eight;
        bool ok = true;
        if (end - at >= 8 && (memcpy(&eight, at, 8), !(eight & 0x8080808080808080u)))
            at += 8; /* ASCII, as nearly all is */
        else
            at += utf8_next(at, (size_t)(end - at), &ok);
        if (!ok)
            return false;
    }
    return true;
}

void utf8_put(struct buf *out, const void *p, size_t n)
{
    const uint8_t *at = p, *end = at + n;
    while (at < end) {
        bool ok;
        size_t len = utf8_next(at, (size_t)(end - at), &ok);
        buf_put(out, ok ? (const char *)at : UTF8_REPLACEMENT, ok ? len : 3);
        at += len;
    }
}

int utf8_mend(struct str *s, struct arena *a)
{
    if (s->len <= 0 || utf8_valid(s->p, (size_t)s->len))
        return 0;
    struct buf b = BUF_INIT;
    utf8_put(&b, s->p, (size_t)s->len);
    struct str whole = {(const char *)b.p, (int32_t)b.len};
    struct str copy = b.failed ? STR_NULL : arena_str(a, whole);
    buf_free(&b);
    if (!copy.p)
        return -ENOMEM;
    *s = copy;
    return 0;
}
