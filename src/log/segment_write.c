/* segment_write.c - making, appending to, sealing, syncing, dooming and cutting a segment. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/segment.h"

static struct fs *fs_of(const struct segment *s)
{
    return s->folder->dir->fs;
}

/* Takes the file's place under its name, whatever a crash left there. */
static int create_data(struct segment *s, const struct log_config *c, struct file **out)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_DATA, path);
    int err = fs_open(fs_of(s), path, O_RDWR | O_CREAT | O_EXCL, out);
    if (err == -EEXIST) {
        err = fs_unlink(fs_of(s), path);
        if (!err)
            err = fs_open(fs_of(s), path, O_RDWR | O_CREAT | O_EXCL, out);
    }
    if (!err && c->preallocate) {
        err = file_allocate(*out, 0, c->segment_bytes);
        if (err)
            file_unref(*out);
    }
    return segment_failed(s, LOG_FILE_DATA, err, "create");
}

static int create_index(struct segment *s, struct index_file *x, enum log_file_kind kind)
{
    char path[LOG_PATH_MAX];
    segment_path(s, kind, path);
    return segment_failed(s, kind, index_file_create(x, fs_of(s), path), "create");
}

static int remove_old_txn_index(struct segment *s)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_TXN, path);
    int err = fs_unlink(fs_of(s), path);
    return err == -ENOENT ? 0 : segment_failed(s, LOG_FILE_TXN, err, "remove");
}

void segment_discard(struct segment *s)
{
    char path[LOG_PATH_MAX];
    for (int kind = LOG_FILE_DATA; kind <= LOG_FILE_TXN; kind++) {
        segment_path(s, (enum log_file_kind)kind, path);
        int err = fs_unlink(fs_of(s), path);
        if (err && err != -ENOENT)
            log_dir_fail(s->folder->dir, err, "remove %s", path);
    }
}

static int create(const struct log_folder *folder, int64_t base, enum log_file_stage stage,
                  const struct log_config *c, struct segment **out)
{
    struct file *f;
    *out = NULL;
    struct segment *s = segment_existing(folder, base, 0, false, true, c);
    if (!s)
        return -ENOMEM;
    s->stage = stage;
    int err = create_data(s, c, &f);
    if (!err) {
        segment_give_file(s, f);
        s->preallocated = c->preallocate;
        err = create_index(s, &s->offsets, LOG_FILE_INDEX);
    }
    if (!err)
        err = create_index(s, &s->times, LOG_FILE_TIME);
    if (!err)
        err = remove_old_txn_index(s);
    if (err) {
        segment_discard(s);
        segment_unref(s);
        return err;
    }
    atomic_store(&s->max_timestamp, NO_TIMESTAMP);
    s->ready = true;
    if (stage == LOG_STAGE_LIVE)
        segment_economize(s);
    *out = s;
    return 0;
}

int segment_create(const struct log_folder *folder, int64_t base, const struct log_config *c,
                   struct segment **out)
{
    return create(folder, base, LOG_STAGE_LIVE, c, out);
}

int segment_create_cleaned(const struct log_folder *folder, int64_t base,
                           const struct log_config *c, struct segment **out)
{
    struct log_config plain = *c;
    plain.preallocate = false;
    return create(folder, base, LOG_STAGE_CLEANED, &plain, out);
}

static int reopen_index(struct segment *s, struct index_file *x,
                        int (*open)(struct segment *s, struct index_view *v))
{
    struct index_view v;
    index_file_close(x);
    x->growable = false;
    int err = open(s, &v);
    index_view_close(&v);
    return err ? err : v.error;
}

int segment_reopen(struct segment *s)
{
    struct file *f;
    struct txn_entry e;
    char path[LOG_PATH_MAX];
    int err = reopen_index(s, &s->offsets, segment_offsets);
    if (!err)
        err = reopen_index(s, &s->times, segment_times);
    if (!err && (err = segment_file(s, &f)) == 0)
        file_unref(f);
    if (!err && atomic_load(&s->txns.n) != 0) {
        segment_path(s, LOG_FILE_TXN, path);
        int n = txn_index_read(&s->txns, fs_of(s), path, 0, &e, 1);
        err = n < 0 ? segment_failed(s, LOG_FILE_TXN, n, "open") : 0;
    }
    return err;
}

/* Largest timestamp of the first batch, for the age of the segment. */
static int read_first_timestamp(struct segment *s, struct file *f)
{
    uint8_t window[FILE_BATCHES_WINDOW_MIN];
    struct file_batches w;
    struct batch b;
    int64_t pos;
    file_batches_init(&w, f, 0, segment_size(s), window, sizeof(window));
    if (file_batches_next(&w, &b, &pos) == BATCH_OK)
        s->first_timestamp = b.max_timestamp;
    return segment_failed(s, LOG_FILE_DATA, w.error, "read");
}

int segment_ready(struct segment *s)
{
    struct file *f;
    if (s->ready)
        return 0;
    int err = segment_file(s, &f);
    if (err)
        return err;
    if (s->first_timestamp == TIMESTAMP_UNKNOWN)
        err = read_first_timestamp(s, f);
    file_unref(f);
    s->ready = !err;
    return err;
}

int segment_write(struct segment *s, const void *p, size_t n)
{
    struct iovec one = {(void *)(uintptr_t)p, n};
    return segment_writev(s, &one, 1);
}

int segment_writev(struct segment *s, struct iovec *iov, int pieces)
{
    struct file *f;
    int64_t at = atomic_load_explicit(&s->size, memory_order_relaxed);
    int err = segment_file(s, &f);
    if (err)
        return err;
    err = file_pwritev_all(f, iov, pieces, at);
    /* Part of it may be in the file. Recovery would cut it too; this is for who looks before. */
    if (err && !s->preallocated)
        (void)file_truncate(f, at);
    file_unref(f);
    if (!err) {
        atomic_store_explicit(&s->dirty, true, memory_order_relaxed);
        return 0;
    }
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_DATA, path);
    log_dir_fail(s->folder->dir, err, "append to %s", path);
    return err;
}

/* The entry may be what maps the file, and maps are counted. */
static int add_entry(struct segment *s, struct index_file *x, const char *path,
                     const uint8_t *entry)
{
    bool opened;
    int err = index_file_append(x, fs_of(s), path, entry, &opened);
    if (opened && s->stage == LOG_STAGE_LIVE)
        segment_economize(s);
    return err;
}

static int add_offset(struct segment *s, struct offset_position at)
{
    char path[LOG_PATH_MAX];
    uint8_t entry[OFFSET_ENTRY_BYTES];
    if (index_file_full(&s->offsets, 0))
        return 0;
    segment_path(s, LOG_FILE_INDEX, path);
    offset_entry_encode(entry, s->base, at);
    return segment_failed(s, LOG_FILE_INDEX, add_entry(s, &s->offsets, path, entry), "add to");
}

/* Is there a newer time than that of the last entry? `reserve` places are left free. */
static bool time_is_due(const struct segment *s, int reserve, struct time_offset *t)
{
    t->timestamp = atomic_load_explicit(&s->max_timestamp, memory_order_relaxed);
    t->offset = atomic_load_explicit(&s->max_timestamp_offset, memory_order_relaxed);
    return t->timestamp > s->last_time.timestamp && !index_file_full(&s->times, reserve);
}

/* The last place stays free, for the entry that sealing forces. */
static int add_time(struct segment *s)
{
    char path[LOG_PATH_MAX];
    uint8_t entry[TIME_ENTRY_BYTES];
    struct time_offset t;
    if (!time_is_due(s, 1, &t))
        return 0;
    segment_path(s, LOG_FILE_TIME, path);
    time_entry_encode(entry, s->base, t);
    int err = segment_failed(s, LOG_FILE_TIME, add_entry(s, &s->times, path, entry), "add to");
    if (!err)
        s->last_time = t;
    return err;
}

int segment_index(struct segment *s, int64_t pos, size_t n, int64_t last_offset,
                  struct time_offset t, int32_t interval)
{
    int err = 0;
    if (pos == 0)
        s->first_timestamp = t.timestamp;
    if (t.timestamp > atomic_load_explicit(&s->max_timestamp, memory_order_relaxed)) {
        atomic_store_explicit(&s->max_timestamp, t.timestamp, memory_order_release);
        atomic_store_explicit(&s->max_timestamp_offset, t.offset, memory_order_release);
    }
    if (s->since_index > interval) {
        err = add_offset(s, (struct offset_position){last_offset, pos});
        if (!err)
            err = add_time(s);
        if (!err)
            s->since_index = 0;
        else if (log_error_is_shortage(err))
            err = 0; /* the data is written and an entry may be missing: the next append tries */
    }
    s->since_index += (int64_t)n;
    return err;
}

int segment_add_txn(struct segment *s, struct txn_entry e)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_TXN, path);
    int err = txn_index_append(&s->txns, fs_of(s), path, e);
    if (err == -ENOENT && atomic_load(&s->folder->leaving))
        return -ESTALE;
    if (s->stage != LOG_STAGE_LIVE && log_error_is_shortage(err))
        return err; /* nobody sees it yet */
    /* Unlike an offset entry this one must not be missing: readers would see aborted data. */
    if (err)
        log_dir_fail(s->folder->dir, err, "add to %s", path);
    return err;
}

static int seal_index(struct segment *s, struct index_file *x, enum log_file_kind kind,
                      const uint8_t *entry)
{
    char path[LOG_PATH_MAX];
    segment_path(s, kind, path);
    return segment_failed(s, kind, index_file_seal(x, fs_of(s), path, entry), "seal");
}

int segment_seal(struct segment *s)
{
    uint8_t entry[TIME_ENTRY_BYTES];
    struct time_offset t;
    bool due = time_is_due(s, 0, &t); /* (of one whose times nobody has read it is not) */
    if (due)
        time_entry_encode(entry, s->base, t);
    int err = seal_index(s, &s->offsets, LOG_FILE_INDEX, NULL);
    if (!err)
        err = seal_index(s, &s->times, LOG_FILE_TIME, due ? entry : NULL);
    if (!err && due)
        s->last_time = t;
    if (!err && s->preallocated) {
        struct file *f;
        err = segment_file(s, &f);
        if (err)
            return err;
        err = segment_failed(s, LOG_FILE_DATA, file_truncate(f, segment_size(s)), "cut");
        file_unref(f);
        atomic_store(&s->dirty, true);
        s->preallocated = err != 0;
    }
    return err;
}

static int sync_index(struct segment *s, struct index_file *x, enum log_file_kind kind)
{
    char path[LOG_PATH_MAX];
    segment_path(s, kind, path);
    return segment_failed(s, kind, index_file_sync(x, fs_of(s), path), "sync");
}

int segment_sync(struct segment *s, bool all)
{
    int err = 0;
    bool dirty = atomic_exchange(&s->dirty, false);
    if (dirty || all) {
        struct file *f;
        err = segment_file(s, &f);
        if (err) { /* after a shortage the next sync has to do it */
            if (dirty)
                atomic_store(&s->dirty, true);
            return err;
        }
        err = segment_failed(s, LOG_FILE_DATA, log_sync_failed(file_sync(f)), "sync");
        file_unref(f);
    }
    if (!err)
        err = sync_index(s, &s->offsets, LOG_FILE_INDEX);
    if (!err)
        err = sync_index(s, &s->times, LOG_FILE_TIME);
    if (!err && atomic_load(&s->txns.dirty)) {
        char path[LOG_PATH_MAX];
        segment_path(s, LOG_FILE_TXN, path);
        err = segment_failed(s, LOG_FILE_TXN, txn_index_sync(&s->txns, fs_of(s), path), "sync");
    }
    return err;
}

int segment_set_mtime(struct segment *s, int64_t mtime_ms)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    int err = 0;
    for (int kind = LOG_FILE_DATA; kind <= LOG_FILE_TIME && !err; kind++) {
        segment_path(s, (enum log_file_kind)kind, path);
        err = fs_open(fs_of(s), path, O_RDWR, &f);
        if (!err) {
            err = file_set_mtime(f, mtime_ms);
            file_unref(f);
        }
        err = segment_failed(s, (enum log_file_kind)kind, err, "set the time of");
    }
    return err;
}

static int doom_file(struct segment *s, enum log_file_kind kind, int64_t delay_ms)
{
    char from[LOG_PATH_MAX], to[LOG_PATH_MAX];
    segment_path(s, kind, from);
    log_file_path(to, log_folder_path(s->folder), s->base, kind, LOG_STAGE_DELETED);
    int err = fs_rename(fs_of(s), from, to);
    if (err == -ENOENT && kind != LOG_FILE_DATA)
        return 0; /* never made, or dropped as damaged */
    if (err) {
        log_dir_fail(s->folder->dir, err, "rename %s", from);
        return err;
    }
    log_dir_doom(s->folder->dir, to, false, delay_ms);
    return 0;
}

int segment_doom(struct segment *s, int64_t delay_ms)
{
    atomic_store(&s->doomed, true);
    int err = doom_file(s, LOG_FILE_DATA, delay_ms);
    for (int kind = LOG_FILE_INDEX; kind <= LOG_FILE_SNAPSHOT && !err; kind++)
        err = doom_file(s, (enum log_file_kind)kind, delay_ms);
    return err;
}

/* A fresh index with the first `keep` entries of the old one. The old file stays as it is for those
 * who have it mapped. */
static int copy_index(struct index_view *from, int32_t keep, struct segment *to,
                      struct index_file *x, enum log_file_kind kind)
{
    char path[LOG_PATH_MAX];
    uint8_t entry[TIME_ENTRY_BYTES];
    segment_path(to, kind, path);
    int err = index_file_create(x, fs_of(to), path);
    for (int32_t i = 0; i < keep && !err; i++) {
        index_view_get(from, i, entry);
        err = from->error ? from->error : add_entry(to, x, path, entry);
    }
    return segment_failed(to, kind, err, "rewrite");
}

/* Times of what is left: the last entry of the index, and what follows it in the file. */
static int recount_times(struct segment *s, struct file *f)
{
    uint8_t window[4096];
    struct file_batches w;
    struct index_view v;
    struct batch b;
    int64_t pos;
    struct time_offset max = {-1, s->base};
    int err = segment_times(s, &v);
    if (!err)
        max = time_index_last(&v, s->base);
    index_view_close(&v);
    if (err)
        return err;
    s->last_time = max;
    err = segment_walk(s, f, max.offset, segment_size(s), window, sizeof(window), &w);
    while (!err && file_batches_next(&w, &b, &pos) == BATCH_OK)
        if (b.max_timestamp > max.timestamp)
            max = (struct time_offset){b.max_timestamp, b.last_offset};
    if (!err)
        err = segment_failed(s, LOG_FILE_DATA, w.error, "read");
    atomic_store(&s->max_timestamp, max.timestamp);
    atomic_store(&s->max_timestamp_offset, max.offset);
    return err;
}

static int hold_txns(struct segment *s, struct file **f)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_TXN, path);
    return segment_failed(s, LOG_FILE_TXN, txn_index_file(&s->txns, fs_of(s), path, f), "open");
}

static int cut_txns(struct segment *old, struct file *f, int64_t offset, struct segment *s)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_TXN, path);
    return segment_failed(s, LOG_FILE_TXN,
                          txn_index_cut(&old->txns, f, &s->txns, fs_of(s), path, offset), "cut");
}

/* The indexes of the old segment, up to the offset. */
static int copy_indexes(struct segment *old, int64_t offset, struct segment *s)
{
    struct index_view offsets = {0}, times = {0};
    struct file *txns = NULL;
    int err = segment_offsets(old, &offsets);
    if (!err)
        err = segment_times(old, &times);
    if (!err)
        err = hold_txns(old, &txns);
    if (!err) {
        /* From here on nobody may open files by the old object: names lead to other files soon. */
        atomic_store(&old->doomed, true);
        err = copy_index(&offsets, offset_index_kept(&offsets, s->base, offset), s, &s->offsets,
                         LOG_FILE_INDEX);
    }
    if (!err)
        err = copy_index(&times, time_index_kept(&times, s->base, offset), s, &s->times,
                         LOG_FILE_TIME);
    if (!err)
        err = cut_txns(old, txns, offset, s);
    index_view_close(&offsets);
    index_view_close(&times);
    file_unref(txns);
    return err;
}

static int fill_truncated(struct segment *old, struct file *f, int64_t offset, struct segment *s)
{
    int err = copy_indexes(old, offset, s);
    if (!err)
        err = segment_failed(s, LOG_FILE_DATA, file_truncate(f, segment_size(s)), "cut");
    if (!err)
        err = recount_times(s, f);
    return err;
}

int segment_truncated(struct segment *old, int64_t offset, const struct log_config *c,
                      struct segment **out)
{
    struct file *f;
    struct batch b;
    int64_t pos, size = segment_size(old);
    *out = NULL;
    int err = segment_file(old, &f);
    if (err)
        return err;
    int found = segment_find(old, f, offset, size, &b, &pos);
    if (found < 0) {
        file_unref(f);
        return found;
    }
    struct segment *s =
        segment_existing(old->folder, old->base, found ? pos : size, false, true, c);
    if (!s) {
        file_unref(f);
        return -ENOMEM;
    }
    segment_give_file(s, file_ref(f));
    segment_economize(s);
    atomic_store(&s->dirty, true);
    err = fill_truncated(old, f, offset, s);
    file_unref(f);
    if (err) {
        /* Half cut, whatever the reason was: only a start can put it right. */
        if (atomic_load(&old->doomed))
            log_dir_fail(old->folder->dir, err, "cut %s/%020" PRId64 ".log",
                         log_folder_path(old->folder), old->base);
        segment_unref(s);
        return err;
    }
    *out = s;
    return 0;
}
