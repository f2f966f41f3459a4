/* group_heartbeat.c - Heartbeat and LeaveGroup. */
#include "base/logline.h"
#include "coordinator/group_private.h"

enum { REASON_MAX = 255 };

enum kerr group_heartbeat(struct group *g, int32_t generation, struct str id, struct str instance)
{
    struct member *m;
    if (group_is(g, GROUP_DEAD))
        return KERR_COORDINATOR_NOT_AVAILABLE;
    enum kerr e = group_identify(g, id, instance, &m);
    if (e != KERR_NONE)
        return e;
    if (generation != g->generation)
        return KERR_ILLEGAL_GENERATION;
    member_touch(m);
    return group_is(g, GROUP_PREPARING_REBALANCE) ? KERR_REBALANCE_IN_PROGRESS : KERR_NONE;
}

/* Of a static member the instance is enough: tools remove it so. */
static enum kerr find_leaving(const struct group *g, struct str id, struct str instance,
                              struct member **m)
{
    if (id.len > 0)
        return group_identify(g, id, instance, m);
    *m = str_is_null(instance) ? NULL : group_find_instance(g, instance);
    return *m ? KERR_NONE : KERR_UNKNOWN_MEMBER_ID;
}

enum kerr group_leave(struct group *g, struct str id, struct str instance, struct str reason)
{
    struct member *m;
    if (group_is(g, GROUP_DEAD))
        return KERR_COORDINATOR_NOT_AVAILABLE;
    struct pending_member *p = id.len > 0 ? group_find_pending(g, id) : NULL;
    if (p) {
        group_drop_pending(g, p);
        group_try_complete_join(g);
        return KERR_NONE;
    }
    enum kerr e = find_leaving(g, id, instance, &m);
    if (e != KERR_NONE)
        return e;
    if (reason.len > REASON_MAX)
        reason.len = REASON_MAX;
    say_info(GROUP_TAG, "group %.*s: member %.*s leaves, its reason: %.*s", STR_ARG(g->id),
             STR_ARG(m->id), STR_ARG(str_is_null(reason) ? STR_LIT("not provided") : reason));
    group_remove_member(g, m, "a member left");
    return KERR_NONE;
}
