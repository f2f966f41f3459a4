/* replica_manager.h - all partitions hosted here. Applies LeaderAndIsr and StopReplica; finds
 * partitions for requests.
 *
 * THREADS  lookups: any thread, a short read lock. replica_manager_become / stop: one at a time
 * (the control queue), on a worker, since they make and remove folders. */
#ifndef REPLICA_REPLICA_MANAGER_H
#define REPLICA_REPLICA_MANAGER_H

#include "base/clock.h"
#include "base/workers.h"
#include "log/log_manager.h"
#include "metadata/metadata_cache.h"
#include "replica/partition.h"

struct replica_manager;
struct leader_and_isr_request;  /* generated */
struct leader_and_isr_response; /* generated */
struct stop_replica_request;    /* generated */
struct stop_replica_response;   /* generated */

struct replica_manager_options {
    int32_t broker_id;
    struct log_manager *logs;
    struct metadata_cache *metadata;
    struct workers *workers;
    const struct clock *clock;
    /* Settings of a topic, for logs that are made. Fills *c. */
    void (*topic_config)(void *arg, struct str topic, struct log_config *c);
    void *arg;
};
int replica_manager_new(const struct replica_manager_options *o, struct replica_manager **out);
void replica_manager_free(struct replica_manager *m);

/* Apply; the response is filled in the arena. Stale controller epochs are refused. @blocks folder
 * work */
void replica_manager_become(struct replica_manager *m, const struct leader_and_isr_request *req,
                            struct arena *a, struct leader_and_isr_response *out);
void replica_manager_stop(struct replica_manager *m, const struct stop_replica_request *req,
                          struct arena *a, struct stop_replica_response *out);

/* Returns shared (partition_unref). On NULL *why is: NOT_LEADER_OR_FOLLOWER (known to the metadata
 * cache, not here), UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR (its dir failed). */
struct partition *replica_manager_find(struct replica_manager *m, struct topic_partition tp,
                                       enum kerr *why);
int replica_manager_count(struct replica_manager *m);
void replica_manager_each(struct replica_manager *m, void (*each)(void *arg, struct partition *p),
                          void *arg);
/* A log dir failed: its partitions go offline, waiters are woken. @thread any */
void replica_manager_dir_failed(struct replica_manager *m, struct log_dir *d);
/* A topic's settings changed: its logs take them over. */
void replica_manager_topic_config_changed(struct replica_manager *m, struct str topic);

#endif
