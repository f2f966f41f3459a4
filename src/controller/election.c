/* election.c - see election.h. */
#include "controller/election.h"

bool election_first(const struct election *e, struct elected *out)
{
    out->isr_n = 0;
    out->unclean = false;
    for (int i = 0; i < e->n; i++)
        if (e->assignment[i].online)
            out->isr[out->isr_n++] = e->assignment[i].broker;
    if (!out->isr_n)
        return false;
    out->leader = out->isr[0];
    return true;
}

static const struct election_replica *find(const struct election *e, int32_t id)
{
    for (int i = 0; i < e->n; i++)
        if (e->assignment[i].broker == id)
            return &e->assignment[i];
    return NULL;
}

/* The first that may; `most` of the assignment are looked at. */
static bool lead(const struct election *e, bool in_sync, bool staying, int most,
                 struct elected *out)
{
    for (int i = 0; i < e->n && i < most; i++) {
        const struct election_replica *r = &e->assignment[i];
        if (!r->online || (in_sync && !id_list_has(e->isr, r->broker)) || (staying && r->leaving))
            continue;
        out->leader = r->broker;
        return true;
    }
    return false;
}

/* Those that are assigned: a leader that had not heard of it yet may have taken in one that is not
 * any more. Unless there are no others. */
static void keep_isr(const struct election *e, struct elected *out)
{
    bool any = false;
    for (int i = 0; i < e->isr.n; i++)
        any |= find(e, e->isr.v[i]) != NULL;
    for (int i = 0; i < e->isr.n; i++)
        if (!any || find(e, e->isr.v[i]))
            out->isr[out->isr_n++] = e->isr.v[i];
}

/* Those that are online; with `alive`, all but those that stop. */
static void shrink_isr(const struct election *e, bool alive, struct elected *out)
{
    for (int i = 0; i < e->isr.n; i++) {
        const struct election_replica *r = find(e, e->isr.v[i]);
        if (r && (alive ? !r->stopping : r->online))
            out->isr[out->isr_n++] = e->isr.v[i];
    }
}

static bool elect_offline(const struct election *e, struct elected *out)
{
    if (lead(e, true, false, e->n, out)) {
        shrink_isr(e, false, out);
        return true;
    }
    if (!e->unclean || !lead(e, false, false, e->n, out))
        return false;
    out->isr[out->isr_n++] = out->leader;
    out->unclean = true;
    return true;
}

static bool leader_may_stay(const struct election *e)
{
    const struct election_replica *r = find(e, e->leader);
    return r && r->online && id_list_has(e->isr, e->leader);
}

bool election_run(const struct election *e, enum election_strategy strategy, struct elected *out)
{
    out->isr_n = 0;
    out->unclean = false;
    switch (strategy) {
    case ELECT_REASSIGNED:
        keep_isr(e, out);
        return lead(e, true, true, e->n, out);
    case ELECT_PREFERRED:
        keep_isr(e, out);
        return lead(e, true, false, 1, out);
    case ELECT_KEEP:
        keep_isr(e, out);
        out->leader = e->leader;
        return true;
    case ELECT_TAKEN_OVER:
        if (!leader_may_stay(e))
            return elect_offline(e, out);
        shrink_isr(e, false, out);
        out->leader = e->leader;
        return true;
    case ELECT_SHUTDOWN:
        shrink_isr(e, true, out);
        return lead(e, true, false, e->n, out);
    default:
        return elect_offline(e, out);
    }
}
