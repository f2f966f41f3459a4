/* producer_ids.h - producer ids for this broker, out of blocks of 1000 that are taken from the
 * store.
 *
 * Nothing is taken at start: the first call that needs an id asks for a block and gets -EAGAIN, as
 * every one while there is none. Handing out the id at 90 % of a block asks for the next one. After
 * an error the next try is at least 50 ms later, and made by a call.
 * THREADS  producer_ids_next: any; the rest: the executor's. */
#ifndef METADATA_PRODUCER_IDS_H
#define METADATA_PRODUCER_IDS_H

#include "metadata/store.h"

enum { PRODUCER_IDS_BLOCK = 1000 };

/* Ends one allocation: status 0 and the block, or -errno. */
typedef void (*producer_ids_cb)(void *arg, int status, int64_t start, int32_t length);

/* Takes the next block in /latest_producer_id_block for `broker_id`: read, write conditionally, and
 * again on a conflict. -ERANGE: no ids are left, for ever. cb runs on ex. @thread any */
int producer_ids_allocate(struct store *s, struct executor *ex, int32_t broker_id,
                          producer_ids_cb cb, void *arg);

struct producer_ids;
struct producer_ids_options {
    struct executor *ex;
    /* Asks for a block; ends in cb, on ex, once. Runs on ex. (Here: producer_ids_allocate; in a
     * cluster: AllocateProducerIds to the controller.) 0, or -errno and no cb. */
    int (*allocate)(void *arg, producer_ids_cb cb, void *cb_arg);
    void *arg;
};
int producer_ids_new(const struct producer_ids_options *o, struct producer_ids **out);
/* When nobody asks any more and no allocation is under way. */
void producer_ids_free(struct producer_ids *p);
/* 0 and an id never given before; -EAGAIN: none now, one was asked for. @thread any */
int producer_ids_next(struct producer_ids *p, int64_t *id);

#endif
