/* sim_member.c - members of groups: they join, share topic 0 out, process records, commit, and
 * beat; and they crash, leave, or stand still beyond the end of their sessions. What coordinators
 * tell them goes into the group's history (G2 to G4).
 *
 * END  once the work is over nobody crashes any more; a member is settled when it owns what it owns
 *      in a generation with all others, and has committed all that there is. When all are, they
 * end; a group that never settles is a violation of L1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/offset_commit.h"
#include "protocol/msg/sync_group.h"
#include "sim_broker.h"
#include "sim_history.h"
#include "sim_model.h"
#include "sim_work_private.h"

enum { SESSION_MS = 6000, REBALANCE_MS = 4000, TEXT = 128 };
enum { GONE = -2 }; /* it crashed, or left */

/* What it would commit of a generation that is over. */
struct late {
    char id[96];
    int32_t generation; /* 0: nothing */
    uint64_t token;
    int32_t partition;
    int64_t at;
};

struct member {
    struct membership *g;
    struct client *c;
    int number;
    char id[96], instance[32];
    int coordinator; /* -1 unknown */
    /* Of its generation. */
    int32_t generation;
    uint64_t token;
    bool leads;
    int shared; /* partitions that were shared out */
    int32_t own[PARTITIONS_MAX];
    int64_t at[PARTITIONS_MAX], committed[PARTITIONS_MAX];
    int n;
    int64_t beat;
    bool settled;
    struct late late;
};

struct membership {
    char name[32];
    struct topic *topic;
    struct history *history;
    struct member members[MEMBERS_MAX];
    int n, running;
    bool over;
};

struct membership *membership_new(const char *group, int members, bool fixed)
{
    struct membership *g = calloc(1, sizeof(*g));
    snprintf(g->name, sizeof(g->name), "%s", group);
    g->topic = &work.topics[0]; /* never deleted */
    g->history = history_new(group);
    g->n = g->running = members;
    for (int i = 0; i < members; i++) {
        struct member *m = &g->members[i];
        *m = (struct member){.g = g, .number = i, .coordinator = -1, .generation = -1};
        if (fixed)
            snprintf(m->instance, sizeof(m->instance), "fixed%d", i);
    }
    return g;
}

struct member *membership_member(struct membership *g, int number)
{
    return &g->members[number];
}

static struct str instance_of(const struct member *m)
{
    return *m->instance ? str_of(m->instance) : STR_NULL;
}

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
}

/* ---- joining ---- */

struct plan { /* a text for each member: the token, all partitions there are, its own */
    struct sync_group_request_assignment v[16];
    char texts[16][TEXT], ids[16][96];
    int n;
};

static void share_out(struct member *m, const struct join_group_response *r, struct plan *plan)
{
    uint64_t token = sim_random();
    if (r->members.n > 16)
        sim_violation("G2: group %s has %d members", m->g->name, r->members.n);
    int all = m->g->topic->partitions;
    plan->n = r->members.n;
    for (int i = 0; i < plan->n; i++) {
        int len = snprintf(plan->texts[i], TEXT, "%llx %d", (unsigned long long)token, all);
        for (int p = i; p < all; p += plan->n)
            len += snprintf(plan->texts[i] + len, (size_t)(TEXT - len), " %d", p);
        snprintf(plan->ids[i], sizeof(plan->ids[i]), "%.*s", STR_ARG(r->members.v[i].member_id));
        sync_group_request_assignment_init(&plan->v[i]);
        plan->v[i].member_id = str_of(plan->ids[i]);
        plan->v[i].assignment = bytes_of(plan->texts[i]);
    }
}

static int join(struct member *m, struct plan *plan)
{
    struct join_group_request req;
    struct join_group_request_protocol protocol;
    const void *answer;
    struct arena a;
    join_group_request_init(&req);
    join_group_request_protocol_init(&protocol);
    req.group_id = str_of(m->g->name);
    req.member_id = str_of(m->id);
    req.group_instance_id = instance_of(m);
    req.session_timeout_ms = SESSION_MS;
    req.rebalance_timeout_ms = REBALANCE_MS;
    req.protocol_type = str_of("consumer");
    protocol.name = str_of("in turn");
    protocol.metadata = bytes_of("t0");
    req.protocols.v = &protocol;
    req.protocols.n = 1;
    arena_init(&a, 0);
    int rc = client_call(m->c, m->coordinator, API_JOIN_GROUP, -1, &req, &a, &answer);
    const struct join_group_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    plan->n = 0;
    if (code == KERR_NONE || code == KERR_MEMBER_ID_REQUIRED)
        snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(r->member_id));
    if (code == KERR_NONE) {
        m->generation = r->generation_id;
        m->leads = str_eq(r->leader, r->member_id);
        if (m->leads && !r->skip_assignment)
            share_out(m, r, plan);
    }
    arena_free(&a);
    return code;
}

static void take(struct member *m, struct bytes assignment)
{
    char text[TEXT], *at = text;
    snprintf(text, sizeof(text), "%.*s", (int)assignment.len, (const char *)assignment.p);
    m->token = strtoull(at, &at, 16);
    m->shared = (int)strtol(at, &at, 10);
    for (m->n = 0; *at == ' ' && m->n < PARTITIONS_MAX; m->n++)
        m->own[m->n] = (int32_t)strtol(at, &at, 10);
    sim_say("%s: member %d has %s in generation %d", m->g->name, m->number, text, m->generation);
    history_own(m->g->history, m->generation, m->token, m->number, m->own, m->n);
    work.counts.generations += m->leads;
}

static int sync_up(struct member *m, struct plan *plan)
{
    struct sync_group_request req;
    const void *answer;
    struct arena a;
    sync_group_request_init(&req);
    req.group_id = str_of(m->g->name);
    req.generation_id = m->generation;
    req.member_id = str_of(m->id);
    req.group_instance_id = instance_of(m);
    req.protocol_type = str_of("consumer");
    req.protocol_name = str_of("in turn");
    req.assignments.v = plan->v;
    req.assignments.n = plan->n;
    arena_init(&a, 0);
    int rc = client_call(m->c, m->coordinator, API_SYNC_GROUP, -1, &req, &a, &answer);
    const struct sync_group_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    m->n = 0;
    if (code == KERR_NONE && r->assignment.len <= 0) /* not in the plan: it came later */
        code = KERR_REBALANCE_IN_PROGRESS;
    else if (code == KERR_NONE)
        take(m, r->assignment);
    arena_free(&a);
    return code;
}

/* ---- in a generation ---- */

static int find_positions(struct member *m)
{
    int code = m->n ? work_committed(m->c, m->coordinator, m->g->name, m->g->topic->name, m->own,
                                     m->n, false, m->at)
                    : 0;
    for (int i = 0; code == 0 && i < m->n; i++) {
        history_found(m->g->history, m->generation, m->own[i], m->at[i]);
        m->committed[i] = m->at[i];
        if (m->at[i] < 0)
            m->at[i] = 0;
    }
    return code;
}

static void process(struct member *m)
{
    const struct topic *t = m->g->topic;
    for (int i = 0; i < m->n; i++) {
        int code = 0, leader = client_leader(m->c, t->name, m->own[i], false);
        int64_t next = m->at[i];
        if (leader > 0)
            next = work_fetch(m->c, leader, t, m->own[i], m->at[i], &code);
        if (leader < 0 || code)
            client_leader(m->c, t->name, m->own[i], true);
        history_processed(m->g->history, m->own[i], m->at[i], next);
        m->at[i] = next;
    }
}

/* Not taken, for good; other errors may come after it was written. */
static bool is_refused(int code)
{
    return code == KERR_UNKNOWN_MEMBER_ID || code == KERR_ILLEGAL_GENERATION ||
           code == KERR_FENCED_INSTANCE_ID || code == KERR_REBALANCE_IN_PROGRESS;
}

/* The error for each partition; -1 without an answer. */
static void send_commit(struct member *m, const char *id, int32_t generation, const int32_t *own,
                        const int64_t *at, int n, int *codes)
{
    struct offset_commit_request req;
    struct offset_commit_request_topic t;
    struct offset_commit_request_partition p[PARTITIONS_MAX];
    const void *answer;
    struct arena a;
    offset_commit_request_init(&req);
    offset_commit_request_topic_init(&t);
    req.group_id = str_of(m->g->name);
    req.member_id = str_of(id);
    req.group_instance_id = instance_of(m);
    req.generation_id_or_member_epoch = generation;
    for (int i = 0; i < n; i++) {
        offset_commit_request_partition_init(&p[i]);
        p[i].partition_index = own[i];
        p[i].committed_offset = at[i];
    }
    t.name = str_of(m->g->topic->name);
    t.partitions.v = p;
    t.partitions.n = n;
    req.topics.v = &t;
    req.topics.n = 1;
    arena_init(&a, 0);
    int rc = client_call(m->c, m->coordinator, API_OFFSET_COMMIT, 8, &req, &a, &answer);
    const struct offset_commit_response *r = answer;
    for (int i = 0; i < n; i++)
        codes[i] = rc == 0 ? r->topics.v[0].partitions.v[i].error_code : -1;
    arena_free(&a);
}

/* One of the errors, if there are. */
static int commit(struct member *m)
{
    struct history *h = m->g->history;
    int codes[PARTITIONS_MAX], worst = 0;
    int32_t latest = history_latest(h);
    if (m->n == 0)
        return 0;
    send_commit(m, m->id, m->generation, m->own, m->at, m->n, codes);
    for (int i = 0; i < m->n; i++) {
        if (codes[i] == KERR_NONE) {
            history_committed(h, m->generation, m->token, m->own[i], m->at[i], latest);
            m->committed[i] = m->at[i];
            work.counts.commits++;
            continue;
        }
        if (!is_refused(codes[i]))
            history_doubtful(h, m->generation, m->token, m->own[i], m->at[i]);
        worst = codes[i];
    }
    return worst;
}

/* What was on its way when the generation ended: it comes behind what this one has committed. */
static void commit_late(struct member *m)
{
    struct late *l = &m->late;
    int code;
    int32_t latest = history_latest(m->g->history);
    if (l->generation <= 0 || l->generation >= latest || !sim_chance(0.2))
        return;
    send_commit(m, l->id, l->generation, &l->partition, &l->at, 1, &code);
    if (code == KERR_NONE)
        history_committed(m->g->history, l->generation, l->token, l->partition, l->at, latest);
    l->generation = 0;
}

static void keep_late(struct member *m)
{
    m->late = (struct late){.generation = m->n ? m->generation : 0,
                            .token = m->token,
                            .partition = m->own[0],
                            .at = m->at[0]};
    memcpy(m->late.id, m->id, sizeof(m->id));
}

static int beat(struct member *m)
{
    struct heartbeat_request req;
    const void *answer;
    struct arena a;
    heartbeat_request_init(&req);
    req.group_id = str_of(m->g->name);
    req.generation_id = m->generation;
    req.member_id = str_of(m->id);
    req.group_instance_id = instance_of(m);
    arena_init(&a, 0);
    int rc = client_call(m->c, m->coordinator, API_HEARTBEAT, -1, &req, &a, &answer);
    const struct heartbeat_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    arena_free(&a);
    m->beat = sim_now();
    return code;
}

static void leave(struct member *m)
{
    struct leave_group_request req;
    struct leave_group_request_member who;
    const void *answer;
    struct arena a;
    leave_group_request_init(&req);
    leave_group_request_member_init(&who);
    req.group_id = str_of(m->g->name);
    req.member_id = who.member_id = str_of(m->id);
    who.group_instance_id = instance_of(m);
    req.members.v = &who;
    req.members.n = 1;
    arena_init(&a, 0);
    (void)client_call(m->c, m->coordinator, API_LEAVE_GROUP, -1, &req, &a, &answer);
    arena_free(&a);
}

/* Crashes, leaves, stands still; GONE: it is another one now. */
static int mood(struct member *m)
{
    if (work.ending || !sim_chance(0.02))
        return 0;
    uint64_t what = sim_below(3);
    sim_say("%s: member %d %s", m->g->name, m->number,
            what == 0   ? "stands still"
            : what == 1 ? "crashes"
                        : "leaves");
    if (what == 2)
        leave(m);
    fiber_sleep(sim_between(0, what == 0 ? 12000 : 6000) * SIM_MS);
    if (what == 0)
        return 0;
    m->id[0] = '\0';
    return GONE;
}

/* ---- the end ---- */

static bool has_settled(const struct member *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->committed[i] != sim_model_end(m->g->topic->name, m->own[i]))
            return false;
    return work.ending;
}

static bool all_settled(const struct membership *g)
{
    int partitions = 0;
    for (int i = 0; i < g->n; i++) {
        const struct member *m = &g->members[i];
        if (!m->settled || m->token != g->members[0].token)
            return false;
        partitions += m->n;
    }
    return partitions == g->topic->partitions;
}

static int generation(struct member *m)
{
    int code = find_positions(m);
    while (code == 0 && !m->g->over) {
        process(m);
        code = mood(m);
        if (code == 0 && sim_chance(0.7))
            code = commit(m);
        if (code == 0)
            commit_late(m);
        if (code == KERR_REQUEST_TIMED_OUT) /* not replicated in time: another one will be */
            code = 0;
        if (code == 0 && sim_now() - m->beat > SIM_S)
            code = beat(m);
        if (code == 0 && m->leads && m->shared != m->g->topic->partitions)
            code = KERR_REBALANCE_IN_PROGRESS; /* there are more to share out */
        m->settled = code == 0 && has_settled(m);
        m->g->over |= all_settled(m->g);
        fiber_sleep(sim_between(20, 400) * SIM_MS);
    }
    m->settled = false;
    if (m->late.generation <= 0)
        keep_late(m);
    return code;
}

/* What an error means for the next try. */
static void take_note(struct member *m, int code)
{
    switch (code) {
    case KERR_NONE:
    case KERR_MEMBER_ID_REQUIRED:
    case KERR_REBALANCE_IN_PROGRESS:
    case KERR_ILLEGAL_GENERATION:
    case GONE:
        break;
    case KERR_UNKNOWN_MEMBER_ID:
    case KERR_FENCED_INSTANCE_ID:
        m->id[0] = '\0';
        break;
    case -1:
    case KERR_NOT_COORDINATOR:
    case KERR_COORDINATOR_NOT_AVAILABLE:
    case KERR_COORDINATOR_LOAD_IN_PROGRESS:
        m->coordinator = -1;
        break;
    default:
        if (!work_is_retriable(code))
            sim_violation("G2: member %d of group %s is told %s", m->number, m->g->name,
                          kerr_name((enum kerr)code));
        m->coordinator = -1;
    }
}

/* By the last one: what is committed. */
static void judge(struct member *m)
{
    int64_t at[PARTITIONS_MAX];
    int32_t all[PARTITIONS_MAX];
    struct membership *g = m->g;
    for (int i = 0; i < PARTITIONS_MAX; i++)
        all[i] = i;
    do {
        m->coordinator = work_coordinator(m->c, g->name);
        if (m->coordinator < 0)
            work_pause();
    } while (m->coordinator < 0 || work_committed(m->c, m->coordinator, g->name, g->topic->name,
                                                  all, g->topic->partitions, false, at) != 0);
    for (int i = 0; i < g->topic->partitions; i++)
        history_judge(g->history, i, at[i]);
}

void *work_member(void *arg)
{
    struct member *m = arg;
    struct membership *g = m->g;
    char name[48];
    snprintf(name, sizeof(name), "%s-%d", g->name, m->number);
    m->c = client_new(name);
    while (!g->over) {
        struct plan plan;
        if (m->coordinator < 0)
            m->coordinator = work_coordinator(m->c, g->name);
        int code = m->coordinator < 0 ? -1 : g->topic->there ? join(m, &plan) : GONE;
        if (code == 0)
            code = sync_up(m, &plan);
        if (code == 0)
            code = generation(m);
        take_note(m, code);
        if (code != KERR_MEMBER_ID_REQUIRED)
            work_pause();
    }
    if (--g->running == 0)
        judge(m);
    work.running--;
    return NULL;
}
