/* cgroup_reconcile.c - one member's next move from what it has to what it shall have: give up
 * first, take what is free then, and be at the target's epoch once there is nothing left to give
 * up. */
#include <assert.h>
#include <errno.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"

static const unsigned member_moves[] = {
    /* from -> to; a member is Unknown only by loading a record of a later version */
    [CMEMBER_STABLE] = 1u << CMEMBER_STABLE | 1u << CMEMBER_UNREVOKED | 1u << CMEMBER_UNRELEASED,
    [CMEMBER_UNREVOKED] = 1u << CMEMBER_STABLE | 1u << CMEMBER_UNREVOKED | 1u << CMEMBER_UNRELEASED,
    [CMEMBER_UNRELEASED] =
        1u << CMEMBER_STABLE | 1u << CMEMBER_UNREVOKED | 1u << CMEMBER_UNRELEASED,
};

/* The only writer of a member's state after it was made or loaded. */
static void set_state(struct cmember *m, enum cmember_state to)
{
    bool legal = m->state == CMEMBER_UNKNOWN || member_moves[m->state] & 1u << to;
    if (!legal)
        say_error(GROUP_TAG, "consumer group %.*s: member %.*s: an illegal move from %d to %d",
                  STR_ARG(m->cg->g->id), STR_ARG(m->id), (int)m->state, (int)to);
    assert(legal);
    m->state = to;
}

/* All partitions that differ between what a member has and shall have. */
struct difference {
    struct part_set keep, revoke, add;
    bool blocked; /* something that it shall have is another's still */
};

static void difference_free(struct difference *d)
{
    part_set_free(&d->keep);
    part_set_free(&d->revoke);
    part_set_free(&d->add);
}

static int find_difference(const struct cmember *m, struct difference *d)
{
    struct part_set wanted = PART_SET_EMPTY;
    int rc = part_set_common(&m->assigned, &m->target, &d->keep);
    if (!rc)
        rc = part_set_minus(&m->assigned, &d->keep, &d->revoke);
    if (!rc)
        rc = part_set_minus(&m->target, &d->keep, &wanted);
    for (int i = 0; !rc && i < wanted.n; i++) {
        if (cgroup_owner(m->cg, &wanted.v[i]) == -1)
            rc = part_set_add(&d->add, wanted.v[i].topic, wanted.v[i].partition);
        else
            d->blocked = true;
    }
    part_set_free(&wanted);
    return rc;
}

struct next {
    enum cmember_state state;
    int32_t epoch;
    struct part_set assigned, revoking;
};

/* `epoch`: the member's if it must give something up. */
static int find_next(const struct cmember *m, const struct part_set *owned, int32_t epoch,
                     struct next *n)
{
    struct difference d = {0};
    int rc = find_difference(m, &d);
    if (!rc && d.revoke.n > 0 && (!owned || part_set_meet(owned, &d.revoke))) {
        n->state = CMEMBER_UNREVOKED;
        n->epoch = epoch;
        part_set_move(&n->assigned, &d.keep);
        part_set_move(&n->revoking, &d.revoke);
    } else if (!rc) {
        n->state = d.blocked ? CMEMBER_UNRELEASED : CMEMBER_STABLE;
        n->epoch = m->cg->assignment_epoch;
        rc = part_set_union(&d.keep, &d.add, &n->assigned);
    }
    difference_free(&d);
    return rc;
}

static int take(struct cmember *m, struct next *n)
{
    bool same = n->state == m->state && n->epoch == m->epoch &&
                part_set_equal(&n->assigned, &m->assigned) &&
                part_set_equal(&n->revoking, &m->revoking);
    if (same) {
        part_set_free(&n->assigned);
        part_set_free(&n->revoking);
        return 0;
    }
    m->previous_epoch = m->epoch;
    m->epoch = n->epoch;
    set_state(m, n->state);
    int rc = cmember_own(m, &n->assigned, &n->revoking);
    return rc ? rc : 1;
}

int cmember_reconcile(struct cmember *m, const struct part_set *owned)
{
    struct next n = {0};
    int32_t epoch = m->epoch;
    if (m->state == CMEMBER_STABLE && m->epoch == m->cg->assignment_epoch)
        return 0;
    if (m->state == CMEMBER_UNREVOKED) {
        if (!owned || part_set_meet(owned, &m->revoking))
            return 0;
        epoch++; /* it has obeyed, and may have to do so again */
    }
    int rc = find_next(m, owned, epoch, &n);
    if (rc) {
        part_set_free(&n.assigned);
        part_set_free(&n.revoking);
        return rc;
    }
    return take(m, &n);
}
