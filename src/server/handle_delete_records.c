/* handle_delete_records.c - DeleteRecords: the logs' start is raised on a worker, and the answer
 * waits until all live replicas have followed. */
#include "protocol/msg/delete_records.h"
#include "server/broker.h"
#include "server/broker_metrics.h"
#include "server/handlers.h"
#include "server/request_later.h"
#include "server/rights.h"

struct delete_slot {
    struct delete_records_response_partition *out;
    struct str topic;
    int64_t offset;              /* asked for */
    bool refused;                /* not the client's to delete */
    struct partition *partition; /* one reference while it waits */
    int64_t required;            /* low watermark */
};

struct delete_op {
    struct request *req;
    const struct delete_records_request *in;
    struct delete_records_response out;
    struct delete_slot *slots;
    int n, waiting;
    struct job job;
    struct pending pending;
};

/* ---- waiting ---- */

static void end_slot(struct delete_slot *s, enum kerr error, int64_t low)
{
    s->out->error_code = (int16_t)error;
    s->out->low_watermark = error == KERR_NONE || error == KERR_REQUEST_TIMED_OUT ? low : -1;
    partition_unref(s->partition);
    s->partition = NULL;
}

/* Has it an outcome? */
static bool look(struct delete_slot *s)
{
    int64_t low;
    enum kerr error = partition_low_watermark(s->partition, &low);
    if (error == KERR_NONE && low < s->required)
        return false;
    end_slot(s, error, low);
    return true;
}

static bool slot_changed(struct pending *p, int i)
{
    struct delete_op *op = container_of(p, struct delete_op, pending);
    struct delete_slot *s = &op->slots[i];
    if (s->partition && look(s))
        op->waiting--;
    return op->waiting == 0;
}

static void finished(struct pending *p, enum pending_end why)
{
    struct delete_op *op = container_of(p, struct delete_op, pending);
    struct broker_metrics *m = broker_metrics(op->req->broker);
    metrics_wait_is_over(m, WAIT_DELETE_RECORDS, op->n);
    if (why == PENDING_EXPIRED)
        metrics_count(m, COUNT_EXPIRED_DELETE_RECORDS, (uint64_t)op->waiting);
    for (int i = 0; i < op->n; i++) {
        struct delete_slot *s = &op->slots[i];
        int64_t low;
        if (!s->partition)
            continue;
        partition_low_watermark(s->partition, &low);
        end_slot(s, KERR_REQUEST_TIMED_OUT, low);
    }
    if (why == PENDING_CANCELLED)
        request_respond_none(op->req);
    else
        request_respond(op->req, &op->out);
}

static struct partition *waits_for(struct pending *p, int i)
{
    return container_of(p, struct delete_op, pending)->slots[i].partition;
}

/* ---- deleting ---- */

static enum kerr delete_one(struct delete_op *op, struct delete_slot *s,
                            const struct metadata_snapshot *snapshot)
{
    enum kerr e;
    struct topic_partition tp = {s->topic, s->out->partition_index};
    if (s->refused)
        return KERR_TOPIC_AUTHORIZATION_FAILED;
    if (!metadata_partition(snapshot, tp.topic, tp.partition))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (topic_is_internal(tp.topic))
        return KERR_INVALID_TOPIC_EXCEPTION;
    struct partition *p = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    if (!p)
        return e;
    e = partition_delete_records(p, s->offset, &s->required);
    if (e == KERR_NONE)
        s->partition = p;
    else
        partition_unref(p);
    return e;
}

static void work(struct job *job)
{
    struct delete_op *op = container_of(job, struct delete_op, job);
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int i = 0; i < op->n; i++)
        op->slots[i].out->error_code = (int16_t)delete_one(op, &op->slots[i], s);
    metadata_release(s);
}

static void worked(struct job *job)
{
    struct delete_op *op = container_of(job, struct delete_op, job);
    struct broker *b = op->req->broker;
    for (int i = 0; i < op->n; i++)
        if (op->slots[i].partition && !look(&op->slots[i]))
            op->waiting++;
    static const struct pending_ops ops = {slot_changed, finished};
    if (op->waiting) {
        metrics_wait_begins(broker_metrics(b), WAIT_DELETE_RECORDS, op->n);
        request_wait(op->req, &op->pending, &ops, waits_for, op->n, op->in->timeout_ms);
    } else {
        request_respond(op->req, &op->out);
    }
    broker_async_end(b);
}

/* ---- the request ---- */

static bool lay_out(struct delete_op *op)
{
    struct arena *a = op->req->arena;
    int32_t n = op->in->topics.n;
    for (int32_t t = 0; t < n; t++)
        op->n += op->in->topics.v[t].partitions.n;
    delete_records_response_init(&op->out);
    op->slots = arena_array(a, struct delete_slot, (size_t)op->n);
    op->out.topics.v = delete_records_response_topic_new(a, n);
    op->out.topics.n = n;
    int slot = 0;
    for (int32_t t = 0; op->slots && op->out.topics.v && t < n; t++) {
        const struct delete_records_request_topic *from = &op->in->topics.v[t];
        struct delete_records_response_topic *to = &op->out.topics.v[t];
        to->name = from->name;
        to->partitions.v = delete_records_response_partition_new(a, from->partitions.n);
        to->partitions.n = from->partitions.n;
        if (!to->partitions.v)
            return false;
        bool refused = !rights_topic(op->req, ACL_DELETE, from->name);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            to->partitions.v[i].partition_index = from->partitions.v[i].partition_index;
            to->partitions.v[i].low_watermark = -1;
            op->slots[slot++] = (struct delete_slot){.out = &to->partitions.v[i],
                                                     .topic = from->name,
                                                     .offset = from->partitions.v[i].offset,
                                                     .refused = refused};
        }
    }
    return op->slots && op->out.topics.v;
}

void handle_delete_records(struct request *req)
{
    struct delete_op *op = arena_new(req->arena, struct delete_op);
    if (op) {
        op->req = req;
        op->in = req->body;
    }
    if (!op || !lay_out(op)) {
        request_no_memory(req);
        return;
    }
    request_work(req, &op->job, work, worked);
}
