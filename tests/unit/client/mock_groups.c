/* mock_groups.c - the mock as a group's coordinator. See mock_broker.h. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "client/mock_private.h"
#include "protocol/errors.h"
#include "protocol/msg/find_coordinator.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/offset_fetch.h"
#include "protocol/msg/sync_group.h"

/* A scripted error, else what the coordinator itself finds wrong. */
static int16_t check_node(struct mock_request *r)
{
    return r->error ? r->error : r->node != r->m->group.coordinator ? KERR_NOT_COORDINATOR : 0;
}

static int16_t check_member(struct mock_request *r, struct str member_id, int generation)
{
    int16_t err = check_node(r);
    if (err)
        return err;
    if (!str_eqz(member_id, r->m->group.member_id) || !r->m->group.member_id[0])
        return KERR_UNKNOWN_MEMBER_ID;
    return generation == r->m->group.generation ? 0 : KERR_ILLEGAL_GENERATION;
}

static void do_find_coordinator(struct mock_request *r, const void *request, void *response)
{
    const struct find_coordinator_request *req = request;
    struct find_coordinator_response *out = response;
    int node = req->key_type ? r->m->txn.coordinator : r->m->group.coordinator;
    out->error_code = r->error;
    out->node_id = node;
    out->host = STR_LIT("127.0.0.1");
    out->port = r->m->told_ports[node];
}

/* New members get an id first, as from v4 on. */
static void do_join(struct mock_request *r, const void *request, void *response)
{
    const struct join_group_request *req = request;
    struct join_group_response *out = response;
    struct mock_group *g = &r->m->group;
    char *id = arena_printf(r->arena, "member-%d", g->generation + 1);
    out->error_code = check_node(r);
    out->member_id = req->member_id;
    if (!out->error_code && req->member_id.len == 0 && req->group_instance_id.len < 0) {
        out->error_code = KERR_MEMBER_ID_REQUIRED;
        out->member_id = str_of(id);
        snprintf(g->member_id, sizeof g->member_id, "%s", id);
        return;
    }
    if (!out->error_code && req->member_id.len > 0 && !str_eqz(req->member_id, g->member_id))
        out->error_code = KERR_UNKNOWN_MEMBER_ID;
    if (out->error_code)
        return;
    if (req->member_id.len == 0)
        snprintf(g->member_id, sizeof g->member_id, "%s", id);
    snprintf(g->reason, sizeof g->reason, "%.*s", STR_ARG(req->reason));
    out->generation_id = ++g->generation;
    out->protocol_type = STR_LIT("consumer");
    out->protocol_name = req->protocols.v[0].name;
    out->leader = out->member_id = str_of(arena_printf(r->arena, "%s", g->member_id));
    out->members.v = join_group_response_member_new(r->arena, 1);
    out->members.n = 1;
    out->members.v[0].member_id = out->member_id;
    out->members.v[0].group_instance_id = req->group_instance_id;
    out->members.v[0].metadata = req->protocols.v[0].metadata;
}

static void do_sync(struct mock_request *r, const void *request, void *response)
{
    const struct sync_group_request *req = request;
    struct sync_group_response *out = response;
    out->error_code = check_member(r, req->member_id, req->generation_id);
    if (out->error_code)
        return;
    if (req->assignments.n > 0) /* else a damaged answer told it that it does not lead */
        out->assignment = req->assignments.v[0].assignment;
}

static void do_heartbeat(struct mock_request *r, const void *request, void *response)
{
    const struct heartbeat_request *req = request;
    struct heartbeat_response *out = response;
    out->error_code = check_member(r, req->member_id, req->generation_id);
}

static void do_leave(struct mock_request *r, const void *request, void *response)
{
    const struct leave_group_request *req = request;
    struct leave_group_response *out = response;
    struct str id = req->members.n > 0 ? req->members.v[0].member_id : req->member_id;
    out->error_code = check_node(r);
    if (out->error_code)
        return;
    snprintf(r->m->group.left, sizeof r->m->group.left, "%.*s", STR_ARG(id));
    if (str_eqz(id, r->m->group.member_id))
        r->m->group.member_id[0] = 0;
}

static int find_offset(struct mock_group *g, struct str topic, int partition)
{
    for (int i = 0; i < g->offsets_n; i++)
        if (g->offsets[i].partition == partition && str_eqz(topic, g->offsets[i].topic))
            return i;
    return -1;
}

void mock_put_offset(struct mock *m, struct str topic, int partition, int64_t offset)
{
    struct mock_group *g = &m->group;
    int i = find_offset(g, topic, partition);
    if (i < 0) {
        if (g->offsets_n == (int)(sizeof g->offsets / sizeof *g->offsets))
            return; /* a damaged assignment's */
        i = g->offsets_n++;
        snprintf(g->offsets[i].topic, sizeof g->offsets[i].topic, "%.*s", STR_ARG(topic));
        g->offsets[i].partition = partition;
    }
    g->offsets[i].offset = offset;
}

static void do_commit(struct mock_request *r, const void *request, void *response)
{
    const struct offset_commit_request *req = request;
    struct offset_commit_response *out = response;
    int16_t err = req->generation_id_or_member_epoch < 0
                      ? check_node(r)
                      : check_member(r, req->member_id, req->generation_id_or_member_epoch);
    out->topics.v = offset_commit_response_topic_new(r->arena, req->topics.n);
    out->topics.n = req->topics.n;
    for (int32_t t = 0; t < req->topics.n; t++) {
        struct offset_commit_response_topic *to = &out->topics.v[t];
        to->name = req->topics.v[t].name;
        to->partitions.n = req->topics.v[t].partitions.n;
        to->partitions.v = offset_commit_response_partition_new(r->arena, to->partitions.n);
        for (int32_t i = 0; i < to->partitions.n; i++) {
            const struct offset_commit_request_partition *p = &req->topics.v[t].partitions.v[i];
            to->partitions.v[i].partition_index = p->partition_index;
            to->partitions.v[i].error_code = err;
            if (!err)
                mock_put_offset(r->m, to->name, p->partition_index, p->committed_offset);
        }
    }
}

static void do_offset_fetch(struct mock_request *r, const void *request, void *response)
{
    const struct offset_fetch_request *req = request;
    struct offset_fetch_response *out = response;
    out->error_code = check_node(r);
    if (out->error_code)
        return;
    out->topics.v = offset_fetch_response_topic_new(r->arena, req->topics.n);
    out->topics.n = req->topics.n;
    for (int32_t t = 0; t < req->topics.n; t++) {
        struct offset_fetch_response_topic *to = &out->topics.v[t];
        to->name = req->topics.v[t].name;
        to->partitions.n = req->topics.v[t].partition_indexes.n;
        to->partitions.v = offset_fetch_response_partition_new(r->arena, to->partitions.n);
        for (int32_t i = 0; i < to->partitions.n; i++) {
            int32_t partition = req->topics.v[t].partition_indexes.v[i];
            int at = find_offset(&r->m->group, to->name, partition);
            to->partitions.v[i].partition_index = partition;
            to->partitions.v[i].committed_offset = at < 0 ? -1 : r->m->group.offsets[at].offset;
            to->partitions.v[i].metadata = STR_LIT("");
        }
    }
}

mock_do mock_find_group_api(int16_t api)
{
    static const struct {
        int16_t api;
        mock_do fn;
    } table[] = {
        {API_FIND_COORDINATOR, do_find_coordinator},
        {API_JOIN_GROUP, do_join},
        {API_SYNC_GROUP, do_sync},
        {API_HEARTBEAT, do_heartbeat},
        {API_LEAVE_GROUP, do_leave},
        {API_OFFSET_COMMIT, do_commit},
        {API_OFFSET_FETCH, do_offset_fetch},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].api == api)
            return table[i].fn;
    return NULL;
}

/* ---- what tests put in and look at ---- */

void mock_move_coordinator(struct mock *m, int node)
{
    pthread_mutex_lock(&m->lock);
    m->group.coordinator = node;
    pthread_mutex_unlock(&m->lock);
}

void mock_expel_member(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    m->group.member_id[0] = 0;
    pthread_mutex_unlock(&m->lock);
}

int64_t mock_committed(struct mock *m, const char *topic, int partition)
{
    pthread_mutex_lock(&m->lock);
    int i = find_offset(&m->group, str_of(topic), partition);
    int64_t offset = i < 0 ? -1 : m->group.offsets[i].offset;
    pthread_mutex_unlock(&m->lock);
    return offset;
}

void mock_set_committed(struct mock *m, const char *topic, int partition, int64_t offset)
{
    pthread_mutex_lock(&m->lock);
    mock_put_offset(m, str_of(topic), partition, offset);
    pthread_mutex_unlock(&m->lock);
}

int mock_generation(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    int generation = m->group.generation;
    pthread_mutex_unlock(&m->lock);
    return generation;
}

void mock_left(struct mock *m, char *out, size_t n)
{
    pthread_mutex_lock(&m->lock);
    snprintf(out, n, "%s", m->group.left);
    pthread_mutex_unlock(&m->lock);
}
