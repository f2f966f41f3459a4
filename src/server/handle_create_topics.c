/* handle_create_topics.c - CreateTopics: the request's own mistakes are found here, everything else
 * by topic_admin; then the answer waits until the metadata cache shows leaders.
 *
 * FLOW     handle -> topic_admin_create -> written -> wait for leaders -> answer */
#include <stdlib.h>

#include "controller/topic_admin.h"
#include "protocol/msg/create_topics.h"
#include "server/broker.h"
#include "server/cache_wait.h"
#include "server/handlers.h"
#include "server/mutation_quota.h"
#include "server/name_set.h"
#include "server/rights.h"
#include "server/topic_settings.h"

struct create_op {
    struct request *req;
    const struct create_topics_request *in;
    struct create_topics_response out;
    struct new_topic *topics; /* those that are tried */
    int32_t *index;           /* topics[i] is in->topics.v[index[i]] */
    int topics_n;
    struct cache_wait wait;
    struct mutation_quota quota;
};

static void set_error(struct create_topics_response_topic *out, enum kerr error,
                      const char *message)
{
    out->error_code = (int16_t)error;
    out->error_message = str_of(message ? message : kerr_text((int16_t)error));
}

/* ---- the answer ---- */

/* The settings of the new topic, as DescribeConfigs would show them. -1 without memory. */
static int put_configs(struct create_op *op, const struct props *given,
                       struct create_topics_response_topic *out)
{
    int n;
    struct arena *a = op->req->arena;
    const struct topic_config_row *rows = topic_config_rows(&n);
    out->configs.v = create_topics_response_config_new(a, n);
    if (!out->configs.v)
        return -1;
    out->configs.n = n;
    for (int i = 0; i < n; i++) {
        struct setting s;
        struct create_topics_response_config *c = &out->configs.v[i];
        if (topic_setting(broker_config(op->req->broker), &rows[i], given, a, &s) != 0)
            return -1;
        c->name = str_of(s.name);
        c->value = arena_str(a, str_of(s.value));
        c->config_source = (int8_t)s.source;
        c->is_sensitive = s.sensitive;
        if (s.value && !c->value.p)
            return -1;
    }
    return 0;
}

/* NULL without memory. */
static struct props *given_configs(const struct create_topics_request_topic *asked)
{
    struct props *p = props_new();
    for (int32_t i = 0; p && i < asked->configs.n; i++) {
        char *name = str_dup(asked->configs.v[i].name);
        char *value = str_dup(asked->configs.v[i].value);
        bool good = name && value && props_set(p, name, value) == 0;
        free(name);
        free(value);
        if (!good) {
            props_free(p);
            return NULL;
        }
    }
    return p;
}

static int put_success(struct create_op *op, int i)
{
    const struct new_topic *t = &op->topics[i];
    const struct create_topics_request_topic *asked = &op->in->topics.v[op->index[i]];
    struct create_topics_response_topic *out = &op->out.topics.v[op->index[i]];
    if (!op->in->validate_only)
        out->topic_id = t->id;
    if (request_version(op->req) < 5)
        return 0;
    if (!authorize_quietly(op->req, ACL_DESCRIBE_CONFIGS, ACL_TOPIC, asked->name)) {
        out->topic_config_error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
        return 0;
    }
    out->num_partitions = t->made_partitions;
    out->replication_factor = t->made_replication;
    struct props *given = given_configs(asked);
    int rc = given ? put_configs(op, given, out) : -1;
    props_free(given);
    return rc;
}

static void answer(struct create_op *op)
{
    struct request *req = op->req;
    int rc = 0;
    mutation_quota_end(&op->quota, req);
    for (int i = 0; i < op->topics_n && rc == 0; i++)
        if (op->out.topics.v[op->index[i]].error_code == KERR_NONE)
            rc = put_success(op, i);
    if (rc == 0)
        request_respond(req, &op->out);
    else
        request_no_memory(req);
}

/* ---- waiting for leaders ---- */

static bool has_leaders(const struct metadata_snapshot *s, const struct new_topic *t)
{
    const struct topic_info *info = metadata_topic(s, t->name);
    if (!info || info->partitions_n < t->made_partitions)
        return false;
    for (int i = 0; i < info->partitions_n; i++)
        if (info->partitions[i].leader < 0)
            return false;
    return true;
}

static bool was_written(const struct create_op *op, int i)
{
    return op->out.topics.v[op->index[i]].error_code == KERR_NONE;
}

static bool all_have_leaders(struct cache_wait *w, const struct metadata_snapshot *s)
{
    const struct create_op *op = w->arg;
    for (int i = 0; i < op->topics_n; i++)
        if (was_written(op, i) && !has_leaders(s, &op->topics[i]))
            return false;
    return true;
}

static void waited(struct cache_wait *w)
{
    struct create_op *op = w->arg;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int i = 0; i < op->topics_n; i++)
        if (was_written(op, i) && (op->in->timeout_ms <= 0 || !has_leaders(s, &op->topics[i])))
            set_error(&op->out.topics.v[op->index[i]], KERR_REQUEST_TIMED_OUT, NULL);
    metadata_release(s);
    answer(op);
}

/* ---- after the store ---- */

/* Errors into the answer; texts move to the arena. True when some topic was written. */
static bool take_results(struct create_op *op)
{
    bool some = false;
    for (int i = 0; i < op->topics_n; i++) {
        struct new_topic *t = &op->topics[i];
        struct str text = arena_str(op->req->arena, str_of(t->message));
        free(t->message);
        t->message = NULL;
        if (t->error == KERR_NONE)
            some = true;
        else
            set_error(&op->out.topics.v[op->index[i]], t->error, text.p);
    }
    return some;
}

static void written(void *arg)
{
    struct create_op *op = arg;
    struct broker *b = op->req->broker;
    if (take_results(op) && !op->in->validate_only) {
        op->wait = (struct cache_wait){
            .req = op->req, .shown = all_have_leaders, .done = waited, .arg = op};
        cache_wait_start(&op->wait, op->in->timeout_ms);
    } else {
        answer(op);
    }
    broker_async_end(b);
}

/* ---- before the store ---- */

/* -1 without memory. */
static int put_assignments(struct arena *a, const struct create_topics_request_topic *asked,
                           struct new_topic *t)
{
    int32_t n = asked->assignments.n;
    if (n <= 0)
        return 0;
    struct manual_assignment *m = arena_array(a, struct manual_assignment, n);
    if (!m)
        return -1;
    for (int32_t i = 0; i < n; i++) {
        m[i].partition = asked->assignments.v[i].partition_index;
        m[i].brokers = asked->assignments.v[i].broker_ids.v;
        m[i].brokers_n = asked->assignments.v[i].broker_ids.n;
    }
    t->assignments = m;
    t->assignments_n = n;
    return 0;
}

static int put_given_configs(struct arena *a, const struct create_topics_request_topic *asked,
                             struct new_topic *t)
{
    int32_t n = asked->configs.n;
    struct config_pair *pairs = arena_array(a, struct config_pair, n);
    if (!pairs)
        return -1;
    for (int32_t i = 0; i < n; i++)
        pairs[i] = (struct config_pair){asked->configs.v[i].name, asked->configs.v[i].value};
    t->configs = pairs;
    t->configs_n = n;
    return 0;
}

static int fill(struct create_op *op, const struct create_topics_request_topic *asked,
                struct new_topic *t)
{
    *t = (struct new_topic){.name = asked->name,
                            .partitions = asked->num_partitions,
                            .replication = asked->replication_factor,
                            .permit = &op->quota.permit};
    if (put_assignments(op->req->arena, asked, t) != 0)
        return -1;
    return put_given_configs(op->req->arena, asked, t);
}

/* Topics that this request itself rules out. */
static bool refused(struct create_op *op, const struct name_set *names,
                    const struct create_topics_request_topic *asked,
                    struct create_topics_response_topic *out)
{
    if (!broker_is_controller(op->req->broker))
        set_error(out, KERR_NOT_CONTROLLER, NULL);
    else if (str_eqz(asked->name, "__cluster_metadata"))
        set_error(out, KERR_INVALID_REQUEST, "__cluster_metadata cannot be created");
    else if (name_set_twice(names, asked->name))
        set_error(out, KERR_INVALID_REQUEST, "The request names this topic more than once");
    else if (!rights_create_topic(op->req, asked->name))
        set_error(out, KERR_TOPIC_AUTHORIZATION_FAILED, NULL);
    else
        return false;
    return true;
}

/* -1 without memory. */
static int prepare(struct create_op *op)
{
    struct arena *a = op->req->arena;
    int32_t n = op->in->topics.n;
    struct name_set names;
    op->out.topics.v = create_topics_response_topic_new(a, n);
    op->topics = arena_array(a, struct new_topic, n);
    op->index = arena_array(a, int32_t, n);
    if (!op->out.topics.v || !op->topics || !op->index || name_set_init(&names, a, n) != 0)
        return -1;
    op->out.topics.n = n;
    for (int32_t i = 0; i < n; i++)
        name_set_add(&names, op->in->topics.v[i].name);
    for (int32_t i = 0; i < n; i++) {
        const struct create_topics_request_topic *asked = &op->in->topics.v[i];
        op->out.topics.v[i].name = asked->name;
        op->out.topics.v[i].error_message = STR_NULL;
        if (refused(op, &names, asked, &op->out.topics.v[i]))
            continue;
        if (fill(op, asked, &op->topics[op->topics_n]) != 0)
            return -1;
        op->index[op->topics_n++] = i;
    }
    return 0;
}

void handle_create_topics(struct request *req)
{
    struct create_op *op = arena_new(req->arena, struct create_op);
    if (!op) {
        request_no_memory(req);
        return;
    }
    op->req = req;
    op->in = req->body;
    mutation_quota_init(&op->quota, req, 6);
    create_topics_response_init(&op->out);
    if (prepare(op) != 0) {
        request_no_memory(req);
    } else if (op->topics_n == 0) {
        answer(op);
    } else {
        broker_async_begin(req->broker);
        topic_admin_create(broker_topic_admin(req->broker), op->topics, op->topics_n,
                           op->in->validate_only, request_executor(req), written, op);
    }
}
