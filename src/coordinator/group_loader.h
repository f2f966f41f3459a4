/* group_loader.h - reading one partition of __consumer_offsets from the log, on a worker. */
#ifndef COORDINATOR_GROUP_LOADER_H
#define COORDINATOR_GROUP_LOADER_H

#include "coordinator/group_loading.h"
#include "replica/replica_manager.h"

struct group_load {
    /* in */
    struct replica_manager *replicas;
    int32_t partition, leader_epoch;
    size_t buffer_size; /* offsets.load.buffer.size; larger batches get what they need */
    const struct group_env *env;
    const struct clock *clock;
    /* out: the groups, in an array that the caller frees */
    struct group **groups;
    int n;
    int64_t end;   /* how far it came */
    uint32_t term; /* partition_loader.h */
    int error;     /* -ECANCELED: this broker does not lead the partition any more; -EIO, -ENOMEM,
                      -EBADMSG: the log cannot be read */
};
/* From the start of the log to its end as it is when that is reached. @blocks */
void group_load_run(struct group_load *l);

#endif
