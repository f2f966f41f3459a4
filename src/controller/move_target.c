/* move_target.c - may a partition be moved to these brokers? */
#include <stdio.h>

#include "controller/controller_private.h"

/* "1,2,3"; of a long list the beginning. */
static const char *ids_text(struct arena *a, struct id_list l)
{
    enum { SHOWN = 50, ROOM = 12 * SHOWN + 8 };
    size_t at = 0;
    char *text = arena_alloc(a, ROOM);
    if (!text)
        return "";
    text[0] = '\0';
    for (int i = 0; i < l.n && i < SHOWN; i++)
        at += (size_t)snprintf(text + at, ROOM - at, "%s%d", i ? "," : "", l.v[i]);
    if (l.n > SHOWN)
        snprintf(text + at, ROOM - at, ",...");
    return text;
}

/* The replicas will be the target and those that were there before the move that is under way. */
static bool drops_all_in_sync(const struct ctl_partition *p, struct id_list target)
{
    for (int i = 0; i < p->isr.n; i++) {
        const struct ctl_replica *r = context_replica(p, p->isr.v[i]);
        if (!r || !r->adding || id_list_has(target, r->broker))
            return false;
    }
    return p->isr.n > 0;
}

const char *move_target_problem(const struct controller *c, const struct ctl_partition *p,
                                struct id_list target, bool live, struct arena *a)
{
    const char *text = NULL;
    if (target.n == 0)
        return "Empty replica list specified in partition reassignment.";
    for (int i = 0; i < target.n && !text; i++)
        if (target.v[i] < 0)
            text = arena_printf(a, "Invalid broker id in replica list: %s", ids_text(a, target));
    if (!text && id_list_has_twice(target, a))
        text = arena_printf(a, "Duplicate replica ids in partition reassignment replica list: %s",
                            ids_text(a, target));
    for (int i = 0; i < target.n && !text && live; i++) {
        const struct ctl_replica *r = context_replica(p, target.v[i]);
        if ((!r || r->adding) && !context_is_live(&c->ctx, target.v[i]))
            text = arena_printf(
                a, "Replica assignment has brokers that are not alive: %d of replica list %s",
                target.v[i], ids_text(a, target));
    }
    if (!text && drops_all_in_sync(p, target))
        text =
            arena_printf(a, "The replicas that are in sync, %s, would not be among its replicas.",
                         ids_text(a, p->isr));
    return text;
}
