/* timer_heap.c - a pairing heap. A node's children are a list: `child` is the first, `next` the one
 * behind, and `back` leads to the one in front or, from the first, to the parent.
 *
 * INVARIANT  no node is sooner than its parent. */
#include "base/timer_heap.h"

static bool sooner(const struct timer *a, const struct timer *b)
{
    if (a->deadline_ms != b->deadline_ms)
        return a->deadline_ms < b->deadline_ms;
    return a->order < b->order;
}

/* Joins two trees; either may be NULL. Neither is in a list. */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (sooner(b, a)) {
        struct timer *t = a;
        a = b;
        b = t;
    }
    b->back = a;
    b->next = a->child;
    if (a->child)
        a->child->back = b;
    a->child = b;
    return a;
}

/* Joins a list of children: pairs from the left, then the pairs from the right. The two passes are
 * what makes removal logarithmic on average. */
static struct timer *meld_children(struct timer *first)
{
    struct timer *pairs = NULL;
    while (first) {
        struct timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->back = NULL;
        if (b)
            b->next = b->back = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    struct timer *all = NULL;
    while (pairs) {
        struct timer *t = pairs;
        pairs = t->next;
        t->next = NULL;
        all = meld(all, t);
    }
    return all;
}

void timer_heap_remove(struct timer_heap *h, struct timer *t)
{
    if (!t->armed)
        return;
    struct timer *rest = meld_children(t->child);
    if (t == h->root) {
        h->root = rest;
    } else {
        if (t->back->child == t)
            t->back->child = t->next;
        else
            t->back->next = t->next;
        if (t->next)
            t->next->back = t->back;
        h->root = meld(h->root, rest);
    }
    t->child = t->next = t->back = NULL;
    t->armed = false;
}

void timer_heap_put(struct timer_heap *h, struct timer *t, int64_t deadline_ms)
{
    timer_heap_remove(h, t);
    t->deadline_ms = deadline_ms;
    t->order = h->started++;
    t->armed = true;
    h->root = meld(h->root, t);
}

int64_t timer_deadline(const struct clock *clock, int64_t delay_ms)
{
    int64_t now_ns = clock_mono_ns(clock);
    if (delay_ms <= 0)
        return now_ns / 1000000;
    int64_t now_ms = (now_ns + 999999) / 1000000;
    return delay_ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + delay_ms;
}
