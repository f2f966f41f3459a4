/* handle_groups.c - what tools ask about groups: ListGroups, DescribeGroups, DeleteGroups,
 * OffsetDelete. */
#include "protocol/msg/describe_groups.h"
#include "protocol/msg/offset_delete.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"

enum { FIRST_VERSION_OPERATIONS = 3 };

void handle_list_groups(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_LIST);
    if (op)
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
            out->groups.v[i].authorized_operations = GROUP_OPERATIONS;
}

void handle_describe_groups(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_DESCRIBE);
    if (!op)
        return;
    op->finish = add_operations;
    group_op_submit(op);
}

void handle_delete_groups(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_DELETE);
    if (op)
        group_op_submit(op);
}

void handle_offset_delete(struct request *req)
{
    struct group_op *op = group_op_new(req, GROUP_OFFSET_DELETE);
    if (!op)
        return;
    struct offset_delete_response *out = op->out;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    for (int32_t t = 0; t < out->topics.n; t++)
        for (int32_t i = 0; i < out->topics.v[t].partitions.n; i++) {
            struct offset_delete_response_partition *p = &out->topics.v[t].partitions.v[i];
            if (!metadata_partition(s, out->topics.v[t].name, p->partition_index))
                p->error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        }
    metadata_release(s);
    group_op_submit(op);
}
