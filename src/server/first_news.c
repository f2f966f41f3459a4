/* first_news.c - see first_news.h. */
#include "server/first_news.h"

#include <stdatomic.h>

#include "metadata/metadata_cache.h"
#include "server/broker.h"

enum { WAIT_MS = 10000 };

/* A request that waits. It ends once: by news, by time, or with its connection. */
struct waiting {
    struct request *req;
    struct metadata_listener listener;
    struct timer timer;
    struct task news;
    atomic_bool told; /* the task is posted: it ends the wait, whatever else comes */
    bool aborted;
};

static bool knows_the_cluster(struct broker *b)
{
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(b));
    const struct broker_info *brokers;
    bool knows = metadata_brokers(s, &brokers) > 0;
    metadata_release(s);
    return knows;
}

static void end(struct waiting *w)
{
    struct request *req = w->req;
    metadata_cache_unlisten(broker_metadata(req->broker), &w->listener);
    executor_timer_stop(request_executor(req), &w->timer);
    req->net->aborted = NULL;
    if (w->aborted)
        request_respond_none(req);
    else
        request_handle(req);
}

static void news(struct task *t)
{
    end(container_of(t, struct waiting, news));
}

/* On the thread that brings the news. */
static void updated(struct metadata_listener *l)
{
    struct waiting *w = container_of(l, struct waiting, listener);
    if (!atomic_exchange(&w->told, true))
        executor_post(request_executor(w->req), &w->news);
}

static void time_is_over(struct timer *t)
{
    struct waiting *w = container_of(t, struct waiting, timer);
    if (!atomic_exchange(&w->told, true))
        end(w);
}

static void aborted(struct net_request *r)
{
    struct waiting *w = r->user;
    w->aborted = true;
    if (!atomic_exchange(&w->told, true))
        end(w);
}

bool first_news_awaited(struct request *req)
{
    struct broker *b = req->broker;
    if (knows_the_cluster(b))
        return false;
    struct waiting *w = arena_new(req->arena, struct waiting);
    if (!w)
        return false;
    *w = (struct waiting){.req = req, .listener.updated = updated};
    task_init(&w->news, news);
    timer_init(&w->timer, time_is_over);
    req->net->user = w;
    req->net->aborted = aborted;
    executor_timer_start(request_executor(req), &w->timer, WAIT_MS);
    metadata_cache_listen(broker_metadata(b), &w->listener);
    if (knows_the_cluster(b)) /* since we looked */
        updated(&w->listener);
    return true;
}
