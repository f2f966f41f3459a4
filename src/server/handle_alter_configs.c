/* handle_alter_configs.c - AlterConfigs, which replaces all settings of a topic or of brokers, and
 * IncrementalAlterConfigs, which changes those it names.
 *
 * Each resource succeeds or fails by itself. The work is done in the queue of settings: what is
 * stored is read, changed, checked, written and put to use, before the answer goes out; other
 * brokers learn of it by the notice. */
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "protocol/msg/alter_configs.h"
#include "protocol/msg/incremental_alter_configs.h"
#include "server/broker.h"
#include "server/config_change.h"
#include "server/entity_configs.h"
#include "server/handlers.h"
#include "server/index_set.h"
#include "server/request_later.h"
#include "server/rights.h"

struct alteration {
    int8_t type;
    struct str name;
    struct config_op *ops;
    int ops_n;
    enum kerr error;
    const char *message;
};

struct alter_op {
    struct request *req;
    struct control_op queued;
    struct alteration *all;
    int n;
    bool whole, validate_only;
    void (*answer)(struct alter_op *op);
};

static void refuse(struct alteration *a, enum kerr error, const char *message)
{
    a->error = error;
    a->message = message;
}

/* ---- in the queue ---- */

/* Checks the change against what is stored, and stores it. */
static void change(struct alter_op *op, struct alteration *a, struct config_change *c,
                   const char *path, enum config_layer layer)
{
    struct broker *b = op->req->broker;
    struct config_list old, new;
    if (entity_configs_read(b, str_of(path), op->req->arena, &old) != 0) {
        refuse(a, KERR_UNKNOWN_SERVER_ERROR, NULL);
        return;
    }
    enum kerr error = config_change_make(c, old, &new);
    if (error == KERR_NONE && a->type == RESOURCE_TOPIC)
        error = config_change_check_topic(c, a->name, new);
    else if (error == KERR_NONE)
        error = config_change_check_broker(c, broker_dynamic_config(b), layer, new);
    if (error == KERR_NONE && !op->validate_only)
        error = entity_configs_write(b, str_of(path), new);
    refuse(a, error, c->message);
    if (error == KERR_NONE && !op->validate_only)
        say_info("ConfigAdmin", "settings of %s changed", path);
}

static void change_one(struct alter_op *op, struct alteration *a)
{
    struct arena *mem = op->req->arena;
    struct config_change c = {.resource = (enum config_resource)a->type,
                              .ops = a->ops,
                              .ops_n = a->ops_n,
                              .whole = op->whole,
                              .arena = mem};
    enum kerr error = config_change_look(&c);
    const char *path = ENTITY_ALL_BROKERS;
    if (a->type == RESOURCE_TOPIC)
        path = arena_printf(mem, "topics/%.*s", STR_ARG(a->name));
    else if (a->name.len > 0)
        path = entity_own_path(op->req->broker, mem);
    if (error != KERR_NONE || !path)
        refuse(a, path ? error : KERR_UNKNOWN_SERVER_ERROR, c.message);
    else
        change(op, a, &c, path, a->name.len > 0 ? LAYER_BROKER : LAYER_CLUSTER);
}

static void work(struct control_op *queued)
{
    struct alter_op *op = container_of(queued, struct alter_op, queued);
    for (int i = 0; i < op->n; i++)
        if (op->all[i].error == KERR_NONE)
            change_one(op, &op->all[i]);
}

static void done(struct control_op *queued)
{
    struct alter_op *op = container_of(queued, struct alter_op, queued);
    struct broker *b = op->req->broker;
    op->answer(op);
    broker_async_end(b);
}

/* ---- before ---- */

static bool same_resource(const void *arg, int32_t a, int32_t b)
{
    const struct alteration *all = arg;
    return all[a].type == all[b].type && str_eq(all[a].name, all[b].name);
}

static bool find_twins(struct alter_op *op)
{
    struct index_set set;
    if (!index_set_init(&set, op->req->arena, op->n))
        return false;
    for (int i = 0; i < op->n; i++) {
        uint64_t hash = hash_int(hash_str(op->all[i].name) + (uint64_t)op->all[i].type);
        int32_t twin = index_set_put(&set, hash, i, same_resource, op->all);
        if (twin < 0)
            continue;
        static const char twice[] = "Each resource must appear at most once.";
        refuse(&op->all[i], KERR_INVALID_REQUEST, twice);
        refuse(&op->all[twin], KERR_INVALID_REQUEST, twice);
    }
    return true;
}

static void look_at_topic(struct request *req, struct alteration *a)
{
    if (a->name.len <= 0) {
        refuse(a, KERR_INVALID_REQUEST, "Default topic resources are not allowed.");
        return;
    }
    if (!rights_topic(req, ACL_ALTER_CONFIGS, a->name)) {
        refuse(a, KERR_TOPIC_AUTHORIZATION_FAILED, NULL);
        return;
    }
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    if (!metadata_topic(s, a->name))
        refuse(a, KERR_UNKNOWN_TOPIC_OR_PARTITION,
               arena_printf(req->arena, "The topic '%.*s' does not exist.", STR_ARG(a->name)));
    metadata_release(s);
}

/* This broker, or none for all of them. */
static void look_at_broker_name(struct request *req, struct alteration *a)
{
    char own[16], *text = (char *)arena_str(req->arena, a->name).p, *end = text;
    if (a->name.len <= 0 || !text)
        return;
    snprintf(own, sizeof(own), "%d", broker_id(req->broker));
    if (strcmp(text, own) == 0)
        return;
    (void)strtol(text, &end, 10);
    if (*end)
        refuse(a, KERR_INVALID_REQUEST,
               arena_printf(req->arena, "Node id must be an integer, but it is: %s", text));
    else
        refuse(a, KERR_INVALID_REQUEST,
               arena_printf(req->arena, "Unexpected broker id, expected %s, but received %s", own,
                            text));
}

static void look_at_broker(struct request *req, struct alteration *a)
{
    look_at_broker_name(req, a);
    if (a->error == KERR_NONE && !authorize_cluster(req, ACL_ALTER_CONFIGS))
        refuse(a, KERR_CLUSTER_AUTHORIZATION_FAILED, NULL);
}

static void look_at(struct alter_op *op, struct alteration *a)
{
    struct request *req = op->req;
    if (a->type == RESOURCE_TOPIC)
        look_at_topic(req, a);
    else if (a->type == RESOURCE_BROKER)
        look_at_broker(req, a);
    else if (a->type == RESOURCE_BROKER_LOGGER && !op->whole &&
             !authorize_cluster(req, ACL_ALTER_CONFIGS))
        refuse(a, KERR_CLUSTER_AUTHORIZATION_FAILED, NULL);
    else if (a->type == RESOURCE_BROKER_LOGGER && !op->whole && a->ops_n > 0)
        refuse(a, KERR_INVALID_REQUEST,
               arena_printf(req->arena, "Logger %.*s does not exist!", STR_ARG(a->ops[0].name)));
    else
        refuse(a, KERR_INVALID_REQUEST,
               arena_printf(req->arena, "Unknown resource type %d", a->type));
}

static void start(struct alter_op *op)
{
    if (!find_twins(op)) {
        request_no_memory(op->req);
        return;
    }
    for (int i = 0; i < op->n; i++)
        if (op->all[i].error == KERR_NONE)
            look_at(op, &op->all[i]);
    request_configure(op->req, &op->queued, work, done);
}

/* n resources, or NULL. */
static struct alter_op *op_new(struct request *req, int32_t n)
{
    struct alter_op *op = arena_new(req->arena, struct alter_op);
    if (!op || !(op->all = arena_array(req->arena, struct alteration, (size_t)n)))
        return NULL;
    op->req = req;
    op->n = n;
    return op;
}

static bool alteration_init(struct alter_op *op, int i, int8_t type, struct str name, int32_t ops_n)
{
    struct config_op *ops = arena_array(op->req->arena, struct config_op, (size_t)ops_n);
    op->all[i] = (struct alteration){.type = type, .name = name, .ops = ops, .ops_n = ops_n};
    return ops != NULL;
}

/* The two APIs have the same form but for their types. */
#define MESSAGE_OF(a)        \
    ((a)->error == KERR_NONE \
         ? STR_NULL          \
         : str_of((a)->message ? (a)->message : kerr_text((int16_t)(a)->error)))

/* ---- AlterConfigs ---- */

static void answer_whole(struct alter_op *op)
{
    struct alter_configs_response out;
    alter_configs_response_init(&out);
    out.responses.v = alter_configs_response_response_new(op->req->arena, op->n);
    if (!out.responses.v) {
        request_no_memory(op->req);
        return;
    }
    out.responses.n = op->n;
    for (int i = 0; i < op->n; i++) {
        out.responses.v[i].error_code = (int16_t)op->all[i].error;
        out.responses.v[i].error_message = MESSAGE_OF(&op->all[i]);
        out.responses.v[i].resource_type = op->all[i].type;
        out.responses.v[i].resource_name = op->all[i].name;
    }
    request_respond(op->req, &out);
}

void handle_alter_configs(struct request *req)
{
    const struct alter_configs_request *in = req->body;
    struct alter_op *op = op_new(req, in->resources.n);
    bool complete = op != NULL;
    for (int32_t i = 0; complete && i < in->resources.n; i++) {
        const struct alter_configs_request_resource *from = &in->resources.v[i];
        complete =
            alteration_init(op, i, from->resource_type, from->resource_name, from->configs.n);
        for (int32_t k = 0; complete && k < from->configs.n; k++)
            op->all[i].ops[k] =
                (struct config_op){CONFIG_SET, from->configs.v[k].name, from->configs.v[k].value};
    }
    if (!complete) {
        request_no_memory(req);
        return;
    }
    op->whole = true;
    op->validate_only = in->validate_only;
    op->answer = answer_whole;
    start(op);
}

/* ---- IncrementalAlterConfigs ---- */

static void answer_incremental(struct alter_op *op)
{
    struct incremental_alter_configs_response out;
    incremental_alter_configs_response_init(&out);
    out.responses.v = incremental_alter_configs_response_response_new(op->req->arena, op->n);
    if (!out.responses.v) {
        request_no_memory(op->req);
        return;
    }
    out.responses.n = op->n;
    for (int i = 0; i < op->n; i++) {
        out.responses.v[i].error_code = (int16_t)op->all[i].error;
        out.responses.v[i].error_message = MESSAGE_OF(&op->all[i]);
        out.responses.v[i].resource_type = op->all[i].type;
        out.responses.v[i].resource_name = op->all[i].name;
    }
    request_respond(op->req, &out);
}

void handle_incremental_alter_configs(struct request *req)
{
    const struct incremental_alter_configs_request *in = req->body;
    struct alter_op *op = op_new(req, in->resources.n);
    bool complete = op != NULL;
    for (int32_t i = 0; complete && i < in->resources.n; i++) {
        const struct incremental_alter_configs_request_resource *from = &in->resources.v[i];
        complete =
            alteration_init(op, i, from->resource_type, from->resource_name, from->configs.n);
        for (int32_t k = 0; complete && k < from->configs.n; k++)
            op->all[i].ops[k] =
                (struct config_op){from->configs.v[k].config_operation, from->configs.v[k].name,
                                   from->configs.v[k].value};
    }
    if (!complete) {
        request_no_memory(req);
        return;
    }
    op->validate_only = in->validate_only;
    op->answer = answer_incremental;
    start(op);
}
