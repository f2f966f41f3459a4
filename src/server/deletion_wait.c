/* deletion_wait.c - see deletion_wait.h.
 *
 * The list of deletions is read, and read again at once after it has changed; but when it is long
 * there is a pause between two reads, so that many deletions do not mean as many reads of it. */
#include "server/deletion_wait.h"

#include "metadata/paths.h"
#include "server/broker.h"

enum { PAUSE_MS = 10, LONG_LIST = 16 };

static void finish(struct deletion_wait *w)
{
    struct executor *ex = request_executor(w->req);
    struct broker *b = w->req->broker;
    w->ending = true;
    if (w->reading)
        return; /* when the answer is there */
    w->req->net->aborted = NULL;
    executor_timer_stop(ex, &w->deadline);
    executor_timer_stop(ex, &w->pause);
    store_unwatch(broker_store(b), &w->watch);
    w->done(w);
    broker_async_end(b);
}

static bool some_left(const struct deletion_wait *w)
{
    for (int i = 0; i < w->op.names_n; i++)
        if (name_set_has(w->names, str_of(w->op.names[i])))
            return true;
    return false;
}

static void pause_reading(struct deletion_wait *w)
{
    if (!timer_armed(&w->pause))
        executor_timer_start(request_executor(w->req), &w->pause,
                             w->left_n >= LONG_LIST ? PAUSE_MS : 0);
}

static void on_read(struct store_request *r)
{
    struct deletion_wait *w = container_of(r, struct deletion_wait, read);
    bool over = r->status != 0 || !some_left(w);
    w->left_n = w->op.names_n;
    store_request_clear(r);
    w->reading = false;
    if (over || w->ending)
        finish(w);
    else if (w->changed)
        pause_reading(w);
}

static void read_again(struct timer *timer)
{
    struct deletion_wait *w = container_of(timer, struct deletion_wait, pause);
    w->op = store_op_children(PATH_DELETE_TOPICS, true);
    w->read = (struct store_request){
        .ops = &w->op, .ops_n = 1, .done_on = request_executor(w->req), .done = on_read};
    w->reading = true;
    w->changed = false;
    store_submit(broker_store(w->req->broker), &w->read);
}

static void on_change(struct store_watch *watch)
{
    struct deletion_wait *w = container_of(watch, struct deletion_wait, watch);
    w->changed = true;
    if (!w->reading && !w->ending)
        pause_reading(w);
}

static void too_late(struct timer *timer)
{
    finish(container_of(timer, struct deletion_wait, deadline));
}

static void connection_closed(struct net_request *net)
{
    finish(net->user);
}

void deletion_wait_start(struct deletion_wait *w, int64_t timeout_ms)
{
    struct executor *ex = request_executor(w->req);
    if (w->req->net->gone) {
        w->done(w);
        return;
    }
    timer_init(&w->deadline, too_late);
    timer_init(&w->pause, read_again);
    w->watch = (struct store_watch){
        .path = PATH_DELETE_TOPICS, .children = true, .on = ex, .fired = on_change};
    if (store_watch(broker_store(w->req->broker), &w->watch) != 0) {
        w->done(w);
        return;
    }
    broker_async_begin(w->req->broker);
    w->req->net->user = w;
    w->req->net->aborted = connection_closed;
    executor_timer_start(ex, &w->deadline, timeout_ms);
    read_again(&w->pause);
}
