/* handle_offsets.c - OffsetCommit and OffsetFetch: version 0 in the metadata store, on a worker;
 * all others at the group's coordinator. */
#include "coordinator/utf16.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_fetch.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"
#include "server/request_later.h"
#include "server/rights.h"
#include "server/store_offsets.h"

enum { FIRST_VERSION_FETCH_ERROR = 2, FIRST_VERSION_FETCH_GROUPS = 8 };

/* ---- version 0, in the store ---- */

struct store_op_job { /* in the request's arena */
    struct job job;
    struct group_op *op;
};

static void job_done(struct job *job)
{
    struct store_op_job *j = container_of(job, struct store_op_job, job);
    struct broker *b = j->op->req->broker;
    group_op_answer(j->op);
    broker_async_end(b);
}

static void run_on_worker(struct group_op *op, void (*work)(struct job *job))
{
    struct request *req = op->req;
    struct store_op_job *j = arena_new(req->arena, struct store_op_job);
    if (!j) {
        request_no_memory(req);
        return;
    }
    j->op = op;
    request_work(req, &j->job, work, job_done);
}

static void commit_to_store(struct job *job)
{
    struct group_op *op = container_of(job, struct store_op_job, job)->op;
    const struct offset_commit_request *in = op->req->body;
    struct offset_commit_response *out = op->out;
    struct broker *b = op->req->broker;
    int64_t most = config_int(broker_config(b), "offset.metadata.max.bytes");
    for (int32_t t = 0; t < in->topics.n; t++)
        for (int32_t i = 0; i < in->topics.v[t].partitions.n; i++) {
            const struct offset_commit_request_partition *p = &in->topics.v[t].partitions.v[i];
            int16_t *error = &out->topics.v[t].partitions.v[i].error_code;
            if (*error != KERR_NONE)
                continue;
            *error = (int16_t)(utf16_length(p->committed_metadata) > most
                                   ? KERR_OFFSET_METADATA_TOO_LARGE
                                   : store_offset_put(broker_store(b), in->group_id,
                                                      in->topics.v[t].name, p->partition_index,
                                                      p->committed_offset));
        }
}

static void fetch_partition(struct broker *b, const struct metadata_snapshot *s, struct str group,
                            struct str topic, struct offset_fetch_response_partition *p)
{
    int64_t offset = -1;
    enum kerr e = KERR_NONE;
    if (metadata_partition(s, topic, p->partition_index))
        e = store_offset_get(broker_store(b), group, topic, p->partition_index, &offset);
    if (e == KERR_NONE && offset < 0)
        e = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    p->committed_offset = offset;
    p->error_code = (int16_t)e;
}

static void fetch_from_store(struct job *job)
{
    struct group_op *op = container_of(job, struct store_op_job, job)->op;
    const struct offset_fetch_request *in = op->req->body;
    struct offset_fetch_response *out = op->out;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    out->topics.v = offset_fetch_response_topic_new(op->req->arena, in->topics.n);
    for (int32_t t = 0; out->topics.v && t < in->topics.n; t++) {
        struct offset_fetch_response_topic *to = &out->topics.v[out->topics.n++];
        int32_t n = in->topics.v[t].partition_indexes.n;
        to->name = in->topics.v[t].name;
        to->partitions.v = offset_fetch_response_partition_new(op->req->arena, n);
        for (int32_t i = 0; to->partitions.v && i < n; i++) {
            struct offset_fetch_response_partition *p = &to->partitions.v[to->partitions.n++];
            p->partition_index = in->topics.v[t].partition_indexes.v[i];
            p->metadata = STR_LIT("");
            fetch_partition(op->req->broker, s, in->group_id, to->name, p);
        }
    }
    metadata_release(s);
    op->call.no_memory = op->req->arena->exhausted;
}

/* ---- OffsetCommit ---- */

/* Marks what may not be read and what is not in the metadata, or all with `whole`. Is anything
 * left? */
static bool mark_commits(struct request *req, struct offset_commit_response *out, enum kerr whole)
{
    bool left = false;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    for (int32_t t = 0; t < out->topics.n; t++) {
        enum kerr topic = whole;
        if (whole == KERR_NONE && !rights_topic(req, ACL_READ, out->topics.v[t].name))
            topic = KERR_TOPIC_AUTHORIZATION_FAILED;
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++) {
            struct offset_commit_response_partition *p = &out->topics.v[t].partitions.v[i];
            if (topic != KERR_NONE)
                p->error_code = (int16_t)topic;
            else if (!metadata_partition(s, out->topics.v[t].name, p->partition_index))
                p->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
            left = left || p->error_code == KERR_NONE;
        }
    }
    metadata_release(s);
    return left;
}

void handle_offset_commit(struct request *req)
{
    const struct offset_commit_request *in = req->body;
    enum kerr whole = KERR_NONE;
    struct group_op *op = group_op_new(req, GROUP_COMMIT);
    if (!op)
        return;
    if (!rights_group(req, ACL_READ, in->group_id))
        whole = KERR_GROUP_AUTHORIZATION_FAILED;
    else if (!str_is_null(in->group_instance_id) && !group_instances_allowed(req))
        whole = KERR_UNSUPPORTED_VERSION;
    if (!mark_commits(req, op->out, whole))
        group_op_answer(op);
    else if (request_version(req) == 0)
        run_on_worker(op, commit_to_store);
    else
        group_op_submit(op);
}

/* ---- OffsetFetch ---- */

/* Of topics that the client may not see nothing is told: those asked for get an error, from a list
 * of all they are left out. For each of the two forms that answers have. */
#define HIDE_TOPICS(req, topics, all)                                                          \
    do {                                                                                       \
        int32_t left_ = 0;                                                                     \
        for (int32_t t_ = 0; t_ < (topics)->n; t_++) {                                         \
            bool may_ = authorize((req), ACL_DESCRIBE, ACL_TOPIC, (topics)->v[t_].name);       \
            for (int32_t i_ = 0; !may_ && i_ < (topics)->v[t_].partitions.n; i_++) {           \
                (topics)->v[t_].partitions.v[i_].committed_offset = -1;                        \
                (topics)->v[t_].partitions.v[i_].committed_leader_epoch = -1;                  \
                (topics)->v[t_].partitions.v[i_].metadata = STR_LIT("");                       \
                (topics)->v[t_].partitions.v[i_].error_code = KERR_TOPIC_AUTHORIZATION_FAILED; \
            }                                                                                  \
            if (may_ || !(all))                                                                \
                (topics)->v[left_++] = (topics)->v[t_];                                        \
        }                                                                                      \
        (topics)->n = left_;                                                                   \
    } while (0)

static void hide_topics(struct group_op *op)
{
    const struct offset_fetch_request *in = op->req->body;
    struct offset_fetch_response *out = op->out;
    HIDE_TOPICS(op->req, &out->topics, in->topics.n < 0);
    for (int32_t i = 0; i < out->groups.n; i++)
        HIDE_TOPICS(op->req, &out->groups.v[i].topics, in->groups.v[i].topics.n < 0);
}

/* Of a version that asks about one group. Old ones tell an error beside each partition. */
static void refuse_fetch(struct group_op *op, enum kerr e)
{
    const struct offset_fetch_request *in = op->req->body;
    struct offset_fetch_response *out = op->out;
    bool spread = request_version(op->req) < FIRST_VERSION_FETCH_ERROR;
    out->error_code = (int16_t)e;
    if (spread)
        out->topics.v = offset_fetch_response_topic_new(op->req->arena, in->topics.n);
    for (int32_t t = 0; spread && out->topics.v && t < in->topics.n; t++) {
        struct offset_fetch_response_topic *to = &out->topics.v[out->topics.n++];
        int32_t n = in->topics.v[t].partition_indexes.n;
        to->name = in->topics.v[t].name;
        to->partitions.v = offset_fetch_response_partition_new(op->req->arena, n);
        for (int32_t i = 0; to->partitions.v && i < n; i++)
            to->partitions.v[to->partitions.n++] = (struct offset_fetch_response_partition){
                .partition_index = in->topics.v[t].partition_indexes.v[i],
                .committed_offset = -1,
                .committed_leader_epoch = -1,
                .metadata = STR_LIT(""),
                .error_code = (int16_t)e};
    }
    op->call.no_memory = op->req->arena->exhausted;
    group_op_answer(op);
}

void handle_offset_fetch(struct request *req)
{
    const struct offset_fetch_request *in = req->body;
    struct group_op *op = group_op_new(req, GROUP_FETCH);
    if (!op)
        return;
    if (request_version(req) < FIRST_VERSION_FETCH_GROUPS &&
        !rights_group(req, ACL_DESCRIBE, in->group_id)) {
        refuse_fetch(op, KERR_GROUP_AUTHORIZATION_FAILED);
        return;
    }
    struct offset_fetch_response *out = op->out;
    for (int32_t i = 0; i < out->groups.n; i++)
        if (!rights_group(req, ACL_DESCRIBE, out->groups.v[i].group_id))
            out->groups.v[i].error_code = KERR_GROUP_AUTHORIZATION_FAILED;
    if (authorizer_enabled(req))
        op->finish = hide_topics;
    if (request_version(req) == 0)
        run_on_worker(op, fetch_from_store);
    else
        group_op_submit(op);
}
