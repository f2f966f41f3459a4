/* Waiting operations: each ends exactly once, whoever ends it, on its own executor. */
#include "replica/pending.h"

#include <pthread.h>

#include "base/uv_executor.h"
#include "bench.h"

struct op {
    struct pending p;
    struct pending_watch watches[4];
    bool enough[4]; /* what changed() answers */
    int looked[4];
    int finished;
    enum pending_end why;
};

static bool changed(struct pending *p, int i)
{
    struct op *op = container_of(p, struct op, p);
    op->looked[i]++;
    return op->enough[i];
}

static void finish(struct pending *p, enum pending_end why)
{
    struct op *op = container_of(p, struct op, p);
    op->finished++;
    op->why = why;
}

static const struct pending_ops ops = {changed, finish};

static struct partition_env env;

static struct partition *idle(int32_t number)
{
    return partition_new(&env, (struct topic_partition){STR_LIT("t"), number});
}

struct pair { /* two partitions and an executor */
    struct sim_clock clock;
    struct sim_executor *sim;
    struct partition *parts[2];
};

static void pair_open(struct pair *t)
{
    sim_clock_init(&t->clock, 0);
    t->sim = sim_executor_new(&t->clock);
    for (int i = 0; i < 2; i++)
        t->parts[i] = idle(i);
}

static void pair_close(struct pair *t)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(atomic_load(&t->parts[i]->refs), 1); /* nobody waits any more */
        assert_int_equal(atomic_load(&t->parts[i]->waiters_n), 0);
        partition_unref(t->parts[i]);
    }
    sim_executor_free(t->sim);
}

static void start(struct pair *t, struct op *op, int64_t ms)
{
    pending_start(&op->p, &ops, sim_executor_ex(t->sim), op->watches, t->parts, 2, ms);
}

static void ends_at_once_when_there_is_enough(void **state)
{
    struct pair t;
    struct op op = {.enough = {false, true}};
    pair_open(&t);
    start(&t, &op, 100);
    assert_int_equal(op.finished, 1);
    assert_int_equal(op.why, PENDING_READY);
    sim_executor_advance(t.sim, 200);
    assert_int_equal(op.finished, 1);
    pair_close(&t);
}

static void looks_only_at_what_was_woken_and_once(void **state)
{
    struct pair t;
    struct op op = {0};
    pair_open(&t);
    start(&t, &op, 100);
    for (int i = 0; i < 5; i++)
        partition_wake(t.parts[1]);
    assert_int_equal(op.looked[1], 1);
    sim_executor_drain(t.sim);
    assert_int_equal(op.looked[0], 1);
    assert_int_equal(op.looked[1], 2);
    op.enough[1] = true;
    partition_wake(t.parts[1]);
    sim_executor_drain(t.sim);
    assert_int_equal(op.finished, 1);
    assert_int_equal(op.why, PENDING_READY);
    pair_close(&t);
}

static void ends_at_its_deadline(void **state)
{
    struct pair t;
    struct op op = {0}, now = {0};
    pair_open(&t);
    start(&t, &op, 100);
    start(&t, &now, -5);
    sim_executor_drain(t.sim);
    assert_int_equal(now.finished, 1);
    assert_int_equal(now.why, PENDING_EXPIRED);
    sim_executor_advance(t.sim, 99);
    assert_int_equal(op.finished, 0);
    sim_executor_advance(t.sim, 1);
    assert_int_equal(op.finished, 1);
    assert_int_equal(op.why, PENDING_EXPIRED);
    pair_close(&t);
}

static void cancel_with_a_posted_task_leaves_the_memory_to_it(void **state)
{
    struct pair t;
    struct op op = {0};
    pair_open(&t);
    start(&t, &op, 100);
    partition_wake(t.parts[0]); /* posts */
    pending_cancel(&op.p);
    assert_int_equal(op.finished, 0); /* the task still points here */
    pending_cancel(&op.p);
    sim_executor_drain(t.sim);
    assert_int_equal(op.finished, 1);
    assert_int_equal(op.why, PENDING_CANCELLED);
    assert_int_equal(op.looked[0], 1);

    struct op calm = {0};
    start(&t, &calm, 100);
    pending_cancel(&calm.p);
    assert_int_equal(calm.finished, 1);
    pair_close(&t);
}

static void partitions_that_are_not_there_are_passed_over(void **state)
{
    struct pair t;
    struct op op = {.enough = {true, false}};
    struct partition *parts[2] = {NULL, NULL};
    pair_open(&t);
    parts[1] = t.parts[1];
    pending_start(&op.p, &ops, sim_executor_ex(t.sim), op.watches, parts, 2, 100);
    assert_int_equal(op.looked[0], 0);
    assert_int_equal(op.looked[1], 1);
    pending_cancel(&op.p);
    assert_int_equal(op.finished, 1);
    pair_close(&t);
}

/* ---- threads: no wake is lost, none comes too late ---- */

#define ROUNDS 3000

struct race {
    struct partition *part;
    _Atomic int64_t value; /* what operations wait for */
    atomic_bool stop;
};

struct racer {
    struct race *race;
    struct executor *ex;
    struct task task;
    struct op *op; /* malloc'ed anew each round, so that a late wake is seen by the sanitizers */
    int64_t target;
    int rounds;
    int expired;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
};

struct race_op {
    struct pending p;
    struct pending_watch watch;
    struct racer *racer;
};

static bool race_changed(struct pending *p, int i)
{
    struct racer *r = container_of(p, struct race_op, p)->racer;
    return atomic_load(&r->race->value) >= r->target;
}

static void race_next(struct task *t);

static void race_finish(struct pending *p, enum pending_end why)
{
    struct race_op *op = container_of(p, struct race_op, p);
    struct racer *r = op->racer;
    r->expired += why == PENDING_EXPIRED;
    free(op);
    task_init(&r->task, race_next);
    executor_post(r->ex, &r->task);
}

static void race_next(struct task *t)
{
    struct racer *r = container_of(t, struct racer, task);
    static const struct pending_ops race_ops = {race_changed, race_finish};
    if (r->rounds++ == ROUNDS) {
        pthread_mutex_lock(&r->lock);
        r->done = true;
        pthread_cond_signal(&r->over);
        pthread_mutex_unlock(&r->lock);
        return;
    }
    struct race_op *op = calloc(1, sizeof *op);
    op->racer = r;
    r->target = atomic_load(&r->race->value) + 1 + r->rounds % 3;
    /* A lost wake-up would show as an operation that only its deadline ends. */
    pending_start(&op->p, &race_ops, r->ex, &op->watch, &r->race->part, 1, 60000);
}

static void *race_wakers(void *arg)
{
    struct race *race = arg;
    while (!atomic_load(&race->stop)) {
        atomic_fetch_add(&race->value, 1);
        partition_wake(race->part);
        if (atomic_load(&race->value) % 64 == 0)
            sched_yield();
    }
    return NULL;
}

static void no_wake_is_lost_between_threads(void **state)
{
    struct race race = {.part = idle(0)};
    struct uv_executor *ex[2];
    struct racer racers[4];
    pthread_t wakers[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(uv_executor_start("race", &ex[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_create(&wakers[i], NULL, race_wakers, &race);
    for (int i = 0; i < 4; i++) {
        racers[i] = (struct racer){.race = &race, .ex = uv_executor_ex(ex[i % 2])};
        pthread_mutex_init(&racers[i].lock, NULL);
        pthread_cond_init(&racers[i].over, NULL);
        task_init(&racers[i].task, race_next);
        executor_post(racers[i].ex, &racers[i].task);
    }
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&racers[i].lock);
        while (!racers[i].done)
            pthread_cond_wait(&racers[i].over, &racers[i].lock);
        pthread_mutex_unlock(&racers[i].lock);
        assert_int_equal(racers[i].expired, 0);
    }
    atomic_store(&race.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(wakers[i], NULL);
    for (int i = 0; i < 2; i++)
        uv_executor_stop(ex[i]);
    for (int i = 0; i < 4; i++) {
        pthread_mutex_destroy(&racers[i].lock);
        pthread_cond_destroy(&racers[i].over);
    }
    partition_unref(race.part);
}

UNIT_MAIN(unit_test(ends_at_once_when_there_is_enough),
          unit_test(looks_only_at_what_was_woken_and_once), unit_test(ends_at_its_deadline),
          unit_test(cancel_with_a_posted_task_leaves_the_memory_to_it),
          unit_test(partitions_that_are_not_there_are_passed_over),
          unit_test(no_wake_is_lost_between_threads))
