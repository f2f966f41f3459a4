/* handle_controller.c - requests to the controller whose answers wait for nothing else: those of
 * brokers (AlterPartition, ControlledShutdown, AllocateProducerIds) and those about reassignments.
 * Each goes into the controller's queue and is answered on the reactor. */
#include "controller/controller.h"
#include "protocol/msg/allocate_producer_ids.h"
#include "protocol/msg/alter_partition.h"
#include "protocol/msg/alter_partition_reassignments.h"
#include "protocol/msg/controlled_shutdown.h"
#include "protocol/msg/list_partition_reassignments.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/request.h"

struct controller_op { /* in the request's arena */
    struct controller_call call;
    struct request *req;
    void (*refuse)(void *response, enum kerr e);
    union {
        struct alter_partition_response alter_partition;
        struct controlled_shutdown_response controlled_shutdown;
        struct allocate_producer_ids_response allocate_producer_ids;
        struct alter_partition_reassignments_response alter_reassignments;
        struct list_partition_reassignments_response list_reassignments;
    } response;
};

static void answered(struct controller_call *call)
{
    struct controller_op *op = container_of(call, struct controller_op, call);
    struct broker *b = op->req->broker;
    if (call->refused != KERR_NONE) {
        msg_init(op->req->api->response, &op->response);
        op->refuse(&op->response, call->refused);
    }
    request_respond(op->req, &op->response);
    broker_async_end(b);
}

static void submit(struct request *req, void (*refuse)(void *response, enum kerr e))
{
    struct controller_op *op = arena_new(req->arena, struct controller_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->refuse = refuse;
    msg_init(req->api->response, &op->response);
    op->call = (struct controller_call){.api_key = req->api->key,
                                        .version = request_version(req),
                                        .request = req->body,
                                        .response = &op->response,
                                        .arena = req->arena,
                                        .done_on = request_executor(req),
                                        .done = answered};
    broker_async_begin(req->broker);
    controller_call(broker_controller(req->broker), &op->call);
}

static void refuse_alter_partition(void *response, enum kerr e)
{
    ((struct alter_partition_response *)response)->error_code = (int16_t)e;
}

static void refuse_controlled_shutdown(void *response, enum kerr e)
{
    ((struct controlled_shutdown_response *)response)->error_code = (int16_t)e;
}

static void refuse_allocate_producer_ids(void *response, enum kerr e)
{
    ((struct allocate_producer_ids_response *)response)->error_code = (int16_t)e;
}

static void refuse_alter_reassignments(void *response, enum kerr e)
{
    struct alter_partition_reassignments_response *r = response;
    r->error_code = (int16_t)e;
    r->error_message = str_of(kerr_text((int16_t)e));
}

static void refuse_list_reassignments(void *response, enum kerr e)
{
    struct list_partition_reassignments_response *r = response;
    r->error_code = (int16_t)e;
    r->error_message = str_of(kerr_text((int16_t)e));
}

void handle_alter_partition(struct request *req)
{
    submit(req, refuse_alter_partition);
}

void handle_controlled_shutdown(struct request *req)
{
    submit(req, refuse_controlled_shutdown);
}

void handle_allocate_producer_ids(struct request *req)
{
    submit(req, refuse_allocate_producer_ids);
}

void handle_alter_partition_reassignments(struct request *req)
{
    submit(req, refuse_alter_reassignments);
}

void handle_list_partition_reassignments(struct request *req)
{
    submit(req, refuse_list_reassignments);
}
