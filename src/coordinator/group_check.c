/* group_check.c - the invariants of a group, one function each. For tests. */
#include "coordinator/group_private.h"

static const char *check_states(const struct group *g)
{
    bool some = g->members.n > 0;
    if ((group_is(g, GROUP_EMPTY) || group_is(g, GROUP_DEAD)) && some)
        return "G1: members of an Empty or Dead group";
    bool agreed = group_is(g, GROUP_STABLE) || group_is(g, GROUP_COMPLETING_REBALANCE);
    if (agreed && (!g->leader || !g->protocol_name))
        return "G1: a generation without leader or protocol";
    if (some != (g->leader != NULL))
        return "G1: leader";
    return NULL;
}

static const char *check_member(const struct group *g, const struct member *m)
{
    if (group_find_member(g, m->id) != m)
        return "a member is not found by its id";
    if (!str_is_null(m->instance) && group_find_instance(g, m->instance) != m)
        return "G5: a static member is not found by its instance";
    if (m->join && m->sync)
        return "G3: two calls of one member";
    if (m->sync && !group_is(g, GROUP_COMPLETING_REBALANCE))
        return "G3: a SyncGroup parked elsewhere";
    if (m->join && !group_is(g, GROUP_PREPARING_REBALANCE) &&
        !(group_is(g, GROUP_STABLE) && !str_is_null(m->instance)))
        return "G3: a JoinGroup parked elsewhere";
    if (!m->join && !m->sync && !timer_armed(&m->timer))
        return "G7: a member that is not waited for";
    if ((m->join && m->join->parked != m) || (m->sync && m->sync->parked != m))
        return "a parked call of somebody else";
    return NULL;
}

static const char *check_members(const struct group *g)
{
    int joins = 0, syncs = 0, pending = 0;
    size_t n = 0, instances = 0;
    list_each (l, &g->member_list) {
        const struct member *m = list_entry(l, struct member, link);
        const char *wrong = check_member(g, m);
        if (wrong)
            return wrong;
        joins += m->join != NULL;
        syncs += m->sync != NULL;
        pending += m->pending_sync;
        instances += !str_is_null(m->instance);
        n++;
    }
    if (joins != g->awaiting_join || syncs != g->awaiting_sync || pending != g->pending_sync)
        return "G2: counts";
    if (n != g->members.n)
        return "list and map of members differ";
    return instances == g->static_members.n ? NULL : "G5: static members";
}

static const char *check_protocols(const struct group *g)
{
    int64_t counted = 0, offered = 0;
    hmap_each (n, &g->protocols) {
        const struct protocol_count *p = hmap_entry(n, struct protocol_count, node);
        if (p->members <= 0)
            return "G4: a protocol that nobody offers";
        counted += p->members;
    }
    list_each (l, &g->member_list) {
        const struct member *m = list_entry(l, struct member, link);
        for (int i = 0; i < m->own.protocols_n; i++) {
            bool again = false;
            for (int j = 0; j < i && !again; j++)
                again = str_eq(m->own.protocols[i].name, m->own.protocols[j].name);
            offered += !again;
        }
    }
    return counted == offered ? NULL : "G4: counts of protocols";
}

static const char *check_timers(const struct group *g)
{
    if (timer_armed(&g->join_timer) && !group_is(g, GROUP_PREPARING_REBALANCE))
        return "a join phase that nobody waits for";
    if (group_is(g, GROUP_PREPARING_REBALANCE) && !timer_armed(&g->join_timer))
        return "a join phase without an end";
    bool syncing = group_is(g, GROUP_COMPLETING_REBALANCE) || group_is(g, GROUP_STABLE);
    if (timer_armed(&g->sync_timer) && !syncing)
        return "a sync timer in the wrong state";
    if (syncing && g->pending_sync > 0 && !timer_armed(&g->sync_timer))
        return "members that never sync are not waited for";
    return NULL;
}

const char *group_check(const struct group *g)
{
    static const char *(*const checks[])(const struct group *g) = {check_states, check_members,
                                                                   check_protocols, check_timers};
    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
        const char *wrong = checks[i](g);
        if (wrong)
            return wrong;
    }
    if (g->consumers && g->members.n > 0)
        return "members of both protocols' kinds";
    const char *wrong = g->consumers ? cgroup_check(g->consumers) : NULL;
    return wrong ? wrong : group_offsets_check(&g->offsets);
}
