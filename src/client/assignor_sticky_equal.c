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

/* To a member of `below` (its place there is `at`), or of `exact` (at < 0: it was taken off). */
static void give(struct dealing *d, int member, int part, int at)
{
    struct sticky *s = d->s;
    s->result[part] = member;
    s->transferred[part] =
        s->doubly[part] || (d->revoked_from[part] >= 0 && d->revoked_from[part] != member);
    d->count[member]++;
    if (at < 0) {
        reached_most(d);
    } else if (d->count[member] == d->least) {
        remove_at(&d->below, at);
        d->exact.v[d->exact.n++] = member;
    }
}

/* ---- racks: before the rest is dealt ---- */

struct near_part {
    int part, members;
};

static int near_cmp(const void *a, const void *b)
{
    const struct near_part *x = a, *y = b;
    return x->members != y->members ? x->members - y->members : x->part - y->part;
}

/* The first place from `turn` on, in the round, whose member is near; -1. */
static int find_near(const struct dealing *d, const struct ring *r, int turn, int part)
{
    for (int i = 0; i < r->n; i++)
        if (sticky_is_near(d->s, r->v[(turn + i) % r->n], part))
            return (turn + i) % r->n;
    return -1;
}

static void deal_one_near(struct dealing *d, int part, int *turn)
{
    int at = find_near(d, &d->below, *turn, part);
    if (at >= 0) {
        int left = d->below.n;
        give(d, d->below.v[at], part, at);
        *turn = d->below.n == 0 ? 0 : (at + (d->below.n == left)) % d->below.n;
        return;
    }
    at = d->above < d->above_wanted ? find_near(d, &d->exact, 0, part) : -1;
    if (at >= 0) {
        int member = d->exact.v[at];
        remove_at(&d->exact, at);
        give(d, member, part, -1);
    }
}

/* Those with few members to choose from first. What nobody near has room for goes back to the
 * member that had it, if that one has room. */
static bool deal_near(struct dealing *d)
{
    struct sticky *s = d->s;
    struct near_part *parts = arena_array(&s->mem, struct near_part, (size_t)s->parts_n);
    int n = 0, turn = 0;
    if (!parts)
        return false;
    for (int p = 0; p < s->parts_n; p++)
        if (s->result[p] < 0)
            parts[n++] = (struct near_part){p, sticky_count_near(s, p)};
    qsort(parts, (size_t)n, sizeof *parts, near_cmp);
    for (int i = 0; i < n; i++)
        if (parts[i].members > 0)
            deal_one_near(d, parts[i].part, &turn);
    for (int p = 0; p < s->parts_n; p++)
        for (int at = 0; s->result[p] < 0 && at < d->below.n; at++)
            if (d->below.v[at] == d->revoked_from[p])
                give(d, d->below.v[at], p, at);
    return true;
}

/* ---- the rest ---- */

static void deal(struct dealing *d)
{
    struct sticky *s = d->s;
    int turn = 0;
    for (int p = 0; p < s->parts_n; p++) {
        if (s->result[p] >= 0)
            continue;
        int left = d->below.n;
        int member = next_member(d, &turn);
        if (member < 0)
            return;
        give(d, member, p, left > 0 ? turn - 1 : -1);
        turn -= d->below.n < left;
    }
}

bool sticky_equal(struct sticky *s)
{
    if (s->members_n == 0)
        return true;
    struct dealing d = {.s = s,
                        .least = s->parts_n / s->members_n,
                        .most = (s->parts_n + s->members_n - 1) / s->members_n,
                        .above_wanted = s->parts_n % s->members_n,
                        .count = sticky_filled(s, s->members_n, 0),
                        .revoked_from = sticky_filled(s, s->parts_n, -1),
                        .below = {sticky_filled(s, s->members_n, 0), 0},
                        .exact = {sticky_filled(s, 2 * s->members_n, 0), 0}};
    int *mine = sticky_filled(s, s->parts_n, 0);
    if (!d.count || !d.revoked_from || !d.below.v || !d.exact.v || !mine)
        return false;
    int at = 0;
    for (int m = 0; m < s->members_n; m++) {
        int n = 0;
        for (; at < s->claims_n && s->claims[at].member == m; at++) {
            int part = s->claims[at].part;
            if (s->owner[part] == m && sticky_is_misplaced(s, m, part))
                d.revoked_from[part] = m;
            else if (s->owner[part] == m)
                mine[n++] = part;
        }
        keep_share(&d, m, mine, n);
    }
    if (s->racks && !deal_near(&d))
        return false;
    deal(&d);
    return true;
}
