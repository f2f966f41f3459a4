/* Turns: never more at once than allowed, one for an owner, everybody in the end, in order. */
#include "base/turns.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sim_executor.h"
#include "base/uv_executor.h"
#include "unit.h"

enum { OWNERS = 5, JOBS = 3000 };

struct counts {
    atomic_int now, peak, owner_now[OWNERS], wrong, worked, done;
};

struct one {
    struct turn_job turn;
    struct counts *counts;
    int owner, number;
};

static void work(struct turn_job *turn)
{
    struct one *o = container_of(turn, struct one, turn);
    struct counts *c = o->counts;
    int now = atomic_fetch_add(&c->now, 1) + 1, peak = atomic_load(&c->peak);
    while (now > peak && !atomic_compare_exchange_weak(&c->peak, &peak, now))
        ;
    if (atomic_fetch_add(&c->owner_now[o->owner], 1) != 0)
        atomic_fetch_add(&c->wrong, 1);
    atomic_fetch_add(&c->worked, 1);
    sched_yield();
    atomic_fetch_sub(&c->owner_now[o->owner], 1);
    atomic_fetch_sub(&c->now, 1);
}

static void done(struct job *job)
{
    struct one *o = container_of(job, struct one, turn.job);
    atomic_fetch_add(&o->counts->done, 1);
    free(o);
}

static void submit(struct turns *t, struct executor *ex, struct counts *c, int owner)
{
    struct one *o = calloc(1, sizeof(*o));
    o->counts = c;
    o->owner = owner;
    o->turn.owner = &c->owner_now[owner];
    o->turn.work = work;
    o->turn.job.done = done;
    o->turn.job.done_on = ex;
    turns_submit(t, &o->turn);
}

static void so_many_at_once_and_one_for_each(void **state)
{
    struct uv_executor *e;
    struct workers *w;
    struct counts c = {0};
    assert_int_equal(uv_executor_start("done", &e), 0);
    assert_int_equal(workers_start("worker", 8, &w), 0);
    struct turns *t = turns_new(w, 3);
    for (int i = 0; i < JOBS; i++) {
        submit(t, uv_executor_ex(e), &c, i % 3 ? i % OWNERS : 0);
        if (i % 500 == 0)
            turns_set_most(t, 2 + i % 2);
    }
    while (atomic_load(&c.worked) < JOBS)
        sched_yield();
    workers_stop(w);
    uv_executor_stop(e);
    turns_free(t);
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_int_equal(atomic_load(&c.done), JOBS);
    assert_in_range(atomic_load(&c.peak), 1, 3);
}

/* ---- order, on one thread ---- */

struct noted {
    struct turn_job turn;
    char name;
};

static char order[32];

static void note(struct turn_job *turn)
{
    size_t n = strlen(order);
    order[n] = container_of(turn, struct noted, turn)->name;
}

static void nothing(struct job *job)
{
}

static void who_has_one_running_is_passed_over(void **state)
{
    struct sim_executor *sim;
    struct sim_clock clock;
    struct workers *w;
    struct noted n[6];
    static const char names[] = "aabbca"; /* owners */
    sim_clock_init(&clock, 0);
    sim = sim_executor_new(&clock);
    assert_non_null(sim);
    assert_int_equal(workers_sim(sim_executor_ex(sim), &w), 0);
    struct turns *t = turns_new(w, 2);
    memset(order, 0, sizeof(order));
    for (int i = 0; i < 6; i++) {
        n[i] = (struct noted){.name = (char)('0' + i)};
        n[i].turn.owner = strchr(names, names[i]);
        n[i].turn.work = note;
        n[i].turn.job.done = nothing;
        n[i].turn.job.done_on = sim_executor_ex(sim);
        turns_submit(t, &n[i].turn);
    }
    sim_executor_drain(sim);
    assert_string_equal(order, "021345"); /* 0 and 2 begin; when 0 is over it is 1's turn, ... */
    workers_stop(w);
    turns_free(t);
    sim_executor_free(sim);
}

UNIT_MAIN(unit_test(so_many_at_once_and_one_for_each),
          unit_test(who_has_one_running_is_passed_over))
