/* segment_list.h - the segments of a log as an array that never changes: a reader pins the present
 * one and keeps it as long as it likes, a change publishes another.
 *
 * INVARIANTS  never empty once published; bases strictly increase; the last one is active.
 * THREADS     pin: any, without waiting for more than a few instructions. publish: one at a time
 *             (the log's mutex). */
#ifndef LOG_SEGMENT_LIST_H
#define LOG_SEGMENT_LIST_H

#include "log/segment.h"
#include "log/spin.h"

struct segment_list {
    atomic_int refs;
    int n;
    struct segment *v[]; /* a reference each */
};

struct segment_lists {
    struct spin spin; /* guards taking a reference against the exchange */
    struct segment_list *now;
};

/* Returns shared: segment_list_unpin. */
struct segment_list *segment_lists_pin(struct segment_lists *ls);
void segment_list_unpin(struct segment_list *l); /* NULL is fine */
/* Takes `l`. The old one is unpinned. */
void segment_lists_publish(struct segment_lists *ls, struct segment_list *l);

/* Lists made of parts of others take references of their own; NULL without memory. */
struct segment_list *segment_list_new(struct segment *const *v, int n);
/* The first `keep` of l, then `add` (may be NULL), which stays the caller's to unref. */
struct segment_list *segment_list_head(const struct segment_list *l, int keep, struct segment *add);
/* All but the first `drop` of l. */
struct segment_list *segment_list_tail(const struct segment_list *l, int drop);

/* Index of the segment with the greatest base <= offset; -1 when all are above. */
int segment_list_floor(const struct segment_list *l, int64_t offset);
static inline struct segment *segment_list_active(const struct segment_list *l)
{
    return l->v[l->n - 1];
}

#endif
