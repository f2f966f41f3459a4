/* fetch_threads.c - see fetch_threads.h. */
#include "server/fetch_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/uv_executor.h"

struct fetch_threads {
    struct workers *workers;
    struct remote_peers peers; /* but for the loop */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int open; /* under lock */
};

struct fetch_thread {
    struct fetch_threads *all;
    struct uv_executor *ex;
    struct remote_peers peers;
    struct job job; /* its end */
};

struct fetch_threads *fetch_threads_new(struct workers *w, const struct remote_peers *peers)
{
    struct fetch_threads *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->workers = w;
    t->peers = *peers;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    return t;
}

static void count(struct fetch_threads *t, int by)
{
    pthread_mutex_lock(&t->lock);
    t->open += by;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static bool open_place(void *arg, const char *name, struct fetch_place *out)
{
    struct fetch_threads *all = arg;
    struct fetch_thread *t = calloc(1, sizeof(*t));
    char short_name[16];
    strncpy(short_name, name, sizeof(short_name) - 1);
    short_name[sizeof(short_name) - 1] = '\0';
    int err = t ? uv_executor_start(short_name, &t->ex) : -1;
    if (err) {
        say_error("ReplicaFetchers", "cannot start the thread %s", name);
        free(t);
        return false;
    }
    t->all = all;
    t->peers = all->peers;
    t->peers.loop = uv_executor_loop(t->ex);
    t->peers.ex = uv_executor_ex(t->ex);
    *out = (struct fetch_place){uv_executor_ex(t->ex), remote_peers_opener(&t->peers)};
    count(all, 1);
    return true;
}

static void join_thread(struct job *job)
{
    struct fetch_thread *t = container_of(job, struct fetch_thread, job);
    struct fetch_threads *all = t->all;
    uv_executor_stop(t->ex);
    free(t);
    count(all, -1);
}

static void close_place(void *arg, struct fetch_place place)
{
    struct fetch_threads *all = arg;
    struct fetch_thread *t =
        container_of((struct remote_peers *)place.opener.arg, struct fetch_thread, peers);
    t->job.work = join_thread;
    t->job.done = NULL;
    workers_submit(all->workers, &t->job);
}

struct fetch_places fetch_threads_places(struct fetch_threads *t)
{
    return (struct fetch_places){open_place, close_place, t};
}

void fetch_threads_await(struct fetch_threads *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    while (t->open > 0)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void fetch_threads_free(struct fetch_threads *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t);
}
