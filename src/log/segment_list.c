#include "log/segment_list.h"

#include <stdlib.h>

struct segment_list *segment_lists_pin(struct segment_lists *ls)
{
    spin_lock(&ls->spin);
    struct segment_list *l = ls->now;
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    spin_unlock(&ls->spin);
    return l;
}

void segment_list_unpin(struct segment_list *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < l->n; i++)
        segment_unref(l->v[i]);
    free(l);
}

void segment_lists_publish(struct segment_lists *ls, struct segment_list *l)
{
    spin_lock(&ls->spin);
    struct segment_list *old = ls->now;
    ls->now = l;
    spin_unlock(&ls->spin);
    segment_list_unpin(old);
}

static struct segment_list *list_of(int n)
{
    struct segment_list *l = malloc(sizeof(*l) + (size_t)n * sizeof(l->v[0]));
    if (!l)
        return NULL;
    atomic_init(&l->refs, 1);
    l->n = n;
    return l;
}

struct segment_list *segment_list_new(struct segment *const *v, int n)
{
    struct segment_list *l = list_of(n);
    for (int i = 0; l && i < n; i++)
        l->v[i] = segment_ref(v[i]);
    return l;
}

struct segment_list *segment_list_head(const struct segment_list *l, int keep, struct segment *add)
{
    struct segment_list *out = list_of(keep + (add != NULL));
    if (!out)
        return NULL;
    for (int i = 0; i < keep; i++)
        out->v[i] = segment_ref(l->v[i]);
    if (add)
        out->v[keep] = segment_ref(add);
    return out;
}

struct segment_list *segment_list_tail(const struct segment_list *l, int drop)
{
    return segment_list_new(l->v + drop, l->n - drop);
}

int segment_list_floor(const struct segment_list *l, int64_t offset)
{
    int lo = -1, hi = l->n - 1; /* v[lo] is at or below offset */
    while (lo < hi) {
        int mid = lo + (hi - lo + 1) / 2;
        if (l->v[mid]->base <= offset)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}
