/* group_op.h - a request on its way to the group coordinator and back to its connection's reactor.
 *
 * A connection that closes meanwhile takes the op back: a parked join or sync ends at once.
 *
 * OWNERSHIP  the request's arena; gone with the answer.
 *
 * THREADS    begin and finish on the reactor; in between the response and the arena are the
 *            coordinator's. */
#ifndef SERVER_GROUP_OP_H
#define SERVER_GROUP_OP_H

#include "coordinator/group_manager.h"
#include "server/config.h"
#include "server/request.h"

struct group_op {
    struct request *req;
    void *out; /* the API's response, laid out */
    /* What is left to do on the reactor before the answer goes out; NULL = nothing. */
    void (*finish)(struct group_op *op);
    /* private */
    struct group_call call;
    struct group_cancel cancel;
    struct task task;
    bool answered, cancelling;
};

/* Response and call for the request, laid out; not submitted yet. NULL: the request is gone. */
struct group_op *group_op_new(struct request *req, enum group_api api);
/* Hands it over; the answer follows by itself. */
void group_op_submit(struct group_op *op);
/* Answers without asking the coordinator. */
void group_op_answer(struct group_op *op);

/* Is it one of group.coordinator.rebalance.protocols? */
bool group_protocol_on(const struct config *c, const char *name);
/* Members that keep their place over restarts need brokers that all know of them. */
bool group_instances_allowed(const struct request *req);

#endif
