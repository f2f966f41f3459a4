/* handle_create_partitions.c - CreatePartitions: more partitions for a topic; the answer waits
 * until the metadata cache shows leaders for all of them. */
#include <stdlib.h>

#include "controller/topic_admin.h"
#include "protocol/msg/create_partitions.h"
#include "server/broker.h"
#include "server/cache_wait.h"
#include "server/handlers.h"
#include "server/mutation_quota.h"
#include "server/name_set.h"
#include "server/rights.h"

struct grow_op {
    struct request *req;
    const struct create_partitions_request *in;
    struct create_partitions_response out;
    struct topic_growth *topics; /* those that are tried */
    int32_t *index;              /* topics[i] is out.results.v[index[i]] */
    int topics_n;
    struct cache_wait wait;
    struct mutation_quota quota;
};

static void set_error(struct create_partitions_response_result *out, enum kerr error,
                      const char *message)
{
    out->error_code = (int16_t)error;
    out->error_message = str_of(message ? message : kerr_text((int16_t)error));
}

static struct create_partitions_response_result *result_of(struct grow_op *op, int i)
{
    return &op->out.results.v[op->index[i]];
}

static void answer(struct grow_op *op)
{
    mutation_quota_end(&op->quota, op->req);
    request_respond(op->req, &op->out);
}

/* ---- after the store ---- */

static bool has_grown(const struct metadata_snapshot *s, const struct topic_growth *g)
{
    const struct topic_info *t = metadata_topic(s, g->name);
    if (!t || t->partitions_n < g->count)
        return false;
    for (int i = 0; i < g->count; i++)
        if (t->partitions[i].leader < 0)
            return false;
    return true;
}

static bool all_have_grown(struct cache_wait *w, const struct metadata_snapshot *s)
{
    struct grow_op *op = w->arg;
    for (int i = 0; i < op->topics_n; i++)
        if (result_of(op, i)->error_code == KERR_NONE && !has_grown(s, &op->topics[i]))
            return false;
    return true;
}

static void waited(struct cache_wait *w)
{
    struct grow_op *op = w->arg;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int i = 0; i < op->topics_n; i++) {
        bool late = op->in->timeout_ms <= 0 || !has_grown(s, &op->topics[i]);
        if (result_of(op, i)->error_code == KERR_NONE && late)
            set_error(result_of(op, i), KERR_REQUEST_TIMED_OUT, NULL);
    }
    metadata_release(s);
    answer(op);
}

static void written(void *arg)
{
    struct grow_op *op = arg;
    struct broker *b = op->req->broker;
    bool some = false;
    for (int i = 0; i < op->topics_n; i++) {
        struct topic_growth *g = &op->topics[i];
        struct str text = arena_str(op->req->arena, str_of(g->message));
        free(g->message);
        if (g->error == KERR_NONE)
            some = true;
        else
            set_error(result_of(op, i), g->error, text.p);
    }
    if (some && !op->in->validate_only) {
        op->wait =
            (struct cache_wait){.req = op->req, .shown = all_have_grown, .done = waited, .arg = op};
        cache_wait_start(&op->wait, op->in->timeout_ms);
    } else {
        answer(op);
    }
    broker_async_end(b);
}

/* ---- before the store ---- */

/* -1 without memory. */
static int fill(struct grow_op *op, const struct create_partitions_request_topic *asked,
                struct topic_growth *g)
{
    *g = (struct topic_growth){
        .name = asked->name, .count = asked->count, .permit = &op->quota.permit};
    int32_t n = asked->assignments.n;
    if (n < 0)
        return 0;
    struct manual_assignment *m = arena_array(op->req->arena, struct manual_assignment, n);
    if (!m)
        return -1;
    for (int32_t i = 0; i < n; i++)
        m[i] = (struct manual_assignment){.partition = i,
                                          .brokers = asked->assignments.v[i].broker_ids.v,
                                          .brokers_n = asked->assignments.v[i].broker_ids.n};
    g->assignments = m;
    g->assignments_n = n;
    return 0;
}

static bool refused(const struct grow_op *op, const struct name_set *names, struct str name,
                    struct create_partitions_response_result *out)
{
    if (!broker_is_controller(op->req->broker))
        set_error(out, KERR_NOT_CONTROLLER, NULL);
    else if (name_set_twice(names, name))
        set_error(out, KERR_INVALID_REQUEST, "The request names this topic more than once");
    else if (!rights_topic(op->req, ACL_ALTER, name))
        set_error(out, KERR_TOPIC_AUTHORIZATION_FAILED, NULL);
    else
        return false;
    return true;
}

/* -1 without memory. */
static int prepare(struct grow_op *op)
{
    struct arena *a = op->req->arena;
    int32_t n = op->in->topics.n;
    struct name_set names;
    op->out.results.v = create_partitions_response_result_new(a, n);
    op->topics = arena_array(a, struct topic_growth, n);
    op->index = arena_array(a, int32_t, n);
    if (!op->out.results.v || !op->topics || !op->index || name_set_init(&names, a, n) != 0)
        return -1;
    op->out.results.n = n;
    for (int32_t i = 0; i < n; i++)
        name_set_add(&names, op->in->topics.v[i].name);
    for (int32_t i = 0; i < n; i++) {
        const struct create_partitions_request_topic *asked = &op->in->topics.v[i];
        op->out.results.v[i].name = asked->name;
        if (refused(op, &names, asked->name, &op->out.results.v[i]))
            continue;
        if (fill(op, asked, &op->topics[op->topics_n]) != 0)
            return -1;
        op->index[op->topics_n++] = i;
    }
    return 0;
}

void handle_create_partitions(struct request *req)
{
    struct grow_op *op = arena_new(req->arena, struct grow_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = req->body;
    mutation_quota_init(&op->quota, req, 3);
    create_partitions_response_init(&op->out);
    if (prepare(op) != 0) {
        request_no_memory(req);
    } else if (op->topics_n == 0) {
        request_respond(req, &op->out);
    } else {
        broker_async_begin(req->broker);
        topic_admin_grow(broker_topic_admin(req->broker), op->topics, op->topics_n,
                         op->in->validate_only, request_executor(req), written, op);
    }
}
