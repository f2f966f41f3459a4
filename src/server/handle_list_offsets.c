/* handle_list_offsets.c - ListOffsets v0-v9. Looking for a time reads files, so it is done on a
 * worker; the ends of the logs are told at once.
 *
 * v0 answers with a list of segment starts, not with one offset: it goes its own way. */
#include "protocol/msg/list_offsets.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/request.h"

#define FIRST_VERSION_ONE_OFFSET 1
#define FIRST_VERSION_LEADER_EPOCH 4
#define FIRST_VERSION_NOT_AVAILABLE 5
#define CONSUMER_ID (-1)

struct lookup_op { /* in the request's arena */
    struct job job;
    struct request *req;
    const struct list_offsets_request *body;
    struct list_offsets_response response;
};

/* Timestamps below zero name places; each came with a version. */
static bool timestamp_known(int64_t timestamp, int version)
{
    switch (timestamp) {
    case LIST_LATEST:
    case LIST_EARLIEST:
        return true;
    case LIST_MAX_TIMESTAMP:
        return version >= 7;
    case LIST_EARLIEST_LOCAL:
        return version >= 8;
    case LIST_LATEST_TIERED:
        return version >= 9;
    default:
        return timestamp >= 0;
    }
}

static bool reads_files(int64_t timestamp)
{
    return timestamp >= 0 || timestamp == LIST_MAX_TIMESTAMP;
}

static bool named_twice(const struct list_offsets_request *body, int32_t topic, int32_t at)
{
    const struct list_offsets_request_topic *own = &body->topics.v[topic];
    int32_t number = own->partitions.v[at].partition_index;
    for (int32_t t = 0; t < body->topics.n; t++) {
        const struct list_offsets_request_topic *other = &body->topics.v[t];
        if (t != topic && !str_eq(other->name, own->name))
            continue;
        for (int32_t i = 0; i < other->partitions.n; i++)
            if ((t != topic || i != at) && other->partitions.v[i].partition_index == number)
                return true;
    }
    return false;
}

static enum kerr look_up(struct lookup_op *op, struct partition *p,
                         const struct list_offsets_request_partition *asked,
                         struct list_offsets_response_partition *out)
{
    int version = request_version(op->req);
    int32_t replica_id = op->body->replica_id;
    if (version < FIRST_VERSION_ONE_OFFSET) {
        int n;
        enum kerr e =
            partition_offsets_before(p, replica_id, asked->timestamp, asked->max_num_offsets,
                                     op->req->arena, &out->old_style_offsets.v, &n);
        out->old_style_offsets.n = n;
        return e;
    }
    struct offset_lookup found;
    enum isolation isolation =
        op->body->isolation_level == READ_COMMITTED ? READ_COMMITTED : READ_UNCOMMITTED;
    enum kerr e = partition_list_offset(p, replica_id, isolation, asked->timestamp,
                                        asked->current_leader_epoch, &found);
    if (e == KERR_OFFSET_NOT_AVAILABLE && version < FIRST_VERSION_NOT_AVAILABLE)
        return KERR_LEADER_NOT_AVAILABLE;
    if (e != KERR_NONE)
        return e;
    out->offset = found.offset;
    out->timestamp = found.timestamp;
    if (version >= FIRST_VERSION_LEADER_EPOCH)
        out->leader_epoch = found.leader_epoch;
    return KERR_NONE;
}

static enum kerr look_up_one(struct lookup_op *op, int32_t topic, int32_t at,
                             struct list_offsets_response_partition *out)
{
    const struct list_offsets_request_topic *t = &op->body->topics.v[topic];
    const struct list_offsets_request_partition *asked = &t->partitions.v[at];
    if (request_version(op->req) >= FIRST_VERSION_ONE_OFFSET) {
        if (named_twice(op->body, topic, at))
            return KERR_INVALID_REQUEST;
        if (!timestamp_known(asked->timestamp, request_version(op->req)))
            return KERR_UNSUPPORTED_VERSION;
    }
    enum kerr e;
    struct topic_partition tp = {t->name, asked->partition_index};
    struct partition *p = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    if (!p)
        return e;
    e = look_up(op, p, asked, out);
    partition_unref(p);
    return e;
}

static bool lay_out(struct lookup_op *op)
{
    struct arena *a = op->req->arena;
    list_offsets_response_init(&op->response);
    op->response.topics.v = list_offsets_response_topic_new(a, op->body->topics.n);
    if (!op->response.topics.v)
        return false;
    op->response.topics.n = op->body->topics.n;
    for (int32_t t = 0; t < op->body->topics.n; t++) {
        const struct list_offsets_request_topic *from = &op->body->topics.v[t];
        struct list_offsets_response_topic *to = &op->response.topics.v[t];
        to->name = from->name;
        to->partitions.v = list_offsets_response_partition_new(a, from->partitions.n);
        if (!to->partitions.v)
            return false;
        to->partitions.n = from->partitions.n;
        for (int32_t i = 0; i < from->partitions.n; i++)
            to->partitions.v[i].partition_index = from->partitions.v[i].partition_index;
    }
    return true;
}

static void work(struct job *job)
{
    struct lookup_op *op = container_of(job, struct lookup_op, job);
    for (int32_t t = 0; t < op->body->topics.n; t++) {
        struct list_offsets_response_topic *to = &op->response.topics.v[t];
        for (int32_t i = 0; i < to->partitions.n; i++)
            to->partitions.v[i].error_code = (int16_t)look_up_one(op, t, i, &to->partitions.v[i]);
    }
}

static void done(struct job *job)
{
    struct lookup_op *op = container_of(job, struct lookup_op, job);
    request_respond(op->req, &op->response);
}

static bool needs_worker(const struct lookup_op *op)
{
    if (request_version(op->req) < FIRST_VERSION_ONE_OFFSET)
        return true;
    for (int32_t t = 0; t < op->body->topics.n; t++)
        for (int32_t i = 0; i < op->body->topics.v[t].partitions.n; i++)
            if (reads_files(op->body->topics.v[t].partitions.v[i].timestamp))
                return true;
    return false;
}

void handle_list_offsets(struct request *req)
{
    struct lookup_op *op = arena_new(req->arena, struct lookup_op);
    if (op) {
        op->req = req;
        op->body = req->body;
    }
    if (!op || !lay_out(op)) {
        request_close(req, "no memory for a list of offsets");
        return;
    }
    op->job.work = work;
    op->job.done = done;
    op->job.done_on = request_executor(req);
    if (needs_worker(op)) {
        workers_submit(broker_workers(req->broker), &op->job);
        return;
    }
    work(&op->job);
    done(&op->job);
}
