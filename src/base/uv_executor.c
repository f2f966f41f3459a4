/* uv_executor.c - tasks and timers on a libuv loop.
 *
 * Posting appends to a list under a mutex and, when the list was empty, wakes the loop by one
 * uv_async. The loop takes the whole list and runs it; what is posted meanwhile stands in the next
 * list, which the loop reaches after it has polled its sockets. All timers share one uv_timer, set
 * for the soonest.
 *
 * STOPPING  the executor's own handles then no longer hold the loop: uv_run returns when the user's
 * handles are closed. Tasks may still be posted until the last of them has run. */
#include "base/uv_executor.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/thread.h"
#include "base/timer_heap.h"

struct uv_executor {
    struct executor ex;
    uv_loop_t *loop;
    uv_loop_t own_loop; /* what `loop` is when the thread is ours */
    pthread_t thread;   /* that runs the loop; fixed once started */
    sem_t started;
    uv_async_t wake;
    uv_timer_t alarm;
    int open_handles; /* of the two above; loop thread */
    struct timer_heap timers;
    int64_t alarm_at; /* deadline the alarm is set for; meaningful while it is active */
    bool firing;      /* timers, which sets the alarm in the end */
    struct task stop_task;

    pthread_mutex_t lock;
    struct list queue; /* of tasks; under lock */
    bool wake_closed;  /* the wake handle is gone; under lock */
};

static struct uv_executor *of(const struct executor *ex)
{
    return (struct uv_executor *)container_of(ex, struct uv_executor, ex);
}

static void post(struct executor *ex, struct task *task)
{
    struct uv_executor *e = of(ex);
    pthread_mutex_lock(&e->lock);
    bool first = list_empty(&e->queue);
    list_push_back(&e->queue, &task->link);
    /* Under the lock, so that the task cannot run, and end this executor, before we have woken it.
     */
    if (first && !e->wake_closed)
        uv_async_send(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

/* Runs what is queued now; false when there was nothing. */
static bool run_round(struct uv_executor *e)
{
    struct list round = LIST_INIT(round);
    pthread_mutex_lock(&e->lock);
    list_splice(&round, &e->queue);
    pthread_mutex_unlock(&e->lock);
    if (list_empty(&round))
        return false;
    struct list *link;
    while ((link = list_pop(&round))) {
        struct task *task = list_entry(link, struct task, link);
        task->run(task);
    }
    return true;
}

static void on_wake(uv_async_t *wake)
{
    run_round(wake->data);
}

static void set_alarm(struct uv_executor *e);

static void on_alarm(uv_timer_t *alarm)
{
    struct uv_executor *e = alarm->data;
    int64_t now = executor_now_ms(&e->ex);
    uint64_t limit = e->timers.started; /* those started by a firing one wait for the next round */
    struct timer *t;
    e->firing = true;
    while ((t = timer_heap_first(&e->timers)) && t->deadline_ms <= now && t->order < limit) {
        timer_heap_remove(&e->timers, t);
        t->fire(t);
    }
    set_alarm(e);
    e->firing = false;
}

/* An alarm that is too early is left: it finds nothing due and sets itself again. Most timers are
 * stopped long before their time, so moving the alarm for each would cost more.
 *
 * An alarm that sets itself again for now would be run again before the loop looks at its sockets,
 * and a timer that starts itself again and again keep it from them for ever: a millisecond then. */
static void set_alarm(struct uv_executor *e)
{
    struct timer *first = timer_heap_first(&e->timers);
    if (!first || uv_is_closing((uv_handle_t *)&e->alarm))
        return;
    if (uv_is_active((uv_handle_t *)&e->alarm) && e->alarm_at <= first->deadline_ms)
        return;
    uv_update_time(e->loop); /* the loop's idea of now may be old */
    int64_t delay = first->deadline_ms - executor_now_ms(&e->ex);
    e->alarm_at = first->deadline_ms;
    int64_t least = e->firing ? 1 : 0;
    uv_timer_start(&e->alarm, on_alarm, (uint64_t)(delay > least ? delay : least), 0);
}

static bool on_thread(const struct executor *ex)
{
    return pthread_equal(of(ex)->thread, pthread_self());
}

static void timer_start(struct executor *ex, struct timer *t, int64_t delay_ms)
{
    struct uv_executor *e = of(ex);
    assert(on_thread(ex));
    timer_heap_put(&e->timers, t, timer_deadline(ex->clock, delay_ms));
    if (!e->firing)
        set_alarm(e);
}

static void timer_stop(struct executor *ex, struct timer *t)
{
    assert(on_thread(ex));
    timer_heap_remove(&of(ex)->timers, t);
}

static const struct executor_ops uv_ops = {post, timer_start, timer_stop, on_thread};

struct executor *uv_executor_ex(struct uv_executor *e)
{
    return &e->ex;
}

uv_loop_t *uv_executor_loop(struct uv_executor *e)
{
    return e->loop;
}

static struct uv_executor *alloc(void)
{
    struct uv_executor *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->ex = (struct executor){&uv_ops, clock_real()};
    list_init(&e->queue);
    pthread_mutex_init(&e->lock, NULL);
    sem_init(&e->started, 0, 0);
    return e;
}

static void dealloc(struct uv_executor *e)
{
    sem_destroy(&e->started);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static int open_handles(struct uv_executor *e, uv_loop_t *loop)
{
    e->loop = loop;
    int err = uv_async_init(loop, &e->wake, on_wake);
    if (err)
        return err;
    uv_timer_init(loop, &e->alarm); /* cannot fail */
    e->wake.data = e->alarm.data = e;
    e->open_handles = 2;
    /* timers alone do not hold a loop: it lives as long as the wake handle */
    uv_unref((uv_handle_t *)&e->alarm);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct uv_executor *e = handle->data;
    e->open_handles--;
}

static void close_handles(struct uv_executor *e)
{
    struct timer *t;
    e->firing = true;
    while ((t = timer_heap_first(&e->timers)))
        timer_heap_remove(&e->timers, t); /* their owners may ask timer_armed */
    pthread_mutex_lock(&e->lock);
    e->wake_closed = true;
    pthread_mutex_unlock(&e->lock);
    uv_close((uv_handle_t *)&e->wake, on_closed);
    uv_close((uv_handle_t *)&e->alarm, on_closed);
}

static void *thread_main(void *arg)
{
    struct uv_executor *e = arg;
    e->thread = pthread_self();
    sem_post(&e->started);
    /* Each turn ends when only our own handles are left; what was posted at the last moment may
     * have opened others. */
    do
        uv_run(e->loop, UV_RUN_DEFAULT);
    while (run_round(e));
    close_handles(e);
    uv_run(e->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void let_loop_end(struct task *task)
{
    struct uv_executor *e = container_of(task, struct uv_executor, stop_task);
    uv_unref((uv_handle_t *)&e->wake);
}

int uv_executor_start(const char *name, struct uv_executor **out)
{
    *out = NULL;
    struct uv_executor *e = alloc();
    if (!e)
        return -ENOMEM;
    int err = uv_loop_init(&e->own_loop);
    if (err)
        goto no_loop;
    if ((err = open_handles(e, &e->own_loop)))
        goto no_handles;
    pthread_t thread;
    if ((err = thread_start(name, thread_main, e, &thread)))
        goto no_thread;
    while (sem_wait(&e->started) < 0 && errno == EINTR)
        ;
    *out = e;
    return 0;

no_thread:
    close_handles(e);
    uv_run(e->loop, UV_RUN_DEFAULT);
no_handles:
    uv_loop_close(&e->own_loop);
no_loop:
    dealloc(e);
    return err;
}

void uv_executor_stop(struct uv_executor *e)
{
    assert(!on_thread(&e->ex));
    task_init(&e->stop_task, let_loop_end);
    post(&e->ex, &e->stop_task);
    pthread_join(e->thread, NULL);
    int err = uv_loop_close(&e->own_loop);
    assert(err == 0);
    (void)err;
    dealloc(e);
}

int uv_executor_attach(uv_loop_t *loop, struct uv_executor **out)
{
    *out = NULL;
    struct uv_executor *e = alloc();
    if (!e)
        return -ENOMEM;
    e->thread = pthread_self();
    int err = open_handles(e, loop);
    if (err) {
        dealloc(e);
        return err;
    }
    *out = e;
    return 0;
}

void uv_executor_detach(struct uv_executor *e)
{
    while (run_round(e))
        ;
    close_handles(e);
}

void uv_executor_free(struct uv_executor *e)
{
    assert(e->open_handles == 0);
    while (run_round(e)) /* posted while the handles closed */
        ;
    dealloc(e);
}
