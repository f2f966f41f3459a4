/* op.c - one request retried until its outcome is final. See cluster.h. */
#include <errno.h>

#include <stdio.h>
#include <stdlib.h>

#include "client/cluster_private.h"
#include "client/coordinator.h"
#include "protocol/errors.h"

struct op_call { /* a request under way; it outlives an operation that is interrupted */
    struct op *op;
    struct node *node;
};

static void op_try(struct op *op);

static void finish(struct op *op, kafka_err_t result)
{
    struct cluster *c = op->cluster;
    executor_timer_stop(c->ex, &op->timer);
    list_remove(&op->link);
    list_remove(&op->wait_link);
    if (op->call)
        op->call->op = NULL;
    op->call = NULL;
    if (op->finished) {
        op->finished(op, result);
        return;
    }
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

/* The broker that failed, or said that it is not the one, is not asked again. */
static void forget_stale(struct op *op, struct node *from, kafka_err_t err)
{
    if (op->coordinator && coordinator_is_stale(err))
        coordinator_failed(op->coordinator, from);
    else if (err == KERR_NOT_CONTROLLER || err == KERR_NOT_LEADER_OR_FOLLOWER)
        cluster_refresh(op->cluster);
}

static void on_op_answer(void *arg, int status, int version, const void *response)
{
    struct op_call call = *(struct op_call *)arg;
    struct op *op = call.op;
    free(arg);
    if (!op)
        return;
    op->call = NULL;
    kafka_err_t err =
        status == 0 ? op->handle(op, version, response) : client_err_of_status(status);
    /* A forgotten node cancels its other requests from within: what this one means is settled
     * first. */
    bool again = is_retriable(err) && !op->once && op->attempts < op->cluster->retries;
    int64_t delay = cluster_backoff_ms(op->cluster, op->attempts++);
    if (err == KAFKA_ERR_TIMED_OUT && op->result > 0 && again)
        err = op->result; /* a broker's last word says more than that time was over */
    forget_stale(op, call.node, status == 0 ? err : client_err_of_status(status));
    if (again)
        retry_later(op, err, delay);
    else
        finish(op, err);
}

/* The node to ask. NULL: *wait_ms says how long to wait, -1: until the coordinator is found. */
static struct node *find_target(struct op *op, int64_t *wait_ms)
{
    struct cluster *c = op->cluster;
    struct node *n =
        op->coordinator ? coordinator_node(op->coordinator) : cluster_node(c, op->node);
    *wait_ms = 0;
    if (n && node_ready(n, wait_ms))
        return n;
    if (!n && op->coordinator)
        *wait_ms = -1;
    else if (*wait_ms <= 0)
        *wait_ms = cluster_backoff_ms(c, 0);
    return NULL;
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
    if (c->closing) {
        finish(op, KAFKA_ERR_CLOSED);
        return;
    }
    int64_t wait;
    struct node *n = find_target(op, &wait);
    if (!n) {
        if (wait < 0)
            coordinator_wait(op->coordinator, op);
        retry_later(op, op->attempts ? op->result : KAFKA_ERR_ALL_BROKERS_DOWN,
                    wait < 0 ? INT64_MAX / 2 : wait);
        return;
    }
    int64_t timeout = left < c->request_timeout_ms ? left : c->request_timeout_ms;
    struct op_call *call = malloc(sizeof *call);
    if (call)
        *call = (struct op_call){op, n};
    if (!call || node_send(n, op->api_key, op->min_version, op->max_version, op->request, timeout,
                           true, on_op_answer, call) < 0) {
        free(call);
        finish(op, KAFKA_ERR_NO_MEMORY);
        return;
    }
    op->call = call;
}

void op_resume(struct op *op)
{
    executor_timer_stop(op->cluster->ex, &op->timer);
    op_try(op);
}

void op_fail(struct op *op, kafka_err_t err)
{
    finish(op, err);
}

static void on_op_timer(struct timer *t)
{
    struct op *op = container_of(t, struct op, timer);
    list_remove(&op->wait_link);
    op_try(op);
}

static void on_op_start(struct task *t)
{
    struct op *op = container_of(t, struct op, task);
    list_push_back(&op->cluster->ops, &op->link);
    op_try(op);
}

/* Those with a request in flight were told by their peer's end (canceled) already; these wait for a
 * timer. */
static void end_waiting(struct cluster *c, kafka_err_t result)
{
    list_each_safe (it, &c->ops) {
        struct op *op = list_entry(it, struct op, link);
        if (timer_armed(&op->timer))
            finish(op, result);
    }
}

void cluster_fail_ops(struct cluster *c)
{
    end_waiting(c, KAFKA_ERR_CLOSED);
}

void cluster_refuse_ops(struct cluster *c)
{
    end_waiting(c, KAFKA_ERR_AUTHENTICATION);
}

void op_start(struct cluster *c, struct op *op, int64_t timeout_ms)
{
    op->cluster = c;
    op->deadline_ms = client_deadline(timeout_ms < 0 ? c->api_timeout_ms : timeout_ms);
    op->attempts = 0;
    op->done = false;
    op->call = NULL;
    op->result = KAFKA_ERR_TIMED_OUT;
    list_init(&op->link);
    list_init(&op->wait_link);
    task_init(&op->task, on_op_start);
    timer_init(&op->timer, on_op_timer);
    executor_post(c->ex, &op->task);
}

static void interrupt(void *arg)
{
    struct op *op = arg;
    if (!op->done)
        finish(op, KAFKA_ERR_WAKEUP);
}

static void tell_failure(const struct op *op, int64_t timeout_ms)
{
    char why[500], limit[80] = "";
    const struct api_desc *api = api_find(op->api_key);
    int64_t standard = op->cluster->api_timeout_ms;
    if (timeout_ms >= 0 && kafka_err_is_retriable(op->result))
        snprintf(limit, sizeof limit, " within %lld ms", (long long)timeout_ms);
    else if (standard >= 0 && kafka_err_is_retriable(op->result))
        snprintf(limit, sizeof limit, " within default.api.timeout.ms=%lld", (long long)standard);
    client_fail(op->result, "%s: %s (%s)%s%s", api ? api->name : "request",
                kafka_err_text(op->result), kafka_err_name(op->result), limit,
                cluster_why(op->cluster, why, sizeof why));
}

kafka_err_t op_run(struct cluster *c, struct op *op, int64_t timeout_ms)
{
    bool interrupted = false;
    op->finished = NULL;
    pthread_mutex_lock(&c->lock);
    unsigned interrupts = c->interrupts;
    pthread_mutex_unlock(&c->lock);
    op_start(c, op, timeout_ms);
    pthread_mutex_lock(&c->lock);
    while (!op->done && !interrupted) {
        pthread_cond_wait(&c->changed, &c->lock);
        interrupted = op->interruptible && c->interrupts != interrupts;
    }
    pthread_mutex_unlock(&c->lock);
    if (interrupted)
        cluster_call(c, interrupt, op);
    if (op->result != KAFKA_OK)
        tell_failure(op, timeout_ms);
    return op->result;
}
