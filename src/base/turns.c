/* turns.c - see turns.h. Running jobs are few, so owners are looked for among them. */
#include "base/turns.h"

#include <pthread.h>
#include <stdlib.h>

struct turns {
    struct workers *pool;
    pthread_mutex_t lock; /* all below */
    int most, running_n;
    struct list running, waiting; /* of turn_job, by link */
};

struct turns *turns_new(struct workers *pool, int most)
{
    struct turns *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->pool = pool;
    t->most = most;
    pthread_mutex_init(&t->lock, NULL);
    list_init(&t->running);
    list_init(&t->waiting);
    return t;
}

void turns_free(struct turns *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static bool owner_runs(const struct turns *t, const void *owner)
{
    list_each (at, &t->running)
        if (list_entry(at, struct turn_job, link)->owner == owner)
            return true;
    return false;
}

/* The first one that may run, off the list, among the running ones; or NULL. Those passed over are
 * of owners who have one running: few owners, with as many as each may have at all. The lock is
 * held. */
static struct turn_job *take_next(struct turns *t)
{
    if (t->running_n >= t->most)
        return NULL;
    list_each (at, &t->waiting) {
        struct turn_job *j = list_entry(at, struct turn_job, link);
        if (owner_runs(t, j->owner))
            continue;
        list_remove(&j->link);
        list_push_back(&t->running, &j->link);
        t->running_n++;
        return j;
    }
    return NULL;
}

static void start_some(struct turns *t)
{
    for (;;) {
        pthread_mutex_lock(&t->lock);
        struct turn_job *j = take_next(t);
        pthread_mutex_unlock(&t->lock);
        if (!j)
            return;
        workers_submit(t->pool, &j->job);
    }
}

static void end_turn(struct turns *t, struct turn_job *j)
{
    pthread_mutex_lock(&t->lock);
    list_remove(&j->link);
    t->running_n--;
    pthread_mutex_unlock(&t->lock);
    start_some(t);
}

static void run(struct job *job)
{
    struct turn_job *j = container_of(job, struct turn_job, job);
    j->work(j);
    end_turn(j->turns, j);
}

void turns_set_most(struct turns *t, int most)
{
    pthread_mutex_lock(&t->lock);
    t->most = most;
    pthread_mutex_unlock(&t->lock);
    start_some(t);
}

void turns_submit(struct turns *t, struct turn_job *j)
{
    j->turns = t;
    j->job.work = run;
    list_init(&j->link);
    pthread_mutex_lock(&t->lock);
    list_push_back(&t->waiting, &j->link);
    pthread_mutex_unlock(&t->lock);
    start_some(t);
}
