/* handle_consumer_group.c - ConsumerGroupHeartbeat and ConsumerGroupDescribe: listed, as by every
 * 3.9 broker in ZooKeeper mode, and answered with UNSUPPORTED_VERSION, on which clients go on with
 * the classic protocol. */
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/consumer_group_heartbeat.h"
#include "server/handlers.h"
#include "server/request.h"

void handle_consumer_group_heartbeat(struct request *req)
{
    struct consumer_group_heartbeat_response out;
    consumer_group_heartbeat_response_init(&out);
    out.error_code = KERR_UNSUPPORTED_VERSION;
    request_respond(req, &out);
}

void handle_consumer_group_describe(struct request *req)
{
    const struct consumer_group_describe_request *in = req->body;
    struct consumer_group_describe_response out;
    consumer_group_describe_response_init(&out);
    out.groups.v = consumer_group_describe_response_group_new(req->arena, in->group_ids.n);
    if (!out.groups.v) {
        request_no_memory(req);
        return;
    }
    for (; out.groups.n < in->group_ids.n; out.groups.n++) {
        out.groups.v[out.groups.n].group_id = in->group_ids.v[out.groups.n];
        out.groups.v[out.groups.n].error_code = KERR_UNSUPPORTED_VERSION;
    }
    request_respond(req, &out);
}
