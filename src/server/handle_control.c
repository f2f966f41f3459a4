/* handle_control.c - LeaderAndIsr, StopReplica and UpdateMetadata as they come over the wire:
 * queued behind each other and behind the local controller's, applied on a worker, answered on the
 * reactor.
 */
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"
#include "server/broker.h"
#include "server/control_queue.h"
#include "server/handlers.h"
#include "server/request.h"

struct control_request { /* in the request's arena */
    struct control_op op;
    struct request *req;
    union {
        struct leader_and_isr_response leader_and_isr;
        struct stop_replica_response stop_replica;
        struct update_metadata_response update_metadata;
    } response;
};

static void answer(struct control_op *op)
{
    struct control_request *c = container_of(op, struct control_request, op);
    struct broker *b = c->req->broker;
    request_respond(c->req, &c->response);
    broker_async_end(b);
}

static void submit(struct request *req, void (*work)(struct control_op *op))
{
    struct control_request *c = arena_new(req->arena, struct control_request);
    if (!c) {
        request_no_memory(req);
        return;
    }
    c->op = (struct control_op){.work = work, .done = answer, .done_on = request_executor(req)};
    c->req = req;
    msg_init(req->api->response, &c->response);
    broker_async_begin(req->broker);
    control_queue_submit(broker_control_queue(req->broker), &c->op);
}

static void apply_leader_and_isr(struct control_op *op)
{
    struct control_request *c = container_of(op, struct control_request, op);
    replica_manager_become(broker_replicas(c->req->broker), request_version(c->req), c->req->body,
                           c->req->arena, &c->response.leader_and_isr);
}

static void apply_stop_replica(struct control_op *op)
{
    struct control_request *c = container_of(op, struct control_request, op);
    replica_manager_stop(broker_replicas(c->req->broker), c->req->body, c->req->arena,
                         &c->response.stop_replica);
}

static void apply_update_metadata(struct control_op *op)
{
    struct control_request *c = container_of(op, struct control_request, op);
    c->response.update_metadata.error_code =
        (int16_t)replica_manager_update_metadata(broker_replicas(c->req->broker), c->req->body);
}

void handle_leader_and_isr(struct request *req)
{
    submit(req, apply_leader_and_isr);
}

void handle_stop_replica(struct request *req)
{
    submit(req, apply_stop_replica);
}

void handle_update_metadata(struct request *req)
{
    submit(req, apply_update_metadata);
}
