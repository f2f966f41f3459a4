/* handle_describe_configs.c - DescribeConfigs of topics and of this broker: each setting with its
 * value, its source, what it stands before, its type and its text. */
#include <stdio.h>

#include "protocol/msg/describe_configs.h"
#include "server/broker.h"
#include "server/config_change.h"
#include "server/dynamic_config.h"
#include "server/handlers.h"
#include "server/name_set.h"
#include "server/rights.h"
#include "server/topic_settings.h"

struct describe_op {
    struct request *req;
    const struct describe_configs_request *in;
    const struct describe_configs_request_resource *asked;
    struct describe_configs_response_result *out;
    const struct config *config; /* in force */
    struct name_set keys;        /* of `asked`; only when some are named */
    bool exhausted;
};

static void refuse(struct describe_op *op, enum kerr error, const char *message)
{
    op->out->error_code = (int16_t)error;
    op->out->error_message = message ? str_of(message) : str_of(kerr_text((int16_t)error));
    op->exhausted |= !op->out->error_message.p;
}

/* No keys named, or none at all: all of them. */
static bool wanted(const struct describe_op *op, const char *name)
{
    return op->asked->configuration_keys.n <= 0 || name_set_has(&op->keys, str_of(name));
}

static int gather_keys(struct describe_op *op)
{
    int32_t n = op->asked->configuration_keys.n;
    if (n <= 0)
        return 0;
    if (name_set_init(&op->keys, op->req->arena, n) != 0)
        return -1;
    for (int32_t i = 0; i < n; i++)
        name_set_add(&op->keys, op->asked->configuration_keys.v[i]);
    return 0;
}

static void put_synonyms(struct describe_op *op, const struct setting *s,
                         struct describe_configs_response_config *out)
{
    out->synonyms.v = describe_configs_response_synonym_new(op->req->arena, s->synonyms_n);
    if (!out->synonyms.v) {
        op->exhausted = true;
        return;
    }
    out->synonyms.n = s->synonyms_n;
    for (int i = 0; i < s->synonyms_n; i++) {
        out->synonyms.v[i].name = str_of(s->synonyms[i].name);
        out->synonyms.v[i].value = str_of(s->synonyms[i].value);
        out->synonyms.v[i].source = (int8_t)s->synonyms[i].source;
    }
}

/* A value that lives as long as the answer. */
static struct str keep(struct describe_op *op, const char *value)
{
    struct str copy = arena_str(op->req->arena, str_of(value));
    op->exhausted |= value && !copy.p;
    return copy;
}

static void put_setting(struct describe_op *op, const struct setting *s, enum config_type type,
                        const char *doc, struct describe_configs_response_config *out)
{
    out->name = str_of(s->name);
    out->value = keep(op, s->value);
    out->config_source = (int8_t)s->source;
    out->is_sensitive = s->sensitive;
    out->config_type = config_type_code(type);
    out->documentation = op->in->include_documentation ? str_of(doc) : STR_NULL;
    if (op->in->include_synonyms)
        put_synonyms(op, s, out);
}

/* ---- topics ---- */

static void put_topic_settings(struct describe_op *op, const struct props *overrides)
{
    int n;
    const struct topic_config_row *rows = topic_config_rows(&n);
    for (int i = 0; i < n && !op->exhausted; i++) {
        struct setting s;
        if (!wanted(op, rows[i].name))
            continue;
        struct describe_configs_response_config *out = &op->out->configs.v[op->out->configs.n++];
        if (topic_setting(op->config, &rows[i], overrides, op->req->arena, &s) != 0)
            op->exhausted = true;
        for (int k = 0; k < s.synonyms_n; k++) /* the overrides go before the answer does */
            s.synonyms[k].value = keep(op, s.synonyms[k].value).p;
        put_setting(op, &s, rows[i].type, rows[i].doc, out);
        out->is_default = s.source != SOURCE_TOPIC;
    }
}

static void describe_topic(struct describe_op *op)
{
    struct str name = op->asked->resource_name;
    if (!rights_topic(op->req, ACL_DESCRIBE_CONFIGS, name)) {
        refuse(op, KERR_TOPIC_AUTHORIZATION_FAILED, NULL);
        return;
    }
    if (topic_name_problem(name)) {
        refuse(op, KERR_INVALID_TOPIC_EXCEPTION, topic_name_problem(name));
        return;
    }
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    bool known = metadata_topic(s, name) != NULL;
    metadata_release(s);
    if (!known) {
        refuse(op, KERR_UNKNOWN_TOPIC_OR_PARTITION, NULL);
        return;
    }
    int n;
    topic_config_rows(&n);
    op->out->configs.v = describe_configs_response_config_new(op->req->arena, n);
    struct props *overrides = broker_topic_overrides(op->req->broker, name);
    if (!op->out->configs.v || !overrides)
        op->exhausted = true;
    else
        put_topic_settings(op, overrides);
    props_free(overrides);
}

/* ---- brokers ---- */

static bool make_room(struct describe_op *op, size_t n)
{
    op->out->configs.v = describe_configs_response_config_new(op->req->arena, (int32_t)n);
    op->exhausted |= !op->out->configs.v;
    return !op->exhausted;
}

/* A setting that is known by its key alone. */
static void put_key(struct describe_op *op, const struct setting *s)
{
    struct describe_configs_response_config *out = &op->out->configs.v[op->out->configs.n++];
    const struct config_row *row = config_row_of(s->name, NULL);
    put_setting(op, s, row ? row->type : CONFIG_STRING, row ? row->doc : NULL, out);
    if (!row)
        out->config_type = 0; /* unknown */
}

static bool shown(const struct config *c, const struct config_row *row)
{
    if (row->flags & CONFIG_HIDDEN)
        return false;
    return !(row->flags & (CONFIG_OLD | CONFIG_OWN | CONFIG_DYNAMIC)) ||
           config_is_given(c, row->name);
}

/* Keys that are set while running and have no row: listeners', and others'. */
static void put_others(struct describe_op *op, const struct props *layer, const struct props *told)
{
    for (size_t i = 0; i < props_count(layer) && !op->exhausted; i++) {
        const char *key, *value;
        struct setting s;
        props_at(layer, i, &key, &value);
        if (config_find(str_of(key)) || (told && props_get(told, key)) || !wanted(op, key))
            continue;
        broker_other_setting(op->config, key, &s);
        put_key(op, &s);
    }
}

static void put_broker_settings(struct describe_op *op)
{
    const struct config *c = op->config;
    int n;
    const struct config_row *rows = config_rows(&n);
    if (!make_room(op, (size_t)n + props_count(c->dynamic[LAYER_BROKER]) +
                           props_count(c->dynamic[LAYER_CLUSTER])))
        return;
    for (int i = 0; i < n && !op->exhausted; i++) {
        struct setting s;
        if (!shown(c, &rows[i]) || !wanted(op, rows[i].name))
            continue;
        struct describe_configs_response_config *out = &op->out->configs.v[op->out->configs.n++];
        broker_setting(c, &rows[i], &s);
        put_setting(op, &s, rows[i].type, rows[i].doc, out);
        out->read_only = rows[i].update == UPDATE_READ_ONLY;
        out->is_default = s.source == SOURCE_DEFAULT;
    }
    put_others(op, c->dynamic[LAYER_BROKER], NULL);
    put_others(op, c->dynamic[LAYER_CLUSTER], c->dynamic[LAYER_BROKER]);
}

/* What is set for all brokers while they run. */
static void put_cluster_settings(struct describe_op *op)
{
    const struct props *layer = op->config->dynamic[LAYER_CLUSTER];
    if (!make_room(op, props_count(layer)))
        return;
    for (size_t i = 0; i < props_count(layer) && !op->exhausted; i++) {
        const char *key, *value;
        struct setting s;
        props_at(layer, i, &key, &value);
        if (!wanted(op, key))
            continue;
        cluster_setting(op->config, key, &s);
        put_key(op, &s);
    }
}

static bool names_this_broker(const struct describe_op *op)
{
    char own[16];
    snprintf(own, sizeof(own), "%d", broker_id(op->req->broker));
    return str_eqz(op->asked->resource_name, own);
}

static void refuse_broker(struct describe_op *op)
{
    refuse(op, KERR_INVALID_REQUEST,
           arena_printf(op->req->arena, "This broker is %d, asked was for %.*s",
                        broker_id(op->req->broker), STR_ARG(op->asked->resource_name)));
}

/* The empty name is all brokers. */
static void describe_broker(struct describe_op *op)
{
    if (op->asked->resource_name.len == 0)
        put_cluster_settings(op);
    else if (names_this_broker(op))
        put_broker_settings(op);
    else
        refuse_broker(op);
}

/* There are no loggers whose level could be told apart. */
static void describe_loggers(struct describe_op *op)
{
    if (!names_this_broker(op))
        refuse_broker(op);
}

static void describe_one(struct describe_op *op)
{
    op->out->resource_type = op->asked->resource_type;
    op->out->resource_name = op->asked->resource_name;
    op->out->error_message = STR_NULL;
    if (gather_keys(op) != 0) {
        op->exhausted = true;
        return;
    }
    bool of_broker = op->asked->resource_type == RESOURCE_BROKER ||
                     op->asked->resource_type == RESOURCE_BROKER_LOGGER;
    if (of_broker && !authorize_cluster(op->req, ACL_DESCRIBE_CONFIGS))
        refuse(op, KERR_CLUSTER_AUTHORIZATION_FAILED, NULL);
    else if (op->asked->resource_type == RESOURCE_TOPIC)
        describe_topic(op);
    else if (op->asked->resource_type == RESOURCE_BROKER)
        describe_broker(op);
    else if (op->asked->resource_type == RESOURCE_BROKER_LOGGER)
        describe_loggers(op);
    else
        refuse(op, KERR_INVALID_REQUEST, "Unsupported resource type");
}

void handle_describe_configs(struct request *req)
{
    struct describe_op op = {.req = req,
                             .in = req->body,
                             .config = dynamic_config_ref(broker_dynamic_config(req->broker))};
    struct describe_configs_response out;
    describe_configs_response_init(&out);
    out.results.n = op.in->resources.n;
    out.results.v = describe_configs_response_result_new(req->arena, out.results.n);
    op.exhausted = !out.results.v;
    for (int32_t i = 0; i < out.results.n && !op.exhausted; i++) {
        op.asked = &op.in->resources.v[i];
        op.out = &out.results.v[i];
        describe_one(&op);
    }
    if (op.exhausted)
        request_no_memory(req);
    else
        request_respond(req, &out);
    config_unref(op.config);
}
