/* assignor_sticky_equal.c - sticky assignment when all members want the same topics: everybody
 * keeps what fits a fair share, the rest is dealt. */
#include <stdlib.h>
#include <string.h>

#include "client/assignor_sticky.h"

struct ring { /* of members; room for all */
    int *v;
    int n;
};

struct dealing {
    struct sticky *s;
    int least, most;         /* a fair share */
    int above, above_wanted; /* members that have `most`; that may, when it is more than `least` */
    int *count;              /* by member */
    int *revoked_from;       /* by partition: it had to give it up; -1 */
    struct ring below;       /* have less than the least */
    struct ring exact;       /* have the least and may get one more */
};

/* By partition number, then topic. */
static int keep_cmp(const void *a, const void *b, void *arg)
{
    const struct sticky *s = arg;
    int x = *(const int *)a, y = *(const int *)b;
    int px = sticky_partition(s, x), py = sticky_partition(s, y);
    return px != py ? px - py : s->topic_of[x] - s->topic_of[y];
}

static void reached_most(struct dealing *d)
{
    if (++d->above == d->above_wanted)
        d->exact.n = 0;
}

static void keep_share(struct dealing *d, int member, int *mine, int n)
{
    struct sticky *s = d->s;
    int kept;
    qsort_r(mine, (size_t)n, sizeof *mine, keep_cmp, s);
    if (n < d->least) {
        kept = n;
        d->below.v[d->below.n++] = member;
    } else if (n >= d->most && d->above < d->above_wanted) {
        kept = d->most;
        reached_most(d);
    } else {
        kept = d->least;
        if (d->above < d->above_wanted)
            d->exact.v[d->exact.n++] = member;
    }
    for (int i = 0; i < n; i++) {
        if (i < kept)
            s->result[mine[i]] = member;
        else
            d->revoked_from[mine[i]] = member;
    }
    d->count[member] = kept;
}

static void remove_at(struct ring *r, int at)
{
    memmove(r->v + at, r->v + at + 1, (size_t)(r->n - at - 1) * sizeof *r->v);
    r->n--;
}

/* The member for the next free partition. */
static int next_member(struct dealing *d, int *turn)
{
    if (d->below.n > 0) {
        if (*turn >= d->below.n)
            *turn = 0;
        return d->below.v[(*turn)++];
    }
    if (d->exact.n == 0)
        return -1;
    int member = d->exact.v[0];
    remove_at(&d->exact, 0);
    return member;
}

static void deal(struct dealing *d)
{
    struct sticky *s = d->s;
    int turn = 0;
    for (int p = 0; p < s->parts_n; p++) {
        if (s->result[p] >= 0)
            continue;
        bool below = d->below.n > 0;
        int member = next_member(d, &turn);
        if (member < 0)
            return;
        s->result[p] = member;
        s->transferred[p] =
            s->doubly[p] || (d->revoked_from[p] >= 0 && d->revoked_from[p] != member);
        d->count[member]++;
        if (below && d->count[member] == d->least) {
            remove_at(&d->below, --turn);
            d->exact.v[d->exact.n++] = member;
        } else if (!below) {
            reached_most(d);
        }
    }
}

static int *filled(struct sticky *s, int n, int value)
{
    int *v = arena_array(&s->mem, int, (size_t)n);
    for (int i = 0; v && i < n; i++)
        v[i] = value;
    return v;
}

bool sticky_equal(struct sticky *s)
{
    if (s->members_n == 0)
        return true;
    struct dealing d = {.s = s,
                        .least = s->parts_n / s->members_n,
                        .most = (s->parts_n + s->members_n - 1) / s->members_n,
                        .above_wanted = s->parts_n % s->members_n,
                        .count = filled(s, s->members_n, 0),
                        .revoked_from = filled(s, s->parts_n, -1),
                        .below = {filled(s, s->members_n, 0), 0},
                        .exact = {filled(s, 2 * s->members_n, 0), 0}};
    int *mine = filled(s, s->parts_n, 0);
    if (!d.count || !d.revoked_from || !d.below.v || !d.exact.v || !mine)
        return false;
    int at = 0;
    for (int m = 0; m < s->members_n; m++) {
        int n = 0;
        for (; at < s->claims_n && s->claims[at].member == m; at++)
            if (s->owner[s->claims[at].part] == m)
                mine[n++] = s->claims[at].part;
        keep_share(&d, m, mine, n);
    }
    deal(&d);
    return true;
}
