/* tool_reassign_moves.c - see tool_reassign_plan.h: which replicas a plan makes move, between
 * brokers and between log dirs. */
#include <stdlib.h>
#include <string.h>

#include "tools/tool_reassign_plan.h"

/* ---- between log dirs ---- */

static int by_replica(const void *a, const void *b)
{
    const struct reassign_dir_move *x = a, *y = b;
    int order = strcmp(x->topic, y->topic);
    if (!order)
        order = (x->partition > y->partition) - (x->partition < y->partition);
    return order ? order : (x->broker > y->broker) - (x->broker < y->broker);
}

struct reassign_dir_moves reassign_plan_dirs(const struct reassign_plan *p, struct arena *a)
{
    struct reassign_dir_moves m = {NULL, 0};
    size_t room = 0;
    for (int i = 0; i < p->n; i++)
        room += p->v[i].dirs ? (size_t)p->v[i].replicas.n : 0;
    m.v = arena_array(a, struct reassign_dir_move, room);
    for (int i = 0; m.v && i < p->n; i++)
        for (int k = 0; p->v[i].dirs && k < p->v[i].replicas.n; k++)
            if (p->v[i].dirs[k])
                m.v[m.n++] = (struct reassign_dir_move){
                    .topic = p->v[i].topic,
                    .partition = p->v[i].partition,
                    .broker = p->v[i].replicas.v[k],
                    .dir = p->v[i].dirs[k],
                };
    if (m.n)
        qsort(m.v, (size_t)m.n, sizeof *m.v, by_replica);
    return m;
}

int reassign_dir_moves_find(const struct reassign_dir_moves *m, const char *topic,
                            int32_t partition, int32_t broker)
{
    struct reassign_dir_move key = {.topic = topic, .partition = partition, .broker = broker};
    struct reassign_dir_move *found =
        m->n ? bsearch(&key, m->v, (size_t)m->n, sizeof *m->v, by_replica) : NULL;
    while (found && found > m->v && by_replica(found - 1, &key) == 0)
        found--;
    return found ? (int)(found - m->v) : m->n;
}

/* ---- between brokers ---- */

static struct id_list ids_without(const int32_t *v, int n, const int32_t *without, int without_n,
                                  struct arena *a)
{
    struct id_list out = {arena_array(a, int32_t, (size_t)n), 0};
    struct id_list not = {(int32_t *)without, without_n};
    for (int i = 0; out.v && i < n; i++)
        if (!id_list_has(not, v[i]))
            reassign_add_id(&out, v[i]);
    return out;
}

static int by_partition(const void *a, const void *b)
{
    const struct reassign_move *x = a, *y = b;
    int order = strcmp(x->topic, y->topic);
    return order ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

static void sort_moves(struct reassign_moves *m)
{
    if (m->n)
        qsort(m->v, (size_t)m->n, sizeof *m->v, by_partition);
}

/* The first that is not before it, or the end. */
static int find_place(const struct reassign_moves *m, const char *topic, int32_t partition)
{
    struct reassign_move key = {.topic = topic, .partition = partition};
    int low = 0, high = m->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (by_partition(&m->v[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct reassign_move *find_move(const struct reassign_moves *m, const char *topic,
                                       int32_t partition)
{
    int at = find_place(m, topic, partition);
    bool is = at < m->n && m->v[at].partition == partition && !strcmp(m->v[at].topic, topic);
    return is ? &m->v[at] : NULL;
}

struct reassign_moves reassign_moves_of(const kafka_moving_partitions_t *moving,
                                        const struct reassign_plan *plan,
                                        const struct reassign_plan *current, struct arena *a)
{
    struct reassign_moves m = {NULL, 0};
    m.v = arena_array(a, struct reassign_move, moving->n + (size_t)plan->n);
    for (size_t i = 0; m.v && i < moving->n; i++) {
        const kafka_moving_partition_t *p = &moving->v[i];
        m.v[m.n++] = (struct reassign_move){
            p->topic, p->partition,
            ids_without(p->replicas, (int)p->replicas_n, p->adding, (int)p->adding_n, a),
            ids_without(p->adding, (int)p->adding_n, NULL, 0, a)};
    }
    sort_moves(&m);
    int before = m.n;
    for (int i = 0; m.v && i < plan->n; i++) {
        const struct reassign_part *p = &plan->v[i];
        const struct reassign_part *now = reassign_plan_find(current, p->topic, p->partition);
        struct reassign_moves known = {m.v, before};
        struct reassign_move *move = find_move(&known, p->topic, p->partition);
        if (!move) {
            move = &m.v[m.n++];
            *move = (struct reassign_move){.topic = p->topic, .partition = p->partition};
            if (now)
                move->from = now->replicas;
        }
        move->to = ids_without(p->replicas.v, p->replicas.n, move->from.v, move->from.n, a);
    }
    sort_moves(&m);
    return m;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, each once. */
static const char **sort_texts(const char **v, size_t *n)
{
    size_t kept = 0;
    if (*n)
        qsort(v, *n, sizeof *v, by_text);
    for (size_t i = 0; i < *n; i++)
        if (i == 0 || strcmp(v[i], v[kept - 1]) != 0)
            v[kept++] = v[i];
    *n = kept;
    return v;
}

char *reassign_throttled(const struct reassign_moves *m, const char *topic, bool leaders,
                         struct arena *a)
{
    size_t n = 0;
    int begin = find_place(m, topic, INT32_MIN), end = begin;
    for (; end < m->n && strcmp(m->v[end].topic, topic) == 0; end++)
        n += (size_t)(leaders ? m->v[end].from.n : m->v[end].to.n);
    const char **pairs = arena_array(a, const char *, n + 1);
    n = 0;
    for (int i = begin; pairs && i < end; i++) {
        struct id_list ids = leaders ? m->v[i].from : m->v[i].to;
        for (int k = 0; k < ids.n; k++)
            if (!(pairs[n++] = arena_printf(a, "%d:%d", m->v[i].partition, ids.v[k])))
                return NULL;
    }
    if (!pairs)
        return NULL;
    sort_texts(pairs, &n);
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += strlen(pairs[i]) + 1;
    char *text = arena_alloc(a, len + 1), *at = text;
    for (size_t i = 0; text && i < n; i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), pairs[i]);
    if (text)
        *at = 0;
    return text;
}

const char **reassign_moves_topics(const struct reassign_moves *m, struct arena *a, size_t *n)
{
    const char **topics = arena_array(a, const char *, (size_t)m->n + 1);
    *n = 0;
    for (int i = 0; topics && i < m->n; i++)
        topics[(*n)++] = m->v[i].topic;
    return topics ? sort_texts(topics, n) : NULL;
}

struct id_list reassign_moves_brokers(const struct reassign_moves *m, struct arena *a)
{
    size_t n = 0;
    for (int i = 0; i < m->n; i++)
        n += (size_t)m->v[i].from.n + (size_t)m->v[i].to.n;
    struct id_list out = {arena_array(a, int32_t, n), 0};
    for (int i = 0; out.v && i < m->n; i++) {
        for (int k = 0; k < m->v[i].from.n; k++)
            reassign_add_id(&out, m->v[i].from.v[k]);
        for (int k = 0; k < m->v[i].to.n; k++)
            reassign_add_id(&out, m->v[i].to.v[k]);
    }
    reassign_sort_ids(&out);
    return out;
}
