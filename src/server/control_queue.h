/* control_queue.h - what changes replicas and metadata, one at a time: LeaderAndIsr, UpdateMetadata
 * and StopReplica, whether they come over the wire or from the controller in this process.
 *
 * Ops run in the order in which they were submitted, each on some worker (they make and remove
 * folders), never two at once.
 *
 * THREADS  any may submit. */
#ifndef SERVER_CONTROL_QUEUE_H
#define SERVER_CONTROL_QUEUE_H

#include "base/executor.h"
#include "base/workers.h"

struct control_queue;

/* The caller's memory until `done` has been called. */
struct control_op {
    struct list link;
    struct task task;
    struct executor *done_on;
    void (*work)(struct control_op *op); /* on a worker */
    void (*done)(struct control_op *op); /* on done_on; may free the op */
};

/* Borrows the workers. 0 or -ENOMEM. */
int control_queue_new(struct workers *w, struct control_queue **out);
/* After the workers have stopped: nothing is queued any more. */
void control_queue_free(struct control_queue *q);
void control_queue_submit(struct control_queue *q, struct control_op *op);

#endif
