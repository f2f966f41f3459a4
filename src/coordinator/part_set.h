/* part_set.h - a set of partitions by topic id: what a member owns, gives up, or shall have.
 *
 *   v[]  in order of topic id, then partition; none twice
 *
 * Adding is appending: part_set_add keeps no order, part_set_sort makes the set of it. All else
 * wants sets.
 *
 * OWNERSHIP  owns its array. Failures of memory are returned; the set is as before then. */
#ifndef COORDINATOR_PART_SET_H
#define COORDINATOR_PART_SET_H

#include <stdbool.h>

#include "base/str.h"

struct part {
    struct uuid topic;
    int32_t partition;
};

struct part_set {
    struct part *v;
    int n, cap;
};

#define PART_SET_EMPTY ((struct part_set){0})

void part_set_free(struct part_set *s); /* empty afterwards */
int part_cmp(const struct part *a, const struct part *b);
/* 0 or -ENOMEM. */
int part_set_add(struct part_set *s, struct uuid topic, int32_t partition);
/* Into order, each once. */
void part_set_sort(struct part_set *s);
bool part_set_has(const struct part_set *s, const struct part *p);
int part_set_find(const struct part_set *s, const struct part *p); /* its place, -1 = not there */
bool part_set_equal(const struct part_set *a, const struct part_set *b);
/* Have they one in common? */
bool part_set_meet(const struct part_set *a, const struct part_set *b);
bool part_set_within(const struct part_set *a, const struct part_set *in);
/* *out must be empty. 0 or -ENOMEM. */
int part_set_copy(const struct part_set *s, struct part_set *out);
int part_set_common(const struct part_set *a, const struct part_set *b, struct part_set *out);
int part_set_minus(const struct part_set *a, const struct part_set *b, struct part_set *out);
int part_set_union(const struct part_set *a, const struct part_set *b, struct part_set *out);
/* Moves: *to is freed, *from is empty afterwards. */
void part_set_move(struct part_set *to, struct part_set *from);

/* Runs of one topic: for (int i = 0, end; i < s->n; i = end) { end = part_set_run(s, i); ... } */
int part_set_run(const struct part_set *s, int from);
/* How many topics. */
int part_set_topics(const struct part_set *s);

#endif
