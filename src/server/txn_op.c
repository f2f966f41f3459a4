/* txn_op.c - see txn_op.h. */
#include "server/txn_op.h"

#include "server/broker.h"

struct txn_op *txn_op_new(struct request *req, int n, void (*answer)(struct txn_op *op))
{
    struct txn_op *op = arena_new(req->arena, struct txn_op);
    struct txn_call *calls = op ? arena_array(req->arena, struct txn_call, (size_t)n) : NULL;
    if (!calls) {
        request_no_memory(req);
        return NULL;
    }
    op->req = req;
    op->calls = calls;
    op->n = n;
    op->answer = answer;
    return op;
}

/* ---- on the coordinator's thread ---- */

static void all_done(struct task *t)
{
    struct txn_op *op = container_of(t, struct txn_op, task);
    struct broker *b = op->req->broker;
    op->answer(op);
    broker_async_end(b);
}

static void one_done(struct txn_op *op)
{
    if (atomic_fetch_sub(&op->left, 1) == 1)
        executor_post(request_executor(op->req), &op->task);
}

static void call_done(struct txn_call *c)
{
    one_done(c->owner);
}

/* ---- on the reactor ---- */

void txn_op_submit(struct txn_op *op)
{
    struct broker *b = op->req->broker;
    broker_async_begin(b);
    task_init(&op->task, all_done);
    atomic_init(&op->left, 1); /* the last call may be done before the next line */
    for (int i = 0; i < op->n; i++) {
        struct txn_call *c = &op->calls[i];
        if (c->error != KERR_NONE)
            continue;
        c->owner = op;
        c->done = call_done;
        atomic_fetch_add(&op->left, 1);
        txn_manager_submit(broker_txns(b), c);
    }
    one_done(op);
}

enum kerr txn_op_error(const struct request *req, enum kerr e, int first_version_fenced)
{
    bool old = request_version(req) < first_version_fenced;
    return e == KERR_PRODUCER_FENCED && old ? KERR_INVALID_PRODUCER_EPOCH : e;
}
