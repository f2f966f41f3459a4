/* request_later.c - see request_later.h. */
#include "server/request_later.h"

#include "server/broker.h"

void request_work(struct request *req, struct job *job, void (*work)(struct job *job),
                  void (*done)(struct job *job))
{
    job->work = work;
    job->done = done;
    job->done_on = request_executor(req);
    broker_async_begin(req->broker);
    workers_submit(broker_workers(req->broker), job);
}

static void aborted(struct net_request *r)
{
    pending_cancel(r->user);
}

void request_wait(struct request *req, struct pending *p, const struct pending_ops *ops,
                  struct partition *(*at)(struct pending *p, int i), int n, int64_t timeout_ms)
{
    if (req->net->gone) { /* during what came before: nobody would end the wait */
        ops->finish(p, PENDING_CANCELLED);
        return;
    }
    struct pending_watch *watches = arena_array(req->arena, struct pending_watch, (size_t)n);
    struct partition **partitions = arena_array(req->arena, struct partition *, (size_t)n);
    if (!watches || !partitions) { /* cannot wait: as if the time were over */
        ops->finish(p, PENDING_EXPIRED);
        return;
    }
    for (int i = 0; i < n; i++)
        partitions[i] = at(p, i);
    req->net->user = p;
    req->net->aborted = aborted;
    pending_start(p, ops, request_executor(req), watches, partitions, n, timeout_ms);
}
