/* handle_init_producer_id.c - InitProducerId for idempotent producers: a fresh id with epoch 0.
 * With a transactional id there is nobody to ask in this version: COORDINATOR_NOT_AVAILABLE. */
#include "protocol/msg/init_producer_id.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/producer_ids.h"
#include "server/request.h"

struct init_op {
    struct request *req;
    struct producer_id_wait wait;
};

static void answer(struct request *req, enum kerr error, int64_t id)
{
    struct init_producer_id_response out;
    init_producer_id_response_init(&out);
    out.error_code = (int16_t)error;
    out.producer_id = id;
    out.producer_epoch = error ? -1 : 0;
    request_respond(req, &out);
}

static void got_id(struct producer_id_wait *w)
{
    struct init_op *op = container_of(w, struct init_op, wait);
    struct broker *b = op->req->broker;
    answer(op->req, w->id < 0 ? KERR_COORDINATOR_LOAD_IN_PROGRESS : KERR_NONE, w->id);
    broker_async_end(b);
}

/* What is wrong with a request that has a transactional id, before a coordinator is asked. */
static enum kerr transactional_error(const struct request *req,
                                     const struct init_producer_id_request *in)
{
    if (in->transactional_id.len == 0)
        return KERR_INVALID_REQUEST;
    int64_t most = config_int(broker_config(req->broker), "transaction.max.timeout.ms");
    if (in->transaction_timeout_ms <= 0 || in->transaction_timeout_ms > most)
        return KERR_INVALID_TRANSACTION_TIMEOUT;
    return KERR_COORDINATOR_NOT_AVAILABLE;
}

void handle_init_producer_id(struct request *req)
{
    const struct init_producer_id_request *in = req->body;
    if ((in->producer_id == -1) != (in->producer_epoch == -1)) {
        answer(req, KERR_INVALID_REQUEST, -1);
        return;
    }
    if (!str_is_null(in->transactional_id)) {
        answer(req, transactional_error(req, in), -1);
        return;
    }
    struct init_op *op = arena_new(req->arena, struct init_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->wait.done_on = request_executor(req);
    op->wait.done = got_id;
    broker_async_begin(req->broker);
    producer_ids_next(broker_producer_ids(req->broker), &op->wait);
}
