/* handle_init_producer_id.c - InitProducerId for idempotent producers: a fresh id with epoch 0.
 * With a transactional id there is nobody to ask in this version: COORDINATOR_NOT_AVAILABLE. */
#include "metadata/producer_ids.h"
#include "protocol/msg/init_producer_id.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/request.h"

static void answer(struct request *req, enum kerr error, int64_t id)
{
    struct init_producer_id_response out;
    init_producer_id_response_init(&out);
    out.error_code = (int16_t)error;
    out.producer_id = error ? -1 : id;
    out.producer_epoch = error ? -1 : 0;
    request_respond(req, &out);
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
    int64_t id = -1;
    enum kerr error = KERR_NONE;
    if ((in->producer_id == -1) != (in->producer_epoch == -1))
        error = KERR_INVALID_REQUEST;
    else if (!str_is_null(in->transactional_id))
        error = transactional_error(req, in);
    else if (producer_ids_next(broker_producer_ids(req->broker), &id) != 0)
        error = KERR_COORDINATOR_LOAD_IN_PROGRESS; /* a block of ids is on its way */
    answer(req, error, id);
}
