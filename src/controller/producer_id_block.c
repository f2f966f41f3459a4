/* producer_id_block.c - blocks of producer ids for brokers (AllocateProducerIds): each is taken
 * from the store by a conditional write, so that no two brokers, nor two controllers, give one out
 * twice.
 */
#include "controller/controller_private.h"
#include "metadata/producer_ids.h"
#include "protocol/msg/allocate_producer_ids.h"

static void refuse(struct flow *f, enum kerr e)
{
    struct allocate_producer_ids_response *r = job_of(f)->call->response;
    r->error_code = (int16_t)e;
    call_answer(f);
    flow_end(f);
}

static void read_block(struct flow *f)
{
    struct job *j = job_of(f);
    const struct allocate_producer_ids_request *q = j->call->request;
    struct ctl_broker *b = context_broker(&j->c->ctx, q->broker_id);
    if (!b)
        refuse(f, KERR_BROKER_ID_NOT_REGISTERED);
    else if (b->epoch != q->broker_epoch)
        refuse(f, KERR_STALE_BROKER_EPOCH);
    else
        job_ask(f, store_op_get(PATH_PRODUCER_IDS, false));
}

static void write_block(struct flow *f)
{
    struct job *j = job_of(f);
    const struct allocate_producer_ids_request *q = j->call->request;
    struct allocate_producer_ids_response *out = j->call->response;
    struct producer_id_block last = {.end = -1};
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    int err = r->status;
    if (!err && r->ops[0].result.len >= 0) /* null: none was ever given out */
        err = znode_producer_ids_decode(r->ops[0].result, &last);
    if (err && err != -ENOENT) {
        say_error(j->c->component, "%s cannot be read: %s", PATH_PRODUCER_IDS, strerror(-err));
        refuse(f, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    if (last.end > INT64_MAX - PRODUCER_IDS_BLOCK) {
        say_error(j->c->component, "no producer ids are left");
        refuse(f, KERR_UNKNOWN_SERVER_ERROR);
        return;
    }
    struct producer_id_block next = {q->broker_id, last.end + 1, last.end + PRODUCER_IDS_BLOCK};
    struct bytes data = znode_producer_ids_encode(&next, &f->arena);
    out->producer_id_start = next.start;
    out->producer_id_len = PRODUCER_IDS_BLOCK;
    if (!data.p)
        flow_fail(f, -ENOMEM);
    else if (err == -ENOENT)
        job_ask(f, store_op_create(PATH_PRODUCER_IDS, data, 0));
    else
        job_ask(f, store_op_set(PATH_PRODUCER_IDS, data, r->ops[0].stat.version));
}

static void answer(struct flow *f)
{
    if (!job_answered(f))
        return;
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status == STORE_BAD_VERSION || r->status == -EEXIST || r->status == -ENOENT)
        flow_goto(f, read_block); /* somebody else was faster, or a first attempt of ours */
    else if (r->status)
        refuse(f, KERR_UNKNOWN_SERVER_ERROR);
    else
        call_answer(f);
}

static const flow_step allocate_steps[] = {read_block, write_block, answer, NULL};
const struct event_kind event_allocate_producer_ids = {"AllocateProducerIds", allocate_steps, true,
                                                       false, CONTROLLER_IDLE};
