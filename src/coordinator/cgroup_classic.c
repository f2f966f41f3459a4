/* cgroup_classic.c - members that speak the classic protocol in a group of the new one: JoinGroup
 * is a heartbeat that says all, SyncGroup fetches what the broker has assigned, Heartbeat tells
 * them when to join again. Nobody of them leads. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "coordinator/group_requests.h"
#include "protocol/msg/consumer_protocol.h"
#include "protocol/msg/heartbeat.h"
#include "protocol/msg/join_group.h"
#include "protocol/msg/sync_group.h"

enum { FIRST_VERSION_KNOWN_ID = 4, NEWEST_PROTOCOL = 3 };

/* ---- what clients put into their metadata ---- */

int csubscription_decode(struct bytes b, struct arena *a,
                         struct consumer_protocol_subscription *out, int *version)
{
    struct reader r = reader_of(b.p, b.len < 0 ? 0 : (size_t)b.len);
    *version = reader_i16(&r);
    if (r.bad || *version < 0)
        return -EBADMSG;
    if (*version > NEWEST_PROTOCOL) /* later ones begin with the same fields */
        *version = NEWEST_PROTOCOL;
    int rc = consumer_protocol_subscription_decode(out, *version, &r, a);
    return rc == -EPROTO ? -EBADMSG : rc;
}

int cmember_protocol_version(const struct cmember *m)
{
    const struct bytes *b = m->protocols_n ? &m->protocols[0].metadata : NULL;
    int version = b && b->len >= 2 ? (int16_t)get_be16(b->p) : 0;
    return version < 0 ? 0 : version > NEWEST_PROTOCOL ? NEWEST_PROTOCOL : version;
}

struct bytes cassignment_encode(const struct cgroup *cg, const struct part_set *parts, int version,
                                struct arena *a)
{
    struct consumer_protocol_assignment v;
    struct writer w = WRITER_INIT;
    consumer_protocol_assignment_init(&v);
    v.assigned_partitions.v =
        consumer_protocol_assignment_assigned_partition_new(a, part_set_topics(parts));
    int32_t *numbers = arena_array(a, int32_t, (size_t)parts->n);
    for (int i = 0, end; v.assigned_partitions.v && numbers && i < parts->n; i = end) {
        end = part_set_run(parts, i);
        const struct assign_topic *topic = ctopics_find(&cg->topics, parts->v[i].topic);
        if (!topic)
            continue;
        struct consumer_protocol_assignment_assigned_partition *to =
            &v.assigned_partitions.v[v.assigned_partitions.n++];
        to->topic = topic->name;
        to->partitions.v = numbers + i;
        to->partitions.n = end - i;
        for (int j = i; j < end; j++)
            numbers[j] = parts->v[j].partition;
    }
    buf_put_i16(&w.buf, (int16_t)version);
    consumer_protocol_assignment_encode(&v, version, &w);
    uint8_t *p = w.buf.failed ? NULL : arena_alloc(a, w.buf.len);
    struct bytes out = {p, p ? (int32_t)w.buf.len : -1};
    if (p)
        memcpy(p, w.buf.p, w.buf.len);
    writer_free(&w);
    return out;
}

/* ---- may it join? ---- */

/* The member's own list does not bind it: each of its protocols is marked meanwhile. */
static void mark_own(const struct cgroup *cg, const struct cmember *m, const void *mark)
{
    for (int i = 0; m && i < m->protocols_n; i++)
        protocol_counts_find(&cg->protocols, m->protocols[i].name)->by = mark;
}

/* Is there a protocol that all other classic members offer as well? */
static bool is_compatible(const struct cgroup *cg, const struct cmember *m,
                          const struct join_group_request *in)
{
    int32_t others = cg->classic_n - (m && m->classic);
    bool found = false;
    if (!str_eqz(in->protocol_type, "consumer"))
        return false;
    mark_own(cg, m, m);
    for (int32_t i = 0; i < in->protocols.n && !found; i++) {
        const struct protocol_count *p =
            protocol_counts_find(&cg->protocols, in->protocols.v[i].name);
        found = (p ? p->members - (p->by != NULL) : 0) == others;
    }
    mark_own(cg, m, NULL);
    return found;
}

static bool fits_record(const struct join_group_request *in)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < in->protocols.n; i++)
        bytes += (size_t)in->protocols.v[i].name.len + (size_t)in->protocols.v[i].metadata.len;
    return bytes <= CMEMBER_SAYS_MAX;
}

/* ---- JoinGroup ---- */

struct joining {
    struct cgroup *cg;
    struct group_call *c;
    const struct join_group_request *in;
    struct cstep step;
    struct cbeat beat;
    struct arena arena;
    struct cowned owned;
    struct consumer_protocol_subscription said;
};

/* Topics by name become ids; what is not known is not owned. */
static int gather_owned(struct joining *j)
{
    const struct metadata_snapshot *md = metadata_acquire(j->cg->g->env->metadata);
    bool going_on = true;
    int rc = cowned_begin(&j->owned, j->beat.m);
    for (int32_t t = 0; !rc && going_on && t < j->said.owned_partitions.n; t++) {
        const struct topic_info *topic = metadata_topic(md, j->said.owned_partitions.v[t].topic);
        if (topic)
            going_on = cowned_say(&j->owned, topic->id, j->said.owned_partitions.v[t].partitions.v,
                                  j->said.owned_partitions.v[t].partitions.n);
    }
    metadata_release(md);
    j->beat.owned = &j->owned.parts;
    return rc ? rc : cowned_end(&j->owned);
}

static enum kerr add_joining(struct joining *j, struct str id)
{
    j->beat.m = cgroup_add(j->cg, id, j->in->group_instance_id);
    j->beat.joined = true;
    return j->beat.m ? KERR_NONE : KERR_UNKNOWN_SERVER_ERROR;
}

/* The member that the request is of, or that it makes. */
static enum kerr find_joining(struct joining *j)
{
    struct str instance = j->in->group_instance_id, id = j->in->member_id;
    struct cmember *m =
        str_is_null(instance) ? cgroup_find(j->cg, id) : cgroup_find_instance(j->cg, instance);
    if (str_is_null(instance)) {
        j->beat.m = m;
        return m ? KERR_NONE : add_joining(j, id);
    }
    if (!m)
        return add_joining(j, id);
    j->beat.m = m;
    return str_eq(m->id, id) ? KERR_NONE : cgroup_take_over(j->cg, &j->step, m, id);
}

/* Names and metadata of all its protocols, in one block. */
static struct member_protocol *copy_protocols(const struct joining *j)
{
    struct member_profile p;
    struct member_protocol *v = NULL;
    if (member_profile_make(&p, j->c) == 0) {
        v = p.protocols;
        p.protocols = NULL;
    }
    member_profile_free(&p);
    return v;
}

static bool same_protocols(const struct cmember *m, const struct join_group_request *in)
{
    struct member like = {.own = {.protocols = m->protocols, .protocols_n = m->protocols_n}};
    return m->classic && member_matches(&like, in);
}

static int say(struct joining *j)
{
    struct cmember *m = j->beat.m;
    struct cbeat_said said = {.client_id = j->c->client_id,
                              .client_host = j->c->client_host,
                              .rack = j->said.rack_id,
                              .assignor = STR_NULL,
                              .regex = STR_LIT(""), /* the old protocol has none */
                              .rebalance_ms = j->c->version >= 1 ? j->in->rebalance_timeout_ms
                                                                 : j->in->session_timeout_ms,
                              .names = j->said.topics.v,
                              .names_n = j->said.topics.n};
    if (!same_protocols(m, j->in) || m->session_ms != j->in->session_timeout_ms) {
        struct member_protocol *v = copy_protocols(j);
        if (!v)
            return -ENOMEM;
        if (cmember_set_classic(m, v, j->in->protocols.n, j->in->session_timeout_ms) != 0)
            return -ENOMEM;
        j->beat.changed = true;
    }
    int rc = cbeat_say(&j->beat, &said);
    j->beat.resubscribed |= j->beat.joined;
    return rc;
}

static void answer_joined(struct joining *j)
{
    const struct cmember *m = j->beat.m;
    struct join_group_response *out = j->c->out;
    out->generation_id = m->epoch;
    out->protocol_type = STR_LIT("consumer");
    out->protocol_name = arena_str(j->c->arena, m->protocols[0].name);
    out->leader = STR_LIT("");
    out->member_id = arena_str(j->c->arena, m->id);
}

static void join(struct joining *j)
{
    struct cmember *m;
    int rc = gather_owned(j);
    if (!rc)
        rc = say(j);
    if (!rc)
        rc = cgroup_advance(j->cg, &j->step, &j->beat);
    j->step.failed |= rc != 0;
    if (!rc) {
        m = j->beat.m;
        executor_timer_stop(j->cg->g->env->ex, &m->join);
        cmember_touch(m);
        cmember_expect_sync(m);
        answer_joined(j);
    }
    cstep_end(&j->step, j->c);
}

static enum kerr admit_join(struct joining *j, struct str *id)
{
    const struct join_group_request *in = j->in;
    bool is_static = !str_is_null(in->group_instance_id);
    const struct cmember *m = is_static ? cgroup_find_instance(j->cg, in->group_instance_id)
                                        : cgroup_find(j->cg, in->member_id);
    *id = in->member_id;
    if (!m && j->cg->members.n >= (size_t)cgroup_config(j->cg)->max_size) {
        *id = STR_LIT("");
        return KERR_GROUP_MAX_SIZE_REACHED;
    }
    if (!fits_record(in))
        return KERR_UNKNOWN_SERVER_ERROR;
    if (!is_compatible(j->cg, m, in))
        return KERR_INCONSISTENT_GROUP_PROTOCOL;
    if (is_static && in->member_id.len > 0 && (!m || !str_eq(m->id, in->member_id)))
        return m ? KERR_FENCED_INSTANCE_ID : KERR_UNKNOWN_MEMBER_ID;
    return KERR_NONE;
}

/* An id for one that has none. The copy is in the call's arena. */
static struct str new_id(struct group_call *c, struct str instance)
{
    struct str made = group_make_member_id(c->client_id, instance);
    struct str id = str_is_null(made) ? STR_NULL : arena_str(c->arena, made);
    free((void *)made.p);
    return id;
}

static enum kerr read_subscription(struct joining *j)
{
    int version;
    int rc = csubscription_decode(j->in->protocols.v[0].metadata, &j->arena, &j->said, &version);
    return rc == 0          ? KERR_NONE
           : rc == -EBADMSG ? KERR_INCONSISTENT_GROUP_PROTOCOL
                            : KERR_UNKNOWN_SERVER_ERROR;
}

static void run_join(struct joining *j)
{
    const struct join_group_request *in = j->in;
    struct join_group_request with_id = *in;
    struct str id;
    enum kerr e = admit_join(j, &id);
    if (e == KERR_NONE)
        e = read_subscription(j);
    if (e == KERR_NONE && in->member_id.len == 0) {
        id = with_id.member_id = new_id(j->c, in->group_instance_id);
        j->in = &with_id;
        if (str_is_null(id))
            e = KERR_UNKNOWN_SERVER_ERROR;
        else if (str_is_null(in->group_instance_id) && j->c->version >= FIRST_VERSION_KNOWN_ID)
            e = KERR_MEMBER_ID_REQUIRED; /* it comes back with it */
    }
    if (e == KERR_NONE)
        e = find_joining(j);
    if (e != KERR_NONE && !j->step.failed)
        group_answer_join_error(j->c, e, id);
    else if (j->step.failed)
        cstep_end(&j->step, j->c);
    else
        join(j);
}

void cgroup_join(struct group *g, struct group_call *c)
{
    struct joining j = {.cg = g->consumers, .c = c, .in = c->in};
    arena_init(&j.arena, 0);
    cstep_begin(&j.step, j.cg);
    run_join(&j);
    cowned_free(&j.owned);
    arena_free(&j.arena);
}

/* ---- who is it? ---- */

static enum kerr identify(const struct cgroup *cg, struct str id, struct str instance,
                          struct cmember **out)
{
    *out = str_is_null(instance) ? cgroup_find(cg, id) : cgroup_find_instance(cg, instance);
    if (!*out)
        return KERR_UNKNOWN_MEMBER_ID;
    if (!str_eq((*out)->id, id))
        return KERR_FENCED_INSTANCE_ID;
    return (*out)->classic ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
}

/* ---- SyncGroup ---- */

static bool differs(struct str said, struct str own)
{
    return !str_is_null(said) && !str_eq(said, own);
}

static enum kerr check_sync(const struct cgroup *cg, const struct sync_group_request *in,
                            struct cmember **out)
{
    enum kerr e = identify(cg, in->member_id, in->group_instance_id, out);
    const struct cmember *m = *out;
    if (e != KERR_NONE)
        return e;
    if (in->generation_id != m->epoch)
        return KERR_ILLEGAL_GENERATION;
    if (differs(in->protocol_type, STR_LIT("consumer")) ||
        differs(in->protocol_name, m->protocols[0].name))
        return KERR_INCONSISTENT_GROUP_PROTOCOL;
    return cg->epoch > m->epoch && m->state != CMEMBER_UNREVOKED ? KERR_REBALANCE_IN_PROGRESS
                                                                 : KERR_NONE;
}

void cgroup_sync(struct group *g, struct group_call *c)
{
    const struct sync_group_request *in = c->in;
    struct sync_group_response *out = c->out;
    struct cgroup *cg = g->consumers;
    struct cmember *m;
    struct cstep s;
    enum kerr e = check_sync(cg, in, &m);
    if (e == KERR_REBALANCE_IN_PROGRESS) {
        executor_timer_stop(g->env->ex, &m->sync);
        cmember_expect_join(m);
    }
    if (e != KERR_NONE) {
        group_answer_sync(c, NULL, NULL, e);
        return;
    }
    executor_timer_stop(g->env->ex, &m->sync);
    cmember_touch(m);
    out->protocol_type = STR_LIT("consumer");
    out->protocol_name = arena_str(c->arena, m->protocols[0].name);
    out->assignment = cassignment_encode(cg, &m->assigned, cmember_protocol_version(m), c->arena);
    if (out->assignment.len < 0) {
        group_call_no_memory(c);
        return;
    }
    cstep_begin(&s, cg);
    cstep_end(&s, c);
}

/* ---- Heartbeat ---- */

/* Is all that it still lacks free by now? */
static bool could_have_all(const struct cmember *m)
{
    for (int i = 0; i < m->target.n; i++)
        if (!part_set_has(&m->assigned, &m->target.v[i]) &&
            cgroup_owner(m->cg, &m->target.v[i]) != -1)
            return false;
    return true;
}

static bool must_join(const struct cmember *m)
{
    return m->epoch < m->cg->epoch || m->state == CMEMBER_UNREVOKED ||
           (m->state == CMEMBER_UNRELEASED && could_have_all(m));
}

void cgroup_classic_heartbeat(struct group *g, struct group_call *c)
{
    const struct heartbeat_request *in = c->in;
    struct heartbeat_response *out = c->out;
    struct cmember *m;
    struct cstep s;
    enum kerr e = identify(g->consumers, in->member_id, in->group_instance_id, &m);
    if (e == KERR_NONE && in->generation_id != m->epoch)
        e = KERR_ILLEGAL_GENERATION;
    if (e == KERR_NONE) {
        cmember_touch(m);
        if (must_join(m)) {
            cmember_expect_join(m);
            e = KERR_REBALANCE_IN_PROGRESS;
        }
    }
    out->error_code = (int16_t)e;
    cstep_begin(&s, g->consumers);
    cstep_end(&s, c);
}

/* ---- LeaveGroup ---- */

/* An instance without a member id: an administrator removes it, whatever it speaks. */
static enum kerr find_leaving(const struct cgroup *cg, struct str member, struct str instance,
                              struct cmember **m)
{
    if (member.len > 0 || str_is_null(instance))
        return identify(cg, member, instance, m);
    *m = cgroup_find_instance(cg, instance);
    return *m ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
}

void cgroup_leave(struct group *g, const struct cleaving *v, int n)
{
    struct cgroup *cg = g->consumers;
    struct cstep s;
    struct cmember *m;
    bool any = false, was_new = false;
    cstep_begin(&s, cg);
    for (int i = 0; i < n; i++) {
        enum kerr e = find_leaving(cg, v[i].member, v[i].instance, &m);
        *v[i].error = (int16_t)e;
        if (e != KERR_NONE)
            continue;
        any = true;
        was_new |= !m->classic;
        cgroup_take_out(cg, &s, m, "it leaves");
    }
    if (any)
        cgroup_taken_out(cg, &s, was_new);
    cstep_end(&s, NULL);
}
