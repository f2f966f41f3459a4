/* admin.c - the admin client: each call is one operation (cluster.h), its answer copied into plain
 * results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kafka/admin.h>

#include "base/arena.h"
#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/create_partitions.h"
#include "protocol/msg/create_topics.h"
#include "protocol/msg/delete_topics.h"

kafka_admin_t *kafka_admin_new(const kafka_conf_t *conf, char *err, size_t err_n)
{
    kafka_admin_t *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->conf = client_conf_copy(conf);
    char made_id[64];
    snprintf(made_id, sizeof made_id, "adminclient-%d", (int)getpid());
    if (a->conf && client_conf_check(a->conf, SCOPE_ADMIN, err, err_n) == KAFKA_OK) {
        const char *id = client_conf_string(a->conf, SCOPE_ADMIN, "client.id");
        a->cluster = cluster_start(a->conf, SCOPE_ADMIN, id && *id ? id : made_id, err, err_n);
    }
    if (a->cluster)
        return a;
    kafka_conf_free(a->conf);
    free(a);
    return NULL;
}

void kafka_admin_close(kafka_admin_t *a)
{
    if (!a)
        return;
    cluster_stop(a->cluster);
    kafka_conf_free(a->conf);
    free(a);
}

kafka_err_t admin_say(struct admin_said *s, int16_t code, struct str message)
{
    if (s->message && s->n > 0)
        snprintf(s->message, s->n, "%.*s",
                 message.len > 0 ? (int)message.len : (int)strlen(kerr_text(code)),
                 message.len > 0 ? message.p : kerr_text(code));
    return code;
}

int32_t admin_request_timeout(int64_t timeout_ms)
{
    return timeout_ms < 0 || timeout_ms > 60000 ? 60000 : (int32_t)timeout_ms;
}

static kafka_err_t on_created(struct op *op, int version, const void *response)
{
    const struct create_topics_response *m = response;
    if (m->topics.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    return admin_say(op->arg, m->topics.v[0].error_code, m->topics.v[0].error_message);
}

static bool fill_topic(struct create_topics_request_topic *t, struct arena *mem,
                       const kafka_replica_assignment_t *assignment, size_t assignment_n,
                       const kafka_config_t *configs, size_t configs_n)
{
    t->assignments.v = create_topics_request_assignment_new(mem, (int32_t)assignment_n);
    t->configs.v = create_topics_request_config_new(mem, (int32_t)configs_n);
    if (!t->assignments.v || !t->configs.v)
        return false;
    for (size_t i = 0; i < assignment_n; i++) {
        t->assignments.v[i].partition_index = assignment[i].partition;
        t->assignments.v[i].broker_ids.v = (int32_t *)assignment[i].brokers;
        t->assignments.v[i].broker_ids.n = (int32_t)assignment[i].brokers_n;
    }
    for (size_t i = 0; i < configs_n; i++) {
        t->configs.v[i].name = str_of(configs[i].name);
        t->configs.v[i].value = str_of(configs[i].value);
    }
    t->assignments.n = (int32_t)assignment_n;
    t->configs.n = (int32_t)configs_n;
    return true;
}

kafka_err_t kafka_admin_create_topic(kafka_admin_t *a, const char *topic, int32_t partitions,
                                     int16_t replication_factor,
                                     const kafka_replica_assignment_t *assignment,
                                     size_t assignment_n, const kafka_config_t *configs,
                                     size_t configs_n, int64_t timeout_ms, char *message,
                                     size_t message_n)
{
    struct arena mem;
    struct create_topics_request req;
    struct admin_said said = {.message = message, .n = message_n};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    create_topics_request_init(&req);
    req.timeout_ms = admin_request_timeout(timeout_ms);
    req.topics.v = create_topics_request_topic_new(&mem, 1);
    req.topics.n = 1;
    if (req.topics.v &&
        fill_topic(req.topics.v, &mem, assignment, assignment_n, configs, configs_n)) {
        req.topics.v->name = str_of(topic);
        req.topics.v->num_partitions = assignment_n ? -1 : partitions;
        req.topics.v->replication_factor = assignment_n ? -1 : replication_factor;
        bool defaults =
            !assignment_n && (partitions < 0 || replication_factor < 0); /* known from v4 on */
        struct op op = {.node = NODE_CONTROLLER,
                        .api_key = API_CREATE_TOPICS,
                        .min_version = defaults ? 4 : 1,
                        .max_version = -1,
                        .request = &req,
                        .handle = on_created,
                        .arg = &said};
        err = op_run(a->cluster, &op, timeout_ms);
    }
    arena_free(&mem);
    return err;
}

static kafka_err_t on_deleted(struct op *op, int version, const void *response)
{
    const struct delete_topics_response *m = response;
    if (m->responses.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    kafka_err_t err =
        admin_say(op->arg, m->responses.v[0].error_code, m->responses.v[0].error_message);
    /* A topic that is not there will not come by waiting. */
    return err == KERR_UNKNOWN_TOPIC_OR_PARTITION ? ADMIN_UNKNOWN_TOPIC : err;
}

kafka_err_t kafka_admin_delete_topic(kafka_admin_t *a, const char *topic, int64_t timeout_ms,
                                     char *message, size_t message_n)
{
    struct delete_topics_request req;
    struct admin_said said = {.message = message, .n = message_n};
    struct str name = str_of(topic);
    delete_topics_request_init(&req);
    req.timeout_ms = admin_request_timeout(timeout_ms);
    req.topic_names.v = &name; /* versions up to 5; later ones name topics by id, too */
    req.topic_names.n = 1;
    struct op op = {.node = NODE_CONTROLLER,
                    .api_key = API_DELETE_TOPICS,
                    .min_version = -1,
                    .max_version = 5,
                    .request = &req,
                    .handle = on_deleted,
                    .arg = &said};
    kafka_err_t err = op_run(a->cluster, &op, timeout_ms);
    return err == ADMIN_UNKNOWN_TOPIC ? KERR_UNKNOWN_TOPIC_OR_PARTITION : err;
}

static kafka_err_t on_grown(struct op *op, int version, const void *response)
{
    const struct create_partitions_response *m = response;
    if (m->results.n != 1)
        return KAFKA_ERR_BAD_RESPONSE;
    kafka_err_t err = admin_say(op->arg, m->results.v[0].error_code, m->results.v[0].error_message);
    return err == KERR_UNKNOWN_TOPIC_OR_PARTITION ? ADMIN_UNKNOWN_TOPIC : err;
}

kafka_err_t kafka_admin_create_partitions(kafka_admin_t *a, const char *topic, int32_t total,
                                          const kafka_replica_assignment_t *assignment,
                                          size_t assignment_n, int64_t timeout_ms, char *message,
                                          size_t message_n)
{
    struct arena mem;
    struct create_partitions_request req;
    struct admin_said said = {.message = message, .n = message_n};
    arena_init(&mem, 0);
    create_partitions_request_init(&req);
    req.timeout_ms = admin_request_timeout(timeout_ms);
    req.topics.v = create_partitions_request_topic_new(&mem, 1);
    kafka_err_t err = req.topics.v ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
    if (err == KAFKA_OK) {
        struct create_partitions_request_topic *t = req.topics.v;
        req.topics.n = 1;
        t->name = str_of(topic);
        t->count = total;
        t->assignments.n = -1;
        if (assignment_n && (t->assignments.v = create_partitions_request_assignment_new(
                                 &mem, (int32_t)assignment_n))) {
            t->assignments.n = (int32_t)assignment_n;
            for (size_t i = 0; i < assignment_n; i++) {
                t->assignments.v[i].broker_ids.v = (int32_t *)assignment[i].brokers;
                t->assignments.v[i].broker_ids.n = (int32_t)assignment[i].brokers_n;
            }
        }
        struct op op = {.node = NODE_CONTROLLER,
                        .api_key = API_CREATE_PARTITIONS,
                        .min_version = -1,
                        .max_version = -1,
                        .request = &req,
                        .handle = on_grown,
                        .arg = &said};
        err = op_run(a->cluster, &op, timeout_ms);
    }
    arena_free(&mem);
    return err == ADMIN_UNKNOWN_TOPIC ? KERR_UNKNOWN_TOPIC_OR_PARTITION : err;
}
