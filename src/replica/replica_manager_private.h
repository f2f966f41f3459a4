/* replica_manager_private.h - the insides of the replica manager, for this room only. */
#ifndef REPLICA_REPLICA_MANAGER_PRIVATE_H
#define REPLICA_REPLICA_MANAGER_PRIVATE_H

#include "replica/partition_private.h"
#include "replica/replica_manager.h"

struct replica_manager {
    struct replica_manager_options o; /* fixed */
    struct partition_env env;         /* fixed */
    _Atomic int64_t broker_epoch;

    /* Key: topic and number; the map holds a reference on each partition. Taken after `control`. */
    pthread_rwlock_t map_lock;
    struct hmap map;
    struct hmap topics; /* of topic_counts.h; under map_lock */
    struct replica_counts counts;

    /* Held over every control request and over the handling of a failed log dir: roles change under
     * it and nowhere else. */
    pthread_mutex_t control;
    int32_t controller_epoch; /* newest heard, of all kinds of requests; under control */
    atomic_bool some_await;   /* a partition may await its leader; changed under control */
};

/* replica_listeners.c: tells the listeners. No lock but `control` may be held. */
void replica_listeners_led(const struct partition *p, int32_t leader_epoch);
void replica_listeners_resigned(const struct partition *p, int32_t leader_epoch);
/* Those partitions of the request that are marked as being deleted. */
void replica_listeners_deleted(struct replica_manager *m, const struct update_metadata_request *r);

/* May the request be obeyed? Remembers the controller's epoch. `control` held. */
enum kerr replica_manager_check_epochs(struct replica_manager *m, int64_t broker_epoch,
                                       int32_t controller_epoch);
/* Returns shared, or NULL when there is none here (no role is looked at). */
struct partition *replica_manager_lookup(struct replica_manager *m, struct topic_partition tp);
/* The same, made when missing. NULL without memory. `control` held. */
struct partition *replica_manager_lookup_or_make(struct replica_manager *m,
                                                 struct topic_partition tp);
/* Where brokers reach this one; NULL when it has no such listener. */
const struct endpoint *replica_manager_endpoint(const struct replica_manager *m,
                                                const struct broker_info *b);
/* Metadata has changed: those that await a leader that is known now follow it. `control` held. */
void replica_manager_follow_awaited(struct replica_manager *m);
/* It is not fetched any more. `control` held. */
void replica_manager_unfollow(struct replica_manager *m, struct partition *p);
/* Drops it from the map. `control` held. */
void replica_manager_forget(struct replica_manager *m, struct partition *p);

/* Many partitions are done in several lanes at once, for the sake of their fsyncs. */
#define LANES_MAX 8
#define PARTITIONS_PER_LANE 8

static inline int control_lanes(int32_t partitions)
{
    int32_t lanes = (partitions + PARTITIONS_PER_LANE - 1) / PARTITIONS_PER_LANE;
    return lanes < LANES_MAX ? (int)lanes : LANES_MAX;
}

static inline int control_lane(struct topic_partition tp, int lanes)
{
    return (int)((hash_str(tp.topic) + (uint32_t)tp.partition) % (unsigned)lanes);
}

#endif
