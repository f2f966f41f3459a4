#include "log/log_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/log_load.h"
#include "log/log_private.h"
#include "log/producer_snapshot.h"

/* What is remembered of each batch of a segment. */
struct seen {
    int64_t pos, base, last, max_timestamp;
    int32_t epoch;
};

struct checker {
    struct fs *fs;
    const char *path; /* folder */
    char *why;
    size_t why_n;
    bool ok;
    struct epoch_cache *epochs;
    int64_t start, end; /* of the log; end -1: not known, taken from the files */
    /* the segment being checked */
    int64_t base, next_base, size;
    bool active;
    struct seen *v;
    int n, cap;
};

static void violated(struct checker *c, const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void violated(struct checker *c, const char *rule, const char *fmt, ...)
{
    va_list ap;
    if (!c->ok)
        return;
    c->ok = false;
    int n = snprintf(c->why, c->why_n, "%s: %s/%020" PRId64 ": ", rule, c->path, c->base);
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < c->why_n)
        vsnprintf(c->why + n, c->why_n - (size_t)n, fmt, ap);
    va_end(ap);
}

static struct file *open_kind(struct checker *c, enum log_file_kind kind)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    log_file_path(path, c->path, c->base, kind, LOG_STAGE_LIVE);
    int err = fs_open(c->fs, path, O_RDONLY, &f);
    if (!err)
        return f;
    if (kind != LOG_FILE_TXN || err != -ENOENT)
        violated(c, "F1", "open %s: error %d", path, -err);
    return NULL;
}

static int64_t bytes_of(struct file *f)
{
    struct file_stat st;
    return file_stat(f, &st) ? -1 : st.size;
}

/* ---- data ---- */

static void remember(struct checker *c, const struct batch *b, int64_t pos)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 64;
        c->v = realloc(c->v, (size_t)c->cap * sizeof(*c->v));
        if (!c->v)
            abort();
    }
    c->v[c->n++] = (struct seen){pos, b->base_offset, b->last_offset, b->max_timestamp,
                                 b->magic == 2 ? b->leader_epoch : -1};
}

static void check_records(struct checker *c, struct batch *b)
{
    struct record_iter *it;
    struct record r;
    int64_t last = b->base_offset - 1;
    if (b->magic != 2)
        return;
    if (b->record_count < 0 || b->record_count > b->last_offset - b->base_offset + 1)
        violated(c, "B4", "batch at offset %" PRId64 " counts %d records", b->base_offset,
                 b->record_count);
    if (!c->ok || record_iter_open(b, &it))
        return;
    int rc;
    while ((rc = record_iter_next(it, &r)) == 1) {
        if (r.offset <= last || r.offset > b->last_offset)
            violated(c, "B4", "record of offset %" PRId64 " in the batch at %" PRId64, r.offset,
                     b->base_offset);
        last = r.offset;
    }
    if (rc < 0)
        violated(c, "B4", "the records of the batch at %" PRId64 " do not read", b->base_offset);
    record_iter_close(it);
}

static void check_batch(struct checker *c, struct batch *b, int64_t pos, int64_t expected)
{
    if (!batch_crc_ok(b))
        violated(c, "B1", "checksum of the batch at position %" PRId64, pos);
    if (b->base_offset < expected && b->magic == 2)
        violated(c, "B2", "offset %" PRId64 " where %" PRId64 " or more must come", b->base_offset,
                 expected);
    if (b->last_offset < expected || (c->next_base >= 0 && b->last_offset >= c->next_base))
        violated(c, "B2", "last offset %" PRId64 ", next segment %" PRId64, b->last_offset,
                 c->next_base);
    if (b->last_offset - c->base > INT32_MAX)
        violated(c, "B3", "offset %" PRId64, b->last_offset);
    int64_t at = b->base_offset > c->start ? b->base_offset : c->start;
    if (b->magic == 2 && b->leader_epoch >= 0 && b->last_offset >= c->start && c->epochs &&
        epoch_cache_count(c->epochs) && at >= epoch_cache_at(c->epochs, 0).start &&
        epoch_cache_of_offset(c->epochs, at) != b->leader_epoch)
        violated(c, "E2", "batch at %" PRId64 " of epoch %d, the file says %d", b->base_offset,
                 b->leader_epoch, epoch_cache_of_offset(c->epochs, at));
    check_records(c, b);
}

static void check_data(struct checker *c)
{
    uint8_t window[4096];
    struct file_batches w;
    struct batch b;
    struct buf bytes = BUF_INIT;
    int64_t pos, end = 0, expected = c->base;
    struct file *f = open_kind(c, LOG_FILE_DATA);
    c->n = 0;
    if (!f)
        return;
    if (c->size < 0)
        c->size = bytes_of(f);
    file_batches_init(&w, f, 0, c->size, window, sizeof(window));
    while (c->ok && file_batches_next(&w, &b, &pos) == BATCH_OK) {
        if (file_batch_load(f, pos, &b, &bytes))
            violated(c, "B1", "the batch at position %" PRId64 " does not read", pos);
        else
            check_batch(c, &b, pos, expected);
        remember(c, &b, pos);
        expected = batch_next_offset(&b);
        end = pos + b.size;
    }
    if (end != c->size)
        violated(c, "B1", "batches end at %" PRId64 " of %" PRId64 " bytes", end, c->size);
    buf_free(&bytes);
    file_unref(f);
}

/* ---- indexes ---- */

static const struct seen *at_position(const struct checker *c, int64_t pos)
{
    for (int i = 0; i < c->n; i++)
        if (c->v[i].pos == pos)
            return &c->v[i];
    return NULL;
}

static bool ends_with_offset(const struct checker *c, const struct seen *from, int64_t offset)
{
    for (; from < c->v + c->n; from++)
        if (from->last == offset)
            return true;
    return false;
}

/* An index file read by calls. n < 0: as many entries as it has bytes for. */
static struct file *index_of(struct checker *c, enum log_file_kind kind, int entry, int32_t n,
                             int32_t full_bytes, struct index_view *v)
{
    struct file *f = open_kind(c, kind);
    if (!f)
        return NULL;
    int64_t bytes = bytes_of(f);
    *v = (struct index_view){
        .file = f, .n = n < 0 ? (int32_t)(bytes / entry) : n, .entry = (uint8_t)entry};
    int64_t full = full_bytes / entry * (int64_t)entry;
    if (bytes != (int64_t)v->n * entry && !(c->active && bytes == full))
        violated(c, "I4", "an index of %d entries has %" PRId64 " bytes", v->n, bytes);
    return f;
}

static void check_offset_index(struct checker *c, int32_t n, int32_t full_bytes)
{
    struct index_view v;
    struct offset_position last = {c->base - 1, 0};
    struct file *f = index_of(c, LOG_FILE_INDEX, OFFSET_ENTRY_BYTES, n, full_bytes, &v);
    for (int32_t i = 0; f && c->ok && i < v.n; i++) {
        struct offset_position e = offset_index_at(&v, c->base, i);
        const struct seen *b = at_position(c, e.position);
        if (e.offset <= last.offset || e.position <= last.position)
            violated(c, "I1", "entry %d does not rise", i);
        else if (!b || b->base > e.offset || !ends_with_offset(c, b, e.offset))
            violated(c, "I1", "entry %d (%" PRId64 " at %" PRId64 ") leads to no such batch", i,
                     e.offset, e.position);
        last = e;
    }
    file_unref(f);
}

static void check_time_index(struct checker *c, int32_t n, int32_t full_bytes)
{
    struct index_view v;
    struct time_offset last = {-1, c->base};
    int64_t newest = -1;
    struct file *f = index_of(c, LOG_FILE_TIME, TIME_ENTRY_BYTES, n, full_bytes, &v);
    if (!f)
        return;
    for (int32_t i = 0; c->ok && i < v.n; i++) {
        struct time_offset e = time_index_at(&v, c->base, i);
        if (e.timestamp <= last.timestamp || e.offset < last.offset)
            violated(c, "I2",
                     "entry %d (time %" PRId64 ", offset %" PRId64 ") does not rise from (%" PRId64
                     ", %" PRId64 ")",
                     i, e.timestamp, e.offset, last.timestamp, last.offset);
        for (int j = 0; j < c->n && c->v[j].last <= e.offset; j++)
            if (c->v[j].max_timestamp > e.timestamp)
                violated(c, "I2", "entry %d: the batch at %" PRId64 " is newer", i, c->v[j].base);
        last = e;
    }
    for (int j = 0; j < c->n; j++)
        if (c->v[j].max_timestamp > newest)
            newest = c->v[j].max_timestamp;
    if (!c->active && newest >= 0 && last.timestamp != newest)
        violated(c, "I3", "newest record %" PRId64 ", last entry %" PRId64, newest, last.timestamp);
    file_unref(f);
}

static void check_txn_index(struct checker *c)
{
    uint8_t raw[TXN_ENTRY_BYTES];
    struct txn_entry e;
    struct file *f = open_kind(c, LOG_FILE_TXN);
    if (!f)
        return;
    int64_t bytes = bytes_of(f), before = c->base - 1;
    if (bytes % TXN_ENTRY_BYTES)
        violated(c, "T1", "transaction index of %" PRId64 " bytes", bytes);
    for (int64_t at = 0; c->ok && at < bytes; at += TXN_ENTRY_BYTES) {
        if (file_pread(f, raw, sizeof(raw), at) != (ssize_t)sizeof(raw) ||
            !txn_entry_decode(raw, &e) || e.last_offset <= before ||
            (c->next_base >= 0 && e.last_offset >= c->next_base) ||
            e.first_offset >= e.last_offset || e.last_stable_offset - 1 > e.last_offset)
            violated(c, "T1", "transaction entry at %" PRId64, at);
        before = e.last_offset;
    }
    file_unref(f);
}

/* ---- files of the folder ---- */

static void check_snapshot(struct checker *c, int64_t offset)
{
    struct producer_state ps;
    producer_state_init(&ps);
    c->base = offset;
    if (producer_snapshot_read(&ps, c->fs, c->path, offset, 0, INT64_MAX))
        violated(c, "S1", "the snapshot does not read");
    hmap_each (node, &ps.by_id) {
        const struct producer *p = hmap_entry(node, struct producer, node);
        if ((p->batches_n && p->batches[p->newest].last_offset >= offset) ||
            p->txn_first_offset >= offset)
            violated(c, "S1", "producer %" PRId64 " is newer than the snapshot", p->id);
    }
    producer_state_free(&ps);
}

static bool name_there(const struct log_names *names, int64_t base, enum log_file_kind kind)
{
    for (int i = 0; i < names->n; i++)
        if (names->v[i].base == base && names->v[i].kind == kind &&
            names->v[i].stage == LOG_STAGE_LIVE)
            return true;
    return false;
}

static void check_names(struct checker *c, const struct log_names *names)
{
    for (int i = 0; i < names->n; i++) {
        const struct log_file_name *f = &names->v[i];
        c->base = f->base;
        if (f->stage != LOG_STAGE_LIVE)
            continue;
        if (f->kind == LOG_FILE_SNAPSHOT) {
            check_snapshot(c, f->base);
            continue;
        }
        if (!name_there(names, f->base, LOG_FILE_DATA) ||
            !name_there(names, f->base, LOG_FILE_INDEX) ||
            !name_there(names, f->base, LOG_FILE_TIME))
            violated(c, "F1", "a file of the segment is missing");
    }
}

static void check_epochs(struct checker *c)
{
    struct epoch_entry last = {-1, -1};
    for (int i = 0; i < epoch_cache_count(c->epochs); i++) {
        struct epoch_entry e = epoch_cache_at(c->epochs, i);
        if (e.epoch <= last.epoch || e.start <= last.start || e.start > c->end)
            violated(c, "E1", "epoch %d starts at %" PRId64 ", log end %" PRId64, e.epoch, e.start,
                     c->end);
        last = e;
    }
}

static void check_positions(struct checker *c, struct log *log)
{
    int64_t start = log_start_offset(log), lso = log_last_stable_offset(log);
    int64_t hw = log_high_watermark(log), end = log_end_offset(log), rp = log_recovery_point(log);
    c->base = log->segments.now->v[0]->base;
    if (start > lso || lso > hw || hw > end || rp > end || c->base > start)
        violated(c, "P1",
                 "start %" PRId64 ", stable %" PRId64 ", watermark %" PRId64 ", end %" PRId64
                 ", recovery point %" PRId64,
                 start, lso, hw, end, rp);
}

bool log_check(struct log *log, char *why, size_t why_n)
{
    struct log_names names;
    pthread_mutex_lock(&log->flush_lock);
    pthread_mutex_lock(&log->lock);
    struct checker c = {.fs = log_fs(log),
                        .path = log_path(log),
                        .why = why,
                        .why_n = why_n,
                        .ok = true,
                        .epochs = &log->epochs,
                        .start = log_start_offset(log),
                        .end = log_end_offset(log)};
    const struct segment_list *l = log->segments.now;
    check_positions(&c, log);
    check_epochs(&c);
    for (int i = 0; i < l->n && c.ok; i++) {
        struct segment *s = l->v[i];
        c.base = s->base;
        c.size = segment_size(s);
        c.active = i + 1 == l->n;
        c.next_base = c.active ? c.end : l->v[i + 1]->base;
        check_data(&c);
        check_offset_index(&c, atomic_load(&s->offsets.n), s->offsets.max * OFFSET_ENTRY_BYTES);
        check_time_index(&c, atomic_load(&s->times.n), s->times.max * TIME_ENTRY_BYTES);
        check_txn_index(&c);
    }
    if (c.ok && log_names_list(c.fs, c.path, &names) == 0) {
        check_names(&c, &names);
        log_names_free(&names);
    }
    pthread_mutex_unlock(&log->lock);
    pthread_mutex_unlock(&log->flush_lock);
    free(c.v);
    return c.ok;
}

bool log_check_folder(struct fs *fs, const char *path, char *why, size_t why_n)
{
    struct epoch_cache epochs;
    struct log_names names;
    bool had_text;
    struct checker c = {.fs = fs,
                        .path = path,
                        .why = why,
                        .why_n = why_n,
                        .ok = true,
                        .epochs = &epochs,
                        .start = 0,
                        .end = 0};
    epoch_cache_init(&epochs);
    if (log_names_list(fs, path, &names)) {
        violated(&c, "F1", "the folder does not list");
        epoch_cache_free(&epochs);
        return false;
    }
    check_names(&c, &names);
    if (epoch_cache_read(&epochs, fs, path, &had_text))
        violated(&c, "E1", "the epoch file does not read");
    for (int i = 0; i < names.n && c.ok; i++) {
        if (names.v[i].kind != LOG_FILE_DATA || names.v[i].stage != LOG_STAGE_LIVE)
            continue;
        c.base = names.v[i].base;
        c.next_base = -1;
        for (int j = i + 1; j < names.n && c.next_base < 0; j++)
            if (names.v[j].kind == LOG_FILE_DATA && names.v[j].stage == LOG_STAGE_LIVE)
                c.next_base = names.v[j].base;
        c.size = -1;
        check_data(&c);
        check_offset_index(&c, -1, 0);
        check_time_index(&c, -1, 0);
        check_txn_index(&c);
        c.end = c.n ? c.v[c.n - 1].last + 1 : c.base;
    }
    if (c.ok)
        check_epochs(&c);
    log_names_free(&names);
    epoch_cache_free(&epochs);
    free(c.v);
    return c.ok;
}
