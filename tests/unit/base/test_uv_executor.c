/* The executor on a libuv loop: order, many posting threads, timers, stopping. */
#include "base/uv_executor.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        assert_int_equal(errno, EINTR);
}

/* A task that calls a function and lets the test know. */
struct call {
    struct task task;
    struct executor *ex;
    void (*fn)(struct call *c);
    void *arg;
    sem_t done;
};

static void run_call(struct task *t)
{
    struct call *c = container_of(t, struct call, task);
    assert_true(executor_on_thread(c->ex));
    c->fn(c);
    sem_post(&c->done);
}

static void call_on(struct executor *ex, void (*fn)(struct call *c), void *arg)
{
    struct call c = {.ex = ex, .fn = fn, .arg = arg};
    task_init(&c.task, run_call);
    sem_init(&c.done, 0, 0);
    executor_post(ex, &c.task);
    wait_for(&c.done);
    sem_destroy(&c.done);
}

static void nothing(struct call *c)
{
}

static struct uv_executor *start(void)
{
    struct uv_executor *e;
    assert_int_equal(uv_executor_start("a-name-that-is-too-long", &e), 0);
    assert_false(executor_on_thread(uv_executor_ex(e)));
    return e;
}

/* Many threads post; each thread's tasks run in its order, none is lost. */
enum { POSTERS = 4, EACH = 2000 };
struct numbered {
    struct task task;
    struct poster *poster;
    int number;
};
struct poster {
    struct executor *ex;
    pthread_t thread;
    int seen; /* executor's thread */
    struct numbered tasks[EACH];
};

static void run_numbered(struct task *t)
{
    struct numbered *n = container_of(t, struct numbered, task);
    assert_int_equal(n->poster->seen, n->number);
    n->poster->seen++;
}

static void *post_all(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < EACH; i++) {
        p->tasks[i] = (struct numbered){.poster = p, .number = i};
        task_init(&p->tasks[i].task, run_numbered);
        executor_post(p->ex, &p->tasks[i].task);
    }
    return NULL;
}

static void posts_of_many_threads_run_once_each_in_order(void **state)
{
    struct uv_executor *e = start();
    struct poster *p = calloc(POSTERS, sizeof(*p));
    for (int i = 0; i < POSTERS; i++) {
        p[i].ex = uv_executor_ex(e);
        assert_int_equal(pthread_create(&p[i].thread, NULL, post_all, &p[i]), 0);
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(p[i].thread, NULL);
    uv_executor_stop(e); /* runs what is queued */
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(p[i].seen, EACH);
    free(p);
}

/* A task that posts itself again for ever must not keep the loop from its sockets and timers. */
struct spinner {
    struct task task;
    struct executor *ex;
    atomic_bool stop;
    int depth, rounds;
};

static void spin(struct task *t)
{
    struct spinner *s = container_of(t, struct spinner, task);
    assert_int_equal(s->depth++, 0); /* never from inside post */
    if (!atomic_load(&s->stop))
        executor_post(s->ex, &s->task);
    s->rounds++;
    s->depth--;
}

struct pipe_watch {
    uv_poll_t poll;
    int fds[2];
    sem_t readable;
};

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct pipe_watch *w = poll->data;
    uv_poll_stop(poll);
    sem_post(&w->readable);
}

static void watch_pipe(struct call *c)
{
    void **args = c->arg;
    struct pipe_watch *w = args[1];
    uv_poll_init(uv_executor_loop(args[0]), &w->poll, w->fds[0]);
    w->poll.data = w;
    uv_poll_start(&w->poll, UV_READABLE, on_readable);
}

static void unwatch_pipe(struct call *c)
{
    uv_close((uv_handle_t *)c->arg, NULL);
}

static void tasks_that_post_tasks_do_not_starve_io(void **state)
{
    struct uv_executor *e = start();
    struct pipe_watch w;
    sem_init(&w.readable, 0, 0);
    assert_int_equal(pipe(w.fds), 0);
    struct spinner s = {.ex = uv_executor_ex(e)};
    task_init(&s.task, spin);
    executor_post(s.ex, &s.task);
    call_on(s.ex, watch_pipe, (void *[]){e, &w});
    assert_int_equal(write(w.fds[1], "x", 1), 1);
    wait_for(&w.readable);
    atomic_store(&s.stop, true);
    call_on(s.ex, unwatch_pipe, &w.poll);
    uv_executor_stop(e);
    assert_true(s.rounds > 0);
    close(w.fds[0]);
    close(w.fds[1]);
    sem_destroy(&w.readable);
}

/* Nor must a timer that starts itself again at once. */
struct restless {
    struct timer timer;
    struct executor *ex;
    atomic_bool stop;
    atomic_int rounds;
};

static void on_restless(struct timer *t)
{
    struct restless *r = container_of(t, struct restless, timer);
    atomic_fetch_add(&r->rounds, 1);
    if (!atomic_load(&r->stop))
        executor_timer_start(r->ex, t, 0);
}

static void start_restless(struct call *c)
{
    executor_timer_start(c->ex, &((struct restless *)c->arg)->timer, 0);
}

static void timers_that_start_themselves_do_not_starve_io(void **state)
{
    struct uv_executor *e = start();
    struct pipe_watch w;
    sem_init(&w.readable, 0, 0);
    assert_int_equal(pipe(w.fds), 0);
    struct restless r = {.ex = uv_executor_ex(e)};
    timer_init(&r.timer, on_restless);
    call_on(r.ex, watch_pipe, (void *[]){e, &w});
    call_on(r.ex, start_restless, &r);
    while (atomic_load(&r.rounds) < 3)
        sched_yield();
    assert_int_equal(write(w.fds[1], "x", 1), 1);
    wait_for(&w.readable);
    atomic_store(&r.stop, true);
    call_on(r.ex, unwatch_pipe, &w.poll);
    uv_executor_stop(e);
    close(w.fds[0]);
    close(w.fds[1]);
    sem_destroy(&w.readable);
}

/* Timers */
struct alarm {
    struct timer timer;
    struct executor *ex;
    const char *name;
    char *log;
    sem_t *fired;
    int again;
};

static void on_alarm(struct timer *t)
{
    struct alarm *a = container_of(t, struct alarm, timer);
    assert_true(executor_on_thread(a->ex));
    assert_true(executor_now_ms(a->ex) >= t->deadline_ms);
    strcat(a->log, a->name);
    if (a->again-- > 0)
        executor_timer_start(a->ex, t, 0);
    else if (a->fired)
        sem_post(a->fired);
}

static void start_alarms(struct call *c)
{
    struct alarm *a = c->arg;
    executor_timer_start(c->ex, &a[0].timer, 30);
    executor_timer_start(c->ex, &a[1].timer, 5);
    executor_timer_start(c->ex, &a[2].timer, 1);
    executor_timer_start(c->ex, &a[3].timer, 10);
    executor_timer_start(c->ex, &a[3].timer, 15);
    executor_timer_stop(c->ex, &a[2].timer);
    executor_timer_stop(c->ex, &a[2].timer);
    assert_false(timer_armed(&a[2].timer));
    assert_true(timer_armed(&a[3].timer));
}

static void start_far_alarm(struct call *c)
{
    executor_timer_start(c->ex, &((struct alarm *)c->arg)->timer, 3600000);
}

static void timers_fire_in_order_and_stopped_ones_do_not(void **state)
{
    struct uv_executor *e = start();
    char log[32] = "";
    sem_t fired;
    sem_init(&fired, 0, 0);
    struct alarm a[4];
    for (int i = 0; i < 4; i++) {
        a[i] = (struct alarm){.ex = uv_executor_ex(e), .log = log};
        a[i].name = &"0\0001\0002\0003"[2 * i];
        timer_init(&a[i].timer, on_alarm);
    }
    a[0].fired = &fired;
    call_on(uv_executor_ex(e), start_alarms, a);
    wait_for(&fired);
    assert_string_equal(log, "130");
    call_on(uv_executor_ex(e), start_far_alarm, &a[2]);
    uv_executor_stop(e);
    assert_string_equal(log, "130"); /* one still armed at the end never fires */
    assert_false(timer_armed(&a[2].timer));
    sem_destroy(&fired);
}

static void start_soon(struct call *c)
{
    executor_timer_start(c->ex, &((struct alarm *)c->arg)->timer, 0);
}

static void a_timer_may_start_itself_again(void **state)
{
    struct uv_executor *e = start();
    char log[32] = "";
    sem_t fired;
    sem_init(&fired, 0, 0);
    struct alarm a = {
        .ex = uv_executor_ex(e), .name = "x", .log = log, .fired = &fired, .again = 3};
    timer_init(&a.timer, on_alarm);
    call_on(uv_executor_ex(e), start_soon, &a);
    wait_for(&fired);
    assert_string_equal(log, "xxxx");
    uv_executor_stop(e);
    sem_destroy(&fired);
}

/* Stopping */
static void run_self_free(struct task *t)
{
    free(t);
}

static void a_task_may_free_itself(void **state)
{
    struct uv_executor *e = start();
    for (int i = 0; i < 100; i++) {
        struct task *t = malloc(sizeof(*t));
        task_init(t, run_self_free);
        executor_post(uv_executor_ex(e), t);
    }
    uv_executor_stop(e);
}

/* Posts from a task, and from the close callback of a handle, while the executor is stopping. */
struct late {
    struct task task, last;
    struct uv_executor *e;
    uv_timer_t handle;
    int steps;
};

static void late_last(struct task *t)
{
    container_of(t, struct late, last)->steps++;
}

static void late_closed(uv_handle_t *h)
{
    struct late *l = h->data;
    l->steps++;
    task_init(&l->last, late_last);
    executor_post(uv_executor_ex(l->e), &l->last);
}

static void late_run(struct task *t)
{
    struct late *l = container_of(t, struct late, task);
    if (l->steps++ < 3) {
        executor_post(uv_executor_ex(l->e), t);
        return;
    }
    uv_timer_init(uv_executor_loop(l->e), &l->handle);
    l->handle.data = l;
    uv_close((uv_handle_t *)&l->handle, late_closed);
}

static void stop_runs_what_the_last_tasks_post(void **state)
{
    struct late l = {.e = start()};
    task_init(&l.task, late_run);
    executor_post(uv_executor_ex(l.e), &l.task);
    uv_executor_stop(l.e);
    assert_int_equal(l.steps, 6);
}

static void start_and_stop_many(void **state)
{
    for (int i = 0; i < 50; i++) {
        struct uv_executor *e = start();
        if (i % 2)
            call_on(uv_executor_ex(e), nothing, NULL);
        uv_executor_stop(e);
    }
}

/* On a loop of the caller */
struct ender {
    struct timer timer;
    struct uv_executor *e;
    int fired;
};

static void end(struct timer *t)
{
    struct ender *x = container_of(t, struct ender, timer);
    x->fired++;
    uv_executor_detach(x->e);
}

static void start_ender(struct task *t);
struct starter {
    struct task task;
    struct ender *ender;
};

static void start_ender(struct task *t)
{
    struct ender *x = container_of(t, struct starter, task)->ender;
    executor_timer_start(uv_executor_ex(x->e), &x->timer, 2);
}

static void attached_to_the_callers_loop(void **state)
{
    uv_loop_t loop;
    struct ender x = {0};
    struct starter s = {.ender = &x};
    uv_loop_init(&loop);
    assert_int_equal(uv_executor_attach(&loop, &x.e), 0);
    assert_true(executor_on_thread(uv_executor_ex(x.e)));
    assert_ptr_equal(uv_executor_loop(x.e), &loop);
    timer_init(&x.timer, end);
    task_init(&s.task, start_ender);
    executor_post(uv_executor_ex(x.e), &s.task);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(x.fired, 1);
    uv_executor_free(x.e);
    assert_int_equal(uv_loop_close(&loop), 0);
}

UNIT_MAIN(unit_test(posts_of_many_threads_run_once_each_in_order),
          unit_test(tasks_that_post_tasks_do_not_starve_io),
          unit_test(timers_that_start_themselves_do_not_starve_io),
          unit_test(timers_fire_in_order_and_stopped_ones_do_not),
          unit_test(a_timer_may_start_itself_again), unit_test(a_task_may_free_itself),
          unit_test(stop_runs_what_the_last_tasks_post), unit_test(start_and_stop_many),
          unit_test(attached_to_the_callers_loop))
