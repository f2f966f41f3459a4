/* txn_loading.h - what one partition of __transaction_state says, put together from its batches in
 * order: of each id the last word.
 *
 * DAMAGE   a record that cannot be read, or is of a version that is not known, is passed over with
 * a log line (the first few), and the rest loads. THREADS  one. */
#ifndef COORDINATOR_TXN_LOADING_H
#define COORDINATOR_TXN_LOADING_H

#include "coordinator/txn.h"
#include "protocol/record_batch.h"

struct txn_loading;

/* NULL without memory. Returns owned. */
struct txn_loading *txn_loading_new(int32_t partition);
void txn_loading_free(struct txn_loading *l); /* NULL is fine */
/* The next batch, whole at b->p. 0, or -ENOMEM: the load has failed. Damage is no failure. */
int txn_loading_add(struct txn_loading *l, const struct batch *b);
int64_t txn_loading_records(const struct txn_loading *l);
/* The ids, in an array that the caller frees, each the caller's reference. 0 or -ENOMEM. Once. */
int txn_loading_take(struct txn_loading *l, struct txn ***ids, int *n);

#endif
