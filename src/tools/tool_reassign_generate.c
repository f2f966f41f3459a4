/* tool_reassign_generate.c - kafka-reassign-partitions --generate: new places for all partitions of
 * some topics, spread over some brokers as those of new topics are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metadata/assignment.h"
#include "tools/tool_reassign.h"

static int by_id(const void *a, const void *b)
{
    const struct assign_broker *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int choose_brokers(struct reassign *r, const kafka_node_t *nodes, size_t nodes_n,
                          struct id_list allowed, struct assign_broker *out)
{
    int n = 0;
    for (size_t i = 0; i < nodes_n; i++)
        if (id_list_has(allowed, nodes[i].id))
            out[n++] = (struct assign_broker){nodes[i].id,
                                              r->args->no_racks ? STR_NULL : str_of(nodes[i].rack)};
    if (n)
        qsort(out, (size_t)n, sizeof *out, by_id);
    if (assign_racks(out, n) == ASSIGN_SOME_RACKS)
        reassign_fail(r,
                      "Not all brokers have rack information. Add --disable-rack-aware in command "
                      "line to make replica assignment without rack information.");
    return n;
}

static int random_below(int n)
{
    struct uuid u = uuid_random();
    uint32_t v;
    memcpy(&v, u.b, sizeof v);
    return (int)(v % (uint32_t)n);
}

/* The partitions of one topic: n of them, those of `now`. */
static void propose_topic(struct reassign *r, const struct reassign_part *now, int n,
                          const struct assign_broker *brokers, int brokers_n,
                          struct reassign_part *out)
{
    int copies = now->replicas.n;
    if (copies < 1)
        reassign_fail(r, "Replication factor must be larger than 0.");
    if (copies > brokers_n)
        reassign_fail(r, "Replication factor: %d larger than available brokers: %d.", copies,
                      brokers_n);
    struct assign_args args = {.brokers = brokers,
                               .brokers_n = brokers_n,
                               .use_racks = assign_racks(brokers, brokers_n) == ASSIGN_ALL_RACKS,
                               .partitions = n,
                               .replication = copies,
                               .start = random_below(brokers_n),
                               .shift = random_below(brokers_n)};
    int32_t *ids = reassign_need(assign_replicas(&args, &r->mem));
    for (int i = 0; i < n; i++)
        out[i] = (struct reassign_part){
            now[i].topic, now[i].partition, {ids + (ptrdiff_t)i * copies, copies}, NULL};
}

struct reassign_plan reassign_propose(struct reassign *r, const struct reassign_plan *current,
                                      const kafka_node_t *nodes, size_t nodes_n,
                                      struct id_list allowed)
{
    struct assign_broker *brokers =
        reassign_need(arena_array(&r->mem, struct assign_broker, nodes_n));
    int brokers_n = choose_brokers(r, nodes, nodes_n, allowed, brokers);
    struct reassign_plan out = {
        reassign_need(arena_array(&r->mem, struct reassign_part, (size_t)current->n)), current->n};
    for (int i = 0, end; i < current->n; i = end) {
        for (end = i + 1; end < current->n; end++)
            if (strcmp(current->v[end].topic, current->v[i].topic) != 0)
                break;
        propose_topic(r, &current->v[i], end - i, brokers, brokers_n, &out.v[i]);
    }
    return out;
}

void reassign_print_proposal(struct reassign *r, const struct reassign_plan *current,
                             const struct reassign_plan *proposed)
{
    printf("Current partition replica assignment\n%s\n\n",
           (char *)reassign_need(reassign_plan_format(current, &r->mem)));
    printf("Proposed partition reassignment configuration\n%s\n",
           (char *)reassign_need(reassign_plan_format(proposed, &r->mem)));
}

/* All partitions of the topics that were described. */
static struct reassign_plan all_partitions(struct reassign *r, const kafka_cluster_info_t *info)
{
    size_t n = 0;
    for (size_t i = 0; i < info->topics_n; i++) {
        if (info->topics[i].err != KAFKA_OK)
            reassign_fail_of(r, info->topics[i].err, kafka_err_text(info->topics[i].err));
        n += info->topics[i].partitions_n;
    }
    struct reassign_plan all = {reassign_need(arena_array(&r->mem, struct reassign_part, n)), 0};
    for (size_t i = 0; i < info->topics_n; i++)
        for (size_t k = 0; k < info->topics[i].partitions_n; k++) {
            const kafka_partition_info_t *p = &info->topics[i].partitions[k];
            all.v[all.n++] = (struct reassign_part){info->topics[i].name,
                                                    p->partition,
                                                    {(int32_t *)p->replicas, (int)p->replicas_n},
                                                    NULL};
        }
    reassign_plan_sort(&all);
    return all;
}

void reassign_generate(struct reassign *r)
{
    size_t n;
    struct id_list allowed;
    const char *wrong = reassign_brokers_parse(r->args->brokers, &r->mem, &allowed);
    if (wrong)
        reassign_fail(r, "%s", wrong);
    const char **topics = reassign_read_topics(r, &n);
    kafka_cluster_info_t *info = reassign_describe(r, topics, n);
    struct reassign_plan current = all_partitions(r, info);
    struct reassign_plan proposed =
        reassign_propose(r, &current, info->nodes, info->nodes_n, allowed);
    reassign_print_proposal(r, &current, &proposed);
    kafka_cluster_info_free(info);
}
