/* admin_reassign.c - the admin client: partitions that move to other brokers. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "client/admin_private.h"
#include "protocol/errors.h"
#include "protocol/msg/alter_partition_reassignments.h"
#include "protocol/msg/list_partition_reassignments.h"

static int by_name(const char *topic_a, int32_t a, const char *topic_b, int32_t b)
{
    int order = strcmp(topic_a, topic_b);
    return order ? order : (a > b) - (a < b);
}

/* ---- beginning and giving up ---- */

struct outcomes { /* list first: what the user gets */
    kafka_reassignment_outcomes_t list;
    struct arena mem;
};

static int by_outcome(const void *a, const void *b)
{
    const kafka_reassignment_outcome_t *x = a, *y = b;
    return by_name(x->topic, x->partition, y->topic, y->partition);
}

static kafka_err_t on_altered(struct op *op, int version, const void *response)
{
    const struct alter_partition_reassignments_response *m = response;
    struct outcomes *o = op->arg;
    size_t n = 0;
    if (m->error_code)
        return m->error_code;
    for (int32_t t = 0; t < m->responses.n; t++)
        n += (size_t)m->responses.v[t].partitions.n;
    arena_reset(&o->mem);
    kafka_reassignment_outcome_t *v = arena_array(&o->mem, kafka_reassignment_outcome_t, n + 1);
    n = 0;
    for (int32_t t = 0; v && t < m->responses.n; t++) {
        const struct alter_partition_reassignments_response_response *topic = &m->responses.v[t];
        const char *name = admin_keep(&o->mem, topic->name);
        for (int32_t i = 0; name && i < topic->partitions.n; i++) {
            const struct alter_partition_reassignments_response_partition *p =
                &topic->partitions.v[i];
            v[n++] = (kafka_reassignment_outcome_t){name, p->partition_index, p->error_code,
                                                    admin_keep(&o->mem, p->error_message)};
        }
    }
    if (!v || o->mem.exhausted)
        return KAFKA_ERR_NO_MEMORY;
    if (n)
        qsort(v, n, sizeof *v, by_outcome);
    o->list = (kafka_reassignment_outcomes_t){v, n};
    return KAFKA_OK;
}

static int by_wanted(const void *a, const void *b)
{
    const kafka_reassignment_t *const *x = a, *const *y = b;
    return by_name((*x)->topic, (*x)->partition, (*y)->topic, (*y)->partition);
}

/* Each topic once, whatever the order was. */
static bool fill(struct alter_partition_reassignments_request *req, struct arena *mem,
                 const kafka_reassignment_t *v, size_t n)
{
    const kafka_reassignment_t **sorted = arena_array(mem, const kafka_reassignment_t *, n + 1);
    req->topics.v = alter_partition_reassignments_request_topic_new(mem, (int32_t)n);
    struct alter_partition_reassignments_request_partition *parts =
        alter_partition_reassignments_request_partition_new(mem, (int32_t)n);
    if (!sorted || !req->topics.v || !parts)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &v[i];
    if (n)
        qsort(sorted, n, sizeof *sorted, by_wanted);
    req->topics.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(sorted[i]->topic, sorted[i - 1]->topic) != 0) {
            req->topics.v[req->topics.n].name = str_of(sorted[i]->topic);
            req->topics.v[req->topics.n].partitions.v = &parts[i];
            req->topics.v[req->topics.n++].partitions.n = 0;
        }
        req->topics.v[req->topics.n - 1].partitions.n++;
        parts[i].partition_index = sorted[i]->partition;
        parts[i].replicas.v = (int32_t *)sorted[i]->replicas;
        parts[i].replicas.n = sorted[i]->replicas ? (int32_t)sorted[i]->replicas_n : -1;
    }
    return true;
}

kafka_err_t kafka_admin_alter_reassignments(kafka_admin_t *a, const kafka_reassignment_t *v,
                                            size_t n, int64_t timeout_ms,
                                            kafka_reassignment_outcomes_t **out)
{
    struct arena mem;
    struct alter_partition_reassignments_request req;
    struct outcomes *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    arena_init(&o->mem, 0);
    alter_partition_reassignments_request_init(&req);
    req.timeout_ms = admin_request_timeout(timeout_ms);
    struct op op = {.node = NODE_CONTROLLER,
                    .api_key = API_ALTER_PARTITION_REASSIGNMENTS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_altered,
                    .arg = o};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    if (fill(&req, &mem, v, n))
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &o->list;
    else
        kafka_reassignment_outcomes_free(&o->list);
    return err;
}

void kafka_reassignment_outcomes_free(kafka_reassignment_outcomes_t *list)
{
    struct outcomes *o = (struct outcomes *)list;
    if (!o)
        return;
    arena_free(&o->mem);
    free(o);
}

/* ---- listing ---- */

struct moving { /* list first: what the user gets */
    kafka_moving_partitions_t list;
    struct arena mem;
};

static int by_moving(const void *a, const void *b)
{
    const kafka_moving_partition_t *x = a, *y = b;
    return by_name(x->topic, x->partition, y->topic, y->partition);
}

static const int32_t *keep_ids(struct arena *mem, const int32_t *v, int32_t n, size_t *kept)
{
    *kept = n > 0 ? (size_t)n : 0;
    int32_t *copy = arena_array(mem, int32_t, *kept);
    if (copy && *kept)
        memcpy(copy, v, *kept * sizeof *copy);
    return copy;
}

static kafka_err_t on_listed(struct op *op, int version, const void *response)
{
    const struct list_partition_reassignments_response *m = response;
    struct moving *o = op->arg;
    size_t n = 0;
    if (m->error_code)
        return m->error_code;
    for (int32_t t = 0; t < m->topics.n; t++)
        n += (size_t)m->topics.v[t].partitions.n;
    arena_reset(&o->mem);
    kafka_moving_partition_t *v = arena_array(&o->mem, kafka_moving_partition_t, n + 1);
    n = 0;
    for (int32_t t = 0; v && t < m->topics.n; t++) {
        const char *name = admin_keep(&o->mem, m->topics.v[t].name);
        for (int32_t i = 0; name && i < m->topics.v[t].partitions.n; i++) {
            const struct list_partition_reassignments_response_partition *p =
                &m->topics.v[t].partitions.v[i];
            kafka_moving_partition_t *to = &v[n++];
            to->topic = name;
            to->partition = p->partition_index;
            to->replicas = keep_ids(&o->mem, p->replicas.v, p->replicas.n, &to->replicas_n);
            to->adding =
                keep_ids(&o->mem, p->adding_replicas.v, p->adding_replicas.n, &to->adding_n);
            to->removing =
                keep_ids(&o->mem, p->removing_replicas.v, p->removing_replicas.n, &to->removing_n);
        }
    }
    if (!v || o->mem.exhausted)
        return KAFKA_ERR_NO_MEMORY;
    if (n)
        qsort(v, n, sizeof *v, by_moving);
    o->list = (kafka_moving_partitions_t){v, n};
    return KAFKA_OK;
}

/* A topic that is named again is asked about once more: brokers take it so. */
static bool name_partitions(struct list_partition_reassignments_request *req, struct arena *mem,
                            const kafka_topic_partition_t *tps, size_t n)
{
    int32_t *partitions = arena_array(mem, int32_t, n + 1);
    req->topics.v = list_partition_reassignments_request_topic_new(mem, (int32_t)n);
    req->topics.n = 0;
    if (!req->topics.v || !partitions)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(tps[i].topic, tps[i - 1].topic) != 0) {
            req->topics.v[req->topics.n].name = str_of(tps[i].topic);
            req->topics.v[req->topics.n].partition_indexes.v = &partitions[i];
            req->topics.v[req->topics.n++].partition_indexes.n = 0;
        }
        req->topics.v[req->topics.n - 1].partition_indexes.n++;
        partitions[i] = tps[i].partition;
    }
    return true;
}

kafka_err_t kafka_admin_list_reassignments(kafka_admin_t *a, const kafka_topic_partition_t *tps,
                                           size_t n, int64_t timeout_ms,
                                           kafka_moving_partitions_t **out)
{
    struct arena mem;
    struct list_partition_reassignments_request req;
    struct moving *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    arena_init(&o->mem, 0);
    list_partition_reassignments_request_init(&req);
    req.timeout_ms = admin_request_timeout(timeout_ms);
    req.topics.n = -1; /* all */
    struct op op = {.node = NODE_CONTROLLER,
                    .api_key = API_LIST_PARTITION_REASSIGNMENTS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_listed,
                    .arg = o};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    if (!tps || name_partitions(&req, &mem, tps, n))
        err = op_run(a->cluster, &op, timeout_ms);
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &o->list;
    else
        kafka_moving_partitions_free(&o->list);
    return err;
}

void kafka_moving_partitions_free(kafka_moving_partitions_t *list)
{
    struct moving *o = (struct moving *)list;
    if (!o)
        return;
    arena_free(&o->mem);
    free(o);
}
