/* cgroup_convert.c - a group changes its protocol while it is used: a classic one whose members
 * become members of the new kind, speaking as before; one of the new protocol whose last member
 * that speaks it has gone; and groups without members, either way. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "protocol/msg/consumer_protocol.h"
#include "protocol/msg/join_group.h"

/* ---- without members ---- */

int cgroup_replace_empty(struct group *g)
{
    bool recorded = g->generation > 0;
    struct cstep s;
    if (cgroup_attach(g) != 0)
        return -ENOMEM;
    group_forget_classic(g);
    if (recorded) {
        cstep_begin(&s, g->consumers);
        cstep_bury_classic(&s);
        cstep_end(&s, NULL);
    }
    return 0;
}

void cgroup_each_key(const struct cgroup *cg,
                     void (*each)(void *arg, enum cgroup_key kind, struct str member), void *arg)
{
    static const enum cgroup_key of_members[] = {CGROUP_KEY_CURRENT, CGROUP_KEY_TARGET};
    for (int i = 0; i < 2; i++)
        list_each (l, &cg->member_list)
            each(arg, of_members[i], list_entry(l, struct cmember, link)->id);
    each(arg, CGROUP_KEY_TARGET_EPOCH, STR_NULL);
    list_each (l, &cg->member_list)
        each(arg, CGROUP_KEY_MEMBER, list_entry(l, struct cmember, link)->id);
    each(arg, CGROUP_KEY_TOPICS, STR_NULL);
    each(arg, CGROUP_KEY_EPOCH, STR_NULL);
}

static void bury(void *arg, enum cgroup_key kind, struct str member)
{
    cstep_bury(arg, kind, member);
}

void cgroup_end(struct group *g)
{
    struct cstep s;
    cstep_begin(&s, g->consumers);
    cgroup_each_key(g->consumers, bury, &s);
    cstep_end(&s, NULL);
    cgroup_detach(g);
}

/* ---- upgrade ---- */

bool cgroup_can_upgrade(const struct group *g)
{
    const struct cgroup_config *c = &g->env->config->consumers;
    return c->upgrade && !group_is(g, GROUP_DEAD) && g->protocol_type &&
           strcmp(g->protocol_type, "consumer") == 0 && g->members.n <= (size_t)c->max_size;
}

/* What a classic member reads, by what it said under the protocol in use; before the first
 * generation under its first. */
static struct bytes subscription_of(const struct group *g, const struct member *m)
{
    if (g->protocol_name)
        return member_metadata(m, str_of(g->protocol_name));
    return m->own.protocols_n ? m->own.protocols[0].metadata : BYTES_NULL;
}

/* Names become ids. */
static int assigned_parts(const struct group *g, struct bytes b, struct arena *a,
                          struct part_set *out)
{
    struct consumer_protocol_assignment v;
    struct reader r = reader_of(b.p, b.len < 0 ? 0 : (size_t)b.len);
    if (b.len <= 0)
        return 0;
    int version = reader_i16(&r);
    if (r.bad || version < 0)
        return -EBADMSG;
    int rc = consumer_protocol_assignment_decode(&v, version > 3 ? 3 : version, &r, a);
    if (rc)
        return rc == -EPROTO ? -EBADMSG : rc;
    const struct metadata_snapshot *md = metadata_acquire(g->env->metadata);
    for (int32_t t = 0; !rc && t < v.assigned_partitions.n; t++) {
        const struct topic_info *topic = metadata_topic(md, v.assigned_partitions.v[t].topic);
        for (int32_t i = 0; topic && !rc && i < v.assigned_partitions.v[t].partitions.n; i++) {
            int32_t p = v.assigned_partitions.v[t].partitions.v[i];
            if (p >= 0 && p < topic->partitions_n)
                rc = part_set_add(out, topic->id, p);
        }
    }
    metadata_release(md);
    part_set_sort(out);
    return rc;
}

/* The block of protocols moves over. */
static int adopt(struct cgroup *cg, struct member *from, const struct part_set *had,
                 const struct consumer_protocol_subscription *said)
{
    struct cmember *m = cgroup_add(cg, from->id, from->instance);
    struct cnames names;
    struct part_set assigned = PART_SET_EMPTY, none = PART_SET_EMPTY;
    if (!m || cgroup_set_str(&m->client_id, from->own.client_id) != 0 ||
        cgroup_set_str(&m->client_host, from->own.client_host) != 0 ||
        cgroup_set_str(&m->rack, said->rack_id) != 0 ||
        cnames_make(&names, said->topics.v, said->topics.n) != 0 ||
        cmember_set_names(m, &names) != 0)
        return -ENOMEM;
    m->rebalance_ms = from->own.rebalance_ms;
    m->epoch = m->previous_epoch = cg->g->generation;
    /* What two claim is the first one's. */
    for (int i = 0; i < had->n; i++)
        if (cgroup_owner(cg, &had->v[i]) == -1 &&
            part_set_add(&assigned, had->v[i].topic, had->v[i].partition) != 0)
            return -ENOMEM;
    if (part_set_copy(&assigned, &m->target) != 0 || cmember_own(m, &assigned, &none) != 0)
        return -ENOMEM;
    struct member_protocol *copy =
        member_protocols_copy(from->own.protocols, from->own.protocols_n);
    if (!copy)
        return -ENOMEM;
    return cmember_set_classic(m, copy, from->own.protocols_n, from->own.session_ms);
}

static size_t protocols_bytes(const struct member *m)
{
    size_t bytes = 0;
    for (int i = 0; i < m->own.protocols_n; i++)
        bytes += (size_t)m->own.protocols[i].name.len + (size_t)m->own.protocols[i].metadata.len;
    return bytes;
}

static int adopt_all(struct group *g, struct arena *a)
{
    int rc = 0;
    list_each (l, &g->member_list) {
        struct member *m = list_entry(l, struct member, link);
        struct consumer_protocol_subscription said;
        struct part_set had = PART_SET_EMPTY;
        int version;
        if (!rc && protocols_bytes(m) > CMEMBER_SAYS_MAX)
            rc = -EBADMSG; /* no record could hold it */
        if (!rc)
            rc = csubscription_decode(subscription_of(g, m), a, &said, &version);
        if (!rc)
            rc = assigned_parts(g, m->assignment, a, &had);
        if (!rc)
            rc = adopt(g->consumers, m, &had, &said);
        part_set_free(&had);
        arena_reset(a);
    }
    return rc;
}

static void write_upgrade(struct cgroup *cg, bool recorded)
{
    struct cstep s;
    cstep_begin(&s, cg);
    if (recorded)
        cstep_bury_classic(&s);
    list_each (l, &cg->member_list)
        cstep_put_member(&s, list_entry(l, struct cmember, link));
    cstep_put_epoch(&s);
    list_each (l, &cg->member_list)
        cstep_put_target(&s, list_entry(l, struct cmember, link));
    cstep_put_target_epoch(&s);
    list_each (l, &cg->member_list)
        cstep_put_current(&s, list_entry(l, struct cmember, link));
    cstep_end(&s, NULL);
}

int cgroup_upgrade(struct group *g)
{
    struct arena a;
    arena_init(&a, 0);
    int rc = cgroup_attach(g);
    if (!rc) {
        g->consumers->epoch = g->consumers->assignment_epoch = g->generation;
        rc = adopt_all(g, &a);
    }
    arena_free(&a);
    if (rc) {
        cgroup_detach(g);
        return rc;
    }
    say_info(GROUP_TAG, "group %.*s: its %zu members become members of the new protocol",
             STR_ARG(g->id), g->members.n);
    bool recorded = g->generation > 0;
    group_dissolve(g, KERR_REBALANCE_IN_PROGRESS);
    list_each (l, &g->consumers->member_list)
        cmember_touch(list_entry(l, struct cmember, link));
    write_upgrade(g->consumers, recorded);
    return 0;
}

/* ---- downgrade ---- */

static size_t text_bytes(struct str s)
{
    return s.len > 0 ? (size_t)s.len : 0;
}

/* What cassignment_encode makes of it: its head, then each topic by its name. */
static size_t assignment_bytes(const struct cgroup *cg, const struct part_set *parts)
{
    enum { HEAD = 10, RUN = 6 }; /* version, two lengths; a name's and a list's */
    size_t bytes = HEAD;
    for (int i = 0, end; i < parts->n; i = end) {
        end = part_set_run(parts, i);
        const struct assign_topic *topic = ctopics_find(&cg->topics, parts->v[i].topic);
        if (topic)
            bytes += RUN + text_bytes(topic->name) + (size_t)(end - i) * sizeof(int32_t);
    }
    return bytes;
}

/* A classic group has one record, of all its members together. */
static bool fits_one_record(const struct cgroup *cg)
{
    enum { FIXED = 24 }; /* of each member: two times, six lengths */
    size_t bytes = 0;
    list_each (l, &cg->member_list) {
        const struct cmember *m = list_entry(l, struct cmember, link);
        bytes += FIXED + text_bytes(m->id) + text_bytes(m->instance) + text_bytes(m->client_id) +
                 text_bytes(m->client_host) + assignment_bytes(cg, &m->assigned) +
                 assignment_bytes(cg, &m->revoking);
        for (int i = 0; i < m->protocols_n; i++)
            bytes += (size_t)m->protocols[i].metadata.len;
    }
    return bytes <= CMEMBER_SAYS_MAX;
}

bool cgroup_can_downgrade(const struct cgroup *cg)
{
    return cgroup_config(cg)->downgrade && cg->classic_n > 0 &&
           (size_t)cg->classic_n == cg->members.n &&
           cg->classic_n <= cg->g->env->config->max_size && fits_one_record(cg);
}

/* With what it has, not with what it was to have: that may be another's still, and if the group is
 * made one of the new protocol again before all have joined, it is taken for what they have.
 * (Apache Kafka's coordinator writes the target.) */
static struct bytes owned_by(const struct cmember *m, struct arena *a)
{
    struct part_set owned = PART_SET_EMPTY;
    struct bytes b = BYTES_NULL;
    if (part_set_union(&m->assigned, &m->revoking, &owned) == 0)
        b = cassignment_encode(m->cg, &owned, cmember_protocol_version(m), a);
    part_set_free(&owned);
    return b;
}

static int return_member(struct group *g, const struct cmember *m, struct arena *a)
{
    struct join_group_request in;
    struct group_call c = {
        .version = 1, .in = &in, .client_id = m->client_id, .client_host = m->client_host};
    struct bytes parts = owned_by(m, a);
    join_group_request_init(&in);
    in.protocols.v = join_group_request_protocol_new(a, m->protocols_n);
    if (parts.len < 0 || !in.protocols.v)
        return -ENOMEM;
    for (int i = 0; i < m->protocols_n; i++) {
        in.protocols.v[i].name = m->protocols[i].name;
        in.protocols.v[i].metadata = m->protocols[i].metadata;
    }
    in.protocols.n = m->protocols_n;
    in.session_timeout_ms = m->session_ms;
    in.rebalance_timeout_ms = m->rebalance_ms;
    return group_restore_member(g, &c, m->id, m->instance, parts);
}

void cgroup_downgrade(struct cgroup *cg, struct cstep *s)
{
    struct group *g = cg->g;
    struct arena a;
    int rc = 0;
    arena_init(&a, 0);
    cgroup_each_key(cg, bury, s);
    list_each (l, &cg->member_list)
        if (!rc) {
            rc = return_member(g, list_entry(l, struct cmember, link), &a);
            arena_reset(&a);
        }
    if (!rc)
        rc = group_restore_stable(g, cg->epoch);
    arena_free(&a);
    s->failed |= rc != 0;
    if (rc)
        return;
    /* Until its members have joined again, what the last new member had is nobody's. A record
     * without a leader tells whoever loads it before that. */
    struct member *leader = g->leader;
    g->leader = NULL;
    cstep_put_classic(s, g);
    g->leader = leader;
}

void cgroup_downgraded(struct group *g)
{
    say_info(GROUP_TAG, "group %.*s: only members of the classic protocol are left, it is theirs",
             STR_ARG(g->id));
    cgroup_detach(g);
    group_resume(g);
    group_rebalance(g, "it came back from the new protocol");
}
