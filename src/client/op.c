/* op.c - one request retried until its outcome is final. See cluster.h. */
#include <errno.h>

#include "client/cluster_private.h"
#include "protocol/errors.h"

static void op_try(struct op *op);

static void finish(struct op *op, kafka_err_t result)
{
    struct cluster *c = op->cluster;
    executor_timer_stop(c->ex, &op->timer);
    list_remove(&op->link);
    pthread_mutex_lock(&c->lock);
    op->result = result;
    op->done = true; /* from here on the memory is the caller's again */
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void retry_later(struct op *op, kafka_err_t why, int64_t delay_ms)
{
    int64_t left = op->deadline_ms == INT64_MAX
                       ? INT64_MAX
                       : op->deadline_ms - executor_now_ms(op->cluster->ex);
    op->result = why;
    if (op->cluster->closing)
        finish(op, KAFKA_ERR_CLOSED);
    else if (left <= 0)
        finish(op, why);
    else
        executor_timer_start(op->cluster->ex, &op->timer, delay_ms < left ? delay_ms : left);
}

static bool is_retriable(kafka_err_t err)
{
    return err == KERR_NOT_CONTROLLER || kafka_err_is_retriable(err);
}

static void on_op_answer(void *arg, int status, int version, const void *response)
{
    struct op *op = arg;
    kafka_err_t err =
        status == 0 ? op->handle(op, version, response) : client_err_of_status(status);
    if (!is_retriable(err)) {
        finish(op, err);
        return;
    }
    if (err == KAFKA_ERR_TIMED_OUT && op->result > 0)
        err = op->result; /* a broker's last word says more than that time was over */
    if (err == KERR_NOT_CONTROLLER || err == KERR_NOT_LEADER_OR_FOLLOWER)
        cluster_refresh(op->cluster);
    retry_later(op, err, cluster_backoff_ms(op->cluster, op->attempts++));
}

static void op_try(struct op *op)
{
    struct cluster *c = op->cluster;
    int64_t left =
        op->deadline_ms == INT64_MAX ? INT64_MAX : op->deadline_ms - executor_now_ms(c->ex);
    if (left <= 0) {
        finish(op, op->result);
        return;
    }
    struct node *n = c->closing ? NULL : cluster_node(c, op->node);
    int64_t wait = 0;
    if (!n || !node_ready(n, &wait)) {
        kafka_err_t why = op->attempts ? op->result : KAFKA_ERR_ALL_BROKERS_DOWN;
        retry_later(op, why, wait > 0 ? wait : cluster_backoff_ms(c, 0));
        return;
    }
    int64_t timeout = left < c->request_timeout_ms ? left : c->request_timeout_ms;
    if (node_send(n, op->api_key, op->min_version, op->max_version, op->request, timeout, true,
                  on_op_answer, op) < 0)
        finish(op, KAFKA_ERR_NO_MEMORY);
}

static void on_op_timer(struct timer *t)
{
    op_try(container_of(t, struct op, timer));
}

static void on_op_start(struct task *t)
{
    struct op *op = container_of(t, struct op, task);
    list_push_back(&op->cluster->ops, &op->link);
    op_try(op);
}

/* Those with a request in flight were told by their peer's end (canceled) already; these wait for a
 * timer. */
void cluster_fail_ops(struct cluster *c)
{
    list_each_safe (it, &c->ops) {
        struct op *op = list_entry(it, struct op, link);
        if (timer_armed(&op->timer))
            finish(op, KAFKA_ERR_CLOSED);
    }
}

kafka_err_t op_run(struct cluster *c, struct op *op, int64_t timeout_ms)
{
    op->cluster = c;
    op->deadline_ms = client_deadline(timeout_ms);
    op->attempts = 0;
    op->done = false;
    op->result = KAFKA_ERR_TIMED_OUT;
    list_init(&op->link);
    task_init(&op->task, on_op_start);
    timer_init(&op->timer, on_op_timer);
    executor_post(c->ex, &op->task);
    pthread_mutex_lock(&c->lock);
    while (!op->done)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return op->result;
}
