/* peer_sasl.c - see peer_sasl.h. */
#include "net/peer_sasl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "protocol/api.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/sasl_authenticate.h"
#include "protocol/msg/sasl_handshake.h"

struct peer_sasl {
    struct peer_auth base;
    struct sasl_client_config *config; /* owned */
    const struct clock *clock;
};

enum stage {
    STAGE_BEGIN,
    STAGE_VERSIONS,  /* the answer of ApiVersions is due */
    STAGE_HANDSHAKE, /* that of SaslHandshake */
    STAGE_TOKENS,    /* one to our token */
    STAGE_WORK,      /* sasl_client_work, then its token */
};

struct exchange {
    struct peer_exchange base;
    const struct peer_sasl *sasl;
    struct sasl_client *client;
    char *client_id; /* NULL = null */
    enum stage stage;
    bool again;
    int handshake_version; /* 0: bare tokens */
    int token_version;     /* of SaslAuthenticate */
    int32_t correlation_id;
    int64_t lifetime_ms; /* 0: the session has no end */
    struct arena arena;  /* of the answer at hand */
};

static struct exchange *exchange_of(const struct peer_exchange *x)
{
    return container_of(x, struct exchange, base);
}

/* ---- lines about what is wrong ---- */

struct complaint {
    char *text;
    size_t n;
};

/* "PLAIN, user alice: ..." */
static int complain(const struct exchange *x, const struct complaint *to, int rc, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));
static int complain(const struct exchange *x, const struct complaint *to, int rc, const char *fmt,
                    ...)
{
    const struct sasl_client_config *c = x->sasl->config;
    const char *user = sasl_client_config_user(c);
    char what[320];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    snprintf(to->text, to->n, "%s%s%s: %s", sasl_mechanism_name(sasl_client_config_mechanism(c)),
             *user ? ", user " : "", user, what);
    return rc;
}

/* ---- frames ---- */

static int put_request(struct exchange *x, struct writer *out, int16_t key, int version,
                       const void *body)
{
    const struct request_header h = {.api_key = key,
                                     .api_version = (int16_t)version,
                                     .correlation_id = ++x->correlation_id,
                                     .client_id = str_of(x->client_id)};
    request_header_encode(out, &h);
    msg_encode(api_find(key)->request, version, out, body);
    return out->buf.failed ? -ENOMEM : PEER_AUTH_MORE;
}

/* 0, or -errno with a complaint. The answer points into `in`, and the exchange's arena. */
static int take_answer(struct exchange *x, const void *in, size_t n, int16_t key, int version,
                       void *answer, const struct complaint *why)
{
    const struct api_desc *api = api_find(key);
    struct reader r = reader_of(in, n);
    int32_t id = -1;
    int err = response_header_decode(&r, api_response_header_version(api, version), &id);
    if (!err && id == x->correlation_id)
        err = msg_decode(api->response, version, &r, &x->arena, answer);
    else
        err = -EPROTO;
    if (err == -EPROTO)
        complain(x, why, err, "the answer to %s does not decode", api->name);
    return err;
}

static int ask_versions(struct exchange *x, struct writer *out)
{
    struct api_versions_request body;
    api_versions_request_init(&body);
    x->stage = STAGE_VERSIONS;
    return put_request(x, out, API_API_VERSIONS, 0, &body);
}

static int shake_hands(struct exchange *x, struct writer *out)
{
    enum sasl_mechanism m = sasl_client_config_mechanism(x->sasl->config);
    struct sasl_handshake_request body = {.mechanism = str_of(sasl_mechanism_name(m))};
    x->stage = STAGE_HANDSHAKE;
    return put_request(x, out, API_SASL_HANDSHAKE, x->handshake_version, &body);
}

static int send_token(struct exchange *x, struct bytes token, struct writer *out)
{
    struct sasl_authenticate_request body = {.auth_bytes = token};
    x->stage = STAGE_TOKENS;
    if (x->handshake_version > 0)
        return put_request(x, out, API_SASL_AUTHENTICATE, x->token_version, &body);
    buf_put(&out->buf, token.p, (size_t)token.len);
    return out->buf.failed ? -ENOMEM : PEER_AUTH_MORE;
}

/* ---- steps ---- */

/* What the mechanism says to the broker's token. */
static int go_on(struct exchange *x, struct bytes token, struct writer *out,
                 const struct complaint *why)
{
    struct bytes own;
    int64_t now_ms = clock_wall_ms(x->sasl->clock);
    switch (sasl_client_step(x->client, token, now_ms, &own)) {
    case SASL_CONTINUE:
        return send_token(x, own, out);
    case SASL_COMPLETE:
        return PEER_AUTH_DONE;
    case SASL_WORK:
        x->stage = STAGE_WORK;
        return PEER_AUTH_WORK;
    case SASL_FAILURE:
        break;
    }
    return complain(x, why, -EACCES, "%s", sasl_client_problem(x->client));
}

static int take_versions(struct exchange *x, const void *in, size_t n, struct writer *out,
                         const struct complaint *why)
{
    struct api_versions_response a;
    int handshake = -1, token = -1;
    int err = take_answer(x, in, n, API_API_VERSIONS, 0, &a, why);
    if (err)
        return err;
    if (a.error_code)
        return complain(x, why, -EPROTO, "ApiVersions: %s", kerr_name(a.error_code));
    for (int32_t i = 0; i < a.api_keys.n; i++) {
        if (a.api_keys.v[i].api_key == API_SASL_HANDSHAKE)
            handshake = a.api_keys.v[i].max_version;
        else if (a.api_keys.v[i].api_key == API_SASL_AUTHENTICATE)
            token = a.api_keys.v[i].max_version;
    }
    if (handshake < 0)
        return complain(x, why, -EACCES, "there is no SASL on this listener");
    x->handshake_version = handshake > 0 && token >= 0 ? 1 : 0;
    x->token_version = token < 2 ? token : 2;
    return shake_hands(x, out);
}

/* "A, B" */
static void list_text(char *to, size_t to_n, const struct str *v, int32_t n)
{
    size_t at = 0;
    *to = 0;
    for (int32_t i = 0; i < n && at < to_n; i++)
        at += (size_t)snprintf(to + at, to_n - at, "%s%.*s", i ? ", " : "", STR_ARG(v[i]));
}

static int take_handshake(struct exchange *x, const void *in, size_t n, struct writer *out,
                          const struct complaint *why)
{
    struct sasl_handshake_response a;
    char list[160];
    int err = take_answer(x, in, n, API_SASL_HANDSHAKE, x->handshake_version, &a, why);
    if (err)
        return err;
    list_text(list, sizeof(list), a.mechanisms.v, a.mechanisms.n);
    if (a.error_code == KERR_UNSUPPORTED_SASL_MECHANISM)
        return complain(x, why, -EACCES, "the broker does not offer it, only %s", list);
    if (a.error_code)
        return complain(
            x, why, -EACCES, "SaslHandshake: %s%s", kerr_name(a.error_code),
            a.error_code == KERR_ILLEGAL_SASL_STATE ? " (is there SASL on this listener?)" : "");
    return go_on(x, BYTES_NULL, out, why);
}

static int take_token(struct exchange *x, const void *in, size_t n, struct writer *out,
                      const struct complaint *why)
{
    struct sasl_authenticate_response a;
    struct bytes bare = {in, (int32_t)n};
    if (x->handshake_version == 0)
        return go_on(x, bare, out, why);
    int err = take_answer(x, in, n, API_SASL_AUTHENTICATE, x->token_version, &a, why);
    if (err)
        return err;
    if (a.error_code)
        return complain(
            x, why, a.error_code == KERR_SASL_AUTHENTICATION_FAILED ? -EACCES : -EPROTO, "%.*s",
            STR_ARG(a.error_message.len > 0 ? a.error_message : str_of(kerr_text(a.error_code))));
    x->lifetime_ms = a.session_lifetime_ms;
    return go_on(x, a.auth_bytes, out, why);
}

static int step(struct peer_exchange *base, const void *in, size_t n, struct writer *out, char *why,
                size_t why_n)
{
    struct exchange *x = exchange_of(base);
    struct complaint to = {why, why_n};
    arena_reset(&x->arena);
    switch (x->stage) {
    case STAGE_BEGIN:
        return x->again ? shake_hands(x, out) : ask_versions(x, out);
    case STAGE_VERSIONS:
        return take_versions(x, in, n, out, &to);
    case STAGE_HANDSHAKE:
        return take_handshake(x, in, n, out, &to);
    case STAGE_TOKENS:
        return take_token(x, in, n, out, &to);
    case STAGE_WORK:
        break;
    }
    return go_on(x, BYTES_NULL, out, &to);
}

static void work(struct peer_exchange *base)
{
    sasl_client_work(exchange_of(base)->client);
}

/* 85 to 95 percent of the session, so that many connections do not come at once. */
static int64_t again_after_ms(const struct peer_exchange *base)
{
    int64_t ms = exchange_of(base)->lifetime_ms;
    if (ms <= 0)
        return 0;
    int64_t some = uuid_random().b[15];
    ms = ms < INT64_MAX / 100000 ? ms : INT64_MAX / 100000;
    ms = ms * (85000 + some * 10000 / 255) / 100000;
    return ms > 0 ? ms : 1;
}

static void exchange_free(struct peer_exchange *base)
{
    struct exchange *x = exchange_of(base);
    sasl_client_free(x->client);
    arena_free(&x->arena);
    free(x->client_id);
    free(x);
}

static const struct peer_exchange_ops exchange_ops = {
    .step = step, .work = work, .again_after_ms = again_after_ms, .free = exchange_free};

static struct peer_exchange *begin(const struct peer_auth *a, const struct peer_auth_with *with)
{
    const struct peer_sasl *s = container_of(a, struct peer_sasl, base);
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    x->base.ops = &exchange_ops;
    x->sasl = s;
    x->again = with->again;
    x->handshake_version = x->token_version = 1; /* of a renewal: what has a lifetime knows these */
    x->client_id = with->client_id ? strdup(with->client_id) : NULL;
    x->client = sasl_client_new(s->config);
    arena_init(&x->arena, 0);
    if (x->client && (x->client_id || !with->client_id))
        return &x->base;
    exchange_free(&x->base);
    return NULL;
}

static const struct peer_auth_ops auth_ops = {begin};

struct peer_auth *peer_sasl_new(struct sasl_client_config *config, const struct clock *clock)
{
    struct peer_sasl *s = calloc(1, sizeof(*s));
    if (!s) {
        sasl_client_config_free(config);
        return NULL;
    }
    *s = (struct peer_sasl){.base = {&auth_ops}, .config = config, .clock = clock};
    return &s->base;
}

void peer_sasl_free(struct peer_auth *a)
{
    if (!a)
        return;
    struct peer_sasl *s = container_of(a, struct peer_sasl, base);
    sasl_client_config_free(s->config);
    free(s);
}
