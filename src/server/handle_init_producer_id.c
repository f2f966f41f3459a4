/* handle_init_producer_id.c - InitProducerId: for an idempotent producer a fresh id with epoch 0;
 * for a transactional id what its coordinator says. */
#include "metadata/producer_ids.h"
#include "protocol/msg/init_producer_id.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/rights.h"
#include "server/txn_op.h"

enum { FIRST_VERSION_FENCED = 4 };

static void answer(struct request *req, enum kerr error, int64_t id, int16_t epoch)
{
    struct init_producer_id_response out;
    init_producer_id_response_init(&out);
    out.error_code = (int16_t)error;
    out.producer_id = error ? -1 : id;
    out.producer_epoch = error ? -1 : epoch;
    request_respond(req, &out);
}

static void answer_call(struct txn_op *op)
{
    const struct txn_call *c = op->calls;
    answer(op->req, txn_op_error(op->req, c->error, FIRST_VERSION_FENCED), c->producer_id,
           c->epoch);
}

static void ask_coordinator(struct request *req, const struct init_producer_id_request *in)
{
    struct txn_op *op = txn_op_new(req, 1, answer_call);
    if (!op)
        return;
    *op->calls = (struct txn_call){.api = TXN_CALL_INIT,
                                   .id = in->transactional_id,
                                   .producer_id = in->producer_id,
                                   .epoch = in->producer_epoch,
                                   .timeout_ms = in->transaction_timeout_ms};
    txn_op_submit(op);
}

/* What the client lacks, or NONE. */
static enum kerr refusal(const struct request *req, struct str transactional_id)
{
    if (str_is_null(transactional_id))
        return rights_idempotent(req) ? KERR_NONE : KERR_CLUSTER_AUTHORIZATION_FAILED;
    return rights_txn(req, ACL_WRITE, transactional_id)
               ? KERR_NONE
               : KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
}

void handle_init_producer_id(struct request *req)
{
    const struct init_producer_id_request *in = req->body;
    int64_t id = -1;
    enum kerr refused = refusal(req, in->transactional_id);
    if (refused != KERR_NONE)
        answer(req, refused, -1, -1);
    else if ((in->producer_id == -1) != (in->producer_epoch == -1))
        answer(req, KERR_INVALID_REQUEST, -1, -1);
    else if (!str_is_null(in->transactional_id))
        ask_coordinator(req, in);
    else if (producer_ids_next(broker_producer_ids(req->broker), &id) != 0)
        answer(req, KERR_COORDINATOR_LOAD_IN_PROGRESS, -1, -1); /* a block is on its way */
    else
        answer(req, KERR_NONE, id, 0);
}
