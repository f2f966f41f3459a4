/* handle_epochs.c - OffsetForLeaderEpoch v0-v4: where an epoch ends in the leader's log. For the
 * current epoch that is the log end, so never less than what a consumer has seen. */
#include "protocol/msg/offset_for_leader_epoch.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/rights.h"

static enum kerr end_of(struct request *req, struct str topic,
                        const struct offset_for_leader_epoch_request_partition *asked,
                        struct offset_for_leader_epoch_response_partition *out)
{
    enum kerr e;
    struct topic_partition tp = {topic, asked->partition};
    struct partition *p = replica_manager_find(broker_replicas(req->broker), tp, &e);
    if (!p)
        return e;
    int32_t epoch;
    int64_t end;
    e = partition_epoch_end(p, asked->current_leader_epoch, asked->leader_epoch, &epoch, &end);
    partition_unref(p);
    if (e == KERR_NONE) {
        out->leader_epoch = epoch;
        out->end_offset = end;
    }
    return e;
}

static bool fill(struct request *req, struct offset_for_leader_epoch_response *out)
{
    const struct offset_for_leader_epoch_request *body = req->body;
    out->topics.v = offset_for_leader_epoch_response_topic_new(req->arena, body->topics.n);
    if (!out->topics.v)
        return false;
    out->topics.n = body->topics.n;
    bool broker = rights_cluster_quietly(req, ACL_CLUSTER_ACTION);
    for (int32_t t = 0; t < body->topics.n; t++) {
        const struct offset_for_leader_epoch_request_topic *from = &body->topics.v[t];
        struct offset_for_leader_epoch_response_topic *to = &out->topics.v[t];
        to->topic = from->topic;
        to->partitions.v =
            offset_for_leader_epoch_response_partition_new(req->arena, from->partitions.n);
        if (!to->partitions.v)
            return false;
        to->partitions.n = from->partitions.n;
        bool may = broker || rights_topic(req, ACL_DESCRIBE, from->topic);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            struct offset_for_leader_epoch_response_partition *p = &to->partitions.v[i];
            p->partition = from->partitions.v[i].partition;
            p->error_code = (int16_t)(may ? end_of(req, from->topic, &from->partitions.v[i], p)
                                          : KERR_TOPIC_AUTHORIZATION_FAILED);
        }
    }
    return true;
}

void handle_offset_for_leader_epoch(struct request *req)
{
    struct offset_for_leader_epoch_response response;
    offset_for_leader_epoch_response_init(&response);
    if (fill(req, &response))
        request_respond(req, &response);
    else
        request_no_memory(req);
}
