/* tool_reassign_throttle.c - the settings that hold moving replicas back. */
#include <stdio.h>

#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_reassign.h"

enum { MESSAGE = 512 };

const char *const reassign_broker_keys[3] = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
};
const char *const reassign_topic_keys[2] = {
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
};

static void set(struct reassign *r, int type, const char *resource, const kafka_config_op_t *ops,
                size_t n)
{
    char message[MESSAGE] = "";
    kafka_err_t err = kafka_admin_alter_configs(r->admin, type, resource, ops, n, r->timeout_ms,
                                                message, sizeof message);
    if (err != KAFKA_OK)
        reassign_fail_of(r, err, message);
}

/* A broker changes its settings itself: one that is away has none set. It sends nothing, either. */
static void set_rates(struct reassign *r, struct id_list brokers, const char *const *keys, size_t n,
                      int64_t rate)
{
    kafka_cluster_info_t *info = reassign_describe(r, NULL, 0);
    char id[16], value[32];
    kafka_config_op_t ops[3];
    snprintf(value, sizeof value, "%lld", (long long)rate);
    for (size_t i = 0; i < n; i++)
        ops[i] = (kafka_config_op_t){KAFKA_CONFIG_SET, keys[i], value};
    for (int i = 0; i < brokers.n; i++) {
        snprintf(id, sizeof id, "%d", brokers.v[i]);
        if (reassign_is_there(info, brokers.v[i]))
            set(r, KAFKA_RESOURCE_BROKER, id, ops, n);
        else
            tool_log_warning("broker %s is not there: no throttle is set for it", id);
    }
    kafka_cluster_info_free(info);
}

void reassign_throttle(struct reassign *r, const struct reassign_moves *m)
{
    size_t n;
    const char **topics = reassign_need(reassign_moves_topics(m, &r->mem, &n));
    for (size_t i = 0; i < n; i++) {
        kafka_config_op_t ops[2];
        for (int k = 0; k < 2; k++)
            ops[k] = (kafka_config_op_t){
                KAFKA_CONFIG_SET, reassign_topic_keys[k],
                reassign_need(reassign_throttled(m, topics[i], k == 0, &r->mem))};
        set(r, KAFKA_RESOURCE_TOPIC, topics[i], ops, 2);
    }
    struct id_list brokers = reassign_moves_brokers(m, &r->mem);
    set_rates(r, brokers, reassign_broker_keys, 2, r->args->throttle);
    printf("The inter-broker throttle limit was set to %lld B/s\n", (long long)r->args->throttle);
}

void reassign_throttle_dirs(struct reassign *r, const struct reassign_dir_moves *m)
{
    struct id_list brokers = {reassign_need(arena_array(&r->mem, int32_t, (size_t)m->n)), 0};
    for (int i = 0; i < m->n; i++)
        reassign_add_id(&brokers, m->v[i].broker);
    set_rates(r, brokers, &reassign_broker_keys[2], 1, r->args->dir_throttle);
    printf("The replica-alter-dir throttle limit was set to %lld B/s\n",
           (long long)r->args->dir_throttle);
}

/* ---- clearing ---- */

/* All brokers: who took part in moves that were asked for earlier is not known any more. */
static struct id_list all_brokers(struct reassign *r, const kafka_cluster_info_t *info,
                                  const struct reassign_plan *plan)
{
    size_t room = info->nodes_n;
    for (int i = 0; i < plan->n; i++)
        room += (size_t)plan->v[i].replicas.n;
    struct id_list all = {reassign_need(arena_array(&r->mem, int32_t, room)), 0};
    for (size_t i = 0; i < info->nodes_n; i++)
        reassign_add_id(&all, info->nodes[i].id);
    for (int i = 0; i < plan->n; i++)
        for (int k = 0; k < plan->v[i].replicas.n; k++)
            reassign_add_id(&all, plan->v[i].replicas.v[k]);
    reassign_sort_ids(&all);
    return all;
}

/* Those of `ids` that are there, or those that are not. */
static struct id_list present(struct reassign *r, const kafka_cluster_info_t *info,
                              struct id_list ids, bool there)
{
    struct id_list some = {reassign_need(arena_array(&r->mem, int32_t, (size_t)ids.n)), 0};
    for (int i = 0; i < ids.n; i++)
        if (reassign_is_there(info, ids.v[i]) == there)
            reassign_add_id(&some, ids.v[i]);
    return some;
}

static void clear_brokers(struct reassign *r, struct id_list ids)
{
    char id[16];
    kafka_config_op_t ops[3];
    printf("Clearing broker-level throttles on broker%s %s\n", ids.n == 1 ? "" : "s",
           (char *)reassign_need(reassign_format_ids(ids, &r->mem)));
    for (int i = 0; i < 3; i++)
        ops[i] = (kafka_config_op_t){KAFKA_CONFIG_DELETE, reassign_broker_keys[i], NULL};
    for (int i = 0; i < ids.n; i++) {
        snprintf(id, sizeof id, "%d", ids.v[i]);
        set(r, KAFKA_RESOURCE_BROKER, id, ops, 3);
    }
}

/* They are without effect as long as no topic lists replicas. */
static void warn_kept(struct reassign *r, struct id_list away)
{
    if (!away.n)
        return;
    tool_log_warning("broker%s %s %s not there: throttles that were set for %s stay; --verify with "
                     "the same file clears them once %s back",
                     away.n == 1 ? "" : "s",
                     (char *)reassign_need(reassign_format_ids(away, &r->mem)),
                     away.n == 1 ? "is" : "are", away.n == 1 ? "it" : "them",
                     away.n == 1 ? "it is" : "they are");
}

static void clear_topic(struct reassign *r, const char *topic)
{
    char message[MESSAGE] = "";
    kafka_config_op_t ops[2];
    for (int i = 0; i < 2; i++)
        ops[i] = (kafka_config_op_t){KAFKA_CONFIG_DELETE, reassign_topic_keys[i], NULL};
    kafka_err_t err = kafka_admin_alter_configs(r->admin, KAFKA_RESOURCE_TOPIC, topic, ops, 2,
                                                r->timeout_ms, message, sizeof message);
    if (err != KAFKA_OK && err != KERR_UNKNOWN_TOPIC_OR_PARTITION) /* deleted meanwhile */
        reassign_fail_of(r, err, message);
}

void reassign_clear_throttles(struct reassign *r, const struct reassign_plan *plan)
{
    size_t n;
    kafka_cluster_info_t *info = reassign_describe(r, NULL, 0);
    struct id_list ids = all_brokers(r, info, plan);
    clear_brokers(r, present(r, info, ids, true));
    warn_kept(r, present(r, info, ids, false));
    kafka_cluster_info_free(info);
    const char **topics = reassign_need(reassign_plan_topics(plan, &r->mem, &n));
    printf("Clearing topic-level throttles on topic%s ", n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++)
        printf("%s%s", i ? "," : "", topics[i]);
    putchar('\n');
    for (size_t i = 0; i < n; i++)
        clear_topic(r, topics[i]);
}
