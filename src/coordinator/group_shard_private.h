/* group_shard_private.h - the insides of a shard: group_shard.c keeps the partitions and groups,
 * group_requests.c brings requests to them. */
#ifndef COORDINATOR_GROUP_SHARD_PRIVATE_H
#define COORDINATOR_GROUP_SHARD_PRIVATE_H

#include "coordinator/group_private.h"
#include "coordinator/group_shard.h"
#include "coordinator/key_partition.h"

enum shard_partition_state { PARTITION_ELSEWHERE, PARTITION_LOADING, PARTITION_OWNED };

struct shard_partition {
    enum shard_partition_state state;
    int32_t epoch;   /* newest leader epoch heard of; -1 */
    uint64_t load;   /* that it waits for, while loading */
    int64_t load_ms; /* when that began; monotonic */
    bool again;      /* that has failed, and may do better later */
    struct list groups;
    struct list ended; /* struct ended_txn (group_shard.c), heard of while loading */
};

struct group_shard {
    struct group_shard_options o;
    struct group_events events;
    bool active;
    struct hmap groups; /* by id; one reference each */
    struct shard_partition *partitions;
    int loading_n;
    uint64_t loads; /* begun so far */
    struct timer expiry_timer;
    struct timer again_timer; /* while loads that failed are to be tried again */
    struct task expiry_task;
    int32_t expiry_at; /* partition that is looked at next */
    bool expiry_posted;
};

/* Made when missing. NULL without memory. */
struct group *group_shard_get(struct group_shard *s, struct str id, int32_t partition);
/* Drops the group when it is Dead. */
void group_shard_reap(struct group_shard *s, struct group *g);
/* Drops the group when nothing was made of it: no member, no id handed out, no record, no offset.
 */
void group_shard_drop_unused(struct group_shard *s, struct group *g);

#endif
