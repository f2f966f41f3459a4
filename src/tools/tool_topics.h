/* tool_topics.h - the parts of kafka-topics: its arguments, choosing topics, describing them. */
#ifndef TOOLS_TOOL_TOPICS_H
#define TOOLS_TOOL_TOPICS_H

#include <kafka/admin.h>

#include "tools/tool_options.h"

struct topics_args {
    bool list, describe, create, alter, delete;
    const char *bootstrap, *command_config, *topic, *topic_id, *assignment, *zookeeper;
    int64_t partitions, replication, page;
    struct tool_texts config, delete_config;
    bool if_not_exists, if_exists, exclude_internal, force, disable_rack_aware;
    bool under_replicated, unavailable, under_min_isr, at_min_isr, overrides;
};

struct topics {
    kafka_admin_t *admin;
    int64_t timeout_ms;
    kafka_cluster_info_t *info;        /* owned */
    const kafka_topic_info_t **chosen; /* owned array; in order of name */
    size_t chosen_n;
};

/* Asks for all topics and keeps those that --topic, --topic-id and --exclude-internal name. false
 * (said already) when that fails, or names none and --if-exists does not allow it. */
bool topics_choose(struct topics *t, const struct topics_args *a);
bool topics_describe(struct topics *t, const struct topics_args *a);
/* Says what failed as Kafka's tool does, on both outputs. Returns false. */
bool topics_failed(kafka_err_t err, const char *message);

/* --replica-assignment: brokers of each partition, all of one length. */
struct topics_assignment {
    kafka_replica_assignment_t *rows;
    int32_t *brokers; /* all rows' brokers, one after the other */
    size_t n;
};
/* text NULL: empty. Ends the process when it is not legal. */
void topics_assignment_parse(const struct tool *tool, const char *text,
                             struct topics_assignment *out);
void topics_assignment_free(struct topics_assignment *a);

#endif
