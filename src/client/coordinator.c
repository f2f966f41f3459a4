/* coordinator.c - see coordinator.h. */
#include "client/coordinator.h"

#include <stdlib.h>

#include "protocol/errors.h"
#include "protocol/msg/find_coordinator.h"

struct coordinator_ask { /* outlives a coordinator that is closed meanwhile */
    struct coordinator *co;
};

static void ask(struct coordinator *co);

static void on_timer(struct timer *t)
{
    ask(container_of(t, struct coordinator, timer));
}

void coordinator_init(struct coordinator *co, struct cluster *c, int8_t type, const char *key)
{
    *co = (struct coordinator){.cluster = c, .key = key, .type = type, .node_id = -1};
    timer_init(&co->timer, on_timer);
    list_init(&co->waiters);
}

static void tell(struct coordinator *co)
{
    struct list waiters = LIST_INIT(waiters);
    kafka_err_t err = co->err; /* of the search; the owner takes it away when it has told of it */
    list_splice(&waiters, &co->waiters);
    /* The last operation of an admin call may end the coordinator's life: it is told last. */
    if (co->changed)
        co->changed(co->arg);
    while (!list_empty(&waiters)) {
        struct op *op = list_entry(list_pop(&waiters), struct op, wait_link);
        if (err == KAFKA_OK)
            op_resume(op);
        else
            op_fail(op, err);
    }
}

static void ask_later(struct coordinator *co)
{
    executor_timer_start(cluster_executor(co->cluster), &co->timer,
                         cluster_backoff_ms(co->cluster, co->failures++));
}

/* A consumer's poll is told of a refusal by the cluster, and may go on after it. */
static bool is_final(const struct coordinator *co, kafka_err_t err)
{
    return (err > 0 && !kafka_err_is_retriable(err)) ||
           (err == KAFKA_ERR_AUTHENTICATION && co->type == COORDINATOR_TRANSACTION);
}

/* The broker found: a connection of our own to it, or the one that all use, once metadata has it.
 */
static bool take(struct coordinator *co, const struct find_coordinator_response *m)
{
    if (co->shared && cluster_find_node(co->cluster, m->node_id))
        co->node_id = m->node_id;
    else
        co->node = node_open(co->cluster, m->node_id, m->host, (int)m->port);
    return co->node || co->node_id >= 0;
}

static void on_found(void *arg, int status, int version, const void *response)
{
    struct coordinator_ask *a = arg;
    struct coordinator *co = a->co;
    const struct find_coordinator_response *m = response;
    free(a);
    if (!co)
        return;
    co->ask = NULL;
    kafka_err_t err = status == 0 ? m->error_code : client_err_of_status(status);
    if (err == KAFKA_OK && (m->host.len <= 0 || m->port <= 0 || m->port > 65535))
        err = KERR_COORDINATOR_NOT_AVAILABLE;
    if (err == KAFKA_OK && !take(co, m))
        err = KAFKA_ERR_NO_MEMORY;
    if (err == KAFKA_OK) {
        co->failures = 0;
        tell(co);
    } else if (is_final(co, err)) {
        co->err = err;
        tell(co);
    } else {
        ask_later(co);
    }
}

static void ask(struct coordinator *co)
{
    struct find_coordinator_request req;
    int64_t wait;
    struct node *n = cluster_node(co->cluster, NODE_ANY);
    if (!n || !node_ready(n, &wait)) {
        ask_later(co);
        return;
    }
    find_coordinator_request_init(&req);
    req.key = str_of(co->key);
    req.key_type = co->type;
    co->ask = malloc(sizeof *co->ask);
    if (co->ask)
        co->ask->co = co;
    if (!co->ask || node_send(n, API_FIND_COORDINATOR, co->type ? 1 : 0, 3, &req,
                              cluster_request_timeout(co->cluster), true, on_found, co->ask) < 0) {
        free(co->ask);
        co->ask = NULL;
        ask_later(co);
    }
}

struct node *coordinator_node(struct coordinator *co)
{
    if (co->node_id >= 0) {
        struct node *n = cluster_find_node(co->cluster, co->node_id);
        if (n)
            return n;
        co->node_id = -1;
    }
    if (!co->node && !co->ask && !timer_armed(&co->timer) && !co->closed) {
        co->err = KAFKA_OK;
        ask(co);
    }
    return co->node;
}

void coordinator_forget(struct coordinator *co)
{
    struct node *n = co->node;
    co->node = NULL;
    co->node_id = -1;
    node_close(n);
}

void coordinator_failed(struct coordinator *co, struct node *n)
{
    /* a shared one may be gone by now: it is not looked at */
    bool shared = co->node_id >= 0 && cluster_find_node(co->cluster, co->node_id) == n;
    if (co->node == n || shared)
        coordinator_forget(co);
}

void coordinator_wait(struct coordinator *co, struct op *op)
{
    list_push_back(&co->waiters, &op->wait_link);
}

bool coordinator_is_stale(kafka_err_t err)
{
    return err == KERR_NOT_COORDINATOR || err == KERR_COORDINATOR_NOT_AVAILABLE ||
           err == KERR_REQUEST_TIMED_OUT || err == KAFKA_ERR_TRANSPORT ||
           err == KAFKA_ERR_TIMED_OUT || err == KAFKA_ERR_BAD_RESPONSE;
}

void coordinator_close(struct coordinator *co)
{
    co->closed = true;
    executor_timer_stop(cluster_executor(co->cluster), &co->timer);
    if (co->ask)
        co->ask->co = NULL;
    co->ask = NULL;
    coordinator_forget(co);
}
