/* upkeep.c - see upkeep.h. All fields of a kind belong to the executor's thread, but for what the
 * work itself needs. */
#include "server/upkeep.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { KINDS_MAX = 16 };

struct kind {
    struct upkeep *owner;
    int64_t delay_ms, interval_ms;
    void (*work)(void *arg);
    void *arg;
    struct timer timer;
    struct job job;
};

struct upkeep {
    struct executor *ex;
    struct workers *workers;
    struct task start, stop;
    bool stopping;
    int n, running;
    struct kind kinds[KINDS_MAX];
    /* upkeep_stop waits here */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool idle; /* stopping, and nothing runs; under lock */
};

static void arm(struct kind *k, int64_t ms)
{
    if (k->interval_ms != INT64_MAX)
        executor_timer_start(k->owner->ex, &k->timer, ms);
}

static void run_on_worker(struct job *job)
{
    struct kind *k = container_of(job, struct kind, job);
    k->work(k->arg);
}

static void tell_if_idle(struct upkeep *u)
{
    if (!u->stopping || u->running > 0)
        return;
    pthread_mutex_lock(&u->lock);
    u->idle = true;
    pthread_cond_signal(&u->cond);
    pthread_mutex_unlock(&u->lock);
}

static void work_over(struct job *job)
{
    struct kind *k = container_of(job, struct kind, job);
    struct upkeep *u = k->owner;
    u->running--;
    if (u->stopping)
        tell_if_idle(u);
    else
        arm(k, k->interval_ms);
}

static void due(struct timer *timer)
{
    struct kind *k = container_of(timer, struct kind, timer);
    k->owner->running++;
    k->job = (struct job){.work = run_on_worker, .done = work_over, .done_on = k->owner->ex};
    workers_submit(k->owner->workers, &k->job);
}

static void begin(struct task *task)
{
    struct upkeep *u = container_of(task, struct upkeep, start);
    for (int i = 0; i < u->n; i++)
        arm(&u->kinds[i], u->kinds[i].delay_ms);
}

static void end(struct task *task)
{
    struct upkeep *u = container_of(task, struct upkeep, stop);
    u->stopping = true;
    for (int i = 0; i < u->n; i++)
        executor_timer_stop(u->ex, &u->kinds[i].timer);
    tell_if_idle(u);
}

int upkeep_new(struct executor *ex, struct workers *workers, struct upkeep **out)
{
    struct upkeep *u = calloc(1, sizeof(*u));
    *out = u;
    if (!u)
        return -ENOMEM;
    u->ex = ex;
    u->workers = workers;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->cond, NULL);
    return 0;
}

int upkeep_add(struct upkeep *u, int64_t delay_ms, int64_t interval_ms, void (*work)(void *arg),
               void *arg)
{
    if (u->n == KINDS_MAX)
        return -ENOMEM;
    struct kind *k = &u->kinds[u->n++];
    *k = (struct kind){
        .owner = u, .delay_ms = delay_ms, .interval_ms = interval_ms, .work = work, .arg = arg};
    timer_init(&k->timer, due);
    return 0;
}

void upkeep_start(struct upkeep *u)
{
    task_init(&u->start, begin);
    executor_post(u->ex, &u->start);
}

void upkeep_stop(struct upkeep *u)
{
    task_init(&u->stop, end);
    executor_post(u->ex, &u->stop);
    pthread_mutex_lock(&u->lock);
    while (!u->idle)
        pthread_cond_wait(&u->cond, &u->lock);
    pthread_mutex_unlock(&u->lock);
}

void upkeep_free(struct upkeep *u)
{
    if (!u)
        return;
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->cond);
    free(u);
}
