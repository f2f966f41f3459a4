/* aborted.c - see aborted.h. */
#include "client/aborted.h"

#include <stdlib.h>

#include "protocol/record_iter.h"

struct entry {
    int64_t first_offset, producer_id;
};

struct aborted {
    struct entry *v; /* by first offset; behind the struct */
    int n, next;     /* the first that has not begun yet */
    int64_t *inside; /* producers in an aborted transaction now; behind v */
    int inside_n;
};

static int by_first_offset(const void *a, const void *b)
{
    int64_t x = ((const struct entry *)a)->first_offset;
    int64_t y = ((const struct entry *)b)->first_offset;
    return (x > y) - (x < y);
}

bool aborted_new(const struct fetch_response_partition *r, struct aborted **out)
{
    int n = r->aborted_transactions.n;
    *out = NULL;
    if (n <= 0)
        return true;
    struct aborted *a = malloc(sizeof *a + (size_t)n * (sizeof(struct entry) + sizeof(int64_t)));
    if (!a)
        return false;
    *a = (struct aborted){.v = (struct entry *)(a + 1), .n = n};
    a->inside = (int64_t *)(a->v + n);
    for (int i = 0; i < n; i++)
        a->v[i] = (struct entry){r->aborted_transactions.v[i].first_offset,
                                 r->aborted_transactions.v[i].producer_id};
    qsort(a->v, (size_t)n, sizeof *a->v, by_first_offset);
    *out = a;
    return true;
}

void aborted_free(struct aborted *a)
{
    free(a);
}

static int find_inside(const struct aborted *a, int64_t producer_id)
{
    for (int i = 0; i < a->inside_n; i++)
        if (a->inside[i] == producer_id)
            return i;
    return -1;
}

/* A control batch that compaction has emptied marks nothing. */
static bool is_abort_marker(const struct batch *b)
{
    struct record_iter *it;
    struct record r;
    bool abort_marker = false;
    if (record_iter_open(b, &it) < 0)
        return false;
    if (record_iter_next(it, &r) == 1 && r.key.len >= 4)
        abort_marker = get_be16(r.key.p + 2) == 0;
    record_iter_close(it);
    return abort_marker;
}

bool aborted_has(struct aborted *a, const struct batch *b)
{
    if (!a)
        return false;
    for (; a->next < a->n && a->v[a->next].first_offset <= b->last_offset; a->next++)
        if (find_inside(a, a->v[a->next].producer_id) < 0)
            a->inside[a->inside_n++] = a->v[a->next].producer_id;
    int i = find_inside(a, b->producer_id);
    if (i < 0)
        return false;
    if (!batch_is_control(b))
        return batch_is_transactional(b);
    if (is_abort_marker(b))
        a->inside[i] = a->inside[--a->inside_n];
    return true;
}
