/* jwt.c - see jwt.h. */
#include "sasl/jwt.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "sasl/base64.h"
#include "sasl/jwt_private.h"

struct parts {
    struct str header, payload, signature;
    struct str signed_part; /* header.payload */
};

static bool split(struct str token, struct parts *out)
{
    const char *end = token.p + token.len;
    const char *dot = token.len > 0 ? memchr(token.p, '.', (size_t)token.len) : NULL;
    const char *dot2 = dot ? memchr(dot + 1, '.', (size_t)(end - dot - 1)) : NULL;
    if (!dot2 || memchr(dot2 + 1, '.', (size_t)(end - dot2 - 1)))
        return false;
    out->header = (struct str){token.p, (int32_t)(dot - token.p)};
    out->payload = (struct str){dot + 1, (int32_t)(dot2 - dot - 1)};
    out->signature = (struct str){dot2 + 1, (int32_t)(end - dot2 - 1)};
    out->signed_part = (struct str){token.p, (int32_t)(dot2 - token.p)};
    return true;
}

/* The JSON object of one part; NULL when it is none. The caller's. */
static json_t *object_of(struct str part, struct arena *a)
{
    struct bytes text = base64_url_decode(part, a);
    json_t *o = text.len > 0 ? json_loadb((const char *)text.p, (size_t)text.len,
                                          JSON_REJECT_DUPLICATES, NULL)
                             : NULL;
    if (json_is_object(o))
        return o;
    json_decref(o);
    return NULL;
}

/* ---- claims ---- */

/* Seconds as a number; false: it is there and is none. */
static bool time_of(const json_t *claims, const char *name, bool *there, int64_t *ms)
{
    const json_t *v = json_object_get(claims, name);
    double seconds = json_number_value(v);
    *there = v && !json_is_null(v);
    *ms = 0;
    if (!*there)
        return true;
    if (!json_is_number(v) || !isfinite(seconds) || seconds > 1e14 || seconds < -1e14)
        return false;
    *ms = (int64_t)(seconds * 1000 + (seconds < 0 ? -0.5 : 0.5));
    return true;
}

/* A text that is the wanted one, or an array of such, or (scopes) words with spaces between. */
static bool names(const json_t *v, const char *wanted, bool words)
{
    const json_t *one;
    size_t i;
    json_array_foreach(v, i, one) if (json_is_string(one) &&
                                      strcmp(json_string_value(one), wanted) == 0) return true;
    const char *text = json_string_value(v);
    if (!text || !words)
        return text && strcmp(text, wanted) == 0;
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = strcspn(text, " ");
        if (n == strlen(wanted) && memcmp(text, wanted, n) == 0)
            return true;
    }
    return false;
}

static bool blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == 0;
}

static const char *take_principal(const json_t *claims, const char *claim, struct arena *a,
                                  struct jwt_claims *out)
{
    const char *text = json_string_value(json_object_get(claims, claim));
    if (!text || blank(text))
        return "the claim that names the principal is missing or empty";
    out->principal = arena_str(a, str_of(text));
    return out->principal.p ? NULL : "out of memory";
}

/* As far as an int64_t goes: the skew is whatever the operator set. */
static int64_t moved(int64_t ms, int64_t by)
{
    int64_t sum;
    return __builtin_add_overflow(ms, by, &sum) ? (by > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static const char *check_times(const json_t *claims, const struct jwt_rules *r, int64_t now_ms,
                               struct jwt_claims *out)
{
    bool has_exp, has_iat, has_nbf;
    int64_t iat, nbf;
    if (!time_of(claims, "exp", &has_exp, &out->expires_ms) || !has_exp)
        return "exp is missing or no time";
    if (!time_of(claims, "iat", &has_iat, &iat))
        return "iat is no time";
    if (!time_of(claims, "nbf", &has_nbf, &nbf))
        return "nbf is no time";
    if (now_ms >= moved(out->expires_ms, r->skew_ms))
        return "it has expired";
    int64_t latest = moved(now_ms, r->skew_ms);
    if ((has_iat && iat > latest) || (has_nbf && nbf > latest))
        return "it is of the future";
    if (has_iat && iat >= out->expires_ms)
        return "it expires before it was issued";
    return NULL;
}

static const char *check_claims(const json_t *claims, const struct jwt_rules *r, int64_t now_ms,
                                struct arena *a, struct jwt_claims *out)
{
    const char *problem = take_principal(claims, r->principal_claim, a, out);
    if (!problem)
        problem = check_times(claims, r, now_ms, out);
    if (problem)
        return problem;
    for (int i = 0; i < r->scope_n; i++)
        if (!names(json_object_get(claims, r->scope_claim), r->required_scope[i], true))
            return "a scope that is required is missing";
    if (r->issuer && !names(json_object_get(claims, "iss"), r->issuer, false))
        return "it is of another issuer";
    for (int i = 0; i < r->audience_n; i++)
        if (names(json_object_get(claims, "aud"), r->audience[i], false))
            return NULL;
    return r->audience_n > 0 ? "it is for another audience" : NULL;
}

/* ---- the whole ---- */

static const char *check_signature(const struct parts *p, const json_t *header,
                                   const struct jwt_keys *keys, struct arena *a)
{
    const char *alg = json_string_value(json_object_get(header, "alg"));
    const char *kid = json_string_value(json_object_get(header, "kid"));
    if (!alg)
        return "its header names no algorithm";
    if (json_object_get(header, "crit"))
        return "its header has extensions that must be understood";
    if (!keys)
        return strcmp(alg, "none") == 0 && p->signature.len == 0 ? NULL : "it is not unsecured";
    struct bytes signature = base64_url_decode(p->signature, a);
    if (signature.len <= 0)
        return "it has no signature";
    return jwt_keys_verify(keys, alg, kid, p->signed_part, signature);
}

const char *jwt_check(struct str token, const struct jwt_keys *keys, const struct jwt_rules *rules,
                      int64_t now_ms, struct arena *a, struct jwt_claims *out)
{
    struct parts p;
    const char *problem = "it is no JSON Web Token";
    if (token.len <= 0 || token.len > JWT_MAX || !split(token, &p))
        return problem;
    json_t *header = object_of(p.header, a);
    json_t *claims = header ? object_of(p.payload, a) : NULL;
    if (claims)
        problem = check_signature(&p, header, keys, a);
    if (!problem)
        problem = check_claims(claims, rules, now_ms, a, out);
    json_decref(claims);
    json_decref(header);
    return problem;
}

const char *jwt_peek(struct str token, const char *principal_claim, struct arena *a,
                     struct jwt_claims *out)
{
    struct parts p;
    bool there;
    if (token.len <= 0 || token.len > JWT_MAX || !split(token, &p))
        return "it is no JSON Web Token";
    json_t *claims = object_of(p.payload, a);
    const char *problem =
        claims ? take_principal(claims, principal_claim, a, out) : "it is no JSON Web Token";
    if (!problem && (!time_of(claims, "exp", &there, &out->expires_ms) || !there))
        problem = "exp is missing or no time";
    json_decref(claims);
    return problem;
}

struct str jwt_make_unsecured(struct str claims, struct arena *a)
{
    static const char header[] = "{\"alg\":\"none\"}";
    struct str h = base64_url_encode(header, sizeof(header) - 1, a);
    struct str c = base64_url_encode(claims.p, (size_t)claims.len, a);
    return h.p && c.p ? str_of(arena_printf(a, "%s.%s.", h.p, c.p)) : STR_NULL;
}
