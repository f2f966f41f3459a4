/* str.c - comparison and copies of borrowed ranges, and uuids in Kafka's text form. */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int str_cmp(struct str a, struct str b)
{
    if (a.len <= 0 || b.len <= 0)
        return (a.len > b.len) - (a.len < b.len);
    int32_t n = a.len < b.len ? a.len : b.len;
    int order = memcmp(a.p, b.p, (size_t)n);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

char *str_dup(struct str s)
{
    if (str_is_null(s))
        return NULL;
    char *z = malloc((size_t)s.len + 1);
    if (!z)
        return NULL;
    if (s.len)
        memcpy(z, s.p, (size_t)s.len);
    z[s.len] = '\0';
    return z;
}

/* Kafka keeps 0 and 0..01 for itself and avoids a leading '-', which command lines take for a flag.
 */
static bool uuid_usable(struct uuid u)
{
    static const uint8_t zeros[15];
    if (memcmp(u.b, zeros, 15) == 0 && u.b[15] <= 1)
        return false;
    return base64url[u.b[0] >> 2] != '-';
}

struct uuid uuid_random(void)
{
    struct uuid u;
    do {
        size_t have = 0;
        while (have < sizeof(u.b)) {
            ssize_t n = getrandom(u.b + have, sizeof(u.b) - have, 0);
            if (n > 0)
                have += (size_t)n;
            else if (n < 0 && errno != EINTR)
                abort(); /* no kernel we run on; going on with a guessable id would be worse */
        }
    } while (!uuid_usable(u));
    return u;
}

void uuid_format(struct uuid u, char out[23])
{
    size_t o = 0;
    for (size_t i = 0; i < 15; i += 3) {
        uint32_t v = (uint32_t)u.b[i] << 16 | (uint32_t)u.b[i + 1] << 8 | u.b[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            out[o++] = base64url[v >> shift & 63];
    }
    out[o++] = base64url[u.b[15] >> 2];
    out[o++] = base64url[(u.b[15] & 3) << 4];
    out[o] = '\0';
}

static int base64url_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

int uuid_parse(struct str text, struct uuid *out)
{
    if (text.len != 22)
        return -EINVAL;
    struct uuid u;
    uint32_t acc = 0;
    int bits = 0;
    size_t o = 0;
    for (int i = 0; i < 22; i++) {
        int v = base64url_value(text.p[i]);
        if (v < 0)
            return -EINVAL;
        acc = (acc << 6 | (uint32_t)v) & 0xffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            u.b[o++] = (uint8_t)(acc >> bits);
        }
    }
    *out = u; /* the 4 bits left over are ignored, as Java's decoder does */
    return 0;
}
