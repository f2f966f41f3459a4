/* entity_rereads.c - see entity_rereads.h. */
#include "server/entity_rereads.h"

#include <errno.h>
#include <stdlib.h>

enum { RETRY_MS = 1000 };

struct entity_rereads {
    struct executor *ex;
    struct control_queue *queue;
    int (*read)(void *arg, struct str path);
    void *arg;
    struct list waiting; /* of struct reread, for the next try; the executor's */
    bool ended;          /* the same */
};

struct reread {
    struct control_op op;
    struct timer timer;
    struct list link;
    struct entity_rereads *owner;
    int status;
    int32_t len;
    char path[];
};

struct entity_rereads *entity_rereads_new(struct executor *ex, struct control_queue *queue,
                                          int (*read)(void *arg, struct str path), void *arg)
{
    struct entity_rereads *all = calloc(1, sizeof(*all));
    if (!all)
        return NULL;
    *all = (struct entity_rereads){.ex = ex, .queue = queue, .read = read, .arg = arg};
    list_init(&all->waiting);
    return all;
}

static void work(struct control_op *op)
{
    struct reread *r = container_of(op, struct reread, op);
    r->status = r->owner->read(r->owner->arg, (struct str){r->path, r->len});
}

static void done(struct control_op *op)
{
    struct reread *r = container_of(op, struct reread, op);
    struct entity_rereads *all = r->owner;
    if (r->status == 0 || all->ended) {
        free(r);
        return;
    }
    list_push_back(&all->waiting, &r->link);
    executor_timer_start(all->ex, &r->timer, RETRY_MS);
}

static void try_again(struct timer *t)
{
    struct reread *r = container_of(t, struct reread, timer);
    list_remove(&r->link);
    control_queue_submit(r->owner->queue, &r->op);
}

int entity_rereads_add(struct entity_rereads *all, struct str path)
{
    struct reread *r = malloc(sizeof(*r) + (size_t)path.len);
    if (!r)
        return -ENOMEM;
    *r = (struct reread){
        .op = {.work = work, .done = done, .done_on = all->ex}, .owner = all, .len = path.len};
    timer_init(&r->timer, try_again);
    list_init(&r->link);
    memcpy(r->path, path.p, (size_t)path.len);
    control_queue_submit(all->queue, &r->op);
    return 0;
}

void entity_rereads_end(struct entity_rereads *all)
{
    if (!all)
        return;
    all->ended = true;
    for (struct list *at; (at = list_pop(&all->waiting));) {
        struct reread *r = list_entry(at, struct reread, link);
        executor_timer_stop(all->ex, &r->timer);
        free(r);
    }
}

void entity_rereads_free(struct entity_rereads *all)
{
    free(all);
}
