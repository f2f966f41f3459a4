/* admin_quotas.c - the admin client's quotas of users, client ids and addresses. */
#include <stdlib.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_client_quotas.h"
#include "protocol/msg/describe_client_quotas.h"

static kafka_err_t on_altered(struct op *op, int version, const void *response)
{
    const struct alter_client_quotas_response *m = response;
    if (m->entries.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    return admin_say(op->arg, m->entries.v[0].error_code, m->entries.v[0].error_message);
}

static bool fill(struct alter_client_quotas_request_entry *e, struct arena *mem,
                 const kafka_quota_entity_t *entity, size_t entity_n, const kafka_quota_op_t *ops,
                 size_t ops_n)
{
    e->entity.v = alter_client_quotas_request_entity_new(mem, (int32_t)entity_n);
    e->entity.n = (int32_t)entity_n;
    e->ops.v = alter_client_quotas_request_op_new(mem, (int32_t)ops_n);
    e->ops.n = (int32_t)ops_n;
    if (!e->entity.v || !e->ops.v)
        return false;
    for (size_t i = 0; i < entity_n; i++) {
        e->entity.v[i].entity_type = str_of(entity[i].type);
        e->entity.v[i].entity_name = str_of(entity[i].name);
    }
    for (size_t i = 0; i < ops_n; i++) {
        e->ops.v[i].key = str_of(ops[i].key);
        e->ops.v[i].value = ops[i].value;
        e->ops.v[i].remove = ops[i].remove;
    }
    return true;
}

kafka_err_t kafka_admin_alter_quotas(kafka_admin_t *a, const kafka_quota_entity_t *entity,
                                     size_t entity_n, const kafka_quota_op_t *ops, size_t ops_n,
                                     int64_t timeout_ms, char *message, size_t message_n)
{
    struct arena mem;
    struct alter_client_quotas_request req;
    struct admin_said said = {.message = message, .n = message_n};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    alter_client_quotas_request_init(&req);
    req.entries.v = alter_client_quotas_request_entry_new(&mem, 1);
    req.entries.n = 1;
    if (req.entries.v && fill(req.entries.v, &mem, entity, entity_n, ops, ops_n)) {
        struct op op = {.node = NODE_ANY,
                        .api_key = API_ALTER_CLIENT_QUOTAS,
                        .min_version = -1,
                        .max_version = -1,
                        .request = &req,
                        .handle = on_altered,
                        .arg = &said};
        err = op_run(a->cluster, &op, timeout_ms);
    }
    arena_free(&mem);
    return err;
}

/* ---- description ---- */

struct quotas {
    kafka_quotas_t quotas;
    struct arena mem;
};

static bool keep_entry(struct arena *mem, const struct describe_client_quotas_response_entry *from,
                       kafka_quota_entry_t *to)
{
    kafka_quota_entity_t *e = arena_array(mem, kafka_quota_entity_t, (size_t)from->entity.n);
    kafka_quota_value_t *v = arena_array(mem, kafka_quota_value_t, (size_t)from->values.n);
    if (!e || !v)
        return false;
    for (int32_t i = 0; i < from->entity.n; i++)
        e[i] = (kafka_quota_entity_t){admin_keep(mem, from->entity.v[i].entity_type),
                                      admin_keep(mem, from->entity.v[i].entity_name)};
    for (int32_t i = 0; i < from->values.n; i++)
        v[i] =
            (kafka_quota_value_t){admin_keep(mem, from->values.v[i].key), from->values.v[i].value};
    *to = (kafka_quota_entry_t){e, (size_t)from->entity.n, v, (size_t)from->values.n};
    return true;
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct describe_client_quotas_response *m = response;
    struct admin_said *said = op->arg;
    struct quotas *q = said->result;
    if (m->error_code)
        return admin_say(said, m->error_code, m->error_message);
    int32_t n = m->entries.n > 0 ? m->entries.n : 0;
    arena_reset(&q->mem);
    kafka_quota_entry_t *e = arena_array(&q->mem, kafka_quota_entry_t, (size_t)n);
    bool complete = e != NULL;
    for (int32_t i = 0; complete && i < n; i++)
        complete = keep_entry(&q->mem, &m->entries.v[i], &e[i]);
    q->quotas = (kafka_quotas_t){e, (size_t)n};
    return complete ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe_quotas(kafka_admin_t *a, const kafka_quota_filter_t *filter,
                                        size_t filter_n, int strict, int64_t timeout_ms,
                                        char *message, size_t message_n, kafka_quotas_t **out)
{
    struct quotas *q = calloc(1, sizeof *q);
    struct arena mem;
    struct describe_client_quotas_request req;
    struct admin_said said = {.message = message, .n = message_n, .result = q};
    *out = NULL;
    if (!q)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&q->mem, 0);
    arena_init(&mem, 0);
    describe_client_quotas_request_init(&req);
    req.strict = strict;
    req.components.v = describe_client_quotas_request_component_new(&mem, (int32_t)filter_n);
    req.components.n = (int32_t)filter_n;
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    for (size_t i = 0; req.components.v && i < filter_n; i++) {
        req.components.v[i].entity_type = str_of(filter[i].type);
        req.components.v[i].match_type = (int8_t)filter[i].match;
        req.components.v[i].match = str_of(filter[i].name);
    }
    struct op op = {.node = NODE_ANY,
                    .api_key = API_DESCRIBE_CLIENT_QUOTAS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = &said};
    if (req.components.v)
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &q->quotas;
    else
        kafka_quotas_free(&q->quotas);
    return err;
}

void kafka_quotas_free(kafka_quotas_t *quotas)
{
    if (!quotas)
        return;
    struct quotas *q = container_of(quotas, struct quotas, quotas);
    arena_free(&q->mem);
    free(q);
}
