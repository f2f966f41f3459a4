/* group_shard.h - the groups of some partitions of __consumer_offsets: which are here, being loaded
 * or elsewhere, and every request's way to its group. Free of IO, as the groups are.
 *
 *   elsewhere --elected--> loading --loaded--> owned --resigned--> elsewhere
 *                            |  ^                |
 *                            |  +----elected-----+ (never: an owner that is elected again goes on)
 *                            +--failed, resigned--> elsewhere
 *
 * Each move carries the leader epoch of the partition; one that is older than the newest seen is
 * late news and does nothing. A broker may coordinate with several shards on executors of their
 * own, each with the partitions p for which p % shards == index.
 *
 * THREADS  the executor's. */
#ifndef COORDINATOR_GROUP_SHARD_H
#define COORDINATOR_GROUP_SHARD_H

#include "coordinator/group.h"

struct group_shard;

struct group_shard_options {
    struct group_env env; /* copied; what it points at is borrowed */
    int32_t partitions_n; /* of __consumer_offsets */
    int index, shards;
    int64_t check_interval_ms; /* between two looks for expired offsets */
    /* Start loading: group_shard_loaded with this number must follow, later, unless the shard asks
     * for a newer load of the same partition before. */
    void (*load)(void *arg, int32_t partition, int32_t leader_epoch, uint64_t load);
    void *arg;
};

/* 0 or -ENOMEM. Expiry begins with group_shard_start. */
int group_shard_new(const struct group_shard_options *o, struct group_shard **out);
void group_shard_start(struct group_shard *s);
/* What its groups are made with. Borrowed. @thread any */
const struct group_env *group_shard_env(const struct group_shard *s);
/* Answers all that is parked with NOT_COORDINATOR, and whatever comes from now on with
 * COORDINATOR_NOT_AVAILABLE. */
void group_shard_shut_down(struct group_shard *s);
/* Shuts down what is not yet. No write may be under way. After a shut down the executor is not
 * needed any more. */
void group_shard_free(struct group_shard *s);

/* This broker leads the partition from this epoch on. */
void group_shard_elected(struct group_shard *s, int32_t partition, int32_t leader_epoch);
/* It does not, or the partition is gone. leader_epoch -1: whatever was seen before. */
void group_shard_resigned(struct group_shard *s, int32_t partition, int32_t leader_epoch);
/* What is in memory is not what is in the log: forgets the partition's groups and loads them anew.
 */
void group_shard_reload(struct group_shard *s, int32_t partition);
/* What `load` was asked for has ended. Takes the groups' references (not the array); error: it
 * failed, no groups. A load that nobody wants any more is dropped. */
void group_shard_loaded(struct group_shard *s, int32_t partition, uint64_t load,
                        struct group **groups, int n, int error);

/* Lays the response out as the request is, in the call's arena, without errors; before submission.
 * false without memory. */
bool group_call_lay_out(struct group_call *c);
/* Is the request for one group only (its id in *id), or for a list of them, of which each shard
 * does its own? */
bool group_call_single(const struct group_call *c, struct str *id);
/* Handles it: single ones whole (`done` comes), lists as far as they are this shard's (`done` does
 * not come: the caller goes on with the next shard). */
void group_shard_handle(struct group_shard *s, struct group_call *c);

/* A transaction of the producer on this partition ended: its marker is in the log. */
void group_shard_txn_ended(struct group_shard *s, int32_t partition, int64_t producer_id,
                           bool commit);
/* Partitions of some topic were deleted. */
void group_shard_forget(struct group_shard *s, struct str topic, const int32_t *partitions, int n);

/* Groups and their committed offsets, for metrics. A group of KIP-848 counts by the state of the
 * classic protocol that is nearest: assigning as preparing, reconciling as completing. */
struct group_counts {
    int64_t groups, offsets, by_state[GROUP_STATES];
    struct group_events events;
};
/* Adds the shard's. */
void group_shard_count(const struct group_shard *s, struct group_counts *c);

/* For tests and figures. Borrowed; NULL when there is none. */
struct group *group_shard_find(const struct group_shard *s, struct str id);
int group_shard_groups(const struct group_shard *s);
const char *group_shard_check(const struct group_shard *s);

#endif
