/* txn_partitions.c - see txn_partitions.h. */
#include "coordinator/txn_partitions.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_ROOM = 4 };

static struct txn_topic *find(const struct txn_partitions *s, struct str topic)
{
    for (int i = 0; i < s->n; i++)
        if (str_eq(s->topics[i].name, topic))
            return &s->topics[i];
    return NULL;
}

/* Where the partition is, or would stand. */
static int place(const struct txn_topic *t, int32_t partition)
{
    int low = 0, high = t->n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (t->v[mid] < partition)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool grow(void **v, int n, int *cap, size_t size)
{
    if (n < *cap)
        return true;
    int wanted = *cap ? *cap * 2 : FIRST_ROOM;
    void *more = realloc(*v, (size_t)wanted * size);
    if (!more)
        return false;
    *v = more;
    *cap = wanted;
    return true;
}

static int add_topic(struct txn_partitions *s, struct str name, int32_t partition)
{
    struct txn_topic t = {.name = {str_dup(name), name.len}};
    if (!t.name.p || !grow((void **)&t.v, 0, &t.cap, sizeof(*t.v)) ||
        !grow((void **)&s->topics, s->n, &s->cap, sizeof(*s->topics))) {
        free((char *)t.name.p);
        free(t.v);
        return -ENOMEM;
    }
    t.v[t.n++] = partition;
    s->topics[s->n++] = t;
    return 0;
}

int txn_partitions_add(struct txn_partitions *s, struct str topic, int32_t partition)
{
    struct txn_topic *t = find(s, topic);
    if (!t)
        return add_topic(s, topic, partition);
    int at = place(t, partition);
    if (at < t->n && t->v[at] == partition)
        return 0;
    if (!grow((void **)&t->v, t->n, &t->cap, sizeof(*t->v)))
        return -ENOMEM;
    memmove(t->v + at + 1, t->v + at, (size_t)(t->n - at) * sizeof(*t->v));
    t->v[at] = partition;
    t->n++;
    return 0;
}

bool txn_partitions_has(const struct txn_partitions *s, struct str topic, int32_t partition)
{
    const struct txn_topic *t = find(s, topic);
    int at = t ? place(t, partition) : 0;
    return t && at < t->n && t->v[at] == partition;
}

int txn_partitions_count(const struct txn_partitions *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->topics[i].n;
    return n;
}

int txn_partitions_add_all(struct txn_partitions *s, const struct txn_partitions *from)
{
    int rc = 0;
    for (int i = 0; i < from->n; i++)
        for (int j = 0; !rc && j < from->topics[i].n; j++)
            rc = txn_partitions_add(s, from->topics[i].name, from->topics[i].v[j]);
    return rc;
}

void txn_partitions_free(struct txn_partitions *s)
{
    for (int i = 0; i < s->n; i++) {
        free((char *)s->topics[i].name.p);
        free(s->topics[i].v);
    }
    free(s->topics);
    *s = TXN_PARTITIONS_INIT;
}
