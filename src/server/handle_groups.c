/* handle_groups.c - what tools ask about groups: ListGroups, DescribeGroups, DeleteGroups,
 * OffsetDelete. */
#include "protocol/msg/delete_groups.h"
#include "protocol/msg/describe_groups.h"
#include "protocol/msg/list_groups.h"
#include "protocol/msg/offset_delete.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"
#include "server/rights.h"

enum { FIRST_VERSION_OPERATIONS = 3 };

/* Who may DESCRIBE the cluster sees all groups, others those that they may DESCRIBE. */
static void leave_out_hidden(struct group_op *op)
{
    struct list_groups_response *out = op->out;
    int32_t left = 0;
    for (int32_t i = 0; i < out->groups.n; i++)
        if (authorize_quietly(op->req, ACL_DESCRIBE, ACL_GROUP, out->groups.v[i].group_id))
            out->groups.v[left++] = out->groups.v[i];
    out->groups.n = left;
}

void handle_list_groups(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_LIST);
    if (!op)
        return;
    if (!rights_cluster_quietly(req, ACL_DESCRIBE))
        op->finish = leave_out_hidden;
    group_op_submit(op);
}

static void add_operations(struct group_op *op)
{
    const struct describe_groups_request *in = op->req->body;
    struct describe_groups_response *out = op->out;
    if (!in->include_authorized_operations || request_version(op->req) < FIRST_VERSION_OPERATIONS)
        return;
    for (int32_t i = 0; i < out->groups.n; i++)
        if (out->groups.v[i].error_code == KERR_NONE)
            out->groups.v[i].authorized_operations =
                authorized_operations(op->req, ACL_GROUP, out->groups.v[i].group_id);
}

void handle_describe_groups(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_DESCRIBE);
    if (!op)
        return;
    struct describe_groups_response *out = op->out;
    for (int32_t i = 0; i < out->groups.n; i++)
        if (!rights_group(req, ACL_DESCRIBE, out->groups.v[i].group_id))
            out->groups.v[i].error_code = KERR_GROUP_AUTHORIZATION_FAILED;
    op->finish = add_operations;
    group_op_submit(op);
}

void handle_delete_groups(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_DELETE);
    if (!op)
        return;
    struct delete_groups_response *out = op->out;
    for (int32_t i = 0; i < out->results.n; i++)
        if (!rights_group(req, ACL_DELETE, out->results.v[i].group_id))
            out->results.v[i].error_code = KERR_GROUP_AUTHORIZATION_FAILED;
    group_op_submit(op);
}

void handle_offset_delete(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_OFFSET_DELETE);
    if (!op)
        return;
    const struct offset_delete_request *in = req->body;
    struct offset_delete_response *out = op->out;
    if (!rights_group(req, ACL_DELETE, in->group_id)) {
        out->error_code = KERR_GROUP_AUTHORIZATION_FAILED;
        out->topics.n = 0;
        group_op_answer(op);
        return;
    }
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    for (int32_t t = 0; t < out->topics.n; t++) {
        bool may = rights_topic(req, ACL_READ, out->topics.v[t].name);
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++) {
            struct offset_delete_response_partition *p = &out->topics.v[t].partitions.v[i];
            if (!may)
                p->error_code = KERR_TOPIC_AUTHORIZATION_FAILED;
            else if (!metadata_partition(s, out->topics.v[t].name, p->partition_index))
                p->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    }
    metadata_release(s);
    group_op_submit(op);
}
