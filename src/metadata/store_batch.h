/* store_batch.h - many requests to the store that go out together and are answered as one.
 *
 * The batch's memory, and that of its requests, is in the arena given to it; results live until
 * store_batch_clear. Filling never fails at once: without memory the batch is marked, submit sends
 * nothing and every request has status -ENOMEM (those that could be made).
 * THREADS  the executor's; store_batch_run: any. */
#ifndef METADATA_STORE_BATCH_H
#define METADATA_STORE_BATCH_H

#include "base/arena.h"
#include "metadata/store.h"

struct store_batch {
    struct arena *arena;
    struct list requests; /* of struct store_batched, in order */
    int n, left;
    bool failed; /* no memory */
    struct executor *done_on;
    void (*done)(struct store_batch *b);
    void *user;          /* the caller's; kept by store_batch_clear */
    int64_t deadline_ms; /* of each request; 0 = none; kept by store_batch_clear */
    struct task empty;   /* answers a batch without requests */
};
struct store_batched {
    struct store_request request;
    struct list link;
    struct store_batch *batch;
};

/* Borrows the arena. */
void store_batch_init(struct store_batch *b, struct arena *arena);
/* Adds a request of one operation; what the operation points at must live as long as the batch.
 * Returns borrowed until clear; NULL without memory. */
struct store_request *store_batch_add(struct store_batch *b, struct store_op op);
/* Adds a multi of two: `check` first (e.g. the controller's fence), then `op` as ops[1]. */
struct store_request *store_batch_add_checked(struct store_batch *b, struct store_op check,
                                              struct store_op op);
/* Adds a multi of n operations, copied. */
struct store_request *store_batch_add_multi(struct store_batch *b, const struct store_op *ops,
                                            int n);
/* Walk over the requests in the order they were added; NULL behind the last. */
struct store_request *store_batch_first(const struct store_batch *b);
struct store_request *store_batch_next(const struct store_batch *b, const struct store_request *r);
#define store_batch_each(r, b) \
    for (struct store_request *r = store_batch_first(b); r != NULL; r = store_batch_next(b, r))
/* Sends all; done(b) runs on done_on once all are answered, also when there are none. */
void store_batch_submit(struct store_batch *b, struct store *s, struct executor *done_on,
                        void (*done)(struct store_batch *b));
/* The same, waiting. 0, or -ENOMEM when it could not be sent. @blocks */
int store_batch_run(struct store_batch *b, struct store *s);
/* Frees the results and empties the batch (its memory goes with the arena). */
void store_batch_clear(struct store_batch *b);

#endif
