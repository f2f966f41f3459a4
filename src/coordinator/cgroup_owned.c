/* cgroup_owned.c - what a member says that it owns. What counts of it is which of its own
 * partitions it has still, and whether it names any that are not; so no list of a client is kept or
 * sorted, however long it is. Who names more partitions than it can own does not tell the truth: it
 * is taken to have all of its own, since what it has given up must be beyond doubt. */
#include <errno.h>
#include <stdlib.h>

#include "coordinator/cgroup_private.h"

int cowned_begin(struct cowned *o, const struct cmember *m)
{
    int n = m->assigned.n + m->revoking.n;
    *o = (struct cowned){.m = m, .left = n, .has = calloc((size_t)n + 1, sizeof(*o->has))};
    return o->has ? 0 : -ENOMEM;
}

void cowned_free(struct cowned *o)
{
    free(o->has);
    o->has = NULL;
    part_set_free(&o->parts);
}

/* Where the partition is among the member's own; NULL = it is not. */
static bool *place_of(const struct cowned *o, const struct part *p)
{
    int at = part_set_find(&o->m->assigned, p);
    if (at >= 0)
        return &o->has[at];
    at = part_set_find(&o->m->revoking, p);
    return at >= 0 ? &o->has[o->m->assigned.n + at] : NULL;
}

static bool too_many(struct cowned *o)
{
    o->strange = true;
    memset(o->has, true, (size_t)(o->m->assigned.n + o->m->revoking.n));
    return false;
}

bool cowned_say(struct cowned *o, struct uuid topic, const int32_t *partitions, int32_t n)
{
    if (n > o->left)
        return too_many(o);
    o->left -= n;
    for (int32_t i = 0; i < n; i++) {
        struct part p = {topic, partitions[i]};
        bool *has = place_of(o, &p);
        o->looks++;
        if (has && !*has)
            *has = true;
        else
            o->strange = true;
    }
    return true;
}

/* Those of a set that are marked. */
static int take(const struct part_set *s, const bool *has, struct part_set *out)
{
    for (int i = 0; i < s->n; i++)
        if (has[i] && part_set_add(out, s->v[i].topic, s->v[i].partition) != 0)
            return -ENOMEM;
    return 0;
}

int cowned_end(struct cowned *o)
{
    int rc = take(&o->m->assigned, o->has, &o->parts);
    if (!rc)
        rc = take(&o->m->revoking, o->has + o->m->assigned.n, &o->parts);
    part_set_sort(&o->parts);
    return rc;
}
