/* plain.c - see plain.h. */
#include "sasl/plain.h"

#include <openssl/crypto.h>

#include "base/utf8.h"

enum { PARTS = 3 };

bool plain_parse(struct bytes token, struct plain_message *out, const char **problem)
{
    struct str parts[PARTS];
    const char *at = (const char *)token.p, *end = at + (token.len < 0 ? 0 : token.len);
    int n = 0;
    *problem = "Invalid SASL/PLAIN response: expected 3 tokens";
    for (; n < PARTS; n++) {
        const char *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        if ((nul != NULL) != (n < PARTS - 1))
            return false;
        parts[n] = (struct str){at, (int32_t)((nul ? nul : end) - at)};
        at = nul ? nul + 1 : end;
    }
    *out = (struct plain_message){parts[0], parts[1], parts[2]};
    if (out->user.len == 0)
        *problem = "Authentication failed: username not specified";
    else if (out->password.len == 0)
        *problem = "Authentication failed: password not specified";
    else if (!utf8_valid(token.p, (size_t)token.len))
        *problem = "Invalid SASL/PLAIN response: not UTF-8";
    else
        *problem = NULL;
    return !*problem;
}

struct bytes plain_make(struct str user, struct str password, struct arena *a)
{
    size_t n = (size_t)user.len + (size_t)password.len + 2;
    uint8_t *out = arena_calloc(a, 1, n);
    if (!out)
        return BYTES_NULL;
    memcpy(out + 1, user.p, (size_t)user.len);
    memcpy(out + 2 + user.len, password.p, (size_t)password.len);
    return (struct bytes){out, (int32_t)n};
}

bool plain_same_password(struct str a, struct str b)
{
    return a.len >= 0 && a.len == b.len && CRYPTO_memcmp(a.p, b.p, (size_t)a.len) == 0;
}
