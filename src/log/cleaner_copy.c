/* cleaner_copy.c - pass 2: what the rules keep of a segment. */
#include <errno.h>

#include "log/cleaner_work_private.h"

/* A record on its way to judgement: its slot in the map is being fetched. */
struct waiting {
    struct offset_key key; /* has_key and not beyond the map */
    int64_t offset;
    bool has_key, has_value;
};

struct judging {
    struct cleaner_copy *copy;
    const struct cleaner_rules *rules;
    const struct batch *batch;
    struct cleaner_kept *kept;
    struct waiting v[CLEANER_AHEAD];
    int n;
};

static bool keeps(const struct judging *j, const struct waiting *x)
{
    if (batch_is_control(j->batch))
        return true;
    int64_t newest = x->has_key && x->offset <= j->rules->covered_to
                         ? offset_map_get(j->copy->run->w->map, x->key)
                         : -1;
    return cleaner_keeps_record(j->rules, j->batch, x->offset, x->has_key, x->has_value, newest);
}

static void judge_waiting(struct judging *j)
{
    struct cleaner_run *run = j->copy->run;
    for (int i = 0; i < j->n; i++) {
        const struct waiting *x = &j->v[i];
        bool keep = keeps(j, x);
        buf_put_i8(&run->w->kept, keep);
        j->kept->records += keep;
        j->kept->dropped += !keep;
        j->kept->tombstone |= keep && !x->has_value;
        run->result->keyless += !keep && !x->has_key;
    }
    j->n = 0;
}

/* Sets a byte for each record that stays. */
static int judge_records(struct cleaner_copy *c, const struct cleaner_rules *rules,
                         const struct batch *b, struct record_iter *it, struct cleaner_kept *kept)
{
    struct buf *marks = &c->run->w->kept;
    struct judging j = {.copy = c, .rules = rules, .batch = b, .kept = kept};
    struct record r;
    int rc;
    marks->len = 0;
    marks->failed = false;
    while ((rc = cleaner_records_next(c->run, it, &r)) == 1) {
        struct waiting *x = &j.v[j.n++];
        x->offset = r.offset;
        x->has_key = r.key.len >= 0;
        x->has_value = r.value.len >= 0;
        if (x->has_key && r.offset <= rules->covered_to)
            x->key = offset_map_hash(c->run->w->map, r.key);
        if (j.n == CLEANER_AHEAD)
            judge_waiting(&j);
    }
    judge_waiting(&j);
    return rc ? rc : marks->failed ? -ENOMEM : 0;
}

static struct batch_options options_of(const struct batch *b, int64_t horizon)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = b->magic;
    o.codec = (enum codec)b->codec;
    o.log_append_time = b->magic > 0 && (b->attributes & BATCH_LOG_APPEND_TIME);
    o.log_append_timestamp = b->max_timestamp;
    if (b->magic < 2)
        return o;
    o.transactional = batch_is_transactional(b);
    o.control = batch_is_control(b);
    o.leader_epoch = b->leader_epoch;
    o.producer_id = b->producer_id;
    o.producer_epoch = b->producer_epoch;
    o.base_sequence = b->base_sequence;
    o.base_offset = b->base_offset;
    o.last_offset = b->last_offset;
    o.delete_horizon = horizon;
    return o;
}

/* A batch of the records that are marked. The rebuilt one may be longer than the original: times
 * are further from the new base, and compression may do less well. */
static int rebuild(struct cleaner_copy *c, const struct batch *b, struct record_iter *it,
                   int64_t horizon)
{
    struct cleaner_work *w = c->run->w;
    struct batch_options o = options_of(b, horizon);
    struct record r;
    size_t i = 0;
    int rc;
    batch_builder_reset(w->builder, &o);
    while ((rc = cleaner_records_next(c->run, it, &r)) == 1)
        if (w->kept.p[i++]) {
            rc = batch_builder_add_record(w->builder, r.offset, &r);
            if (rc)
                break;
        }
    if (!rc)
        rc = batch_builder_finish(w->builder, &w->out.built);
    if (rc == -EINVAL || rc == -EMSGSIZE)
        return cleaner_damaged(c->run, b->base_offset, "its records do not fit a batch");
    return rc;
}

/* A control batch: *txn is the index entry that stays with it. */
static int see_marker(struct cleaner_copy *c, const struct batch *b, bool *removable,
                      struct txn_entry *txn, bool *has_txn)
{
    struct txn_marker marker;
    int err = cleaner_marker(c->run, b, &marker);
    return err ? err : cleaner_txns_marker(&c->txns, b, &marker, removable, txn, has_txn);
}

/* Nothing in it can be known to the map. An old compressed set does not tell where it begins. */
static bool beyond_map(const struct cleaner_rules *rules, const struct batch *b)
{
    return b->base_offset > rules->covered_to && (b->magic == 2 || b->codec == CODEC_NONE);
}

static int write_verdict(struct cleaner_copy *c, const struct batch *b, struct record_iter *from,
                         struct cleaner_verdict v, const struct txn_entry *txn)
{
    struct cleaner_output *out = &c->run->w->out;
    int err = 0;
    switch (v.outcome) {
    case CLEANER_NOTHING:
        return 0;
    case CLEANER_ORIGINAL:
        return cleaner_output_keep(out, b, txn);
    case CLEANER_HEAD:
        err = batch_build_empty(b, &out->built);
        break;
    case CLEANER_REBUILT:
        err = rebuild(c, b, from, v.horizon);
        break;
    }
    return err ? err : cleaner_output_built(out, txn);
}

static int copy_batch(struct cleaner_copy *c, const struct cleaner_rules *rules,
                      const struct batch *b)
{
    struct cleaner_run *run = c->run;
    struct record_iter it = {0};
    struct cleaner_kept kept = {0};
    struct txn_entry entry;
    bool control = batch_is_control(b), removable = false, has_txn = false;
    int err = control ? see_marker(c, b, &removable, &entry, &has_txn)
                      : cleaner_txns_data(&c->txns, b, &removable);
    if (err)
        return err;
    bool last = cleaner_last_of_producer(b, cleaner_producers_find(&c->producers, b->producer_id));
    bool drops = cleaner_drops_batch(rules, b, removable);
    if (!drops && (control ? !removable : beyond_map(rules, b)) && b->record_count != 0)
        return cleaner_output_keep(&run->w->out, b, has_txn ? &entry : NULL);
    struct record_iter start = {0};
    if (!drops) {
        err = cleaner_records_open(run, b, &it);
        start = it; /* the same memory, for a second walk */
        if (!err)
            err = judge_records(c, rules, b, &it, &kept);
    }
    if (!err) {
        struct cleaner_verdict v = cleaner_judge(rules, b, kept, control && removable, last);
        err = write_verdict(c, b, &start, v, has_txn ? &entry : NULL);
    }
    cleaner_records_close(run, &it);
    return err;
}

static int copy_batches(struct cleaner_copy *c, const struct cleaner_rules *rules)
{
    struct cleaner_run *run = c->run;
    struct batch b;
    ssize_t n;
    int rc = 0;
    while (!rc && (n = cleaner_fill(run)) != 0) {
        rc = n < 0 ? (int)n : 0;
        run->result->bytes_before += n > 0 ? n : 0;
        while (!rc && (rc = cleaner_next(run, &b)) == 1)
            rc = copy_batch(c, rules, &b);
        ssize_t written = rc ? 0 : cleaner_output_flush(&run->w->out);
        if (!rc && written < 0)
            rc = (int)written;
        if (!rc && written && !run->w->moved(run->w->arg, (size_t)written))
            rc = -ECANCELED;
    }
    return rc;
}

int cleaner_copy_segment(struct cleaner_copy *c, int i)
{
    struct cleaner_run *run = c->run;
    struct segment *s = run->list->v[i];
    int64_t changed_ms, next = run->list->v[i + 1]->base;
    int err = segment_mtime(s, &changed_ms);
    if (!err)
        err = cleaner_add_aborted(run, &c->txns, i, s->base, next);
    if (err)
        return err;
    struct cleaner_rules rules = {.now_ms = run->now_ms,
                                  .delete_retention_ms = run->config->delete_retention_ms,
                                  .covered_to = c->covered_to,
                                  .keep_legacy_tombstones = changed_ms > c->legacy_horizon_ms};
    err = cleaner_input_open(&run->w->in, s, s->base, next);
    if (!err)
        err = copy_batches(c, &rules);
    cleaner_input_close(&run->w->in);
    return err;
}
