/* admin_describe.c - the admin client's questions: topics, brokers, settings, API versions. Results
 * live in one arena each. */
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

#include "base/arena.h"
#include "client/admin_private.h"
#include "client/cluster_private.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/metadata.h"

/* A result and the memory it lives in; the user's pointer is to `info`. */
struct described {
    kafka_cluster_info_t info;
    struct arena mem;
};

const char *admin_keep(struct arena *a, struct str s)
{
    return s.len < 0 ? NULL : arena_str(a, s).p;
}

static bool keep_ints(struct arena *a, const int32_t *from, int32_t n, const int32_t **to,
                      size_t *to_n)
{
    int32_t *copy = arena_array(a, int32_t, (size_t)(n < 0 ? 0 : n));
    *to_n = n < 0 ? 0 : (size_t)n;
    *to = copy;
    if (copy && n > 0)
        memcpy(copy, from, (size_t)n * sizeof *copy);
    return copy != NULL;
}

static bool keep_nodes(struct described *d, const struct metadata_response *m)
{
    kafka_node_t *nodes = arena_array(&d->mem, kafka_node_t, (size_t)m->brokers.n);
    for (int32_t i = 0; nodes && i < m->brokers.n; i++)
        nodes[i] = (kafka_node_t){.id = m->brokers.v[i].node_id,
                                  .host = admin_keep(&d->mem, m->brokers.v[i].host),
                                  .rack = admin_keep(&d->mem, m->brokers.v[i].rack),
                                  .port = m->brokers.v[i].port};
    d->info.nodes = nodes;
    d->info.nodes_n = (size_t)m->brokers.n;
    return nodes != NULL;
}

static int by_partition(const void *a, const void *b)
{
    const kafka_partition_info_t *x = a, *y = b;
    return (x->partition > y->partition) - (x->partition < y->partition);
}

static bool keep_partitions(struct described *d, kafka_topic_info_t *to,
                            const struct metadata_response_topic *t)
{
    kafka_partition_info_t *parts =
        arena_array(&d->mem, kafka_partition_info_t, (size_t)t->partitions.n);
    if (!parts)
        return false;
    for (int32_t i = 0; i < t->partitions.n; i++) {
        const struct metadata_response_partition *p = &t->partitions.v[i];
        parts[i].err = p->error_code;
        parts[i].partition = p->partition_index;
        parts[i].leader = p->leader_id;
        parts[i].leader_epoch = p->leader_epoch;
        if (!keep_ints(&d->mem, p->replica_nodes.v, p->replica_nodes.n, &parts[i].replicas,
                       &parts[i].replicas_n) ||
            !keep_ints(&d->mem, p->isr_nodes.v, p->isr_nodes.n, &parts[i].isr, &parts[i].isr_n) ||
            !keep_ints(&d->mem, p->offline_replicas.v, p->offline_replicas.n, &parts[i].offline,
                       &parts[i].offline_n))
            return false;
    }
    qsort(parts, (size_t)t->partitions.n, sizeof *parts, by_partition);
    to->partitions = parts;
    to->partitions_n = (size_t)t->partitions.n;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const kafka_topic_info_t *)a)->name, ((const kafka_topic_info_t *)b)->name);
}

static bool keep_topics(struct described *d, const struct metadata_response *m)
{
    kafka_topic_info_t *topics = arena_array(&d->mem, kafka_topic_info_t, (size_t)m->topics.n);
    if (!topics)
        return false;
    for (int32_t i = 0; i < m->topics.n; i++) {
        const struct metadata_response_topic *t = &m->topics.v[i];
        topics[i].err = t->error_code;
        topics[i].name = admin_keep(&d->mem, t->name.len < 0 ? STR_LIT("") : t->name);
        topics[i].internal = t->is_internal;
        memcpy(topics[i].id, t->topic_id.b, 16);
        if (!topics[i].name || !keep_partitions(d, &topics[i], t))
            return false;
    }
    qsort(topics, (size_t)m->topics.n, sizeof *topics, by_name);
    d->info.topics = topics;
    d->info.topics_n = (size_t)m->topics.n;
    return true;
}

static kafka_err_t on_described(struct op *op, int version, const void *response)
{
    const struct metadata_response *m = response;
    struct described *d = op->arg;
    arena_reset(&d->mem);
    d->info.controller = m->controller_id;
    d->info.cluster_id = admin_keep(&d->mem, m->cluster_id);
    cluster_set_nodes(op->cluster, m);
    return keep_nodes(d, m) && keep_topics(d, m) ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

kafka_err_t kafka_admin_describe(kafka_admin_t *a, const char *const *topics, size_t topics_n,
                                 int64_t timeout_ms, kafka_cluster_info_t **out)
{
    struct described *d = calloc(1, sizeof *d);
    struct metadata_request req;
    struct arena mem;
    *out = NULL;
    if (!d)
        return KAFKA_ERR_NO_MEMORY;
    arena_init(&d->mem, 0);
    arena_init(&mem, 0);
    metadata_request_init(&req);
    req.topics.v = metadata_request_topic_new(&mem, (int32_t)topics_n);
    req.topics.n = topics ? (int32_t)topics_n : -1;
    for (size_t i = 0; topics && req.topics.v && i < topics_n; i++)
        req.topics.v[i].name = str_of(topics[i]);
    req.allow_auto_topic_creation = false;
    /* v4: older ones create topics by being asked about them. */
    struct op op = {.node = NODE_ANY,
                    .api_key = API_METADATA,
                    .min_version = topics ? 4 : 1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_described,
                    .arg = d};
    if (op.min_version == 1)
        req.allow_auto_topic_creation =
            true; /* cannot be said below v4, and no name is asked for */
    kafka_err_t err = req.topics.v ? op_run(a->cluster, &op, timeout_ms) : KAFKA_ERR_NO_MEMORY;
    arena_free(&mem);
    if (err == KAFKA_OK)
        *out = &d->info;
    else
        kafka_cluster_info_free(&d->info);
    return err;
}

void kafka_cluster_info_free(kafka_cluster_info_t *info)
{
    if (!info)
        return;
    struct described *d = container_of(info, struct described, info);
    arena_free(&d->mem);
    free(d);
}

/* ---- API versions ---- */

static kafka_err_t on_versions(struct op *op, int version, const void *response)
{
    const struct api_versions_response *m = response;
    kafka_broker_versions_t *to = op->arg;
    if (m->error_code)
        return m->error_code;
    kafka_api_version_t *apis = calloc((size_t)m->api_keys.n + 1, sizeof *apis);
    for (int32_t i = 0; apis && i < m->api_keys.n; i++) {
        const struct api_desc *known = api_find(m->api_keys.v[i].api_key);
        apis[i] = (kafka_api_version_t){m->api_keys.v[i].api_key, m->api_keys.v[i].min_version,
                                        m->api_keys.v[i].max_version, known ? known->name : NULL};
    }
    to->apis = apis;
    to->apis_n = (size_t)m->api_keys.n;
    return apis ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

static void ask_versions(kafka_admin_t *a, kafka_broker_versions_t *to, int64_t timeout_ms)
{
    struct api_versions_request req;
    api_versions_request_init(&req);
    req.client_software_name = STR_LIT("kafkad-c");
    req.client_software_version = str_of(KAFKAD_VERSION);
    struct op op = {.node = to->node.id,
                    .api_key = API_API_VERSIONS,
                    .min_version = -1,
                    .max_version = -1,
                    .request = &req,
                    .handle = on_versions,
                    .arg = to};
    to->err = op_run(a->cluster, &op, timeout_ms);
}

kafka_err_t kafka_admin_broker_versions(kafka_admin_t *a, int64_t timeout_ms,
                                        kafka_broker_versions_t **out, size_t *n)
{
    kafka_cluster_info_t *info;
    const char *none = NULL;
    *out = NULL;
    *n = 0;
    kafka_err_t err = kafka_admin_describe(a, &none, 0, timeout_ms, &info);
    if (err != KAFKA_OK)
        return err;
    kafka_broker_versions_t *v = calloc(info->nodes_n + 1, sizeof *v);
    for (size_t i = 0; v && i < info->nodes_n; i++) {
        v[i].node = info->nodes[i];
        v[i].node.host = str_dup(str_of(info->nodes[i].host));
        v[i].node.rack = info->nodes[i].rack ? str_dup(str_of(info->nodes[i].rack)) : NULL;
        ask_versions(a, &v[i], timeout_ms);
    }
    *out = v;
    *n = v ? info->nodes_n : 0;
    kafka_cluster_info_free(info);
    return v ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
}

void kafka_broker_versions_free(kafka_broker_versions_t *v, size_t n)
{
    for (size_t i = 0; v && i < n; i++) {
        free((void *)v[i].node.host);
        free((void *)v[i].node.rack);
        free((void *)v[i].apis);
    }
    free(v);
}
