/* handle_control.c - LeaderAndIsr, StopReplica and UpdateMetadata as they come over the wire:
 * queued behind each other and behind the local controller's, applied on a worker, answered on the
 * reactor. One of an epoch that is new here passes the gate first (control_gate.h). A controller
 * waits for each answer, so its orders stay in order.
 */
#include "base/logline.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"
#include "server/broker.h"
#include "server/control_gate.h"
#include "server/control_queue.h"
#include "server/handlers.h"
#include "server/request.h"

struct control_request { /* in the request's arena */
    struct control_op op;
    struct control_ask ask;
    struct request *req;
    int16_t *error; /* of the response */
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

static void asked(struct control_ask *ask, bool passes)
{
    struct control_request *c = container_of(ask, struct control_request, ask);
    struct request *req = c->req;
    if (passes) {
        control_queue_submit(broker_control_queue(req->broker), &c->op);
        return;
    }
    say_warn("KafkaApis", "%s of %s refused: there was no controller of epoch %d yet",
             req->api->name, conn_peer(req->net->conn), (int)ask->epoch);
    *c->error = KERR_STALE_CONTROLLER_EPOCH;
    answer(&c->op);
}

/* The response is laid out, with its error at that offset. */
static void submit(struct request *req, int32_t epoch, void (*work)(struct control_op *op),
                   size_t error_at)
{
    struct control_request *c = arena_new(req->arena, struct control_request);
    struct control_gate *gate = broker_control_gate(req->broker);
    if (!c) {
        request_no_memory(req);
        return;
    }
    c->op = (struct control_op){.work = work, .done = answer, .done_on = request_executor(req)};
    c->ask = (struct control_ask){.epoch = epoch, .done = asked};
    c->req = req;
    msg_init(req->api->response, &c->response);
    c->error = (int16_t *)((char *)&c->response + error_at);
    broker_async_begin(req->broker);
    if (control_gate_knows(gate, epoch))
        asked(&c->ask, true);
    else
        control_gate_ask(gate, &c->ask, request_executor(req));
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
    const struct leader_and_isr_request *body = req->body;
    submit(req, body->controller_epoch, apply_leader_and_isr,
           offsetof(struct leader_and_isr_response, error_code));
}

void handle_stop_replica(struct request *req)
{
    const struct stop_replica_request *body = req->body;
    submit(req, body->controller_epoch, apply_stop_replica,
           offsetof(struct stop_replica_response, error_code));
}

void handle_update_metadata(struct request *req)
{
    const struct update_metadata_request *body = req->body;
    submit(req, body->controller_epoch, apply_update_metadata,
           offsetof(struct update_metadata_response, error_code));
}
