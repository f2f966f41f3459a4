/* paths.h - where the nodes of a ZooKeeper-mode cluster are. The functions build a path in the
 * arena, NULL without memory. */
#ifndef METADATA_PATHS_H
#define METADATA_PATHS_H

#include "base/arena.h"

#define PATH_CLUSTER_ID "/cluster/id"
#define PATH_BROKER_IDS "/brokers/ids"
#define PATH_BROKER_SEQID "/brokers/seqid"
#define PATH_TOPICS "/brokers/topics"
#define PATH_CONTROLLER "/controller"
#define PATH_CONTROLLER_EPOCH "/controller_epoch"
#define PATH_DELETE_TOPICS "/admin/delete_topics"
#define PATH_REASSIGN "/admin/reassign_partitions"
#define PATH_PREFERRED "/admin/preferred_replica_election"
#define PATH_ISR_CHANGE_PREFIX "/isr_change_notification/isr_change_"
#define PATH_LOG_DIR_EVENT_PREFIX "/log_dir_event_notification/log_dir_event_"
#define PATH_ISR_CHANGES "/isr_change_notification"
#define PATH_LOG_DIR_EVENTS "/log_dir_event_notification"
#define PATH_CONFIG "/config"
#define PATH_CONFIG_TOPICS "/config/topics"
#define PATH_CONFIG_CHANGES "/config/changes"
#define PATH_CONFIG_CHANGE_PREFIX "/config/changes/config_change_"
#define PATH_PRODUCER_IDS "/latest_producer_id_block"
#define PATH_FEATURE "/feature"

static inline char *path_broker(struct arena *a, int32_t id)
{
    return arena_printf(a, PATH_BROKER_IDS "/%d", id);
}
static inline char *path_topic(struct arena *a, struct str topic)
{
    return arena_printf(a, PATH_TOPICS "/%.*s", (int)topic.len, topic.p);
}
static inline char *path_partitions(struct arena *a, struct str topic)
{
    return arena_printf(a, PATH_TOPICS "/%.*s/partitions", (int)topic.len, topic.p);
}
static inline char *path_partition(struct arena *a, struct str topic, int32_t partition)
{
    return arena_printf(a, PATH_TOPICS "/%.*s/partitions/%d", (int)topic.len, topic.p, partition);
}
static inline char *path_state(struct arena *a, struct str topic, int32_t partition)
{
    return arena_printf(a, PATH_TOPICS "/%.*s/partitions/%d/state", (int)topic.len, topic.p,
                        partition);
}
static inline char *path_delete_topic(struct arena *a, struct str topic)
{
    return arena_printf(a, PATH_DELETE_TOPICS "/%.*s", (int)topic.len, topic.p);
}
static inline char *path_topic_config(struct arena *a, struct str topic)
{
    return arena_printf(a, PATH_CONFIG_TOPICS "/%.*s", (int)topic.len, topic.p);
}

#endif
