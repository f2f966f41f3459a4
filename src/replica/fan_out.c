/* fan_out.c - see fan_out.h. Helpers that get to run only when all lanes are taken find nothing to
 * do; the shared state lives until the last of them has seen that. */
#include "replica/fan_out.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct fan;

struct helper {
    struct job job;
    struct fan *fan;
};

struct fan {
    void (*each)(void *arg, int lane);
    void *arg;
    int lanes;
    atomic_int next; /* the next lane to take */
    atomic_int refs; /* the caller and its helpers */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int left; /* lanes not ended; under lock */
    struct helper helpers[];
};

static void unref(struct fan *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->ended);
    free(f);
}

static void run_lanes(struct fan *f)
{
    int lane;
    while ((lane = atomic_fetch_add(&f->next, 1)) < f->lanes) {
        f->each(f->arg, lane);
        pthread_mutex_lock(&f->lock);
        if (--f->left == 0)
            pthread_cond_signal(&f->ended);
        pthread_mutex_unlock(&f->lock);
    }
}

static void help(struct job *job)
{
    struct fan *f = container_of(job, struct helper, job)->fan;
    run_lanes(f);
    unref(f);
}

static struct fan *fan_new(int lanes, void (*each)(void *arg, int lane), void *arg)
{
    int helpers = lanes - 1;
    struct fan *f = calloc(1, sizeof *f + (size_t)helpers * sizeof f->helpers[0]);
    if (!f)
        return NULL;
    f->each = each;
    f->arg = arg;
    f->lanes = f->left = lanes;
    atomic_init(&f->next, 0);
    atomic_init(&f->refs, 1 + helpers);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ended, NULL);
    for (int i = 0; i < helpers; i++)
        f->helpers[i] = (struct helper){.job = {.work = help}, .fan = f};
    return f;
}

void fan_out(struct workers *w, int lanes, void (*each)(void *arg, int lane), void *arg)
{
    struct fan *f = lanes > 1 ? fan_new(lanes, each, arg) : NULL;
    if (!f) {
        for (int lane = 0; lane < lanes; lane++)
            each(arg, lane);
        return;
    }
    for (int i = 0; i < lanes - 1; i++)
        workers_submit(w, &f->helpers[i].job);
    run_lanes(f);
    pthread_mutex_lock(&f->lock);
    while (f->left > 0)
        pthread_cond_wait(&f->ended, &f->lock);
    pthread_mutex_unlock(&f->lock);
    unref(f);
}
