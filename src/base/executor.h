/* executor.h - where code runs: a queue of tasks and timers, served one at a time on one thread.
 *
 * What decides never starts a thread or reads a clock: it is given an executor. The real form is a
 * libuv loop on a thread of its own (uv_executor.h), the simulated form runs in the caller on a
 * simulated clock (sim_executor.h).
 *
 * OWNERSHIP  tasks and timers are the caller's memory and are used by one posting at a time. A task
 * may be freed or posted again from inside its own run(). A timer must be stopped before its memory
 * goes.
 *
 * ORDER  tasks run in the order in which they were posted, never from inside executor_post; a task
 * posted by a task runs in a later round, so that sockets are served in between. Timers fire in
 * order of deadline, those of one deadline in order of starting, and never before their time. */
#ifndef BASE_EXECUTOR_H
#define BASE_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct task {
    struct list link;
    void (*run)(struct task *task);
};

struct timer {
    void (*fire)(struct timer *timer);
    int64_t deadline_ms; /* monotonic; meaningful while armed */
    /* The executor's (timer_heap.h). */
    uint64_t order;
    struct timer *child, *next, *back;
    bool armed;
};

struct executor;
struct executor_ops {
    void (*post)(struct executor *ex, struct task *task);
    void (*timer_start)(struct executor *ex, struct timer *timer, int64_t delay_ms);
    void (*timer_stop)(struct executor *ex, struct timer *timer);
    bool (*on_thread)(const struct executor *ex);
};
struct executor {
    const struct executor_ops *ops;
    const struct clock *clock; /* the time that its timers follow */
};

/* Queue the task. @thread any */
static inline void executor_post(struct executor *ex, struct task *task)
{
    ex->ops->post(ex, task);
}
/* Fire once after delay_ms (>= 0); starting an armed timer moves it. @thread the executor's */
static inline void executor_timer_start(struct executor *ex, struct timer *timer, int64_t delay_ms)
{
    ex->ops->timer_start(ex, timer, delay_ms);
}
/* No effect when not armed. @thread the executor's */
static inline void executor_timer_stop(struct executor *ex, struct timer *timer)
{
    ex->ops->timer_stop(ex, timer);
}
static inline bool timer_armed(const struct timer *timer)
{
    return timer->armed;
}
/* Is the caller on the executor's thread? For assertions. */
static inline bool executor_on_thread(const struct executor *ex)
{
    return ex->ops->on_thread(ex);
}
static inline int64_t executor_now_ms(const struct executor *ex)
{
    return clock_mono_ms(ex->clock);
}

static inline void task_init(struct task *t, void (*run)(struct task *))
{
    list_init(&t->link);
    t->run = run;
}
static inline void timer_init(struct timer *t, void (*fire)(struct timer *))
{
    *t = (struct timer){.fire = fire};
}

#endif
