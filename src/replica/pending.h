/* pending.h - an operation that waits for partitions: acks=all, fetch min bytes, and later deletion
 * of records.
 *
 * It watches partitions, has a deadline, and ends exactly once: when `changed` says that the whole
 * can end, at the deadline, or by pending_cancel. Everything of its owner runs on its executor:
 * wakes on other threads mark the watch and post one task, however many there are until it runs,
 * and that task looks at the marked watches only.
 *
 * MEMORY  all of it is the owner's (the request's arena); nothing is touched after `finish` has
 *         been called. */
#ifndef REPLICA_PENDING_H
#define REPLICA_PENDING_H

#include <stdatomic.h>

#include "base/executor.h"
#include "replica/partition.h"

struct pending;

enum pending_end { PENDING_READY, PENDING_EXPIRED, PENDING_CANCELLED };

struct pending_watch {
    struct partition_waiter waiter;
    struct pending *pending;
    atomic_bool dirty; /* woken since last looked at */
};

struct pending_ops {
    /* The partition of watches[i] moved, or waiting begins: look again. True: the whole can end. */
    bool (*changed)(struct pending *p, int i);
    /* The last call. May free all memory. */
    void (*finish)(struct pending *p, enum pending_end why);
};

struct pending {
    const struct pending_ops *ops;
    struct executor *ex;
    struct pending_watch *watches;
    int watches_n;
    /* private */
    struct task task;
    struct timer timer;
    atomic_bool posted;
    bool ended;
    enum pending_end why;
};

/* Watches partitions[0..n-1] (NULL ones are passed over), looks at each once, and arms the
 * deadline. finish may come before the call returns. @thread the executor's */
void pending_start(struct pending *p, const struct pending_ops *ops, struct executor *ex,
                   struct pending_watch *watches, struct partition *const *partitions, int n,
                   int64_t timeout_ms);
/* Ends it now, unless it has ended: finish(PENDING_CANCELLED) comes, maybe before the call returns.
 * @thread the executor's */
void pending_cancel(struct pending *p);
/* As if its deadline had come. @thread the executor's */
void pending_hurry(struct pending *p);

#endif
