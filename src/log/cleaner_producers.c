#include "log/cleaner_producers.h"

#include <errno.h>
#include <stdlib.h>

#include "log/log_private.h"

static int by_id(const void *a, const void *b)
{
    const struct cleaner_producer *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static void copy_locked(const struct producer_state *ps, struct cleaner_producers *out)
{
    hmap_each (node, &ps->by_id) {
        const struct producer *p = hmap_entry(node, struct producer, node);
        if (p->epoch < 0) /* nothing is known of it */
            continue;
        out->v[out->n++] = (struct cleaner_producer){
            .id = p->id,
            .last_data_offset = p->batches_n ? p->batches[p->newest].last_offset : -1,
            .epoch = p->epoch};
    }
}

int cleaner_producers_copy(struct log *log, struct cleaner_producers *out)
{
    *out = (struct cleaner_producers){0};
    pthread_mutex_lock(&log->lock);
    size_t n = producer_state_count(&log->producers);
    out->v = malloc((n + 1) * sizeof(*out->v));
    if (out->v)
        copy_locked(&log->producers, out);
    pthread_mutex_unlock(&log->lock);
    if (!out->v)
        return -ENOMEM;
    qsort(out->v, out->n, sizeof(*out->v), by_id);
    return 0;
}

void cleaner_producers_free(struct cleaner_producers *p)
{
    free(p->v);
    *p = (struct cleaner_producers){0};
}

const struct cleaner_producer *cleaner_producers_find(const struct cleaner_producers *p, int64_t id)
{
    struct cleaner_producer key = {.id = id};
    return id < 0 || !p->n ? NULL : bsearch(&key, p->v, p->n, sizeof(*p->v), by_id);
}
