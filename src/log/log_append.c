/* log_append.c - appending: the leader's and the follower's way.
 *
 * ORDER  what may refuse (producer checks), what may fail without a trace (roll, epoch file,
 *        memory), the write, indexes, transactions, and last the log end. Only then does anybody
 *        see the records. An error after the write has taken the dir offline: the bytes lie behind
 *        the log end and recovery decides about them. */
#include <errno.h>

#include "log/log_private.h"

static struct segment *active_of(struct log *log)
{
    return segment_list_active(log->segments.now); /* under the lock nobody else changes it */
}

static bool has_producer(const struct batch *b)
{
    return b->magic == 2 && b->producer_id >= 0;
}

/* The batch's bytes as they will be, or are, in the log. */
static struct batch batch_again(const struct prepared *pr, int i)
{
    struct batch b = {0};
    const struct prepared_batch *pb = &pr->batches[i];
    batch_decode(pr->p + pb->at, pr->len - pb->at, pr->len - pb->at, &b);
    return b;
}

/* The marker in a control batch; *m is left alone for data. false: not readable. */
static int marker_of(const struct prepared *pr, int i, struct txn_marker *m,
                     const struct txn_marker **out)
{
    *out = NULL;
    if (!batch_is_control(&pr->batches[i].head))
        return 0;
    struct batch b = batch_again(pr, i);
    *out = m;
    return txn_marker_parse(&b, m);
}

/* A transaction opens only if its coordinator has been asked. */
static enum kerr check_guard(struct log *log, struct prepared *pr, const struct batch *b,
                             enum append_origin origin)
{
    if (pr->txn_guard == TXN_GUARD_OFF || !batch_is_transactional(b) || batch_is_control(b) ||
        producer_has_open_txn(&log->producers, b->producer_id))
        return KERR_NONE;
    return txn_guards_check(&log->guards, b->producer_id,
                            origin == APPEND_CLIENT ? b->base_sequence : -1, pr->txn_guard,
                            &pr->message);
}

static enum kerr check_producers(struct log *log, struct prepared *pr, enum append_origin origin,
                                 struct append_info *out)
{
    for (int i = 0; i < pr->batches_n; i++) {
        struct txn_marker m;
        const struct txn_marker *marker;
        const struct producer_batch *dup;
        const struct batch *b = &pr->batches[i].head;
        if (!has_producer(b))
            continue;
        int err = marker_of(pr, i, &m, &marker);
        if (err == -EBADMSG)
            return KERR_INVALID_RECORD;
        if (err)
            return log_kerr(err);
        enum kerr code = producer_check(&log->producers, b, marker, origin, &dup, &pr->message);
        if (code == KERR_OUT_OF_ORDER_SEQUENCE_NUMBER &&
            producer_restored(&log->producers, b->producer_id)) {
            /* sent again after a start, of which the producer knows nothing */
            log_recall_producers(log);
            code = producer_check(&log->producers, b, marker, origin, &dup, &pr->message);
        }
        if (!code && !dup)
            code = check_guard(log, pr, b, origin);
        if (code)
            return code;
        if (dup) {
            out->duplicate = true;
            out->first_offset = dup->last_offset - dup->offset_delta;
            out->last_offset = dup->last_offset;
            out->log_append_time = dup->timestamp;
            return KERR_NONE;
        }
        if (producer_reserve(&log->producers, b, marker))
            return log_kerr(-ENOMEM);
    }
    return KERR_NONE;
}

/* A replica may hand on markers that we cannot read: they change nothing then. */
static int reserve_replicated(struct log *log, const struct prepared *pr, int from, int to)
{
    int markers = 0;
    for (int i = from; i < to; i++) {
        struct txn_marker m;
        const struct txn_marker *marker;
        if (!has_producer(&pr->batches[i].head))
            continue;
        if (marker_of(pr, i, &m, &marker) == -ENOMEM ||
            producer_reserve(&log->producers, &pr->batches[i].head, marker))
            return -ENOMEM;
        markers += marker && m.valid;
    }
    return producer_reserve_markers(&log->producers, markers);
}

/* Transactions and producers after the write. */
static int apply_producers(struct log *log, struct segment *active, const struct prepared *pr,
                           int from, int to)
{
    bool any = false;
    for (int i = from; i < to; i++) {
        struct txn_marker m;
        const struct txn_marker *marker;
        struct completed_txn done;
        if (!has_producer(&pr->batches[i].head))
            continue;
        int err = marker_of(pr, i, &m, &marker);
        if (err == -ENOMEM) {
            log_dir_fail(log->folder.dir, err, "read a marker in %s", log_path(log));
            return err;
        }
        any = true;
        if (marker || batch_is_transactional(&pr->batches[i].head))
            txn_guards_end(&log->guards, pr->batches[i].head.producer_id);
        if (!producer_apply(&log->producers, &pr->batches[i].head, marker, &done) || !done.aborted)
            continue;
        err =
            segment_add_txn(active, (struct txn_entry){done.producer_id, done.first_offset,
                                                       done.last_offset, done.last_stable_offset});
        if (err)
            return err;
        atomic_store(&log->names_dirty, true);
    }
    if (any)
        log_update_unstable(log);
    return 0;
}

/* A new active segment if one is due for the batches that end with last_offset. */
static int make_room(struct log *log, int64_t n, int64_t max_timestamp, int64_t first_offset,
                     int64_t last_offset, bool *rolled)
{
    bool roll = false;
    int err = segment_ready(active_of(log));
    if (!err)
        err = log_should_roll(log, active_of(log), n, max_timestamp, last_offset, &roll);
    if (err || !roll)
        return err;
    int64_t base = log_end_offset(log);
    if (first_offset > base)
        base = first_offset;
    err = log_roll(log, base);
    *rolled = !err;
    return err;
}

/* Are too many of the records below `end` at risk to acknowledge the last of them? */
static bool flush_due(struct log *log, int64_t end)
{
    return end - log_recovery_point(log) >= log->config->c.flush_messages;
}

static void publish(struct log *log, struct segment *active, size_t n, int64_t end)
{
    segment_publish(active, n);
    atomic_store_explicit(&log->end, end, memory_order_release);
    log->touched = true;
}

/* Everything the batches [from, to) of pr, which lie at [at, at + n) in it, need after the write.
 * `each`: index every batch, not the append as one. */
static int finish(struct log *log, const struct prepared *pr, int from, int to, bool each)
{
    struct segment *active = active_of(log);
    int32_t interval = log->config->c.index_interval_bytes;
    int64_t pos = atomic_load_explicit(&active->size, memory_order_relaxed);
    size_t start = pr->batches[from].at;
    size_t end = to < pr->batches_n ? pr->batches[to].at : pr->len;
    int err = 0;
    if (!each)
        err = segment_index(
            active, pos, end - start, pr->last_offset,
            (struct time_offset){pr->max_timestamp, pr->first_offset + pr->max_timestamp_delta},
            interval);
    for (int i = from; each && i < to && !err; i++) {
        const struct batch *b = &pr->batches[i].head;
        err = segment_index(active, pos + (int64_t)(pr->batches[i].at - start), b->size,
                            b->last_offset, (struct time_offset){b->max_timestamp, b->last_offset},
                            interval);
    }
    if (!err)
        err = apply_producers(log, active, pr, from, to);
    return err;
}

/* Records without epochs come: old ones would mislead. */
static int forget_epochs(struct log *log)
{
    epoch_cache_clear(&log->epochs);
    return log->epochs.unsaved ? log_save_epochs(log, false) : 0; /* or a save failed before */
}

static enum kerr append_as_leader(struct log *log, struct prepared *pr, int32_t leader_epoch,
                                  enum append_origin origin, struct append_info *out)
{
    enum kerr code = log_usable(log);
    if (code)
        return code;
    if (pr->batches_n == 0)
        return KERR_NONE;
    if (pr->len > (size_t)log->config->c.segment_bytes)
        return KERR_RECORD_LIST_TOO_LARGE;
    code = check_producers(log, pr, origin, out);
    if (!code && out->duplicate) /* the flush of the first one may still be on its way */
        out->needs_flush = flush_due(log, out->last_offset + 1);
    if (code || out->duplicate)
        return code;
    int64_t first = log_end_offset(log), last = first + pr->offsets_n - 1;
    bool rolled = false, v2 = pr->batches[0].head.magic == 2;
    int err = log_flush_metadata(log);
    if (!err && v2)
        err = log_failed(
            log, epoch_cache_assign(&log->epochs, log_fs(log), log_path(log), leader_epoch, first),
            "write", EPOCH_FILE_NAME);
    if (!err && !v2)
        err = forget_epochs(log);
    if (!err)
        err = make_room(log, (int64_t)pr->len, pr->max_timestamp, first, last, &rolled);
    if (err)
        return log_kerr(err);
    records_assign(pr, first, leader_epoch);
    struct segment *active = active_of(log);
    err = segment_write(active, pr->p, pr->len);
    if (!err)
        err = finish(log, pr, 0, pr->batches_n, false);
    if (err)
        return log_kerr(err);
    publish(log, active, pr->len, last + 1);
    out->first_offset = first;
    out->last_offset = last;
    out->log_append_time = log->config->c.log_append_time ? pr->max_timestamp : -1;
    out->needs_flush = flush_due(log, last + 1);
    out->rolled = rolled;
    return KERR_NONE;
}

enum kerr log_append(struct log *log, struct prepared *pr, int32_t leader_epoch,
                     enum append_origin origin, struct append_info *out)
{
    *out = (struct append_info){.first_offset = -1, .last_offset = -1, .log_append_time = -1};
    pthread_mutex_lock(&log->lock);
    enum kerr code = append_as_leader(log, pr, leader_epoch, origin, out);
    out->log_start_offset = log_start_offset(log);
    pthread_mutex_unlock(&log->lock);
    return code;
}

/* ---- follower ---- */

/* First offset of an entry, as far as its format tells. */
static int64_t first_of(const struct batch *b)
{
    return b->magic == 2 ? b->base_offset : b->last_offset;
}

static bool offsets_rise(const struct prepared *pr)
{
    for (int i = 0; i < pr->batches_n; i++) {
        const struct batch *b = &pr->batches[i].head;
        if (b->base_offset < 0 || b->last_offset < b->base_offset ||
            b->last_offset >= LOG_OFFSET_LIMIT ||
            (i && first_of(b) <= pr->batches[i - 1].head.last_offset))
            return false;
    }
    return true;
}

/* The batches from `from` on that fit into one segment's relative offsets: the end of that run. */
static int run_of(const struct prepared *pr, int from)
{
    int64_t first = first_of(&pr->batches[from].head);
    int to = from + 1;
    while (to < pr->batches_n && pr->batches[to].head.last_offset - first <= INT32_MAX)
        to++;
    return to;
}

static int64_t max_timestamp(const struct prepared *pr, int from, int to)
{
    int64_t max = NO_TIMESTAMP;
    for (int i = from; i < to; i++)
        if (pr->batches[i].head.max_timestamp > max)
            max = pr->batches[i].head.max_timestamp;
    return max;
}

static int note_epochs(struct log *log, const struct prepared *pr, int from, int to)
{
    int err = 0;
    for (int i = from; i < to && !err; i++) {
        const struct batch *b = &pr->batches[i].head;
        if (b->magic == 2) {
            err = log_failed(log,
                             epoch_cache_assign(&log->epochs, log_fs(log), log_path(log),
                                                b->leader_epoch, b->base_offset),
                             "write", EPOCH_FILE_NAME);
        } else {
            err = forget_epochs(log);
        }
    }
    return err;
}

static int append_run(struct log *log, const struct prepared *pr, int from, int to, bool *rolled)
{
    size_t at = pr->batches[from].at;
    size_t n = (to < pr->batches_n ? pr->batches[to].at : pr->len) - at;
    int64_t last = pr->batches[to - 1].head.last_offset;
    const struct batch *b = &pr->batches[from].head;
    /* the first record of an old compressed set may lie below its offset */
    int64_t first = b->magic == 2 ? b->base_offset : last - INT32_MAX;
    int err = note_epochs(log, pr, from, to);
    if (!err)
        err = reserve_replicated(log, pr, from, to);
    if (!err)
        err = make_room(log, (int64_t)n, max_timestamp(pr, from, to), first, last, rolled);
    if (err)
        return err;
    struct segment *active = active_of(log);
    err = segment_write(active, pr->p + at, n);
    if (!err)
        err = finish(log, pr, from, to, true);
    if (!err)
        publish(log, active, n, last + 1);
    return err;
}

static enum kerr append_as_follower(struct log *log, struct prepared *pr, struct append_info *out)
{
    enum kerr code = log_usable(log);
    if (code)
        return code;
    if (pr->batches_n == 0)
        return KERR_NONE;
    int64_t first = first_of(&pr->batches[0].head);
    if (first < log_end_offset(log))
        return KERR_OFFSET_OUT_OF_RANGE;
    if (!offsets_rise(pr))
        return KERR_CORRUPT_MESSAGE;
    bool rolled = false;
    int err = log_flush_metadata(log);
    for (int from = 0, to; from < pr->batches_n && !err; from = to) {
        to = run_of(pr, from);
        err = append_run(log, pr, from, to, &rolled);
    }
    if (err)
        return log_kerr(err);
    out->first_offset = first;
    out->last_offset = pr->batches[pr->batches_n - 1].head.last_offset;
    out->needs_flush = flush_due(log, out->last_offset + 1);
    out->rolled = rolled;
    return KERR_NONE;
}

enum kerr log_append_as_follower(struct log *log, struct prepared *pr, struct append_info *out)
{
    *out = (struct append_info){.first_offset = -1, .last_offset = -1, .log_append_time = -1};
    pthread_mutex_lock(&log->lock);
    enum kerr code = append_as_follower(log, pr, out);
    out->log_start_offset = log_start_offset(log);
    pthread_mutex_unlock(&log->lock);
    return code;
}
