/* handle_describe_producers.c - DescribeProducers: what each partition's log knows of idempotent
 * and transactional producers; any replica answers. */
#include "protocol/msg/describe_producers.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/rights.h"

struct describe_op {
    struct request *req;
    const struct metadata_snapshot *snapshot;
    bool exhausted;
};

static void put_producers(struct describe_op *op, struct log *log,
                          struct describe_producers_response_partition *out)
{
    struct active_producer *found;
    int n = log_active_producers(log, op->req->arena, &found);
    out->active_producers.v =
        n < 0 ? NULL : describe_producers_response_active_producer_new(op->req->arena, n);
    if (!out->active_producers.v) {
        op->exhausted = true;
        return;
    }
    out->active_producers.n = n;
    for (int i = 0; i < n; i++) {
        struct describe_producers_response_active_producer *to = &out->active_producers.v[i];
        to->producer_id = found[i].id;
        to->producer_epoch = found[i].epoch;
        to->last_sequence = found[i].last_sequence;
        to->last_timestamp = found[i].last_timestamp;
        to->coordinator_epoch = found[i].coordinator_epoch;
        to->current_txn_start_offset = found[i].txn_first_offset;
    }
}

static void describe_one(struct describe_op *op, struct str topic, bool may,
                         struct describe_producers_response_partition *out)
{
    enum kerr e = may ? KERR_UNKNOWN_TOPIC_OR_PARTITION : KERR_TOPIC_AUTHORIZATION_FAILED;
    struct topic_partition tp = {topic, out->partition_index};
    struct partition *p = NULL;
    const char *problem = topic_name_problem(topic);
    if (problem) {
        out->error_code = KERR_INVALID_TOPIC_EXCEPTION;
        out->error_message = str_of(problem);
        return;
    }
    if (may && metadata_partition(op->snapshot, topic, tp.partition))
        p = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    struct log *log = p ? partition_log(p) : NULL;
    if (log)
        put_producers(op, log, out);
    else if (p)
        e = KERR_NOT_LEADER_OR_FOLLOWER;
    if (!log) {
        out->error_code = (int16_t)e;
        out->error_message = str_of(kerr_text((int16_t)e));
    }
    if (log)
        log_unref(log);
    partition_unref(p);
}

static bool describe_topic(struct describe_op *op,
                           const struct describe_producers_request_topic *in,
                           struct describe_producers_response_topic *out)
{
    out->name = in->name;
    out->partitions.v =
        describe_producers_response_partition_new(op->req->arena, in->partition_indexes.n);
    if (!out->partitions.v)
        return false;
    out->partitions.n = in->partition_indexes.n;
    bool may = rights_topic(op->req, ACL_READ, in->name);
    for (int32_t i = 0; i < in->partition_indexes.n && !op->exhausted; i++) {
        out->partitions.v[i].partition_index = in->partition_indexes.v[i];
        describe_one(op, in->name, may, &out->partitions.v[i]);
    }
    return !op->exhausted;
}

void handle_describe_producers(struct request *req)
{
    const struct describe_producers_request *in = req->body;
    struct describe_op op = {.req = req,
                             .snapshot = metadata_acquire(broker_metadata(req->broker))};
    struct describe_producers_response out;
    describe_producers_response_init(&out);
    out.topics.v = describe_producers_response_topic_new(req->arena, in->topics.n);
    out.topics.n = in->topics.n;
    bool complete = out.topics.v != NULL;
    for (int32_t i = 0; complete && i < in->topics.n; i++)
        complete = describe_topic(&op, &in->topics.v[i], &out.topics.v[i]);
    if (complete)
        request_respond(req, &out);
    else
        request_no_memory(req);
    metadata_release(op.snapshot);
}
