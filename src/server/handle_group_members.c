/* handle_group_members.c - what members of a group ask: JoinGroup, SyncGroup, Heartbeat,
 * LeaveGroup. The coordinator decides; here is what is refused before it is asked. */
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/sync_group.h"
#include "server/group_op.h"
#include "server/handlers.h"
#include "server/rights.h"

enum { FIRST_VERSION_SYNC_PROTOCOL = 5, FIRST_VERSION_JOIN_NULL_PROTOCOL = 7 };

static bool too_new(const struct request *req, struct str instance)
{
    return !str_is_null(instance) && !group_instances_allowed(req);
}

static void refuse_join(struct request *req, enum kerr e)
{
    const struct join_group_request *in = req->body;
    struct join_group_response out;
    join_group_response_init(&out);
    out.error_code = (int16_t)e;
    out.member_id = in->member_id;
    if (request_version(req) >= FIRST_VERSION_JOIN_NULL_PROTOCOL)
        out.protocol_name = STR_NULL;
    request_respond(req, &out);
}

void handle_join_group(struct request *req)
{
    const struct join_group_request *in = req->body;
    if (too_new(req, in->group_instance_id)) {
        refuse_join(req, KERR_UNSUPPORTED_VERSION);
        return;
    }
    if (!rights_group(req, ACL_READ, in->group_id)) {
        refuse_join(req, KERR_GROUP_AUTHORIZATION_FAILED);
        return;
    }
    struct group_op *op = group_op_new(req, GROUP_JOIN);
    if (op)
        group_op_submit(op);
}

static void refuse_sync(struct request *req, enum kerr e)
{
    struct sync_group_response out;
    sync_group_response_init(&out);
    out.error_code = (int16_t)e;
    request_respond(req, &out);
}

void handle_sync_group(struct request *req)
{
    const struct sync_group_request *in = req->body;
    if (too_new(req, in->group_instance_id)) {
        refuse_sync(req, KERR_UNSUPPORTED_VERSION);
        return;
    }
    if (request_version(req) >= FIRST_VERSION_SYNC_PROTOCOL &&
        (str_is_null(in->protocol_type) || str_is_null(in->protocol_name))) {
        refuse_sync(req, KERR_INCONSISTENT_GROUP_PROTOCOL);
        return;
    }
    if (!rights_group(req, ACL_READ, in->group_id)) {
        refuse_sync(req, KERR_GROUP_AUTHORIZATION_FAILED);
        return;
    }
    struct group_op *op = group_op_new(req, GROUP_SYNC);
    if (op)
        group_op_submit(op);
}

static void refuse_heartbeat(struct request *req, enum kerr e)
{
    struct heartbeat_response out;
    heartbeat_response_init(&out);
    out.error_code = (int16_t)e;
    request_respond(req, &out);
}

void handle_heartbeat(struct request *req)
{
    const struct heartbeat_request *in = req->body;
    if (too_new(req, in->group_instance_id)) {
        refuse_heartbeat(req, KERR_UNSUPPORTED_VERSION);
        return;
    }
    if (!rights_group(req, ACL_READ, in->group_id)) {
        refuse_heartbeat(req, KERR_GROUP_AUTHORIZATION_FAILED);
        return;
    }
    struct group_op *op = group_op_new(req, GROUP_HEARTBEAT);
    if (op)
        group_op_submit(op);
}

void handle_leave_group(struct request *req)
{
    const struct leave_group_request *in = req->body;
    struct group_op *op = group_op_new(req, GROUP_LEAVE);
    if (!op)
        return;
    if (rights_group(req, ACL_READ, in->group_id)) {
        group_op_submit(op);
        return;
    }
    ((struct leave_group_response *)op->out)->error_code = KERR_GROUP_AUTHORIZATION_FAILED;
    group_op_answer(op);
}
