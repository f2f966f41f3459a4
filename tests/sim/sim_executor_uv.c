/* sim_executor_uv.c - uv_executor.h on a fiber: the same promises, no libuv. */
#include <assert.h>
#include <stdlib.h>

#include "base/timer_heap.h"
#include "base/uv_executor.h"
#include "sim.h"

struct uv_executor {
    struct executor ex;
    struct sim_host *host;
    struct fiber *fiber;
    struct list queue;
    struct timer_heap timers;
    int64_t alarm_ms; /* an event is on its way for then; INT64_MAX: none */
    bool stopping;
};

static struct uv_executor *of(const struct executor *ex)
{
    return (struct uv_executor *)container_of(ex, struct uv_executor, ex);
}

static void post(struct executor *ex, struct task *task)
{
    struct uv_executor *e = of(ex);
    list_push_back(&e->queue, &task->link);
    fiber_wake_all(e->host, e);
}

static void timer_start(struct executor *ex, struct timer *t, int64_t delay_ms)
{
    timer_heap_put(&of(ex)->timers, t, timer_deadline(ex->clock, delay_ms));
}

static void timer_stop(struct executor *ex, struct timer *t)
{
    timer_heap_remove(&of(ex)->timers, t);
}

static bool on_thread(const struct executor *ex)
{
    return of(ex)->fiber == fiber_self();
}

static const struct executor_ops ops = {post, timer_start, timer_stop, on_thread};

static void run_round(struct uv_executor *e)
{
    struct list round, *link;
    list_init(&round);
    list_splice(&round, &e->queue);
    while ((link = list_pop(&round))) {
        struct task *task = list_entry(link, struct task, link);
        task->run(task);
    }
}

static void fire_due(struct uv_executor *e)
{
    int64_t now = executor_now_ms(&e->ex);
    uint64_t limit = e->timers.started;
    struct timer *t;
    while ((t = timer_heap_first(&e->timers)) && t->deadline_ms <= now && t->order < limit) {
        timer_heap_remove(&e->timers, t);
        t->fire(t);
    }
}

/* Until something is posted or the first timer is due. */
static void wait(struct uv_executor *e)
{
    struct timer *first = timer_heap_first(&e->timers);
    if (!first)
        fiber_block(e);
    else
        fiber_block_for(e, first->deadline_ms * SIM_MS - sim_now());
}

static void *executor_main(void *arg)
{
    struct uv_executor *e = arg;
    e->fiber = fiber_self();
    while (!e->stopping || !list_empty(&e->queue)) {
        run_round(e);
        fire_due(e);
        if (list_empty(&e->queue) && !e->stopping)
            wait(e);
    }
    struct timer *t;
    while ((t = timer_heap_first(&e->timers)))
        timer_heap_remove(&e->timers, t);
    return NULL;
}

int uv_executor_start(const char *name, struct uv_executor **out)
{
    struct uv_executor *e = calloc(1, sizeof(*e));
    e->ex = (struct executor){&ops, clock_real()};
    e->host = sim_here();
    list_init(&e->queue);
    e->fiber = fiber_start(e->host, name, executor_main, e);
    *out = e;
    return 0;
}

struct executor *uv_executor_ex(struct uv_executor *e)
{
    return &e->ex;
}

/* Nobody looks into it: only its place is told apart. */
uv_loop_t *uv_executor_loop(struct uv_executor *e)
{
    return (uv_loop_t *)e;
}

void uv_executor_stop(struct uv_executor *e)
{
    assert(!on_thread(&e->ex));
    e->stopping = true;
    fiber_wake_all(e->host, e);
    fiber_join(e->fiber);
    free(e);
}

int uv_executor_attach(uv_loop_t *loop, struct uv_executor **out)
{
    (void)loop;
    *out = NULL;
    return -1;
}

void uv_executor_detach(struct uv_executor *e)
{
    (void)e;
}

void uv_executor_free(struct uv_executor *e)
{
    (void)e;
}
