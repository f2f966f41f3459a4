/* tool_reassign_plan.h - kafka-reassign-partitions: which partitions are to be where, as its files
 * say it, and which of their replicas that makes move.
 *
 * All memory is in the arena that is handed in; texts of parsed documents are copied there. What
 * can be wrong with a file comes back as a sentence (in the arena), NULL when nothing is.
 * THREADS  any. */
#ifndef TOOLS_TOOL_REASSIGN_PLAN_H
#define TOOLS_TOOL_REASSIGN_PLAN_H

#include <jansson.h>
#include <kafka/admin.h>

#include "metadata/znode.h"

/* ---- plans ---- */

struct reassign_part {
    const char *topic;
    int32_t partition;
    struct id_list replicas;
    const char **dirs; /* one a replica, NULL in it: any; NULL: none are named */
};
struct reassign_plan {
    struct reassign_part *v; /* in order of topic and partition */
    int n;
};

/* {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]}]} */
const char *reassign_plan_parse(const json_t *document, struct arena *a, struct reassign_plan *out);
/* May it be executed? Empty plans, and partitions and replicas that are named twice, may not. */
const char *reassign_plan_check(const struct reassign_plan *p, struct arena *a);
/* The document that says so, with any log dirs. */
char *reassign_plan_format(const struct reassign_plan *p, struct arena *a);
void reassign_plan_sort(struct reassign_plan *p);
/* NULL: not in it. */
struct reassign_part *reassign_plan_find(const struct reassign_plan *p, const char *topic,
                                         int32_t partition);
/* Its topics, each once, in order. */
const char **reassign_plan_topics(const struct reassign_plan *p, struct arena *a, size_t *n);

/* {"version":1,"topics":[{"topic":"t"}]}; in order, each once. */
const char *reassign_topics_parse(const json_t *document, struct arena *a, const char ***topics,
                                  size_t *n);
/* "1,2,3" */
const char *reassign_brokers_parse(const char *text, struct arena *a, struct id_list *out);

/* ---- replicas that are to go to other log dirs ---- */

struct reassign_dir_move {
    const char *topic;
    int32_t partition, broker;
    const char *dir;
    bool begun;
};
struct reassign_dir_moves {
    struct reassign_dir_move *v; /* in order of topic, partition and broker */
    int n;
};
struct reassign_dir_moves reassign_plan_dirs(const struct reassign_plan *p, struct arena *a);
/* The first of that replica, or m->n. */
int reassign_dir_moves_find(const struct reassign_dir_moves *m, const char *topic,
                            int32_t partition, int32_t broker);

/* ---- what moves from where to where, to throttle it ---- */

struct reassign_move {
    const char *topic;
    int32_t partition;
    struct id_list from, to;
};
struct reassign_moves {
    struct reassign_move *v; /* in order of topic and partition */
    int n;
};
/* Of those that move already and those of the plan. current: the plan's partitions as they are.
 * NULL pointers only without memory. */
struct reassign_moves reassign_moves_of(const kafka_moving_partitions_t *moving,
                                        const struct reassign_plan *plan,
                                        const struct reassign_plan *current, struct arena *a);
/* What the topic's {leader,follower}.replication.throttled.replicas are to be: "0:1,0:2". */
char *reassign_throttled(const struct reassign_moves *m, const char *topic, bool leaders,
                         struct arena *a);
/* Their topics, each once; and all brokers that take part, ascending. */
const char **reassign_moves_topics(const struct reassign_moves *m, struct arena *a, size_t *n);
struct id_list reassign_moves_brokers(const struct reassign_moves *m, struct arena *a);

/* Adds the id unless it is there; the list has room. */
void reassign_add_id(struct id_list *l, int32_t id);
void reassign_sort_ids(struct id_list *l);
/* "1,2,3" */
char *reassign_format_ids(struct id_list l, struct arena *a);

#endif
