/* tool_reassign_zk.c - see tool_reassign_zk.h. */
#include "tools/tool_reassign_zk.h"

#include <stdlib.h>
#include <string.h>

#include "metadata/paths.h"
#include "tools/tool_io.h"
#include "tools/tool_zk_configs.h"

void reassign_zk_fail(struct reassign *r, const char *path, int status)
{
    reassign_fail(r, "%s: %s", path, strerror(-status));
}

/* The node's data, in the arena. false: there is no such node. */
static bool read_node(struct reassign *r, struct store *s, const char *path, struct bytes *out,
                      struct store_stat *stat)
{
    struct bytes data;
    int rc = store_get(s, reassign_need((char *)path), &data, stat);
    if (rc == -ENOENT)
        return false;
    if (rc)
        reassign_zk_fail(r, path, rc);
    *out = data;
    if (data.len >= 0) {
        struct str copy = arena_str(&r->mem, (struct str){(const char *)data.p, data.len});
        out->p = reassign_need((uint8_t *)copy.p);
    }
    free((void *)data.p);
    return true;
}

/* ---- topics and brokers ---- */

struct reassign_plan reassign_zk_topics(struct reassign *r, struct store *s, const char **topics,
                                        size_t n)
{
    struct reassign_plan all = {NULL, 0};
    struct topic_node *nodes = reassign_need(arena_array(&r->mem, struct topic_node, n));
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        struct bytes data;
        const char *path = path_topic(&r->mem, str_of(topics[i]));
        if (read_node(r, s, path, &data, NULL) && znode_topic_decode(data, &r->mem, &nodes[i]) != 0)
            reassign_zk_fail(r, path, -EBADMSG);
        total += (size_t)nodes[i].partitions_n;
    }
    all.v = reassign_need(arena_array(&r->mem, struct reassign_part, total));
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < nodes[i].partitions_n; k++)
            all.v[all.n++] = (struct reassign_part){topics[i], nodes[i].partitions[k].partition,
                                                    nodes[i].partitions[k].replicas, NULL};
    reassign_plan_sort(&all);
    return all;
}

static int by_id(const void *a, const void *b)
{
    const kafka_node_t *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

kafka_node_t *reassign_zk_brokers(struct reassign *r, struct store *s, size_t *n)
{
    struct store_op op = store_op_children(PATH_BROKER_IDS, false);
    struct store_request req = {.ops = &op, .ops_n = 1};
    int rc = store_run(s, &req);
    if (rc && rc != -ENOENT)
        reassign_zk_fail(r, PATH_BROKER_IDS, rc);
    kafka_node_t *nodes = reassign_need(arena_array(&r->mem, kafka_node_t, (size_t)op.names_n));
    *n = 0;
    for (int i = 0; i < op.names_n; i++) {
        struct bytes data;
        struct broker_info info;
        int id = atoi(op.names[i]);
        if (!read_node(r, s, path_broker(&r->mem, id), &data, NULL))
            continue; /* gone meanwhile */
        if (znode_broker_decode(data, id, &r->mem, &info) != 0)
            reassign_zk_fail(r, PATH_BROKER_IDS, -EBADMSG);
        nodes[(*n)++] = (kafka_node_t){.id = id, .rack = info.rack.p};
    }
    store_request_clear(&req);
    if (*n)
        qsort(nodes, *n, sizeof *nodes, by_id);
    return nodes;
}

/* ---- the node that asks for moves ---- */

bool reassign_zk_moving(struct reassign *r, struct store *s, struct named_partitions *out)
{
    struct bytes data;
    *out = (struct named_partitions){NULL, 0};
    if (!read_node(r, s, PATH_REASSIGN, &data, NULL))
        return false;
    if (znode_reassign_decode(data, &r->mem, out) != 0)
        reassign_zk_fail(r, PATH_REASSIGN, -EBADMSG);
    return true;
}

void reassign_zk_begin(struct reassign *r, struct store *s, const struct reassign_plan *plan)
{
    struct named_partitions l = {
        reassign_need(arena_array(&r->mem, struct named_partition, (size_t)plan->n)), plan->n};
    for (int i = 0; i < plan->n; i++)
        l.v[i] = (struct named_partition){str_of(plan->v[i].topic), plan->v[i].partition,
                                          plan->v[i].replicas};
    struct bytes data = znode_reassign_encode(l, &r->mem);
    reassign_need((uint8_t *)data.p);
    bool created = false;
    int rc = store_create_path(s, PATH_REASSIGN, data, &created);
    if (rc)
        reassign_zk_fail(r, PATH_REASSIGN, rc);
    if (!created)
        reassign_fail(r, "Partition reassignment currently in progress. Aborting operation");
}

/* ---- settings ---- */

bool reassign_zk_configure(struct reassign *r, struct store *s, const char *entity,
                           const kafka_config_t *configs, size_t n)
{
    bool changed;
    int rc = tool_zk_configure(s, &r->mem, entity, configs, n, &changed);
    if (rc)
        reassign_zk_fail(r, reassign_need(arena_printf(&r->mem, PATH_CONFIG "/%s", entity)), rc);
    return changed;
}
