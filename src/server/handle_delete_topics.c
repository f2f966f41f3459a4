/* handle_delete_topics.c - DeleteTopics by name or (v6) by id.
 *
 * FLOW     handle -> topic_admin_delete -> marked -> wait until the metadata cache has forgotten
 * them
 *          -> wait a little for the end of the deletion -> answer
 * The answer says that the topics are gone from the metadata. That their names are free again comes
 * later; waiting for it as well spares clients that create them anew at once an error, but a
 * deletion that cannot end now (a replica's broker is down) must not hold the answer up for long.
 */
#include "controller/topic_admin.h"
#include "protocol/msg/delete_topics.h"
#include "server/broker.h"
#include "server/cache_wait.h"
#include "server/deletion_wait.h"
#include "server/handlers.h"
#include "server/mutation_quota.h"
#include "server/rights.h"

enum { FINISH_MS = 5000 }; /* for the end of a deletion */

struct delete_op {
    struct request *req;
    const struct delete_topics_request *in;
    struct delete_topics_response out;
    struct topic_deletion *topics; /* those that are tried */
    int32_t *index;                /* topics[i] is out.responses.v[index[i]] */
    int topics_n;
    struct cache_wait wait;
    struct name_set gone;
    struct mutation_quota quota;
    struct deletion_wait finish;
};

static void set_error(struct delete_topics_response_response *out, enum kerr error,
                      const char *message)
{
    out->error_code = (int16_t)error;
    out->error_message = str_of(message ? message : kerr_text((int16_t)error));
}

static struct delete_topics_response_response *result_of(struct delete_op *op, int i)
{
    return &op->out.responses.v[op->index[i]];
}

/* Is the topic that was to be deleted still there? Another one of the same name is not it. */
static bool still_there(const struct metadata_snapshot *s,
                        const struct delete_topics_response_response *r)
{
    const struct topic_info *t = metadata_topic(s, r->name);
    return t && uuid_eq(t->id, r->topic_id);
}

static bool all_gone(struct cache_wait *w, const struct metadata_snapshot *s)
{
    struct delete_op *op = w->arg;
    for (int i = 0; i < op->topics_n; i++)
        if (result_of(op, i)->error_code == KERR_NONE && still_there(s, result_of(op, i)))
            return false;
    return true;
}

static void answer(struct delete_op *op)
{
    mutation_quota_end(&op->quota, op->req);
    request_respond(op->req, &op->out);
}

static void finished(struct deletion_wait *w)
{
    answer(w->arg);
}

static void waited(struct cache_wait *w)
{
    struct delete_op *op = w->arg;
    bool some = false, room = name_set_init(&op->gone, op->req->arena, op->topics_n) == 0;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int i = 0; i < op->topics_n; i++) {
        struct delete_topics_response_response *r = result_of(op, i);
        if (r->error_code == KERR_NONE && (op->in->timeout_ms <= 0 || still_there(s, r)))
            set_error(r, KERR_REQUEST_TIMED_OUT, NULL);
        else if (r->error_code == KERR_NONE && room)
            some |= name_set_add(&op->gone, r->name);
    }
    metadata_release(s);
    if (!some) {
        answer(op);
        return;
    }
    op->finish =
        (struct deletion_wait){.req = op->req, .names = &op->gone, .done = finished, .arg = op};
    deletion_wait_start(&op->finish,
                        op->in->timeout_ms < FINISH_MS ? op->in->timeout_ms : FINISH_MS);
}

static void marked(void *arg)
{
    struct delete_op *op = arg;
    struct broker *b = op->req->broker;
    bool some = false;
    for (int i = 0; i < op->topics_n; i++) {
        if (op->topics[i].error == KERR_NONE)
            some = true;
        else
            set_error(result_of(op, i), op->topics[i].error, NULL);
    }
    if (some) {
        op->wait =
            (struct cache_wait){.req = op->req, .shown = all_gone, .done = waited, .arg = op};
        cache_wait_start(&op->wait, op->in->timeout_ms);
    } else {
        answer(op);
    }
    broker_async_end(b);
}

/* ---- before the store ---- */

static enum kerr refusal(const struct request *req)
{
    if (!broker_is_controller(req->broker))
        return KERR_NOT_CONTROLLER;
    if (!config_bool(broker_config(req->broker), "delete.topic.enable"))
        return request_version(req) < 3 ? KERR_INVALID_REQUEST : KERR_TOPIC_DELETION_DISABLED;
    return KERR_NONE;
}

/* Names and ids as asked, from either form of the request. -1 without memory. */
static int gather(struct delete_op *op)
{
    bool by_state = request_version(op->req) >= 6;
    int32_t n = by_state ? op->in->topics.n : op->in->topic_names.n;
    op->out.responses.v = delete_topics_response_response_new(op->req->arena, n);
    op->topics = arena_array(op->req->arena, struct topic_deletion, n);
    op->index = arena_array(op->req->arena, int32_t, n);
    if (!op->out.responses.v || !op->topics || !op->index)
        return -1;
    op->out.responses.n = n;
    for (int32_t i = 0; i < n; i++) {
        struct delete_topics_response_response *r = &op->out.responses.v[i];
        r->name = by_state ? op->in->topics.v[i].name : op->in->topic_names.v[i];
        if (by_state)
            r->topic_id = op->in->topics.v[i].topic_id;
    }
    return 0;
}

static void refuse_all(struct delete_op *op, enum kerr error, const char *message)
{
    for (int32_t i = 0; i < op->out.responses.n; i++)
        set_error(&op->out.responses.v[i], error, message);
}

static bool some_has_both(const struct delete_op *op)
{
    for (int32_t i = 0; i < op->out.responses.n; i++) {
        const struct delete_topics_response_response *r = &op->out.responses.v[i];
        if (!str_is_null(r->name) && !uuid_is_zero(r->topic_id))
            return true;
    }
    return false;
}

/* The name of an id is told to who may DESCRIBE the topic; that there is the id, to everybody. */
static bool may_delete(const struct request *req, struct str name,
                       struct delete_topics_response_response *r)
{
    bool may_see = !str_is_null(r->name) || rights_topic(req, ACL_DESCRIBE, name);
    if (may_see && rights_topic(req, ACL_DELETE, name))
        return true;
    if (may_see && str_is_null(r->name))
        r->name = arena_str(req->arena, name);
    set_error(r, KERR_TOPIC_AUTHORIZATION_FAILED, NULL);
    return false;
}

/* Finds the topic; fills name and id of the result. */
static bool resolve(struct delete_op *op, const struct metadata_snapshot *s,
                    struct delete_topics_response_response *r)
{
    bool by_id = str_is_null(r->name);
    const struct topic_info *t =
        by_id ? metadata_topic_by_id(s, r->topic_id) : metadata_topic(s, r->name);
    if ((t || !by_id) && !may_delete(op->req, t ? t->name : r->name, r))
        return false;
    if (!t) {
        set_error(r, by_id ? KERR_UNKNOWN_TOPIC_ID : KERR_UNKNOWN_TOPIC_OR_PARTITION, NULL);
        return false;
    }
    r->name = arena_str(op->req->arena, t->name);
    r->topic_id = t->id;
    if (!r->name.p)
        set_error(r, KERR_UNKNOWN_SERVER_ERROR, "out of memory");
    else if (!mutation_quota_take(&op->quota, t->partitions_n))
        set_error(r, KERR_THROTTLING_QUOTA_EXCEEDED, NULL);
    return r->error_code == KERR_NONE;
}

static void resolve_all(struct delete_op *op)
{
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int32_t i = 0; i < op->out.responses.n; i++) {
        struct delete_topics_response_response *r = &op->out.responses.v[i];
        if (!resolve(op, s, r))
            continue;
        op->topics[op->topics_n].name = r->name;
        op->index[op->topics_n++] = i;
    }
    metadata_release(s);
}

void handle_delete_topics(struct request *req)
{
    struct delete_op *op = arena_new(req->arena, struct delete_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = req->body;
    mutation_quota_init(&op->quota, req, 5);
    delete_topics_response_init(&op->out);
    if (gather(op) != 0) {
        request_no_memory(req);
        return;
    }
    if (some_has_both(op))
        refuse_all(op, KERR_INVALID_REQUEST, "A topic is named by its name or by its id, not both");
    else if (refusal(req))
        refuse_all(op, refusal(req), NULL);
    else
        resolve_all(op);
    if (op->topics_n == 0) {
        answer(op);
        return;
    }
    broker_async_begin(req->broker);
    topic_admin_delete(broker_topic_admin(req->broker), op->topics, op->topics_n,
                       request_executor(req), marked, op);
}
