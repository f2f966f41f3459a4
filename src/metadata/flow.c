/* flow.c - see flow.h. One loop runs steps, of a flow or of the one it called, until something has
 * to be waited for. */
#include "metadata/flow.h"

#include <assert.h>
#include <stddef.h>

struct store_batch *flow_ask(struct flow *f)
{
    return &f->batches[f->turn];
}

struct store_batch *flow_answers(struct flow *f)
{
    return &f->batches[!f->turn];
}

static void prepare(struct flow *f, struct store *store, struct executor *ex,
                    const flow_step *steps, void (*done)(struct flow *f), int64_t deadline_ms)
{
    f->steps = steps;
    f->done = done;
    f->store = store;
    f->ex = ex;
    f->parent = f->child = NULL;
    f->error = f->turn = f->at = 0;
    f->over = f->waiting = f->running = false;
    arena_init(&f->arena, 0);
    for (int i = 0; i < 2; i++) {
        store_batch_init(&f->batches[i], &f->arena);
        f->batches[i].user = f;
        f->batches[i].deadline_ms = deadline_ms;
    }
}

/* Ends f; returns the flow that goes on, or NULL. */
static struct flow *finish(struct flow *f)
{
    struct flow *parent = f->parent;
    int error = f->error;
    store_batch_clear(&f->batches[0]);
    store_batch_clear(&f->batches[1]);
    struct arena arena = f->arena; /* done may free f */
    if (f->done)
        f->done(f);
    arena_free(&arena);
    if (!parent)
        return NULL;
    parent->child = NULL;
    if (error)
        flow_fail(parent, error);
    return parent;
}

static void answered(struct store_batch *b);

/* false: the flow waits for answers, or for flow_resume. */
static bool step(struct flow *f)
{
    f->running = true;
    f->steps[f->at++](f);
    f->running = false;
    store_batch_clear(flow_answers(f));
    struct store_batch *ask = flow_ask(f);
    if (ask->failed)
        flow_fail(f, -ENOMEM);
    if (f->over || !ask->n) {
        store_batch_clear(ask);
        return !f->waiting || f->over || f->child;
    }
    assert(!f->child && !f->waiting);
    f->turn = !f->turn;
    store_batch_submit(ask, f->store, f->ex, answered);
    return false;
}

static void run(struct flow *f)
{
    while (f) {
        if (f->over || !f->steps[f->at])
            f = finish(f);
        else if (!step(f))
            return;
        else if (f->child && !f->over)
            f = f->child;
    }
}

static void answered(struct store_batch *b)
{
    struct flow *f = b->user;
    if (b->deadline_ms)
        store_batch_each (r, b)
            if (r->status == -ETIMEDOUT)
                flow_fail(f, -ETIMEDOUT);
    run(f);
}

void flow_cancel(struct flow *f, int error)
{
    struct flow *last = f;
    while (last->child)
        last = last->child;
    flow_fail(last, error); /* those that called it fail with it */
}

static void first(struct task *t)
{
    run(container_of(t, struct flow, task));
}

void flow_start(struct flow *f, struct store *store, struct executor *ex, const flow_step *steps,
                void (*done)(struct flow *f))
{
    prepare(f, store, ex, steps, done, f->limit_ms ? executor_now_ms(ex) + f->limit_ms : 0);
    task_init(&f->task, first);
    executor_post(ex, &f->task);
}

void flow_goto(struct flow *f, flow_step to)
{
    int at = 0;
    while (f->steps[at] && f->steps[at] != to)
        at++;
    assert(f->steps[at]);
    f->at = at;
}

void flow_end(struct flow *f)
{
    f->over = true;
}

void flow_fail(struct flow *f, int error)
{
    if (!f->error)
        f->error = error;
    f->over = true;
}

void flow_call(struct flow *f, struct flow *child, const flow_step *steps,
               void (*done)(struct flow *child))
{
    assert(!f->child && !flow_ask(f)->n);
    prepare(child, f->store, f->ex, steps, done, f->batches[0].deadline_ms);
    child->parent = f;
    f->child = child;
}

void flow_wait(struct flow *f)
{
    f->waiting = true;
}

void flow_resume(struct flow *f)
{
    if (!f->waiting)
        return;
    f->waiting = false;
    if (!f->running)
        run(f);
}
