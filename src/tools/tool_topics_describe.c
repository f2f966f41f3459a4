/* tool_topics_describe.c - kafka-topics --describe: header and partition lines, and the filters.
 *
 * A partition that moves (kafka-reassign-partitions) has replicas that come and replicas that go
 * in its list. Its line names them, and those that come do not count: it is under-replicated only
 * when it lacks one of the others. Only the controller knows of moves, so it is asked when some
 * partition lacks a replica in sync, not for long, and without its answer everything else is still
 * told: who looks for what is wrong may have no controller just then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "protocol/errors.h"
#include "tools/tool_io.h"
#include "tools/tool_topics.h"

enum { SOURCE_DEFAULT = 5, MOVES_TIMEOUT_MS = 5000 };

/* moves NULL: none are known. */
static const kafka_moving_partition_t *move_of(const kafka_moving_partitions_t *moves,
                                               const char *topic, const kafka_partition_info_t *p)
{
    for (size_t i = 0; moves && i < moves->n; i++)
        if (moves->v[i].partition == p->partition && strcmp(moves->v[i].topic, topic) == 0)
            return &moves->v[i];
    return NULL;
}

static bool among(const int32_t *v, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == id)
            return true;
    return false;
}

/* A move may be over since the replicas were told, or not have begun then. */
static bool shows_in(const kafka_moving_partition_t *m, const kafka_partition_info_t *p)
{
    for (size_t i = 0; i < p->replicas_n; i++)
        if (among(m->adding, m->adding_n, p->replicas[i]) ||
            among(m->removing, m->removing_n, p->replicas[i]))
            return true;
    return false;
}

/* How many replicas the partition is to have in sync now. */
static size_t wanted(const kafka_moving_partitions_t *moves, const char *topic,
                     const kafka_partition_info_t *p)
{
    const kafka_moving_partition_t *m = move_of(moves, topic, p);
    return m && shows_in(m, p) ? m->replicas_n - m->adding_n : p->replicas_n;
}

static bool lacks_any(const struct topics *t)
{
    for (size_t i = 0; i < t->chosen_n; i++)
        for (size_t k = 0; k < t->chosen[i]->partitions_n; k++)
            if (t->chosen[i]->partitions[k].isr_n < t->chosen[i]->partitions[k].replicas_n)
                return true;
    return false;
}

static kafka_moving_partitions_t *ask_moves(const struct topics *t, const struct topics_args *a)
{
    kafka_moving_partitions_t *moves;
    if (a->zookeeper || !lacks_any(t))
        return NULL;
    int64_t ms = t->timeout_ms < MOVES_TIMEOUT_MS ? t->timeout_ms : MOVES_TIMEOUT_MS;
    kafka_err_t err = kafka_admin_list_reassignments(t->admin, NULL, 0, ms, &moves);
    if (err == KAFKA_OK)
        return moves;
    /* brokers before 2.4, and who may not ask: as Kafka's tool, without a word */
    if (err != KERR_UNSUPPORTED_VERSION && err != KERR_CLUSTER_AUTHORIZATION_FAILED)
        tool_log_warning("which partitions move is not known: %s", kafka_last_error());
    return NULL;
}

static void print_ids(const char *name, const int32_t *ids, size_t n)
{
    printf("\t%s: ", name);
    for (size_t i = 0; i < n; i++)
        printf(i ? ",%d" : "%d", ids[i]);
}

/* Settings that are not defaults, joined by commas. Returns how many. */
static size_t print_configs(const kafka_config_entries_t *configs)
{
    size_t n = 0;
    for (size_t i = 0; i < configs->entries_n; i++) {
        const kafka_config_entry_t *e = &configs->entries[i];
        if (e->source != SOURCE_DEFAULT)
            printf("%s%s=%s", n++ ? "," : "", e->name, e->value ? e->value : "");
    }
    return n;
}

static bool has_overrides(const kafka_config_entries_t *configs)
{
    for (size_t i = 0; i < configs->entries_n; i++)
        if (configs->entries[i].source != SOURCE_DEFAULT)
            return true;
    return false;
}

static size_t min_isr(const kafka_config_entries_t *configs)
{
    for (size_t i = 0; i < configs->entries_n; i++)
        if (strcmp(configs->entries[i].name, "min.insync.replicas") == 0 &&
            configs->entries[i].value)
            return (size_t)atoi(configs->entries[i].value);
    return 1;
}

static void print_header(const kafka_topic_info_t *topic, const kafka_config_entries_t *configs,
                         const kafka_moving_partitions_t *moves)
{
    struct uuid id;
    char text[23];
    memcpy(id.b, topic->id, sizeof id.b);
    uuid_format(id, text);
    printf("Topic: %s", topic->name);
    if (!uuid_is_zero(id))
        printf("\tTopicId: %s", text);
    printf("\tPartitionCount: %zu\tReplicationFactor: %zu\tConfigs: ", topic->partitions_n,
           topic->partitions_n ? wanted(moves, topic->name, &topic->partitions[0]) : 0);
    print_configs(configs);
    putchar('\n');
}

/* As the tool of 2.3 has it. */
static void print_old_header(const kafka_topic_info_t *topic, const kafka_config_entries_t *configs)
{
    printf("Topic:%s\tPartitionCount:%zu\tReplicationFactor:%zu\tConfigs:", topic->name,
           topic->partitions_n, topic->partitions_n ? topic->partitions[0].replicas_n : 0);
    print_configs(configs);
    putchar('\n');
}

static void print_partition(const kafka_topic_info_t *topic, const kafka_partition_info_t *p,
                            const kafka_moving_partition_t *move, bool old_form)
{
    printf("\tTopic: %s\tPartition: %d", topic->name, p->partition);
    if (p->leader >= 0)
        printf("\tLeader: %d", p->leader);
    else
        printf("\tLeader: none");
    print_ids("Replicas", p->replicas, p->replicas_n);
    print_ids("Isr", p->isr, p->isr_n);
    if (move) {
        print_ids("Adding Replicas", move->adding, move->adding_n);
        print_ids("Removing Replicas", move->removing, move->removing_n);
    }
    puts(old_form ? "" : "\tElr: N/A\tLastKnownElr: N/A");
}

static bool is_alive(const kafka_cluster_info_t *info, int32_t broker)
{
    for (size_t i = 0; i < info->nodes_n; i++)
        if (info->nodes[i].id == broker)
            return true;
    return false;
}

static bool has_filter(const struct topics_args *a)
{
    return a->under_replicated || a->unavailable || a->under_min_isr || a->at_min_isr;
}

static bool passes(const kafka_cluster_info_t *info, const struct topics_args *a,
                   const kafka_partition_info_t *p, size_t least, size_t replicas)
{
    bool led = p->leader >= 0;
    return !has_filter(a) || (a->under_replicated && p->isr_n < replicas) ||
           (a->unavailable && (!led || !is_alive(info, p->leader))) ||
           (a->under_min_isr && (!led || p->isr_n < least)) || (a->at_min_isr && p->isr_n == least);
}

static bool describe_one(struct topics *t, const struct topics_args *a,
                         const kafka_topic_info_t *topic, const kafka_moving_partitions_t *moves)
{
    static const kafka_config_entries_t none = {NULL, 0};
    kafka_config_entries_t *asked = NULL;
    bool header = !has_filter(a);
    if (header || a->under_min_isr || a->at_min_isr) {
        kafka_err_t err = kafka_admin_describe_configs(t->admin, KAFKA_RESOURCE_TOPIC, topic->name,
                                                       t->timeout_ms, &asked);
        if (err == KERR_UNKNOWN_TOPIC_OR_PARTITION)
            return true; /* deleted since we looked */
        if (err != KAFKA_OK)
            return topics_failed(err, NULL);
    }
    const kafka_config_entries_t *configs = asked ? asked : &none;
    size_t least = min_isr(configs);
    if (header && (!a->overrides || has_overrides(configs))) {
        if (a->zookeeper)
            print_old_header(topic, configs);
        else
            print_header(topic, configs, moves);
    }
    for (size_t i = 0; !a->overrides && i < topic->partitions_n; i++) {
        const kafka_partition_info_t *p = &topic->partitions[i];
        if (passes(t->info, a, p, least, wanted(moves, topic->name, p)))
            print_partition(topic, p, move_of(moves, topic->name, p), a->zookeeper != NULL);
    }
    kafka_config_entries_free(asked);
    return true;
}

bool topics_describe(struct topics *t, const struct topics_args *a)
{
    kafka_moving_partitions_t *moves = ask_moves(t, a);
    bool ok = true;
    for (size_t i = 0; i < t->chosen_n && ok && tool_output_ok(); i++)
        ok = describe_one(t, a, t->chosen[i], moves);
    kafka_moving_partitions_free(moves);
    return ok;
}
