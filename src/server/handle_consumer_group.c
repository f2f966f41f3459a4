/* handle_consumer_group.c - the group protocol of KIP-848: ConsumerGroupHeartbeat and
 * ConsumerGroupDescribe. Where group.coordinator.rebalance.protocols leaves it out they are still
 * listed, as by every 3.9 broker in ZooKeeper mode, and answered with UNSUPPORTED_VERSION, on which
 * clients go on with the classic protocol. */
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/consumer_group_heartbeat.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"

static bool is_on(const struct request *req)
{
    return group_protocol_on(broker_config(req->broker), "consumer");
}

void handle_consumer_group_heartbeat(struct request *req)
{
    if (!is_on(req)) {
        struct consumer_group_heartbeat_response out;
        consumer_group_heartbeat_response_init(&out);
        out.error_code = KERR_UNSUPPORTED_VERSION;
        request_respond(req, &out);
        return;
    }
    struct group_op *op = group_op_new(req, GROUP_CONSUMER_HEARTBEAT);
    if (op)
        group_op_submit(op);
}

static void add_operations(struct group_op *op)
{
    const struct consumer_group_describe_request *in = op->req->body;
    struct consumer_group_describe_response *out = op->out;
    for (int32_t i = 0; in->include_authorized_operations && i < out->groups.n; i++)
        if (out->groups.v[i].error_code == KERR_NONE)
            out->groups.v[i].authorized_operations = GROUP_OPERATIONS;
}

void handle_consumer_group_describe(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_CONSUMER_DESCRIBE);
    if (!op)
        return;
    if (is_on(req)) {
        op->finish = add_operations;
        group_op_submit(op);
        return;
    }
    struct consumer_group_describe_response *out = op->out;
    for (int32_t i = 0; i < out->groups.n; i++)
        out->groups.v[i].error_code = KERR_UNSUPPORTED_VERSION;
    request_respond(req, out);
}
