/* sasl_client.c - see sasl_client.h: configs, and the exchanges of one message. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/wipe.h"
#include "sasl/oauth.h"
#include "sasl/plain.h"
#include "sasl/sasl_client_private.h"
#include "sasl/url_file.h"

enum { TOKEN_MAX = 64 << 10 };

/* ---- configs ---- */

static int refuse(char *err, size_t err_n, const char *what, const char *why)
{
    snprintf(err, err_n, "%s: %s", what, why);
    return -EINVAL;
}

static int take_mechanism(struct sasl_client_config *c, const char *name, char *err, size_t err_n)
{
    if (sasl_mechanism_find(str_of(name), &c->mechanism) && sasl_mechanism_served(c->mechanism))
        return 0;
    if (str_eqz(STR_LIT("GSSAPI"), name))
        snprintf(err, err_n,
                 "sasl.mechanism: it is not set, or GSSAPI, the default: Kerberos is not served "
                 "here; set it to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER");
    else
        snprintf(
            err, err_n,
            "sasl.mechanism=%s: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
            name);
    return -EINVAL;
}

static int take_login(struct sasl_client_config *c, char *err, size_t err_n)
{
    c->user = jaas_get(&c->module, "username");
    c->password = jaas_get(&c->module, "password");
    if (c->user.len <= 0 || c->password.len <= 0)
        return refuse(err, err_n, "sasl.jaas.config",
                      c->user.len <= 0 ? "it has no username=..." : "it has no password=...");
    struct str token = jaas_get(&c->module, "tokenauth");
    c->by_token = sasl_mechanism_is_scram(c->mechanism) && token.len == 4 &&
                  strncasecmp(token.p, "true", 4) == 0;
    return 0;
}

static int take_token(struct sasl_client_config *c, const struct sasl_client_settings *s, char *err,
                      size_t err_n)
{
    c->user = STR_LIT("");
    if (s->token_url && *s->token_url) {
        c->token_url = arena_str(&c->arena, str_of(s->token_url)).p;
        if (c->token_url && strncmp(c->token_url, "file:", 5) != 0)
            return refuse(err, err_n, "sasl.oauthbearer.token.endpoint.url",
                          "only file:///path is served: there is no HTTP here");
        return c->token_url ? 0 : -ENOMEM;
    }
    struct str token;
    const char *problem = oauth_unsecured_token(&c->module, 0, &c->arena, &token);
    return problem ? refuse(err, err_n, "sasl.jaas.config", problem) : 0;
}

static int fill(struct sasl_client_config *c, const struct sasl_client_settings *s, char *err,
                size_t err_n)
{
    const char *problem;
    int rc = take_mechanism(c, s->mechanism, err, err_n);
    if (rc)
        return rc;
    if (!s->jaas)
        return refuse(err, err_n, "sasl.jaas.config",
                      "is not set: SASL needs a login module with who you are");
    rc = jaas_parse_for(str_of(s->jaas), c->mechanism, &c->arena, &c->module, &problem);
    if (rc)
        return rc == -EINVAL ? refuse(err, err_n, "sasl.jaas.config", problem) : rc;
    return c->mechanism == SASL_OAUTHBEARER ? take_token(c, s, err, err_n)
                                            : take_login(c, err, err_n);
}

int sasl_client_config_new(const struct sasl_client_settings *s, struct sasl_client_config **out,
                           char *err, size_t err_n)
{
    struct sasl_client_config *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return -ENOMEM;
    arena_init(&c->arena, 0);
    c->arena.secret = true;
    pthread_mutex_init(&c->lock, NULL);
    int rc = fill(c, s, err, err_n);
    if (rc)
        sasl_client_config_free(c);
    else
        *out = c;
    return rc;
}

void sasl_client_config_free(struct sasl_client_config *c)
{
    if (!c)
        return;
    mem_wipe(&c->cache, sizeof(c->cache));
    arena_free(&c->arena);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

enum sasl_mechanism sasl_client_config_mechanism(const struct sasl_client_config *c)
{
    return c->mechanism;
}

const char *sasl_client_config_user(const struct sasl_client_config *c)
{
    return c->user.p;
}

/* ---- exchanges ---- */

enum sasl_result sasl_client_fail(struct sasl_client *s, const char *problem)
{
    s->problem = problem ? problem : "out of memory";
    return SASL_FAILURE;
}

static enum sasl_result step_plain(struct sasl_client *s, struct bytes answer, int64_t now_ms,
                                   struct bytes *out)
{
    (void)answer;
    (void)now_ms;
    if (s->step++ > 0)
        return SASL_COMPLETE;
    *out = plain_make(s->config->user, s->config->password, &s->arena);
    return out->p ? SASL_CONTINUE : sasl_client_fail(s, NULL);
}

/* NULL, or what is wrong. */
static const char *get_token(struct sasl_client *s, int64_t now_ms, struct str *out)
{
    const struct sasl_client_config *c = s->config;
    const char *problem = NULL;
    if (!c->token_url)
        return oauth_unsecured_token(&c->module, now_ms, &s->arena, out);
    int rc = url_file_read(c->token_url, TOKEN_MAX, &s->arena, out, &problem);
    while (!rc && out->len > 0 && (unsigned char)out->p[out->len - 1] <= ' ')
        out->len--;
    if (!rc && out->len == 0)
        return "sasl.oauthbearer.token.endpoint.url: the file is empty";
    return rc == -ENOMEM ? "out of memory" : problem && rc ? problem : NULL;
}

static enum sasl_result step_oauth(struct sasl_client *s, struct bytes answer, int64_t now_ms,
                                   struct bytes *out)
{
    struct str token;
    if (s->step++ == 0) {
        const char *problem = get_token(s, now_ms, &token);
        if (problem)
            return sasl_client_fail(s, problem);
        *out =
            oauth_make(token, &s->config->module,
                       s->config->token_url ? "extension_" : "unsecuredLoginExtension_", &s->arena);
        return out->p ? SASL_CONTINUE : sasl_client_fail(s, "an extension cannot be sent");
    }
    if (answer.len <= 0)
        return SASL_COMPLETE;
    if (s->step > 2)
        return sasl_client_fail(s, "the broker goes on after it refused the token");
    *out = (struct bytes){(const uint8_t *)"\1", 1};
    return SASL_CONTINUE; /* now it says why */
}

struct sasl_client *sasl_client_new(struct sasl_client_config *c)
{
    struct sasl_client *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->config = c;
    arena_init(&s->arena, 8 << 20);
    s->arena.secret = true;
    return s;
}

void sasl_client_free(struct sasl_client *s)
{
    if (!s)
        return;
    arena_free(&s->arena);
    mem_wipe(s, sizeof(*s)); /* keys */
    free(s);
}

enum sasl_result sasl_client_step(struct sasl_client *s, struct bytes answer, int64_t now_ms,
                                  struct bytes *out)
{
    static enum sasl_result (*const steps[SASL_MECHANISMS])(struct sasl_client *, struct bytes,
                                                            int64_t, struct bytes *) = {
        [SASL_PLAIN] = step_plain,
        [SASL_SCRAM_SHA_256] = sasl_client_step_scram,
        [SASL_SCRAM_SHA_512] = sasl_client_step_scram,
        [SASL_OAUTHBEARER] = step_oauth,
    };
    *out = BYTES_NULL;
    return steps[s->config->mechanism](s, answer, now_ms, out);
}

const char *sasl_client_problem(const struct sasl_client *s)
{
    return s->problem ? s->problem : "";
}
