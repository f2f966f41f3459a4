/* handle_write_txn_markers.c - WriteTxnMarkers: how transactions ended, from their coordinator to
 * the leaders of their partitions. A control batch goes into each partition, and the answer waits
 * until its replicas have it; on __consumer_offsets the group's pending offsets then follow it,
 * which nobody waits for. */
#include "base/hmap.h"
#include "coordinator/coordinator_append.h"
#include "coordinator/group_manager.h"
#include "protocol/batch_builder.h"
#include "protocol/msg/write_txn_markers.h"
#include "server/broker.h"
#include "server/dynamic_config.h"
#include "server/handlers.h"
#include "server/request_later.h"
#include "server/rights.h"

typedef struct write_txn_markers_request_marker marker;
typedef struct write_txn_markers_response_partition result;

struct slot { /* one partition of one marker */
    struct hnode node;
    const marker *marker;
    struct str topic;
    result *out;
    struct partition *partition; /* one reference while its replicas are waited for, else NULL */
    int64_t required_offset;
    uint32_t term;
    struct partition *to_flush; /* one reference until its flush is done, else NULL */
    struct partition_flush flush;
    struct markers_op *op;
};

struct markers_op {
    struct request *req;
    struct hmap named; /* while one marker is laid out: its slots, by partition */
    struct write_txn_markers_response out;
    struct slot *slots;
    int n;
    int flushes; /* not yet done */
    struct pending pending;
    int waiting; /* slots whose marker is not committed yet */
};

/* ---- the answer's frame ---- */

static int count_partitions(const struct write_txn_markers_request *in)
{
    int n = 0;
    for (int32_t m = 0; m < in->markers.n; m++)
        for (int32_t t = 0; t < in->markers.v[m].topics.n; t++)
            n += in->markers.v[m].topics.v[t].partition_indexes.n;
    return n;
}

static uint64_t slot_hash(struct str topic, int32_t partition)
{
    return hash_str(topic) ^ hash_int((uint64_t)partition);
}

static bool same_partition(const struct hnode *node, const void *key)
{
    const struct slot *s = hmap_entry(node, struct slot, node);
    const struct topic_partition *tp = key;
    return s->out->partition_index == tp->partition && str_eq(s->topic, tp->topic);
}

/* A marker is for a partition once, however often it names it (as in Kafka, where they are a map):
 * the repeats have no slot and no answer. */
static bool add_slot(struct markers_op *op, const marker *m, struct topic_partition tp, result *out)
{
    struct slot *s = &op->slots[op->n++];
    out->partition_index = tp.partition;
    *s = (struct slot){.marker = m, .topic = tp.topic, .out = out, .op = op};
    return hmap_put(&op->named, &s->node, slot_hash(tp.topic, tp.partition)) == 0;
}

static bool lay_out_topic(struct markers_op *op, const marker *m,
                          const struct write_txn_markers_request_topic *from,
                          struct write_txn_markers_response_topic *to)
{
    result *v = write_txn_markers_response_partition_new(op->req->arena, from->partition_indexes.n);
    if (!v)
        return false;
    to->name = from->name;
    to->partitions.v = v;
    to->partitions.n = 0;
    for (int32_t i = 0; i < from->partition_indexes.n; i++) {
        struct topic_partition tp = {from->name, from->partition_indexes.v[i]};
        if (hmap_find(&op->named, slot_hash(tp.topic, tp.partition), same_partition, &tp))
            continue;
        if (!add_slot(op, m, tp, &v[to->partitions.n++]))
            return false;
    }
    return true;
}

static bool lay_out_marker(struct markers_op *op, const marker *from,
                           struct write_txn_markers_response_marker *to)
{
    struct arena *a = op->req->arena;
    to->producer_id = from->producer_id;
    to->topics.v = write_txn_markers_response_topic_new(a, from->topics.n);
    if (!to->topics.v)
        return false;
    to->topics.n = from->topics.n;
    hmap_init(&op->named);
    bool good = true;
    for (int32_t t = 0; good && t < from->topics.n; t++)
        good = lay_out_topic(op, from, &from->topics.v[t], &to->topics.v[t]);
    hmap_free(&op->named);
    return good;
}

static bool lay_out(struct markers_op *op)
{
    const struct write_txn_markers_request *in = op->req->body;
    struct arena *a = op->req->arena;
    write_txn_markers_response_init(&op->out);
    op->slots = arena_array(a, struct slot, (size_t)count_partitions(in));
    op->out.markers.v = write_txn_markers_response_marker_new(a, in->markers.n);
    bool good = op->slots && op->out.markers.v;
    op->out.markers.n = in->markers.n;
    for (int32_t m = 0; good && m < in->markers.n; m++)
        good = lay_out_marker(op, &in->markers.v[m], &op->out.markers.v[m]);
    return good;
}

/* ---- the answer ---- */

static void answer(struct markers_op *op)
{
    request_respond(op->req, &op->out);
}

/* The replicas have it, or never will. */
static void end_slot(struct slot *s, enum kerr e)
{
    s->out->error_code = (int16_t)e;
    partition_unref(s->partition);
    s->partition = NULL;
    if (e == KERR_NONE && str_eqz(s->topic, "__consumer_offsets"))
        group_manager_txn_ended(broker_groups(s->op->req->broker), s->out->partition_index,
                                s->marker->producer_id, s->marker->transaction_result);
}

static bool slot_changed(struct pending *p, int i)
{
    struct markers_op *op = container_of(p, struct markers_op, pending);
    struct slot *s = &op->slots[i];
    if (!s->partition)
        return op->waiting == 0;
    enum kerr e = partition_check_committed(s->partition, s->required_offset, s->term);
    if (e == KERR_REQUEST_TIMED_OUT)
        return false;
    end_slot(s, e);
    return --op->waiting == 0;
}

static void finished(struct pending *p, enum pending_end why)
{
    struct markers_op *op = container_of(p, struct markers_op, pending);
    for (int i = 0; i < op->n; i++)
        if (op->slots[i].partition)
            end_slot(&op->slots[i], KERR_REQUEST_TIMED_OUT);
    if (why == PENDING_CANCELLED)
        request_respond_none(op->req);
    else
        answer(op);
}

static struct partition *waits_for(struct pending *p, int i)
{
    return container_of(p, struct markers_op, pending)->slots[i].partition;
}

static int64_t timeout_ms(const struct markers_op *op)
{
    return config_int(broker_config(op->req->broker), "request.timeout.ms");
}

static void await_replicas(struct markers_op *op)
{
    for (int i = 0; i < op->n; i++) {
        struct slot *s = &op->slots[i];
        if (!s->partition)
            continue;
        enum kerr e = partition_check_committed(s->partition, s->required_offset, s->term);
        if (e == KERR_REQUEST_TIMED_OUT)
            op->waiting++;
        else
            end_slot(s, e);
    }
    static const struct pending_ops ops = {slot_changed, finished};
    if (op->waiting)
        request_wait(op->req, &op->pending, &ops, waits_for, op->n, timeout_ms(op));
    else
        answer(op);
}

/* ---- flushes that flush.messages demands before an acknowledgement ---- */

static void flush_done(struct partition_flush *f)
{
    struct slot *s = container_of(f, struct slot, flush);
    struct markers_op *op = s->op;
    struct broker *b = op->req->broker;
    partition_unref(s->to_flush);
    if (f->error != KERR_NONE)
        end_slot(s, f->error);
    if (--op->flushes == 0)
        await_replicas(op);
    broker_async_end(b);
}

static void start_flush(struct slot *s)
{
    struct markers_op *op = s->op;
    s->flush.done = flush_done;
    s->flush.done_on = request_executor(op->req);
    op->flushes++;
    broker_async_begin(op->req->broker);
    partition_flush(s->to_flush, broker_workers(op->req->broker), &s->flush);
}

/* ---- the markers ---- */

static enum kerr append(struct slot *s, struct partition *p)
{
    const struct broker *b = s->op->req->broker;
    const marker *m = s->marker;
    int64_t now = clock_wall_ms(broker_clock(b)), flush_messages = 0;
    struct partition_append done;
    struct buf bytes = BUF_INIT;
    enum kerr e = KERR_UNKNOWN_SERVER_ERROR;
    if (batch_build_marker(m->transaction_result, 0, now, 0, m->producer_id, m->producer_epoch,
                           m->coordinator_epoch, &bytes) == 0)
        e = coordinator_append(p, &bytes, 0, -1, now, &done, &flush_messages);
    buf_free(&bytes);
    if (e != KERR_NONE)
        return e;
    s->partition = partition_ref(p);
    s->required_offset = done.required_offset;
    s->term = done.term;
    if (done.info.needs_flush) {
        s->to_flush = partition_ref(p);
        s->flush.up_to = done.required_offset - flush_messages + 1;
    } else if (done.info.rolled) {
        partition_flush_soon(p, broker_workers(b));
    }
    return KERR_NONE;
}

static enum kerr write_marker(struct slot *s)
{
    struct topic_partition tp = {s->topic, s->out->partition_index};
    enum kerr e;
    struct partition *p = replica_manager_find(broker_replicas(s->op->req->broker), tp, &e);
    if (!p) /* whoever asked looks for its leader again */
        return e == KERR_KAFKA_STORAGE_ERROR ? e : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    e = append(s, p);
    partition_unref(p);
    return e;
}

void handle_write_txn_markers(struct request *req)
{
    struct markers_op *op = arena_new(req->arena, struct markers_op);
    if (op)
        op->req = req;
    if (!op || !lay_out(op)) {
        request_no_memory(req);
        return;
    }
    if (!rights_cluster_quietly(req, ACL_ALTER) && !authorize_cluster(req, ACL_CLUSTER_ACTION)) {
        for (int i = 0; i < op->n; i++)
            op->slots[i].out->error_code = KERR_CLUSTER_AUTHORIZATION_FAILED;
        req->refused = KERR_CLUSTER_AUTHORIZATION_FAILED;
        answer(op);
        return;
    }
    for (int i = 0; i < op->n; i++)
        op->slots[i].out->error_code = (int16_t)write_marker(&op->slots[i]);
    for (int i = 0; i < op->n; i++)
        if (op->slots[i].to_flush)
            start_flush(&op->slots[i]);
    if (op->flushes == 0)
        await_replicas(op);
}
