/* delayed_fetch.c - a fetch that waits for min bytes.
 *
 * It ends when the bytes are there, when a partition is in error or its log diverges from the
 * fetcher's, when the fetcher stands beyond what can be read (the log was cut), or when max wait is
 * over. Nothing is held but the partitions; the answer is read anew. */
#include "server/fetch_op.h"

/* Bytes that a read of partition i would give now. A read never crosses a segment's end: from an
 * older segment no more is to be waited for, so that counts as enough. */
static int64_t readable_bytes(struct fetch_op *op, int i)
{
    struct partition_read_args args = fetch_read_args(op, i);
    struct partition_read found;
    args.reread = true;
    args.min_one = !op->hard_limit;
    if (partition_read(op->slots[i].partition, &args, NULL, &found) != KERR_NONE)
        return 0;
    file_unref(found.slice.file);
    if (found.slice.older_segment)
        return op->min_bytes;
    return found.slice.len < args.max_bytes ? found.slice.len : args.max_bytes;
}

static bool slot_changed(struct pending *p, int i)
{
    struct fetch_op *op = container_of(p, struct fetch_op, pending);
    struct fetch_slot *s = &op->slots[i];
    struct partition_read_args args = fetch_read_args(op, i);
    int64_t bound;
    bool diverges;
    if (partition_probe(s->partition, &args, &bound, &diverges) != KERR_NONE || diverges ||
        args.offset > bound)
        return true;
    int64_t available = 0;
    if (args.offset < bound) {
        if (op->min_bytes <= 1)
            return true;
        available = readable_bytes(op, i);
    }
    op->waiting_bytes += available - s->available;
    s->available = available;
    return op->waiting_bytes >= op->min_bytes;
}

static void finished(struct pending *p, enum pending_end why)
{
    struct fetch_op *op = container_of(p, struct fetch_op, pending);
    if (why == PENDING_CANCELLED) {
        fetch_release(op);
        request_respond_none(op->req);
        return;
    }
    op->req->net->aborted = NULL;
    fetch_read(op, true);
    fetch_deliver(op);
}

static void aborted(struct net_request *r)
{
    struct fetch_op *op = r->user;
    pending_cancel(&op->pending);
}

void fetch_wait(struct fetch_op *op)
{
    fetch_release_reads(op);
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
    static const struct pending_ops ops = {slot_changed, finished};
    pending_start(&op->pending, &ops, request_executor(op->req), watches, partitions,
                  op->context.wants_n, op->body->max_wait_ms);
}
