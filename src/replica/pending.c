/* pending.c - waits for partitions; see pending.h.
 *
 * A wake comes on any thread. It marks its watch, and the first of them since the task last ran
 * posts the task. While that post is under way the memory must stay, so an operation that ends with
 * a task posted leaves the last word to that task. */
#include "replica/pending.h"

static void on_wake(struct partition_waiter *w)
{
    struct pending_watch *watch = list_entry(w, struct pending_watch, waiter);
    struct pending *p = watch->pending;
    atomic_store_explicit(&watch->dirty, true, memory_order_release);
    if (!atomic_exchange_explicit(&p->posted, true, memory_order_acq_rel))
        executor_post(p->ex, &p->task);
}

static void end(struct pending *p, enum pending_end why)
{
    p->ended = true;
    p->why = why;
    executor_timer_stop(p->ex, &p->timer);
    for (int i = 0; i < p->watches_n; i++)
        partition_unwait(&p->watches[i].waiter); /* no wake after this */
    if (!atomic_load_explicit(&p->posted, memory_order_acquire))
        p->ops->finish(p, why);
}

static void on_task(struct task *t)
{
    struct pending *p = list_entry(t, struct pending, task);
    /* A read-modify-write, to see the marks of wakes that found the task posted. */
    atomic_exchange_explicit(&p->posted, false, memory_order_acq_rel);
    if (p->ended) {
        p->ops->finish(p, p->why);
        return;
    }
    for (int i = 0; i < p->watches_n; i++) {
        if (!atomic_exchange_explicit(&p->watches[i].dirty, false, memory_order_acq_rel))
            continue;
        if (p->ops->changed(p, i)) {
            end(p, PENDING_READY);
            return;
        }
    }
}

static void on_deadline(struct timer *t)
{
    end(list_entry(t, struct pending, timer), PENDING_EXPIRED);
}

void pending_start(struct pending *p, const struct pending_ops *ops, struct executor *ex,
                   struct pending_watch *watches, struct partition *const *partitions, int n,
                   int64_t timeout_ms)
{
    p->ops = ops;
    p->ex = ex;
    p->watches = watches;
    p->watches_n = n;
    p->ended = false;
    task_init(&p->task, on_task);
    timer_init(&p->timer, on_deadline);
    atomic_init(&p->posted, false);
    for (int i = 0; i < n; i++) {
        struct pending_watch *w = &watches[i];
        w->pending = p;
        w->waiter.wake = on_wake;
        w->waiter.partition = NULL;
        atomic_init(&w->dirty, false);
    }
    for (int i = 0; i < n; i++)
        if (partitions[i])
            partition_wait(partitions[i], &watches[i].waiter);
    /* What moved before the watch was set is seen here. */
    for (int i = 0; i < n; i++) {
        if (partitions[i] && ops->changed(p, i)) {
            end(p, PENDING_READY);
            return;
        }
    }
    executor_timer_start(ex, &p->timer, timeout_ms > 0 ? timeout_ms : 0);
}

void pending_cancel(struct pending *p)
{
    if (!p->ended)
        end(p, PENDING_CANCELLED);
}

void pending_hurry(struct pending *p)
{
    if (!p->ended)
        end(p, PENDING_EXPIRED);
}
