/* admin_tokens.c - the admin client's delegation tokens. Any broker makes and changes them. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "client/client_conf.h"
#include "protocol/msg/create_delegation_token.h"
#include "protocol/msg/describe_delegation_token.h"
#include "protocol/msg/expire_delegation_token.h"
#include "protocol/msg/renew_delegation_token.h"
#include "sasl/base64.h"

/* ---- principals ---- */

static kafka_err_t split(const char *principal, struct str *type, struct str *name)
{
    const char *colon = principal ? strchr(principal, ':') : NULL;
    if (!colon || colon == principal)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "expected a string in format principalType:principalName but got %s",
                           principal ? principal : "none");
    *type = (struct str){principal, (int32_t)(colon - principal)};
    *name = str_of(colon + 1);
    return KAFKA_OK;
}

static const char *join(struct arena *mem, struct str type, struct str name)
{
    return arena_printf(mem, "%.*s:%.*s", STR_ARG(type), STR_ARG(name));
}

/* ---- tokens that are told ---- */

struct tokens_result {
    kafka_tokens_t list;
    struct arena mem;
};

static struct tokens_result *new_result(void)
{
    struct tokens_result *r = calloc(1, sizeof *r);
    if (r) {
        arena_init(&r->mem, 0);
        r->mem.secret = true;
    }
    return r;
}

void kafka_tokens_free(kafka_tokens_t *tokens)
{
    if (!tokens)
        return;
    struct tokens_result *r = container_of(tokens, struct tokens_result, list);
    arena_free(&r->mem);
    free(r);
}

/* Older brokers do not tell. */
static const char *requester_of(struct arena *mem, struct str type, struct str name,
                                const kafka_token_t *t)
{
    return name.len > 0 ? join(mem, type, name) : t->owner;
}

static bool complete(const kafka_token_t *t)
{
    return t->id && t->owner && t->requester && t->secret && t->renewers;
}

static kafka_err_t run(kafka_admin_t *a, struct op *op, int64_t timeout_ms, struct tokens_result *r,
                       kafka_tokens_t **out)
{
    kafka_err_t err = op_run(a->cluster, op, timeout_ms);
    if (err == KAFKA_OK)
        *out = &r->list;
    else
        kafka_tokens_free(&r->list);
    return err;
}

/* ---- creation ---- */

struct creating {
    const char *const *renewers; /* the caller's */
    size_t renewers_n;
    struct tokens_result *result;
};

static bool keep_renewers(struct arena *mem, const struct creating *c, kafka_token_t *t)
{
    const char **v = arena_array(mem, const char *, c->renewers_n + 1);
    for (size_t i = 0; v && i < c->renewers_n; i++) {
        v[i] = admin_keep(mem, str_of(c->renewers[i]));
        if (!v[i])
            return false;
    }
    t->renewers = v;
    t->renewers_n = c->renewers_n;
    return v != NULL;
}

static kafka_err_t on_created(struct op *op, int version, const void *response)
{
    const struct create_delegation_token_response *m = response;
    struct creating *c = op->arg;
    struct arena *mem = &c->result->mem;
    if (m->error_code)
        return m->error_code;
    kafka_token_t *t = arena_new(mem, kafka_token_t);
    if (!t)
        return KAFKA_ERR_NO_MEMORY;
    *t = (kafka_token_t){.id = admin_keep(mem, m->token_id),
                         .owner = join(mem, m->principal_type, m->principal_name),
                         .issue_ms = m->issue_timestamp_ms,
                         .expiry_ms = m->expiry_timestamp_ms,
                         .max_ms = m->max_timestamp_ms,
                         .secret = base64_encode(m->hmac.p, (size_t)m->hmac.len, mem).p};
    t->requester =
        requester_of(mem, m->token_requester_principal_type, m->token_requester_principal_name, t);
    if (!keep_renewers(mem, c, t) || !complete(t))
        return KAFKA_ERR_NO_MEMORY;
    c->result->list = (kafka_tokens_t){t, 1};
    return KAFKA_OK;
}

static kafka_err_t fill_creation(struct create_delegation_token_request *req, struct arena *mem,
                                 const char *owner, const struct creating *c)
{
    kafka_err_t err = KAFKA_OK;
    req->renewers.v = create_delegation_token_request_renewer_new(mem, (int32_t)c->renewers_n);
    if (!req->renewers.v)
        return KAFKA_ERR_NO_MEMORY;
    if (owner)
        err = split(owner, &req->owner_principal_type, &req->owner_principal_name);
    for (size_t i = 0; i < c->renewers_n && err == KAFKA_OK; i++) {
        struct create_delegation_token_request_renewer *r = &req->renewers.v[req->renewers.n++];
        err = split(c->renewers[i], &r->principal_type, &r->principal_name);
    }
    return err;
}

kafka_err_t kafka_admin_create_token(kafka_admin_t *a, const char *owner,
                                     const char *const *renewers, size_t renewers_n,
                                     int64_t max_life_ms, int64_t timeout_ms, kafka_tokens_t **out)
{
    struct arena mem;
    struct create_delegation_token_request req;
    struct creating c = {renewers, renewers_n, new_result()};
    *out = NULL;
    if (!c.result)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    create_delegation_token_request_init(&req);
    req.max_lifetime_ms = max_life_ms;
    struct op op = {.node = NODE_ANY,
                    .api_key = API_CREATE_DELEGATION_TOKEN,
                    .min_version = owner ? 3 : -1, /* an owner that is not sent would be oneself */
                    .max_version = -1,
                    .request = &req,
                    .handle = on_created,
                    .arg = &c};
    kafka_err_t err = fill_creation(&req, &mem, owner, &c);
    if (err == KAFKA_OK)
        err = run(a, &op, timeout_ms, c.result, out);
    else
        kafka_tokens_free(&c.result->list);
    arena_free(&mem);
    return err;
}

/* ---- changes ---- */

static kafka_err_t changed(struct op *op, int16_t error, int64_t expiry_ms)
{
    *(int64_t *)op->arg = expiry_ms;
    return error;
}

static kafka_err_t on_renewed(struct op *op, int version, const void *response)
{
    const struct renew_delegation_token_response *m = response;
    return changed(op, m->error_code, m->expiry_timestamp_ms);
}

static kafka_err_t on_expired(struct op *op, int version, const void *response)
{
    const struct expire_delegation_token_response *m = response;
    return changed(op, m->error_code, m->expiry_timestamp_ms);
}

/* `op` lacks what is the same for both. */
static kafka_err_t change(kafka_admin_t *a, struct op *op, int64_t timeout_ms, int64_t *expiry_ms)
{
    int64_t expiry = -1;
    op->node = NODE_ANY;
    op->min_version = op->max_version = -1;
    op->arg = &expiry;
    kafka_err_t err = op_run(a->cluster, op, timeout_ms);
    if (err == KAFKA_OK && expiry_ms)
        *expiry_ms = expiry;
    return err;
}

static kafka_err_t take_secret(const char *secret, struct arena *mem, struct bytes *out)
{
    *out = secret ? base64_decode(str_of(secret), mem) : BYTES_NULL;
    return out->p ? KAFKA_OK
                  : client_fail(KAFKA_ERR_INVALID_ARG, "a token's secret is a text in base64");
}

kafka_err_t kafka_admin_renew_token(kafka_admin_t *a, const char *secret, int64_t period_ms,
                                    int64_t timeout_ms, int64_t *expiry_ms)
{
    struct arena mem;
    struct renew_delegation_token_request req;
    struct op op = {.api_key = API_RENEW_DELEGATION_TOKEN, .request = &req, .handle = on_renewed};
    arena_init(&mem, 0);
    mem.secret = true;
    renew_delegation_token_request_init(&req);
    req.renew_period_ms = period_ms;
    kafka_err_t err = take_secret(secret, &mem, &req.hmac);
    if (err == KAFKA_OK)
        err = change(a, &op, timeout_ms, expiry_ms);
    arena_free(&mem);
    return err;
}

kafka_err_t kafka_admin_expire_token(kafka_admin_t *a, const char *secret, int64_t period_ms,
                                     int64_t timeout_ms, int64_t *expiry_ms)
{
    struct arena mem;
    struct expire_delegation_token_request req;
    struct op op = {.api_key = API_EXPIRE_DELEGATION_TOKEN, .request = &req, .handle = on_expired};
    arena_init(&mem, 0);
    mem.secret = true;
    expire_delegation_token_request_init(&req);
    req.expiry_time_period_ms = period_ms;
    kafka_err_t err = take_secret(secret, &mem, &req.hmac);
    if (err == KAFKA_OK)
        err = change(a, &op, timeout_ms, expiry_ms);
    arena_free(&mem);
    return err;
}

/* ---- description ---- */

static bool keep_token(struct arena *mem, const struct describe_delegation_token_response_token *m,
                       kafka_token_t *t)
{
    size_t n = m->renewers.n > 0 ? (size_t)m->renewers.n : 0;
    const char **renewers = arena_array(mem, const char *, n + 1);
    bool all = renewers != NULL;
    *t = (kafka_token_t){.id = admin_keep(mem, m->token_id),
                         .owner = join(mem, m->principal_type, m->principal_name),
                         .renewers = renewers,
                         .renewers_n = n,
                         .issue_ms = m->issue_timestamp,
                         .expiry_ms = m->expiry_timestamp,
                         .max_ms = m->max_timestamp,
                         .secret = base64_encode(m->hmac.p, (size_t)m->hmac.len, mem).p};
    t->requester =
        requester_of(mem, m->token_requester_principal_type, m->token_requester_principal_name, t);
    for (size_t i = 0; all && i < n; i++) {
        renewers[i] = join(mem, m->renewers.v[i].principal_type, m->renewers.v[i].principal_name);
        all = renewers[i] != NULL;
    }
    return all && complete(t);
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct describe_delegation_token_response *m = response;
    struct tokens_result *r = op->arg;
    if (m->error_code)
        return m->error_code;
    size_t n = m->tokens.n > 0 ? (size_t)m->tokens.n : 0;
    kafka_token_t *v = arena_array(&r->mem, kafka_token_t, n + 1);
    if (!v)
        return KAFKA_ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (!keep_token(&r->mem, &m->tokens.v[i], &v[i]))
            return KAFKA_ERR_NO_MEMORY;
    r->list = (kafka_tokens_t){v, n};
    return KAFKA_OK;
}

static kafka_err_t fill_description(struct describe_delegation_token_request *req,
                                    struct arena *mem, const char *const *owners, size_t n)
{
    kafka_err_t err = KAFKA_OK;
    req->owners.n = -1;
    if (!owners)
        return KAFKA_OK;
    req->owners.v = describe_delegation_token_request_owner_new(mem, (int32_t)n);
    req->owners.n = (int32_t)n;
    if (!req->owners.v)
        return KAFKA_ERR_NO_MEMORY;
    for (size_t i = 0; i < n && err == KAFKA_OK; i++)
        err = split(owners[i], &req->owners.v[i].principal_type, &req->owners.v[i].principal_name);
    return err;
}

kafka_err_t kafka_admin_describe_tokens(kafka_admin_t *a, const char *const *owners, size_t n,
                                        int64_t timeout_ms, kafka_tokens_t **out)
{
    struct arena mem;
    struct describe_delegation_token_request req;
    struct tokens_result *r = new_result();
    *out = NULL;
    if (!r)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    describe_delegation_token_request_init(&req);
    struct op op = {.node = NODE_ANY,
                    .api_key = API_DESCRIBE_DELEGATION_TOKEN,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = r};
    kafka_err_t err = fill_description(&req, &mem, owners, n);
    if (err == KAFKA_OK)
        err = run(a, &op, timeout_ms, r, out);
    else
        kafka_tokens_free(&r->list);
    arena_free(&mem);
    return err;
}
