/* txn_op.h - a request on its way to the transaction coordinator and back to its connection's
 * reactor: one call, or several that are answered together.
 *
 * OWNERSHIP  the request's arena; gone with the answer.
 * THREADS    begin and answer on the reactor; in between the calls are the coordinator's. */
#ifndef SERVER_TXN_OP_H
#define SERVER_TXN_OP_H

#include <stdatomic.h>

#include "coordinator/txn_manager.h"
#include "server/request.h"

struct txn_op {
    struct request *req;
    struct txn_call *calls; /* filled in by the handler but for `done` */
    int n;
    void *user; /* the handler's */
    /* All calls are done: on the reactor. */
    void (*answer)(struct txn_op *op);
    /* private */
    atomic_int left;
    struct task task;
};

/* Not submitted yet, with n calls; zeroed. NULL: the request is gone. */
struct txn_op *txn_op_new(struct request *req, int n, void (*answer)(struct txn_op *op));
/* Hands the calls over; those that have an error already stay here. */
void txn_op_submit(struct txn_op *op);

/* Before the version that knows of PRODUCER_FENCED it is told as INVALID_PRODUCER_EPOCH. */
enum kerr txn_op_error(const struct request *req, enum kerr e, int first_version_fenced);

#endif
