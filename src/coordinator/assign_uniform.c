/* assign_uniform.c - uniform, when all members read the same topics: everyone keeps of its former
 * partitions as many as are its share, the rest is dealt out to those that lack some. */
#include <errno.h>
#include <stdlib.h>

#include "coordinator/assignor.h"

struct dealing {
    struct assign_spec *spec;
    int64_t *first;        /* of each topic: its first partition's place in `taken` */
    bool *taken;           /* by the former targets */
    struct part_set spare; /* in the order in which they are dealt */
};

static int by_id(const void *key, const void *topic)
{
    const struct assign_topic *const *t = topic;
    return memcmp(((const struct uuid *)key)->b, (*t)->id.b, 16);
}

static int order_id(const void *a, const void *b)
{
    return by_id(&(*(const struct assign_topic *const *)a)->id, b);
}

/* Partitions of a former target that still exist, topic by topic in order of name. */
struct kept {
    int topic;
    int from, to; /* in the former target */
};

static int order_topic(const void *a, const void *b)
{
    return ((const struct kept *)a)->topic - ((const struct kept *)b)->topic;
}

static int runs_of(const struct assign_spec *s, const struct assign_topic **ids,
                   const struct part_set *old, struct kept *runs)
{
    int n = 0;
    for (int i = 0, end; i < old->n; i = end) {
        end = part_set_run(old, i);
        const struct assign_topic **t =
            s->topics_n ? bsearch(&old->v[i].topic, ids, (size_t)s->topics_n, sizeof(*ids), by_id)
                        : NULL;
        int last = end;
        while (t && last > i && old->v[last - 1].partition >= (*t)->partitions)
            last--;
        if (t && last > i)
            runs[n++] = (struct kept){(int)(*t - s->topics), i, last};
    }
    if (n > 1)
        qsort(runs, (size_t)n, sizeof(*runs), order_topic);
    return n;
}

/* What member m keeps of its former target; the rest is spare. Returns how much more it may have,
 * or -ENOMEM. */
static int64_t keep(struct dealing *d, struct assign_member *m, const struct kept *runs, int n,
                    int64_t quota)
{
    for (int r = 0; r < n; r++)
        for (int i = runs[r].from; i < runs[r].to; i++) {
            const struct part *p = &m->old->v[i];
            struct part_set *to = quota > 0 ? &m->out : &d->spare;
            if (part_set_add(to, p->topic, p->partition) != 0)
                return -ENOMEM;
            quota -= quota > 0;
        }
    return quota;
}

static int note_taken(struct dealing *d, const struct assign_member *m, const struct kept *runs,
                      int n)
{
    for (int r = 0; r < n; r++)
        for (int i = runs[r].from; i < runs[r].to; i++)
            d->taken[d->first[runs[r].topic] + m->old->v[i].partition] = true;
    return 0;
}

static int gather_free(struct dealing *d)
{
    const struct assign_spec *s = d->spec;
    for (int t = 0; t < s->topics_n; t++)
        for (int32_t p = 0; p < s->topics[t].partitions; p++)
            if (!d->taken[d->first[t] + p] && part_set_add(&d->spare, s->topics[t].id, p) != 0)
                return -ENOMEM;
    return 0;
}

/* Everyone's runs once to see what is free, and once to share. */
static int share(struct dealing *d, const struct assign_topic **ids, struct kept *runs,
                 int64_t *lacks, int64_t total)
{
    struct assign_spec *s = d->spec;
    int64_t q = total / s->members_n, more = total % s->members_n;
    for (int i = 0; i < s->members_n; i++)
        note_taken(d, &s->members[i], runs, runs_of(s, ids, s->members[i].old, runs));
    int rc = gather_free(d);
    for (int i = 0; !rc && i < s->members_n; i++) {
        struct assign_member *m = &s->members[i];
        lacks[i] = keep(d, m, runs, runs_of(s, ids, m->old, runs), q + (i < more));
        rc = lacks[i] < 0 ? -ENOMEM : 0;
    }
    int at = 0;
    for (int i = 0; !rc && i < s->members_n; i++)
        for (; !rc && lacks[i] > 0 && at < d->spare.n; lacks[i]--, at++)
            rc = part_set_add(&s->members[i].out, d->spare.v[at].topic, d->spare.v[at].partition);
    for (int i = 0; !rc && i < s->members_n; i++)
        part_set_sort(&s->members[i].out);
    return rc;
}

static int most_runs(const struct assign_spec *s)
{
    int most = 0;
    for (int i = 0; i < s->members_n; i++) {
        int n = part_set_topics(s->members[i].old);
        most = n > most ? n : most;
    }
    return most;
}

int assign_uniform_same(struct assign_spec *s)
{
    struct dealing d = {.spec = s};
    int64_t total = 0;
    if (s->members_n == 0)
        return 0;
    d.first = calloc((size_t)s->topics_n + 1, sizeof(*d.first));
    const struct assign_topic **ids = calloc((size_t)s->topics_n + 1, sizeof(*ids));
    struct kept *runs = calloc((size_t)most_runs(s) + 1, sizeof(*runs));
    int64_t *lacks = calloc((size_t)s->members_n, sizeof(*lacks));
    for (int t = 0; d.first && ids && t < s->topics_n; t++) {
        d.first[t] = total;
        total += s->topics[t].partitions;
        ids[t] = &s->topics[t];
    }
    d.taken = calloc((size_t)total + 1, sizeof(*d.taken));
    int rc = d.first && ids && runs && lacks && d.taken ? 0 : -ENOMEM;
    if (!rc && s->topics_n > 1)
        qsort(ids, (size_t)s->topics_n, sizeof(*ids), order_id);
    if (!rc)
        rc = share(&d, ids, runs, lacks, total);
    part_set_free(&d.spare);
    free(d.first);
    free(d.taken);
    free(ids);
    free(runs);
    free(lacks);
    return rc;
}
