/* handle_acls.c - DescribeAcls, CreateAcls, DeleteAcls: any broker answers. What is changed is in
 * the store, and in force here, before the answer; other brokers hear of it by notices. */
#include <errno.h>

#include "acl/acl_store.h"
#include "base/logline.h"
#include "protocol/msg/create_acls.h"
#include "protocol/msg/delete_acls.h"
#include "protocol/msg/describe_acls.h"
#include "server/authorizer.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/request_later.h"

static const char component[] = "AclApis";
static const char no_authorizer[] = "No Authorizer is configured.";

/* What holds for the request as a whole. */
static enum kerr admit(const struct request *req, enum acl_operation op)
{
    if (!authorize_cluster(req, op))
        return KERR_CLUSTER_AUTHORIZATION_FAILED;
    return authorizer_enabled(req) ? KERR_NONE : KERR_SECURITY_DISABLED;
}

static struct str text_of(enum kerr error)
{
    return error == KERR_NONE                ? STR_NULL
           : error == KERR_SECURITY_DISABLED ? str_of(no_authorizer)
                                             : str_of(kerr_text((int16_t)error));
}

struct failure {
    enum kerr error;
    const char *text;
};

static struct failure failure_of(int err)
{
    switch (err) {
    case 0:
        return (struct failure){KERR_NONE, NULL};
    case -EBADMSG:
        return (struct failure){KERR_UNKNOWN_SERVER_ERROR,
                                "What the store holds of this resource is no list of ACLs"};
    case -EAGAIN:
        return (struct failure){KERR_UNKNOWN_SERVER_ERROR,
                                "The ACLs of this resource were changed by others at each try"};
    case -EINVAL:
        return (struct failure){KERR_INVALID_REQUEST,
                                "The store does not take a resource of this name"};
    case -E2BIG:
        return (struct failure){KERR_INVALID_REQUEST,
                                "The resource has more ACLs than the store takes"};
    case -ESTALE:
    case -ETIMEDOUT:
        return (struct failure){KERR_REQUEST_TIMED_OUT, "The store does not answer"};
    default:
        return (struct failure){KERR_UNKNOWN_SERVER_ERROR, "The store did not do it"};
    }
}

/* Changed patterns come into force here, on the worker, before the answer. */
static void put_in_force(const struct request *req, const struct acl_changed *changed)
{
    for (int i = 0; i < changed->n; i++) {
        const struct acl_pattern *p = &changed->v[i];
        say_info(component, "ACLs of %s:%s:%.*s changed by User:%.*s", acl_resource_name(p->type),
                 acl_pattern_upper(p->kind), STR_ARG(p->name), STR_ARG(request_user(req)));
    }
    broker_acls_refresh(req->broker, changed->v, changed->n);
}

/* ---- DescribeAcls ---- */

typedef struct describe_acls_response_resource described;

static int add_described(const struct acl_binding *found, int n, struct arena *a, described *out)
{
    const struct acl_pattern *p = &found->pattern;
    out->resource_type = (int8_t)p->type;
    out->resource_name = p->name;
    out->pattern_type = (int8_t)p->kind;
    out->acls.v = describe_acls_response_acl_new(a, n);
    if (!out->acls.v)
        return -ENOMEM;
    for (; out->acls.n < n; out->acls.n++) {
        const struct acl_entry *e = &found[out->acls.n].entry;
        struct describe_acls_response_acl *to = &out->acls.v[out->acls.n];
        to->principal = e->principal;
        to->host = e->host;
        to->operation = (int8_t)e->operation;
        to->permission_type = (int8_t)e->permission;
    }
    return 0;
}

/* Bindings of one pattern, which lie together, make one resource. */
static int describe(const struct acl_binding *found, int n, struct arena *a,
                    struct describe_acls_response *out)
{
    int resources = 0, rc = 0;
    for (int i = 0; i < n; i++)
        resources += !i || !acl_pattern_eq(&found[i - 1].pattern, &found[i].pattern);
    out->resources.v = describe_acls_response_resource_new(a, resources);
    if (!out->resources.v)
        return -ENOMEM;
    for (int i = 0, next; i < n && !rc; i = next) {
        for (next = i + 1; next < n; next++)
            if (!acl_pattern_eq(&found[i].pattern, &found[next].pattern))
                break;
        rc = add_described(&found[i], next - i, a, &out->resources.v[out->resources.n++]);
    }
    return rc;
}

void handle_describe_acls(struct request *req)
{
    const struct describe_acls_request *in = req->body;
    struct describe_acls_response out;
    struct acl_filter f = {.type = acl_resource_of_code(in->resource_type_filter),
                           .kind = acl_pattern_of_code(in->pattern_type_filter),
                           .name = in->resource_name_filter,
                           .principal = in->principal_filter,
                           .host = in->host_filter,
                           .operation = acl_operation_of_code(in->operation),
                           .permission = acl_permission_of_code(in->permission_type)};
    struct acl_binding *found;
    int n, rc = 0;
    describe_acls_response_init(&out);
    enum kerr error = admit(req, ACL_DESCRIBE);
    out.error_message = text_of(error);
    if (error == KERR_NONE && acl_filter_problem(&f)) {
        error = KERR_INVALID_REQUEST;
        out.error_message = str_of(acl_filter_problem(&f));
    }
    out.error_code = (int16_t)error;
    if (error == KERR_NONE)
        rc = authorizer_find(broker_authorizer(req->broker), &f, req->arena, &found, &n);
    if (error == KERR_NONE && !rc)
        rc = describe(found, n, req->arena, &out);
    if (rc)
        request_no_memory(req);
    else
        request_respond(req, &out);
}

/* ---- CreateAcls ---- */

typedef struct create_acls_request_creation creation;
typedef struct create_acls_response_result created;

struct create_op {
    struct request *req;
    struct create_acls_response out;
    struct acl_binding *bindings; /* those that have no problem */
    int *at, *errors;             /* their places in the request */
    int n;
    struct control_op queued;
};

static struct acl_binding binding_of(const creation *c)
{
    return (struct acl_binding){{acl_resource_of_code(c->resource_type),
                                 acl_pattern_of_code(c->resource_pattern_type), c->resource_name},
                                {c->principal, c->host, acl_operation_of_code(c->operation),
                                 acl_permission_of_code(c->permission_type)}};
}

static void set_created(created *to, enum kerr error, struct str text)
{
    to->error_code = (int16_t)error;
    to->error_message = text;
}

static void create(struct control_op *queued)
{
    struct create_op *op = container_of(queued, struct create_op, queued);
    struct acl_changed changed;
    int rc = acl_store_add(broker_acl_store(op->req->broker), op->bindings, op->n, op->errors,
                           op->req->arena, &changed);
    for (int i = 0; i < op->n; i++) {
        struct failure f = failure_of(rc ? rc : op->errors[i]);
        set_created(&op->out.results.v[op->at[i]], f.error, str_of(f.text));
    }
    if (!rc)
        put_in_force(op->req, &changed);
}

static void create_done(struct control_op *queued)
{
    struct create_op *op = container_of(queued, struct create_op, queued);
    struct broker *b = op->req->broker;
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

/* The answers that can be given at once; the other bindings are for the store. */
static bool prepare_creation(struct create_op *op, enum kerr error)
{
    const struct create_acls_request *in = op->req->body;
    struct arena *a = op->req->arena;
    int32_t n = in->creations.n > 0 ? in->creations.n : 0;
    op->out.results.v = create_acls_response_result_new(a, n);
    op->bindings = arena_array(a, struct acl_binding, (size_t)n);
    op->at = arena_array(a, int, (size_t)n);
    op->errors = arena_array(a, int, (size_t)n);
    if (!op->out.results.v || !op->bindings || !op->at || !op->errors)
        return false;
    for (int32_t i = 0; i < n; i++) {
        struct acl_binding b = binding_of(&in->creations.v[i]);
        const char *problem = error == KERR_NONE ? acl_binding_problem(&b) : NULL;
        created *to = &op->out.results.v[op->out.results.n++];
        if (error != KERR_NONE) {
            set_created(to, error, text_of(error));
        } else if (problem) {
            set_created(to, KERR_INVALID_REQUEST, str_of(problem));
        } else {
            op->at[op->n] = i;
            op->bindings[op->n++] = b;
        }
    }
    return true;
}

void handle_create_acls(struct request *req)
{
    struct create_op *op = arena_new(req->arena, struct create_op);
    enum kerr error = admit(req, ACL_ALTER);
    if (op) {
        op->req = req;
        create_acls_response_init(&op->out);
    }
    if (!op || !prepare_creation(op, error))
        request_no_memory(req);
    else if (!op->n)
        request_respond(req, &op->out);
    else
        request_configure(req, &op->queued, create, create_done);
}

/* ---- DeleteAcls ---- */

typedef struct delete_acls_request_filter delete_filter;
typedef struct delete_acls_response_filter_result filter_result;
typedef struct delete_acls_response_matching_acl matching;

struct delete_op {
    struct request *req;
    struct delete_acls_response out;
    struct acl_filter *filters; /* those that have no problem */
    int *at;                    /* their places in the request */
    int n;
    bool no_memory;
    struct control_op queued;
};

static struct acl_filter filter_of(const delete_filter *f)
{
    return (struct acl_filter){.type = acl_resource_of_code(f->resource_type_filter),
                               .kind = acl_pattern_of_code(f->pattern_type_filter),
                               .name = f->resource_name_filter,
                               .principal = f->principal_filter,
                               .host = f->host_filter,
                               .operation = acl_operation_of_code(f->operation),
                               .permission = acl_permission_of_code(f->permission_type)};
}

static void set_matching(matching *to, const struct acl_deleted *d)
{
    struct failure f = failure_of(d->error);
    to->error_code = (int16_t)f.error;
    to->error_message = str_of(f.text);
    to->resource_type = (int8_t)d->binding.pattern.type;
    to->resource_name = d->binding.pattern.name;
    to->pattern_type = (int8_t)d->binding.pattern.kind;
    to->principal = d->binding.entry.principal;
    to->host = d->binding.entry.host;
    to->operation = (int8_t)d->binding.entry.operation;
    to->permission_type = (int8_t)d->binding.entry.permission;
}

static int tell_deleted(struct delete_op *op, const struct acl_deleted *deleted, int n)
{
    struct arena *a = op->req->arena;
    int *counts = arena_array(a, int, (size_t)op->n);
    if (!counts)
        return -ENOMEM;
    for (int i = 0; i < n; i++)
        counts[deleted[i].filter]++;
    for (int i = 0; i < op->n; i++) {
        filter_result *to = &op->out.filter_results.v[op->at[i]];
        to->matching_acls.v = delete_acls_response_matching_acl_new(a, counts[i]);
        if (!to->matching_acls.v)
            return -ENOMEM;
    }
    for (int i = 0; i < n; i++) {
        filter_result *to = &op->out.filter_results.v[op->at[deleted[i].filter]];
        set_matching(&to->matching_acls.v[to->matching_acls.n++], &deleted[i]);
    }
    return 0;
}

static void delete (struct control_op *queued)
{
    struct delete_op *op = container_of(queued, struct delete_op, queued);
    struct acl_deleted *deleted = NULL;
    struct acl_changed changed = {0};
    int n = 0;
    int rc = acl_store_delete(broker_acl_store(op->req->broker), op->filters, op->n, op->req->arena,
                              &deleted, &n, &changed);
    put_in_force(op->req, &changed);
    if (!rc && tell_deleted(op, deleted, n) != 0)
        rc = -ENOMEM;
    op->no_memory = rc == -ENOMEM;
    for (int i = 0; rc && i < op->n; i++) {
        struct failure f = failure_of(rc);
        filter_result *to = &op->out.filter_results.v[op->at[i]];
        to->error_code = (int16_t)f.error;
        to->error_message = str_of(f.text);
    }
}

static void delete_done(struct control_op *queued)
{
    struct delete_op *op = container_of(queued, struct delete_op, queued);
    struct broker *b = op->req->broker;
    if (op->no_memory)
        request_no_memory(op->req);
    else
        request_respond(op->req, &op->out);
    broker_async_end(b);
}

static bool prepare_deletion(struct delete_op *op, enum kerr error)
{
    const struct delete_acls_request *in = op->req->body;
    struct arena *a = op->req->arena;
    int32_t n = in->filters.n > 0 ? in->filters.n : 0;
    op->out.filter_results.v = delete_acls_response_filter_result_new(a, n);
    op->filters = arena_array(a, struct acl_filter, (size_t)n);
    op->at = arena_array(a, int, (size_t)n);
    if (!op->out.filter_results.v || !op->filters || !op->at)
        return false;
    for (int32_t i = 0; i < n; i++) {
        struct acl_filter f = filter_of(&in->filters.v[i]);
        const char *problem = error == KERR_NONE ? acl_filter_problem(&f) : NULL;
        filter_result *to = &op->out.filter_results.v[op->out.filter_results.n++];
        to->error_code = (int16_t)(problem ? KERR_INVALID_REQUEST : error);
        to->error_message = problem ? str_of(problem) : text_of(error);
        if (error != KERR_NONE || problem)
            continue;
        op->at[op->n] = i;
        op->filters[op->n++] = f;
    }
    return true;
}

void handle_delete_acls(struct request *req)
{
    struct delete_op *op = arena_new(req->arena, struct delete_op);
    enum kerr error = admit(req, ACL_ALTER);
    if (op) {
        op->req = req;
        delete_acls_response_init(&op->out);
    }
    if (!op || !prepare_deletion(op, error))
        request_no_memory(req);
    else if (!op->n)
        request_respond(req, &op->out);
    else
        request_configure(req, &op->queued, delete, delete_done);
}
