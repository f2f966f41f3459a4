/* handle_txn_offset_commit.c - TxnOffsetCommit: offsets that count when the transaction is
 * committed. They are written into the group's partition of __consumer_offsets, which must be in
 * the transaction: its coordinator is asked first, unless one of the producer is open there
 * already. */
#include "coordinator/key_partition.h"
#include "coordinator/txn_manager.h"
#include "log/txn_guards.h"
#include "protocol/msg/txn_offset_commit.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"
#include "server/rights.h"

enum { FIRST_VERSION_LOADING = 2, FIRST_VERSION_ABORTABLE = 4 };

struct verifying { /* in the request's arena */
    struct txn_question question;
    struct txn_call_partition partition;
    struct group_op *op;
    struct task task;
};

static bool mark(struct request *req, struct txn_offset_commit_response *out)
{
    bool left = false;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    for (int32_t t = 0; t < out->topics.n; t++) {
        bool may = rights_topic(req, ACL_READ, out->topics.v[t].name);
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++) {
            struct txn_offset_commit_response_partition *p = &out->topics.v[t].partitions.v[i];
            if (!may)
                p->error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
            else if (!metadata_partition(s, out->topics.v[t].name, p->partition_index))
                p->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
            left = left || p->error_code == KERR_NONE;
        }
    }
    metadata_release(s);
    return left;
}

static void refuse(struct group_op *op, enum kerr e)
{
    struct txn_offset_commit_response *out = op->out;
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++)
            if (out->topics.v[t].partitions.v[i].error_code == KERR_NONE)
                out->topics.v[t].partitions.v[i].error_code = (int16_t)e;
    group_op_answer(op);
}

/* What the coordinator said, in words of this request's version. */
static enum kerr told(enum kerr e, int version)
{
    if (e == KERR_NETWORK_EXCEPTION)
        e = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    if (e == KERR_TRANSACTION_ABORTABLE && version < FIRST_VERSION_ABORTABLE)
        return KERR_INVALID_TXN_STATE;
    if (e == KERR_COORDINATOR_LOAD_IN_PROGRESS && version < FIRST_VERSION_LOADING)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    return e;
}

static void go_on(struct task *t)
{
    struct verifying *v = container_of(t, struct verifying, task);
    struct group_op *op = v->op;
    struct broker *b = op->req->broker;
    enum kerr e = v->partition.error;
    if (e == KERR_NONE)
        group_op_submit(op);
    else
        refuse(op, told(e, request_version(op->req)));
    broker_async_end(b);
}

static void answered(struct txn_question *q)
{
    struct verifying *v = container_of(q, struct verifying, question);
    task_init(&v->task, go_on);
    executor_post(request_executor(v->op->req), &v->task);
}

/* True: the coordinator is to be asked. What is not led here the group's coordinator refuses. */
static bool begin(struct request *req, struct topic_partition tp, uint64_t *guard)
{
    const struct txn_offset_commit_request *in = req->body;
    int64_t now = clock_wall_ms(broker_clock(req->broker));
    enum kerr e;
    bool ask = false;
    struct partition *p = replica_manager_find(broker_replicas(req->broker), tp, &e);
    struct log *log = p && partition_is_leader(p) ? partition_log(p) : NULL;
    *guard = TXN_GUARD_NONE;
    if (log) {
        ask = log_begin_txn(log, in->producer_id, in->producer_epoch, -1, now, guard);
        log_unref(log);
    }
    partition_unref(p);
    return ask;
}

static void verify(struct group_op *op, struct txn_manager *verifier)
{
    struct request *req = op->req;
    const struct txn_offset_commit_request *in = req->body;
    struct topic_partition tp = {
        STR_LIT("__consumer_offsets"),
        key_partition(in->group_id, group_manager_partitions(broker_groups(req->broker)))};
    if (!begin(req, tp, &op->call.txn_guard)) {
        group_op_submit(op);
        return;
    }
    struct verifying *v = op->call.txn_guard ? arena_new(req->arena, struct verifying) : NULL;
    if (!v) {
        refuse(op, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    v->op = op;
    v->partition = (struct txn_call_partition){.topic = tp.topic, .partition = tp.partition};
    v->question = (struct txn_question){.id = in->transactional_id,
                                        .producer_id = in->producer_id,
                                        .epoch = in->producer_epoch,
                                        .partitions = &v->partition,
                                        .n = 1,
                                        .done = answered};
    broker_async_begin(req->broker);
    txn_manager_ask(verifier, &v->question);
}

void handle_txn_offset_commit(struct request *req)
{
    const struct txn_offset_commit_request *in = req->body;
    struct txn_manager *verifier = broker_txn_verifier(req->broker);
    struct group_op *op = group_op_new(req, GROUP_TXN_COMMIT);
    if (!op)
        return;
    if (!rights_txn(req, ACL_WRITE, in->transactional_id))
        refuse(op, KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    else if (!rights_group(req, ACL_READ, in->group_id))
        refuse(op, KERR_GROUP_AUTHORIZATION_FAILED);
    else if (!mark(req, op->out))
        group_op_answer(op);
    else if (in->producer_id < 0)
        refuse(op, KERR_INVALID_PRODUCER_ID_MAPPING);
    else if (verifier)
        verify(op, verifier);
    else
        group_op_submit(op);
}
