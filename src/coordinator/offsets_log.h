/* offsets_log.h - a coordinator's log in its real form: batches into the partitions of its internal
 * topic that this broker leads, acknowledged by its replicas. Groups write into __consumer_offsets,
 * transactional ids into __transaction_state.
 *
 * ACKS     offsets.commit.required.acks: with -1 an append ends when the high watermark has passed
 *          it, or with REQUEST_TIMED_OUT after offsets.commit.timeout.ms (it may still be committed
 *          then, as any produce request may).
 * ORDER    appends to one partition end in the order in which they were made, but for those that
 *          could not be made.
 * THREADS  the executor's, but for the wakes of partitions. The append itself (one write to the
 * page cache) happens there too. */
#ifndef COORDINATOR_OFFSETS_LOG_H
#define COORDINATOR_OFFSETS_LOG_H

#include "base/workers.h"
#include "coordinator/group_log.h"
#include "protocol/compression.h"
#include "replica/replica_manager.h"

struct offsets_log;

struct offsets_log_options {
    struct str topic; /* static text */
    struct executor *ex;
    struct replica_manager *replicas;
    struct workers *workers;
    int32_t partitions_n;
    enum codec codec; /* offsets.topic.compression.codec */
    int16_t required_acks;
    int64_t timeout_ms;
};

/* 0 or -ENOMEM. */
int offsets_log_new(const struct offsets_log_options *o, struct offsets_log **out);
struct group_log *offsets_log_of(struct offsets_log *l);
/* Ends what waits for replicas with NOT_LEADER_OR_FOLLOWER, and everything that comes from now on.
 */
void offsets_log_stop(struct offsets_log *l);
/* Appends that have not ended, and what else is under way; after the stop it comes to 0. @thread
 * any
 */
int offsets_log_busy(const struct offsets_log *l);
/* Stopped, and not busy; or never used. */
void offsets_log_free(struct offsets_log *l);

#endif
