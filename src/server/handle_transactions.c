/* handle_transactions.c - what producers ask of their transaction's coordinator:
 * AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.
 *
 * VERSIONS  AddPartitionsToTxn comes from producers up to version 3, with one transaction; from 4
 * on from brokers, with several, some of which only ask whether partitions are in. */
#include "coordinator/group_manager.h"
#include "coordinator/key_partition.h"
#include "protocol/msg/add_offsets_to_txn.h"
#include "protocol/msg/add_partitions_to_txn.h"
#include "protocol/msg/end_txn.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/rights.h"
#include "server/txn_op.h"

enum { FIRST_VERSION_FENCED = 2, FIRST_VERSION_BATCH = 4 };

/* ---- AddPartitionsToTxn ---- */

typedef struct add_partitions_to_txn_request_transaction add_txn;
typedef struct add_partitions_to_txn_response_topic_result add_result;

struct adding {
    struct add_partitions_to_txn_response out;
    const add_txn *txns;
    int n;
};

static bool is_batch(const struct request *req)
{
    return request_version(req) >= FIRST_VERSION_BATCH;
}

/* That of version 0-3 looks like those of later ones. NULL without memory. */
static struct adding *read_transactions(struct request *req)
{
    const struct add_partitions_to_txn_request *in = req->body;
    struct adding *a = arena_new(req->arena, struct adding);
    add_txn *single = add_partitions_to_txn_request_transaction_new(req->arena, 1);
    if (!a || !single)
        return NULL;
    add_partitions_to_txn_response_init(&a->out);
    a->txns = is_batch(req) ? in->transactions.v : single;
    a->n = is_batch(req) ? in->transactions.n : 1;
    single->transactional_id = in->v3_and_below_transactional_id;
    single->producer_id = in->v3_and_below_producer_id;
    single->producer_epoch = in->v3_and_below_producer_epoch;
    single->topics.v = in->v3_and_below_topics.v;
    single->topics.n = in->v3_and_below_topics.n;
    return a;
}

static int count_partitions(const add_txn *t)
{
    int n = 0;
    for (int32_t i = 0; i < t->topics.n; i++)
        n += t->topics.v[i].partitions.n;
    return n;
}

/* The call's partitions, each with what is wrong with it before anybody is asked; the call's error
 * then says that nobody is to be. */
static bool fill_call(struct request *req, const struct metadata_snapshot *s, const add_txn *t,
                      struct txn_call *c)
{
    bool client = !is_batch(req);
    *c = (struct txn_call){.api = t->verify_only ? TXN_CALL_VERIFY : TXN_CALL_ADD,
                           .id = t->transactional_id,
                           .producer_id = t->producer_id,
                           .epoch = t->producer_epoch};
    c->partitions = arena_array(req->arena, struct txn_call_partition, (size_t)count_partitions(t));
    if (!c->partitions)
        return false;
    if (client && !rights_txn(req, ACL_WRITE, t->transactional_id))
        c->error = KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    for (int32_t i = 0; i < t->topics.n; i++) {
        struct str name = t->topics.v[i].name;
        bool may = !client || c->error == KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
                   (!topic_is_internal(name) && rights_topic(req, ACL_WRITE, name));
        for (int32_t j = 0; j < t->topics.v[i].partitions.n; j++) {
            struct txn_call_partition *p = &c->partitions[c->partitions_n++];
            p->topic = name;
            p->partition = t->topics.v[i].partitions.v[j];
            if (c->error == KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                continue;
            if (!may)
                p->error = KERR_TOPIC_AUTHORIZATION_FAILED;
            else if (!metadata_partition(s, p->topic, p->partition))
                p->error = KERR_UNKNOWN_TOPIC_OR_PARTITION;
            if (p->error != KERR_NONE)
                c->error = KERR_OPERATION_NOT_ATTEMPTED;
        }
    }
    return true;
}

/* What a partition is told: its own error, or that of the whole. */
static enum kerr error_of(const struct request *req, const struct txn_call *c,
                          const struct txn_call_partition *p)
{
    enum kerr e = p->error != KERR_NONE ? p->error : c->error;
    return txn_op_error(req, e, FIRST_VERSION_FENCED);
}

/* NULL without memory. */
static add_result *results_of(struct request *req, const add_txn *t, const struct txn_call *c)
{
    add_result *v = add_partitions_to_txn_response_topic_result_new(req->arena, t->topics.n);
    int at = 0;
    for (int32_t i = 0; v && i < t->topics.n; i++) {
        int32_t n = t->topics.v[i].partitions.n;
        v[i].name = t->topics.v[i].name;
        v[i].results_by_partition.v =
            add_partitions_to_txn_response_partition_result_new(req->arena, n);
        if (!v[i].results_by_partition.v)
            return NULL;
        v[i].results_by_partition.n = n;
        for (int32_t j = 0; j < n; j++, at++) {
            v[i].results_by_partition.v[j].partition_index = c->partitions[at].partition;
            v[i].results_by_partition.v[j].partition_error_code =
                (int16_t)error_of(req, c, &c->partitions[at]);
        }
    }
    return v;
}

static bool fill_batch_answer(struct txn_op *op, struct adding *a)
{
    struct add_partitions_to_txn_response_transaction_result *v = a->out.results_by_transaction.v =
        add_partitions_to_txn_response_transaction_result_new(op->req->arena, a->n);
    bool good = v != NULL;
    a->out.results_by_transaction.n = a->n;
    for (int i = 0; good && i < a->n; i++) {
        v[i].transactional_id = a->txns[i].transactional_id;
        v[i].topic_results.v = results_of(op->req, &a->txns[i], &op->calls[i]);
        v[i].topic_results.n = a->txns[i].topics.n;
        good = v[i].topic_results.v != NULL;
    }
    return good;
}

static bool fill_answer(struct txn_op *op, struct adding *a)
{
    if (is_batch(op->req))
        return fill_batch_answer(op, a);
    a->out.results_by_topic_v3_and_below.v = results_of(op->req, a->txns, op->calls);
    a->out.results_by_topic_v3_and_below.n = a->txns->topics.n;
    return a->out.results_by_topic_v3_and_below.v != NULL;
}

static void answer_added(struct txn_op *op)
{
    struct adding *a = op->user;
    if (fill_answer(op, a))
        request_respond(op->req, &a->out);
    else
        request_no_memory(op->req);
}

void handle_add_partitions_to_txn(struct request *req)
{
    struct adding *a = read_transactions(req);
    if (!a) {
        request_no_memory(req);
        return;
    }
    if (is_batch(req) && !authorize_cluster(req, ACL_CLUSTER_ACTION)) {
        a->out.error_code = KERR_CLUSTER_AUTHORIZATION_FAILED;
        request_respond(req, &a->out);
        return;
    }
    struct txn_op *op = txn_op_new(req, a->n, answer_added);
    if (!op)
        return;
    op->user = a;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    bool good = true;
    for (int i = 0; good && i < a->n; i++)
        good = fill_call(req, s, &a->txns[i], &op->calls[i]);
    metadata_release(s);
    if (good)
        txn_op_submit(op);
    else
        request_no_memory(req);
}

/* ---- AddOffsetsToTxn ---- */

static void answer_offsets(struct txn_op *op)
{
    struct add_offsets_to_txn_response out;
    add_offsets_to_txn_response_init(&out);
    out.error_code = (int16_t)txn_op_error(op->req, op->calls->error, FIRST_VERSION_FENCED);
    request_respond(op->req, &out);
}

void handle_add_offsets_to_txn(struct request *req)
{
    const struct add_offsets_to_txn_request *in = req->body;
    struct txn_op *op = txn_op_new(req, 1, answer_offsets);
    struct txn_call_partition *p = op ? arena_new(req->arena, struct txn_call_partition) : NULL;
    if (!p) {
        if (op)
            request_no_memory(req);
        return;
    }
    p->topic = STR_LIT("__consumer_offsets");
    p->partition =
        key_partition(in->group_id, group_manager_partitions(broker_groups(req->broker)));
    *op->calls = (struct txn_call){.api = TXN_CALL_ADD,
                                   .id = in->transactional_id,
                                   .producer_id = in->producer_id,
                                   .epoch = in->producer_epoch,
                                   .partitions = p,
                                   .partitions_n = 1};
    if (!rights_txn(req, ACL_WRITE, in->transactional_id))
        op->calls->error = KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    else if (!rights_group(req, ACL_READ, in->group_id))
        op->calls->error = KERR_GROUP_AUTHORIZATION_FAILED;
    txn_op_submit(op);
}

/* ---- EndTxn ---- */

static void answer_end(struct txn_op *op)
{
    struct end_txn_response out;
    end_txn_response_init(&out);
    out.error_code = (int16_t)txn_op_error(op->req, op->calls->error, FIRST_VERSION_FENCED);
    request_respond(op->req, &out);
}

void handle_end_txn(struct request *req)
{
    const struct end_txn_request *in = req->body;
    struct txn_op *op = txn_op_new(req, 1, answer_end);
    if (!op)
        return;
    *op->calls = (struct txn_call){.api = TXN_CALL_END,
                                   .id = in->transactional_id,
                                   .producer_id = in->producer_id,
                                   .epoch = in->producer_epoch,
                                   .commit = in->committed};
    if (!rights_txn(req, ACL_WRITE, in->transactional_id))
        op->calls->error = KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    txn_op_submit(op);
}
