/* store.c - what both forms of the store share: dispatch, blocking calls, path helpers. */
#include "metadata/store.h"

#include <pthread.h>
#include <stdlib.h>

#include "metadata/store_wait.h"

void store_submit(struct store *s, struct store_request *r)
{
    struct list one;
    list_init(&one);
    list_push_back(&one, &r->task.link);
    s->ops->submit(s, &one);
}

int store_watch(struct store *s, struct store_watch *w)
{
    return s->ops->watch(s, w);
}

void store_unwatch(struct store *s, struct store_watch *w)
{
    s->ops->unwatch(s, w);
}

int store_on_session(struct store *s, struct executor *on,
                     void (*cb)(void *arg, enum store_session state), void *arg)
{
    return s->ops->on_session(s, on, cb, arg);
}

void store_off_session(struct store *s, void (*cb)(void *arg, enum store_session state), void *arg)
{
    s->ops->off_session(s, cb, arg);
}

int64_t store_session_id(struct store *s)
{
    return s->ops->session_id(s);
}

void store_end_waits(struct store *s)
{
    if (s->ops->end_waits)
        s->ops->end_waits(s);
}

const struct store_counts *store_counts(struct store *s)
{
    return s->ops->counts ? s->ops->counts(s) : NULL;
}

bool store_cut_off(struct store *s)
{
    return s->ops->cut_off && s->ops->cut_off(s);
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

void store_request_clear(struct store_request *r)
{
    for (int i = 0; i < r->ops_n; i++) {
        struct store_op *op = &r->ops[i];
        if ((const char *)op->result.p != op->path) /* a plain CREATE names its own path */
            free((void *)op->result.p);
        free(op->names);
        op->result = BYTES_NULL;
        op->names = NULL;
        op->names_n = 0;
    }
}

static void wait_post(struct executor *ex, struct task *t)
{
    t->run(t);
}

static bool wait_on_thread(const struct executor *ex)
{
    return true;
}

static const struct executor_ops wait_ops = {.post = wait_post, .on_thread = wait_on_thread};

void store_waiter_init(struct store_waiter *w)
{
    *w = (struct store_waiter){.ex = {.ops = &wait_ops}};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->cond, NULL);
}

void store_waiter_signal(struct store_waiter *w)
{
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

void store_waiter_wait(struct store_waiter *w, struct store *s)
{
    if (s->ops->drive)
        s->ops->drive(s);
    pthread_mutex_lock(&w->lock);
    while (!w->over)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->cond);
}

static void run_done(struct store_request *r)
{
    store_waiter_signal(container_of(r->done_on, struct store_waiter, ex));
}

int store_run(struct store *s, struct store_request *r)
{
    struct store_waiter w;
    store_waiter_init(&w);
    r->done_on = &w.ex;
    r->done = run_done;
    store_submit(s, r);
    store_waiter_wait(&w, s);
    return r->status;
}

static int run_op(struct store *s, struct store_op *op)
{
    struct store_request r = {.ops = op, .ops_n = 1};
    return store_run(s, &r);
}

int store_get(struct store *s, const char *path, struct bytes *data, struct store_stat *stat)
{
    struct store_op op = store_op_get(path, false);
    int err = run_op(s, &op);
    *data = op.result; /* the caller frees it */
    if (!err && stat)
        *stat = op.stat;
    return err;
}

static int create_one(struct store *s, const char *path, struct bytes data)
{
    struct store_op op = store_op_create(path, data, 0);
    return run_op(s, &op);
}

int store_create_path(struct store *s, const char *path, struct bytes data, bool *created)
{
    int err = create_one(s, path, data);
    char *slash = strrchr(path, '/');
    if (err == -ENOENT && slash && slash > path) {
        char *parent = strndup(path, (size_t)(slash - path));
        if (!parent)
            return -ENOMEM;
        err = store_create_path(s, parent, BYTES_NULL, NULL);
        free(parent);
        if (!err)
            err = create_one(s, path, data);
    }
    if (created)
        *created = err == 0;
    return err == -EEXIST ? 0 : err;
}

static int delete_child(struct store *s, const char *path, const char *name)
{
    size_t n = strlen(path) + strlen(name) + 2;
    char *child = malloc(n);
    if (!child)
        return -ENOMEM;
    memcpy(child, path, strlen(path));
    child[strlen(path)] = '/';
    memcpy(child + strlen(path) + 1, name, strlen(name) + 1);
    int err = store_delete_tree(s, child);
    free(child);
    return err;
}

int store_delete_tree(struct store *s, const char *path)
{
    int err;
    do {
        struct store_op list = store_op_children(path, false);
        err = run_op(s, &list);
        for (int i = 0; i < list.names_n && !err; i++)
            err = delete_child(s, path, list.names[i]);
        free(list.names);
        struct store_op del = store_op_delete(path, STORE_ANY_VERSION);
        if (!err)
            err = run_op(s, &del);
    } while (err == -ENOTEMPTY); /* somebody made a child meanwhile */
    return err == -ENOENT ? 0 : err;
}
