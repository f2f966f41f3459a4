/* workers.c - a pool of threads around one queue, and its double without threads. */
#include "base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

struct worker {
    struct list link;
    struct workers *pool;
    pthread_t thread;
};

struct workers {
    struct executor *sim; /* where a pool without threads runs its jobs; else NULL */
    char name[32];
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct list queue; /* of jobs, by task.link */
    int queued;
    int most; /* that may wait before `crowded` is told; 0 = any number */
    void (*crowded)(void *arg, bool is);
    void *crowded_arg;
    bool is_crowded;
    bool ending;
    struct list threads; /* of workers that serve */
    struct list gone;    /* that have ended, or are about to: to be joined */
    int n;               /* that serve */
    int wanted;
    int named; /* for the next one's name */
    /* Jobs under way are in busy_ns with -(their begin). */
    bool measured;
    int64_t busy_ns;
    int busy; /* of them */
};

static struct job *job_of(struct task *task)
{
    return container_of(task, struct job, task);
}

static void run_done(struct task *task)
{
    struct job *job = job_of(task);
    job->done(job);
}

static void run_job(struct job *job)
{
    /* without a done, work() may free the job: look first */
    struct executor *done_on = job->done ? job->done_on : NULL;
    job->work(job);
    if (done_on) {
        task_init(&job->task, run_done);
        executor_post(done_on, &job->task);
    }
}

/* The lock is held. It ends well below where it began: at the limit each job would end one, and the
 * next begin another, and who is told has much to do. */
static void look_at_crowd(struct workers *w)
{
    bool is = w->most > 0 && (w->is_crowded ? w->queued > w->most / 2 : w->queued >= w->most);
    if (is == w->is_crowded)
        return;
    w->is_crowded = is;
    w->crowded(w->crowded_arg, is);
}

void workers_watch(struct workers *w, int most, void (*crowded)(void *arg, bool is), void *arg)
{
    pthread_mutex_lock(&w->lock);
    if (w->is_crowded && most > 0) /* who was told before must not be held for ever */
        w->crowded(w->crowded_arg, false);
    w->is_crowded = false;
    w->most = most;
    w->crowded = crowded;
    w->crowded_arg = arg;
    if (most > 0)
        look_at_crowd(w);
    pthread_mutex_unlock(&w->lock);
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_real());
}

/* The lock is held in both. */
static bool begin_busy(struct workers *w)
{
    if (w->measured) {
        w->busy_ns -= now_ns();
        w->busy++;
    }
    return w->measured;
}

static void end_busy(struct workers *w, bool begun)
{
    if (begun) {
        w->busy_ns += now_ns();
        w->busy--;
    }
}

void workers_measure(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->measured = true;
    pthread_mutex_unlock(&w->lock);
}

uint64_t workers_busy_ns(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    int64_t busy = w->busy_ns + (w->busy ? w->busy * now_ns() : 0);
    pthread_mutex_unlock(&w->lock);
    return busy > 0 ? (uint64_t)busy : 0;
}

int workers_count(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    int n = w->n;
    pthread_mutex_unlock(&w->lock);
    return n;
}

static void *worker_main(void *arg)
{
    struct worker *me = arg;
    struct workers *w = me->pool;
    pthread_mutex_lock(&w->lock);
    while (w->n <= w->wanted) {
        struct list *link = list_pop(&w->queue);
        if (link) {
            w->queued--;
            look_at_crowd(w);
            bool measured = begin_busy(w);
            pthread_mutex_unlock(&w->lock);
            run_job(job_of(list_entry(link, struct task, link)));
            pthread_mutex_lock(&w->lock);
            end_busy(w, measured);
        } else if (w->ending) {
            break;
        } else {
            pthread_cond_wait(&w->wake, &w->lock);
        }
    }
    w->n--;
    list_remove(&me->link);
    list_push_back(&w->gone, &me->link);
    if (w->ending)
        pthread_cond_broadcast(&w->wake); /* workers_stop waits */
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static struct workers *alloc(const char *name)
{
    struct workers *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    snprintf(w->name, sizeof(w->name), "%s", name);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    list_init(&w->queue);
    list_init(&w->threads);
    list_init(&w->gone);
    return w;
}

/* The lock is held. */
static int add_worker(struct workers *w)
{
    char full[64];
    struct worker *me = calloc(1, sizeof(*me));
    if (!me)
        return -ENOMEM;
    snprintf(full, sizeof(full), "%s-%d", w->name, w->named++);
    me->pool = w;
    list_push_back(&w->threads, &me->link);
    w->n++;
    int err = thread_start(full, worker_main, me, &me->thread);
    if (err) {
        w->n--;
        list_remove(&me->link);
        free(me);
    }
    return err;
}

/* The lock is held, and given up in between. */
static void join_gone(struct workers *w)
{
    for (struct list *link; (link = list_pop(&w->gone));) {
        struct worker *me = list_entry(link, struct worker, link);
        pthread_mutex_unlock(&w->lock);
        pthread_join(me->thread, NULL);
        free(me);
        pthread_mutex_lock(&w->lock);
    }
}

int workers_resize(struct workers *w, int n)
{
    int err = 0;
    if (w->sim)
        return 0;
    pthread_mutex_lock(&w->lock);
    join_gone(w);
    w->wanted = n;
    while (w->n < n && !err)
        err = add_worker(w);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return err;
}

int workers_start(const char *name, int n, struct workers **out)
{
    struct workers *w = alloc(name);
    *out = NULL;
    int err = w ? workers_resize(w, n) : -ENOMEM;
    if (err)
        workers_stop(w);
    else
        *out = w;
    return err;
}

int workers_sim(struct executor *ex, struct workers **out)
{
    *out = alloc("");
    if (!*out)
        return -ENOMEM;
    (*out)->sim = ex;
    return 0;
}

static void run_sim(struct task *task)
{
    run_job(job_of(task));
}

void workers_submit(struct workers *w, struct job *job)
{
    if (w->sim) {
        task_init(&job->task, run_sim);
        executor_post(w->sim, &job->task);
        return;
    }
    pthread_mutex_lock(&w->lock);
    list_push_back(&w->queue, &job->task.link);
    w->queued++;
    look_at_crowd(w);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void workers_stop(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->wake);
    /* They move over to `gone` as they end, where each is joined by one: a job may be resizing. */
    while (!list_empty(&w->threads))
        pthread_cond_wait(&w->wake, &w->lock);
    join_gone(w);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
