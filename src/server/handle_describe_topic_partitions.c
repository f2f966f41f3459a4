/* handle_describe_topic_partitions.c - DescribeTopicPartitions: topics and their partitions in
 * order of name, in pieces: at most so many partitions an answer, and a cursor where the next
 * begins. */
#include <stdlib.h>

#include "protocol/msg/describe_topic_partitions.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/metadata_answer.h"
#include "server/rights.h"

struct describe_op {
    struct request *req;
    const struct describe_topic_partitions_request *in;
    struct describe_topic_partitions_response out;
    const struct metadata_snapshot *snapshot;
    int32_t left;       /* partitions that may still be told */
    struct str *hidden; /* names asked for of topics that the client may not see */
    int32_t hidden_n;
    bool exhausted;
};

/* ---- one topic ---- */

static void put_partition(struct describe_op *op, int32_t number, const struct partition_info *p,
                          struct describe_topic_partitions_response_partition *out)
{
    const struct broker_info *leader = metadata_broker(op->snapshot, p->leader);
    bool visible = leader && broker_endpoint(leader, request_listener(op->req));
    out->partition_index = number;
    out->leader_id = visible ? p->leader : -1;
    out->error_code = visible ? KERR_NONE : KERR_LEADER_NOT_AVAILABLE;
    out->leader_epoch = p->leader_epoch;
    out->replica_nodes.v = (int32_t *)p->replicas;
    out->replica_nodes.n = p->replicas_n;
    out->isr_nodes.v = (int32_t *)p->isr;
    out->isr_nodes.n = p->isr_n;
    out->offline_replicas.v = (int32_t *)p->offline;
    out->offline_replicas.n = p->offline_n;
    /* Nobody is eligible beyond the ISR. Told as empty: the Java Admin takes a null for a broken
     * answer. */
    out->eligible_leader_replicas.n = 0;
    out->last_known_elr.n = 0;
}

/* Where the next answer goes on. */
static void put_cursor(struct describe_op *op, struct str topic, int32_t partition)
{
    op->out.next_cursor = arena_calloc(op->req->arena, 1, sizeof(*op->out.next_cursor));
    if (!op->out.next_cursor) {
        op->exhausted = true;
        return;
    }
    op->out.next_cursor->topic_name = topic;
    op->out.next_cursor->partition_index = partition;
}

static void put_partitions(struct describe_op *op, const struct topic_info *t, int32_t first,
                           struct describe_topic_partitions_response_topic *out)
{
    int32_t n = t->partitions_n > first ? t->partitions_n - first : 0;
    if (n > op->left)
        n = op->left;
    out->partitions.v = describe_topic_partitions_response_partition_new(op->req->arena, n);
    if (!out->partitions.v) {
        op->exhausted = true;
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        const struct partition_info *p = &t->partitions[first + i];
        if (p->replicas_n > 0)
            put_partition(op, first + i, p, &out->partitions.v[out->partitions.n++]);
    }
    op->left -= n;
    if (first + n < t->partitions_n)
        put_cursor(op, t->name, first + n);
}

static void put_topic(struct describe_op *op, struct str name, int32_t first)
{
    struct describe_topic_partitions_response_topic *out = &op->out.topics.v[op->out.topics.n++];
    const struct topic_info *t = metadata_topic(op->snapshot, name);
    out->name = name;
    out->topic_authorized_operations = authorized_operations(op->req, ACL_TOPIC, name);
    if (!t) {
        out->error_code = topic_name_problem(name) ? KERR_INVALID_TOPIC_EXCEPTION
                                                   : KERR_UNKNOWN_TOPIC_OR_PARTITION;
        return;
    }
    out->topic_id = t->id;
    out->is_internal = t->internal;
    put_partitions(op, t, first, out);
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Leaves the names of topics that the client may see. Count, or -1. */
static int32_t leave_out_hidden(struct describe_op *op, struct str *names, int32_t n, bool all)
{
    int32_t left = 0;
    if (!authorizer_enabled(op->req))
        return n;
    op->hidden = arena_array(op->req->arena, struct str, (size_t)n);
    if (!op->hidden)
        return -1;
    for (int32_t i = 0; i < n; i++)
        if (all ? authorize_quietly(op->req, ACL_DESCRIBE, ACL_TOPIC, names[i])
                : rights_topic(op->req, ACL_DESCRIBE, names[i]))
            names[left++] = names[i];
        else if (!all)
            op->hidden[op->hidden_n++] = names[i];
    return left;
}

/* Names in order, each once, of topics that the client may see. Count, or -1. */
static int32_t gather_names(struct describe_op *op, struct str **out)
{
    struct arena *a = op->req->arena;
    bool all = op->in->topics.n <= 0;
    int32_t n = all ? metadata_topics_n(op->snapshot) : op->in->topics.n, unique = 0;
    const struct topic_info **known = all ? metadata_topics(op->snapshot, a) : NULL;
    struct str *names = *out = arena_array(a, struct str, (size_t)n);
    if (!names || (all && !known))
        return -1;
    for (int32_t i = 0; i < n; i++)
        names[i] = all ? known[i]->name : op->in->topics.v[i].name;
    if (!all)
        qsort(names, (size_t)n, sizeof(*names), by_name);
    for (int32_t i = 0; i < n; i++)
        if (unique == 0 || !str_eq(names[unique - 1], names[i]))
            names[unique++] = names[i];
    return leave_out_hidden(op, names, unique, all);
}

static void put_topics(struct describe_op *op)
{
    struct str *names;
    int32_t n = gather_names(op, &names), i = 0, first = 0;
    op->out.topics.v =
        n < 0 ? NULL
              : describe_topic_partitions_response_topic_new(op->req->arena, n + op->hidden_n);
    if (!op->out.topics.v) {
        op->exhausted = true;
        return;
    }
    if (op->in->cursor) {
        while (i < n && str_cmp(names[i], op->in->cursor->topic_name) < 0)
            i++;
        if (i < n && str_eq(names[i], op->in->cursor->topic_name))
            first = op->in->cursor->partition_index;
    }
    for (; i < n && !op->exhausted && !op->out.next_cursor; i++, first = 0) {
        if (op->left <= 0)
            put_cursor(op, names[i], 0);
        else
            put_topic(op, names[i], first);
    }
    for (i = 0; i < op->hidden_n; i++) {
        if (op->in->cursor && str_cmp(op->hidden[i], op->in->cursor->topic_name) < 0)
            continue;
        struct describe_topic_partitions_response_topic *out =
            &op->out.topics.v[op->out.topics.n++];
        out->name = op->hidden[i];
        out->error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
    }
}

/* There is no error of the whole answer. */
static void refuse_all(struct describe_op *op)
{
    int32_t n = op->in->topics.n;
    op->out.topics.v = describe_topic_partitions_response_topic_new(op->req->arena, n);
    if (!op->out.topics.v) {
        request_no_memory(op->req);
        return;
    }
    op->out.topics.n = n;
    for (int32_t i = 0; i < n; i++) {
        op->out.topics.v[i].name = op->in->topics.v[i].name;
        op->out.topics.v[i].error_code = KERR_INVALID_REQUEST;
    }
    request_respond(op->req, &op->out);
}

void handle_describe_topic_partitions(struct request *req)
{
    struct describe_op op = {.req = req, .in = req->body};
    int64_t most = config_int(broker_config(req->broker), "max.request.partition.size.limit");
    describe_topic_partitions_response_init(&op.out);
    if (op.in->cursor && op.in->cursor->partition_index < 0) {
        refuse_all(&op);
        return;
    }
    op.left = op.in->response_partition_limit;
    if (op.left > most)
        op.left = (int32_t)most;
    if (op.left < 1)
        op.left = 1;
    op.snapshot = metadata_acquire(broker_metadata(req->broker));
    put_topics(&op);
    if (op.exhausted)
        request_no_memory(req);
    else
        request_respond(req, &op.out);
    metadata_release(op.snapshot);
}
