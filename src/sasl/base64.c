/* base64.c - see base64.h. */
#include "sasl/base64.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static struct str encode(const uint8_t *p, size_t n, const char *alphabet, bool pad,
                         struct arena *a)
{
    char *out = arena_alloc(a, (n + 2) / 3 * 4 + 1), *to = out;
    if (!out)
        return STR_NULL;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (have > 2 ? p[i + 2] : 0);
        for (size_t k = 0; k < 4; k++) {
            if (k <= have)
                *to++ = alphabet[v >> (18 - 6 * k) & 63];
            else if (pad)
                *to++ = '=';
        }
    }
    *to = 0;
    return (struct str){out, (int32_t)(to - out)};
}

struct str base64_encode(const void *p, size_t n, struct arena *a)
{
    return encode(p, n, standard, true, a);
}

struct str base64_url_encode(const void *p, size_t n, struct arena *a)
{
    return encode(p, n, url_safe, false, a);
}

static int value_of(char c, const char *alphabet)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* Without padding; n % 4 is not 1. */
static struct bytes decode(const char *p, size_t n, const char *alphabet, struct arena *a)
{
    uint8_t *out = arena_alloc(a, n / 4 * 3 + 3), *to = out;
    uint32_t v = 0;
    if (!out)
        return BYTES_NULL;
    for (size_t i = 0; i < n; i++) {
        int six = value_of(p[i], alphabet);
        if (six < 0)
            return BYTES_NULL;
        v = v << 6 | (uint32_t)six;
        if (i % 4 != 3)
            continue;
        *to++ = (uint8_t)(v >> 16);
        *to++ = (uint8_t)(v >> 8);
        *to++ = (uint8_t)v;
        v = 0;
    }
    if (n % 4 == 2 && !(v & 15)) {
        *to++ = (uint8_t)(v >> 4);
    } else if (n % 4 == 3 && !(v & 3)) {
        *to++ = (uint8_t)(v >> 10);
        *to++ = (uint8_t)(v >> 2);
    } else if (n % 4 != 0) {
        return BYTES_NULL;
    }
    return (struct bytes){out, (int32_t)(to - out)};
}

static size_t without_padding(struct str text)
{
    size_t n = (size_t)text.len;
    for (int i = 0; i < 2 && n > 0 && text.p[n - 1] == '='; i++)
        n--;
    return n;
}

struct bytes base64_decode(struct str text, struct arena *a)
{
    if (text.len < 0 || text.len % 4 != 0)
        return BYTES_NULL;
    return decode(text.p, without_padding(text), standard, a);
}

struct bytes base64_url_decode(struct str text, struct arena *a)
{
    if (text.len < 0)
        return BYTES_NULL;
    size_t n = without_padding(text);
    if (n % 4 == 1 || (n < (size_t)text.len && text.len % 4 != 0))
        return BYTES_NULL;
    return decode(text.p, n, url_safe, a);
}
