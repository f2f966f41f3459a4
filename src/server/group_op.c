/* group_op.c - see group_op.h. */
#include "server/group_op.h"

#include "server/broker.h"
#include "server/config_value.h"

struct group_op *group_op_new(struct request *req, enum group_api api)
{
    struct group_op *op = arena_new(req->arena, struct group_op);
    void *out = op ? arena_calloc(req->arena, 1, req->api->response->body->size) : NULL;
    if (!out) {
        request_no_memory(req);
        return NULL;
    }
    msg_init(req->api->response, out);
    op->req = req;
    op->out = out;
    char *host = arena_printf(req->arena, "/%s", conn_peer_host(req->net->conn));
    op->call = (struct group_call){.api = api,
                                   .version = request_version(req),
                                   .client_id = req->header.client_id,
                                   .client_host = str_of(host),
                                   .in = req->body,
                                   .out = out,
                                   .arena = req->arena};
    if (host && group_call_lay_out(&op->call))
        return op;
    request_no_memory(req);
    return NULL;
}

void group_op_answer(struct group_op *op)
{
    if (op->call.no_memory) {
        request_no_memory(op->req);
        return;
    }
    if (op->finish)
        op->finish(op);
    request_respond(op->req, op->out);
}

static void end(struct group_op *op)
{
    struct broker *b = op->req->broker;
    group_op_answer(op);
    broker_async_end(b);
}

/* ---- on the reactor: the end, when both the call and a cancellation of it are back ---- */

static void answered(struct task *t)
{
    struct group_op *op = container_of(t, struct group_op, task);
    op->answered = true;
    if (!op->cancelling)
        end(op);
}

static void cancellation_back(struct task *t)
{
    struct group_op *op = container_of(t, struct group_op, cancel.task);
    op->cancelling = false;
    if (op->answered)
        end(op);
}

/* ---- on the coordinator's thread ---- */

static void call_done(struct group_call *c)
{
    struct group_op *op = container_of(c, struct group_op, call);
    task_init(&op->task, answered);
    executor_post(request_executor(op->req), &op->task);
}

static void cancelled(struct group_cancel *c)
{
    struct group_op *op = container_of(c, struct group_op, cancel);
    task_init(&c->task, cancellation_back);
    executor_post(request_executor(op->req), &c->task);
}

/* ---- and on the reactor again ---- */

/* Also of a client that only ended its side: it cannot say any more that it lives. */
static void client_left(struct net_request *r)
{
    struct group_op *op = r->user;
    if (op->answered || op->cancelling)
        return;
    op->cancelling = true;
    op->cancel.call = &op->call;
    op->cancel.cancelled = cancelled;
    group_manager_cancel(broker_groups(op->req->broker), &op->cancel);
}

static void hurried(struct net_request *r)
{
    if (r->hurry)
        client_left(r);
    else /* others stand in line behind it: no reason to refuse it */
        r->hurried = hurried;
}

void group_op_submit(struct group_op *op)
{
    op->call.done = call_done;
    op->req->net->user = op;
    op->req->net->aborted = client_left;
    op->req->net->hurried = hurried;
    broker_async_begin(op->req->broker);
    group_manager_submit(broker_groups(op->req->broker), &op->call);
    if (op->req->net->hurry)
        client_left(op->req->net);
}

bool group_instances_allowed(const struct request *req)
{
    return broker_config(req->broker)->ibp >= 203;
}

bool group_protocol_on(const struct config *c, const char *name)
{
    struct str e;
    for (const char *at = config_string(c, "group.coordinator.rebalance.protocols");
         config_list_next(&at, &e);)
        if (str_eqz(e, name))
            return true;
    return false;
}
