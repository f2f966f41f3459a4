#include "log/segment_recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "log/open_files.h"

enum { WINDOW = 256 << 10 };

void segment_close_files(struct segment *s)
{
    index_file_close(&s->offsets);
    index_file_close(&s->times);
    open_files_remove(s->folder->dir->open_files, s);
    segment_drop_files(s);
}

static int fresh_index(struct segment *s, struct index_file *x, enum log_file_kind kind)
{
    char path[LOG_PATH_MAX];
    segment_path(s, kind, path);
    return segment_failed(s, kind, index_file_reset(x, s->folder->dir->fs, path), "reset");
}

static int fresh_txn_index(struct segment *s)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_TXN, path);
    txn_index_close(&s->txns);
    txn_index_init(&s->txns, false);
    s->txns.gone = &s->doomed;
    int err = fs_unlink(s->folder->dir->fs, path);
    return err == -ENOENT ? 0 : segment_failed(s, LOG_FILE_TXN, err, "remove");
}

/* The marker of a control batch, which is read whole for it. -EBADMSG when it is not one. */
static int read_marker(struct file *f, const struct batch *head, int64_t pos, struct txn_marker *m)
{
    struct batch b = *head;
    struct buf bytes = BUF_INIT;
    int err = file_batch_load(f, pos, &b, &bytes);
    if (!err)
        err = txn_marker_parse(&b, m);
    buf_free(&bytes);
    return err;
}

/* A batch that is in the log already, by the rules of replication: nothing is refused. *aborted:
 * `done` is a transaction for the index. */
static int feed_producers(struct producer_state *ps, struct file *f, const struct batch *b,
                          int64_t pos, struct completed_txn *done, bool *aborted)
{
    struct txn_marker m;
    bool control = batch_is_control(b);
    *aborted = false;
    if (b->magic != 2 || b->producer_id < 0)
        return 0;
    int err = control ? read_marker(f, b, pos, &m) : 0;
    if (err == -EBADMSG) /* as if it were of an unknown kind */
        return 0;
    if (!err)
        err = producer_reserve(ps, b, control ? &m : NULL);
    if (!err && producer_apply(ps, b, control ? &m : NULL, done))
        *aborted = done->aborted;
    return err;
}

/* May this batch stand here? NULL, or why not. */
static const char *misplaced(const struct segment *s, const struct batch *b, int64_t expected)
{
    int64_t first = b->magic == 2 ? b->base_offset : b->last_offset;
    if (b->last_offset < b->base_offset || first < expected)
        return "its offsets do not rise";
    if (b->last_offset >= LOG_OFFSET_LIMIT)
        return "no log has offsets as high as its last one";
    if (b->last_offset - s->base > INT32_MAX)
        return "its offset is too far from the segment's base";
    return NULL;
}

static int take_batch(struct segment *s, struct segment_recovery *r, struct file_batches *w,
                      const struct batch *b, int64_t pos)
{
    struct completed_txn done;
    bool aborted;
    int err = segment_index(s, pos, b->size, b->last_offset,
                            (struct time_offset){b->max_timestamp, b->last_offset},
                            r->config->index_interval_bytes);
    if (!err && r->epochs && b->magic == 2 && b->leader_epoch > epoch_cache_latest(r->epochs))
        err = epoch_cache_note(r->epochs, b->leader_epoch, b->base_offset);
    if (err || !r->producers)
        return err;
    err = feed_producers(r->producers, w->file, b, pos, &done, &aborted);
    if (!err && aborted)
        err = segment_add_txn(s, (struct txn_entry){done.producer_id, done.first_offset,
                                                    done.last_offset, done.last_stable_offset});
    return err;
}

/* Walks to the end or to the first batch that is not right. *end: where the good part ends. */
static int scan(struct segment *s, struct segment_recovery *r, struct file_batches *w, int64_t *end)
{
    struct batch b;
    int64_t pos;
    enum batch_walk walk;
    while ((walk = file_batches_next(w, &b, &pos)) == BATCH_OK) {
        r->why = misplaced(s, &b, r->next_offset);
        if (r->why)
            return 0;
        if (b.last_offset >= r->trust_below) {
            int ok = file_batches_crc_ok(w, &b, pos);
            if (ok < 0)
                return ok;
            if (!ok) {
                r->why = "its checksum is wrong";
                return 0;
            }
        }
        int err = take_batch(s, r, w, &b, pos);
        if (err)
            return err;
        r->next_offset = batch_next_offset(&b);
        *end = pos + b.size;
    }
    if (walk == BATCH_CORRUPT)
        r->why = "it is not the head of a batch";
    else if (!w->error && *end < w->end)
        r->why = "it is cut short";
    return w->error;
}

static int recover_open(struct segment *s, struct segment_recovery *r, struct file *f,
                        uint8_t *window)
{
    struct file_batches w;
    struct file_stat st;
    int64_t end = 0;
    int err = segment_failed(s, LOG_FILE_DATA, file_stat(f, &st), "stat");
    if (!err)
        err = fresh_index(s, &s->offsets, LOG_FILE_INDEX);
    if (!err)
        err = fresh_index(s, &s->times, LOG_FILE_TIME);
    if (!err && r->producers)
        err = fresh_txn_index(s);
    if (err)
        return err;
    atomic_store(&s->max_timestamp, NO_TIMESTAMP);
    atomic_store(&s->max_timestamp_offset, s->base);
    atomic_store(&s->size, st.size);
    s->last_time = (struct time_offset){-1, s->base};
    s->first_timestamp = TIMESTAMP_UNKNOWN;
    s->since_index = 0;
    s->ready = true;
    file_batches_init(&w, f, 0, st.size, window, WINDOW);
    err = segment_failed(s, LOG_FILE_DATA, scan(s, r, &w, &end), "recover");
    if (!err && end < st.size && !r->keep_data) {
        r->cut_bytes = st.size - end;
        err = segment_failed(s, LOG_FILE_DATA, file_truncate(f, end), "cut");
        atomic_store(&s->size, end);
    }
    s->since_index = 0;
    if (!err)
        err = segment_seal(s);
    atomic_store(&s->dirty, true);
    return err;
}

int segment_recover(struct segment *s, struct segment_recovery *r)
{
    struct file *f;
    r->next_offset = s->base;
    r->cut_bytes = 0;
    r->why = NULL;
    segment_close_files(s);
    bool active = s->offsets.growable;
    s->offsets.growable = s->times.growable = true;
    uint8_t *window = malloc(WINDOW);
    int err = window ? segment_file(s, &f) : -ENOMEM;
    if (!err) {
        err = recover_open(s, r, f, window);
        file_unref(f);
    }
    free(window);
    segment_close_files(s);
    s->offsets.growable = s->times.growable = active;
    return err;
}

int segment_replay_producers(struct segment *s, int64_t from, int64_t upto,
                             struct producer_state *ps)
{
    struct file_batches w;
    struct batch b;
    struct file *f = NULL;
    int64_t pos;
    uint8_t *window = malloc(WINDOW);
    int err = window ? segment_file(s, &f) : -ENOMEM;
    if (!err)
        err = segment_walk(s, f, from, segment_size(s), window, WINDOW, &w);
    while (!err && file_batches_next(&w, &b, &pos) == BATCH_OK) {
        struct completed_txn done;
        bool aborted;
        if (b.last_offset < from)
            continue;
        if (b.base_offset >= upto)
            break;
        err = segment_failed(s, LOG_FILE_DATA, feed_producers(ps, f, &b, pos, &done, &aborted),
                             "read");
    }
    if (!err)
        err = segment_failed(s, LOG_FILE_DATA, w.error, "read");
    file_unref(f);
    free(window);
    return err;
}

int segment_collect_epochs(struct segment *s, struct epoch_cache *epochs)
{
    struct file_batches w;
    struct batch b;
    struct file *f = NULL;
    int64_t pos;
    uint8_t *window = malloc(WINDOW);
    int err = window ? segment_file(s, &f) : -ENOMEM;
    if (!err) {
        file_batches_init(&w, f, 0, segment_size(s), window, WINDOW);
        while (!err && file_batches_next(&w, &b, &pos) == BATCH_OK) {
            if (b.magic != 2)
                epoch_cache_clear(epochs);
            else if (b.leader_epoch > epoch_cache_latest(epochs))
                err = epoch_cache_note(epochs, b.leader_epoch, b.base_offset);
        }
        if (!err)
            err = segment_failed(s, LOG_FILE_DATA, w.error, "read");
    }
    file_unref(f);
    free(window);
    return err;
}

/* Looks at an index file without keeping it open. -ENOENT: not there. */
static int peek(struct segment *s, enum log_file_kind kind, int entry, struct index_view *v,
                bool *whole)
{
    char path[LOG_PATH_MAX];
    struct file_stat st = {0};
    *v = (struct index_view){.entry = (uint8_t)entry};
    segment_path(s, kind, path);
    int err = fs_open(s->folder->dir->fs, path, O_RDONLY, &v->file);
    if (err)
        return err == -ENOENT ? err : segment_failed(s, kind, err, "open");
    err = segment_failed(s, kind, file_stat(v->file, &st), "stat");
    v->n = (int32_t)(st.size / entry);
    *whole = st.size % entry == 0;
    if (err) {
        file_unref(v->file);
        v->file = NULL;
    }
    return err;
}

static int settle_times(struct segment *s, bool *sane)
{
    struct index_view v;
    bool whole = false;
    int err = peek(s, LOG_FILE_TIME, TIME_ENTRY_BYTES, &v, &whole);
    if (err == -ENOENT) {
        *sane = false;
        return 0;
    }
    if (err)
        return err;
    *sane = whole && time_index_sane(&v, s->base);
    struct time_offset last = time_index_last(&v, s->base);
    atomic_store(&s->times.n, v.n);
    s->last_time = last;
    atomic_store(&s->max_timestamp, last.timestamp);
    atomic_store(&s->max_timestamp_offset, last.offset);
    file_unref(v.file);
    return segment_failed(s, LOG_FILE_TIME, v.error, "read");
}

static int settle_offsets(struct segment *s, bool *sane, int64_t *walk_from)
{
    struct index_view v;
    bool whole = false;
    int err = peek(s, LOG_FILE_INDEX, OFFSET_ENTRY_BYTES, &v, &whole);
    if (err == -ENOENT) {
        *sane = false;
        return 0;
    }
    if (err)
        return err;
    *sane = whole && offset_index_sane(&v, s->base, segment_size(s));
    if (*sane && v.n)
        *walk_from = offset_index_at(&v, s->base, v.n - 1).position;
    atomic_store(&s->offsets.n, v.n);
    file_unref(v.file);
    return segment_failed(s, LOG_FILE_INDEX, v.error, "read");
}

/* Nothing in the data, so nothing can be in the indexes. */
static int settle_empty(struct segment *s)
{
    atomic_store(&s->offsets.n, 0);
    atomic_store(&s->times.n, 0);
    atomic_store(&s->max_timestamp, NO_TIMESTAMP);
    return 0;
}

int segment_settle(struct segment *s, int64_t *next_offset, bool *sane)
{
    uint8_t window[4096];
    struct file_batches w;
    struct batch b;
    struct file *f;
    int64_t pos, walk_from = 0, end = 0, size = segment_size(s);
    *sane = true;
    *next_offset = s->base;
    if (size == 0)
        return settle_empty(s);
    int err = settle_offsets(s, sane, &walk_from);
    if (!err && *sane)
        err = settle_times(s, sane);
    if (err || !*sane)
        return err;
    err = segment_file(s, &f);
    if (err)
        return err;
    file_batches_init(&w, f, walk_from, size, window, sizeof(window));
    while (file_batches_next(&w, &b, &pos) == BATCH_OK && !misplaced(s, &b, *next_offset)) {
        *next_offset = batch_next_offset(&b);
        end = pos + b.size;
    }
    file_unref(f);
    segment_close_files(s);
    *sane = end == size;
    return segment_failed(s, LOG_FILE_DATA, w.error, "read");
}
