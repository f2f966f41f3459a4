/* handle_metadata.c - Metadata: brokers, controller, topics and their partitions, all from one
 * snapshot; topics that a client asks for by name may be created.
 *
 * FLOW     the names that no one knows and that may be created go to auto_create; when the store
 *          has answered, the answer is built from the snapshot of that moment. */
#include "protocol/msg/metadata.h"
#include "server/auto_create.h"
#include "server/handlers.h"
#include "server/metadata_answer.h"
#include "server/mutation_quota.h"
#include "server/name_set.h"
#include "server/rights.h"

struct asked {
    const struct metadata_request_topic *topic;
    int created; /* index in metadata_op.created, or -1 */
    bool hidden; /* the client may not see the topic of that name; ids are looked at later */
    bool may_not_create;
};

struct metadata_op {
    struct request *req;
    const struct metadata_request *in;
    struct asked *topics; /* each name and each id once */
    int32_t topics_n;
    struct auto_topic *created; /* of the names that were to be created */
    int created_n;
    struct mutation_quota quota;
    /* while the answer is built */
    const struct metadata_snapshot *snapshot;
    const struct visible_broker *brokers;
    int brokers_n;
    bool exhausted;
};

static bool asks_for_all(const struct request *req, const struct metadata_request *in)
{
    return request_version(req) == 0 ? in->topics.n == 0 : in->topics.n < 0;
}

static bool by_id(const struct metadata_request_topic *t)
{
    return !uuid_is_zero(t->topic_id) || str_is_null(t->name);
}

/* ---- partitions ---- */

static const struct visible_broker *visible(const struct metadata_op *op, int32_t id)
{
    for (int i = 0; i < op->brokers_n; i++)
        if (op->brokers[i].id == id)
            return &op->brokers[i];
    return NULL;
}

/* Version 0 has no way to tell replicas that are down, and so leaves them out. */
static int32_t *only_visible(struct metadata_op *op, const int32_t *ids, int n, int *out_n)
{
    int32_t *out = arena_array(op->req->arena, int32_t, n);
    *out_n = 0;
    if (!out) {
        op->exhausted = true;
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (visible(op, ids[i]))
            out[(*out_n)++] = ids[i];
    return out;
}

static enum kerr leader_problem(const struct metadata_op *op, const struct partition_info *p)
{
    if (visible(op, p->leader))
        return KERR_NONE;
    bool live = p->leader >= 0 && metadata_broker(op->snapshot, p->leader);
    return live && request_version(op->req) >= 6 ? KERR_LISTENER_NOT_FOUND
                                                 : KERR_LEADER_NOT_AVAILABLE;
}

static void put_partition(struct metadata_op *op, int32_t number, const struct partition_info *p,
                          struct metadata_response_partition *out)
{
    enum kerr error = leader_problem(op, p);
    out->partition_index = number;
    out->leader_id = error ? -1 : p->leader;
    out->leader_epoch = p->leader_epoch;
    out->replica_nodes.v = (int32_t *)p->replicas;
    out->replica_nodes.n = p->replicas_n;
    out->isr_nodes.v = (int32_t *)p->isr;
    out->isr_nodes.n = p->isr_n;
    out->offline_replicas.v = (int32_t *)p->offline;
    out->offline_replicas.n = p->offline_n;
    if (request_version(op->req) == 0) {
        out->replica_nodes.v = only_visible(op, p->replicas, p->replicas_n, &out->replica_nodes.n);
        out->isr_nodes.v = only_visible(op, p->isr, p->isr_n, &out->isr_nodes.n);
        bool missing = out->replica_nodes.n < p->replicas_n || out->isr_nodes.n < p->isr_n;
        if (!error && missing)
            error = KERR_REPLICA_NOT_AVAILABLE;
    }
    out->error_code = (int16_t)error;
}

/* ---- topics ---- */

static void put_operations(const struct metadata_op *op, struct metadata_response_topic *out)
{
    if (op->in->include_topic_authorized_operations)
        out->topic_authorized_operations = authorized_operations(op->req, ACL_TOPIC, out->name);
}

static void put_known(struct metadata_op *op, const struct topic_info *t,
                      struct metadata_response_topic *out)
{
    out->name = t->name;
    out->topic_id = t->id;
    out->is_internal = t->internal;
    put_operations(op, out);
    out->partitions.v = metadata_response_partition_new(op->req->arena, t->partitions_n);
    if (!out->partitions.v) {
        op->exhausted = true;
        return;
    }
    for (int i = 0; i < t->partitions_n; i++)
        if (t->partitions[i].replicas_n > 0)
            put_partition(op, i, &t->partitions[i], &out->partitions.v[out->partitions.n++]);
}

static enum kerr unknown_name_error(const struct metadata_op *op, const struct asked *asked)
{
    if (asked->created >= 0)
        return op->created[asked->created].error;
    return topic_name_problem(asked->topic->name) ? KERR_INVALID_TOPIC_EXCEPTION
                                                  : KERR_UNKNOWN_TOPIC_OR_PARTITION;
}

/* Ids are no secret, names are. */
static void put_asked_id(struct metadata_op *op, struct uuid id,
                         struct metadata_response_topic *out)
{
    const struct topic_info *t = metadata_topic_by_id(op->snapshot, id);
    if (t && rights_topic(op->req, ACL_DESCRIBE, t->name)) {
        put_known(op, t, out);
        return;
    }
    out->error_code = t ? KERR_TOPIC_AUTHORIZATION_FAILED : KERR_UNKNOWN_TOPIC_ID;
    out->name = STR_NULL;
    out->topic_id = id;
}

static void put_asked_name(struct metadata_op *op, const struct asked *asked,
                           struct metadata_response_topic *out)
{
    struct str name = asked->topic->name;
    const struct topic_info *t = asked->hidden ? NULL : metadata_topic(op->snapshot, name);
    if (t) {
        put_known(op, t, out);
        return;
    }
    out->name = name;
    out->is_internal = !asked->hidden && topic_is_internal(name);
    if (asked->hidden || asked->may_not_create) {
        out->error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
        return;
    }
    out->error_code = (int16_t)unknown_name_error(op, asked);
    put_operations(op, out);
}

static void put_topics(struct metadata_op *op, struct metadata_response *out)
{
    struct arena *a = op->req->arena;
    bool all = asks_for_all(op->req, op->in), checked = authorizer_enabled(op->req);
    const struct topic_info **topics = all ? metadata_topics(op->snapshot, a) : NULL;
    int32_t n = all ? metadata_topics_n(op->snapshot) : op->topics_n;
    out->topics.v = metadata_response_topic_new(a, n);
    if (!out->topics.v || (all && !topics)) {
        op->exhausted = true;
        return;
    }
    for (int32_t i = 0; i < n && !op->exhausted; i++) {
        struct metadata_response_topic *to = &out->topics.v[out->topics.n];
        if (all && checked && !authorize_quietly(op->req, ACL_DESCRIBE, ACL_TOPIC, topics[i]->name))
            continue;
        out->topics.n++;
        if (all)
            put_known(op, topics[i], to);
        else if (by_id(op->topics[i].topic))
            put_asked_id(op, op->topics[i].topic->topic_id, to);
        else
            put_asked_name(op, &op->topics[i], to);
    }
}

/* ---- the answer ---- */

static void put_brokers(struct metadata_op *op, struct metadata_response *out)
{
    struct arena *a = op->req->arena;
    struct visible_broker *found;
    int n = visible_brokers(op->snapshot, request_listener(op->req), a, &found);
    out->brokers.v = n < 0 ? NULL : metadata_response_broker_new(a, n);
    if (!out->brokers.v) {
        op->exhausted = true;
        return;
    }
    op->brokers = found;
    op->brokers_n = out->brokers.n = n;
    for (int i = 0; i < n; i++) {
        struct metadata_response_broker *b = &out->brokers.v[i];
        b->node_id = found[i].id;
        b->host = found[i].endpoint->host;
        b->port = found[i].endpoint->port;
        b->rack = found[i].rack;
    }
}

static void answer(struct metadata_op *op)
{
    struct request *req = op->req;
    struct metadata_response out;
    metadata_response_init(&out);
    op->snapshot = metadata_acquire(broker_metadata(req->broker));
    out.cluster_id = str_of(broker_cluster_id(req->broker));
    out.controller_id = metadata_controller(op->snapshot);
    if (op->in->include_cluster_authorized_operations)
        out.cluster_authorized_operations = rights_on_cluster(req);
    put_brokers(op, &out);
    if (!op->exhausted)
        put_topics(op, &out);
    const struct metadata_snapshot *s = op->snapshot;
    if (op->exhausted)
        request_no_memory(req);
    else
        request_respond(req, &out);
    metadata_release(s);
}

static void creation_over(void *arg)
{
    answer(arg);
}

/* Each name and id once, as the answer has them. 0 or -1 without memory. */
static int gather(struct metadata_op *op)
{
    struct arena *a = op->req->arena;
    int32_t n = op->in->topics.n < 0 ? 0 : op->in->topics.n;
    struct name_set names, ids;
    op->topics = arena_array(a, struct asked, n);
    if (!op->topics || name_set_init(&names, a, n) || name_set_init(&ids, a, n))
        return -1;
    for (int32_t i = 0; i < n; i++) {
        const struct metadata_request_topic *t = &op->in->topics.v[i];
        struct str id = {(const char *)t->topic_id.b, sizeof(t->topic_id.b)};
        if (by_id(t) ? name_set_add(&ids, id) : name_set_add(&names, t->name))
            op->topics[op->topics_n++] = (struct asked){
                .topic = t,
                .created = -1,
                .hidden = !by_id(t) && !rights_topic(op->req, ACL_DESCRIBE, t->name)};
    }
    return 0;
}

/* Legal names that no one knows. -1 without memory. */
static int gather_unknown(struct metadata_op *op)
{
    op->created = arena_array(op->req->arena, struct auto_topic, op->topics_n);
    mutation_quota_init(&op->quota, op->req, INT16_MAX); /* counted; a look is not held back */
    if (!op->created)
        return -1;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int32_t i = 0; i < op->topics_n; i++) {
        const struct metadata_request_topic *t = op->topics[i].topic;
        if (by_id(t) || op->topics[i].hidden || metadata_topic(s, t->name))
            continue;
        op->topics[i].may_not_create = !rights_create_topic(op->req, t->name);
        if (op->topics[i].may_not_create || topic_name_problem(t->name))
            continue;
        op->topics[i].created = op->created_n;
        op->created[op->created_n++] =
            (struct auto_topic){.name = t->name, .permit = &op->quota.permit};
    }
    metadata_release(s);
    return 0;
}

/* Versions 10 and 11 have the id and the nullable name on the wire, but not their meaning. */
static bool names_are_legal_for_version(const struct request *req,
                                        const struct metadata_request *in)
{
    for (int32_t i = 0; request_version(req) < 12 && i < in->topics.n; i++)
        if (by_id(&in->topics.v[i]))
            return false;
    return true;
}

static void refuse_ids(struct request *req, const struct metadata_request *in)
{
    struct metadata_response out;
    metadata_response_init(&out);
    out.topics.v = metadata_response_topic_new(req->arena, in->topics.n);
    if (!out.topics.v) {
        request_no_memory(req);
        return;
    }
    out.topics.n = in->topics.n;
    for (int32_t i = 0; i < in->topics.n; i++) {
        const struct metadata_request_topic *t = &in->topics.v[i];
        out.topics.v[i].error_code = KERR_INVALID_REQUEST;
        out.topics.v[i].name = str_is_null(t->name) ? STR_LIT("") : t->name;
        out.topics.v[i].topic_id = t->topic_id;
    }
    request_respond(req, &out);
}

void handle_metadata(struct request *req)
{
    const struct metadata_request *in = req->body;
    if (!names_are_legal_for_version(req, in)) {
        refuse_ids(req, in);
        return;
    }
    struct metadata_op *op = arena_new(req->arena, struct metadata_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = in;
    bool create = !asks_for_all(req, in) && in->allow_auto_topic_creation &&
                  config_bool(broker_config(req->broker), "auto.create.topics.enable");
    if (gather(op) != 0 || (create && gather_unknown(op) != 0))
        request_no_memory(req);
    else if (op->created_n > 0)
        auto_create_topics(broker_auto_create(req->broker), op->created, op->created_n,
                           request_executor(req), creation_over, op);
    else
        answer(op);
}
