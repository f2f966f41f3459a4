/* group_log.h - how groups, and transactional ids, write their records down: the real form appends
 * to a partition of their topic and waits for its replicas (offsets_log.h), tests have one that
 * obeys them.
 *
 * THREADS  the executor of those that use it. */
#ifndef COORDINATOR_GROUP_LOG_H
#define COORDINATOR_GROUP_LOG_H

#include "base/executor.h"
#include "base/list.h"
#include "coordinator/group_records.h"
#include "protocol/errors.h"

/* One batch on its way into the log. Memory of whoever asked, until `done`. */
struct group_append {
    int32_t partition;
    int64_t producer_id; /* -1, -1: not part of a transaction */
    int16_t producer_epoch;
    uint64_t txn_guard; /* for a transaction that opens with it (log/txn_guards.h); 0: none */
    int64_t timeout_ms; /* for its replicas; 0: the log's. It ends after those before it */
    /* Later, never from inside append: error and base_offset stand. */
    void (*done)(struct group_append *a);
    enum kerr error; /* as the log says it, unmapped */
    int64_t base_offset;
    /* private to the log */
    struct list link;
    int64_t required_offset, deadline_ms;
    uint32_t term;
    struct task task;
    void *owner;
};

struct group_log;
struct group_log_ops {
    /* All records in one batch, acknowledged as offsets.commit.required.acks wants. Copies them. */
    void (*append)(struct group_log *log, struct group_append *a,
                   const struct group_record *records, int n);
    /* The same without waiting for replicas (acks 0), in as many batches as their size needs: for
     * tombstones, whose loss only means that they are written once more. */
    enum kerr (*append_now)(struct group_log *log, int32_t partition,
                            const struct group_record *records, int n);
};
struct group_log {
    const struct group_log_ops *ops;
};

#endif
