/* cgroup.c - life and states of a group of the new protocol, and what tools see of it. */
#include "coordinator/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "protocol/msg/consumer_group_describe.h"

#define BIT(s) (1u << (s))
#define ALIVE \
    (BIT(CGROUP_EMPTY) | BIT(CGROUP_ASSIGNING) | BIT(CGROUP_RECONCILING) | BIT(CGROUP_STABLE))

static const struct {
    const char *name; /* on the wire */
    unsigned next;    /* legal moves */
} states[CGROUP_STATES] = {
    [CGROUP_EMPTY] = {"Empty", (ALIVE & ~BIT(CGROUP_EMPTY)) | BIT(CGROUP_DEAD)},
    [CGROUP_ASSIGNING] = {"Assigning", (ALIVE & ~BIT(CGROUP_ASSIGNING)) | BIT(CGROUP_DEAD)},
    [CGROUP_RECONCILING] = {"Reconciling", (ALIVE & ~BIT(CGROUP_RECONCILING)) | BIT(CGROUP_DEAD)},
    [CGROUP_STABLE] = {"Stable", (ALIVE & ~BIT(CGROUP_STABLE)) | BIT(CGROUP_DEAD)},
    [CGROUP_DEAD] = {"Dead", 0}, /* no way back: a new one takes the group's place */
};

const char *cgroup_state_name(enum cgroup_state s)
{
    return states[s].name;
}

void cgroup_set_state(struct cgroup *cg, enum cgroup_state to, const char *why)
{
    bool legal = states[cg->state].next & BIT(to);
    logline(legal ? LOGLINE_DEBUG : LOGLINE_ERROR, GROUP_TAG,
            "consumer group %.*s: %s -> %s%s because %s (epoch %d)", STR_ARG(cg->g->id),
            states[cg->state].name, states[to].name, legal ? "" : ", an illegal move,", why,
            (int)cg->epoch);
    assert(legal);
    cg->state = to;
}

static enum cgroup_state state_now(const struct cgroup *cg)
{
    if (cg->members.n == 0)
        return CGROUP_EMPTY;
    if (cg->epoch > cg->assignment_epoch)
        return CGROUP_ASSIGNING;
    list_each (l, &cg->member_list) {
        const struct cmember *m = list_entry(l, struct cmember, link);
        if (m->state != CMEMBER_STABLE || m->epoch != cg->assignment_epoch)
            return CGROUP_RECONCILING;
    }
    return CGROUP_STABLE;
}

void cgroup_settle(struct cgroup *cg, const char *why)
{
    enum cgroup_state to = state_now(cg);
    if (cg->state != CGROUP_DEAD && to != cg->state)
        cgroup_set_state(cg, to, why);
}

/* ---- life ---- */

int cgroup_attach(struct group *g)
{
    struct cgroup *cg = calloc(1, sizeof(*cg));
    if (!cg)
        return -ENOMEM;
    cg->g = g;
    hmap_init(&cg->members);
    hmap_init(&cg->instances);
    hmap_init(&cg->protocols);
    hmap_init(&cg->names);
    hmap_init(&cg->regexes);
    hmap_init(&cg->owners);
    list_init(&cg->member_list);
    list_init(&cg->writes);
    cg->refresh = true;
    g->consumers = cg;
    return 0;
}

static void free_maps(struct cgroup *cg)
{
    for (struct hnode *n = hmap_first(&cg->names), *next; n; n = next) {
        next = hmap_next(&cg->names, n);
        free(hmap_entry(n, struct cname, node));
    }
    for (struct hnode *n = hmap_first(&cg->owners), *next; n; n = next) {
        next = hmap_next(&cg->owners, n);
        free(hmap_entry(n, struct cowner, node));
    }
    hmap_free(&cg->members);
    hmap_free(&cg->instances);
    protocol_counts_free(&cg->protocols);
    hmap_free(&cg->names);
    hmap_free(&cg->regexes); /* they went with the members */
    hmap_free(&cg->owners);
}

static void drop_all(struct cgroup *cg)
{
    list_each_safe (l, &cg->member_list)
        cgroup_drop(cg, list_entry(l, struct cmember, link));
}

void cgroup_detach(struct group *g)
{
    struct cgroup *cg = g->consumers;
    if (!cg)
        return;
    drop_all(cg);
    /* Steps that are being written look after themselves from now on. */
    list_each_safe (l, &cg->writes)
        list_remove(l);
    free_maps(cg);
    ctopics_free(&cg->topics);
    free(cg);
    g->consumers = NULL;
}

void cgroup_unload(struct group *g)
{
    struct cgroup *cg = g->consumers;
    if (!cg || cg->state == CGROUP_DEAD)
        return;
    drop_all(cg);
    cgroup_set_state(cg, CGROUP_DEAD, "another broker coordinates it");
}

/* ---- facts ---- */

enum cgroup_state cgroup_state(const struct cgroup *cg)
{
    return cg->state;
}

int cgroup_members_n(const struct cgroup *cg)
{
    return (int)cg->members.n;
}

int32_t cgroup_epoch(const struct cgroup *cg)
{
    return cg->epoch;
}

bool cgroup_subscribed(const struct cgroup *cg, struct str topic)
{
    return cgroup_find_name(cg, topic) != NULL;
}

enum kerr cgroup_check_epoch(const struct group *g, struct str member, int32_t epoch, int version)
{
    enum { FIRST_VERSION_MEMBER_EPOCHS = 9 };
    const struct cgroup *cg = g->consumers;
    const struct cmember *m = cgroup_find(cg, member);
    if (cg->state == CGROUP_DEAD)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    if (epoch < 0 && cg->members.n == 0)
        return KERR_NONE;
    if (!m)
        return KERR_UNKNOWN_MEMBER_ID;
    if (!m->classic && version >= 0 && version < FIRST_VERSION_MEMBER_EPOCHS)
        return KERR_UNSUPPORTED_VERSION;
    if (epoch == m->epoch)
        return KERR_NONE;
    return m->classic ? KERR_ILLEGAL_GENERATION : KERR_STALE_MEMBER_EPOCH;
}

/* ---- for tools ---- */

typedef struct consumer_group_describe_response_assignment described_parts;

/* With names; of topics that are gone there are none. */
static void describe_parts(const struct cgroup *cg, const struct part_set *s, struct arena *a,
                           described_parts *out)
{
    const struct metadata_snapshot *md = metadata_acquire(cg->g->env->metadata);
    out->topic_partitions.v =
        consumer_group_describe_response_topic_partition_new(a, part_set_topics(s));
    for (int i = 0, end; out->topic_partitions.v && i < s->n; i = end) {
        end = part_set_run(s, i);
        const struct topic_info *t = metadata_topic_by_id(md, s->v[i].topic);
        int32_t *v = t ? arena_array(a, int32_t, (size_t)(end - i)) : NULL;
        if (!v)
            continue;
        struct consumer_group_describe_response_topic_partition *to =
            &out->topic_partitions.v[out->topic_partitions.n++];
        to->topic_id = s->v[i].topic;
        to->topic_name = arena_str(a, t->name);
        to->partitions.v = v;
        for (int j = i; j < end; j++)
            v[to->partitions.n++] = s->v[j].partition;
    }
    metadata_release(md);
}

static struct str text(struct arena *a, struct str s)
{
    return str_is_null(s) ? STR_LIT("") : arena_str(a, s);
}

static void describe_member(const struct cmember *m, struct arena *a,
                            struct consumer_group_describe_response_member *out)
{
    out->member_id = arena_str(a, m->id);
    out->instance_id = arena_str(a, m->instance);
    out->rack_id = arena_str(a, m->rack);
    out->member_epoch = m->epoch;
    out->client_id = text(a, m->client_id);
    out->client_host = text(a, m->client_host);
    out->subscribed_topic_regex = arena_str(a, m->regex);
    out->subscribed_topic_names.v = arena_array(a, struct str, (size_t)m->names.n);
    for (int i = 0; out->subscribed_topic_names.v && i < m->names.n; i++)
        out->subscribed_topic_names.v[out->subscribed_topic_names.n++] =
            arena_str(a, m->names.v[i]);
    describe_parts(m->cg, &m->assigned, a, &out->assignment);
    describe_parts(m->cg, &m->target, a, &out->target_assignment);
    out->member_type = m->classic ? 0 : 1;
}

void cgroup_describe(const struct group *g, struct arena *a,
                     struct consumer_group_describe_response_group *out)
{
    const struct cgroup *cg = g->consumers;
    out->group_state = str_of(cgroup_state_name(cg->state));
    out->group_epoch = cg->epoch;
    out->assignment_epoch = cg->assignment_epoch;
    out->assignor_name = str_of(cgroup_assignor(cg)->name);
    out->members.v = consumer_group_describe_response_member_new(a, (int32_t)cg->members.n);
    if (!out->members.v)
        return;
    list_each (l, &cg->member_list)
        describe_member(list_entry(l, struct cmember, link), a, &out->members.v[out->members.n++]);
}
