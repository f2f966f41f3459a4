/* fetch_warm.c - records that are not in memory: a worker reads them ahead, so that the reactor,
 * which serves others meanwhile, finds them there when it reads again and sends.
 *
 * The worker makes the same read with its waits, and passes over the bytes; up to what the answer
 * may hold. Nothing is handed over but warm pages, so a log that changes meanwhile does no harm.
 * For a client that has left nothing more is read.
 *
 * BOUNDS  clients that lag must not take all the workers, which fsync and serve others, too: half
 *         of num.io.threads read ahead at once, and one for each connection (base/turns.h). */
#include <stdatomic.h>

#include "base/turns.h"
#include "server/fetch_op.h"

struct warm_job {
    struct turn_job turn;
    struct fetch_op *op;
    void (*then)(struct fetch_op *op);
    atomic_bool gone;   /* the client; set by the reactor */
    struct arena arena; /* of the worker: the request's is not its own */
};

static void warm_slot(struct warm_job *w, int i, uint32_t *left)
{
    struct fetch_op *op = w->op;
    struct partition_read_args args = fetch_read_args(op, i);
    struct partition_read found;
    args.reread = true;
    args.min_one = !op->hard_limit;
    if (args.max_bytes > *left)
        args.max_bytes = *left;
    if (partition_read(op->slots[i].partition, &args, &w->arena, &found) == KERR_NONE)
        log_slice_warm(&found.slice);
    *left -= found.slice.len < *left ? found.slice.len : *left;
    file_unref(found.slice.file);
    arena_reset(&w->arena);
}

static void warm_work(struct turn_job *turn)
{
    struct warm_job *w = container_of(turn, struct warm_job, turn);
    uint32_t left = w->op->max_bytes;
    arena_init(&w->arena, 0);
    for (int i = 0; i < w->op->context.wants_n && left > 0 && !atomic_load(&w->gone); i++)
        if (w->op->slots[i].partition && w->op->slots[i].read.slice.cold)
            warm_slot(w, i, &left);
    arena_free(&w->arena);
}

static void warm_done(struct job *job)
{
    struct warm_job *w = container_of(job, struct warm_job, turn.job);
    struct request *req = w->op->req;
    struct broker *b = req->broker;
    req->net->aborted = NULL;
    if (req->net->gone) {
        fetch_release(w->op);
        request_respond_none(req);
    } else {
        fetch_read_then(w->op, true, w->then);
    }
    broker_async_end(b);
}

/* Nobody is left to read for: what waits for a worker is then over at once. */
static void warm_aborted(struct net_request *r)
{
    struct warm_job *w = r->user;
    atomic_store(&w->gone, true);
}

void fetch_read_then(struct fetch_op *op, bool reread, void (*then)(struct fetch_op *op))
{
    fetch_read(op, reread);
    struct warm_job *w = op->cold ? arena_new(op->req->arena, struct warm_job) : NULL;
    if (!w) { /* nothing cold; or no memory: the cold partitions give nothing now */
        then(op);
        return;
    }
    op->warmed++;
    fetch_release_reads(op);
    w->op = op;
    w->then = then;
    atomic_init(&w->gone, false);
    op->req->net->user = w;
    op->req->net->aborted = warm_aborted;
    w->turn.work = warm_work;
    w->turn.owner = op->req->net->conn;
    w->turn.job.done = warm_done;
    w->turn.job.done_on = request_executor(op->req);
    broker_async_begin(op->req->broker);
    turns_submit(broker_warming(op->req->broker), &w->turn);
}
