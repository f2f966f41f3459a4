/* Work shared with workers: every lane once, whoever is free, and never a wait for a worker. */
#include "replica/fan_out.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/sim_executor.h"
#include "unit.h"

struct lanes {
    atomic_int ran[64];
    atomic_int busy, most;
};

static void count(void *arg, int lane)
{
    struct lanes *l = arg;
    int busy = atomic_fetch_add(&l->busy, 1) + 1;
    for (int most = atomic_load(&l->most); busy > most;)
        if (atomic_compare_exchange_weak(&l->most, &most, busy))
            break;
    sched_yield();
    atomic_fetch_add(&l->ran[lane], 1);
    atomic_fetch_sub(&l->busy, 1);
}

static void expect_each_once(struct workers *w, int n)
{
    struct lanes l = {0};
    fan_out(w, n, count, &l);
    assert_int_equal(atomic_load(&l.busy), 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(atomic_load(&l.ran[i]), i < n);
}

static void every_lane_runs_once(void **state)
{
    struct workers *w;
    assert_int_equal(workers_start("w", 4, &w), 0);
    for (int round = 0; round < 500; round++)
        expect_each_once(w, round % 64);
    workers_stop(w);
}

/* Helpers that come late find nothing to do, and what they look at is still there. */
static void caller_does_all_when_no_worker_is_free(void **state)
{
    struct sim_clock clock;
    struct workers *w;
    sim_clock_init(&clock, 0);
    struct sim_executor *sim = sim_executor_new(&clock);
    assert_int_equal(workers_sim(sim_executor_ex(sim), &w), 0);
    expect_each_once(w, 64);
    sim_executor_drain(sim);
    workers_stop(w);
    sim_executor_free(sim);
}

struct nested {
    struct job job;
    struct workers *w;
    struct lanes lanes;
};

static void fan_from_worker(struct job *job)
{
    struct nested *n = container_of(job, struct nested, job);
    fan_out(n->w, 8, count, &n->lanes);
}

/* All workers are callers themselves: nobody waits for anybody. */
static void callers_may_be_workers(void **state)
{
    struct nested n[6];
    struct workers *w;
    assert_int_equal(workers_start("w", 2, &w), 0);
    for (int i = 0; i < 6; i++) {
        n[i] = (struct nested){.job = {.work = fan_from_worker}, .w = w};
        workers_submit(w, &n[i].job);
    }
    workers_stop(w);
    for (int i = 0; i < 6; i++)
        for (int lane = 0; lane < 8; lane++)
            assert_int_equal(atomic_load(&n[i].lanes.ran[lane]), 1);
}

UNIT_MAIN(unit_test(every_lane_runs_once), unit_test(caller_does_all_when_no_worker_is_free),
          unit_test(callers_may_be_workers))
