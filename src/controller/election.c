/* election.c - see election.h. */
#include "controller/election.h"

bool election_first(const struct election *e, struct elected *out)
{
    out->isr_n = 0;
    out->unclean = false;
    for (int i = 0; i < e->assignment.n; i++)
        if (e->online[i])
            out->isr[out->isr_n++] = e->assignment.v[i];
    if (!out->isr_n)
        return false;
    out->leader = out->isr[0];
    return true;
}

static bool is_online(const struct election *e, int32_t id)
{
    for (int i = 0; i < e->assignment.n; i++)
        if (e->assignment.v[i] == id)
            return e->online[i];
    return false;
}

static bool lead(const struct election *e, bool in_sync, struct elected *out)
{
    for (int i = 0; i < e->assignment.n; i++)
        if (e->online[i] && (!in_sync || id_list_has(e->isr, e->assignment.v[i]))) {
            out->leader = e->assignment.v[i];
            return true;
        }
    return false;
}

bool election_offline(const struct election *e, struct elected *out)
{
    out->isr_n = 0;
    out->unclean = false;
    if (lead(e, true, out)) {
        for (int i = 0; i < e->isr.n; i++)
            if (is_online(e, e->isr.v[i]))
                out->isr[out->isr_n++] = e->isr.v[i];
        return true;
    }
    if (!e->unclean || !lead(e, false, out))
        return false;
    out->isr[out->isr_n++] = out->leader;
    out->unclean = true;
    return true;
}
