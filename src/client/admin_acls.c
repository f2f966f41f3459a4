/* admin_acls.c - the admin client's ACLs. A broker that is asked looks after them itself, so that
 * any will do. */
#include <stdio.h>
#include <stdlib.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "protocol/msg/create_acls.h"
#include "protocol/msg/delete_acls.h"
#include "protocol/msg/describe_acls.h"

/* ---- names ---- */

static const char *name_of(const char *const *names, size_t n, int number)
{
    return number > 0 && (size_t)number < n ? names[number] : "UNKNOWN";
}

const char *kafka_acl_resource_name(int resource_type)
{
    static const char *const names[] = {
        "UNKNOWN",          "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID",
        "DELEGATION_TOKEN", "USER"};
    return name_of(names, sizeof names / sizeof *names, resource_type);
}

const char *kafka_acl_pattern_name(int pattern_type)
{
    static const char *const names[] = {"UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"};
    return name_of(names, sizeof names / sizeof *names, pattern_type);
}

const char *kafka_acl_operation_name(int operation)
{
    static const char *const names[] = {"UNKNOWN",
                                        "ANY",
                                        "ALL",
                                        "READ",
                                        "WRITE",
                                        "CREATE",
                                        "DELETE",
                                        "ALTER",
                                        "DESCRIBE",
                                        "CLUSTER_ACTION",
                                        "DESCRIBE_CONFIGS",
                                        "ALTER_CONFIGS",
                                        "IDEMPOTENT_WRITE",
                                        "CREATE_TOKENS",
                                        "DESCRIBE_TOKENS"};
    return name_of(names, sizeof names / sizeof *names, operation);
}

const char *kafka_acl_permission_name(int permission)
{
    static const char *const names[] = {"UNKNOWN", "ANY", "DENY", "ALLOW"};
    return name_of(names, sizeof names / sizeof *names, permission);
}

/* ---- description ---- */

struct acls_result {
    kafka_acls_t acls;
    struct arena mem;
};

static bool keep_resource(struct arena *mem, const struct describe_acls_response_resource *from,
                          kafka_acl_t *to)
{
    const char *name = admin_keep(mem, from->resource_name);
    for (int32_t i = 0; i < from->acls.n; i++) {
        const struct describe_acls_response_acl *acl = &from->acls.v[i];
        to[i] = (kafka_acl_t){.resource_type = from->resource_type,
                              .pattern_type = from->pattern_type,
                              .name = name,
                              .principal = admin_keep(mem, acl->principal),
                              .host = admin_keep(mem, acl->host),
                              .operation = acl->operation,
                              .permission = acl->permission_type};
        if (!name || !to[i].principal || !to[i].host)
            return false;
    }
    return true;
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct describe_acls_response *m = response;
    struct admin_said *said = op->arg;
    struct acls_result *r = said->result;
    size_t n = 0, at = 0;
    if (m->error_code)
        return admin_say(said, m->error_code, m->error_message);
    for (int32_t i = 0; i < m->resources.n; i++)
        n += m->resources.v[i].acls.n > 0 ? (size_t)m->resources.v[i].acls.n : 0;
    arena_reset(&r->mem);
    kafka_acl_t *v = arena_array(&r->mem, kafka_acl_t, n + 1);
    bool complete = v != NULL;
    for (int32_t i = 0; complete && i < m->resources.n; i++) {
        complete = keep_resource(&r->mem, &m->resources.v[i], v + at);
        at += m->resources.v[i].acls.n > 0 ? (size_t)m->resources.v[i].acls.n : 0;
    }
    r->acls = (kafka_acls_t){v, n};
    return complete ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe_acls(kafka_admin_t *a, const kafka_acl_t *filter,
                                      int64_t timeout_ms, char *message, size_t message_n,
                                      kafka_acls_t **out)
{
    struct acls_result *r = calloc(1, sizeof *r);
    struct admin_said said = {.message = message, .n = message_n, .result = r};
    struct describe_acls_request req;
    *out = NULL;
    if (!r)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&r->mem, 0);
    describe_acls_request_init(&req);
    req.resource_type_filter = (int8_t)filter->resource_type;
    req.resource_name_filter = str_of(filter->name);
    req.pattern_type_filter = (int8_t)filter->pattern_type;
    req.principal_filter = str_of(filter->principal);
    req.host_filter = str_of(filter->host);
    req.operation = (int8_t)filter->operation;
    req.permission_type = (int8_t)filter->permission;
    struct op op = {.node = NODE_ANY,
                    .api_key = API_DESCRIBE_ACLS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = &said};
    kafka_err_t err = op_run(a->cluster, &op, timeout_ms);
    if (err == KAFKA_OK)
        *out = &r->acls;
    else
        kafka_acls_free(&r->acls);
    return err;
}

void kafka_acls_free(kafka_acls_t *acls)
{
    if (!acls)
        return;
    struct acls_result *r = container_of(acls, struct acls_result, acls);
    arena_free(&r->mem);
    free(r);
}

/* ---- creation ---- */

struct creating {
    struct admin_said said;
    size_t n;
    kafka_err_t *errs; /* may be NULL */
    kafka_err_t first; /* error */
};

static kafka_err_t on_created(struct op *op, int version, const void *response)
{
    const struct create_acls_response *m = response;
    struct creating *c = op->arg;
    if (m->results.n < 0 || (size_t)m->results.n != c->n)
        return KAFKA_ERR_BAD_RESPONSE;
    for (size_t i = 0; i < c->n; i++) {
        const struct create_acls_response_result *r = &m->results.v[i];
        if (c->errs)
            c->errs[i] = r->error_code;
        if (r->error_code && !c->first)
            c->first = admin_say(&c->said, r->error_code, r->error_message);
    }
    return KAFKA_OK;
}

static bool fill(struct create_acls_request *req, struct arena *mem, const kafka_acl_t *acls,
                 size_t n)
{
    req->creations.v = create_acls_request_creation_new(mem, (int32_t)n);
    req->creations.n = (int32_t)n;
    for (size_t i = 0; req->creations.v && i < n; i++)
        req->creations.v[i] = (struct create_acls_request_creation){
            .resource_type = (int8_t)acls[i].resource_type,
            .resource_name = str_of(acls[i].name),
            .resource_pattern_type = (int8_t)acls[i].pattern_type,
            .principal = str_of(acls[i].principal),
            .host = str_of(acls[i].host),
            .operation = (int8_t)acls[i].operation,
            .permission_type = (int8_t)acls[i].permission};
    return req->creations.v != NULL;
}

static kafka_err_t check(const kafka_acl_t *acls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!acls[i].name || !acls[i].principal || !acls[i].host)
            return client_fail(KAFKA_ERR_INVALID_ARG,
                               "an ACL needs the name of its resource, a principal and a host");
    return KAFKA_OK;
}

kafka_err_t kafka_admin_create_acls(kafka_admin_t *a, const kafka_acl_t *acls, size_t n,
                                    int64_t timeout_ms, kafka_err_t *errs, char *message,
                                    size_t message_n)
{
    struct arena mem;
    struct create_acls_request req;
    char why[256] = "";
    struct creating creating = {.said = {.message = why, .n = sizeof why}, .n = n, .errs = errs};
    struct op op = {.node = NODE_ANY,
                    .api_key = API_CREATE_ACLS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_created,
                    .arg = &creating};
    arena_init(&mem, 0);
    create_acls_request_init(&req);
    kafka_err_t err = check(acls, n);
    if (err == KAFKA_OK)
        err = fill(&req, &mem, acls, n) ? op_run(a->cluster, &op, timeout_ms) : KAFKA_ERR_NO_MEMORY;
    arena_free(&mem);
    for (size_t i = 0; err != KAFKA_OK && errs && i < n; i++)
        errs[i] = err;
    if (message && message_n)
        snprintf(message, message_n, "%s", why);
    if (err == KAFKA_OK && creating.first)
        return client_fail(creating.first, "%s", why);
    return err;
}

/* ---- deletion ---- */

struct deletions_result {
    kafka_acl_deletions_t deletions;
    struct arena mem;
};

static bool keep_deleted(struct arena *mem, const struct delete_acls_response_matching_acl *from,
                         kafka_deleted_acl_t *to)
{
    to->acl = (kafka_acl_t){.resource_type = from->resource_type,
                            .pattern_type = from->pattern_type,
                            .name = admin_keep(mem, from->resource_name),
                            .principal = admin_keep(mem, from->principal),
                            .host = admin_keep(mem, from->host),
                            .operation = from->operation,
                            .permission = from->permission_type};
    to->err = from->error_code;
    to->message = from->error_code ? admin_keep(mem, from->error_message) : NULL;
    return to->acl.name && to->acl.principal && to->acl.host;
}

static bool keep_deletion(struct arena *mem, const struct delete_acls_response_filter_result *from,
                          kafka_acl_deletion_t *to)
{
    size_t n = from->matching_acls.n > 0 ? (size_t)from->matching_acls.n : 0;
    kafka_deleted_acl_t *v = arena_array(mem, kafka_deleted_acl_t, n + 1);
    bool complete = v != NULL;
    for (size_t i = 0; complete && i < n; i++)
        complete = keep_deleted(mem, &from->matching_acls.v[i], &v[i]);
    *to = (kafka_acl_deletion_t){.err = from->error_code,
                                 .message =
                                     from->error_code ? admin_keep(mem, from->error_message) : NULL,
                                 .v = v,
                                 .n = n};
    return complete;
}

static kafka_err_t on_deleted(struct op *op, int version, const void *response)
{
    const struct delete_acls_response *m = response;
    struct deletions_result *r = op->arg;
    const struct delete_acls_request *req = op->request;
    if (m->filter_results.n != req->filters.n)
        return KAFKA_ERR_BAD_RESPONSE;
    size_t n = (size_t)m->filter_results.n;
    arena_reset(&r->mem);
    kafka_acl_deletion_t *v = arena_array(&r->mem, kafka_acl_deletion_t, n + 1);
    bool complete = v != NULL;
    for (size_t i = 0; complete && i < n; i++)
        complete = keep_deletion(&r->mem, &m->filter_results.v[i], &v[i]);
    r->deletions = (kafka_acl_deletions_t){v, n};
    return complete ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_delete_acls(kafka_admin_t *a, const kafka_acl_t *filters, size_t n,
                                    int64_t timeout_ms, kafka_acl_deletions_t **out)
{
    struct deletions_result *r = calloc(1, sizeof *r);
    struct arena mem;
    struct delete_acls_request req;
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    *out = NULL;
    if (!r)
        return err;
    arena_init(&r->mem, 0);
    arena_init(&mem, 0);
    delete_acls_request_init(&req);
    req.filters.v = delete_acls_request_filter_new(&mem, (int32_t)n);
    req.filters.n = (int32_t)n;
    for (size_t i = 0; req.filters.v && i < n; i++)
        req.filters.v[i] = (struct delete_acls_request_filter){
            .resource_type_filter = (int8_t)filters[i].resource_type,
            .resource_name_filter = str_of(filters[i].name),
            .pattern_type_filter = (int8_t)filters[i].pattern_type,
            .principal_filter = str_of(filters[i].principal),
            .host_filter = str_of(filters[i].host),
            .operation = (int8_t)filters[i].operation,
            .permission_type = (int8_t)filters[i].permission};
    struct op op = {.node = NODE_ANY,
                    .api_key = API_DELETE_ACLS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_deleted,
                    .arg = r};
    if (req.filters.v)
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &r->deletions;
    else
        kafka_acl_deletions_free(&r->deletions);
    return err;
}

void kafka_acl_deletions_free(kafka_acl_deletions_t *d)
{
    if (!d)
        return;
    struct deletions_result *r = container_of(d, struct deletions_result, deletions);
    arena_free(&r->mem);
    free(r);
}
