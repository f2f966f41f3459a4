/* delayed_fetch.c - a fetch that waits for min bytes.
 *
 * It ends when the bytes are there, when a partition is in error or its log diverges from the
 * fetcher's, when the fetcher stands beyond what can be read (the log was cut), or when max wait is
 * over. Nothing is held but the partitions; the answer reads anew what moved meanwhile, and tells
 * of the rest what was read before, so that one record in one of ten thousand partitions is cheap.
 */
#include "server/broker_metrics.h"
#include "server/fetch_op.h"

/* Bytes that a read of partition i would give now. A read never crosses a segment's end: from an
 * older segment no more is to be waited for, so that counts as enough. */
static int64_t readable_bytes(struct fetch_op *op, int i)
{
    struct partition_read_args args = fetch_read_args(op, i);
    struct partition_read found;
    args.reread = true;
    args.min_one = !op->hard_limit;
    args.now = true;
    if (partition_read(op->slots[i].partition, &args, NULL, &found) != KERR_NONE)
        return 0;
    file_unref(found.slice.file);
    if (found.slice.older_segment || found.slice.cold) /* the read will tell how much it is */
        return op->min_bytes;
    return found.slice.len < args.max_bytes ? found.slice.len : args.max_bytes;
}

static int64_t bound_when_read(const struct fetch_op *op, const struct fetch_slot *s)
{
    if (op->replica_id >= 0)
        return s->read.log_end_offset;
    return op->isolation == READ_COMMITTED ? s->read.last_stable_offset : s->read.high_watermark;
}

static bool slot_changed(struct pending *p, int i)
{
    struct fetch_op *op = container_of(p, struct fetch_op, pending);
    struct fetch_slot *s = &op->slots[i];
    struct partition_read_args args = fetch_read_args(op, i);
    int64_t bound;
    bool diverges;
    bool woken = s->looked;
    s->looked = true;
    s->idle = false;
    if (partition_probe(s->partition, &args, &bound, &diverges) != KERR_NONE || diverges ||
        args.offset > bound)
        return true;
    int64_t available = 0;
    if (args.offset < bound && !s->throttled) { /* what is held back is not waited for */
        if (op->min_bytes <= 1)
            return true;
        available = readable_bytes(op, i);
    }
    s->idle = !woken && args.offset == bound && bound == bound_when_read(op, s);
    op->waiting_bytes += available - s->available;
    s->available = available;
    return op->waiting_bytes >= op->min_bytes;
}

static void count_end(struct fetch_op *op, enum pending_end why)
{
    struct broker_metrics *m = broker_metrics(op->req->broker);
    metrics_wait_is_over(m, WAIT_FETCH, op->context.wants_n);
    if (why == PENDING_EXPIRED)
        metrics_count(m, op->replica_id < 0 ? COUNT_EXPIRED_FETCH : COUNT_EXPIRED_FOLLOWER_FETCH,
                      1);
}

static void finished(struct pending *p, enum pending_end why)
{
    struct fetch_op *op = container_of(p, struct fetch_op, pending);
    count_end(op, why);
    if (why == PENDING_CANCELLED) {
        fetch_release(op);
        request_respond_none(op->req);
        return;
    }
    op->req->net->aborted = op->req->net->hurried = NULL;
    for (int i = 0; i < op->context.wants_n; i++) /* woken, but the end came before the look */
        if (atomic_load(&p->watches[i].dirty))
            op->slots[i].idle = false;
    fetch_read_then(op, true, fetch_deliver);
}

static void aborted(struct net_request *r)
{
    struct fetch_op *op = r->user;
    pending_cancel(&op->pending);
}

static void hurried(struct net_request *r)
{
    struct fetch_op *op = r->user;
    pending_hurry(&op->pending);
}

void fetch_wait(struct fetch_op *op)
{
    fetch_release_reads(op);
    if (op->req->net->gone) { /* while its records were read ahead: nobody would cancel the wait */
        fetch_release(op);
        request_respond_none(op->req);
        return;
    }
    size_t n = (size_t)op->context.wants_n;
    struct pending_watch *watches = arena_array(op->req->arena, struct pending_watch, n);
    struct partition **partitions = arena_array(op->req->arena, struct partition *, n);
    if (!watches || !partitions) { /* cannot wait: an answer without records is a good one */
        fetch_answer(op);
        return;
    }
    for (size_t i = 0; i < n; i++)
        partitions[i] = op->slots[i].partition;
    op->req->net->user = op;
    op->req->net->aborted = aborted;
    op->req->net->hurried = hurried;
    static const struct pending_ops ops = {slot_changed, finished};
    metrics_wait_begins(broker_metrics(op->req->broker), WAIT_FETCH, op->context.wants_n);
    pending_start(&op->pending, &ops, request_executor(op->req), watches, partitions,
                  op->context.wants_n, op->body->max_wait_ms);
}
