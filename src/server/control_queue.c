/* control_queue.c - one chain of control ops over the workers; see control_queue.h.
 *
 * One job is submitted when an op meets an empty queue; it takes ops until none is left, so ops
 * never overlap and at most one worker is busy with them. */
#include "server/control_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct control_queue {
    struct workers *workers;
    struct job job; /* in use while `running` */
    pthread_mutex_t lock;
    struct list ops; /* under lock, like `running` */
    bool running;
};

static struct control_op *next_op(struct control_queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct list *l = list_pop(&q->ops);
    if (!l)
        q->running = false;
    pthread_mutex_unlock(&q->lock);
    return l ? list_entry(l, struct control_op, link) : NULL;
}

static void op_done(struct task *t)
{
    struct control_op *op = container_of(t, struct control_op, task);
    op->done(op);
}

static void run_ops(struct job *job)
{
    struct control_queue *q = container_of(job, struct control_queue, job);
    struct control_op *op;
    while ((op = next_op(q)) != NULL) {
        op->work(op);
        executor_post(op->done_on, &op->task);
    }
}

int control_queue_new(struct workers *w, struct control_queue **out)
{
    struct control_queue *q = *out = calloc(1, sizeof *q);
    if (!q)
        return -ENOMEM;
    q->workers = w;
    pthread_mutex_init(&q->lock, NULL);
    list_init(&q->ops);
    return 0;
}

void control_queue_free(struct control_queue *q)
{
    if (!q)
        return;
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void control_queue_submit(struct control_queue *q, struct control_op *op)
{
    list_init(&op->link);
    task_init(&op->task, op_done);
    pthread_mutex_lock(&q->lock);
    list_push_back(&q->ops, &op->link);
    bool start = !q->running;
    q->running = true;
    pthread_mutex_unlock(&q->lock);
    if (!start)
        return;
    q->job.work = run_ops;
    q->job.done = NULL;
    workers_submit(q->workers, &q->job);
}
