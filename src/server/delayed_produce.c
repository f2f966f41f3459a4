/* delayed_produce.c - what stands between an append and its acknowledgement: the flush that
 * flush.messages demands, and with acks=all the high watermark.
 *
 * Kafka flushes inside the append; here a worker does it and the reactor goes on, but the answer
 * comes after it all the same. A flush that failed is an append that failed. */
#include "server/broker_metrics.h"
#include "server/produce_op.h"
#include "server/request_later.h"

static void await_replicas(struct produce_op *op);

/* ---- flush ---- */

static void flush_done(struct partition_flush *done)
{
    struct produce_flush *f = container_of(done, struct produce_flush, flush);
    struct produce_op *op = f->op;
    struct produce_slot *s = &op->slots[f->slot];
    partition_unref(s->to_flush);
    if (done->error != KERR_NONE) {
        s->out->error_code = (int16_t)done->error;
        partition_unref(s->partition);
        s->partition = NULL;
    }
    struct broker *b = op->req->broker;
    if (--op->flushes == 0)
        await_replicas(op);
    broker_async_end(b);
}

static void start_flush(struct produce_op *op, int slot)
{
    struct produce_slot *s = &op->slots[slot];
    struct produce_flush *f = arena_new(op->req->arena, struct produce_flush);
    if (!f) { /* it is written, but the promise is not kept */
        s->out->error_code = KERR_UNKNOWN_SERVER_ERROR;
        partition_unref(s->to_flush);
        partition_unref(s->partition);
        s->partition = NULL;
        return;
    }
    f->op = op;
    f->slot = slot;
    f->flush.up_to = s->flush_up_to;
    f->flush.done = flush_done;
    f->flush.done_on = request_executor(op->req);
    op->flushes++;
    broker_async_begin(op->req->broker);
    partition_flush(s->to_flush, broker_workers(op->req->broker), &f->flush);
}

void produce_finish(struct produce_op *op)
{
    for (int i = 0; i < op->slots_n; i++)
        if (op->slots[i].to_flush)
            start_flush(op, i);
    if (op->flushes == 0)
        await_replicas(op);
}

/* ---- acks=all ---- */

static void end_slot(struct produce_op *op, int i, enum kerr e)
{
    struct produce_slot *s = &op->slots[i];
    s->out->error_code = (int16_t)e;
    partition_unref(s->partition);
    s->partition = NULL;
}

static bool slot_changed(struct pending *p, int i)
{
    struct produce_op *op = container_of(p, struct produce_op, pending);
    struct produce_slot *s = &op->slots[i];
    if (!s->partition)
        return op->waiting == 0;
    enum kerr e = partition_check_committed(s->partition, s->required_offset, s->term);
    if (e == KERR_REQUEST_TIMED_OUT)
        return false;
    end_slot(op, i, e);
    return --op->waiting == 0;
}

static void finished(struct pending *p, enum pending_end why)
{
    struct produce_op *op = container_of(p, struct produce_op, pending);
    struct broker_metrics *m = broker_metrics(op->req->broker);
    metrics_wait_is_over(m, WAIT_PRODUCE, op->slots_n);
    if (why == PENDING_EXPIRED)
        metrics_count(m, COUNT_EXPIRED_PRODUCE, (uint64_t)op->waiting);
    for (int i = 0; i < op->slots_n; i++)
        if (op->slots[i].partition)
            end_slot(op, i, KERR_REQUEST_TIMED_OUT);
    if (why == PENDING_CANCELLED)
        request_respond_none(op->req);
    else
        produce_answer(op);
}

static struct partition *waits_for(struct pending *p, int i)
{
    return container_of(p, struct produce_op, pending)->slots[i].partition;
}

/* Records that are appended need no second place in memory while their followers are waited for:
 * the frame goes. What the answer tells of it is copied; without memory for that it stays. */
static void release_frame(struct produce_op *op)
{
    struct arena *a = op->req->arena;
    struct str client = arena_str(a, op->req->header.client_id);
    struct str *names = arena_array(a, struct str, (size_t)op->response.responses.n);
    if (!names || (!client.p && op->req->header.client_id.p))
        return;
    for (int32_t t = 0; t < op->response.responses.n; t++)
        if (!(names[t] = arena_str(a, op->response.responses.v[t].name)).p)
            return;
    op->req->header.client_id = client;
    int slot = 0;
    for (int32_t t = 0; t < op->response.responses.n; t++) {
        struct produce_response_response *r = &op->response.responses.v[t];
        r->name = names[t];
        for (int32_t i = 0; i < r->partition_responses.n; i++, slot++) {
            op->slots[slot].topic = names[t];
            op->slots[slot].data = NULL;
        }
    }
    net_request_release_frame(op->req->net);
}

static void wait_for_replicas(struct produce_op *op)
{
    static const struct pending_ops ops = {slot_changed, finished};
    release_frame(op);
    metrics_wait_begins(broker_metrics(op->req->broker), WAIT_PRODUCE, op->slots_n);
    request_wait(op->req, &op->pending, &ops, waits_for, op->slots_n, op->body->timeout_ms);
}

static void await_replicas(struct produce_op *op)
{
    op->waiting = 0;
    for (int i = 0; i < op->slots_n; i++) {
        struct produce_slot *s = &op->slots[i];
        if (!s->partition)
            continue;
        enum kerr e = partition_check_committed(s->partition, s->required_offset, s->term);
        if (e == KERR_REQUEST_TIMED_OUT)
            op->waiting++;
        else
            end_slot(op, i, e);
    }
    if (op->waiting)
        wait_for_replicas(op);
    else
        produce_answer(op);
}
