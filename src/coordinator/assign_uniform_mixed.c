/* assign_uniform_mixed.c - uniform, when members read different topics: what is read by fewest is
 * dealt out first, then partitions move from those that have more to those that have less until
 * that gains nothing.
 *
 * A member that has all partitions of all its topics (its max) takes no more. Partitions are
 * counted through in one order: those of topics with most partitions a reader first. */
#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/list.h"
#include "coordinator/assignor.h"

struct cell { /* one partition */
    int topic;
    int32_t partition;
    int owner; /* place in members, -1 = free */
    int src;   /* whose it was before it moved; -1: it has not */
    struct list link;
};

/* Partitions of the topic that have moved from one member to another. */
struct moved {
    struct hnode node;
    int topic, from, to;
    struct list cells;
};

struct mixing {
    struct assign_spec *spec;
    struct cell *cells; /* in the order of dealing */
    int cells_n;
    int *readers, *readers_at; /* members by topic: readers[readers_at[t] .. readers_at[t + 1]) */
    int64_t *has, *max;        /* by member */
    struct hmap moves;         /* of struct moved */
};

static int readers_n(const struct mixing *m, int topic)
{
    return m->readers_at[topic + 1] - m->readers_at[topic];
}

/* ---- setting up ---- */

static int list_readers(struct mixing *m)
{
    const struct assign_spec *s = m->spec;
    size_t all = 0;
    for (int i = 0; i < s->members_n; i++)
        all += (size_t)s->members[i].topics_n;
    m->readers = calloc(all + 1, sizeof(*m->readers));
    m->readers_at = calloc((size_t)s->topics_n + 2, sizeof(*m->readers_at));
    int *fill = calloc((size_t)s->topics_n + 1, sizeof(*fill));
    bool good = m->readers && m->readers_at && fill;
    for (int i = 0; good && i < s->members_n; i++)
        for (int k = 0; k < s->members[i].topics_n; k++)
            m->readers_at[s->members[i].topics[k] + 1]++;
    for (int t = 0; good && t < s->topics_n; t++)
        m->readers_at[t + 1] += m->readers_at[t];
    for (int i = 0; good && i < s->members_n; i++)
        for (int k = 0; k < s->members[i].topics_n; k++) {
            int t = s->members[i].topics[k];
            m->readers[m->readers_at[t] + fill[t]++] = i;
        }
    free(fill);
    return good ? 0 : -ENOMEM;
}

static int order_cells(const void *x, const void *y, void *arg)
{
    const struct cell *a = x, *b = y;
    const struct mixing *m = arg;
    const struct assign_topic *t = &m->spec->topics[a->topic], *u = &m->spec->topics[b->topic];
    int64_t n = readers_n(m, a->topic), o = readers_n(m, b->topic);
    int64_t left = t->partitions * o, right = u->partitions * n; /* partitions a reader, compared */
    if (left != right)
        return left > right ? -1 : 1;
    if (n != o)
        return n < o ? -1 : 1;
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return (a->topic > b->topic) - (a->topic < b->topic);
}

struct topic_place {
    struct uuid id;
    int place;
};

static int order_ids(const void *a, const void *b)
{
    return memcmp(((const struct topic_place *)a)->id.b, ((const struct topic_place *)b)->id.b,
                  sizeof(((const struct topic_place *)a)->id.b));
}

/* All topics in order of id. NULL without memory. */
static struct topic_place *sort_ids(const struct assign_spec *s)
{
    struct topic_place *v = calloc((size_t)s->topics_n + 1, sizeof(*v));
    for (int t = 0; v && t < s->topics_n; t++)
        v[t] = (struct topic_place){s->topics[t].id, t};
    if (v && s->topics_n > 1)
        qsort(v, (size_t)s->topics_n, sizeof(*v), order_ids);
    return v;
}

static int order_places(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The topic's place if the member reads it, or -1. */
static int find_topic(const struct assign_spec *s, const struct topic_place *ids,
                      const struct assign_member *m, struct uuid id)
{
    struct topic_place key = {.id = id};
    const struct topic_place *t =
        s->topics_n ? bsearch(&key, ids, (size_t)s->topics_n, sizeof(*ids), order_ids) : NULL;
    bool reads =
        t && m->topics_n > 0 &&
        bsearch(&t->place, m->topics, (size_t)m->topics_n, sizeof(*m->topics), order_places);
    return reads ? t->place : -1;
}

/* Former owners keep what they still read. `at` is where each topic's cells begin, before they are
 * sorted. */
static void keep_old(struct mixing *m, const struct topic_place *ids, const int *at)
{
    const struct assign_spec *s = m->spec;
    for (int i = 0; i < s->members_n; i++) {
        const struct part_set *old = s->members[i].old;
        for (int k = 0, end; k < old->n; k = end) {
            end = part_set_run(old, k);
            int t = find_topic(s, ids, &s->members[i], old->v[k].topic);
            for (int j = k; t >= 0 && j < end; j++) {
                if (old->v[j].partition >= s->topics[t].partitions)
                    continue;
                m->cells[at[t] + old->v[j].partition].owner = i;
                m->has[i]++;
            }
        }
    }
}

/* The partitions that somebody reads. */
static int make_cells(struct mixing *m)
{
    const struct assign_spec *s = m->spec;
    int *at = calloc((size_t)s->topics_n + 1, sizeof(*at));
    struct topic_place *ids = sort_ids(s);
    size_t all = 0;
    for (int t = 0; t < s->topics_n; t++)
        all += (size_t)s->topics[t].partitions;
    m->cells = calloc(all + 1, sizeof(*m->cells));
    if (!at || !ids || !m->cells) {
        free(at);
        free(ids);
        return -ENOMEM;
    }
    for (int t = 0; t < s->topics_n; t++) {
        at[t] = m->cells_n;
        for (int32_t p = 0; readers_n(m, t) > 0 && p < s->topics[t].partitions; p++)
            m->cells[m->cells_n++] =
                (struct cell){.topic = t, .partition = p, .owner = -1, .src = -1};
    }
    keep_old(m, ids, at);
    free(at);
    free(ids);
    qsort_r(m->cells, (size_t)m->cells_n, sizeof(*m->cells), order_cells, m);
    for (int c = 0; c < m->cells_n; c++)
        list_init(&m->cells[c].link);
    return 0;
}

static int prepare(struct mixing *m)
{
    const struct assign_spec *s = m->spec;
    m->has = calloc((size_t)s->members_n + 1, sizeof(*m->has));
    m->max = calloc((size_t)s->members_n + 1, sizeof(*m->max));
    if (!m->has || !m->max)
        return -ENOMEM;
    for (int i = 0; i < s->members_n; i++)
        for (int k = 0; k < s->members[i].topics_n; k++)
            m->max[i] += s->topics[s->members[i].topics[k]].partitions;
    int rc = list_readers(m);
    return rc ? rc : make_cells(m);
}

/* ---- dealing ---- */

/* The reader of the topic with the fewest partitions that can take one more; -1 = none. Members are
 * in order of id, so the first of equals is the one. */
static int least_loaded(const struct mixing *m, int topic)
{
    int least = -1;
    for (int k = m->readers_at[topic]; k < m->readers_at[topic + 1]; k++) {
        int i = m->readers[k];
        if (m->has[i] < m->max[i] && (least < 0 || m->has[i] < m->has[least]))
            least = i;
    }
    return least;
}

static void deal(struct mixing *m)
{
    for (int c = 0; c < m->cells_n; c++) {
        if (m->cells[c].owner >= 0)
            continue;
        int to = least_loaded(m, m->cells[c].topic);
        m->cells[c].owner = to;
        if (to >= 0)
            m->has[to]++;
    }
}

/* ---- balancing ---- */

struct direction {
    int topic, from, to;
};

static uint64_t hash_direction(struct direction d)
{
    return hash_int((uint64_t)(uint32_t)d.topic ^
                    hash_int((uint64_t)(uint32_t)d.from << 32 | (uint32_t)d.to));
}

static bool is_direction(const struct hnode *n, const void *key)
{
    const struct moved *v = hmap_entry(n, struct moved, node);
    const struct direction *d = key;
    return v->topic == d->topic && v->from == d->from && v->to == d->to;
}

static struct moved *find_moved(const struct mixing *m, struct direction d)
{
    struct hnode *n = m->moves.n ? hmap_find(&m->moves, hash_direction(d), is_direction, &d) : NULL;
    return n ? hmap_entry(n, struct moved, node) : NULL;
}

static int note_move(struct mixing *m, struct cell *c, struct direction d)
{
    struct moved *v = find_moved(m, d);
    if (!v) {
        v = calloc(1, sizeof(*v));
        if (!v)
            return -ENOMEM;
        v->topic = d.topic;
        v->from = d.from;
        v->to = d.to;
        list_init(&v->cells);
        if (hmap_put(&m->moves, &v->node, hash_direction(d)) != 0) {
            free(v);
            return -ENOMEM;
        }
    }
    list_push_back(&v->cells, &c->link);
    return 0;
}

/* One partition of the topic moves to `to` instead of from where it is. If another one was moved
 * the other way before, that one goes back: it was `to`'s in the first place. */
static int move(struct mixing *m, struct cell *c, int to)
{
    int origin = c->src >= 0 ? c->src : c->owner;
    const struct moved *back = find_moved(m, (struct direction){c->topic, to, origin});
    /* Each move must make it fairer, or there would be no end. */
    if (back && !list_empty(&back->cells) && m->has[origin] >= m->has[to] + 2)
        c = list_entry(back->cells.next, struct cell, link);
    m->has[c->owner]--;
    m->has[to]++;
    if (c->src < 0)
        c->src = c->owner;
    else
        list_remove(&c->link);
    c->owner = to;
    if (c->src != to)
        return note_move(m, c, (struct direction){c->topic, c->src, to});
    c->src = -1;
    return 0;
}

/* Has nobody who could take more as much as two fewer than another such? */
static bool balanced(const struct mixing *m)
{
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < m->spec->members_n; i++) {
        if (m->has[i] >= m->max[i])
            continue;
        least = m->has[i] < least ? m->has[i] : least;
        most = m->has[i] > most ? m->has[i] : most;
    }
    return least == INT64_MAX || most - least <= 1;
}

/* Returns how many were moved; *done: it is as good as it gets. */
static int pass(struct mixing *m, bool *done, int *rc)
{
    int moved = 0;
    for (int c = 0; c < m->cells_n && !*rc && !*done; c++) {
        struct cell *cell = &m->cells[c];
        if (cell->owner < 0 || readers_n(m, cell->topic) < 2)
            continue;
        int to = least_loaded(m, cell->topic);
        if (to < 0 || m->has[to] + 2 > m->has[cell->owner])
            continue;
        *rc = move(m, cell, to);
        moved++;
        *done = balanced(m);
    }
    return moved;
}

static int balance(struct mixing *m)
{
    bool done = false;
    int rc = 0;
    while (!rc && !done && pass(m, &done, &rc) > 0)
        ;
    return rc;
}

static void end(struct mixing *m)
{
    for (struct hnode *n = hmap_first(&m->moves), *next; n; n = next) {
        next = hmap_next(&m->moves, n);
        free(hmap_entry(n, struct moved, node));
    }
    hmap_free(&m->moves);
    free(m->cells);
    free(m->readers);
    free(m->readers_at);
    free(m->has);
    free(m->max);
}

int assign_uniform_mixed(struct assign_spec *s)
{
    struct mixing m = {.spec = s};
    hmap_init(&m.moves);
    int rc = prepare(&m);
    if (!rc) {
        deal(&m);
        rc = balance(&m);
    }
    for (int c = 0; !rc && c < m.cells_n; c++)
        if (m.cells[c].owner >= 0)
            rc = part_set_add(&s->members[m.cells[c].owner].out, s->topics[m.cells[c].topic].id,
                              m.cells[c].partition);
    for (int i = 0; !rc && i < s->members_n; i++)
        part_set_sort(&s->members[i].out);
    end(&m);
    return rc;
}
