/* sim_member.c - members of groups: they share topic 0 out, process records, commit, and beat; and
 * they crash, leave, or stand still beyond the end of their sessions. They speak the classic
 * protocol, or that of KIP-848, or, in groups that are being moved from one to the other, now this
 * and now that. What coordinators tell them goes into the group's history (G2 to G4) and tenures
 * (G5 to G7).
 *
 * IN FORCE  a coordinator that was deposed and does not know it yet may say what was true before:
 *           an answer counts as lost when another one coordinates by the store.
 * END       once the work is over nobody crashes any more; a member is settled when it has what it
 *           shall have, in a generation with all others, and has committed all that there is. When
 *           all are, they end; a group that never settles is a violation of L1. */
#include "sim_member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/msg/offset_commit.h"
#include "sim_broker.h"
#include "sim_model.h"

struct membership *membership_new(const char *group, int members, bool fixed, enum group_kind kind)
{
    struct membership *g = calloc(1, sizeof(*g));
    snprintf(g->name, sizeof(g->name), "%s", group);
    g->kind = kind;
    g->topic = &work.topics[0]; /* never deleted */
    g->history = history_new(group);
    g->tenures = tenures_new(group);
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

struct str member_instance(const struct member *m)
{
    return *m->instance ? str_of(m->instance) : STR_NULL;
}

int member_partitions(const struct member *m)
{
    return sim_model_partitions(m->g->topic->name);
}

int member_ask(struct member *m, int16_t api_key, int version, const void *request, struct arena *a,
               const void **answer)
{
    int64_t sent = sim_now();
    int32_t term = work_coordinates(m->g->name, m->coordinator);
    int rc = client_call(m->c, m->coordinator, api_key, version, request, a, answer);
    m->in_force = rc == 0 && term >= 0 && work_coordinates(m->g->name, m->coordinator) == term;
    m->sure_until = m->in_force ? sent + REBALANCE_MS * SIM_MS : 0; /* shorter than its session */
    return rc;
}

/* ---- what it has ---- */

void member_gain(struct member *m, int32_t partition)
{
    if (m->late.share.partition == partition && m->late.generation == m->generation &&
        strcmp(m->late.id, m->id) == 0)
        m->late.generation =
            0; /* it is not over: it joined again, and the generation is the same */
    m->own[m->n++] =
        (struct share){.partition = partition,
                       .at = -1,
                       .committed = -1,
                       .tenure = tenure_begin(m->g->tenures, m->number, partition, m->sure_until)};
    work.counts.tenures++;
}

/* Who has something to give up, and does not in time, loses all. */
void member_goes_on(struct member *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->own[i].leaving)
            return;
    for (int i = 0; i < m->n; i++)
        tenure_goes_on(m->g->tenures, m->number, m->own[i].partition, m->sure_until);
}

void member_lose(struct member *m, int i)
{
    const struct share *s = &m->own[i];
    tenure_end(m->g->tenures, m->number, s->partition);
    if (m->late.generation <= 0 && s->found) {
        m->late = (struct late){
            .modern = m->modern, .generation = m->generation, .token = m->token, .share = *s};
        memcpy(m->late.id, m->id, sizeof(m->id));
    }
    m->own[i] = m->own[--m->n];
}

void member_lose_all(struct member *m)
{
    while (m->n > 0)
        member_lose(m, 0);
}

int member_find_positions(struct member *m)
{
    int32_t new[PARTITIONS_MAX], places[PARTITIONS_MAX];
    int64_t at[PARTITIONS_MAX];
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (!m->own[i].found) {
            places[n] = i;
            new[n++] = m->own[i].partition;
        }
    if (n == 0)
        return 0;
    int32_t term = work_coordinates(m->g->name, m->coordinator);
    int code =
        work_committed(m->c, m->coordinator, m->g->name, m->g->topic->name, new, n, false, at);
    if (code == 0 && (term < 0 || work_coordinates(m->g->name, m->coordinator) != term))
        code = -1;
    for (int i = 0; code == 0 && i < n; i++) {
        struct share *s = &m->own[places[i]];
        if (m->g->kind == GROUP_CLASSIC)
            history_found(m->g->history, m->generation, new[i], at[i]);
        tenure_found(m->g->tenures, new[i], at[i]);
        s->found = true;
        s->committed = at[i];
        s->at = at[i] < 0 ? 0 : at[i];
    }
    return code;
}

static void process(struct member *m)
{
    const struct topic *t = m->g->topic;
    for (int i = 0; i < m->n; i++) {
        struct share *s = &m->own[i];
        int code = 0, leader = client_leader(m->c, t->name, s->partition, false);
        int64_t next = s->at;
        if (leader > 0)
            next = work_fetch(m->c, leader, t, s->partition, s->at, &code);
        if (leader < 0 || code)
            client_leader(m->c, t->name, s->partition, true);
        history_processed(m->g->history, s->partition, s->at, next);
        s->at = next;
    }
}

/* ---- commits ---- */

/* Not taken, for good; other errors may come after it was written. */
static bool is_refused(int code)
{
    return code == KERR_UNKNOWN_MEMBER_ID || code == KERR_ILLEGAL_GENERATION ||
           code == KERR_FENCED_INSTANCE_ID || code == KERR_REBALANCE_IN_PROGRESS ||
           code == KERR_STALE_MEMBER_EPOCH || code == KERR_GROUP_ID_NOT_FOUND;
}

/* The error for each partition; -1 without an answer. */
static void send_commit(struct member *m, const char *id, bool modern, int32_t generation,
                        const struct share *v, int n, int *codes)
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
    req.group_instance_id = member_instance(m);
    req.generation_id_or_member_epoch = generation;
    for (int i = 0; i < n; i++) {
        offset_commit_request_partition_init(&p[i]);
        p[i].partition_index = v[i].partition;
        p[i].committed_offset = v[i].at;
    }
    t.name = str_of(m->g->topic->name);
    t.partitions.v = p;
    t.partitions.n = n;
    req.topics.v = &t;
    req.topics.n = 1;
    arena_init(&a, 0);
    int rc =
        client_call(m->c, m->coordinator, API_OFFSET_COMMIT, modern ? 9 : 8, &req, &a, &answer);
    const struct offset_commit_response *r = answer;
    for (int i = 0; i < n; i++)
        codes[i] = rc == 0 ? r->topics.v[0].partitions.v[i].error_code : -1;
    arena_free(&a);
}

static void note_commit(struct member *m, int32_t generation, uint64_t token,
                        const struct tenure_commit *c, int code, int32_t latest)
{
    bool classic = m->g->kind == GROUP_CLASSIC;
    if (code == KERR_NONE) {
        if (classic)
            history_committed(m->g->history, generation, token, c->partition, c->offset, latest);
        tenure_committed(m->g->tenures, c);
    } else if (!is_refused(code)) {
        if (classic)
            history_doubtful(m->g->history, generation, token, c->partition, c->offset);
        tenure_doubtful(m->g->tenures, c);
    }
}

static struct tenure_commit commit_of(const struct member *m, const struct share *s, int32_t epoch)
{
    return (struct tenure_commit){.member = m->number,
                                  .partition = s->partition,
                                  .epoch = epoch,
                                  .offset = s->at,
                                  .tenure = s->tenure,
                                  .latest_when_sent = tenure_latest(m->g->tenures, s->partition)};
}

/* One of the errors, if there are. */
static int commit(struct member *m)
{
    struct tenure_commit said[PARTITIONS_MAX];
    int codes[PARTITIONS_MAX], worst = 0;
    int32_t latest = history_latest(m->g->history);
    if (m->n == 0)
        return 0;
    for (int i = 0; i < m->n; i++)
        said[i] = commit_of(m, &m->own[i], m->generation);
    send_commit(m, m->id, m->modern, m->generation, m->own, m->n, codes);
    for (int i = 0; i < m->n; i++) {
        note_commit(m, m->generation, m->token, &said[i], codes[i], latest);
        if (codes[i] != KERR_NONE) {
            worst = codes[i];
            continue;
        }
        m->own[i].committed = m->own[i].at;
        work.counts.commits++;
    }
    return worst;
}

/* What was on its way when its time ended: it comes behind what others have committed. */
static void commit_late(struct member *m)
{
    struct late *l = &m->late;
    int code;
    int32_t latest = history_latest(m->g->history);
    bool classic = m->g->kind == GROUP_CLASSIC;
    if (l->generation <= 0 || (classic && l->generation >= latest) || !sim_chance(0.2))
        return;
    struct tenure_commit c = commit_of(m, &l->share, l->generation);
    c.over = l->modern && m->modern && strcmp(l->id, m->id) == 0 && l->generation < m->generation;
    send_commit(m, l->id, l->modern, l->generation, &l->share, 1, &code);
    if (code == KERR_NONE)
        note_commit(m, l->generation, l->token, &c, code, latest);
    work.counts.late++;
    l->generation = 0;
}

/* ---- moods ---- */

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
    if (what != 0)
        member_lose_all(m);
    if (what == 2)
        m->modern ? modern_leave(m) : classic_leave(m);
    fiber_sleep(sim_between(0, what == 0 ? 12000 : 6000) * SIM_MS);
    return what == 0 ? 0 : GONE;
}

int member_turn(struct member *m)
{
    process(m);
    int code = mood(m);
    if (code == 0 && sim_chance(0.7))
        code = commit(m);
    if (code == 0)
        commit_late(m);
    return code == KERR_REQUEST_TIMED_OUT ? 0 /* not replicated in time: another one will be */
                                          : code;
}

/* ---- the end ---- */

static bool has_settled(const struct member *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->own[i].leaving ||
            m->own[i].committed != sim_model_end(m->g->topic->name, m->own[i].partition))
            return false;
    return work.ending;
}

static bool all_settled(const struct membership *g)
{
    int partitions = 0;
    for (int i = 0; i < g->n; i++) {
        const struct member *m = &g->members[i];
        if (!m->settled || m->generation != g->members[0].generation)
            return false;
        if (g->kind == GROUP_CLASSIC && m->token != g->members[0].token)
            return false;
        partitions += m->n;
    }
    return partitions == member_partitions(&g->members[0]);
}

void member_rest(struct member *m, int code)
{
    m->settled = code == 0 && has_settled(m);
    m->g->over |= all_settled(m->g);
    fiber_sleep(sim_between(20, 400) * SIM_MS);
}

/* By the last one: what is committed. */
static void judge(struct member *m)
{
    int64_t at[PARTITIONS_MAX];
    int32_t all[PARTITIONS_MAX];
    struct membership *g = m->g;
    int partitions = member_partitions(m);
    for (int i = 0; i < PARTITIONS_MAX; i++)
        all[i] = i;
    do {
        m->coordinator = work_coordinator(m->c, g->name);
        if (m->coordinator < 0)
            work_pause();
    } while (m->coordinator < 0 || work_committed(m->c, m->coordinator, g->name, g->topic->name,
                                                  all, partitions, false, at) != 0);
    for (int i = 0; i < partitions; i++) {
        history_judge(g->history, i, at[i]);
        tenure_judge(g->tenures, i, at[i]);
    }
}

/* ---- lives ---- */

static void forget_self(struct member *m)
{
    member_lose_all(m);
    m->id[0] = '\0';
    m->generation = m->modern ? 0 : -1;
}

/* What an error means for the next try. */
static void take_note(struct member *m, int code)
{
    m->settled = false;
    m->says_all = true;
    switch (code) {
    case KERR_NONE:
    case KERR_MEMBER_ID_REQUIRED:
    case KERR_REBALANCE_IN_PROGRESS:
    case KERR_ILLEGAL_GENERATION:
    case KERR_UNRELEASED_INSTANCE_ID:
        break;
    case KERR_FENCED_MEMBER_EPOCH: /* it has the same name in its next try */
    case KERR_GROUP_ID_NOT_FOUND:
        member_lose_all(m);
        m->generation = 0;
        break;
    case GONE:
    case KERR_UNKNOWN_MEMBER_ID:
    case KERR_FENCED_INSTANCE_ID:
        forget_self(m);
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

/* What it speaks from now on. */
static void be_born(struct member *m)
{
    enum group_kind kind = m->g->kind;
    m->modern = kind == GROUP_MODERN || (kind == GROUP_MIXED && sim_chance(0.5));
    m->generation = m->modern ? 0 : -1;
    m->version = (int16_t)sim_below(2);
    sim_say("%s: member %d speaks the %s protocol", m->g->name, m->number,
            m->modern ? "new" : "classic");
}

void *work_member(void *arg)
{
    struct member *m = arg;
    struct membership *g = m->g;
    char name[48];
    snprintf(name, sizeof(name), "%s-%d", g->name, m->number);
    m->c = client_new(name);
    be_born(m);
    while (!g->over) {
        if (m->coordinator < 0)
            m->coordinator = work_coordinator(m->c, g->name);
        int code = -1;
        if (m->coordinator >= 0 && g->topic->there)
            code = m->modern ? modern_life(m) : classic_life(m);
        if (g->over)
            break;
        take_note(m, code);
        if (code == GONE)
            be_born(m);
        if (code != KERR_MEMBER_ID_REQUIRED)
            work_pause();
    }
    if (--g->running == 0)
        judge(m);
    work.running--;
    return NULL;
}
