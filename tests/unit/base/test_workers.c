/* The pool: every job runs once, done runs on its executor, stop waits for all. */
#include "base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sim_executor.h"
#include "base/uv_executor.h"
#include "unit.h"

struct counted {
    struct job job;
    struct executor *ex;
    atomic_int *worked, *done;
    int seen; /* by work, then by done */
};

static void work(struct job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    c->seen++;
    atomic_fetch_add(c->worked, 1);
}

static void done(struct job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    assert_true(executor_on_thread(c->ex));
    assert_int_equal(c->seen, 1);
    atomic_fetch_add(c->done, 1);
    free(c);
}

static void work_and_free(struct job *job)
{
    struct counted *c = container_of(job, struct counted, job);
    atomic_fetch_add(c->worked, 1);
    free(c);
}

static void submit(struct workers *w, struct executor *ex, bool with_done, atomic_int *counts)
{
    struct counted *c = calloc(1, sizeof(*c));
    c->ex = ex;
    c->worked = &counts[0];
    c->done = &counts[1];
    c->job.work = with_done ? work : work_and_free;
    c->job.done = with_done ? done : NULL;
    c->job.done_on = ex;
    workers_submit(w, &c->job);
}

static void every_job_runs_once_and_done_on_its_executor(void **state)
{
    struct uv_executor *e;
    struct workers *w;
    atomic_int counts[2] = {0};
    assert_int_equal(uv_executor_start("done", &e), 0);
    assert_int_equal(workers_start("worker", 4, &w), 0);
    for (int i = 0; i < 2000; i++)
        submit(w, uv_executor_ex(e), i % 2, counts);
    workers_stop(w);
    assert_int_equal(atomic_load(&counts[0]), 2000);
    uv_executor_stop(e);
    assert_int_equal(atomic_load(&counts[1]), 1000);
}

/* A job that waits for another shows that they run at the same time. */
struct meeting {
    struct job job;
    sem_t *mine, *theirs;
};

static void meet(struct job *job)
{
    struct meeting *m = container_of(job, struct meeting, job);
    sem_post(m->theirs);
    while (sem_wait(m->mine) < 0 && errno == EINTR)
        ;
}

static void jobs_run_side_by_side(void **state)
{
    struct workers *w;
    sem_t a, b;
    sem_init(&a, 0, 0);
    sem_init(&b, 0, 0);
    struct meeting one = {.job = {.work = meet}, .mine = &a, .theirs = &b};
    struct meeting two = {.job = {.work = meet}, .mine = &b, .theirs = &a};
    assert_int_equal(workers_start("worker", 2, &w), 0);
    workers_submit(w, &one.job);
    workers_submit(w, &two.job);
    workers_stop(w);
    sem_destroy(&a);
    sem_destroy(&b);
}

/* A job may submit the next one, also while the pool is stopping. */
struct chain {
    struct job job;
    struct workers *w;
    int left;
};

static void run_link(struct job *job)
{
    struct chain *c = container_of(job, struct chain, job);
    if (c->left-- > 0)
        workers_submit(c->w, job);
}

static void stop_runs_what_jobs_submit(void **state)
{
    struct chain c = {.job = {.work = run_link}, .left = 100};
    assert_int_equal(workers_start("worker", 1, &c.w), 0);
    workers_submit(c.w, &c.job);
    workers_stop(c.w);
    assert_int_equal(c.left, -1);
    workers_stop(NULL);
}

static void simulated_pool_runs_on_its_executor(void **state)
{
    struct sim_clock clock;
    struct workers *w;
    atomic_int counts[2] = {0};
    sim_clock_init(&clock, 0);
    struct sim_executor *pool = sim_executor_new(&clock), *home = sim_executor_new(&clock);
    assert_int_equal(workers_sim(sim_executor_ex(pool), &w), 0);
    submit(w, sim_executor_ex(home), true, counts);
    submit(w, sim_executor_ex(home), false, counts);
    sim_executor_drain(home);
    assert_int_equal(counts[0], 0);
    sim_executor_drain(pool);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 0);
    sim_executor_drain(home);
    assert_int_equal(counts[1], 1);
    submit(w, sim_executor_ex(home), false, counts);
    workers_stop(w);
    sim_executor_drain(pool);
    assert_int_equal(counts[0], 3);
    sim_executor_free(pool);
    sim_executor_free(home);
}

/* Jobs that are all in work at once tell how many threads there are. */
struct crowd {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int here, expected, gone;
};

struct guest {
    struct job job;
    struct crowd *crowd;
};

static void wait_for_all(struct job *job)
{
    struct crowd *c = container_of(job, struct guest, job)->crowd;
    pthread_mutex_lock(&c->lock);
    c->here++;
    pthread_cond_broadcast(&c->changed);
    while (c->here < c->expected)
        pthread_cond_wait(&c->changed, &c->lock);
    c->gone++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Ends only if n jobs run at the same time. */
static void all_meet(struct workers *w, int n)
{
    static struct crowd c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    static struct guest guests[16];
    c.here = c.gone = 0;
    c.expected = n;
    for (int i = 0; i < n; i++) {
        guests[i] = (struct guest){.job.work = wait_for_all, .crowd = &c};
        workers_submit(w, &guests[i].job);
    }
    pthread_mutex_lock(&c.lock);
    while (c.gone < n)
        pthread_cond_wait(&c.changed, &c.lock);
    pthread_mutex_unlock(&c.lock);
}

static atomic_int resized_in_job;
static struct workers *resized;

static void shrink_from_inside(struct job *job)
{
    atomic_store(&resized_in_job, workers_resize(resized, 1) == 0);
}

static void the_pool_grows_and_shrinks(void **state)
{
    struct workers *w;
    atomic_int counts[2] = {0};
    assert_int_equal(workers_start("w", 2, &w), 0);
    all_meet(w, 2);
    assert_int_equal(workers_resize(w, 8), 0);
    all_meet(w, 8);
    for (int i = 0; i < 100; i++)
        submit(w, NULL, false, counts);
    assert_int_equal(workers_resize(w, 1), 0);
    for (int i = 0; i < 100; i++)
        submit(w, NULL, false, counts);
    assert_int_equal(workers_resize(w, 3), 0);
    all_meet(w, 3);
    resized = w;
    struct job job = {.work = shrink_from_inside};
    workers_submit(w, &job);
    workers_stop(w);
    assert_int_equal(atomic_load(&resized_in_job), 1);
    assert_int_equal(atomic_load(&counts[0]), 200);
}

/* ---- too many jobs ---- */

struct told {
    atomic_int is, calls;
};

static void note_told(void *arg, bool is)
{
    struct told *c = arg;
    assert_int_equal(atomic_exchange(&c->is, is), !is);
    atomic_fetch_add(&c->calls, 1);
}

struct gate {
    struct job job;
    sem_t *at, *go;
};

static void wait_at_gate(struct job *job)
{
    struct gate *g = container_of(job, struct gate, job);
    sem_post(g->at);
    sem_wait(g->go);
}

static void work_is_measured_from_when_it_is_asked_for(void **state)
{
    struct workers *w;
    sem_t at, go;
    struct gate gate = {.job.work = wait_at_gate, .at = &at, .go = &go};
    struct gate unmeasured = gate;
    sem_init(&at, 0, 0);
    sem_init(&go, 0, 0);
    assert_int_equal(workers_start("worker", 1, &w), 0);
    assert_int_equal(workers_count(w), 1);
    workers_submit(w, &unmeasured.job);
    sem_wait(&at);
    workers_measure(w); /* while that one is under way: it does not count */
    assert_int_equal(workers_busy_ns(w), 0);
    sem_post(&go);
    workers_submit(w, &gate.job);
    sem_wait(&at); /* begun */
    uint64_t first = workers_busy_ns(w), later;
    do
        later = workers_busy_ns(w);
    while (later == first);
    assert_true(later > first);
    sem_post(&go);
    workers_stop(w);
    sem_destroy(&at);
    sem_destroy(&go);
}

static void who_brings_too_many_is_told(void **state)
{
    struct workers *w;
    struct told crowd = {0};
    sem_t at, go;
    struct gate gates[6], later[6];
    sem_init(&at, 0, 0);
    sem_init(&go, 0, 0);
    assert_int_equal(workers_start("worker", 1, &w), 0);
    workers_watch(w, 3, note_told, &crowd);
    for (int i = 0; i < 6; i++) {
        gates[i] = (struct gate){.job.work = wait_at_gate, .at = &at, .go = &go};
        workers_submit(w, &gates[i].job);
        if (i == 0)
            sem_wait(&at); /* taken: it does not wait */
        assert_int_equal(atomic_load(&crowd.is), i >= 3);
    }
    for (int i = 1; i < 6; i++) { /* five wait; another is taken each time */
        sem_post(&go);
        sem_wait(&at);
        assert_int_equal(atomic_load(&crowd.is), 5 - i > 3 / 2);
    }
    assert_int_equal(atomic_load(&crowd.calls), 2);
    sem_post(&go);
    workers_watch(w, 0, NULL, NULL); /* nobody is told any more */
    for (int i = 0; i < 6; i++) {
        later[i] = (struct gate){.job.work = wait_at_gate, .at = &at, .go = &go};
        workers_submit(w, &later[i].job);
        sem_post(&go);
    }
    workers_stop(w);
    assert_int_equal(atomic_load(&crowd.calls), 2);
    sem_destroy(&at);
    sem_destroy(&go);
}

/* A job out, a job in, around the limit: told once, not twice a job; and in the end it is over. */
static void a_crowd_that_stays_is_told_once(void **state)
{
    struct workers *w;
    struct told crowd = {0};
    sem_t at, go;
    enum { MOST = 4, JOBS = 50 };
    struct gate gates[JOBS];
    sem_init(&at, 0, 0);
    sem_init(&go, 0, 0);
    assert_int_equal(workers_start("worker", 1, &w), 0);
    workers_watch(w, MOST, note_told, &crowd);
    for (int i = 0; i < JOBS; i++) {
        gates[i] = (struct gate){.job.work = wait_at_gate, .at = &at, .go = &go};
        workers_submit(w, &gates[i].job);
        if (i > MOST)
            sem_post(&go); /* one in work, MOST + 1 wait: another is taken */
        if (i == 0 || i > MOST)
            sem_wait(&at);
        if (i >= MOST)
            assert_int_equal(atomic_load(&crowd.calls), 1);
    }
    for (int left = MOST - 1; left >= 0; left--) {
        sem_post(&go);
        sem_wait(&at);
        assert_int_equal(atomic_load(&crowd.is), left > MOST / 2);
    }
    assert_int_equal(atomic_load(&crowd.calls), 2);
    sem_post(&go);
    workers_stop(w);
    sem_destroy(&at);
    sem_destroy(&go);
}

/* With a limit of one nobody may wait, and the end of that is told. */
static void a_crowd_of_one_ends(void **state)
{
    struct workers *w;
    struct told crowd = {0};
    sem_t at, go;
    struct gate gates[2];
    sem_init(&at, 0, 0);
    sem_init(&go, 0, 0);
    assert_int_equal(workers_start("worker", 1, &w), 0);
    workers_watch(w, 1, note_told, &crowd);
    for (int i = 0; i < 2; i++) {
        gates[i] = (struct gate){.job.work = wait_at_gate, .at = &at, .go = &go};
        workers_submit(w, &gates[i].job);
        if (i == 0)
            sem_wait(&at);
    }
    assert_int_equal(atomic_load(&crowd.is), 1);
    sem_post(&go);
    sem_wait(&at);
    assert_int_equal(atomic_load(&crowd.is), 0);
    sem_post(&go);
    workers_stop(w);
    sem_destroy(&at);
    sem_destroy(&go);
}

/* Whoever was told of a crowd hears of its end, also when the limit or the one who is told changes.
 */
static void a_new_watch_leaves_nobody_held(void **state)
{
    for (int most = 1; most <= 8; most++) {
        struct workers *w;
        struct told first = {0}, second = {0};
        sem_t at, go;
        enum { JOBS = 5 };
        struct gate gates[JOBS];
        sem_init(&at, 0, 0);
        sem_init(&go, 0, 0);
        assert_int_equal(workers_start("worker", 1, &w), 0);
        workers_watch(w, 3, note_told, &first);
        for (int i = 0; i < JOBS; i++) {
            gates[i] = (struct gate){.job.work = wait_at_gate, .at = &at, .go = &go};
            workers_submit(w, &gates[i].job);
            if (i == 0)
                sem_wait(&at);
        }
        assert_int_equal(atomic_load(&first.is), 1);
        struct told *later = most % 2 ? &first : &second; /* the same one, or another */
        workers_watch(w, most, note_told, later);
        assert_int_equal(atomic_load(&later->is), JOBS - 1 >= most);
        if (later != &first)
            assert_int_equal(atomic_load(&first.is), 0);
        for (int i = 0; i < JOBS; i++)
            sem_post(&go);
        workers_stop(w);
        assert_int_equal(atomic_load(&first.is), 0);
        assert_int_equal(atomic_load(&second.is), 0);
        sem_destroy(&at);
        sem_destroy(&go);
    }
}

UNIT_MAIN(unit_test(work_is_measured_from_when_it_is_asked_for),
          unit_test(the_pool_grows_and_shrinks),
          unit_test(every_job_runs_once_and_done_on_its_executor), unit_test(jobs_run_side_by_side),
          unit_test(stop_runs_what_jobs_submit), unit_test(simulated_pool_runs_on_its_executor),
          unit_test(who_brings_too_many_is_told), unit_test(a_crowd_that_stays_is_told_once),
          unit_test(a_crowd_of_one_ends), unit_test(a_new_watch_leaves_nobody_held))
