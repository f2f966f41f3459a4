/* sasl_server.c - see sasl_server.h: configs, and the exchanges of one message. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/rand.h>

#include "base/wipe.h"
#include "sasl/oauth.h"
#include "sasl/plain.h"
#include "sasl/sasl_server_private.h"

enum { EXCHANGE_MEMORY = 8 << 20 };

/* ---- configs ---- */

static int refuse(char *err, size_t err_n, const char *what, const char *why)
{
    snprintf(err, err_n, "%s%s%s", what, *what ? ": " : "", why);
    return -EINVAL;
}

static const char *copy(struct arena *a, const char *text, const char *otherwise)
{
    return text && *text ? arena_str(a, str_of(text)).p : otherwise;
}

/* "a, b" */
static int split(struct arena *a, const char *text, char sep, const char *const **v, int *n)
{
    const char **list = arena_array(a, const char *, text ? strlen(text) + 1 : 1);
    *n = 0;
    for (const char *at = text; list && at && *at;) {
        const char *end = strchr(at, sep);
        size_t len = end ? (size_t)(end - at) : strlen(at);
        struct str one = {at, (int32_t)len};
        at += len + (end != NULL);
        while (one.len > 0 && one.p[0] == ' ')
            one = (struct str){one.p + 1, one.len - 1};
        while (one.len > 0 && one.p[one.len - 1] == ' ')
            one.len--;
        if (one.len > 0 && !(list[(*n)++] = arena_str(a, one).p))
            return -ENOMEM;
    }
    *v = list;
    return list ? 0 : -ENOMEM;
}

static int load_keys(struct sasl_server_config *c, const struct sasl_server_settings *s, char *err,
                     size_t err_n)
{
    char why[300] = "";
    int rc = key_store_new(s->keys_url, s->keys_refresh_ms, s->now_ms, &c->keys, why, sizeof(why));
    return rc == -EINVAL ? refuse(err, err_n, "sasl.oauthbearer.jwks.endpoint.url", why) : rc;
}

/* Of unsecured tokens the module's options tell the claims, as in Kafka. */
static int unsecured_rules(struct sasl_server_config *c, char *err, size_t err_n)
{
    struct str skew = jaas_get(&c->module, "unsecuredValidatorAllowableClockSkewMs");
    struct str principal = jaas_get(&c->module, "unsecuredValidatorPrincipalClaimName");
    struct str scope = jaas_get(&c->module, "unsecuredValidatorScopeClaimName");
    struct str required = jaas_get(&c->module, "unsecuredValidatorRequiredScope");
    struct jwt_rules *r = &c->rules;
    char *end = NULL;
    r->skew_ms = skew.len > 0 ? strtoll(skew.p, &end, 10) : 0;
    if ((end && *end) || r->skew_ms < 0)
        return refuse(err, err_n, "unsecuredValidatorAllowableClockSkewMs", "it is no time");
    r->principal_claim = principal.len > 0 ? principal.p : "sub";
    r->scope_claim = scope.len > 0 ? scope.p : "scope";
    return split(&c->arena, required.len > 0 ? required.p : NULL, ' ', &r->required_scope,
                 &r->scope_n);
}

static int signed_rules(struct sasl_server_config *c, const struct sasl_server_settings *s)
{
    struct jwt_rules *r = &c->rules;
    r->principal_claim = copy(&c->arena, s->principal_claim, "sub");
    r->scope_claim = copy(&c->arena, s->scope_claim, "scope");
    r->issuer = copy(&c->arena, s->issuer, NULL);
    r->skew_ms = s->skew_ms;
    return split(&c->arena, s->audience, ',', &r->audience, &r->audience_n);
}

static int fill(struct sasl_server_config *c, const struct sasl_server_settings *s, char *err,
                size_t err_n)
{
    const char *problem;
    bool wants = s->mechanism == SASL_PLAIN || s->mechanism == SASL_OAUTHBEARER;
    if (!sasl_mechanism_served(s->mechanism))
        return refuse(err, err_n, sasl_mechanism_name(s->mechanism), "is not served here");
    if (wants && !s->jaas)
        return refuse(err, err_n, "", "is not set (what a JAAS file of Java has goes there)");
    if (s->jaas) {
        int rc = jaas_parse_for(str_of(s->jaas), s->mechanism, &c->arena, &c->module, &problem);
        if (rc)
            return rc == -EINVAL ? refuse(err, err_n, "", problem) : rc;
    }
    if (s->mechanism != SASL_OAUTHBEARER)
        return RAND_bytes(c->secret.b, sizeof(c->secret.b)) == 1 ? 0 : -ENOMEM;
    if (!s->keys_url || !*s->keys_url)
        return unsecured_rules(c, err, err_n);
    int rc = load_keys(c, s, err, err_n);
    return rc ? rc : signed_rules(c, s);
}

int sasl_server_config_new(const struct sasl_server_settings *s, struct sasl_server_config **out,
                           char *err, size_t err_n)
{
    struct sasl_server_config *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return -ENOMEM;
    arena_init(&c->arena, 0);
    c->arena.secret = true;
    c->mechanism = s->mechanism;
    c->credential = s->credential;
    c->credential_arg = s->credential_arg;
    c->token = s->token;
    c->token_arg = s->token_arg;
    int rc = fill(c, s, err, err_n);
    if (rc)
        sasl_server_config_free(c);
    else
        *out = c;
    return rc;
}

void sasl_server_config_free(struct sasl_server_config *c)
{
    if (!c)
        return;
    key_store_free(c->keys);
    arena_free(&c->arena);
    mem_wipe(c, sizeof(*c));
    free(c);
}

enum sasl_mechanism sasl_server_config_mechanism(const struct sasl_server_config *c)
{
    return c->mechanism;
}

/* ---- exchanges ---- */

enum sasl_result sasl_server_fail(struct sasl_server *s, const char *told, const char *problem)
{
    s->told = told;
    s->problem = problem ? problem : "out of memory";
    return SASL_FAILURE;
}

static bool right_password(const struct sasl_server_config *c, const struct plain_message *m,
                           struct arena *a)
{
    const char *key = arena_printf(a, "user_%.*s", STR_ARG(m->user));
    return key && plain_same_password(jaas_get(&c->module, key), m->password);
}

static enum sasl_result step_plain(struct sasl_server *s, struct bytes token, int64_t now_ms,
                                   struct bytes *answer)
{
    struct plain_message m;
    const char *problem;
    (void)now_ms;
    (void)answer;
    if (!plain_parse(token, &m, &problem))
        return sasl_server_fail(s, problem, problem);
    if (!right_password(s->config, &m, &s->arena))
        return sasl_server_fail(
            s, "Authentication failed: Invalid username or password",
            arena_printf(&s->arena, "user %.*s: no such user or password", STR_ARG(m.user)));
    if (m.authzid.len > 0 && !str_eq(m.authzid, m.user))
        return sasl_server_fail(s, SASL_OTHER_AUTHZID, SASL_OTHER_AUTHZID);
    s->user = arena_str(&s->arena, m.user);
    return s->user.p ? SASL_COMPLETE : sasl_server_fail(s, NULL, NULL);
}

/* The client is told why in the answer, and fails when it has said that it heard. */
static enum sasl_result step_oauth(struct sasl_server *s, struct bytes token, int64_t now_ms,
                                   struct bytes *answer)
{
    static const char invalid[] = "{\"status\":\"invalid_token\"}";
    const struct sasl_server_config *c = s->config;
    struct oauth_message m;
    struct jwt_claims claims;
    const char *problem;
    if (s->refused)
        return sasl_server_fail(s, invalid, s->problem);
    if (!oauth_parse(token, &m, &problem))
        return sasl_server_fail(s, problem, problem);
    problem = c->keys ? key_store_check(c->keys, m.token, &c->rules, now_ms, &s->arena, &claims)
                      : jwt_check(m.token, NULL, &c->rules, now_ms, &s->arena, &claims);
    if (problem) {
        s->refused = true;
        s->problem = arena_printf(&s->arena, "the token is refused: %s", problem);
        *answer = (struct bytes){(const uint8_t *)invalid, sizeof(invalid) - 1};
        return SASL_CONTINUE;
    }
    if (m.authzid.len > 0 && !str_eq(m.authzid, claims.principal))
        return sasl_server_fail(s,
                                "Authentication failed: Client requested an authorization id that "
                                "is different from the token's principal name",
                                "another authorization id than the token's");
    s->user = claims.principal;
    s->expires_ms = claims.expires_ms;
    return SASL_COMPLETE;
}

struct sasl_server *sasl_server_new(const struct sasl_server_config *c)
{
    struct sasl_server *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->config = c;
    s->user = STR_NULL;
    arena_init(&s->arena, EXCHANGE_MEMORY);
    s->arena.secret = true;
    return s;
}

void sasl_server_free(struct sasl_server *s)
{
    if (!s)
        return;
    arena_free(&s->arena);
    mem_wipe(s, sizeof(*s)); /* keys of users and tokens */
    free(s);
}

enum sasl_result sasl_server_step(struct sasl_server *s, struct bytes token, int64_t now_ms,
                                  struct bytes *answer)
{
    static enum sasl_result (*const steps[SASL_MECHANISMS])(struct sasl_server *, struct bytes,
                                                            int64_t, struct bytes *) = {
        [SASL_PLAIN] = step_plain,
        [SASL_SCRAM_SHA_256] = sasl_server_step_scram,
        [SASL_SCRAM_SHA_512] = sasl_server_step_scram,
        [SASL_OAUTHBEARER] = step_oauth,
    };
    *answer = BYTES_NULL;
    return steps[s->config->mechanism](s, token, now_ms, answer);
}

struct str sasl_server_user(const struct sasl_server *s)
{
    return s->user;
}

bool sasl_server_by_token(const struct sasl_server *s)
{
    return s->by_token;
}

int64_t sasl_server_expires_ms(const struct sasl_server *s)
{
    return s->expires_ms;
}

const char *sasl_server_told(const struct sasl_server *s)
{
    return s->told;
}

const char *sasl_server_problem(const struct sasl_server *s)
{
    return s->problem ? s->problem : "";
}
