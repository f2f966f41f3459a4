/* part_set.c - see part_set.h. */
#include "coordinator/part_set.h"

#include <errno.h>
#include <stdlib.h>

void part_set_free(struct part_set *s)
{
    free(s->v);
    *s = PART_SET_EMPTY;
}

int part_cmp(const struct part *a, const struct part *b)
{
    int c = memcmp(a->topic.b, b->topic.b, sizeof(a->topic.b));
    return c ? c : (a->partition > b->partition) - (a->partition < b->partition);
}

static int compare(const void *a, const void *b)
{
    return part_cmp(a, b);
}

int part_set_add(struct part_set *s, struct uuid topic, int32_t partition)
{
    if (s->n == s->cap) {
        int cap = s->cap ? s->cap * 2 : 8;
        struct part *v = realloc(s->v, (size_t)cap * sizeof(*v));
        if (!v)
            return -ENOMEM;
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n++] = (struct part){topic, partition};
    return 0;
}

void part_set_sort(struct part_set *s)
{
    if (s->n > 1)
        qsort(s->v, (size_t)s->n, sizeof(*s->v), compare);
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (n == 0 || part_cmp(&s->v[n - 1], &s->v[i]) != 0)
            s->v[n++] = s->v[i];
    s->n = n;
}

int part_set_find(const struct part_set *s, const struct part *p)
{
    const struct part *at =
        s->n > 0 ? bsearch(p, s->v, (size_t)s->n, sizeof(*s->v), compare) : NULL;
    return at ? (int)(at - s->v) : -1;
}

bool part_set_has(const struct part_set *s, const struct part *p)
{
    return part_set_find(s, p) >= 0;
}

bool part_set_equal(const struct part_set *a, const struct part_set *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (part_cmp(&a->v[i], &b->v[i]) != 0)
            return false;
    return true;
}

/* Walks both sets side by side and puts into `out` (NULL: nowhere) what is only in a, in both, only
 * in b, as `take` (bits ONLY_A ...) says. Returns how many, or -ENOMEM. */
enum { ONLY_A = 1, BOTH = 2, ONLY_B = 4 };

static int merge(const struct part_set *a, const struct part_set *b, unsigned take,
                 struct part_set *out)
{
    int i = 0, j = 0, n = 0;
    while (i < a->n || j < b->n) {
        int c = i == a->n ? 1 : j == b->n ? -1 : part_cmp(&a->v[i], &b->v[j]);
        const struct part *p = c <= 0 ? &a->v[i] : &b->v[j];
        unsigned where = c < 0 ? ONLY_A : c == 0 ? BOTH : ONLY_B;
        i += c <= 0;
        j += c >= 0;
        if (!(take & where))
            continue;
        n++;
        if (out && part_set_add(out, p->topic, p->partition) != 0) {
            part_set_free(out);
            return -ENOMEM;
        }
    }
    return n;
}

static int merged(int n)
{
    return n < 0 ? n : 0;
}

bool part_set_meet(const struct part_set *a, const struct part_set *b)
{
    return merge(a, b, BOTH, NULL) > 0;
}

bool part_set_within(const struct part_set *a, const struct part_set *in)
{
    return merge(a, in, ONLY_A, NULL) == 0;
}

int part_set_copy(const struct part_set *s, struct part_set *out)
{
    return merged(merge(s, &PART_SET_EMPTY, ONLY_A, out));
}

int part_set_common(const struct part_set *a, const struct part_set *b, struct part_set *out)
{
    return merged(merge(a, b, BOTH, out));
}

int part_set_minus(const struct part_set *a, const struct part_set *b, struct part_set *out)
{
    return merged(merge(a, b, ONLY_A, out));
}

int part_set_union(const struct part_set *a, const struct part_set *b, struct part_set *out)
{
    return merged(merge(a, b, ONLY_A | BOTH | ONLY_B, out));
}

void part_set_move(struct part_set *to, struct part_set *from)
{
    part_set_free(to);
    *to = *from;
    *from = PART_SET_EMPTY;
}

int part_set_run(const struct part_set *s, int from)
{
    int end = from + 1;
    while (end < s->n && uuid_eq(s->v[end].topic, s->v[from].topic))
        end++;
    return end;
}

int part_set_topics(const struct part_set *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i = part_set_run(s, i))
        n++;
    return n;
}
