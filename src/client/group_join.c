/* group_join.c - joining: JoinGroup, the leader's part, SyncGroup. Background thread. */
#include <stdlib.h>
#include <string.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"
#include "client/group.h"
#include "client/lists.h"
#include "protocol/errors.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/sync_group.h"

struct join_call {
    struct group *g;
    uint64_t round;
    struct node *to;
};

static struct join_call *call_new(struct group *g, struct node *to)
{
    struct join_call *call = malloc(sizeof *call);
    if (call)
        *call = (struct join_call){g, g->round, to};
    return call;
}

static void retry_later(struct group *g)
{
    int64_t delay = cluster_backoff_ms(g->c->cluster, g->attempts++);
    g->retry_at_ms = executor_now_ms(cluster_executor(g->c->cluster)) + delay;
}

static bool set_member_id(struct group *g, struct str id)
{
    char *copy = str_dup(id);
    if (!copy)
        return false;
    free(g->member_id);
    g->member_id = copy;
    return true;
}

static bool owns_partitions(struct group *g)
{
    return !list_empty(&g->c->parts);
}

/* What JoinGroup and SyncGroup errors have in common. */
static void on_join_error(struct group *g, kafka_err_t err, const char *what)
{
    switch (err) {
    case KERR_UNKNOWN_MEMBER_ID:
    case KERR_ILLEGAL_GENERATION: /* what is still owned is lost; poll has to say so first */
        client_log(1, "group %s: %s: %s, joining anew", g->id, what, kafka_err_name(err));
        group_reset(g, err == KERR_ILLEGAL_GENERATION);
        if (!owns_partitions(g))
            group_set_state(g, GROUP_JOINING);
        break;
    case KERR_REBALANCE_IN_PROGRESS:
        if (g->state != GROUP_JOINING)
            group_set_state(g, GROUP_JOINING);
        break;
    default:
        if (err > 0 && !kafka_err_is_retriable(err)) {
            group_reset(g, false);
            group_fail(g, err, what);
            break;
        }
        retry_later(g);
        if (g->state != GROUP_JOINING)
            group_set_state(g, GROUP_JOINING);
    }
}

/* Ends the call: *current tells whether its answer still counts. Lock taken; the coordinator that
 * failed is forgotten first. */
static struct group *begin_answer(void *arg, kafka_err_t err, bool *current)
{
    struct join_call call = *(struct join_call *)arg;
    struct group *g = call.g;
    free(arg);
    if (coordinator_is_stale(err) && g->coordinator.node == call.to)
        coordinator_forget(&g->coordinator);
    pthread_mutex_lock(&g->c->lock);
    g->joining = false;
    *current = call.round == g->round && !g->closing;
    return g;
}

static void end_answer(struct group *g)
{
    group_run(g);
    pthread_mutex_unlock(&g->c->lock);
}

/* ---- SyncGroup ---- */

static void tell_assignor(struct group *g, const kafka_topic_partition_t *tps, size_t n,
                          struct bytes user_data)
{
    const kafka_assignor_t *a = g->chosen;
    if (a->on_assigned)
        a->on_assigned(tps, n, user_data.len < 0 ? NULL : user_data.p,
                       user_data.len < 0 ? 0 : (size_t)user_data.len, g->generation, a->arg);
    kafka_partition_list_free(g->had);
    g->had = partition_list_copy(tps, n);
    g->had_generation = g->generation;
}

static void on_assigned(struct group *g, struct bytes bytes)
{
    struct arena mem;
    kafka_topic_partition_t *tps;
    size_t n;
    struct bytes user_data;
    arena_init(&mem, 0);
    if (!assignment_decode(bytes, &mem, &tps, &n, &user_data)) {
        group_reset(g, true);
        group_fail(g, KAFKA_ERR_BAD_RESPONSE, "reading the assignment");
    } else {
        if (n)
            qsort(tps, n, sizeof *tps, topic_partition_cmp);
        kafka_partition_list_free(g->next);
        g->next = partition_list_copy(tps, n);
        tell_assignor(g, tps, n, user_data);
        g->attempts = 0;
        g->beat_ok_ms = executor_now_ms(cluster_executor(g->c->cluster));
        g->beat_due_ms = g->beat_ok_ms + g->heartbeat_ms;
        group_set_state(g, GROUP_ASSIGNED);
        pthread_cond_broadcast(&g->c->news);
    }
    arena_free(&mem);
}

static void on_synced(void *arg, int status, int version, const void *response)
{
    const struct sync_group_response *m = response;
    kafka_err_t err = status == 0 ? m->error_code : client_err_of_status(status);
    bool current;
    struct group *g = begin_answer(arg, err, &current);
    if (current && err == KAFKA_OK)
        on_assigned(g, m->assignment);
    else if (current)
        on_join_error(g, err, "SyncGroup");
    end_answer(g);
}

/* The leader's with everybody's part, the others' empty. */
static void send_sync(struct group *g)
{
    struct arena mem;
    struct sync_group_request req;
    struct node *n = coordinator_node(&g->coordinator);
    struct join_call *call = call_new(g, n);
    kafka_err_t err = call ? KAFKA_OK : KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    sync_group_request_init(&req);
    req.group_id = str_of(g->id);
    req.generation_id = g->generation;
    req.member_id = str_of(g->member_id);
    req.group_instance_id = str_of(g->instance_id);
    req.protocol_type = STR_LIT("consumer");
    req.protocol_name = str_of(g->chosen->name);
    if (err == KAFKA_OK && g->leading.members)
        err = group_fill_assignments(g, &mem, &req);
    if (err != KAFKA_OK) {
        group_reset(g, true);
        group_fail(g, err, "assigning partitions");
    } else if (!n) {
        on_join_error(g, KAFKA_ERR_TRANSPORT, "SyncGroup"); /* lost since; join again */
    } else {
        group_set_state(g, GROUP_SYNCING);
        int64_t timeout = g->max_poll_ms + 5000, least = cluster_request_timeout(g->c->cluster);
        g->joining = node_send(n, API_SYNC_GROUP, g->instance_id ? 3 : 0, -1, &req,
                               timeout > least ? timeout : least, true, on_synced, call) == 0;
        if (g->joining)
            call = NULL;
        else
            on_join_error(g, KAFKA_ERR_NO_MEMORY, "SyncGroup");
    }
    free(call);
    arena_free(&mem);
}

void group_try_assign(struct group *g)
{
    if (group_topics_known(g))
        send_sync(g);
}

/* ---- JoinGroup ---- */

static const kafka_assignor_t *find_chosen(struct group *g, struct str name)
{
    for (size_t i = 0; i < g->assignors_n; i++)
        if (str_eqz(name, g->assignors[i].name))
            return &g->assignors[i];
    return NULL;
}

static void on_joined_as(struct group *g, const struct join_group_response *m)
{
    g->chosen = find_chosen(g, m->protocol_name);
    if (!g->chosen || !set_member_id(g, m->member_id)) {
        group_fail(g, g->chosen ? KAFKA_ERR_NO_MEMORY : KERR_INCONSISTENT_GROUP_PROTOCOL,
                   "JoinGroup");
        group_reset(g, true);
        return;
    }
    g->generation = m->generation_id;
    g->leader = str_eq(m->leader, m->member_id);
    arena_reset(&g->leading.mem);
    g->leading.members = NULL;
    if (!g->leader) {
        send_sync(g);
    } else if (!group_begin_leading(g, m)) {
        group_reset(g, true);
        group_fail(g, KAFKA_ERR_BAD_RESPONSE, "reading the members' subscriptions");
    } else {
        group_set_state(g, GROUP_ASSIGNING);
        group_try_assign(g);
    }
}

/* A membership that nobody waits for any more: left, so that the group need not wait for its
 * session to end. */
static void leave_stray(struct group *g, struct str member_id)
{
    char *current = g->member_id;
    g->member_id = str_dup(member_id);
    if (g->member_id && strcmp(g->member_id, current) != 0)
        group_leave(g, "the consumer has unsubscribed");
    free(g->member_id);
    g->member_id = current;
}

static void on_joined(void *arg, int status, int version, const void *response)
{
    const struct join_group_response *m = response;
    kafka_err_t err = status == 0 ? m->error_code : client_err_of_status(status);
    bool current;
    struct group *g = begin_answer(arg, err, &current);
    if (!current) {
        if (err == KAFKA_OK && !g->closing)
            leave_stray(g, m->member_id);
    } else if (err == KAFKA_OK) {
        on_joined_as(g, m);
    } else if (err == KERR_MEMBER_ID_REQUIRED && set_member_id(g, m->member_id)) {
        g->retry_at_ms = 0; /* at once, with that id */
    } else if (err == KERR_UNKNOWN_MEMBER_ID && g->member_id[0] == 0) {
        retry_later(g);
    } else {
        on_join_error(g, err, "JoinGroup");
    }
    end_answer(g);
}

void group_join(struct group *g)
{
    struct arena mem;
    struct join_group_request req;
    int64_t wait;
    struct node *n = coordinator_node(&g->coordinator);
    if (!n)
        return; /* `changed` comes back here */
    if (!node_ready(n, &wait)) {
        g->retry_at_ms = executor_now_ms(cluster_executor(g->c->cluster)) + wait;
        group_wake(g);
        return;
    }
    arena_init(&mem, 0);
    struct join_call *call = NULL;
    g->round++;
    if (group_fill_join(g, &mem, &req) && (call = call_new(g, n))) {
        int64_t timeout = g->max_poll_ms + 5000, least = cluster_request_timeout(g->c->cluster);
        g->joining = node_send(n, API_JOIN_GROUP, g->instance_id ? 5 : 0, -1, &req,
                               timeout > least ? timeout : least, true, on_joined, call) == 0;
    }
    if (!g->joining) {
        free(call);
        retry_later(g);
        group_wake(g);
    }
    arena_free(&mem);
}
