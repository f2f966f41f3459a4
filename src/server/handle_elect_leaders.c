/* handle_elect_leaders.c - ElectLeaders v0-v2: the controller elects; the answer waits until the
 * metadata cache shows the leaders. */
#include "controller/controller.h"
#include "protocol/msg/elect_leaders.h"
#include "server/broker.h"
#include "server/cache_wait.h"
#include "server/handlers.h"
#include "server/request.h"

typedef struct elect_leaders_response_replica_election_result result_topic;

struct elect_op { /* in the request's arena */
    struct controller_call call;
    struct request *req;
    const struct elect_leaders_request *in;
    struct elect_leaders_response out;
    struct cache_wait wait;
};

static bool is_unclean(const struct elect_op *op)
{
    return request_version(op->req) >= 1 && op->in->election_type == 1;
}

static bool has_leader(const struct elect_op *op, const struct metadata_snapshot *s,
                       struct str topic, int32_t partition)
{
    const struct partition_info *p = metadata_partition(s, topic, partition);
    if (!p || p->leader < 0)
        return false;
    return is_unclean(op) || (p->replicas_n > 0 && p->leader == p->replicas[0]);
}

/* Those elected without the leader to be seen get this error, or (NONE) are only asked for. */
static bool look(struct elect_op *op, const struct metadata_snapshot *s, enum kerr late)
{
    bool all = true;
    for (int t = 0; t < op->out.replica_election_results.n; t++) {
        result_topic *topic = &op->out.replica_election_results.v[t];
        for (int i = 0; i < topic->partition_result.n; i++) {
            struct elect_leaders_response_partition_result *p = &topic->partition_result.v[i];
            if (p->error_code || has_leader(op, s, topic->topic, p->partition_id))
                continue;
            all = false;
            p->error_code = (int16_t)late;
        }
    }
    return all;
}

static bool all_shown(struct cache_wait *w, const struct metadata_snapshot *s)
{
    return look(w->arg, s, KERR_NONE);
}

static void respond(struct elect_op *op)
{
    for (int t = 0; t < op->out.replica_election_results.n; t++) {
        result_topic *topic = &op->out.replica_election_results.v[t];
        for (int i = 0; i < topic->partition_result.n; i++) {
            struct elect_leaders_response_partition_result *p = &topic->partition_result.v[i];
            p->error_message = p->error_code ? str_of(kerr_text(p->error_code)) : STR_NULL;
        }
    }
    request_respond(op->req, &op->out);
}

static void waited(struct cache_wait *w)
{
    struct elect_op *op = w->arg;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    look(op, s, KERR_REQUEST_TIMED_OUT);
    metadata_release(s);
    respond(op);
}

/* Every partition that was asked for has the error. (All of them: nobody knows which.) */
static bool refuse_all(struct elect_op *op, enum kerr e)
{
    struct arena *a = op->req->arena;
    int n = op->in->topic_partitions.n;
    elect_leaders_response_init(&op->out);
    op->out.error_code = (int16_t)e;
    op->out.replica_election_results.v =
        elect_leaders_response_replica_election_result_new(a, n < 0 ? 0 : n);
    if (!op->out.replica_election_results.v)
        return false;
    for (int t = 0; t < n; t++) {
        const struct elect_leaders_request_topic_partition *in = &op->in->topic_partitions.v[t];
        result_topic *out = &op->out.replica_election_results.v[t];
        out->topic = in->topic;
        out->partition_result.v = elect_leaders_response_partition_result_new(a, in->partitions.n);
        if (!out->partition_result.v)
            return false;
        out->partition_result.n = in->partitions.n;
        for (int i = 0; i < in->partitions.n; i++) {
            out->partition_result.v[i].partition_id = in->partitions.v[i];
            out->partition_result.v[i].error_code = (int16_t)e;
        }
        op->out.replica_election_results.n++;
    }
    return true;
}

static void elected(struct controller_call *call)
{
    struct elect_op *op = container_of(call, struct elect_op, call);
    struct broker *b = op->req->broker;
    if (call->refused == KERR_NONE) {
        op->wait =
            (struct cache_wait){.req = op->req, .shown = all_shown, .done = waited, .arg = op};
        cache_wait_start(&op->wait, op->in->timeout_ms);
    } else if (refuse_all(op, call->refused)) {
        respond(op);
    } else {
        request_no_memory(op->req);
    }
    broker_async_end(b);
}

void handle_elect_leaders(struct request *req)
{
    struct elect_op *op = arena_new(req->arena, struct elect_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = req->body;
    elect_leaders_response_init(&op->out);
    enum kerr refused = req->refused;
    if (request_version(req) >= 1 && (op->in->election_type < 0 || op->in->election_type > 1))
        refused = KERR_INVALID_REQUEST;
    if (refused != KERR_NONE) {
        if (refuse_all(op, refused))
            respond(op);
        else
            request_no_memory(req);
        return;
    }
    op->call = (struct controller_call){.api_key = API_ELECT_LEADERS,
                                        .version = request_version(req),
                                        .request = req->body,
                                        .response = &op->out,
                                        .arena = req->arena,
                                        .done_on = request_executor(req),
                                        .done = elected};
    broker_async_begin(req->broker);
    controller_call(broker_controller(req->broker), &op->call);
}
