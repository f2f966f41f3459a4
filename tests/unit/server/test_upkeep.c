/* Work that comes round, on a simulated clock. */
#include "unit.h"

#include <pthread.h>

#include "base/sim_executor.h"
#include "base/uv_executor.h"
#include "server/upkeep.h"

struct world {
    struct sim_clock clock;
    struct sim_executor *sim;
    struct workers *workers;
    struct upkeep *upkeep;
};

static void count(void *arg)
{
    ++*(int *)arg;
}

static void open_world(struct world *w)
{
    sim_clock_init(&w->clock, 0);
    w->sim = sim_executor_new(&w->clock);
    assert_int_equal(workers_sim(sim_executor_ex(w->sim), &w->workers), 0);
    assert_int_equal(upkeep_new(sim_executor_ex(w->sim), w->workers, &w->upkeep), 0);
}

static void close_world(struct world *w)
{
    workers_stop(w->workers);
    sim_executor_free(w->sim); /* disarms the timers, which are the upkeep's memory */
    upkeep_free(w->upkeep);
}

static void it_runs_after_the_delay_and_then_at_each_interval(void **state)
{
    struct world w;
    int a = 0, b = 0, never = 0;
    open_world(&w);
    upkeep_add(w.upkeep, 30, 100, count, &a);
    upkeep_add(w.upkeep, 0, 10, count, &b);
    upkeep_add(w.upkeep, 0, INT64_MAX, count, &never);
    sim_executor_advance(w.sim, 1000);
    assert_int_equal(a + b, 0);
    upkeep_start(w.upkeep);
    sim_executor_advance(w.sim, 29);
    assert_int_equal(a, 0);
    assert_int_equal(b, 3);
    sim_executor_advance(w.sim, 1);
    assert_int_equal(a, 1);
    sim_executor_advance(w.sim, 200);
    assert_int_equal(a, 3);
    assert_int_equal(never, 0);
    close_world(&w);
}

struct slow {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool begun, may_end, ended;
};

static void slow_work(void *arg)
{
    struct slow *s = arg;
    pthread_mutex_lock(&s->lock);
    s->begun = true;
    pthread_cond_broadcast(&s->cond);
    while (!s->may_end)
        pthread_cond_wait(&s->cond, &s->lock);
    s->ended = true;
    pthread_mutex_unlock(&s->lock);
}

static void *stop_it(void *arg)
{
    upkeep_stop(arg);
    return NULL;
}

static void stop_waits_for_what_runs(void **state)
{
    struct slow s = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false, false};
    struct uv_executor *e;
    struct workers *workers;
    struct upkeep *u;
    int idle = 0;
    assert_int_equal(uv_executor_start("upkeep", &e), 0);
    assert_int_equal(workers_start("w", 1, &workers), 0);
    assert_int_equal(upkeep_new(uv_executor_ex(e), workers, &u), 0);
    upkeep_add(u, 0, 1, slow_work, &s);
    upkeep_add(u, 1000000, 1, count, &idle);
    upkeep_start(u);
    pthread_mutex_lock(&s.lock);
    while (!s.begun)
        pthread_cond_wait(&s.cond, &s.lock);
    pthread_mutex_unlock(&s.lock);
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_it, u), 0);
    pthread_mutex_lock(&s.lock);
    s.may_end = true;
    pthread_cond_broadcast(&s.cond);
    pthread_mutex_unlock(&s.lock);
    pthread_join(stopper, NULL);
    assert_true(s.ended);
    assert_int_equal(idle, 0);
    workers_stop(workers);
    uv_executor_stop(e);
    upkeep_free(u);
}

UNIT_MAIN(unit_test(it_runs_after_the_delay_and_then_at_each_interval),
          unit_test(stop_waits_for_what_runs))
