/* assignor_sticky_uneven.c - sticky assignment when members want different topics: free partitions
 * go to the least loaded, then partitions move one by one while that makes it fairer. */
#include <stdlib.h>
#include <string.h>

#include "client/assignor_sticky.h"

struct uneven {
    struct sticky *s;
    int *cur;        /* = s->result: owner by partition, -1 */
    int *count;      /* by member */
    int *could;      /* by member: partitions of the topics it wants */
    bool *aside;     /* members that cannot take part in moves */
    int *prev;       /* by partition: the claimant before the newest generation; -1 */
    int *moved_from; /* by partition: whose it was before moves; -1 */
    int *sorted;     /* partitions: few subscribers first */
    int sorted_n;
    bool must_revoke; /* some claim is on a topic not wanted any more */
};

static int sorted_cmp(const void *a, const void *b, void *arg)
{
    const struct sticky *s = arg;
    int x = *(const int *)a, y = *(const int *)b;
    int sx = s->subscribers[s->topic_of[x]], sy = s->subscribers[s->topic_of[y]];
    return sx != sy ? sx - sy : x - y;
}

static bool begin(struct uneven *u)
{
    struct sticky *s = u->s;
    u->cur = s->result;
    u->count = sticky_filled(s, s->members_n, 0);
    u->could = sticky_filled(s, s->members_n, 0);
    u->aside = arena_array(&s->mem, bool, (size_t)s->members_n);
    u->prev = sticky_filled(s, s->parts_n, -1);
    u->moved_from = sticky_filled(s, s->parts_n, -1);
    u->sorted = sticky_filled(s, s->parts_n, 0);
    if (!u->count || !u->could || !u->aside || !u->prev || !u->moved_from || !u->sorted)
        return false;
    for (int p = 0; p < s->parts_n; p++)
        if (s->subscribers[s->topic_of[p]] > 0)
            u->sorted[u->sorted_n++] = p;
    qsort_r(u->sorted, (size_t)u->sorted_n, sizeof *u->sorted, sorted_cmp, s);
    for (int m = 0; m < s->members_n; m++)
        for (int t = 0; t < s->topics_n; t++)
            u->could[m] += sticky_wants(s, m, t) ? s->topics[t].partitions : 0;
    return true;
}

static void take_claims(struct uneven *u)
{
    struct sticky *s = u->s;
    int32_t *prev_generation = sticky_filled(s, s->parts_n, INT32_MIN);
    for (int i = 0; i < s->claims_n; i++) {
        const struct sticky_claim *c = &s->claims[i];
        if (prev_generation && c->generation < s->newest &&
            c->generation > prev_generation[c->part]) {
            u->prev[c->part] = c->member;
            prev_generation[c->part] = c->generation;
        }
        if (s->owner[c->part] != c->member)
            continue;
        if (sticky_wants(s, c->member, s->topic_of[c->part]) &&
            !sticky_is_misplaced(s, c->member, c->part)) {
            u->cur[c->part] = c->member;
            u->count[c->member]++;
        } else {
            u->must_revoke = true;
        }
    }
    /* A claim on what is not wanted any more is no reason to give it back. */
    for (int p = 0; p < s->parts_n; p++)
        if (u->prev[p] >= 0 && !sticky_wants(s, u->prev[p], s->topic_of[p]))
            u->prev[p] = -1;
}

/* The least loaded subscriber that takes part; -1. */
static int least_loaded(const struct uneven *u, int p, bool near_only)
{
    int best = -1, topic = u->s->topic_of[p];
    for (int m = 0; m < u->s->members_n; m++)
        if (!u->aside[m] && sticky_wants(u->s, m, topic) &&
            (best < 0 || u->count[m] < u->count[best]) &&
            (!near_only || sticky_is_near(u->s, m, p)))
            best = m;
    return best;
}

/* The least loaded one, but rather the one that had to give it up for its rack, if equally so. */
static int place_for(const struct uneven *u, int p)
{
    int best = least_loaded(u, p, false), had = u->s->owner[p];
    bool may = u->s->racks && had >= 0 && sticky_wants(u->s, had, u->s->topic_of[p]);
    return may && u->count[had] == u->count[best] ? had : best;
}

static void take(struct uneven *u, int p, int member)
{
    u->cur[p] = member;
    u->count[member]++;
}

struct near_part {
    int part, members, place;
};

static int near_cmp(const void *a, const void *b)
{
    const struct near_part *x = a, *y = b;
    return x->members != y->members ? x->members - y->members : x->place - y->place;
}

/* Racks decide: what has members near to it goes to them, few of these first. */
static bool assign_near(struct uneven *u, const int *free_parts, int n)
{
    struct near_part *parts = arena_array(&u->s->mem, struct near_part, (size_t)n);
    if (!parts)
        return false;
    for (int i = 0; i < n; i++)
        parts[i] = (struct near_part){free_parts[i], sticky_count_near(u->s, free_parts[i]), i};
    qsort(parts, (size_t)n, sizeof *parts, near_cmp);
    for (int i = 0; i < n; i++)
        if (parts[i].members > 0)
            take(u, parts[i].part, least_loaded(u, parts[i].part, true));
    return true;
}

/* Returns how many, in `free_parts`, in order; -1 without memory. */
static int assign_free(struct uneven *u, int *free_parts)
{
    int n = 0;
    for (int i = 0; i < u->sorted_n; i++)
        if (u->cur[u->sorted[i]] < 0)
            free_parts[n++] = u->sorted[i];
    if (u->s->racks && !assign_near(u, free_parts, n))
        return -1;
    for (int i = 0; i < n; i++)
        if (u->cur[free_parts[i]] < 0)
            take(u, free_parts[i], place_for(u, free_parts[i]));
    return n;
}

static bool is_movable(const struct uneven *u, int p)
{
    return u->s->subscribers[u->s->topic_of[p]] >= 2;
}

/* Members that have all they could, none of it movable, stand aside. */
static void set_aside(struct uneven *u)
{
    for (int m = 0; m < u->s->members_n; m++)
        u->aside[m] = u->count[m] == u->could[m];
    for (int p = 0; p < u->s->parts_n; p++)
        if (u->cur[p] >= 0 && is_movable(u, p))
            u->aside[u->cur[p]] = false;
}

static bool could_take_one(const struct uneven *u, int m)
{
    const struct sticky *s = u->s;
    for (int t = 0; t < s->topics_n; t++)
        for (int p = s->first[t]; sticky_wants(s, m, t) && p < s->first[t + 1]; p++)
            if (u->cur[p] >= 0 && u->cur[p] != m && !u->aside[u->cur[p]] &&
                u->count[u->cur[p]] >= u->count[m] + 2)
                return true;
    return false;
}

static bool is_balanced(const struct uneven *u)
{
    int least = INT32_MAX, most = 0;
    for (int m = 0; m < u->s->members_n; m++)
        if (!u->aside[m]) {
            least = u->count[m] < least ? u->count[m] : least;
            most = u->count[m] > most ? u->count[m] : most;
        }
    if (most - least <= 1 || least == INT32_MAX)
        return true;
    for (int m = 0; m < u->s->members_n; m++)
        if (!u->aside[m] && u->count[m] + 2 <= most && u->count[m] < u->could[m] &&
            could_take_one(u, m))
            return false;
    return true;
}

/* When a partition of the topic went the other way before, that one goes back instead. */
static int partition_to_move(const struct uneven *u, int p, int to)
{
    const struct sticky *s = u->s;
    int from = u->moved_from[p] >= 0 ? u->moved_from[p] : u->cur[p];
    int t = s->topic_of[p];
    for (int q = s->first[t]; q < s->first[t + 1]; q++)
        if (u->moved_from[q] == to && u->cur[q] == from)
            return q;
    return p;
}

static void move(struct uneven *u, int p, int to)
{
    p = partition_to_move(u, p, to);
    int from = u->cur[p];
    if (u->moved_from[p] < 0)
        u->moved_from[p] = from;
    else if (u->moved_from[p] == to)
        u->moved_from[p] = -1; /* back home */
    u->count[from]--;
    u->count[to]++;
    u->cur[p] = to;
}

/* Where the partition had better be; -1: it stays. */
static int better_place(const struct uneven *u, int p)
{
    int owner = u->cur[p], prev = u->prev[p];
    if (owner < 0 || u->aside[owner])
        return -1;
    if (prev >= 0 && !u->aside[prev] && u->count[owner] >= u->count[prev] + 2)
        return prev;
    for (int near = u->s->racks && sticky_is_near(u->s, owner, p); near >= 0; near--) {
        int least = least_loaded(u, p, near);
        if (least >= 0 && u->count[owner] >= u->count[least] + 2)
            return least;
    }
    return -1;
}

static bool reassign(struct uneven *u, const int *parts, int n)
{
    bool moved_any = false, moved = true;
    /* Each pass makes it fairer, but for moves that were turned into another's way back: so many
     * passes are enough. */
    for (int pass = 0; moved && pass <= u->s->parts_n; pass++) {
        moved = false;
        for (int i = 0; i < n && !is_balanced(u); i++) {
            int to = is_movable(u, parts[i]) ? better_place(u, parts[i]) : -1;
            if (to < 0)
                continue;
            move(u, parts[i], to);
            moved = moved_any = true;
        }
    }
    return moved_any;
}

/* Sum of the differences of all pairs: 0 is perfect. */
static int64_t unfairness(const struct uneven *u, const int *count)
{
    int64_t sum = 0;
    for (int a = 0; a < u->s->members_n; a++)
        for (int b = a + 1; !u->aside[a] && b < u->s->members_n; b++)
            if (!u->aside[b])
                sum += abs(count[a] - count[b]);
    return sum;
}

/* ---- racks: no move without gain ---- */

struct worth {
    int near;
    int64_t unfair;
};

static bool judge(struct uneven *u, const int *owner, struct worth *w)
{
    const struct sticky *s = u->s;
    int *count = sticky_filled(u->s, s->members_n, 0);
    if (!count)
        return false;
    *w = (struct worth){0, 0};
    for (int p = 0; p < s->parts_n; p++) {
        count[owner[p]]++;
        w->near += sticky_is_near(s, owner[p], p);
    }
    memset(u->aside, 0, (size_t)s->members_n * sizeof *u->aside);
    w->unfair = unfairness(u, count);
    return true;
}

/* Members that gave partitions up for their racks' sake may only have exchanged them: then all
 * stays, else they would at each rebalance. */
static bool stay_unless_better(struct uneven *u)
{
    const struct sticky *s = u->s;
    struct worth had, made;
    for (int p = 0; p < s->parts_n; p++)
        if (s->owner[p] < 0 || !sticky_wants(s, s->owner[p], s->topic_of[p]))
            return true; /* somebody has to move */
    if (!judge(u, s->owner, &had) || !judge(u, u->cur, &made))
        return false;
    if (made.near <= had.near && made.unfair >= had.unfair)
        memcpy(u->cur, s->owner, (size_t)s->parts_n * sizeof *u->cur);
    return true;
}

bool sticky_uneven(struct sticky *s)
{
    struct uneven u = {.s = s};
    if (!begin(&u))
        return false;
    int *free_parts = sticky_filled(s, s->parts_n, 0), *was = sticky_filled(s, s->parts_n, -1),
        *was_count = sticky_filled(s, s->members_n, 0);
    if (!free_parts || !was || !was_count)
        return false;
    take_claims(&u);
    bool fresh = true;
    for (int m = 0; m < s->members_n; m++)
        fresh &= u.count[m] == 0;
    int free_n = assign_free(&u, free_parts);
    if (free_n < 0)
        return false;
    set_aside(&u);
    memcpy(was, u.cur, (size_t)s->parts_n * sizeof *was);
    memcpy(was_count, u.count, (size_t)s->members_n * sizeof *was_count);
    if (!u.must_revoke)
        reassign(&u, free_parts, free_n);
    bool moved = reassign(&u, u.sorted, u.sorted_n);
    if (!fresh && moved && unfairness(&u, u.count) >= unfairness(&u, was_count))
        memcpy(u.cur, was, (size_t)s->parts_n * sizeof *was);
    return !s->racks || stay_unless_better(&u);
}
