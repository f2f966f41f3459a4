/* group_offsets.h - the committed offsets of one group: topic and partition -> offset, and what is
 * on its way to become one.
 *
 *   committed  position >= 0: the value is in the log there, and acknowledged
 *   pending    a plain commit is written and not yet acknowledged; readers who ask for stable
 *              offsets wait
 *   in a transaction  kept per producer until its marker comes, then put in place of what was
 *              committed at a lower position, or dropped
 *
 * INVARIANTS  (O1) committed_n and pending_n count the entries that are so.
 *             (O2) an entry's txns is the number of transactions that hold its partition.
 *             (O3) an entry that is neither committed nor pending nor in a transaction is gone.
 * OWNERSHIP   copies all text.
 *
 * THREADS     one. */
#ifndef COORDINATOR_GROUP_OFFSETS_H
#define COORDINATOR_GROUP_OFFSETS_H

#include "base/hmap.h"
#include "base/list.h"
#include "coordinator/group_records.h"

struct offset_entry {
    int32_t partition;
    int32_t txns;
    int64_t position; /* of the value's batch in the log; -1 = nothing committed */
    struct offset_value value;
    const void *pending; /* the newest commit on its way, NULL = none */
};

struct offset_topic {
    struct hnode node;
    struct str name;
    struct offset_entry *entries; /* in order of partition */
    int n, cap;
};

struct txn_offsets; /* one producer's open transaction */

struct group_offsets {
    struct hmap topics;
    struct hmap txns; /* by producer id */
    int committed_n, pending_n;
};

void group_offsets_init(struct group_offsets *o);
void group_offsets_free(struct group_offsets *o);
/* Nothing committed, pending or in a transaction? */
bool group_offsets_empty(const struct group_offsets *o);
/* Moves all of `from`, which is empty afterwards; `to` must be empty. */
void group_offsets_take(struct group_offsets *to, struct group_offsets *from);

bool group_offsets_has_topic(const struct group_offsets *o, struct str topic);
/* Borrowed until the next change; NULL when there is none. */
const struct offset_entry *group_offsets_find(const struct group_offsets *o, struct str topic,
                                              int32_t partition);
/* Puts the value in unless the present one comes from a later position. 0 or -ENOMEM. */
int group_offsets_set(struct group_offsets *o, struct str topic, int32_t partition,
                      const struct offset_value *v, int64_t position);
/* Removes the committed value. Was there one? */
bool group_offsets_remove(struct group_offsets *o, struct str topic, int32_t partition);

/* A commit is about to be written: notes it in place of an older pending one. 0 or -ENOMEM. */
int group_offsets_pend(struct group_offsets *o, struct str topic, int32_t partition,
                       const void *commit);
/* It is over, well or badly: forgets it, if it is still the newest. */
void group_offsets_unpend(struct group_offsets *o, struct str topic, int32_t partition,
                          const void *commit);

/* ---- transactions ---- */

/* Notes a value under the producer's transaction. position -1: it is being written. 0 or -ENOMEM.
 */
int group_offsets_txn_put(struct group_offsets *o, int64_t producer_id, struct str topic,
                          int32_t partition, const struct offset_value *v, int64_t position,
                          const void *commit);
/* The write of `commit` ended at `position`, or failed (-1): then its value is dropped. */
void group_offsets_txn_written(struct group_offsets *o, int64_t producer_id, struct str topic,
                               int32_t partition, const void *commit, int64_t position);
/* A tombstone inside a transaction. */
void group_offsets_txn_drop(struct group_offsets *o, int64_t producer_id, struct str topic,
                            int32_t partition);
/* The marker: a commit puts the values in place, in any case the transaction is over. Returns how
 * many values of a commit could not be put in place: not known to be written, or no memory. */
int group_offsets_txn_end(struct group_offsets *o, int64_t producer_id, bool commit);
bool group_offsets_has_txns(const struct group_offsets *o);

/* ---- walks ---- */

/* Each entry that is committed (position >= 0) or pending. The walk's function removes just this
 * entry from the committed ones by returning true. */
void group_offsets_each(struct group_offsets *o,
                        bool (*each)(void *arg, const struct offset_topic *t,
                                     const struct offset_entry *e),
                        void *arg);
/* NULL, or which invariant does not hold. */
const char *group_offsets_check(const struct group_offsets *o);

#endif
