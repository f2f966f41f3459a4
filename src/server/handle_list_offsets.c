/* handle_list_offsets.c - ListOffsets v0-v9. Looking for a time reads files, so it is done on a
 * worker; the ends of the logs are told at once.
 *
 * v0 answers with a list of segment starts, not with one offset: it goes its own way. */
#include "protocol/msg/list_offsets.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/index_set.h"
#include "server/request_later.h"
#include "server/rights.h"

#define FIRST_VERSION_ONE_OFFSET 1
#define FIRST_VERSION_LEADER_EPOCH 4
#define FIRST_VERSION_NOT_AVAILABLE 5

struct lookup_slot { /* one partition, in the order of the request */
    struct str topic;
    const struct list_offsets_request_partition *asked;
    struct list_offsets_response_partition *out;
    bool twice, refused;
};

struct lookup_op { /* in the request's arena */
    struct job job;
    struct request *req;
    const struct list_offsets_request *body;
    struct list_offsets_response response;
    struct lookup_slot *slots;
    int slots_n;
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

/* ---- partitions named twice: refused, each time ---- */

static const struct lookup_slot *slot_at(const void *op, int32_t i)
{
    return &((const struct lookup_op *)op)->slots[i];
}

static bool same_partition(const void *op, int32_t a, int32_t b)
{
    return slot_at(op, a)->asked->partition_index == slot_at(op, b)->asked->partition_index &&
           str_eq(slot_at(op, a)->topic, slot_at(op, b)->topic);
}

static bool mark_duplicates(struct lookup_op *op)
{
    struct index_set set;
    if (!index_set_init(&set, op->req->arena, op->slots_n))
        return false;
    for (int32_t i = 0; i < op->slots_n; i++) {
        struct lookup_slot *s = &op->slots[i];
        uint64_t hash = hash_str(s->topic) ^ hash_int((uint32_t)s->asked->partition_index);
        int32_t first = index_set_put(&set, hash, i, same_partition, op);
        if (first >= 0)
            s->twice = op->slots[first].twice = true;
    }
    return true;
}

/* ---- one partition ---- */

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

static enum kerr look_up_one(struct lookup_op *op, struct lookup_slot *s)
{
    if (s->refused)
        return KERR_TOPIC_AUTHORIZATION_FAILED;
    if (request_version(op->req) >= FIRST_VERSION_ONE_OFFSET) {
        if (s->twice)
            return KERR_INVALID_REQUEST;
        if (!timestamp_known(s->asked->timestamp, request_version(op->req)))
            return KERR_UNSUPPORTED_VERSION;
    }
    enum kerr e;
    struct topic_partition tp = {s->topic, s->asked->partition_index};
    struct partition *p = replica_manager_find(broker_replicas(op->req->broker), tp, &e);
    if (!p)
        return e;
    e = look_up(op, p, s->asked, s->out);
    partition_unref(p);
    return e;
}

/* ---- the request ---- */

static bool lay_out(struct lookup_op *op)
{
    struct arena *a = op->req->arena;
    int n = 0;
    for (int32_t t = 0; t < op->body->topics.n; t++)
        n += op->body->topics.v[t].partitions.n;
    list_offsets_response_init(&op->response);
    op->slots = arena_array(a, struct lookup_slot, (size_t)n);
    op->response.topics.v = list_offsets_response_topic_new(a, op->body->topics.n);
    if (!op->slots || !op->response.topics.v)
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
        bool refused = !rights_topic(op->req, ACL_DESCRIBE, from->name);
        for (int32_t i = 0; i < from->partitions.n; i++) {
            to->partitions.v[i].partition_index = from->partitions.v[i].partition_index;
            op->slots[op->slots_n++] = (struct lookup_slot){.topic = from->name,
                                                            .asked = &from->partitions.v[i],
                                                            .out = &to->partitions.v[i],
                                                            .refused = refused};
        }
    }
    return mark_duplicates(op);
}

static void work(struct job *job)
{
    struct lookup_op *op = container_of(job, struct lookup_op, job);
    for (int i = 0; i < op->slots_n; i++)
        op->slots[i].out->error_code = (int16_t)look_up_one(op, &op->slots[i]);
}

static void done(struct job *job)
{
    struct lookup_op *op = container_of(job, struct lookup_op, job);
    request_respond(op->req, &op->response);
}

static void worked(struct job *job)
{
    struct broker *b = container_of(job, struct lookup_op, job)->req->broker;
    done(job);
    broker_async_end(b);
}

static bool needs_worker(const struct lookup_op *op)
{
    if (request_version(op->req) < FIRST_VERSION_ONE_OFFSET)
        return true;
    for (int i = 0; i < op->slots_n; i++)
        if (reads_files(op->slots[i].asked->timestamp))
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
        request_no_memory(req);
        return;
    }
    if (needs_worker(op)) {
        request_work(req, &op->job, work, worked);
        return;
    }
    work(&op->job);
    done(&op->job);
}
