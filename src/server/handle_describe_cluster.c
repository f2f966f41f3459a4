/* handle_describe_cluster.c - DescribeCluster: brokers, controller and cluster id. */
#include "protocol/msg/describe_cluster.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/metadata_answer.h"
#include "server/rights.h"

enum { ENDPOINTS_OF_BROKERS = 1, ENDPOINTS_OF_CONTROLLERS = 2 };

/* A broker in ZooKeeper mode knows brokers only. */
static enum kerr endpoint_type_error(int8_t type)
{
    if (type == ENDPOINTS_OF_BROKERS)
        return KERR_NONE;
    return type == ENDPOINTS_OF_CONTROLLERS ? KERR_MISMATCHED_ENDPOINT_TYPE
                                            : KERR_UNSUPPORTED_ENDPOINT_TYPE;
}

static int put_brokers(struct request *req, const struct metadata_snapshot *s,
                       struct describe_cluster_response *out)
{
    struct visible_broker *found;
    int n = visible_brokers(s, request_listener(req), req->arena, &found);
    if (n < 0 || !(out->brokers.v = describe_cluster_response_broker_new(req->arena, n)))
        return -1;
    out->brokers.n = n;
    for (int i = 0; i < n; i++) {
        struct describe_cluster_response_broker *b = &out->brokers.v[i];
        b->broker_id = found[i].id;
        b->host = found[i].endpoint->host;
        b->port = found[i].endpoint->port;
        b->rack = found[i].rack;
    }
    return 0;
}

void handle_describe_cluster(struct request *req)
{
    const struct describe_cluster_request *in = req->body;
    struct describe_cluster_response out;
    describe_cluster_response_init(&out);
    enum kerr error = endpoint_type_error(in->endpoint_type);
    if (error) {
        out.error_code = (int16_t)error;
        out.error_message = str_of(kerr_text((int16_t)error));
        request_respond(req, &out);
        return;
    }
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    out.cluster_id = str_of(broker_cluster_id(req->broker));
    out.controller_id = metadata_controller(s);
    if (in->include_cluster_authorized_operations)
        out.cluster_authorized_operations = rights_on_cluster(req);
    if (put_brokers(req, s, &out) != 0)
        request_no_memory(req);
    else
        request_respond(req, &out);
    metadata_release(s);
}
