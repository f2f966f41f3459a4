/* txn_partitions.h - the partitions that a transaction has written to, or is about to: a set.
 *
 * OWNERSHIP  owns its names. Empty sets own nothing.
 * THREADS  one at a time. */
#ifndef COORDINATOR_TXN_PARTITIONS_H
#define COORDINATOR_TXN_PARTITIONS_H

#include "base/str.h"

struct txn_topic {
    struct str name;
    int32_t *v; /* partitions, rising */
    int n, cap;
};
struct txn_partitions {
    struct txn_topic *topics; /* in order of their coming; none is without partitions */
    int n, cap;
};
#define TXN_PARTITIONS_INIT ((struct txn_partitions){0})

void txn_partitions_free(struct txn_partitions *s); /* empty, ready for use again */
/* 0, also when it was there; -ENOMEM: nothing has changed. */
int txn_partitions_add(struct txn_partitions *s, struct str topic, int32_t partition);
bool txn_partitions_has(const struct txn_partitions *s, struct str topic, int32_t partition);
int txn_partitions_count(const struct txn_partitions *s);
/* Adds all of `from`. 0; -ENOMEM: some may have been added. */
int txn_partitions_add_all(struct txn_partitions *s, const struct txn_partitions *from);

#endif
