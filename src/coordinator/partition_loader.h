/* partition_loader.h - reading one partition of an internal topic from the log, batch by batch.
 *
 * Everything up to the log END is read, not only up to the high watermark: what this leader has in
 * its log will be committed, and nothing of it may be lost to the coordinator. But nobody may be
 * told of it before it is: led_partitions.h waits for that.
 *
 * THREADS  any, mostly one that may wait; `add` is called on it. */
#ifndef COORDINATOR_PARTITION_LOADER_H
#define COORDINATOR_PARTITION_LOADER_H

#include "protocol/record_batch.h"
#include "replica/replica_manager.h"

struct partition_load {
    /* in */
    struct replica_manager *replicas;
    struct str topic;
    int32_t partition, leader_epoch;
    size_t buffer_size; /* larger batches get what they need */
    /* The next batch, whole at b->p. 0, or -errno that ends the load. */
    int (*add)(void *arg, const struct batch *b);
    void *arg;
    /* out */
    int64_t offset; /* how far it came */
    uint32_t term;  /* of the leader whose log was read (partition_check_committed) */
};
/* From the start of the log to its end as it is when that is reached. 0; -ECANCELED: this broker
 * does not lead the partition any more; -EIO, -ENOMEM, -EBADMSG: the log cannot be read; or what
 * `add` says. @blocks */
int partition_load_run(struct partition_load *l);

#endif
