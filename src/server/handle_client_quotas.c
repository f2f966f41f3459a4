/* handle_client_quotas.c - DescribeClientQuotas and AlterClientQuotas: quotas of users, client ids,
 * both, and of addresses. Work in the queue of settings, as they are stored and not as they are in
 * force here (which differs for a moment after another broker's change). */
#include "net/server_conn.h"
#include "server/broker.h"
#include "server/entity_configs.h"
#include "server/handlers.h"
#include "server/quota_change.h"
#include "server/request_later.h"

/* ---- AlterClientQuotas ---- */

struct alter_op {
    struct request *req;
    const struct alter_client_quotas_request *in;
    struct alter_client_quotas_response out;
    struct control_op queued;
};

static enum kerr check_ip(const struct quota_entity *e, struct arena *a, const char **message)
{
    struct in6_addr ip;
    struct str name = arena_str(a, e->part[QUOTA_IP].name);
    if (!e->part[QUOTA_IP].given || str_is_null(name) || net_ip_of(name.p, &ip) == 0)
        return KERR_NONE;
    *message = arena_printf(a, "%s is not a valid IP or resolvable host.", name.p);
    return KERR_INVALID_REQUEST;
}

static enum kerr alter_one(struct alter_op *op, const struct alter_client_quotas_request_entry *in,
                           const char **message)
{
    struct arena *a = op->req->arena;
    struct broker *b = op->req->broker;
    struct quota_entity e;
    struct config_list old, new;
    enum kerr error = quota_change_entity(in, a, &e, message);
    if (error == KERR_NONE)
        error = check_ip(&e, a, message);
    if (error != KERR_NONE)
        return error;
    char *path = quota_entity_path(&e, a);
    if (!path || entity_configs_read(b, str_of(path), a, &old) != 0)
        return KERR_UNKNOWN_SERVER_ERROR;
    error = quota_change_make(in, &e, old, a, &new, message);
    if (error == KERR_NONE && !op->in->validate_only)
        error = entity_configs_write(b, str_of(path), new);
    return error;
}

static void work_alter(struct control_op *queued)
{
    struct alter_op *op = container_of(queued, struct alter_op, queued);
    for (int32_t i = 0; i < op->in->entries.n; i++) {
        struct alter_client_quotas_response_entry *out = &op->out.entries.v[i];
        const char *message = NULL;
        enum kerr error = alter_one(op, &op->in->entries.v[i], &message);
        out->error_code = (int16_t)error;
        out->error_message =
            error == KERR_NONE ? STR_NULL : str_of(message ? message : kerr_text((int16_t)error));
    }
}

static void done_alter(struct control_op *queued)
{
    struct alter_op *op = container_of(queued, struct alter_op, queued);
    struct broker *b = op->req->broker;
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

static bool lay_out_alter(struct alter_op *op)
{
    struct arena *a = op->req->arena;
    int32_t n = op->in->entries.n;
    alter_client_quotas_response_init(&op->out);
    op->out.entries.v = alter_client_quotas_response_entry_new(a, n);
    op->out.entries.n = n;
    for (int32_t i = 0; op->out.entries.v && i < n; i++) {
        const struct alter_client_quotas_request_entry *from = &op->in->entries.v[i];
        struct alter_client_quotas_response_entry *to = &op->out.entries.v[i];
        to->entity.v = alter_client_quotas_response_entity_new(a, from->entity.n);
        to->entity.n = from->entity.n;
        if (!to->entity.v)
            return false;
        to->error_code = (int16_t)op->req->refused;
        to->error_message = op->req->refused ? str_of(kerr_text(to->error_code)) : STR_NULL;
        for (int32_t k = 0; k < from->entity.n; k++) {
            to->entity.v[k].entity_type = from->entity.v[k].entity_type;
            to->entity.v[k].entity_name = from->entity.v[k].entity_name;
        }
    }
    return op->out.entries.v != NULL;
}

void handle_alter_client_quotas(struct request *req)
{
    struct alter_op *op = arena_new(req->arena, struct alter_op);
    if (op) {
        op->req = req;
        op->in = req->body;
    }
    if (!op || !lay_out_alter(op)) {
        request_no_memory(req);
        return;
    }
    if (req->refused != KERR_NONE)
        request_respond(req, &op->out);
    else
        request_configure(req, &op->queued, work_alter, done_alter);
}

/* ---- DescribeClientQuotas ---- */

struct found {
    struct list link;
    struct describe_client_quotas_response_entry entry;
};

struct describe_op {
    struct request *req;
    struct quota_filter filter;
    struct describe_client_quotas_response out;
    struct list found;
    int32_t found_n;
    struct control_op queued;
    int failed; /* -errno */
};

static bool fill_entity(struct arena *a, const struct quota_entity *e,
                        struct describe_client_quotas_response_entry *out)
{
    out->entity.v = describe_client_quotas_response_entity_new(a, QUOTA_PARTS);
    for (int i = 0; out->entity.v && i < QUOTA_PARTS; i++) {
        if (!e->part[i].given)
            continue;
        struct describe_client_quotas_response_entity *to = &out->entity.v[out->entity.n++];
        to->entity_type = str_of(quota_part_name((enum quota_part)i));
        to->entity_name = e->part[i].name;
    }
    return out->entity.v != NULL;
}

static int add_found(void *arg, const struct quota_entity *e, struct config_list list)
{
    struct describe_op *op = arg;
    struct arena *a = op->req->arena;
    if (!quota_filter_fits(&op->filter, e))
        return 0;
    struct found *f = arena_new(a, struct found);
    if (!f || !(f->entry.values.v = describe_client_quotas_response_value_new(a, list.n)))
        return -ENOMEM;
    for (int i = 0; i < list.n; i++) {
        double value;
        if (!quota_value(e, &list.v[i], &value))
            continue;
        struct describe_client_quotas_response_value *to = &f->entry.values.v[f->entry.values.n++];
        to->key = list.v[i].name;
        to->value = value;
    }
    if (f->entry.values.n == 0)
        return 0;
    if (!fill_entity(a, e, &f->entry))
        return -ENOMEM;
    list_push_back(&op->found, &f->link);
    op->found_n++;
    return 0;
}

static int gather(struct describe_op *op)
{
    struct describe_client_quotas_response_entry *v =
        describe_client_quotas_response_entry_new(op->req->arena, op->found_n);
    if (!v)
        return -ENOMEM;
    int32_t n = 0;
    list_each (at, &op->found)
        v[n++] = list_entry(at, struct found, link)->entry;
    op->out.entries.v = v;
    op->out.entries.n = n;
    return 0;
}

static void work_describe(struct control_op *queued)
{
    static const char *const folders[] = {"users", "clients", "ips"};
    struct describe_op *op = container_of(queued, struct describe_op, queued);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && !op->failed; i++)
        op->failed =
            entity_configs_each(op->req->broker, folders[i], op->req->arena, add_found, op);
    if (!op->failed)
        op->failed = gather(op);
}

static void refuse(struct describe_op *op, enum kerr error, const char *message)
{
    op->out.error_code = (int16_t)error;
    op->out.error_message = str_of(message ? message : kerr_text((int16_t)error));
    op->out.entries.n = -1;
}

static void done_describe(struct control_op *queued)
{
    struct describe_op *op = container_of(queued, struct describe_op, queued);
    struct broker *b = op->req->broker;
    if (op->failed)
        refuse(op, KERR_UNKNOWN_SERVER_ERROR, NULL);
    request_respond(op->req, &op->out);
    broker_async_end(b);
}

void handle_describe_client_quotas(struct request *req)
{
    struct describe_op *op = arena_new(req->arena, struct describe_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    const char *message = NULL;
    op->req = req;
    list_init(&op->found);
    describe_client_quotas_response_init(&op->out);
    op->out.error_message = STR_NULL;
    enum kerr error = quota_filter_of(req->body, req->arena, &op->filter, &message);
    if (error != KERR_NONE) {
        refuse(op, error, message);
        request_respond(req, &op->out);
        return;
    }
    request_configure(req, &op->queued, work_describe, done_describe);
}
