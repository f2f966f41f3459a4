/* mock_tokens.c - the mock's delegation tokens. It keeps none: a token's id and HMAC are made of
 * its owner's name, and one of "gone" is not known. */
#include "unit.h"

#include <string.h>

#include "client/mock_private.h"
#include "protocol/errors.h"
#include "protocol/msg/create_delegation_token.h"
#include "protocol/msg/describe_delegation_token.h"
#include "protocol/msg/expire_delegation_token.h"
#include "protocol/msg/renew_delegation_token.h"

static struct bytes hmac_of(struct str owner)
{
    return (struct bytes){(const uint8_t *)owner.p, owner.len};
}

static void do_create(struct mock_request *r, const void *request, void *response)
{
    const struct create_delegation_token_request *req = request;
    struct create_delegation_token_response *out = response;
    bool other = req->owner_principal_name.len > 0;
    out->error_code = r->error;
    if (r->error)
        return;
    out->principal_type = other ? req->owner_principal_type : STR_LIT("User");
    out->principal_name = other ? req->owner_principal_name : STR_LIT("me");
    if (r->head.api_version >= 3) {
        out->token_requester_principal_type = STR_LIT("User");
        out->token_requester_principal_name = STR_LIT("me");
    }
    out->issue_timestamp_ms = 1000;
    out->expiry_timestamp_ms = 2000;
    out->max_timestamp_ms = req->max_lifetime_ms < 0 ? 3000 : 1000 + req->max_lifetime_ms;
    out->token_id = out->principal_name;
    out->hmac = hmac_of(out->principal_name);
}

static int16_t error_of(const struct mock_request *r, struct bytes hmac)
{
    bool gone = hmac.len == 4 && memcmp(hmac.p, "gone", 4) == 0;
    return r->error ? r->error : gone ? KERR_DELEGATION_TOKEN_NOT_FOUND : 0;
}

static void do_renew(struct mock_request *r, const void *request, void *response)
{
    const struct renew_delegation_token_request *req = request;
    struct renew_delegation_token_response *out = response;
    out->error_code = error_of(r, req->hmac);
    out->expiry_timestamp_ms = out->error_code ? -1 : 5000 + req->renew_period_ms;
}

static void do_expire(struct mock_request *r, const void *request, void *response)
{
    const struct expire_delegation_token_request *req = request;
    struct expire_delegation_token_response *out = response;
    out->error_code = error_of(r, req->hmac);
    out->expiry_timestamp_ms = out->error_code ? -1 : 6000 + req->expiry_time_period_ms;
}

/* One of each owner that is asked for; "me" is the only one that there is else. */
static void do_describe(struct mock_request *r, const void *request, void *response)
{
    const struct describe_delegation_token_request *req = request;
    struct describe_delegation_token_response *out = response;
    int32_t n = req->owners.n < 0 ? 1 : req->owners.n;
    out->error_code = r->error;
    if (r->error)
        return;
    out->tokens.v = describe_delegation_token_response_token_new(r->arena, n);
    out->tokens.n = n;
    for (int32_t i = 0; i < n; i++) {
        struct describe_delegation_token_response_token *t = &out->tokens.v[i];
        t->principal_type = STR_LIT("User");
        t->principal_name = req->owners.n < 0 ? STR_LIT("me") : req->owners.v[i].principal_name;
        if (r->head.api_version >= 3) {
            t->token_requester_principal_type = STR_LIT("User");
            t->token_requester_principal_name = STR_LIT("asker");
        }
        t->issue_timestamp = 1000 + i;
        t->expiry_timestamp = 2000 + i;
        t->max_timestamp = 3000 + i;
        t->token_id = t->principal_name;
        t->hmac = hmac_of(t->principal_name);
        t->renewers.v = describe_delegation_token_response_renewer_new(r->arena, i);
        for (; t->renewers.n < i; t->renewers.n++) {
            t->renewers.v[t->renewers.n].principal_type = STR_LIT("User");
            t->renewers.v[t->renewers.n].principal_name = STR_LIT("r:1");
        }
    }
}

mock_do mock_find_token_api(int16_t api)
{
    return api == API_CREATE_DELEGATION_TOKEN     ? do_create
           : api == API_RENEW_DELEGATION_TOKEN    ? do_renew
           : api == API_EXPIRE_DELEGATION_TOKEN   ? do_expire
           : api == API_DESCRIBE_DELEGATION_TOKEN ? do_describe
                                                  : NULL;
}
