/* cleaner_work.c - one log through both passes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "log/cleaner_group.h"
#include "log/cleaner_work_private.h"
#include "log/log_private.h"

int cleaner_work_init(struct cleaner_work *w, size_t map_bytes, double load_factor,
                      size_t buffer_bytes)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    *w = (struct cleaner_work){0};
    cleaner_input_init(&w->in, buffer_bytes);
    cleaner_output_init(&w->out);
    w->builder = batch_builder_new(&o);
    return w->builder ? offset_map_new(map_bytes, load_factor, &w->map) : -ENOMEM;
}

void cleaner_work_free(struct cleaner_work *w)
{
    offset_map_free(w->map);
    cleaner_input_free(&w->in);
    cleaner_output_free(&w->out);
    batch_builder_free(w->builder);
    buf_free(&w->kept);
    buf_free(&w->body);
    *w = (struct cleaner_work){0};
}

/* ---- what both passes read with ---- */

int cleaner_damaged(struct cleaner_run *run, int64_t at, const char *why)
{
    run->result->why = why;
    run->result->at = at;
    return -EBADMSG;
}

int cleaner_records_open(struct cleaner_run *run, const struct batch *b, struct record_iter *it)
{
    *it = (struct record_iter){.body = run->w->body};
    it->body.len = 0;
    run->w->body = BUF_INIT;
    int rc = record_iter_init(it, b, codec_cap(b->size));
    return rc == -EBADMSG ? cleaner_damaged(run, b->base_offset, it->why) : rc;
}

int cleaner_records_next(struct cleaner_run *run, struct record_iter *it, struct record *r)
{
    int rc = record_iter_next(it, r);
    return rc == -EBADMSG ? cleaner_damaged(run, it->batch.base_offset, it->why) : rc;
}

void cleaner_records_close(struct cleaner_run *run, struct record_iter *it)
{
    enum { KEEP_BYTES = 4 << 20 };
    if (it->body.cap > KEEP_BYTES || run->w->body.p)
        buf_free(&it->body);
    else if (it->body.p) {
        run->w->body = it->body;
        it->body = BUF_INIT;
    }
}

int cleaner_marker(struct cleaner_run *run, const struct batch *b, struct txn_marker *m)
{
    int rc = txn_marker_parse(b, m);
    return rc == -EBADMSG ? cleaner_damaged(run, b->base_offset, "a control record is malformed")
                          : rc;
}

static int add_entry(void *arg, const struct txn_entry *e)
{
    return cleaner_txns_add(arg, e);
}

int cleaner_add_aborted(struct cleaner_run *run, struct cleaner_txns *t, int i, int64_t from,
                        int64_t upto)
{
    int rc = 0;
    for (; i < run->list->n && rc == 0; i++)
        rc = segment_aborted(run->list->v[i], from, upto, false, add_entry, t);
    cleaner_txns_ready(t);
    if (rc == -EBADMSG)
        return cleaner_damaged(run, from, "a transaction index does not read");
    return rc < 0 ? rc : 0;
}

ssize_t cleaner_fill(struct cleaner_run *run)
{
    ssize_t n = cleaner_input_fill(&run->w->in);
    if (n == -EBADMSG)
        return cleaner_damaged(run, run->w->in.next_offset, run->w->in.why);
    if (n > 0 && !run->w->moved(run->w->arg, (size_t)n))
        return -ECANCELED;
    return n;
}

int cleaner_next(struct cleaner_run *run, struct batch *b)
{
    int rc = cleaner_input_next(&run->w->in, b);
    return rc == -EBADMSG ? cleaner_damaged(run, run->w->in.next_offset, run->w->in.why) : rc;
}

/* ---- pass 2, group by group ---- */

static int group_facts(const struct segment_list *l, int i, struct cleaner_group_segment *out)
{
    struct index_view offsets, times;
    struct segment *s = l->v[i];
    int err = segment_offsets(s, &offsets);
    index_view_close(&offsets); /* the numbers do */
    if (!err) {
        err = segment_times(s, &times);
        index_view_close(&times);
    }
    if (err)
        return err;
    *out = (struct cleaner_group_segment){.base = s->base,
                                          .size = segment_size(s),
                                          .offset_index_bytes =
                                              (int64_t)offsets.n * OFFSET_ENTRY_BYTES,
                                          .time_index_bytes = (int64_t)times.n * TIME_ENTRY_BYTES,
                                          .last_offset = l->v[i + 1]->base - 1};
    return 0;
}

/* Old tombstones go by age: of the newest file that an earlier compaction has been through. */
static int legacy_horizon(const struct cleaner_run *run, int64_t *ms)
{
    struct segment *last = NULL;
    for (int i = 0; i < run->list->n && run->list->v[i]->base < run->choice->first_dirty; i++)
        last = run->list->v[i];
    *ms = INT64_MIN;
    if (!last)
        return 0;
    int err = segment_mtime(last, ms);
    *ms -= err ? 0 : run->config->delete_retention_ms;
    return err;
}

static int copy_group(struct cleaner_copy *c, int first, int n)
{
    struct cleaner_run *run = c->run;
    struct cleaner_output *out = &run->w->out;
    struct segment *const *old = run->list->v + first;
    int64_t mtime_ms;
    int err = segment_mtime(old[n - 1], &mtime_ms);
    if (err)
        return err;
    err = cleaner_output_begin(out, &run->log->folder, run->config, old[0]->base);
    for (int i = first; i < first + n && !err; i++)
        err = cleaner_copy_segment(c, i);
    if (!err)
        err = cleaner_output_finish(out, mtime_ms);
    int made = out->n;
    if (!err)
        err = log_replace(run->log, old, n, out->v, made);
    if (err) {
        cleaner_output_drop(out);
        return err;
    }
    run->result->bytes_after += out->bytes;
    run->result->segments_before += n;
    run->result->segments_after += made;
    cleaner_output_release(out);
    return 0;
}

static int copy_groups(struct cleaner_copy *c, const struct cleaner_group_segment *v, int n)
{
    const struct log_config *config = c->run->config;
    struct cleaner_group_limits limits = {config->segment_bytes, config->segment_index_bytes};
    int err = 0;
    for (int i = 0, k; i < n && !err; i += k) {
        k = cleaner_group(v + i, n - i, limits);
        err = copy_group(c, i, k);
    }
    return err;
}

static int copy_all(struct cleaner_copy *c, int64_t end_offset)
{
    const struct segment_list *l = c->run->list;
    struct cleaner_group_segment *v = malloc((size_t)l->n * sizeof(*v));
    int n = 0, err = v ? legacy_horizon(c->run, &c->legacy_horizon_ms) : -ENOMEM;
    if (!err)
        err = cleaner_producers_copy(c->run->log, &c->producers);
    for (; !err && n < l->n - 1 && l->v[n]->base < end_offset; n++)
        err = group_facts(l, n, &v[n]);
    if (!err)
        err = copy_groups(c, v, n);
    free(v);
    return err;
}

/* ---- both ---- */

/* An error of a file that is not the log's any more, however it shows. */
static int settle(int err)
{
    return err == -ESTALE ? -ECANCELED : err;
}

int cleaner_work_run(struct cleaner_work *w, struct log *log, const struct cleaner_choice *choice,
                     int cuts, struct cleaner_result *out)
{
    *out = (struct cleaner_result){.end_offset = choice->first_dirty};
    struct segment_list *list = log_pin(log);
    struct cleaner_run run = {.w = w,
                              .log = log,
                              .config = log_config_ref(log),
                              .list = list,
                              .choice = choice,
                              .now_ms = clock_wall_ms(log->folder.dir->clock),
                              .result = out};
    struct cleaner_copy copy = {.run = &run};
    /* Cut meanwhile, it may have grown again with records that are not committed. */
    int err = log_cuts(log) == cuts ? cleaner_map_dirty(&run, &copy.covered_to) : -ECANCELED;
    out->map_fill = (double)offset_map_count(w->map) / (double)offset_map_capacity(w->map);
    cleaner_txns_init(&copy.txns);
    if (!err)
        err = copy_all(&copy, copy.covered_to + 1);
    if (!err)
        out->end_offset = copy.covered_to + 1;
    cleaner_txns_free(&copy.txns);
    cleaner_producers_free(&copy.producers);
    offset_map_reset(w->map, 0);
    log_config_unref(run.config);
    segment_list_unpin(list);
    return settle(err);
}
