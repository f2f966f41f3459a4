/* handle_list_transactions.c - what tools ask the transaction coordinator: ListTransactions,
 * DescribeTransactions. */
#include "protocol/msg/describe_transactions.h"
#include "protocol/msg/list_transactions.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/rights.h"
#include "server/txn_op.h"

static void answer(struct txn_op *op)
{
    if (op->calls->no_memory)
        request_no_memory(op->req);
    else
        request_respond(op->req, op->calls->out);
}

static void answer_list(struct txn_op *op)
{
    struct list_transactions_response *out = op->calls->out;
    int32_t left = 0;
    for (int32_t i = 0; i < out->transaction_states.n; i++)
        if (authorize_quietly(op->req, ACL_DESCRIBE, ACL_TRANSACTIONAL_ID,
                              out->transaction_states.v[i].transactional_id))
            out->transaction_states.v[left++] = out->transaction_states.v[i];
    out->transaction_states.n = left;
    answer(op);
}

/* Topics that the client may not see are left out. */
static void answer_description(struct txn_op *op)
{
    struct describe_transactions_response *out = op->calls->out;
    for (int32_t i = 0; i < out->transaction_states.n; i++) {
        struct describe_transactions_response_transaction_state *s = &out->transaction_states.v[i];
        int32_t left = 0;
        for (int32_t t = 0; t < s->topics.n; t++)
            if (authorize_quietly(op->req, ACL_DESCRIBE, ACL_TOPIC, s->topics.v[t].topic))
                s->topics.v[left++] = s->topics.v[t];
        s->topics.n = left;
    }
    answer(op);
}

static void submit(struct request *req, enum txn_api api, void *out,
                   void (*then)(struct txn_op *op))
{
    struct txn_op *op = txn_op_new(req, 1, then);
    if (!op)
        return;
    *op->calls = (struct txn_call){.api = api, .in = req->body, .out = out, .arena = req->arena};
    txn_op_submit(op);
}

void handle_list_transactions(struct request *req)
{
    struct list_transactions_response *out =
        arena_new(req->arena, struct list_transactions_response);
    if (!out) {
        request_no_memory(req);
        return;
    }
    list_transactions_response_init(out);
    submit(req, TXN_CALL_LIST, out, answer_list);
}

void handle_describe_transactions(struct request *req)
{
    const struct describe_transactions_request *in = req->body;
    int32_t n = in->transactional_ids.n;
    struct describe_transactions_response *out =
        arena_new(req->arena, struct describe_transactions_response);
    if (out) {
        describe_transactions_response_init(out);
        out->transaction_states.v =
            describe_transactions_response_transaction_state_new(req->arena, n);
    }
    if (!out || !out->transaction_states.v) {
        request_no_memory(req);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        out->transaction_states.v[i].transactional_id = in->transactional_ids.v[i];
        if (!rights_txn(req, ACL_DESCRIBE, in->transactional_ids.v[i]))
            out->transaction_states.v[i].error_code = KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    }
    out->transaction_states.n = n;
    submit(req, TXN_CALL_DESCRIBE, out, answer_description);
}
