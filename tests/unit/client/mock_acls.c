/* mock_acls.c - the mock's ACLs. Filters know names that are the same, not what MATCH finds;
 * "refused" as the name of a resource is refused. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "client/mock_private.h"
#include "protocol/errors.h"
#include "protocol/msg/create_acls.h"
#include "protocol/msg/delete_acls.h"
#include "protocol/msg/describe_acls.h"

static void put(char to[64], struct str from)
{
    snprintf(to, 64, "%.*s", STR_ARG(from));
}

static void do_create(struct mock_request *r, const void *request, void *response)
{
    const struct create_acls_request *req = request;
    struct create_acls_response *out = response;
    out->results.v = create_acls_response_result_new(r->arena, req->creations.n);
    out->results.n = req->creations.n;
    for (int32_t i = 0; i < req->creations.n; i++) {
        const struct create_acls_request_creation *c = &req->creations.v[i];
        bool refused = str_eqz(c->resource_name, "refused");
        out->results.v[i].error_code = r->error ? r->error : refused ? KERR_INVALID_REQUEST : 0;
        if (refused)
            out->results.v[i].error_message = STR_LIT("not this one");
        if (out->results.v[i].error_code)
            continue;
        assert_true(r->m->acls_n < MOCK_ACLS);
        struct mock_acl *a = &r->m->acls[r->m->acls_n++];
        *a = (struct mock_acl){.resource_type = c->resource_type,
                               .pattern_type = c->resource_pattern_type,
                               .operation = c->operation,
                               .permission = c->permission_type};
        put(a->name, c->resource_name);
        put(a->principal, c->principal);
        put(a->host, c->host);
    }
}

static bool fits(struct str filter, const char *text)
{
    return str_is_null(filter) || str_eqz(filter, text);
}

static void do_describe(struct mock_request *r, const void *request, void *response)
{
    const struct describe_acls_request *req = request;
    struct describe_acls_response *out = response;
    out->error_code = r->error;
    if (r->error)
        out->error_message = STR_LIT("as the script says");
    out->resources.v = describe_acls_response_resource_new(r->arena, r->m->acls_n);
    for (int i = 0; i < r->m->acls_n && !r->error; i++) {
        const struct mock_acl *a = &r->m->acls[i];
        if ((req->resource_type_filter != 1 && req->resource_type_filter != a->resource_type) ||
            (req->pattern_type_filter > 2 && req->pattern_type_filter != a->pattern_type) ||
            (req->operation != 1 && req->operation != a->operation) ||
            (req->permission_type != 1 && req->permission_type != a->permission) ||
            !fits(req->resource_name_filter, a->name) ||
            !fits(req->principal_filter, a->principal) || !fits(req->host_filter, a->host))
            continue;
        struct describe_acls_response_resource *to = &out->resources.v[out->resources.n++];
        to->resource_type = a->resource_type;
        to->pattern_type = a->pattern_type;
        to->resource_name = str_of(a->name);
        to->acls.n = 1;
        to->acls.v = describe_acls_response_acl_new(r->arena, 1);
        to->acls.v->principal = str_of(a->principal);
        to->acls.v->host = str_of(a->host);
        to->acls.v->operation = a->operation;
        to->acls.v->permission_type = a->permission;
    }
}

/* By the resource's name alone. The first that fits "half" cannot be deleted. */
static void do_delete(struct mock_request *r, const void *request, void *response)
{
    const struct delete_acls_request *req = request;
    struct delete_acls_response *out = response;
    out->filter_results.v = delete_acls_response_filter_result_new(r->arena, req->filters.n);
    out->filter_results.n = req->filters.n;
    for (int32_t i = 0; i < req->filters.n; i++) {
        struct delete_acls_response_filter_result *to = &out->filter_results.v[i];
        struct str name = req->filters.v[i].resource_name_filter;
        bool half = str_eqz(name, "half");
        to->error_code = r->error ? r->error : str_eqz(name, "refused") ? KERR_INVALID_REQUEST : 0;
        if (to->error_code) {
            to->error_message = STR_LIT("not this one");
            continue;
        }
        to->matching_acls.v = delete_acls_response_matching_acl_new(r->arena, MOCK_ACLS);
        for (int k = 0; k < r->m->acls_n; k++) {
            const struct mock_acl *a = &r->m->acls[k];
            if (!fits(name, a->name))
                continue;
            struct delete_acls_response_matching_acl *m =
                &to->matching_acls.v[to->matching_acls.n++];
            m->resource_type = a->resource_type;
            m->pattern_type = a->pattern_type;
            m->resource_name = str_of(a->name);
            m->principal = str_of(a->principal);
            m->host = str_of(a->host);
            m->operation = a->operation;
            m->permission_type = a->permission;
            if (half) {
                m->error_code = KERR_UNKNOWN_SERVER_ERROR;
                m->error_message = STR_LIT("only half");
            }
            half = false;
        }
    }
}

mock_do mock_find_acl_api(int16_t api)
{
    return api == API_DESCRIBE_ACLS ? do_describe
           : api == API_CREATE_ACLS ? do_create
           : api == API_DELETE_ACLS ? do_delete
                                    : NULL;
}
