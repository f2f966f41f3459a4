/* sim_member_modern.c - the protocol of KIP-848: a member says in heartbeats what it reads and what
 * it has; the broker says what it shall have. What it shall not have any more it gives up, after a
 * last commit, before it says so; then another is given it.
 *
 * NAMES  in version 1 it makes its id itself, and keeps it when it is fenced; in version 0 the
 *        broker does. A static one goes for a while (-2), or for good (-1).
 * ALL    after an answer that was lost it says all, to hear all; and now and then, since a
 *        heartbeat whose answer was lost may take effect behind the next one. */
#include <stdio.h>
#include <string.h>

#include "protocol/msg/consumer_group_heartbeat.h"
#include "sim_member.h"
#include "sim_model.h"

typedef struct consumer_group_heartbeat_request request;
typedef struct consumer_group_heartbeat_response response;

/* What a request points to. */
struct words {
    struct str topic;
    struct consumer_group_heartbeat_request_topic_partition own;
    int32_t partitions[PARTITIONS_MAX];
};

static void fill(struct member *m, request *req, struct words *w)
{
    bool joins = m->generation == 0, all = joins || m->says_all || sim_chance(0.2);
    consumer_group_heartbeat_request_init(req);
    req->group_id = str_of(m->g->name);
    req->member_id = str_of(m->id);
    req->member_epoch = m->generation;
    req->instance_id = member_instance(m);
    req->rebalance_timeout_ms = all ? REBALANCE_MS : -1;
    w->topic = str_of(m->g->topic->name);
    req->subscribed_topic_names.v = &w->topic;
    req->subscribed_topic_names.n = all ? 1 : -1;
    consumer_group_heartbeat_request_topic_partition_init(&w->own);
    w->own.topic_id = sim_model_topic_id(m->g->topic->name);
    for (int i = 0; i < m->n; i++)
        w->partitions[i] = m->own[i].partition;
    w->own.partitions.v = w->partitions;
    w->own.partitions.n = m->n;
    req->topic_partitions.v = &w->own;
    req->topic_partitions.n = all || m->moved ? m->n > 0 : -1;
}

static bool is_given(const struct consumer_group_heartbeat_response_assignment *v, struct uuid id,
                     int32_t partition)
{
    for (int32_t t = 0; t < v->topic_partitions.n; t++)
        for (int32_t i = 0; i < v->topic_partitions.v[t].partitions.n; i++)
            if (uuid_eq(v->topic_partitions.v[t].topic_id, id) &&
                v->topic_partitions.v[t].partitions.v[i] == partition)
                return true;
    return false;
}

static bool has(const struct member *m, int32_t partition)
{
    for (int i = 0; i < m->n; i++)
        if (m->own[i].partition == partition)
            return true;
    return false;
}

static void take(struct member *m, const struct consumer_group_heartbeat_response_assignment *v)
{
    struct uuid id = sim_model_topic_id(m->g->topic->name);
    int given = 0;
    for (int32_t t = 0; t < v->topic_partitions.n; t++)
        given += v->topic_partitions.v[t].partitions.n;
    for (int i = 0; i < m->n; i++) {
        m->own[i].leaving = !is_given(v, id, m->own[i].partition);
        if (m->own[i].leaving)
            m->beat = 0; /* soon */
    }
    for (int32_t p = 0; p < PARTITIONS_MAX; p++) {
        if (!is_given(v, id, p))
            continue;
        given--;
        if (!has(m, p)) {
            member_gain(m, p);
            m->moved = true;
        }
    }
    if (given != 0)
        sim_violation("G5: group %s: member %d is given what does not exist, or twice", m->g->name,
                      m->number);
}

static void take_answer(struct member *m, const response *r)
{
    if (m->generation > 0 && r->member_epoch < m->generation)
        sim_violation("G6: group %s: member %d was in epoch %d, and is told %d", m->g->name,
                      m->number, m->generation, r->member_epoch);
    snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(r->member_id));
    /* a group that was without members, and another kind in between, counts from 1 again */
    if (m->generation == 0 && str_eqz(r->member_id, m->late.id) &&
        r->member_epoch <= m->late.generation)
        m->late.generation = 0;
    bool says = r->assignment || r->member_epoch != m->generation;
    m->generation = r->member_epoch;
    if (r->assignment)
        take(m, r->assignment);
    member_goes_on(m);
    for (int i = 0; says && i < m->n; i++)
        sim_say("%s: member %d has partition %d in epoch %d%s", m->g->name, m->number,
                m->own[i].partition, m->generation, m->own[i].leaving ? ", to be given up" : "");
    if (says && m->n == 0)
        sim_say("%s: member %d has nothing in epoch %d", m->g->name, m->number, m->generation);
}

static int beat(struct member *m)
{
    request req;
    struct words w;
    const void *answer;
    struct arena a;
    fill(m, &req, &w);
    bool said = req.topic_partitions.n >= 0;
    arena_init(&a, 0);
    m->beat = sim_now();
    int rc = member_ask(m, API_CONSUMER_GROUP_HEARTBEAT, m->version, &req, &a, &answer);
    const response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    if (code == 0 && !m->in_force)
        code = -1;
    if (code == 0) {
        m->says_all = false;
        m->moved &= !said;
        take_answer(m, r);
    }
    arena_free(&a);
    return code;
}

void modern_leave(struct member *m)
{
    request req;
    const void *answer;
    struct arena a;
    consumer_group_heartbeat_request_init(&req);
    req.group_id = str_of(m->g->name);
    req.member_id = str_of(m->id);
    req.instance_id = member_instance(m);
    req.member_epoch = *m->instance && sim_chance(0.5) ? -2 : -1;
    req.subscribed_topic_names.n = req.topic_partitions.n = -1;
    arena_init(&a, 0);
    (void)client_call(m->c, m->coordinator, API_CONSUMER_GROUP_HEARTBEAT, m->version, &req, &a,
                      &answer);
    arena_free(&a);
}

/* What it shall not have: from now on it has not. */
static void let_go(struct member *m)
{
    for (int i = m->n; i-- > 0;)
        if (m->own[i].leaving) {
            member_lose(m, i);
            m->moved = true;
        }
}

/* A commit that was refused because the epoch has changed meanwhile, or that of one who is no
 * member any more: the next heartbeat tells. */
static int commit_failed(struct member *m, int code)
{
    if (code != KERR_STALE_MEMBER_EPOCH && code != KERR_UNKNOWN_MEMBER_ID &&
        code != KERR_GROUP_ID_NOT_FOUND && code != KERR_ILLEGAL_GENERATION)
        return code;
    m->beat = 0;
    return 0;
}

static void name_itself(struct member *m)
{
    if (m->version > 0 && *m->id == '\0')
        snprintf(m->id, sizeof(m->id), "m%016llx", (unsigned long long)sim_random());
}

int modern_life(struct member *m)
{
    name_itself(m);
    let_go(m);
    int code = beat(m);
    while (code == 0 && !m->g->over) {
        code = member_find_positions(m);
        if (code == 0)
            code = commit_failed(m, member_turn(m));
        if (code == 0 && sim_now() - m->beat > SIM_S) {
            if (sim_chance(
                    0.6)) /* else it is busy with what it has in hand, and says that it lives */
                let_go(m);
            code = beat(m);
        }
        member_rest(m, code);
    }
    return code;
}
