/* jwt.h - JSON Web Tokens in compact form: header.payload.signature, each base64url.
 *
 * Unsecured ones (alg none, empty signature) are made and read; signed ones (RS256/384/512,
 * ES256/384/512, PS256/384/512) are checked against a set of public keys (RFC 7517).
 *
 * CLAIMS  what Kafka's validators look at: subject (or another claim that is named), exp, iat, nbf,
 *         scope, iss, aud. Times are seconds in the token, milliseconds here.
 *
 * THREADS  pure, but for the key set, which is immutable. */
#ifndef SASL_JWT_H
#define SASL_JWT_H

#include "base/arena.h"

enum { JWT_MAX = 64 * 1024 }; /* a longer token is refused */

struct jwt_rules {
    const char *principal_claim;       /* "sub" */
    const char *scope_claim;           /* "scope" */
    const char *const *required_scope; /* scope_n of them */
    int scope_n;
    const char *issuer;          /* NULL = any */
    const char *const *audience; /* one of them must be named; audience_n 0 = any */
    int audience_n;
    int64_t skew_ms;
};

struct jwt_claims {
    struct str principal;
    int64_t expires_ms;
};

struct jwt_keys;

/* The text of a JSON Web Key Set; keys of other kinds, or for encryption, are passed over. 0,
 * -ENOMEM, or -EINVAL when it is none, with a static text in *problem. */
int jwt_keys_new(struct str json, struct jwt_keys **out, const char **problem);
void jwt_keys_free(struct jwt_keys *k); /* NULL is fine */
int jwt_keys_count(const struct jwt_keys *k);

/* keys NULL: the token must be unsecured. The claims are in the arena. NULL when it holds, else
 * what is wrong with it (static, or in the arena). */
const char *jwt_check(struct str token, const struct jwt_keys *keys, const struct jwt_rules *rules,
                      int64_t now_ms, struct arena *a, struct jwt_claims *out);

/* Its claims without a look at the signature: for the client, whose token it is. As jwt_check. */
const char *jwt_peek(struct str token, const char *principal_claim, struct arena *a,
                     struct jwt_claims *out);

/* An unsecured token of a JSON object of claims. Null without memory. */
struct str jwt_make_unsecured(struct str claims, struct arena *a);

#endif
