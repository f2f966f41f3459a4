/* producer_ids.h - ids for producers, in blocks of 1000 that the metadata store gives out
 * (/latest_producer_id_block), so that no two brokers and no two lives of one ever give the same.
 *
 * A block is asked for when the first id is needed, and the next one ahead of time when 9/10 of a
 * block are given. After a failure nothing is asked for 50 ms; whoever waits is told. A crash
 * wastes what is left of the block, never more.
 *
 * THREADS  any may ask; the store's answers are handled on the executor given. */
#ifndef SERVER_PRODUCER_IDS_H
#define SERVER_PRODUCER_IDS_H

#include "base/executor.h"
#include "metadata/store.h"

enum { PRODUCER_ID_BLOCK = 1000 };

struct producer_ids;

/* Borrows store and executor. 0 or -ENOMEM. */
int producer_ids_new(struct store *store, struct executor *ex, int32_t broker_id,
                     struct producer_ids **out);
/* Nothing may be waiting. When the executor no longer runs. */
void producer_ids_free(struct producer_ids *p);

struct producer_id_wait {
    struct executor *done_on;
    void (*done)(struct producer_id_wait *w); /* on done_on, never before the call returns */
    int64_t id;                               /* result: -1 = none now, try again */
    /* private */
    struct list link;
    struct task task;
};
/* The caller's memory until done. */
void producer_ids_next(struct producer_ids *p, struct producer_id_wait *w);

#endif
