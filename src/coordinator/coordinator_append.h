/* coordinator_append.h - a batch that this broker itself writes into a partition that it leads:
 * records of its coordinators, markers of transactions.
 *
 * THREADS  any, as partition_append. */
#ifndef COORDINATOR_COORDINATOR_APPEND_H
#define COORDINATOR_COORDINATOR_APPEND_H

#include "base/buf.h"
#include "replica/partition.h"

/* Appends the batches in `bytes`, whose heads are filled in there. txn_guard: log/txn_guards.h, 0
 * outside transactions. *flush_messages: of the log's settings. The errors of partition_append, or
 * of records_prepare. */
enum kerr coordinator_append(struct partition *p, struct buf *bytes, uint64_t txn_guard,
                             int16_t acks, int64_t now_ms, struct partition_append *out,
                             int64_t *flush_messages);

#endif
