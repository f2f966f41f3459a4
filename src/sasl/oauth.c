/* oauth.c - see oauth.h. */
#include "sasl/oauth.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>

#include "sasl/jwt.h"

#define SEPARATOR 1
#define LOGIN "unsecuredLogin"

/* ---- messages ---- */

static bool starts(struct str s, const char *with, struct str *rest)
{
    int32_t n = (int32_t)strlen(with);
    if (s.len < n || memcmp(s.p, with, (size_t)n) != 0)
        return false;
    *rest = (struct str){s.p + n, s.len - n};
    return true;
}

/* Up to the separator, which must be there; moves on behind it. */
static bool next_pair(struct str *rest, struct str *pair)
{
    const char *at = rest->len > 0 ? memchr(rest->p, SEPARATOR, (size_t)rest->len) : NULL;
    if (!at)
        return false;
    *pair = (struct str){rest->p, (int32_t)(at - rest->p)};
    *rest = (struct str){at + 1, rest->len - pair->len - 1};
    return true;
}

static bool is_key(struct str key)
{
    for (int32_t i = 0; i < key.len; i++)
        if (!isalpha((unsigned char)key.p[i]))
            return false;
    return key.len > 0;
}

static bool is_value(struct str v)
{
    for (int32_t i = 0; i < v.len; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if ((c < ' ' && !strchr("\t\r\n", c)) || c == 127 || c == 0)
            return false;
    }
    return v.len > 0;
}

static bool is_pair(struct str pair, struct str *key, struct str *value)
{
    const char *eq = pair.len > 0 ? memchr(pair.p, '=', (size_t)pair.len) : NULL;
    if (!eq)
        return false;
    *key = (struct str){pair.p, (int32_t)(eq - pair.p)};
    *value = (struct str){eq + 1, pair.len - key->len - 1};
    return is_key(*key) && is_value(*value);
}

static bool is_token(struct str t)
{
    for (int32_t i = 0; i < t.len; i++)
        if (!isalnum((unsigned char)t.p[i]) && !(t.p[i] && strchr("-._~+/=", t.p[i])))
            return false;
    return t.len > 0;
}

static bool take_auth(struct str value, struct oauth_message *out)
{
    static const char scheme[] = "bearer ";
    enum { N = sizeof(scheme) - 1 };
    if (value.len <= N)
        return false;
    for (int i = 0; i < N; i++)
        if (tolower((unsigned char)value.p[i]) != scheme[i])
            return false;
    out->token = (struct str){value.p + N, value.len - N};
    while (out->token.len > 0 && out->token.p[0] == ' ')
        out->token = (struct str){out->token.p + 1, out->token.len - 1};
    return is_token(out->token);
}

bool oauth_parse(struct bytes message, struct oauth_message *out, const char **problem)
{
    struct str rest = {(const char *)message.p, message.len}, pair, key, value;
    *out = (struct oauth_message){.authzid = STR_LIT(""), .token = STR_NULL};
    *problem = "Invalid OAUTHBEARER client first message";
    if (!starts(rest, "n,", &rest))
        return false;
    if (starts(rest, "a=", &rest)) {
        const char *comma = rest.len > 0 ? memchr(rest.p, ',', (size_t)rest.len) : NULL;
        if (!comma || comma == rest.p)
            return false;
        out->authzid = (struct str){rest.p, (int32_t)(comma - rest.p)};
        rest = (struct str){comma, rest.len - out->authzid.len};
    }
    if (!starts(rest, ",\1", &rest))
        return false;
    bool ended = false;
    while (!ended) {
        if (!next_pair(&rest, &pair))
            return false;
        ended = pair.len == 0;
        if (!ended && !is_pair(pair, &key, &value))
            return false;
        if (!ended && str_eqz(key, "auth") && (!str_is_null(out->token) || !take_auth(value, out)))
            return false;
    }
    if (rest.len != 0 || str_is_null(out->token))
        return false;
    *problem = NULL;
    return true;
}

struct bytes oauth_make(struct str token, const struct jaas_module *m, const char *prefix,
                        struct arena *a)
{
    const char *extensions = "";
    for (int i = 0; extensions && i < m->options_n; i++) {
        struct str key;
        if (!starts(m->options[i].key, prefix, &key))
            continue;
        if (!is_key(key) || str_eqz(key, "auth") || !is_value(m->options[i].value))
            return BYTES_NULL;
        extensions = arena_printf(a, "%s\1%.*s=%.*s", extensions, STR_ARG(key),
                                  STR_ARG(m->options[i].value));
    }
    const char *text =
        extensions ? arena_printf(a, "n,,\1auth=Bearer %.*s%s\1\1", STR_ARG(token), extensions)
                   : NULL;
    return text ? (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)} : BYTES_NULL;
}

/* ---- unsecured tokens ---- */

static json_t *json_text(struct str s)
{
    return json_stringn(s.p, (size_t)s.len);
}

static json_t *json_number(struct str s)
{
    char *end;
    double v = strtod(s.p, &end);
    return s.len > 0 && !*end ? json_real(v) : NULL;
}

/* Its first character separates the elements: ",a,b". */
static json_t *json_list(struct str s)
{
    json_t *list = json_array();
    for (const char *at = s.p; list && s.len > 0 && *at;) {
        const char sep[2] = {s.p[0], 0};
        at++;
        size_t n = strcspn(at, sep);
        json_array_append_new(list, json_stringn(at, n));
        at += n;
    }
    return list;
}

static const struct {
    const char *prefix;
    json_t *(*make)(struct str value);
} claims[] = {
    {LOGIN "StringClaim_", json_text},
    {LOGIN "NumberClaim_", json_number},
    {LOGIN "ListClaim_", json_list},
};

static const char *add_claims(const struct jaas_module *m, json_t *o)
{
    for (int i = 0; i < m->options_n; i++) {
        for (size_t k = 0; k < sizeof(claims) / sizeof(*claims); k++) {
            struct str name;
            if (!starts(m->options[i].key, claims[k].prefix, &name))
                continue;
            json_t *v = claims[k].make(m->options[i].value);
            if (name.len == 0 || !v || json_object_set_new(o, name.p, v) != 0)
                return "a claim of unsecuredLogin... is none";
        }
    }
    return NULL;
}

static const char *option_or(const struct jaas_module *m, const char *key, const char *otherwise)
{
    struct str v = jaas_get(m, key);
    return str_is_null(v) ? otherwise : v.p;
}

bool oauth_wants_unsecured(const struct jaas_module *m)
{
    struct str rest;
    for (int i = 0; i < m->options_n; i++)
        if (starts(m->options[i].key, LOGIN, &rest))
            return true;
    return false;
}

const char *oauth_unsecured_token(const struct jaas_module *m, int64_t now_ms, struct arena *a,
                                  struct str *out)
{
    const char *lifetime = option_or(m, LOGIN "LifetimeSeconds", "3600");
    const char *principal = option_or(m, LOGIN "PrincipalClaimName", "sub");
    char *end;
    double seconds = strtod(lifetime, &end);
    if (*end || !(seconds > 0 && seconds < 1e9))
        return "unsecuredLoginLifetimeSeconds is no time";
    json_t *o = json_object();
    const char *problem = o ? add_claims(m, o) : "out of memory";
    if (!problem && !json_is_string(json_object_get(o, principal)))
        problem = "the claim that names the principal is not set (unsecuredLoginStringClaim_sub)";
    if (!problem && !json_object_get(o, "iat"))
        json_object_set_new(o, "iat", json_real((double)now_ms / 1000));
    if (!problem && !json_object_get(o, "exp"))
        json_object_set_new(o, "exp", json_real((double)now_ms / 1000 + seconds));
    char *text = problem ? NULL : json_dumps(o, JSON_COMPACT);
    *out = text ? jwt_make_unsecured(str_of(text), a) : STR_NULL;
    free(text);
    json_decref(o);
    return problem ? problem : out->p ? NULL : "out of memory";
}
