/* sim_history.c - see sim_history.h. */
#include "sim_history.h"

#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 8, NOBODY = -1 };

struct piece { /* processed: [from, to) */
    int64_t from, to;
};

struct assignment {
    int32_t generation;
    uint64_t token;
    bool committed; /* something was, by it */
    int owner[PARTITIONS];
    int64_t most[PARTITIONS], doubt[PARTITIONS]; /* committed; least without an answer. -1: none */
};

struct history {
    char group[32];
    struct assignment *v;
    size_t n, cap;
    struct piece *done[PARTITIONS]; /* by `from`, apart from each other */
    size_t done_n[PARTITIONS];
};

struct history *history_new(const char *group)
{
    struct history *h = calloc(1, sizeof(*h));
    snprintf(h->group, sizeof(h->group), "%s", group);
    return h;
}

static struct assignment *assignment_of(struct history *h, int32_t generation, uint64_t token)
{
    for (size_t i = h->n; i-- > 0;)
        if (h->v[i].generation == generation && h->v[i].token == token)
            return &h->v[i];
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 64;
        h->v = realloc(h->v, h->cap * sizeof(*h->v));
    }
    struct assignment *a = &h->v[h->n++];
    *a = (struct assignment){.generation = generation, .token = token};
    for (int i = 0; i < PARTITIONS; i++) {
        a->owner[i] = NOBODY;
        a->most[i] = a->doubt[i] = -1;
    }
    return a;
}

void history_own(struct history *h, int32_t generation, uint64_t token, int member,
                 const int32_t *partitions, int n)
{
    struct assignment *a = assignment_of(h, generation, token);
    for (int i = 0; i < n; i++) {
        int *owner = &a->owner[partitions[i]];
        if (*owner != NOBODY && *owner != member)
            sim_violation("G2: group %s: partition %d belongs to members %d and %d in generation "
                          "%d",
                          h->group, partitions[i], *owner, member, generation);
        *owner = member;
    }
}

void history_processed(struct history *h, int32_t partition, int64_t from, int64_t to)
{
    struct piece *v = h->done[partition];
    size_t n = h->done_n[partition], first = 0, last;
    if (from >= to)
        return;
    while (first < n && v[first].to < from)
        first++;
    for (last = first; last < n && v[last].from <= to; last++) {
        from = v[last].from < from ? v[last].from : from;
        to = v[last].to > to ? v[last].to : to;
    }
    /* first to last become one */
    struct piece *now = malloc((n + 1) * sizeof(*now));
    size_t k = 0;
    for (size_t i = 0; i < first; i++)
        now[k++] = v[i];
    now[k++] = (struct piece){from, to};
    for (size_t i = last; i < n; i++)
        now[k++] = v[i];
    free(v);
    h->done[partition] = now;
    h->done_n[partition] = k;
}

/* What a generation promises to those after it. */
static int64_t promised(const struct assignment *a, int32_t partition)
{
    int64_t most = a->most[partition], doubt = a->doubt[partition];
    return doubt >= 0 && doubt < most ? doubt : most;
}

/* What all before this generation promise; -1 nothing. */
static int64_t floor_of(const struct history *h, int32_t generation, int32_t partition)
{
    int64_t floor = -1;
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].generation < generation && promised(&h->v[i], partition) > floor)
            floor = promised(&h->v[i], partition);
    return floor;
}

void history_found(struct history *h, int32_t generation, int32_t partition, int64_t offset)
{
    int64_t floor = floor_of(h, generation, partition);
    if (offset < floor)
        sim_violation("G3: group %s: partition %d: generation %d finds %lld, before %lld was "
                      "committed",
                      h->group, partition, generation, (long long)offset, (long long)floor);
}

int32_t history_latest(const struct history *h)
{
    int32_t latest = -1;
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].committed && h->v[i].generation > latest)
            latest = h->v[i].generation;
    return latest;
}

void history_committed(struct history *h, int32_t generation, uint64_t token, int32_t partition,
                       int64_t offset, int32_t latest_when_sent)
{
    struct assignment *a = assignment_of(h, generation, token);
    if (latest_when_sent > generation)
        sim_violation("G3: group %s: a commit of generation %d is taken after one of generation %d",
                      h->group, generation, latest_when_sent);
    for (size_t i = 0; i < h->n && !a->committed; i++)
        if (&h->v[i] != a && h->v[i].generation == generation && h->v[i].committed)
            sim_violation("G2: group %s has two assignments in generation %d", h->group,
                          generation);
    a->committed = true;
    int64_t floor = floor_of(h, generation, partition);
    if (offset < floor)
        sim_violation("G3: group %s: partition %d: the commit of %lld in generation %d is taken, "
                      "%lld was committed before",
                      h->group, partition, (long long)offset, generation, (long long)floor);
    if (offset > a->most[partition])
        a->most[partition] = offset;
}

void history_doubtful(struct history *h, int32_t generation, uint64_t token, int32_t partition,
                      int64_t offset)
{
    struct assignment *a = assignment_of(h, generation, token);
    if (a->doubt[partition] < 0 || offset < a->doubt[partition])
        a->doubt[partition] = offset;
}

void history_judge(const struct history *h, int32_t partition, int64_t committed)
{
    int64_t floor = floor_of(h, INT32_MAX, partition);
    const struct piece *first = h->done_n[partition] ? h->done[partition] : NULL;
    if (committed < floor)
        sim_violation("G4: group %s: partition %d: %lld is committed in the end, %lld was",
                      h->group, partition, (long long)committed, (long long)floor);
    if (committed > 0 && (!first || first->from > 0 || first->to < committed))
        sim_violation("G4: group %s: partition %d: %lld is committed, processed was %lld to %lld",
                      h->group, partition, (long long)committed, first ? (long long)first->from : 0,
                      first ? (long long)first->to : 0);
}
