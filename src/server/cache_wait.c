/* cache_wait.c - see cache_wait.h.
 *
 * The listener is called on the thread that publishes; it only posts the task. `posted` says that
 * the task is queued: until it has run the memory must stay, so an end that comes meanwhile (the
 * deadline, a closed connection) is carried out by the task. */
#include "server/cache_wait.h"

#include "server/broker.h"

static struct cache_wait *of_net(struct net_request *net)
{
    return net->user;
}

static void finish(struct cache_wait *w)
{
    w->req->net->aborted = NULL;
    executor_timer_stop(request_executor(w->req), &w->deadline);
    metadata_cache_unlisten(broker_metadata(w->req->broker), &w->listener);
    if (atomic_load(&w->posted))
        w->ending = true;
    else
        w->done(w);
}

static bool shown_now(struct cache_wait *w)
{
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(w->req->broker));
    bool shown = w->shown(w, s);
    metadata_release(s);
    return shown;
}

static void look(struct task *task)
{
    struct cache_wait *w = container_of(task, struct cache_wait, task);
    atomic_store(&w->posted, false);
    if (w->ending)
        w->done(w);
    else if (shown_now(w))
        finish(w);
}

static void updated(struct metadata_listener *l)
{
    struct cache_wait *w = container_of(l, struct cache_wait, listener);
    if (!atomic_exchange(&w->posted, true))
        executor_post(request_executor(w->req), &w->task);
}

static void too_late(struct timer *timer)
{
    finish(container_of(timer, struct cache_wait, deadline));
}

static void connection_closed(struct net_request *net)
{
    finish(of_net(net));
}

void cache_wait_start(struct cache_wait *w, int64_t timeout_ms)
{
    if (timeout_ms <= 0 || w->req->net->gone) {
        w->done(w);
        return;
    }
    atomic_init(&w->posted, false);
    w->ending = false;
    w->listener.updated = updated;
    task_init(&w->task, look);
    timer_init(&w->deadline, too_late);
    w->req->net->user = w;
    w->req->net->aborted = connection_closed;
    metadata_cache_listen(broker_metadata(w->req->broker), &w->listener);
    executor_timer_start(request_executor(w->req), &w->deadline, timeout_ms);
    /* what was published before the listener was there */
    if (shown_now(w))
        finish(w);
}
