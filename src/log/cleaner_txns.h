/* cleaner_txns.h - which transaction a batch belongs to, while compaction walks the log in order.
 *
 * ABORTED    known from the transaction indexes, before their batches come: from a transaction's
 *            first offset until its marker all transactional batches of the producer are its data.
 * COMMITTED  any other transactional data, up to the producer's next marker.
 * A marker is removable when the walk has met no data of its transaction since the producer's
 * marker before; then nobody needs it to know how the data ended. The data of aborted transactions
 * is always removable, but it has been met: so its marker stays for one more compaction.
 * THREADS    one. */
#ifndef LOG_CLEANER_TXNS_H
#define LOG_CLEANER_TXNS_H

#include "base/hmap.h"
#include "log/producer_state.h"
#include "log/txn_index.h"

struct cleaner_txns {
    struct txn_entry *coming; /* aborted ones whose first offset was not reached, by first offset */
    size_t at, n, cap;        /* [at, n) is left */
    struct hmap open;         /* struct open_txn (cleaner_txns.c), by producer */
};

void cleaner_txns_init(struct cleaner_txns *t);
void cleaner_txns_free(struct cleaner_txns *t);
/* An aborted transaction of a part of the log that comes next. Telling it twice does no harm. The
 * last one of a part is followed by cleaner_txns_ready. 0 or -ENOMEM. */
int cleaner_txns_add(struct cleaner_txns *t, const struct txn_entry *e);
void cleaner_txns_ready(struct cleaner_txns *t);
/* A data batch: *removable when it is of an aborted transaction. 0 or -ENOMEM. */
int cleaner_txns_data(struct cleaner_txns *t, const struct batch *b, bool *removable);
/* A control batch and what it says: may it go? *has_entry with the transaction's index entry, which
 * must be kept with it, when it is the end of an aborted one whose data was met. 0 or -ENOMEM. */
int cleaner_txns_marker(struct cleaner_txns *t, const struct batch *b, const struct txn_marker *m,
                        bool *removable, struct txn_entry *entry, bool *has_entry);

#endif
