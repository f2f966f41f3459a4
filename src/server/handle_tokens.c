/* handle_tokens.c - Create-, Renew-, Expire- and DescribeDelegationToken (KIP-48): any broker
 * answers. What is changed is in the store, and known here, before the answer; other brokers hear
 * of it by notices.
 *
 * Who comes in plain text, without a certificate, or with a token, may not ask at all: a token must
 * not beget tokens that outlive it. */
#include <errno.h>

#include "protocol/msg/create_delegation_token.h"
#include "protocol/msg/describe_delegation_token.h"
#include "protocol/msg/expire_delegation_token.h"
#include "protocol/msg/renew_delegation_token.h"
#include "server/authorizer.h"
#include "server/broker.h"
#include "server/broker_tokens.h"
#include "server/handlers.h"
#include "server/name_set.h"
#include "server/request_later.h"

enum { NO_TIME = -1 };

/* What holds for each of the four; the order is Kafka's, where Create looks at DISABLED last. */
static bool may_ask(const struct request *req)
{
    return conn_login(req->net->conn) == CONN_KNOWN;
}

static enum kerr admit(const struct request *req)
{
    return !may_ask(req)                 ? KERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
           : !broker_tokens(req->broker) ? KERR_DELEGATION_TOKEN_AUTH_DISABLED
                                         : KERR_NONE;
}

static enum kerr error_of(int rc)
{
    return rc == 0                             ? KERR_NONE
           : rc == -ENOENT                     ? KERR_DELEGATION_TOKEN_NOT_FOUND
           : rc == -E2BIG                      ? KERR_INVALID_REQUEST
           : rc == -ETIMEDOUT || rc == -ESTALE ? KERR_REQUEST_TIMED_OUT
                                               : KERR_UNKNOWN_SERVER_ERROR;
}

static int64_t now_ms(const struct request *req)
{
    return clock_wall_ms(request_executor(req)->clock);
}

/* Both >= 0, or `a` is a time. */
static int64_t sum_to_most(int64_t a, int64_t b, int64_t most)
{
    return b > most - a ? most : a + b;
}

/* ---- principals ---- */

static struct str principal_of(struct str type, struct str name, struct arena *a)
{
    char *text = arena_printf(a, "%.*s:%.*s", STR_ARG(type), STR_ARG(name));
    return str_of(text);
}

static struct str requester_of(const struct request *req)
{
    return principal_of(STR_LIT("User"), request_user(req), req->arena);
}

static void split(struct str principal, struct str *type, struct str *name)
{
    const char *colon = memchr(principal.p, ':', (size_t)principal.len);
    int32_t n = (int32_t)(colon - principal.p);
    *type = (struct str){principal.p, n};
    *name = (struct str){colon + 1, principal.len - n - 1};
}

/* A name with a NUL would be another one where texts end there. */
static bool is_user(struct str type, struct str name)
{
    return str_eqz(type, "User") && name.len >= 0 &&
           !(name.len && memchr(name.p, 0, (size_t)name.len));
}

/* ---- CreateDelegationToken ---- */

struct create_op {
    struct request *req;
    struct create_delegation_token_response out;
    struct token_info token;
    uint8_t hmac[TOKEN_HMAC_LEN];
    char id[23];
    struct control_op queued;
};

static void tell_created(struct create_op *op, enum kerr error)
{
    struct create_delegation_token_response *out = &op->out;
    const struct token_info *t = &op->token;
    bool made = error == KERR_NONE;
    out->error_code = (int16_t)error;
    split(t->owner, &out->principal_type, &out->principal_name);
    split(t->requester, &out->token_requester_principal_type, &out->token_requester_principal_name);
    out->issue_timestamp_ms = made ? t->issue_ms : NO_TIME;
    out->expiry_timestamp_ms = made ? t->expiry_ms : NO_TIME;
    out->max_timestamp_ms = made ? t->max_ms : NO_TIME;
    out->token_id = made ? t->id : STR_LIT("");
    out->hmac = (struct bytes){op->hmac, made ? TOKEN_HMAC_LEN : 0};
}

/* False: no memory. */
static bool take_principals(struct create_op *op)
{
    const struct create_delegation_token_request *in = op->req->body;
    struct token_info *t = &op->token;
    struct arena *a = op->req->arena;
    int32_t n = in->renewers.n > 0 ? in->renewers.n : 0;
    t->requester = requester_of(op->req);
    t->owner = in->owner_principal_name.len > 0
                   ? principal_of(in->owner_principal_type, in->owner_principal_name, a)
                   : t->requester;
    t->renewers = arena_array(a, struct str, (size_t)n);
    if (!t->requester.p || !t->owner.p || !t->renewers)
        return false;
    for (int32_t i = 0; i < n; i++) {
        t->renewers[i] =
            principal_of(in->renewers.v[i].principal_type, in->renewers.v[i].principal_name, a);
        if (!t->renewers[i].p)
            return false;
        t->renewers_n++;
    }
    return true;
}

static enum kerr admit_creation(const struct create_op *op)
{
    const struct create_delegation_token_request *in = op->req->body;
    const struct token_info *t = &op->token;
    if (!may_ask(op->req))
        return KERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED;
    if (!str_eq(t->owner, t->requester) &&
        !authorize(op->req, ACL_CREATE_TOKENS, ACL_USER, t->owner))
        return KERR_DELEGATION_TOKEN_AUTHORIZATION_FAILED;
    if (in->owner_principal_name.len > 0 &&
        !is_user(in->owner_principal_type, in->owner_principal_name))
        return KERR_INVALID_PRINCIPAL_TYPE;
    for (int32_t i = 0; i < in->renewers.n; i++)
        if (!is_user(in->renewers.v[i].principal_type, in->renewers.v[i].principal_name))
            return KERR_INVALID_PRINCIPAL_TYPE;
    return admit(op->req);
}

static void create(struct control_op *queued)
{
    struct create_op *op = container_of(queued, struct create_op, queued);
    const struct create_delegation_token_request *in = op->req->body;
    struct broker *b = op->req->broker;
    struct token_info *t = &op->token;
    int64_t life = broker_token_max_life_ms(b);
    if (in->max_lifetime_ms > 0 && in->max_lifetime_ms < life)
        life = in->max_lifetime_ms;
    uuid_format(uuid_random(), op->id);
    t->id = str_of(op->id);
    t->max_ms = sum_to_most(t->issue_ms, life, INT64_MAX);
    t->expiry_ms = sum_to_most(t->issue_ms, broker_token_renewal_ms(b), t->max_ms);
    bool made = tokens_hmac(broker_tokens(b), t->id, op->hmac);
    int rc = made ? token_store_add(broker_token_store(b), broker_tokens(b), t) : -EIO;
    tell_created(op, rc == -ENOENT ? KERR_UNKNOWN_SERVER_ERROR : error_of(rc));
}

static void create_done(struct control_op *queued)
{
    struct create_op *op = container_of(queued, struct create_op, queued);
    struct broker *b = op->req->broker;
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

void handle_create_delegation_token(struct request *req)
{
    struct create_op *op = arena_new(req->arena, struct create_op);
    if (op)
        op->req = req;
    req->arena->secret = true;
    if (!op || !take_principals(op)) {
        request_no_memory(req);
        return;
    }
    create_delegation_token_response_init(&op->out);
    op->token.issue_ms = now_ms(req);
    enum kerr error = admit_creation(op);
    if (error == KERR_NONE) {
        request_configure(req, &op->queued, create, create_done);
        return;
    }
    tell_created(op, error);
    request_respond(req, &op->out);
}

/* ---- RenewDelegationToken, ExpireDelegationToken ---- */

struct change_op {
    struct request *req;
    struct bytes hmac;
    int64_t period_ms;
    bool renew;
    int64_t now_ms, expiry_ms;
    enum kerr error;
    struct control_op queued;
};

static enum kerr remove_now(struct change_op *op, const struct token_info *t)
{
    struct broker *b = op->req->broker;
    op->expiry_ms = op->now_ms;
    return error_of(token_store_remove(broker_token_store(b), broker_tokens(b), t->id));
}

static enum kerr change_token(struct change_op *op)
{
    struct broker *b = op->req->broker;
    struct token_info t;
    struct str who = requester_of(op->req);
    int rc = who.p ? tokens_find_hmac(broker_tokens(b), op->hmac, op->req->arena, &t) : -ENOMEM;
    if (rc)
        return error_of(rc);
    if (!token_owned_by(&t, who) && !token_renewed_by(&t, who))
        return KERR_DELEGATION_TOKEN_OWNER_MISMATCH;
    if (!op->renew && op->period_ms < 0)
        return remove_now(op, &t);
    if (token_expired(&t, op->now_ms))
        return KERR_DELEGATION_TOKEN_EXPIRED;
    int64_t period = op->period_ms < 0 ? broker_token_renewal_ms(b) : op->period_ms;
    t.expiry_ms = sum_to_most(op->now_ms, period, t.max_ms);
    op->expiry_ms = t.expiry_ms;
    return error_of(token_store_set(broker_token_store(b), broker_tokens(b), &t));
}

static void change(struct control_op *queued)
{
    struct change_op *op = container_of(queued, struct change_op, queued);
    op->error = change_token(op);
}

/* The two APIs' answers differ in nothing but their type. */
static void answer_change(struct change_op *op)
{
    int64_t expiry = op->error == KERR_NONE ? op->expiry_ms : NO_TIME;
    struct renew_delegation_token_response renewed;
    struct expire_delegation_token_response expired;
    if (op->renew) {
        renew_delegation_token_response_init(&renewed);
        renewed.error_code = (int16_t)op->error;
        renewed.expiry_timestamp_ms = expiry;
        request_respond(op->req, &renewed);
    } else {
        expire_delegation_token_response_init(&expired);
        expired.error_code = (int16_t)op->error;
        expired.expiry_timestamp_ms = expiry;
        request_respond(op->req, &expired);
    }
}

static void change_done(struct control_op *queued)
{
    struct change_op *op = container_of(queued, struct change_op, queued);
    struct broker *b = op->req->broker;
    answer_change(op);
    broker_async_end(b);
}

static void begin_change(struct request *req, bool renew, struct bytes hmac, int64_t period_ms)
{
    struct change_op *op = arena_new(req->arena, struct change_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    *op = (struct change_op){.req = req,
                             .hmac = hmac,
                             .period_ms = period_ms,
                             .renew = renew,
                             .now_ms = now_ms(req),
                             .error = admit(req)};
    if (op->error == KERR_NONE)
        request_configure(req, &op->queued, change, change_done);
    else
        answer_change(op);
}

void handle_renew_delegation_token(struct request *req)
{
    const struct renew_delegation_token_request *in = req->body;
    begin_change(req, true, in->hmac, in->renew_period_ms);
}

void handle_expire_delegation_token(struct request *req)
{
    const struct expire_delegation_token_request *in = req->body;
    begin_change(req, false, in->hmac, in->expiry_time_period_ms);
}

/* ---- DescribeDelegationToken ---- */

typedef struct describe_delegation_token_response_token described;

static bool concerns(const struct token_info *t, struct str principal)
{
    return token_owned_by(t, principal) || str_eq(t->requester, principal) ||
           token_renewed_by(t, principal);
}

/* Does it concern one of those that are asked for? However many these are. */
static bool is_wanted(const struct token_info *t, const struct name_set *owners)
{
    bool wanted = name_set_has(owners, t->owner) || name_set_has(owners, t->requester);
    for (int i = 0; i < t->renewers_n && !wanted; i++)
        wanted = name_set_has(owners, t->renewers[i]);
    return wanted;
}

/* The owners that the request names. 0 or -ENOMEM. */
static int gather_owners(const struct request *req, struct name_set *out)
{
    const struct describe_delegation_token_request *in = req->body;
    int rc = name_set_init(out, req->arena, in->owners.n > 0 ? in->owners.n : 0);
    for (int32_t i = 0; i < in->owners.n && !rc; i++) {
        struct str one = principal_of(in->owners.v[i].principal_type,
                                      in->owners.v[i].principal_name, req->arena);
        if (one.p)
            name_set_add(out, one);
        else
            rc = -ENOMEM;
    }
    return rc;
}

static bool may_see(const struct request *req, const struct token_info *t, struct str who)
{
    return concerns(t, who) || authorize_quietly(req, ACL_DESCRIBE, ACL_DELEGATION_TOKEN, t->id) ||
           authorize_quietly(req, ACL_DESCRIBE_TOKENS, ACL_USER, t->owner);
}

static int describe(const struct request *req, const struct token_info *t, described *out)
{
    uint8_t *hmac = arena_alloc(req->arena, TOKEN_HMAC_LEN);
    out->renewers.v = describe_delegation_token_response_renewer_new(req->arena, t->renewers_n);
    if (!hmac || !out->renewers.v || !tokens_hmac(broker_tokens(req->broker), t->id, hmac))
        return -ENOMEM;
    split(t->owner, &out->principal_type, &out->principal_name);
    split(t->requester, &out->token_requester_principal_type, &out->token_requester_principal_name);
    out->issue_timestamp = t->issue_ms;
    out->expiry_timestamp = t->expiry_ms;
    out->max_timestamp = t->max_ms;
    out->token_id = t->id;
    out->hmac = (struct bytes){hmac, TOKEN_HMAC_LEN};
    for (; out->renewers.n < t->renewers_n; out->renewers.n++) {
        struct describe_delegation_token_response_renewer *r = &out->renewers.v[out->renewers.n];
        split(t->renewers[out->renewers.n], &r->principal_type, &r->principal_name);
    }
    return 0;
}

static int describe_all(const struct request *req, struct describe_delegation_token_response *out)
{
    const struct describe_delegation_token_request *in = req->body;
    struct arena *a = req->arena;
    struct token_info *all;
    int n;
    struct name_set owners;
    struct str who = requester_of(req);
    if (!who.p || gather_owners(req, &owners) ||
        tokens_list(broker_tokens(req->broker), a, &all, &n) != 0)
        return -ENOMEM;
    out->tokens.v = describe_delegation_token_response_token_new(a, n);
    int rc = out->tokens.v ? 0 : -ENOMEM;
    for (int i = 0; i < n && !rc; i++)
        if ((in->owners.n < 0 || is_wanted(&all[i], &owners)) && may_see(req, &all[i], who))
            rc = describe(req, &all[i], &out->tokens.v[out->tokens.n++]);
    return rc;
}

void handle_describe_delegation_token(struct request *req)
{
    struct describe_delegation_token_response out;
    describe_delegation_token_response_init(&out);
    req->arena->secret = true;
    enum kerr error = admit(req);
    out.error_code = (int16_t)error;
    if (error == KERR_NONE && describe_all(req, &out) != 0)
        request_no_memory(req);
    else
        request_respond(req, &out);
}
