/* cgroup_check.c - the invariants of a group of the new protocol. For tests. */
#include "coordinator/cgroup_private.h"

static const char *check_owned(const struct cgroup *cg, const struct cmember *m,
                               const struct part_set *s, size_t *owned)
{
    for (int i = 0; i < s->n; i++) {
        if (i > 0 && part_cmp(&s->v[i - 1], &s->v[i]) >= 0)
            return "a set out of order";
        if (cgroup_owner(cg, &s->v[i]) != m->epoch)
            return "C1: a partition without, or with another owner";
        ++*owned;
    }
    return NULL;
}

static const char *check_state(const struct cgroup *cg, const struct cmember *m)
{
    bool away = m->epoch == CGROUP_EPOCH_AWAY;
    if (m->epoch > cg->assignment_epoch)
        return "C3: a member's epoch";
    if (!timer_armed(&m->session))
        return "C6: a member without a session";
    if (!away && (m->state == CMEMBER_UNREVOKED) != timer_armed(&m->rebalance))
        return "C6: rebalance timer";
    if (m->revoking.n > 0 && m->state != CMEMBER_UNREVOKED && m->state != CMEMBER_UNKNOWN)
        return "partitions to be given up by a member that is not asked to";
    if (cg->state == CGROUP_STABLE && (!part_set_equal(&m->assigned, &m->target) || away))
        return "C4: a member of a Stable group without its target";
    return NULL;
}

static const char *check_member(const struct cgroup *cg, const struct cmember *m, size_t *owned)
{
    if (cgroup_find(cg, m->id) != m)
        return "a member is not found by its id";
    if (!str_is_null(m->instance) && cgroup_find_instance(cg, m->instance) != m)
        return "C5: a static member is not found by its instance";
    for (int i = 0; i < m->reads.n; i++)
        if (!cgroup_find_name(cg, m->reads.v[i]))
            return "C5: a name that is not counted";
    if (part_set_meet(&m->assigned, &m->revoking))
        return "a partition both assigned and to be given up";
    const char *wrong = check_owned(cg, m, &m->assigned, owned);
    if (!wrong)
        wrong = check_owned(cg, m, &m->revoking, owned);
    return wrong ? wrong : check_state(cg, m);
}

static const char *check_members(const struct cgroup *cg)
{
    size_t n = 0, statics = 0, owned = 0, names = 0, counted = 0, noted = 0;
    int classic = 0;
    list_each (l, &cg->member_list) {
        const struct cmember *m = list_entry(l, struct cmember, link);
        const char *wrong = check_member(cg, m, &owned);
        if (wrong)
            return wrong;
        if (l->prev != &cg->member_list &&
            java_cmp(list_entry(l->prev, struct cmember, link)->id, m->id) >= 0)
            return "members out of order";
        n++;
        statics += !str_is_null(m->instance);
        classic += m->classic;
        names += (size_t)m->reads.n;
    }
    hmap_each (h, &cg->names)
        counted += (size_t)hmap_entry(h, struct cname, node)->members;
    hmap_each (h, &cg->owners)
        noted += (size_t)hmap_entry(h, struct cowner, node)->owned;
    if (n != cg->members.n || statics != cg->instances.n || classic != cg->classic_n)
        return "C5: counts of members";
    if (names != counted)
        return "C5: counts of names";
    return owned == noted ? NULL : "C1: owners that are no members";
}

const char *cgroup_check(const struct cgroup *cg)
{
    if (cg->state == CGROUP_DEAD)
        return cg->members.n ? "members of a Dead group" : NULL;
    if ((cg->state == CGROUP_EMPTY) != (cg->members.n == 0))
        return "Empty with members, or the other way round";
    if (cg->assignment_epoch > cg->epoch)
        return "C3: the assignment's epoch";
    return check_members(cg);
}
