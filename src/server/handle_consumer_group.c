/* handle_consumer_group.c - the group protocol of KIP-848: ConsumerGroupHeartbeat and
 * ConsumerGroupDescribe. Where group.coordinator.rebalance.protocols leaves it out they are still
 * listed, as by every 3.9 broker in ZooKeeper mode, and answered with UNSUPPORTED_VERSION, on which
 * clients go on with the classic protocol. */
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/consumer_group_heartbeat.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"
#include "server/rights.h"

static bool is_on(const struct request *req)
{
    return group_protocol_on(broker_config(req->broker), "consumer");
}

/* What the client lacks, or NONE. Topics that it names it must be let see. */
static enum kerr refusal(const struct request *req)
{
    const struct consumer_group_heartbeat_request *in = req->body;
    if (!is_on(req))
        return KERR_UNSUPPORTED_VERSION;
    if (!rights_group(req, ACL_READ, in->group_id))
        return KERR_GROUP_AUTHORIZATION_FAILED;
    for (int32_t i = 0; i < in->subscribed_topic_names.n; i++)
        if (!rights_topic(req, ACL_DESCRIBE, in->subscribed_topic_names.v[i]))
            return KERR_TOPIC_AUTHORIZATION_FAILED;
    return KERR_NONE;
}

/* A pattern takes what it fits, whoever may see it: what the client may not DESCRIBE is left out of
 * the answer, or names could be guessed by patterns. When rights have changed the coordinator tells
 * the assignment again (group_call.h). */
static void hide_assigned(struct group_op *op)
{
    struct consumer_group_heartbeat_response *out = op->out;
    int32_t left = 0;
    if (!out->assignment)
        return;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(op->req->broker));
    for (int32_t i = 0; i < out->assignment->topic_partitions.n; i++) {
        struct consumer_group_heartbeat_response_topic_partition *t =
            &out->assignment->topic_partitions.v[i];
        const struct topic_info *info = metadata_topic_by_id(s, t->topic_id);
        if (info && authorize_quietly(op->req, ACL_DESCRIBE, ACL_TOPIC, info->name))
            out->assignment->topic_partitions.v[left++] = *t;
    }
    out->assignment->topic_partitions.n = left;
    metadata_release(s);
}

void handle_consumer_group_heartbeat(struct request *req)
{
    enum kerr refused = refusal(req);
    if (refused != KERR_NONE) {
        struct consumer_group_heartbeat_response out;
        consumer_group_heartbeat_response_init(&out);
        out.error_code = (int16_t)refused;
        if (refused != KERR_UNSUPPORTED_VERSION)
            out.error_message = str_of(kerr_text(out.error_code));
        request_respond(req, &out);
        return;
    }
    struct group_op *op = group_op_new(req, GROUP_CONSUMER_HEARTBEAT);
    if (!op)
        return;
    op->call.rights = rights_state(req);
    if (op->call.rights)
        op->finish = hide_assigned;
    group_op_submit(op);
}

typedef struct consumer_group_describe_response_group described;

static bool may_see(const struct request *req,
                    const struct consumer_group_describe_response_assignment *a)
{
    for (int32_t i = 0; i < a->topic_partitions.n; i++)
        if (!rights_topic(req, ACL_DESCRIBE, a->topic_partitions.v[i].topic_name))
            return false;
    return true;
}

/* The group is told as a whole, so all topics that its members have must be the client's to see. */
static bool may_see_topics(const struct request *req, const described *g)
{
    for (int32_t i = 0; i < g->members.n; i++)
        if (!may_see(req, &g->members.v[i].assignment) ||
            !may_see(req, &g->members.v[i].target_assignment))
            return false;
    return true;
}

static void hide(described *g)
{
    struct str id = g->group_id;
    consumer_group_describe_response_group_init(g);
    g->group_id = id;
    g->error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
    g->error_message = STR_LIT("The group has topics that the client may not describe.");
}

static void look_at_rights(struct group_op *op)
{
    const struct consumer_group_describe_request *in = op->req->body;
    struct consumer_group_describe_response *out = op->out;
    bool checked = authorizer_enabled(op->req);
    for (int32_t i = 0; i < out->groups.n; i++) {
        described *g = &out->groups.v[i];
        if (g->error_code == KERR_NONE && checked && !may_see_topics(op->req, g))
            hide(g);
        if (g->error_code == KERR_NONE && in->include_authorized_operations)
            g->authorized_operations = authorized_operations(op->req, ACL_GROUP, g->group_id);
    }
}

void handle_consumer_group_describe(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_CONSUMER_DESCRIBE);
    if (!op)
        return;
    struct consumer_group_describe_response *out = op->out;
    if (is_on(req)) {
        for (int32_t i = 0; i < out->groups.n; i++)
            if (!rights_group(req, ACL_DESCRIBE, out->groups.v[i].group_id))
                out->groups.v[i].error_code = KERR_GROUP_AUTHORIZATION_FAILED;
        op->finish = look_at_rights;
        group_op_submit(op);
        return;
    }
    for (int32_t i = 0; i < out->groups.n; i++)
        out->groups.v[i].error_code = KERR_UNSUPPORTED_VERSION;
    request_respond(req, out);
}
