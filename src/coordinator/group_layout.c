/* group_layout.c - the responses of list-like requests, laid out as the request is: the names are
 * there, no error yet. The server then marks what it refuses itself, the coordinator fills in the
 * rest. */
#include "coordinator/group_shard.h"
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/delete_groups.h"
#include "protocol/msg/describe_groups.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_delete.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/txn_offset_commit.h"

static bool offset_commit(struct group_call *c)
{
    const struct offset_commit_request *in = c->in;
    struct offset_commit_response *out = c->out;
    out->topics.v = offset_commit_response_topic_new(c->arena, in->topics.n);
    for (int32_t t = 0; out->topics.v && t < in->topics.n; t++) {
        struct offset_commit_response_topic *to = &out->topics.v[out->topics.n++];
        int32_t n = in->topics.v[t].partitions.n;
        to->name = in->topics.v[t].name;
        to->partitions.v = offset_commit_response_partition_new(c->arena, n);
        for (int32_t i = 0; to->partitions.v && i < n; i++)
            to->partitions.v[to->partitions.n++].partition_index =
                in->topics.v[t].partitions.v[i].partition_index;
    }
    return !c->arena->exhausted;
}

static bool txn_offset_commit(struct group_call *c)
{
    const struct txn_offset_commit_request *in = c->in;
    struct txn_offset_commit_response *out = c->out;
    out->topics.v = txn_offset_commit_response_topic_new(c->arena, in->topics.n);
    for (int32_t t = 0; out->topics.v && t < in->topics.n; t++) {
        struct txn_offset_commit_response_topic *to = &out->topics.v[out->topics.n++];
        int32_t n = in->topics.v[t].partitions.n;
        to->name = in->topics.v[t].name;
        to->partitions.v = txn_offset_commit_response_partition_new(c->arena, n);
        for (int32_t i = 0; to->partitions.v && i < n; i++)
            to->partitions.v[to->partitions.n++].partition_index =
                in->topics.v[t].partitions.v[i].partition_index;
    }
    return !c->arena->exhausted;
}

static bool offset_delete(struct group_call *c)
{
    const struct offset_delete_request *in = c->in;
    struct offset_delete_response *out = c->out;
    out->topics.v = offset_delete_response_topic_new(c->arena, in->topics.n);
    for (int32_t t = 0; out->topics.v && t < in->topics.n; t++) {
        struct offset_delete_response_topic *to = &out->topics.v[out->topics.n++];
        int32_t n = in->topics.v[t].partitions.n;
        to->name = in->topics.v[t].name;
        to->partitions.v = offset_delete_response_partition_new(c->arena, n);
        for (int32_t i = 0; to->partitions.v && i < n; i++)
            to->partitions.v[to->partitions.n++].partition_index =
                in->topics.v[t].partitions.v[i].partition_index;
    }
    return !c->arena->exhausted;
}

static bool offset_fetch(struct group_call *c)
{
    const struct offset_fetch_request *in = c->in;
    struct offset_fetch_response *out = c->out;
    out->groups.v = offset_fetch_response_group_new(c->arena, in->groups.n);
    for (int32_t i = 0; out->groups.v && i < in->groups.n; i++)
        out->groups.v[out->groups.n++].group_id = in->groups.v[i].group_id;
    return !c->arena->exhausted;
}

static bool describe_groups(struct group_call *c)
{
    const struct describe_groups_request *in = c->in;
    struct describe_groups_response *out = c->out;
    out->groups.v = describe_groups_response_group_new(c->arena, in->groups.n);
    for (int32_t i = 0; out->groups.v && i < in->groups.n; i++)
        out->groups.v[out->groups.n++].group_id = in->groups.v[i];
    return !c->arena->exhausted;
}

static bool consumer_describe(struct group_call *c)
{
    const struct consumer_group_describe_request *in = c->in;
    struct consumer_group_describe_response *out = c->out;
    out->groups.v = consumer_group_describe_response_group_new(c->arena, in->group_ids.n);
    for (int32_t i = 0; out->groups.v && i < in->group_ids.n; i++)
        out->groups.v[out->groups.n++].group_id = in->group_ids.v[i];
    return !c->arena->exhausted;
}

/* A group that is named twice is deleted, and answered, once. */
static bool delete_groups(struct group_call *c)
{
    const struct delete_groups_request *in = c->in;
    struct delete_groups_response *out = c->out;
    struct group_topics seen;
    bool good = true;
    group_topics_init(&seen);
    out->results.v = delete_groups_response_result_new(c->arena, in->groups_names.n);
    for (int32_t i = 0; good && out->results.v && i < in->groups_names.n; i++) {
        struct str id = in->groups_names.v[i];
        if (group_topics_has(&seen, id))
            continue;
        good = group_topics_add(&seen, id) == 0;
        out->results.v[out->results.n++].group_id = id;
    }
    group_topics_free(&seen);
    return good && !c->arena->exhausted;
}

bool group_call_lay_out(struct group_call *c)
{
    static bool (*const makers[GROUP_APIS])(struct group_call * c) = {
        [GROUP_COMMIT] = offset_commit,
        [GROUP_TXN_COMMIT] = txn_offset_commit,
        [GROUP_OFFSET_DELETE] = offset_delete,
        [GROUP_FETCH] = offset_fetch,
        [GROUP_DESCRIBE] = describe_groups,
        [GROUP_DELETE] = delete_groups,
        [GROUP_CONSUMER_DESCRIBE] = consumer_describe,
    };
    return !makers[c->api] || makers[c->api](c);
}
