/* sim_executor.c - tasks and timers served by hand. Tasks go before timers, each in their order, so
 * one seed gives one run. */
#include "base/sim_executor.h"

#include <stdlib.h>

#include "base/timer_heap.h"

struct sim_executor {
    struct executor ex;
    struct sim_clock *clock;
    struct list queue;
    struct timer_heap timers;
};

static struct sim_executor *of(const struct executor *ex)
{
    return (struct sim_executor *)container_of(ex, struct sim_executor, ex);
}

static void post(struct executor *ex, struct task *task)
{
    list_push_back(&of(ex)->queue, &task->link);
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
    return true;
}

static const struct executor_ops sim_ops = {post, timer_start, timer_stop, on_thread};

struct sim_executor *sim_executor_new(struct sim_clock *clock)
{
    struct sim_executor *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->ex = (struct executor){&sim_ops, &clock->clock};
    e->clock = clock;
    list_init(&e->queue);
    return e;
}

void sim_executor_free(struct sim_executor *e)
{
    if (!e)
        return;
    while (list_pop(&e->queue))
        ;
    struct timer *t;
    while ((t = timer_heap_first(&e->timers)))
        timer_heap_remove(&e->timers, t);
    free(e);
}

struct executor *sim_executor_ex(struct sim_executor *e)
{
    return &e->ex;
}

bool sim_executor_step(struct sim_executor *e)
{
    struct list *link = list_pop(&e->queue);
    if (link) {
        struct task *task = list_entry(link, struct task, link);
        task->run(task);
        return true;
    }
    struct timer *t = timer_heap_first(&e->timers);
    if (!t || t->deadline_ms > executor_now_ms(&e->ex))
        return false;
    timer_heap_remove(&e->timers, t);
    t->fire(t);
    return true;
}

void sim_executor_drain(struct sim_executor *e)
{
    while (sim_executor_step(e))
        ;
}

void sim_executor_advance(struct sim_executor *e, int64_t ms)
{
    int64_t end = executor_now_ms(&e->ex) + ms;
    for (;;) {
        sim_executor_drain(e);
        int64_t next = sim_executor_next_timer(e);
        if (next < 0 || next > end)
            break;
        sim_clock_advance(e->clock, next - executor_now_ms(&e->ex));
    }
    int64_t now = executor_now_ms(&e->ex); /* a task may have moved the clock itself */
    if (now < end)
        sim_clock_advance(e->clock, end - now);
}

int64_t sim_executor_next_timer(const struct sim_executor *e)
{
    struct timer *t = timer_heap_first(&e->timers);
    return t ? t->deadline_ms : -1;
}
