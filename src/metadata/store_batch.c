/* store_batch.c - see store_batch.h. */
#include "metadata/store_batch.h"

#include "metadata/store_wait.h"

void store_batch_init(struct store_batch *b, struct arena *arena)
{
    *b = (struct store_batch){.arena = arena};
    list_init(&b->requests);
}

struct store_request *store_batch_add_multi(struct store_batch *b, const struct store_op *ops,
                                            int n)
{
    struct store_batched *item = arena_new(b->arena, struct store_batched);
    struct store_op *copy = arena_array(b->arena, struct store_op, (size_t)n);
    if (!item || !copy) {
        b->failed = true;
        return NULL;
    }
    memcpy(copy, ops, (size_t)n * sizeof(*copy));
    item->request = (struct store_request){.ops = copy, .ops_n = n, .multi = true};
    item->batch = b;
    list_push_back(&b->requests, &item->link);
    b->n++;
    return &item->request;
}

struct store_request *store_batch_add(struct store_batch *b, struct store_op op)
{
    struct store_request *r = store_batch_add_multi(b, &op, 1);
    if (r)
        r->multi = false;
    return r;
}

struct store_request *store_batch_add_checked(struct store_batch *b, struct store_op check,
                                              struct store_op op)
{
    struct store_op ops[] = {check, op};
    return store_batch_add_multi(b, ops, 2);
}

static struct store_request *request_at(const struct store_batch *b, struct list *at)
{
    return at == &b->requests ? NULL : &list_entry(at, struct store_batched, link)->request;
}

struct store_request *store_batch_first(const struct store_batch *b)
{
    return request_at(b, b->requests.next);
}

struct store_request *store_batch_next(const struct store_batch *b, const struct store_request *r)
{
    return request_at(b, container_of(r, struct store_batched, request)->link.next);
}

static void one_done(struct store_request *r)
{
    struct store_batch *b = container_of(r, struct store_batched, request)->batch;
    if (--b->left == 0)
        b->done(b);
}

static void none_done(struct task *t)
{
    struct store_batch *b = container_of(t, struct store_batch, empty);
    b->done(b);
}

static void refuse_all(struct store_batch *b)
{
    store_batch_each (r, b) {
        r->status = -ENOMEM;
        for (int i = 0; i < r->ops_n; i++)
            r->ops[i].status = -ENOMEM;
    }
}

void store_batch_submit(struct store_batch *b, struct store *s, struct executor *done_on,
                        void (*done)(struct store_batch *b))
{
    b->done_on = done_on;
    b->done = done;
    b->left = b->n;
    if (b->failed || !b->n) {
        refuse_all(b);
        task_init(&b->empty, none_done);
        executor_post(done_on, &b->empty);
        return;
    }
    struct list all;
    list_init(&all);
    store_batch_each (r, b) {
        r->done_on = done_on;
        r->done = one_done;
        r->deadline_ms = b->deadline_ms;
        list_push_back(&all, &r->task.link);
    }
    s->ops->submit(s, &all);
}

static void wait_over(struct store_batch *b)
{
    store_waiter_signal(container_of(b->done_on, struct store_waiter, ex));
}

int store_batch_run(struct store_batch *b, struct store *s)
{
    struct store_waiter w;
    store_waiter_init(&w);
    store_batch_submit(b, s, &w.ex, wait_over);
    store_waiter_wait(&w, s);
    return b->failed ? -ENOMEM : 0;
}

void store_batch_clear(struct store_batch *b)
{
    void *user = b->user;
    int64_t deadline_ms = b->deadline_ms;
    store_batch_each (r, b)
        store_request_clear(r);
    store_batch_init(b, b->arena);
    b->user = user;
    b->deadline_ms = deadline_ms;
}
