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

#define ROUNDS 20000

struct race {
    struct partition *part;
    struct executor *ex;
    struct task task;
    _Atomic int64_t started; /* the round that the operation waits for */
    _Atomic int64_t value;   /* the round that the other thread has reached */
    int expired;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
};

/* Allocated anew each round, so that the sanitizers see a wake that comes too late. */
struct race_op {
    struct pending p;
    struct pending_watch watch;
    struct race *race;
};

static bool race_changed(struct pending *p, int i)
{
    struct race *r = container_of(p, struct race_op, p)->race;
    return atomic_load_explicit(&r->value, memory_order_relaxed) >=
           atomic_load_explicit(&r->started, memory_order_relaxed);
}

static void race_finish(struct pending *p, enum pending_end why)
{
    struct race_op *op = container_of(p, struct race_op, p);
    struct race *r = op->race;
    r->expired += why == PENDING_EXPIRED;
    free(op);
    executor_post(r->ex, &r->task);
}

static void race_next(struct task *t)
{
    struct race *r = container_of(t, struct race, task);
    static const struct pending_ops race_ops = {race_changed, race_finish};
    if (atomic_load(&r->started) == ROUNDS || r->expired) {
        pthread_mutex_lock(&r->lock);
        r->done = true;
        pthread_cond_signal(&r->over);
        pthread_mutex_unlock(&r->lock);
        return;
    }
    struct race_op *op = calloc(1, sizeof *op);
    op->race = r;
    atomic_fetch_add(&r->started, 1);
    /* Each round has one wake: if it were lost, only the deadline would end the operation. */
    pending_start(&op->p, &race_ops, r->ex, &op->watch, &r->part, 1, 20000);
}

static void *race_waker(void *arg)
{
    struct race *r = arg;
    for (int64_t round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&r->started) < round)
            sched_yield();
        for (volatile int spin = 0; spin < (int)(round % 257); spin++)
            ; /* meets each stage of the other's start in some round */
        atomic_store_explicit(&r->value, round, memory_order_relaxed);
        partition_wake(r->part);
    }
    return NULL;
}

static void no_wake_is_lost_between_threads(void **state)
{
    struct race race = {.part = idle(0)};
    struct uv_executor *ex;
    pthread_t waker;
    pthread_mutex_init(&race.lock, NULL);
    pthread_cond_init(&race.over, NULL);
    assert_int_equal(uv_executor_start("race", &ex), 0);
    race.ex = uv_executor_ex(ex);
    task_init(&race.task, race_next);
    executor_post(race.ex, &race.task);
    pthread_create(&waker, NULL, race_waker, &race);
    pthread_mutex_lock(&race.lock);
    while (!race.done)
        pthread_cond_wait(&race.over, &race.lock);
    pthread_mutex_unlock(&race.lock);
    assert_int_equal(race.expired, 0);
    pthread_join(waker, NULL);
    uv_executor_stop(ex);
    pthread_mutex_destroy(&race.lock);
    pthread_cond_destroy(&race.over);
    partition_unref(race.part);
}

UNIT_MAIN(unit_test(ends_at_once_when_there_is_enough),
          unit_test(looks_only_at_what_was_woken_and_once), unit_test(ends_at_its_deadline),
          unit_test(cancel_with_a_posted_task_leaves_the_memory_to_it),
          unit_test(partitions_that_are_not_there_are_passed_over),
          unit_test(no_wake_is_lost_between_threads))
