/* sim_member_classic.c - the classic protocol: a member leads, and shares the partitions out, in
 * words that a coordinator can read which makes a group of the new protocol of it. There it leads
 * no more: the broker assigns. All is given up before each JoinGroup (eager). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/msg/consumer_protocol.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/leave_group.h"
#include "protocol/msg/sync_group.h"
#include "sim_member.h"

enum { VERSION = 0 /* of what is in metadata and assignments */, TEXT = 64 };

struct plan { /* for each member: its own; and the token, and how many partitions there are */
    struct sync_group_request_assignment v[16];
    struct buf bytes[16];
    char ids[16][96];
    int n;
};

static void plan_free(struct plan *p)
{
    for (int i = 0; i < p->n; i++)
        buf_free(&p->bytes[i]);
    p->n = 0;
}

static struct bytes bytes_of(const struct buf *b)
{
    return (struct bytes){b->p, (int32_t)b->len};
}

static struct buf encode_assignment(struct str topic, int32_t *own, int n, const char *text)
{
    struct consumer_protocol_assignment v;
    struct consumer_protocol_assignment_assigned_partition t = {.topic = topic};
    struct writer w = WRITER_INIT;
    consumer_protocol_assignment_init(&v);
    t.partitions.v = own;
    t.partitions.n = n;
    v.assigned_partitions.v = &t;
    v.assigned_partitions.n = n > 0;
    v.user_data = (struct bytes){(const uint8_t *)text, (int32_t)strlen(text)};
    buf_put_i16(&w.buf, VERSION);
    consumer_protocol_assignment_encode(&v, VERSION, &w);
    return w.buf;
}

static struct buf encode_subscription(struct str topic)
{
    struct consumer_protocol_subscription v;
    struct writer w = WRITER_INIT;
    consumer_protocol_subscription_init(&v);
    v.topics.v = &topic;
    v.topics.n = 1;
    buf_put_i16(&w.buf, VERSION);
    consumer_protocol_subscription_encode(&v, VERSION, &w);
    return w.buf;
}

static void share_out(struct member *m, const struct join_group_response *r, struct plan *plan)
{
    char text[TEXT];
    int all = member_partitions(m);
    if (r->members.n > 16)
        sim_violation("G2: group %s has %d members", m->g->name, r->members.n);
    snprintf(text, sizeof(text), "%llx %d", (unsigned long long)sim_random(), all);
    plan->n = r->members.n;
    for (int i = 0; i < plan->n; i++) {
        int32_t own[PARTITIONS_MAX];
        int n = 0;
        for (int p = i; p < all; p += plan->n)
            own[n++] = p;
        plan->bytes[i] = encode_assignment(str_of(m->g->topic->name), own, n, text);
        snprintf(plan->ids[i], sizeof(plan->ids[i]), "%.*s", STR_ARG(r->members.v[i].member_id));
        sync_group_request_assignment_init(&plan->v[i]);
        plan->v[i].member_id = str_of(plan->ids[i]);
        plan->v[i].assignment = bytes_of(&plan->bytes[i]);
    }
}

static int join(struct member *m, struct plan *plan)
{
    struct join_group_request req;
    struct join_group_request_protocol protocol;
    struct buf metadata = encode_subscription(str_of(m->g->topic->name));
    const void *answer;
    struct arena a;
    join_group_request_init(&req);
    join_group_request_protocol_init(&protocol);
    req.group_id = str_of(m->g->name);
    req.member_id = str_of(m->id);
    req.group_instance_id = member_instance(m);
    req.session_timeout_ms = SESSION_MS;
    req.rebalance_timeout_ms = REBALANCE_MS;
    req.protocol_type = str_of("consumer");
    protocol.name = str_of("in turn");
    protocol.metadata = bytes_of(&metadata);
    req.protocols.v = &protocol;
    req.protocols.n = 1;
    arena_init(&a, 0);
    int rc = member_ask(m, API_JOIN_GROUP, -1, &req, &a, &answer);
    const struct join_group_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    if (code == KERR_NONE || code == KERR_MEMBER_ID_REQUIRED)
        snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(r->member_id));
    if (code == KERR_NONE) {
        m->generation = r->generation_id;
        m->leads = str_eq(r->leader, r->member_id);
        if (m->leads && !r->skip_assignment)
            share_out(m, r, plan);
    }
    arena_free(&a);
    buf_free(&metadata);
    return code;
}

static void take_partitions(struct member *m, const struct consumer_protocol_assignment *v)
{
    int32_t own[PARTITIONS_MAX];
    for (int32_t t = 0; t < v->assigned_partitions.n; t++) {
        const struct consumer_protocol_assignment_assigned_partition *x =
            &v->assigned_partitions.v[t];
        if (!str_eqz(x->topic, m->g->topic->name))
            sim_violation("G5: group %s: member %d is given partitions of %.*s", m->g->name,
                          m->number, STR_ARG(x->topic));
        for (int32_t i = 0; i < x->partitions.n && m->n < PARTITIONS_MAX; i++) {
            own[m->n] = x->partitions.v[i];
            member_gain(m, x->partitions.v[i]);
        }
    }
    if (m->g->kind == GROUP_CLASSIC)
        history_own(m->g->history, m->generation, m->token, m->number, own, m->n);
}

static void take(struct member *m, struct bytes assignment, struct arena *a)
{
    struct consumer_protocol_assignment v;
    struct reader r = reader_of(assignment.p, (size_t)assignment.len);
    int version = reader_i16(&r);
    if (version < 0 || version > 3 || consumer_protocol_assignment_decode(&v, version, &r, a) != 0)
        sim_violation("G2: group %s: member %d cannot read its assignment", m->g->name, m->number);
    char text[TEXT] = "", *at = text;
    if (v.user_data.len > 0)
        snprintf(text, sizeof(text), "%.*s", (int)v.user_data.len, (const char *)v.user_data.p);
    m->token = strtoull(at, &at, 16);
    m->shared = (int)strtol(at, &at, 10);
    take_partitions(m, &v);
    sim_say("%s: member %d has %d partitions in generation %d, by %s", m->g->name, m->number, m->n,
            m->generation, *text ? text : "the broker");
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
    req.group_instance_id = member_instance(m);
    req.protocol_type = str_of("consumer");
    req.protocol_name = str_of("in turn");
    req.assignments.v = plan->v;
    req.assignments.n = plan->n;
    arena_init(&a, 0);
    int rc = member_ask(m, API_SYNC_GROUP, -1, &req, &a, &answer);
    const struct sync_group_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    if (code == KERR_NONE && !m->in_force)
        code = -1;
    if (code == KERR_NONE && r->assignment.len <= 0) /* not in the plan: it came later */
        code = KERR_REBALANCE_IN_PROGRESS;
    else if (code == KERR_NONE)
        take(m, r->assignment, &a);
    arena_free(&a);
    return code;
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
    req.group_instance_id = member_instance(m);
    arena_init(&a, 0);
    int rc = member_ask(m, API_HEARTBEAT, -1, &req, &a, &answer);
    const struct heartbeat_response *r = answer;
    int code = rc == 0 ? r->error_code : -1;
    arena_free(&a);
    if (code == 0)
        member_goes_on(m);
    m->beat = sim_now();
    return code;
}

void classic_leave(struct member *m)
{
    struct leave_group_request req;
    struct leave_group_request_member who;
    const void *answer;
    struct arena a;
    leave_group_request_init(&req);
    leave_group_request_member_init(&who);
    req.group_id = str_of(m->g->name);
    req.member_id = who.member_id = str_of(m->id);
    who.group_instance_id = member_instance(m);
    req.members.v = &who;
    req.members.n = 1;
    arena_init(&a, 0);
    (void)client_call(m->c, m->coordinator, API_LEAVE_GROUP, -1, &req, &a, &answer);
    arena_free(&a);
}

static int generation(struct member *m)
{
    int code = member_find_positions(m);
    while (code == 0 && !m->g->over) {
        code = member_turn(m);
        if (code == 0 && sim_now() - m->beat > SIM_S)
            code = beat(m);
        if (code == 0 && m->leads && m->shared != member_partitions(m))
            code = KERR_REBALANCE_IN_PROGRESS; /* there are more to share out */
        member_rest(m, code);
    }
    return code;
}

int classic_life(struct member *m)
{
    struct plan plan = {.n = 0};
    int code = join(m, &plan);
    if (code == 0)
        code = sync_up(m, &plan);
    plan_free(&plan);
    if (code == 0)
        code = generation(m);
    if (!m->g->over)
        member_lose_all(m);
    return code;
}
