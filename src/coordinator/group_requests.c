/* group_requests.c - requests and their groups: may this broker answer, is there such a group, and
 * what the API does with it. One row an API. */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "coordinator/group_requests.h"
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/consumer_group_heartbeat.h"
#include "protocol/msg/delete_groups.h"
#include "protocol/msg/describe_groups.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/list_groups.h"
#include "protocol/msg/sync_group.h"

enum { FIRST_VERSION_LEAVE_MEMBERS = 3 /* several, each with an error of its own */ };

/* ---- admission ---- */

enum kerr group_admit(const struct group_shard *s, struct str id, bool empty_id, int32_t *partition)
{
    if (id.len <= 0 && !empty_id)
        return KERR_INVALID_GROUP_ID;
    *partition = key_partition(id, s->o.partitions_n);
    if (!s->active)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    switch (s->partitions[*partition].state) {
    case PARTITION_LOADING:
        return KERR_COORDINATOR_LOAD_IN_PROGRESS;
    case PARTITION_OWNED:
        return KERR_NONE;
    default:
        return KERR_NOT_COORDINATOR;
    }
}

bool group_is_mine(const struct group_shard *s, struct str id)
{
    return key_partition(id, s->o.partitions_n) % s->o.shards == s->o.index;
}

void group_call_no_memory(struct group_call *c)
{
    c->no_memory = true;
    group_call_end(c);
}

/* ---- JoinGroup ---- */

static struct str join_id(const struct group_call *c)
{
    return ((const struct join_group_request *)c->in)->group_id;
}

static void join_refuse(struct group_call *c, enum kerr e)
{
    group_answer_join_error(c, e, ((const struct join_group_request *)c->in)->member_id);
}

static void join_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    const struct join_group_request *in = c->in;
    const struct group_config *config = s->o.env.config;
    if (in->session_timeout_ms < config->min_session_ms ||
        in->session_timeout_ms > config->max_session_ms) {
        join_refuse(c, KERR_INVALID_SESSION_TIMEOUT);
        return;
    }
    bool may_make = in->member_id.len == 0;
    struct group *g =
        may_make ? group_shard_get(s, in->group_id, partition) : group_shard_find(s, in->group_id);
    if (!g) {
        join_refuse(c, may_make ? KERR_UNKNOWN_SERVER_ERROR : KERR_UNKNOWN_MEMBER_ID);
        return;
    }
    /* One of the new protocol that has no members may become theirs; by a new member only. */
    if (g->consumers && may_make && !group_has_members(g))
        cgroup_end(g);
    if (g->consumers)
        cgroup_join(g, c);
    else
        group_join(g, c);
    group_shard_drop_unused(s, g);
}

/* ---- SyncGroup ---- */

static struct str sync_id(const struct group_call *c)
{
    return ((const struct sync_group_request *)c->in)->group_id;
}

/* Old clients do not know that a coordinator loads; that they must join again is true as well. */
static void sync_refuse(struct group_call *c, enum kerr e)
{
    if (e == KERR_COORDINATOR_LOAD_IN_PROGRESS)
        e = KERR_REBALANCE_IN_PROGRESS;
    group_answer_sync(c, NULL, NULL, e);
}

static void sync_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    struct group *g = group_shard_find(s, sync_id(c));
    (void)partition;
    if (!g)
        sync_refuse(c, KERR_UNKNOWN_MEMBER_ID);
    else if (g->consumers)
        cgroup_sync(g, c);
    else
        group_sync(g, c);
}

/* ---- Heartbeat ---- */

static struct str heartbeat_id(const struct group_call *c)
{
    return ((const struct heartbeat_request *)c->in)->group_id;
}

static void heartbeat_refuse(struct group_call *c, enum kerr e)
{
    struct heartbeat_response *out = c->out;
    if (e == KERR_COORDINATOR_LOAD_IN_PROGRESS)
        e = KERR_NONE; /* whether the member lives is known only after the load */
    out->error_code = (int16_t)e;
    group_call_end(c);
}

static void heartbeat_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    const struct heartbeat_request *in = c->in;
    struct group *g = group_shard_find(s, in->group_id);
    (void)partition;
    if (g && g->consumers) {
        cgroup_classic_heartbeat(g, c);
        return;
    }
    heartbeat_refuse(c,
                     g ? group_heartbeat(g, in->generation_id, in->member_id, in->group_instance_id)
                       : KERR_UNKNOWN_MEMBER_ID);
}

/* ---- LeaveGroup ---- */

static struct str leave_id(const struct group_call *c)
{
    return ((const struct leave_group_request *)c->in)->group_id;
}

static void leave_refuse(struct group_call *c, enum kerr e)
{
    struct leave_group_response *out = c->out;
    out->error_code = (int16_t)e;
    group_call_end(c);
}

/* One member, whose error is the answer's. */
static enum kerr leave_alone(struct group *g, struct str member)
{
    int16_t e = KERR_UNKNOWN_MEMBER_ID;
    if (!g)
        return (enum kerr)e;
    if (!g->consumers)
        return group_leave(g, member, STR_NULL, STR_NULL);
    cgroup_leave(g, &(struct cleaving){member, STR_NULL, &e}, 1);
    return (enum kerr)e;
}

static bool leave_together(struct group *g, struct group_call *c)
{
    const struct leave_group_request *in = c->in;
    struct leave_group_response *out = c->out;
    struct cleaving *v = arena_array(c->arena, struct cleaving, (size_t)in->members.n);
    if (!v)
        return false;
    for (int32_t i = 0; i < in->members.n; i++)
        v[i] = (struct cleaving){in->members.v[i].member_id, in->members.v[i].group_instance_id,
                                 &out->members.v[i].error_code};
    cgroup_leave(g, v, in->members.n);
    return true;
}

static void leave_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    const struct leave_group_request *in = c->in;
    struct leave_group_response *out = c->out;
    struct group *g = group_shard_find(s, in->group_id);
    const bool together = g && g->consumers; /* asked now: who leaves may make it a classic group */
    (void)partition;
    if (c->version < FIRST_VERSION_LEAVE_MEMBERS) {
        leave_refuse(c, leave_alone(g, in->member_id));
        return;
    }
    out->members.v = leave_group_response_member_new(c->arena, in->members.n);
    if (!out->members.v || (together && !leave_together(g, c))) {
        group_call_no_memory(c);
        return;
    }
    out->members.n = in->members.n;
    for (int32_t i = 0; i < in->members.n; i++) {
        const struct leave_group_request_member *m = &in->members.v[i];
        out->members.v[i].member_id = m->member_id;
        out->members.v[i].group_instance_id = m->group_instance_id;
        if (!g)
            out->members.v[i].error_code = KERR_UNKNOWN_MEMBER_ID;
        else if (!together)
            out->members.v[i].error_code =
                (int16_t)group_leave(g, m->member_id, m->group_instance_id, m->reason);
    }
    group_call_end(c);
}

/* ---- DescribeGroups ---- */

static void describe_one(struct group_shard *s, struct group_call *c,
                         struct describe_groups_response_group *to)
{
    int32_t partition;
    enum kerr e = group_admit(s, to->group_id, true, &partition);
    const struct group *g = e == KERR_NONE ? group_shard_find(s, to->group_id) : NULL;
    to->error_code = (int16_t)e;
    if (g && !g->consumers)
        group_describe(g, c->arena, to);
    else if (e == KERR_NONE) /* or one that this API does not know */
        to->group_state = str_of(group_state_name(GROUP_DEAD));
}

static void describe_run(struct group_shard *s, struct group_call *c)
{
    struct describe_groups_response *out = c->out;
    for (int32_t i = 0; i < out->groups.n && !c->arena->exhausted; i++)
        if (out->groups.v[i].error_code == KERR_NONE && group_is_mine(s, out->groups.v[i].group_id))
            describe_one(s, c, &out->groups.v[i]);
}

/* ---- ConsumerGroupHeartbeat ---- */

static struct str consumer_heartbeat_id(const struct group_call *c)
{
    return ((const struct consumer_group_heartbeat_request *)c->in)->group_id;
}

static void consumer_heartbeat_refuse(struct group_call *c, enum kerr e)
{
    struct consumer_group_heartbeat_response *out = c->out;
    consumer_group_heartbeat_response_init(out);
    out->error_code = (int16_t)e;
    out->error_message = str_of(kerr_text((int16_t)e));
    group_call_end(c);
}

/* The group of the new protocol that a heartbeat is for; one of the other kind may have to become
 * it. */
static enum kerr consumer_group_for(struct group_shard *s, struct group_call *c, int32_t partition,
                                    struct group **out)
{
    const struct consumer_group_heartbeat_request *in = c->in;
    bool joins = in->member_epoch == 0;
    struct group *g = *out =
        joins ? group_shard_get(s, in->group_id, partition) : group_shard_find(s, in->group_id);
    if (!g)
        return joins ? KERR_UNKNOWN_SERVER_ERROR : KERR_GROUP_ID_NOT_FOUND;
    if (g->consumers)
        return KERR_NONE;
    if (!joins)
        return KERR_GROUP_ID_NOT_FOUND;
    if (group_is(g, GROUP_EMPTY))
        return cgroup_replace_empty(g) == 0 ? KERR_NONE : KERR_UNKNOWN_SERVER_ERROR;
    if (!cgroup_can_upgrade(g))
        return KERR_GROUP_ID_NOT_FOUND;
    int rc = cgroup_upgrade(g);
    return rc == 0          ? KERR_NONE
           : rc == -EBADMSG ? KERR_GROUP_ID_NOT_FOUND
                            : KERR_UNKNOWN_SERVER_ERROR;
}

static void consumer_heartbeat_run(struct group_shard *s, struct group_call *c, int32_t partition)
{
    struct group *g;
    if (!cgroup_heartbeat_sound(&s->o.env.config->consumers, c))
        return;
    enum kerr e = consumer_group_for(s, c, partition, &g);
    if (e == KERR_NONE)
        cgroup_heartbeat(g, c);
    else
        consumer_heartbeat_refuse(c, e);
    if (!g)
        return;
    if (g->consumers && cgroup_epoch(g->consumers) == 0 && !group_has_members(g))
        cgroup_detach(g); /* the first member could not join: nothing of it is in the log */
    group_shard_drop_unused(s, g);
}

/* ---- ConsumerGroupDescribe ---- */

static void consumer_describe_one(struct group_shard *s, struct group_call *c,
                                  struct consumer_group_describe_response_group *to)
{
    int32_t partition;
    enum kerr e = group_admit(s, to->group_id, false, &partition);
    const struct group *g = e == KERR_NONE ? group_shard_find(s, to->group_id) : NULL;
    if (e == KERR_NONE && !(g && g->consumers))
        e = KERR_GROUP_ID_NOT_FOUND;
    to->error_code = (int16_t)e;
    if (e == KERR_NONE)
        cgroup_describe(g, c->arena, to);
    else if (e == KERR_GROUP_ID_NOT_FOUND)
        to->error_message = str_of(arena_printf(c->arena, "Group %.*s %s.", STR_ARG(to->group_id),
                                                g ? "is not a consumer group" : "not found"));
}

static void consumer_describe_run(struct group_shard *s, struct group_call *c)
{
    struct consumer_group_describe_response *out = c->out;
    for (int32_t i = 0; i < out->groups.n && !c->arena->exhausted; i++)
        if (out->groups.v[i].error_code == KERR_NONE && group_is_mine(s, out->groups.v[i].group_id))
            consumer_describe_one(s, c, &out->groups.v[i]);
}

/* ---- DeleteGroups ---- */

static enum kerr delete_one(struct group_shard *s, struct str id)
{
    int32_t partition;
    enum kerr e = group_admit(s, id, true, &partition);
    if (e != KERR_NONE)
        return e;
    struct group *g = group_shard_find(s, id);
    if (!g)
        return KERR_GROUP_ID_NOT_FOUND;
    e = group_delete(g);
    group_shard_reap(s, g);
    return e;
}

static void delete_run(struct group_shard *s, struct group_call *c)
{
    struct delete_groups_response *out = c->out;
    for (int32_t i = 0; i < out->results.n; i++)
        if (out->results.v[i].error_code == KERR_NONE &&
            group_is_mine(s, out->results.v[i].group_id))
            out->results.v[i].error_code = (int16_t)delete_one(s, out->results.v[i].group_id);
}

/* ---- ListGroups ---- */

static bool same_word(struct str a, const char *b)
{
    return (size_t)a.len == strlen(b) && strncasecmp(a.p, b, (size_t)a.len) == 0;
}

/* An empty filter lets all pass. */
static bool passes(const struct str *filter, int32_t n, const char *word)
{
    bool pass = n <= 0;
    for (int32_t i = 0; i < n && !pass; i++)
        pass = same_word(filter[i], word);
    return pass;
}

/* Which groups are asked for. The filters are read once: they may be long, and the groups many. */
struct list_filter {
    bool classic, consumer;
    bool states[GROUP_STATES], cstates[CGROUP_STATES];
};

static struct list_filter read_filter(const struct list_groups_request *in)
{
    struct list_filter f = {.classic = passes(in->types_filter.v, in->types_filter.n, "classic"),
                            .consumer = passes(in->types_filter.v, in->types_filter.n, "consumer")};
    for (int i = 0; i < GROUP_STATES; i++)
        f.states[i] =
            passes(in->states_filter.v, in->states_filter.n, group_state_name((enum group_state)i));
    for (int i = 0; i < CGROUP_STATES; i++)
        f.cstates[i] = passes(in->states_filter.v, in->states_filter.n,
                              cgroup_state_name((enum cgroup_state)i));
    return f;
}

static bool is_asked_for(const struct list_filter *f, const struct group *g)
{
    return g->consumers ? f->consumer && f->cstates[cgroup_state(g->consumers)]
                        : f->classic && f->states[g->state];
}

/* Room for the shard's groups behind those of the shards before. */
static bool grow_list(const struct group_shard *s, struct group_call *c)
{
    struct list_groups_response *out = c->out;
    int32_t n = out->groups.n + (int32_t)s->groups.n;
    struct list_groups_response_group *v = list_groups_response_group_new(c->arena, n);
    if (!v)
        return false;
    if (out->groups.n > 0)
        memcpy(v, out->groups.v, (size_t)out->groups.n * sizeof(*v));
    out->groups.v = v;
    return true;
}

static void list_run(struct group_shard *s, struct group_call *c)
{
    const struct list_groups_request *in = c->in;
    struct list_groups_response *out = c->out;
    if (!s->active) {
        out->error_code = KERR_COORDINATOR_NOT_AVAILABLE;
        return;
    }
    if (s->loading_n > 0)
        out->error_code = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    if (!grow_list(s, c))
        return;
    struct list_filter filter = read_filter(in);
    hmap_each (n, &s->groups) {
        const struct group *g = hmap_entry(n, struct group, node);
        if (!is_asked_for(&filter, g))
            continue;
        struct list_groups_response_group *to = &out->groups.v[out->groups.n++];
        to->group_id = arena_str(c->arena, g->id);
        to->protocol_type = arena_str(c->arena, group_protocol_type(g));
        to->group_state = str_of(g->consumers ? cgroup_state_name(cgroup_state(g->consumers))
                                              : group_state_name(g->state));
        to->group_type = str_of(g->consumers ? "consumer" : "classic");
    }
}

/* ---- the table ---- */

static const struct api_row {
    /* For one group: */
    struct str (*id)(const struct group_call *c);
    void (*run)(struct group_shard *s, struct group_call *c, int32_t partition);
    void (*refuse)(struct group_call *c, enum kerr e);
    bool empty_id; /* the group "" is one like any other */
    /* Or for a list: */
    void (*run_list)(struct group_shard *s, struct group_call *c);
} rows[GROUP_APIS] = {
    [GROUP_JOIN] = {join_id, join_run, join_refuse, false, NULL},
    [GROUP_SYNC] = {sync_id, sync_run, sync_refuse, false, NULL},
    [GROUP_HEARTBEAT] = {heartbeat_id, heartbeat_run, heartbeat_refuse, false, NULL},
    [GROUP_LEAVE] = {leave_id, leave_run, leave_refuse, false, NULL},
    [GROUP_COMMIT] = {group_commit_id, group_commit_run, group_commit_refuse, true, NULL},
    [GROUP_TXN_COMMIT] = {group_txn_commit_id, group_txn_commit_run, group_txn_commit_refuse, false,
                          NULL},
    [GROUP_OFFSET_DELETE] = {group_offset_delete_id, group_offset_delete_run,
                             group_offset_delete_refuse, false, NULL},
    [GROUP_CONSUMER_HEARTBEAT] = {consumer_heartbeat_id, consumer_heartbeat_run,
                                  consumer_heartbeat_refuse, true, NULL},
    [GROUP_CONSUMER_DESCRIBE] = {.run_list = consumer_describe_run},
    [GROUP_FETCH] = {.run_list = group_fetch_run},
    [GROUP_LIST] = {.run_list = list_run},
    [GROUP_DESCRIBE] = {.run_list = describe_run},
    [GROUP_DELETE] = {.run_list = delete_run},
};

bool group_call_single(const struct group_call *c, struct str *id)
{
    const struct api_row *row = &rows[c->api];
    if (row->id)
        *id = row->id(c);
    return row->id != NULL;
}

void group_call_refuse(struct group_call *c, enum kerr e)
{
    rows[c->api].refuse(c, e);
}

void group_shard_handle(struct group_shard *s, struct group_call *c)
{
    const struct api_row *row = &rows[c->api];
    int32_t partition;
    if (row->run_list) {
        row->run_list(s, c);
        return;
    }
    enum kerr e = group_admit(s, row->id(c), row->empty_id, &partition);
    if (e == KERR_NONE)
        row->run(s, c, partition);
    else
        row->refuse(c, e);
}
