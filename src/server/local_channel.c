/* local_channel.c - control requests of the controller in this process; see local_channel.h. */
#include "server/local_channel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "protocol/api.h"
#include "protocol/msg/leader_and_isr.h"
#include "protocol/msg/stop_replica.h"
#include "protocol/msg/update_metadata.h"

struct local_channel {
    struct broker_channel base;
    struct control_queue *queue;
    struct replica_manager *replicas;
    struct executor *ex;
    int outstanding; /* on ex */
    atomic_bool closed;
};

struct local_request {
    struct control_op op;
    struct local_channel *channel;
    int16_t api_key;
    int version;
    const void *request;
    channel_cb cb;
    void *arg;
    int status;
    struct arena arena; /* of the response */
    union {
        struct leader_and_isr_response leader_and_isr;
        struct stop_replica_response stop_replica;
        struct update_metadata_response update_metadata;
    } response;
};

static void apply(struct control_op *op)
{
    struct local_request *r = container_of(op, struct local_request, op);
    struct replica_manager *m = r->channel->replicas;
    if (atomic_load(&r->channel->closed)) {
        r->status = -ECANCELED;
        return;
    }
    switch (r->api_key) {
    case API_LEADER_AND_ISR:
        leader_and_isr_response_init(&r->response.leader_and_isr);
        replica_manager_become(m, r->version, r->request, &r->arena, &r->response.leader_and_isr);
        break;
    case API_STOP_REPLICA:
        stop_replica_response_init(&r->response.stop_replica);
        replica_manager_stop(m, r->request, &r->arena, &r->response.stop_replica);
        break;
    case API_UPDATE_METADATA:
        update_metadata_response_init(&r->response.update_metadata);
        r->response.update_metadata.error_code =
            (int16_t)replica_manager_update_metadata(m, r->request);
        break;
    default:
        r->status = -ENOTSUP;
    }
}

static void free_if_idle(struct local_channel *c)
{
    if (atomic_load(&c->closed) && c->outstanding == 0)
        free(c);
}

static void applied(struct control_op *op)
{
    struct local_request *r = container_of(op, struct local_request, op);
    struct local_channel *c = r->channel;
    r->cb(r->arg, r->status, r->status ? NULL : &r->response);
    arena_free(&r->arena);
    free(r);
    c->outstanding--;
    free_if_idle(c);
}

static void local_send(struct broker_channel *base, int16_t api_key, int version,
                       const void *request, channel_cb cb, void *arg)
{
    struct local_channel *c = container_of(base, struct local_channel, base);
    struct local_request *r = calloc(1, sizeof *r);
    if (!r) {
        cb(arg, -ENOMEM, NULL);
        return;
    }
    r->op = (struct control_op){.work = apply, .done = applied, .done_on = c->ex};
    r->channel = c;
    r->api_key = api_key;
    r->version = version;
    r->request = request;
    r->cb = cb;
    r->arg = arg;
    arena_init(&r->arena, 0);
    c->outstanding++;
    control_queue_submit(c->queue, &r->op);
}

static void local_close(struct broker_channel *base)
{
    struct local_channel *c = container_of(base, struct local_channel, base);
    atomic_store(&c->closed, true);
    free_if_idle(c);
}

static int local_waiting(struct broker_channel *base, const struct histogram **waited_us)
{
    *waited_us = NULL; /* the queue has them at once */
    return container_of(base, struct local_channel, base)->outstanding;
}

struct broker_channel *local_channel_new(struct control_queue *q, struct replica_manager *replicas,
                                         int32_t broker_id, struct executor *ex)
{
    struct local_channel *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->base = (struct broker_channel){broker_id, local_send, local_close, local_waiting};
    c->queue = q;
    c->replicas = replicas;
    c->ex = ex;
    atomic_init(&c->closed, false);
    return &c->base;
}
