/* replica_manager.h - all partitions hosted here. Applies LeaderAndIsr and StopReplica; finds
 * partitions for requests.
 *
 * THREADS  lookups: any thread, a short read lock. replica_manager_become / stop: one at a time
 * (the control queue), on a worker, since they make and remove folders. Free only after the workers
 * have stopped. */
#ifndef REPLICA_REPLICA_MANAGER_H
#define REPLICA_REPLICA_MANAGER_H

#include "base/clock.h"
#include "base/workers.h"
#include "log/log_manager.h"
#include "metadata/metadata_cache.h"
#include "replica/partition.h"

struct fetchers;
struct isr_writer;
struct replica_manager;
struct leader_and_isr_request;  /* generated */
struct leader_and_isr_response; /* generated */
struct stop_replica_request;    /* generated */
struct stop_replica_response;   /* generated */
struct update_metadata_request; /* generated */

struct replica_manager_options {
    int32_t broker_id;
    struct log_manager *logs;
    struct metadata_cache *metadata;
    struct workers *workers;
    const struct clock *clock;
    int64_t replica_lag_ms;        /* replica.lag.time.max.ms; 0 = the default */
    struct fetchers *fetchers;     /* borrowed; NULL: followers do not fetch (tests) */
    struct isr_writer *isr_writer; /* borrowed; NULL: ISRs of leaders never change (tests) */
    struct str
        inter_broker_listener; /* where leaders are fetched from; borrowed. Empty: the first */
    bool count_topics;         /* for partition_counts */
    /* A log dir failed, and its partitions are offline here. On a worker. May be NULL. */
    void (*dir_lost)(void *arg);
    /* Settings of a topic, for logs that are made. Fills *c. */
    void (*topic_config)(void *arg, struct str topic, struct log_config *c);
    void *arg;
};
int replica_manager_new(const struct replica_manager_options *o, struct replica_manager **out);
void replica_manager_free(struct replica_manager *m);

/* Told of what control requests changed, after it is in force. For one partition in the order of
 * the changes, for different ones maybe at once. Must not block, nor call this room. Any may be
 * NULL.
 * @thread the one that applies the request */
struct replica_listener {
    struct replica_listener *next; /* the manager's */
    /* This broker leads the partition in this epoch, whether or not it led it before. */
    void (*led)(struct replica_listener *l, struct topic_partition tp, int32_t leader_epoch);
    /* Another broker does, or the log dir here has failed, or (leader_epoch -1) the replica here
     * was deleted. */
    void (*resigned)(struct replica_listener *l, struct topic_partition tp, int32_t leader_epoch);
    /* These partitions of the topic are being deleted from the cluster. */
    void (*deleted)(struct replica_listener *l, struct str topic, const int32_t *partitions, int n);
};
/* Before the first control request; `l` must live as long as the manager. */
void replica_manager_listen(struct replica_manager *m, struct replica_listener *l);

/* Epoch of this broker's registration: control requests meant for an earlier one are refused. -1
 * (at start) refuses none. @thread any */
void replica_manager_set_broker_epoch(struct replica_manager *m, int64_t epoch);
/* Apply a control request. The response (already initialised) is filled in the arena, in the form
 * of the request's version. Whole requests are refused with STALE_BROKER_EPOCH, or
 * STALE_CONTROLLER_EPOCH when a newer controller was heard, whichever kind of request it sent.
 * @blocks folder work */
void replica_manager_become(struct replica_manager *m, int version,
                            const struct leader_and_isr_request *req, struct arena *a,
                            struct leader_and_isr_response *out);
void replica_manager_stop(struct replica_manager *m, const struct stop_replica_request *req,
                          struct arena *a, struct stop_replica_response *out);
/* The same checks, then into the metadata cache. */
enum kerr replica_manager_update_metadata(struct replica_manager *m,
                                          const struct update_metadata_request *req);

/* Returns shared (partition_unref). On NULL *why is: NOT_LEADER_OR_FOLLOWER (known to the metadata
 * cache, not here), UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR (its dir failed). */
struct partition *replica_manager_find(struct replica_manager *m, struct topic_partition tp,
                                       enum kerr *why);
int replica_manager_count(struct replica_manager *m);
/* Does any other broker have a replica of something that this one leads? @thread any */
bool replica_manager_leads_for_others(struct replica_manager *m);
void replica_manager_each(struct replica_manager *m, void (*each)(void *arg, struct partition *p),
                          void *arg);
/* Topics that have a partition here, with what was counted for them (count_topics). */
void replica_manager_each_topic(struct replica_manager *m,
                                void (*each)(void *arg, const struct topic_counts *c), void *arg);
/* ISR changes of this broker's leaderships since the start: written, and refused. @thread any */
void replica_manager_isr_changes(const struct replica_manager *m, uint64_t *shrinks,
                                 uint64_t *expands, uint64_t *refused);
/* Bytes of records that followers here took from their leaders since the start. @thread any */
uint64_t replica_manager_bytes_in(const struct replica_manager *m);
/* Those of them that a reassignment brought here. @thread any */
uint64_t replica_manager_moved_in(const struct replica_manager *m);
/* Looks for members of ISRs that lag: due every half replica.lag.time.max.ms. @thread any */
void replica_manager_shrink_isrs(struct replica_manager *m);
/* num.replica.fetchers is this now: what is followed is spread anew. @thread any; @blocks */
void replica_manager_set_fetchers(struct replica_manager *m, int per_source);
/* A log dir failed: its partitions go offline and waiters are woken, by a job on the workers, so it
 * may be called from under any lock. @thread any */
void replica_manager_dir_failed(struct replica_manager *m, struct log_dir *d);
/* A topic's settings changed: its logs take them over. @thread any */
void replica_manager_topic_config_changed(struct replica_manager *m, struct str topic);

#endif
