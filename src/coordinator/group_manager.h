/* group_manager.h - the group coordinator of a broker: shards on executors of their own, the
 * partitions of __consumer_offsets as this broker wins and loses them, loads on workers.
 *
 * THREADS  any may submit; a request goes to the shard of its group's partition, requests for lists
 *          of groups pass through all shards in turn. News of partitions come from the threads that
 *          apply control requests and are handed on, for one partition in order.
 * LIFE     new -> (requests, news) -> shut_down -> free. */
#ifndef COORDINATOR_GROUP_MANAGER_H
#define COORDINATOR_GROUP_MANAGER_H

#include "coordinator/group_shard.h"
#include "protocol/compression.h"
#include "replica/replica_manager.h"

struct group_manager;

struct group_manager_options {
    struct executor *const *executors; /* one a shard; they outlive the manager's shut down */
    int shards;                        /* >= 1 */
    struct replica_manager *replicas;
    struct workers *workers;
    const struct clock *clock;
    struct metadata_cache *metadata; /* the cluster's topics, for the new protocol */
    struct group_config config;
    int32_t partitions_n;      /* of __consumer_offsets */
    int64_t check_interval_ms; /* offsets.retention.check.interval.ms */
    enum codec codec;          /* offsets.topic.compression.codec */
    int16_t required_acks;     /* offsets.commit.required.acks */
    int64_t append_timeout_ms; /* offsets.commit.timeout.ms */
    size_t load_buffer_size;   /* offsets.load.buffer.size */
    int loads_at_once;         /* partitions that are loaded at the same time; >= 1 */
};

/* Listens to the replica manager from now on, so before its first control request; it must be freed
 * after the replica manager. 0 or -ENOMEM. */
int group_manager_new(const struct group_manager_options *o, struct group_manager **out);
int32_t group_manager_partitions(const struct group_manager *m);

/* Hands the call to its coordinator; `done` comes on a shard's thread, perhaps before this returns.
 * The response must be laid out (group_call_lay_out). */
void group_manager_submit(struct group_manager *m, struct group_call *c);
/* The client of a submitted call is gone, or says nothing more: if it is parked it ends now.
 * `cancelled` comes on the shard's thread when that is through, after which (and after `done`) c
 * may be freed. */
struct group_cancel {
    struct task task;
    struct group_call *call;
    void (*cancelled)(struct group_cancel *c);
};
void group_manager_cancel(struct group_manager *m, struct group_cancel *c);

/* The marker of the producer's transaction is in the log of this partition of __consumer_offsets.
 */
void group_manager_txn_ended(struct group_manager *m, int32_t partition, int64_t producer_id,
                             bool commit);

/* What all shards have. @blocks until each has looked; before the shut down; @thread any but a
 * shard's */
void group_manager_count(struct group_manager *m, struct group_counts *out);

/* Ends what is parked; from now on calls are answered with COORDINATOR_NOT_AVAILABLE and nothing is
 * loaded. It is down when no write and no load is under way any more. Once. */
void group_manager_begin_shut_down(struct group_manager *m);
bool group_manager_is_down(struct group_manager *m);
/* Both, and waits. @blocks; the workers must still run */
void group_manager_shut_down(struct group_manager *m);
/* After the shut down, and after the executors have run what was posted to them. NULL is fine. */
void group_manager_free(struct group_manager *m);

#endif
