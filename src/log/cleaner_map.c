/* cleaner_map.c - pass 1: the newest offset of each key among the dirty records. */
#include <errno.h>

#include "log/cleaner_work_private.h"

struct mapper {
    struct cleaner_run *run;
    struct cleaner_txns txns;
    int64_t covered_to;
    bool full;
};

/* Keys that were hashed ahead, so that their slots come from memory all at once. */
struct ahead {
    struct offset_key key;
    int64_t offset;
};

static void map_keys(struct mapper *m, const struct ahead *v, int n)
{
    struct offset_map *map = m->run->w->map;
    for (int i = 0; i < n && !m->full; i++) {
        m->full = offset_map_full(map);
        if (m->full)
            break;
        offset_map_put(map, v[i].key, v[i].offset);
        m->covered_to = v[i].offset;
    }
}

static int map_records(struct mapper *m, const struct batch *b)
{
    struct cleaner_run *run = m->run;
    struct ahead v[CLEANER_AHEAD];
    struct record_iter it;
    struct record r;
    int n = 0, rc = cleaner_records_open(run, b, &it);
    while (!rc && !m->full && (rc = cleaner_records_next(run, &it, &r)) == 1) {
        rc = 0;
        if (r.key.len < 0 || r.offset < run->choice->first_dirty)
            continue;
        v[n++] = (struct ahead){offset_map_hash(run->w->map, r.key), r.offset};
        if (n == CLEANER_AHEAD) {
            map_keys(m, v, n);
            n = 0;
        }
    }
    if (!rc)
        map_keys(m, v, n);
    cleaner_records_close(run, &it);
    return rc;
}

static int map_batch(struct mapper *m, const struct batch *b)
{
    struct txn_marker marker;
    struct txn_entry entry;
    bool removable, has_entry;
    int err;
    if (batch_is_control(b)) {
        err = cleaner_marker(m->run, b, &marker);
        if (!err)
            err = cleaner_txns_marker(&m->txns, b, &marker, &removable, &entry, &has_entry);
    } else {
        err = cleaner_txns_data(&m->txns, b, &removable);
        if (!err && !removable && b->last_offset >= m->run->choice->first_dirty)
            err = map_records(m, b);
    }
    if (!err && !m->full && b->last_offset > m->covered_to)
        m->covered_to = b->last_offset;
    return err;
}

static int map_segment(struct mapper *m, int i)
{
    struct cleaner_run *run = m->run;
    struct batch b;
    ssize_t n;
    int rc = cleaner_input_open(&run->w->in, run->list->v[i], run->choice->first_dirty,
                                run->list->v[i + 1]->base);
    while (!rc && !m->full && (n = cleaner_fill(run)) != 0) {
        rc = n < 0 ? (int)n : 0;
        if (n > 0)
            run->result->bytes_mapped += n;
        while (!rc && !m->full && (rc = cleaner_next(run, &b)) == 1)
            rc = map_batch(m, &b);
    }
    cleaner_input_close(&run->w->in);
    /* offsets that nothing has are covered too */
    if (!rc && !m->full)
        m->covered_to = run->list->v[i + 1]->base - 1;
    return rc;
}

int cleaner_map_dirty(struct cleaner_run *run, int64_t *covered_to)
{
    const struct cleaner_choice *ch = run->choice;
    struct mapper m = {.run = run, .covered_to = ch->first_dirty - 1};
    int first = segment_list_floor(run->list, ch->first_dirty);
    first = first < 0 ? 0 : first;
    cleaner_txns_init(&m.txns);
    offset_map_reset(run->w->map, ch->upto - ch->first_dirty);
    int err = 0;
    for (int i = first; i < run->list->n - 1 && run->list->v[i]->base < ch->upto && !err && !m.full;
         i++) {
        int64_t base = run->list->v[i]->base;
        /* The walk may begin behind the markers of what ended in front of first_dirty. */
        err = cleaner_add_aborted(run, &m.txns, i, base > ch->first_dirty ? base : ch->first_dirty,
                                  run->list->v[i + 1]->base);
        if (!err)
            err = map_segment(&m, i);
    }
    cleaner_txns_free(&m.txns);
    *covered_to = m.covered_to;
    return err;
}
