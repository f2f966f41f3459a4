/* admin_configs.c - the admin client's settings: of topics and brokers, described and changed. */
#include <stdlib.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_configs.h"
#include "protocol/msg/describe_configs.h"
#include "protocol/msg/incremental_alter_configs.h"

/* A broker answers for itself only. */
static int32_t node_of(int resource_type, const char *resource)
{
    bool own =
        resource_type == KAFKA_RESOURCE_BROKER || resource_type == KAFKA_RESOURCE_BROKER_LOGGER;
    return own && *resource ? atoi(resource) : NODE_ANY;
}

static kafka_err_t outcome(kafka_err_t err)
{
    return err == ADMIN_UNKNOWN_TOPIC ? KERR_UNKNOWN_TOPIC_OR_PARTITION : err;
}

/* A topic that is not there will not come by waiting. */
static kafka_err_t final_error(kafka_err_t err)
{
    return err == KERR_UNKNOWN_TOPIC_OR_PARTITION ? ADMIN_UNKNOWN_TOPIC : err;
}

/* ---- description ---- */

struct configs {
    kafka_config_entries_t entries;
    struct arena mem;
};

static bool keep_synonyms(struct arena *mem, const struct describe_configs_response_config *from,
                          kafka_config_entry_t *to)
{
    int32_t n = from->synonyms.n > 0 ? from->synonyms.n : 0;
    kafka_config_synonym_t *s = arena_array(mem, kafka_config_synonym_t, (size_t)n);
    for (int32_t i = 0; s && i < n; i++)
        s[i] = (kafka_config_synonym_t){admin_keep(mem, from->synonyms.v[i].name),
                                        admin_keep(mem, from->synonyms.v[i].value),
                                        from->synonyms.v[i].source};
    to->synonyms = s;
    to->synonyms_n = (size_t)n;
    return s != NULL;
}

static kafka_err_t on_configs(struct op *op, int version, const void *response)
{
    const struct describe_configs_response *m = response;
    struct configs *c = op->arg;
    if (m->results.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    const struct describe_configs_response_result *r = &m->results.v[0];
    if (r->error_code)
        return final_error(r->error_code);
    arena_reset(&c->mem);
    kafka_config_entry_t *e = arena_array(&c->mem, kafka_config_entry_t, (size_t)r->configs.n);
    bool complete = e != NULL;
    for (int32_t i = 0; complete && i < r->configs.n; i++) {
        const struct describe_configs_response_config *from = &r->configs.v[i];
        e[i] = (kafka_config_entry_t){.name = admin_keep(&c->mem, from->name),
                                      .value = admin_keep(&c->mem, from->value),
                                      .source = from->config_source,
                                      .read_only = from->read_only,
                                      .sensitive = from->is_sensitive};
        if (version == 0)
            e[i].source = from->is_default ? KAFKA_SOURCE_DEFAULT : KAFKA_SOURCE_TOPIC;
        complete = keep_synonyms(&c->mem, from, &e[i]);
    }
    c->entries.entries = e;
    c->entries.entries_n = (size_t)r->configs.n;
    return complete ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe_configs(kafka_admin_t *a, int resource_type, const char *resource,
                                         int64_t timeout_ms, kafka_config_entries_t **out)
{
    struct configs *c = calloc(1, sizeof *c);
    struct arena mem;
    struct describe_configs_request req;
    *out = NULL;
    if (!c)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&c->mem, 0);
    arena_init(&mem, 0);
    describe_configs_request_init(&req);
    req.include_synonyms = true;
    req.resources.v = describe_configs_request_resource_new(&mem, 1);
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    if (req.resources.v) {
        req.resources.n = 1;
        req.resources.v->resource_type = (int8_t)resource_type;
        req.resources.v->resource_name = str_of(resource);
        req.resources.v->configuration_keys.n = -1;
        struct op op = {.node = node_of(resource_type, resource),
                        .api_key = API_DESCRIBE_CONFIGS,
                        .min_version = -1,
                        .max_version = -1,
                        .request = &req,
                        .handle = on_configs,
                        .arg = c};
        err = op_run(a->cluster, &op, timeout_ms);
    }
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &c->entries;
    else
        kafka_config_entries_free(&c->entries);
    return outcome(err);
}

void kafka_config_entries_free(kafka_config_entries_t *e)
{
    if (!e)
        return;
    struct configs *c = container_of(e, struct configs, entries);
    arena_free(&c->mem);
    free(c);
}

/* ---- changes ---- */

/* Of the one resource of the answer. */
static kafka_err_t changed(struct op *op, int32_t n, int16_t code, struct str message)
{
    return n == 1 ? final_error(admin_say(op->arg, code, message)) : KAFKA_ERR_BAD_RESPONSE;
}

/* request NULL: there was no memory for it. */
static kafka_err_t run_change(kafka_admin_t *a, int32_t node, int16_t api_key, const void *request,
                              kafka_err_t (*handle)(struct op *, int, const void *),
                              int64_t timeout_ms, char *message, size_t message_n)
{
    struct admin_said said = {.message = message, .n = message_n};
    struct op op = {.node = node,
                    .api_key = api_key,
                    .min_version = -1,
                    .max_version = -1,
                    .request = request,
                    .handle = handle,
                    .arg = &said};
    return request ? outcome(op_run(a->cluster, &op, timeout_ms)) : KAFKA_ERR_NO_MEMORY;
}

static kafka_err_t on_altered(struct op *op, int version, const void *response)
{
    const struct incremental_alter_configs_response *m = response;
    const struct incremental_alter_configs_response_response *r = m->responses.v;
    return changed(op, m->responses.n, r ? r->error_code : 0, r ? r->error_message : STR_NULL);
}

kafka_err_t kafka_admin_alter_configs(kafka_admin_t *a, int resource_type, const char *resource,
                                      const kafka_config_op_t *ops, size_t ops_n,
                                      int64_t timeout_ms, char *message, size_t message_n)
{
    struct arena mem;
    struct incremental_alter_configs_request req;
    arena_init(&mem, 0);
    incremental_alter_configs_request_init(&req);
    struct incremental_alter_configs_request_resource *r =
        incremental_alter_configs_request_resource_new(&mem, 1);
    struct incremental_alter_configs_request_config *configs =
        incremental_alter_configs_request_config_new(&mem, (int32_t)ops_n);
    if (r && configs) {
        req.resources.v = r;
        req.resources.n = 1;
        r->resource_type = (int8_t)resource_type;
        r->resource_name = str_of(resource);
        r->configs.v = configs;
        r->configs.n = (int32_t)ops_n;
    }
    for (size_t i = 0; r && configs && i < ops_n; i++) {
        configs[i].name = str_of(ops[i].name);
        configs[i].config_operation = (int8_t)ops[i].op;
        configs[i].value = str_of(ops[i].value);
    }
    kafka_err_t err =
        run_change(a, node_of(resource_type, resource), API_INCREMENTAL_ALTER_CONFIGS,
                   r && configs ? &req : NULL, on_altered, timeout_ms, message, message_n);
    arena_free(&mem);
    return err;
}

static kafka_err_t on_replaced(struct op *op, int version, const void *response)
{
    const struct alter_configs_response *m = response;
    const struct alter_configs_response_response *r = m->responses.v;
    return changed(op, m->responses.n, r ? r->error_code : 0, r ? r->error_message : STR_NULL);
}

kafka_err_t kafka_admin_replace_configs(kafka_admin_t *a, int resource_type, const char *resource,
                                        const kafka_config_t *configs, size_t configs_n,
                                        int64_t timeout_ms, char *message, size_t message_n)
{
    struct arena mem;
    struct alter_configs_request req;
    arena_init(&mem, 0);
    alter_configs_request_init(&req);
    struct alter_configs_request_resource *r = alter_configs_request_resource_new(&mem, 1);
    struct alter_configs_request_config *to =
        alter_configs_request_config_new(&mem, (int32_t)configs_n);
    if (r && to) {
        req.resources.v = r;
        req.resources.n = 1;
        r->resource_type = (int8_t)resource_type;
        r->resource_name = str_of(resource);
        r->configs.v = to;
        r->configs.n = (int32_t)configs_n;
    }
    for (size_t i = 0; r && to && i < configs_n; i++) {
        to[i].name = str_of(configs[i].name);
        to[i].value = str_of(configs[i].value);
    }
    kafka_err_t err =
        run_change(a, node_of(resource_type, resource), API_ALTER_CONFIGS, r && to ? &req : NULL,
                   on_replaced, timeout_ms, message, message_n);
    arena_free(&mem);
    return err;
}
