/* workers.c - a pool of threads around one queue, and its double without threads. */
#include "base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

struct workers {
    struct executor *sim; /* where a pool without threads runs its jobs; else NULL */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list queue; /* of jobs, by task.link; under lock */
    bool ending;       /* under lock */
    int n;
    pthread_t threads[];
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

static void *worker_main(void *arg)
{
    struct workers *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct list *link = list_pop(&w->queue);
        if (link) {
            pthread_mutex_unlock(&w->lock);
            run_job(job_of(list_entry(link, struct task, link)));
            pthread_mutex_lock(&w->lock);
        } else if (w->ending) {
            break;
        } else {
            pthread_cond_wait(&w->wake, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static struct workers *alloc(int n)
{
    struct workers *w = calloc(1, sizeof(*w) + (size_t)n * sizeof(w->threads[0]));
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    list_init(&w->queue);
    return w;
}

int workers_start(const char *name, int n, struct workers **out)
{
    *out = NULL;
    struct workers *w = alloc(n);
    if (!w)
        return -ENOMEM;
    for (; w->n < n; w->n++) {
        char full[64];
        snprintf(full, sizeof(full), "%s-%d", name, w->n);
        int err = thread_start(full, worker_main, w, &w->threads[w->n]);
        if (err) {
            workers_stop(w);
            return err;
        }
    }
    *out = w;
    return 0;
}

int workers_sim(struct executor *ex, struct workers **out)
{
    *out = alloc(0);
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
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
