/* reactor.c - starting and ending the network threads. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/uv_executor.h"
#include "net/reactor_private.h"

/* Kept frame buffers per reactor: a few of the usual largest produce requests. */
static const size_t frames_kept_max = 16 << 20;

struct reactor {
    struct uv_executor *ex;
    struct frame_pool frames;
    uint8_t *scratch;
    int index;
    struct task begin, end, measure;
    /* once measured */
    bool measured;
    uv_prepare_t prepare;
    int64_t round_ns; /* when the round's first work began; 0: not yet */
};

enum { CAPACITY_LEAST = 64, CAPACITY_FACTOR = 4 };

struct reactor_pool {
    int cap;
    bool measured;
    atomic_int n;    /* run */
    atomic_int used; /* by reactor_pool_next */
    atomic_uint next;
    struct reactor all[];
};

/* sendfile(2) raises SIGPIPE on a closed connection and has no flag against it; blocked in this
 * thread, it turns into EPIPE. Only here: a library must not change the signals of the process. */
static void on_begin(struct task *t)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void on_end(struct task *t)
{
    struct reactor *r = container_of(t, struct reactor, end);
    frame_pool_free(&r->frames);
    if (r->measured)
        uv_close((uv_handle_t *)&r->prepare, NULL);
}

static void on_round(uv_prepare_t *h)
{
    struct reactor *r = h->data;
    r->round_ns = 0;
}

static void on_measure(struct task *t)
{
    struct reactor *r = container_of(t, struct reactor, measure);
    uv_loop_configure(reactor_loop(r), UV_METRICS_IDLE_TIME);
    uv_prepare_init(reactor_loop(r), &r->prepare);
    r->prepare.data = r;
    uv_prepare_start(&r->prepare, on_round);
    uv_unref((uv_handle_t *)&r->prepare);
    r->measured = true;
}

static void measure(struct reactor *r)
{
    task_init(&r->measure, on_measure);
    executor_post(reactor_executor(r), &r->measure);
}

void reactor_works(struct reactor *r, int64_t now_ns)
{
    if (r->measured && !r->round_ns)
        r->round_ns = now_ns;
}

int64_t reactor_round_ns(const struct reactor *r, int64_t now_ns)
{
    return r->round_ns ? now_ns - r->round_ns : 0;
}

static int reactor_start(struct reactor *r, int index)
{
    char name[16];
    snprintf(name, sizeof(name), "net-%d", index);
    r->index = index;
    r->scratch = malloc(REACTOR_SCRATCH);
    if (!r->scratch)
        return -ENOMEM;
    int err = uv_executor_start(name, &r->ex);
    if (err) {
        free(r->scratch);
        return err;
    }
    frame_pool_init(&r->frames, frames_kept_max, reactor_executor(r));
    task_init(&r->begin, on_begin);
    task_init(&r->end, on_end);
    executor_post(reactor_executor(r), &r->begin);
    return 0;
}

static void reactor_stop(struct reactor *r)
{
    executor_post(reactor_executor(r), &r->end);
    uv_executor_stop(r->ex);
    free(r->scratch);
}

int reactor_pool_start(int n, struct reactor_pool **out)
{
    *out = NULL;
    int cap = n <= CAPACITY_LEAST / CAPACITY_FACTOR ? CAPACITY_LEAST
              : n <= INT_MAX / CAPACITY_FACTOR      ? n * CAPACITY_FACTOR
                                                    : n;
    struct reactor_pool *p = calloc(1, sizeof(*p) + (size_t)cap * sizeof(struct reactor));
    if (!p)
        return -ENOMEM;
    p->cap = cap;
    int err = reactor_pool_grow(p, n);
    if (err) {
        reactor_pool_stop(p);
        return err;
    }
    reactor_pool_use(p, n);
    *out = p;
    return 0;
}

int reactor_pool_grow(struct reactor_pool *p, int n)
{
    int err = n > p->cap ? -EAGAIN : 0;
    for (int i = atomic_load(&p->n); i < n && !err; i++) {
        err = reactor_start(&p->all[i], i);
        if (!err && p->measured)
            measure(&p->all[i]);
        if (!err)
            atomic_store(&p->n, i + 1);
    }
    return err;
}

void reactor_pool_measure(struct reactor_pool *p)
{
    p->measured = true;
    for (int i = 0; i < atomic_load(&p->n); i++)
        measure(&p->all[i]);
}

uint64_t reactor_pool_idle_ns(struct reactor_pool *p, int i)
{
    return uv_metrics_idle_time(reactor_loop(&p->all[i]));
}

void reactor_pool_use(struct reactor_pool *p, int n)
{
    atomic_store(&p->used, n);
}

void reactor_pool_stop(struct reactor_pool *p)
{
    for (int i = 0; i < p->n; i++)
        reactor_stop(&p->all[i]);
    free(p);
}

int reactor_pool_size(const struct reactor_pool *p)
{
    return atomic_load(&p->n);
}

int reactor_pool_capacity(const struct reactor_pool *p)
{
    return p->cap;
}

struct reactor *reactor_pool_at(struct reactor_pool *p, int i)
{
    return &p->all[i];
}

struct reactor *reactor_pool_next(struct reactor_pool *p)
{
    return &p->all[atomic_fetch_add(&p->next, 1) % (unsigned)atomic_load(&p->used)];
}

struct executor *reactor_executor(struct reactor *r)
{
    return uv_executor_ex(r->ex);
}

uv_loop_t *reactor_loop(struct reactor *r)
{
    return uv_executor_loop(r->ex);
}

struct frame_pool *reactor_frames(struct reactor *r)
{
    return &r->frames;
}

uint8_t *reactor_scratch(struct reactor *r)
{
    return r->scratch;
}

int reactor_index(const struct reactor *r)
{
    return r->index;
}
