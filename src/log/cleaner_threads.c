/* cleaner_threads.c - the cleaner's threads: starting, ending, another number of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cond.h"
#include "base/thread.h"
#include "log/cleaner_private.h"
#include "log/log_manager_private.h"

static void *thread_main(void *arg)
{
    struct cleaner_thread *t = arg;
    struct cleaner *c = t->cleaner;
    pthread_mutex_lock(&c->lock);
    while (!c->stopping) {
        pthread_mutex_unlock(&c->lock);
        bool done = cleaner_round_of(t);
        pthread_mutex_lock(&c->lock);
        if (!done)
            cleaner_rest(c, NULL, c->backoff_ms);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void free_crew(struct crew *crew)
{
    for (int i = 0; i < crew->n; i++)
        cleaner_work_free(&crew->v[i].work);
    free(crew->v);
    *crew = (struct crew){0};
}

static int make_crew(struct cleaner *c, const struct cleaner_options *o, struct crew *out)
{
    int n = o->threads > 0 ? o->threads : 1, err = 0;
    int64_t map_bytes = o->dedupe_bytes / n < INT32_MAX ? o->dedupe_bytes / n : INT32_MAX;
    *out = (struct crew){.v = calloc((size_t)n, sizeof(*out->v)), .threads = o->threads};
    if (!out->v)
        return -ENOMEM;
    for (; out->n < n && !err; out->n++) {
        struct cleaner_thread *t = &out->v[out->n];
        t->cleaner = c;
        t->number = out->n;
        err = cleaner_work_init(&t->work, map_bytes > 0 ? (size_t)map_bytes : 0, o->load_factor,
                                (size_t)(o->io_buffer_bytes / n / 2));
    }
    if (err)
        free_crew(out);
    return err;
}

static void take_options(struct cleaner *c, const struct cleaner_options *o,
                         const struct crew *crew)
{
    pthread_mutex_lock(&c->lock);
    c->crew = *crew;
    c->backoff_ms = o->backoff_ms;
    c->stopping = false;
    cleaner_throttle_init(&c->throttle, o->max_bytes_per_second, clock_mono_ns(c->clock));
    pthread_mutex_unlock(&c->lock);
}

int cleaner_new(const struct cleaner_options *o, struct cleaner **out)
{
    struct crew crew;
    *out = NULL;
    struct cleaner *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->logs = o->logs;
    c->clock = o->clock;
    c->last_run_ms = -1;
    cond_init(&c->cond);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->admin, NULL);
    int err = make_crew(c, o, &crew);
    if (err) {
        cleaner_free(c);
        return err;
    }
    take_options(c, o, &crew);
    o->logs->cleaner = c;
    *out = c;
    return 0;
}

/* Under admin. */
static int start_crew(struct cleaner *c)
{
    int err = 0;
    for (int i = 0; i < c->crew.n && i < c->crew.threads && !err; i++) {
        char name[16];
        struct cleaner_thread *t = &c->crew.v[i];
        if (t->runs)
            continue;
        snprintf(name, sizeof(name), "cleaner-%d", t->number);
        err = thread_start(name, thread_main, t, &t->thread);
        t->runs = !err;
    }
    return err;
}

/* Under admin. */
static void stop_crew(struct cleaner *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->crew.n; i++)
        if (c->crew.v[i].runs)
            pthread_join(c->crew.v[i].thread, NULL);
    pthread_mutex_lock(&c->lock);
    struct crew crew = c->crew;
    c->crew = (struct crew){0};
    pthread_mutex_unlock(&c->lock);
    free_crew(&crew);
}

int cleaner_start(struct cleaner *c)
{
    pthread_mutex_lock(&c->admin);
    c->running = !c->ended;
    int err = c->running ? start_crew(c) : 0;
    pthread_mutex_unlock(&c->admin);
    return err;
}

int cleaner_set_options(struct cleaner *c, const struct cleaner_options *o)
{
    struct crew crew;
    pthread_mutex_lock(&c->admin);
    int err = c->ended ? 0 : make_crew(c, o, &crew);
    if (!err && !c->ended) {
        stop_crew(c);
        take_options(c, o, &crew);
        err = c->running ? start_crew(c) : 0;
    }
    pthread_mutex_unlock(&c->admin);
    return err;
}

void cleaner_stop(struct cleaner *c)
{
    pthread_mutex_lock(&c->admin);
    c->ended = true;
    stop_crew(c);
    pthread_mutex_unlock(&c->admin);
}

void cleaner_free(struct cleaner *c)
{
    if (!c)
        return;
    if (c->logs->cleaner == c)
        c->logs->cleaner = NULL;
    free_crew(&c->crew);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->admin);
    free(c);
}
