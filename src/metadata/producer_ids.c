/* producer_ids.c - see producer_ids.h. */
#include "metadata/producer_ids.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/logline.h"
#include "metadata/flow.h"
#include "metadata/paths.h"
#include "metadata/znode.h"

static const char component[] = "ProducerIds";
enum { PAUSE_MS = 50 };

/* One allocation. */

struct allocation {
    struct flow flow;
    int32_t broker;
    producer_ids_cb cb;
    void *arg;
    struct producer_id_block block;
};

static struct allocation *allocation_of(struct flow *f)
{
    return container_of(f, struct allocation, flow);
}

static void read_block(struct flow *f)
{
    store_batch_add(flow_ask(f), store_op_get(PATH_PRODUCER_IDS, false));
}

static void write_next(struct flow *f)
{
    struct allocation *a = allocation_of(f);
    struct store_request *r = store_batch_first(flow_answers(f));
    struct producer_id_block last = {.end = -1};
    int err = r->status;
    if (!err && r->ops[0].result.len >= 0) /* null: none was ever given out */
        err = znode_producer_ids_decode(r->ops[0].result, &last);
    if (err && err != -ENOENT) {
        flow_fail(f, err);
        return;
    }
    if (last.end > INT64_MAX - PRODUCER_IDS_BLOCK) {
        flow_fail(f, -ERANGE);
        return;
    }
    a->block = (struct producer_id_block){a->broker, last.end + 1, last.end + PRODUCER_IDS_BLOCK};
    struct bytes data = znode_producer_ids_encode(&a->block, &f->arena);
    if (!data.p)
        flow_fail(f, -ENOMEM);
    else if (err == -ENOENT)
        store_batch_add(flow_ask(f), store_op_create(PATH_PRODUCER_IDS, data, 0));
    else
        store_batch_add(flow_ask(f), store_op_set(PATH_PRODUCER_IDS, data, r->ops[0].stat.version));
}

static void look_at_write(struct flow *f)
{
    int status = store_batch_first(flow_answers(f))->status;
    if (status == STORE_BAD_VERSION || status == -EEXIST || status == -ENOENT)
        flow_goto(f, read_block); /* another broker was faster, or our own first attempt was */
    else if (status)
        flow_fail(f, status);
}

static const flow_step allocation_steps[] = {read_block, write_next, look_at_write, NULL};

static void allocation_done(struct flow *f)
{
    struct allocation *a = allocation_of(f);
    if (f->error)
        say_error(component, "taking a block of producer ids: %s", strerror(-f->error));
    else
        say_info(component, "block %" PRId64 " to %" PRId64, a->block.start, a->block.end);
    a->cb(a->arg, f->error, a->block.start, PRODUCER_IDS_BLOCK);
    free(a);
}

int producer_ids_allocate(struct store *s, struct executor *ex, int32_t broker_id,
                          producer_ids_cb cb, void *arg)
{
    struct allocation *a = calloc(1, sizeof(*a));
    if (!a)
        return -ENOMEM;
    a->broker = broker_id;
    a->cb = cb;
    a->arg = arg;
    flow_start(&a->flow, s, ex, allocation_steps, allocation_done);
    return 0;
}

/* Handing out. */

struct producer_ids {
    struct producer_ids_options o; /* fixed */
    struct task ask_task;

    pthread_mutex_t lock;     /* all below */
    int64_t next, end;        /* the block in use: next id, last id + 1 */
    int64_t prefetch_at;      /* handing out this one asks for more */
    int64_t ahead, ahead_end; /* the block fetched in advance; equal = none */
    bool asking;
    int64_t not_before_ms; /* pause after an error */
};

/* 90 % of the way, the first id counting as 0. */
static int64_t prefetch_point(int64_t start, int64_t end)
{
    return start + (end - start) * 9 / 10;
}

static bool block_ok(const struct producer_ids *p, int64_t start, int32_t length)
{
    return start >= 0 && length > 0 && start <= INT64_MAX - length && start >= p->end;
}

static void got_block(void *arg, int status, int64_t start, int32_t length)
{
    struct producer_ids *p = arg;
    pthread_mutex_lock(&p->lock);
    p->asking = false;
    if (status || !block_ok(p, start, length)) {
        p->not_before_ms = executor_now_ms(p->o.ex) + PAUSE_MS;
    } else if (p->next == p->end) {
        p->next = start;
        p->end = start + length;
        p->prefetch_at = prefetch_point(start, p->end);
    } else {
        p->ahead = start;
        p->ahead_end = start + length;
    }
    pthread_mutex_unlock(&p->lock);
}

static void ask(struct task *t)
{
    struct producer_ids *p = container_of(t, struct producer_ids, ask_task);
    int err = p->o.allocate(p->o.arg, got_block, p);
    if (err)
        got_block(p, err, 0, 0);
}

/* The lock is held. */
static void ask_unless_asking(struct producer_ids *p)
{
    if (p->asking || p->ahead != p->ahead_end || executor_now_ms(p->o.ex) < p->not_before_ms)
        return;
    p->asking = true;
    executor_post(p->o.ex, &p->ask_task);
}

int producer_ids_new(const struct producer_ids_options *o, struct producer_ids **out)
{
    struct producer_ids *p = *out = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->o = *o;
    p->prefetch_at = -1;
    p->not_before_ms = INT64_MIN;
    task_init(&p->ask_task, ask);
    pthread_mutex_init(&p->lock, NULL);
    return 0;
}

void producer_ids_free(struct producer_ids *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int producer_ids_next(struct producer_ids *p, int64_t *id)
{
    int err = 0;
    pthread_mutex_lock(&p->lock);
    if (p->next == p->end && p->ahead != p->ahead_end) {
        p->next = p->ahead;
        p->end = p->ahead_end;
        p->ahead = p->ahead_end;
        p->prefetch_at = prefetch_point(p->next, p->end);
    }
    if (p->next == p->end) {
        err = -EAGAIN;
        ask_unless_asking(p);
    } else {
        *id = p->next++;
        if (*id >= p->prefetch_at) /* at the point, or later after an error */
            ask_unless_asking(p);
    }
    pthread_mutex_unlock(&p->lock);
    return err;
}
