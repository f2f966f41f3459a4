/* segment.c - life of a segment and reading it; segment_write.c has the rest. */
#include "log/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/logline.h"
#include "log/open_files.h"

enum { WALK_WINDOW = 4096 };

void segment_path(const struct segment *s, enum log_file_kind kind, char out[LOG_PATH_MAX])
{
    log_file_path(out, log_folder_path(s->folder), s->base, kind, s->stage);
}

int segment_failed(struct segment *s, enum log_file_kind kind, int err, const char *doing)
{
    if (!err)
        return 0;
    bool doomed = atomic_load(&s->doomed);
    if ((err == -ENOENT && (doomed || atomic_load(&s->folder->leaving))) ||
        (err == -ESTALE && doomed))
        return -ESTALE;
    if (log_error_is_shortage(err) || err == -EAGAIN)
        return err;
    char path[LOG_PATH_MAX];
    segment_path(s, kind, path);
    log_dir_fail(s->folder->dir, err, "%s %s", doing, path);
    return err;
}

static int64_t draw_jitter(const struct log_config *c)
{
    int64_t most = c->segment_jitter_ms < c->segment_ms ? c->segment_jitter_ms : c->segment_ms;
    if (most <= 0)
        return 0;
    struct uuid u = uuid_random();
    int64_t v = 0;
    for (int i = 8; i < 12; i++)
        v = v << 8 | u.b[i];
    return (v & INT32_MAX) % most;
}

struct segment *segment_existing(const struct log_folder *folder, int64_t base, int64_t size,
                                 bool has_txn_index, bool active, const struct log_config *c)
{
    struct segment *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    s->folder = folder;
    s->base = base;
    list_init(&s->open_link);
    atomic_init(&s->size, size);
    index_file_init(&s->offsets, OFFSET_ENTRY_BYTES, c->segment_index_bytes, -1, active);
    index_file_init(&s->times, TIME_ENTRY_BYTES, c->segment_index_bytes, -1, active);
    s->offsets.gone = s->times.gone = &s->doomed;
    txn_index_init(&s->txns, has_txn_index);
    s->txns.gone = &s->doomed;
    atomic_init(&s->max_timestamp, TIMESTAMP_UNKNOWN);
    atomic_init(&s->max_timestamp_offset, base);
    s->first_timestamp = TIMESTAMP_UNKNOWN;
    s->last_time = (struct time_offset){-1, base};
    s->created_ms = clock_wall_ms(folder->dir->clock);
    s->jitter_ms = draw_jitter(c);
    return s;
}

struct segment *segment_ref(struct segment *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void segment_unref(struct segment *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    open_files_remove(s->folder->dir->open_files, s);
    segment_drop_files(s);
    free(s);
}

static int open_data(struct segment *s, struct file **out)
{
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_DATA, path);
    int err =
        segment_failed(s, LOG_FILE_DATA, fs_open(s->folder->dir->fs, path, O_RDWR, out), "open");
    if (err)
        return err;
    /* Replaced while we were opening: the name may lead to another file. */
    if (atomic_load(&s->doomed)) {
        file_unref(*out);
        return -ESTALE;
    }
    return 0;
}

static void mark_used(struct segment *s)
{
    if (!atomic_load_explicit(&s->used, memory_order_relaxed))
        atomic_store_explicit(&s->used, true, memory_order_relaxed);
}

/* The open file with a reference, or NULL. */
static struct file *open_one(struct segment *s)
{
    spin_lock(&s->file_lock);
    struct file *f = s->file ? file_ref(s->file) : NULL;
    spin_unlock(&s->file_lock);
    if (f)
        mark_used(s);
    return f;
}

void segment_economize(struct segment *s)
{
    open_files_add(s->folder->dir->open_files, s);
}

int segment_file(struct segment *s, struct file **out)
{
    *out = open_one(s);
    if (*out)
        return 0;
    struct file *mine;
    int err = open_data(s, &mine);
    if (err == -EMFILE && open_files_shrink(s->folder->dir->open_files))
        err = open_data(s, &mine);
    if (err)
        return err;
    segment_give_file(s, file_ref(mine));
    if (s->stage == LOG_STAGE_LIVE)
        segment_economize(s);
    *out = mine;
    return 0;
}

void segment_give_file(struct segment *s, struct file *f)
{
    spin_lock(&s->file_lock);
    struct file *other = s->file; /* somebody was faster: both are as good */
    if (!other)
        s->file = f;
    spin_unlock(&s->file_lock);
    if (other)
        file_unref(f);
}

void segment_drop_files(struct segment *s)
{
    spin_lock(&s->file_lock);
    struct file *f = s->file;
    s->file = NULL;
    spin_unlock(&s->file_lock);
    file_unref(f);
    txn_index_close(&s->txns);
    index_file_close(&s->offsets);
    index_file_close(&s->times);
}

/* An index of a closed segment that cannot be right is left aside: look-ups then walk the data from
 * the start. Its file goes, so that the next start makes a new one. */
static int drop_insane(struct segment *s, struct index_file *x, struct index_view *v,
                       const char *path)
{
    if (x->growable || v->n == 0)
        return 0;
    bool sane = x == &s->offsets ? offset_index_sane(v, s->base, segment_size(s))
                                 : time_index_sane(v, s->base);
    if (v->error || sane)
        return v->error;
    say_warn("log", "%s is damaged: not used, made anew at the next start", path);
    atomic_store_explicit(&x->n, 0, memory_order_release);
    v->n = 0;
    int err = fs_unlink(s->folder->dir->fs, path);
    return err == -ENOENT ? 0 : err;
}

int segment_file_now(struct segment *s, struct file **out)
{
    *out = open_one(s);
    return *out ? 0 : -EAGAIN;
}

static int view(struct segment *s, struct index_file *x, enum log_file_kind kind,
                struct index_view *v)
{
    struct fs *fs = s->folder->dir->fs;
    char path[LOG_PATH_MAX];
    if (index_file_view_open(x, v)) {
        mark_used(s);
        return 0;
    }
    segment_path(s, kind, path);
    int err = index_file_view(x, fs, path, v);
    if (!err && v->map &&
        atomic_load(&s->doomed)) { /* ours, but not looked at whether it is sane */
        index_file_close(x);
        return -ESTALE;
    }
    if (!err)
        err = drop_insane(s, x, v, path);
    if (!err && v->map && s->stage == LOG_STAGE_LIVE)
        segment_economize(s);
    return segment_failed(s, kind, err, "open");
}

int segment_offsets(struct segment *s, struct index_view *v)
{
    return view(s, &s->offsets, LOG_FILE_INDEX, v);
}

int segment_offsets_now(struct segment *s, struct index_view *v)
{
    /* No look whether it is open first: it may be closed by then. */
    if (!index_file_view_open(&s->offsets, v))
        return -EAGAIN;
    mark_used(s);
    v->now = true;
    return 0;
}

int segment_times(struct segment *s, struct index_view *v)
{
    return view(s, &s->times, LOG_FILE_TIME, v);
}

/* Where a walk to `offset` may begin. */
static int start_position(struct segment *s, int64_t offset, int64_t end, bool now, int64_t *pos)
{
    struct index_view v;
    int err = now ? segment_offsets_now(s, &v) : segment_offsets(s, &v);
    struct offset_position at = {0};
    if (!err)
        at = offset_index_floor(&v, s->base, offset);
    index_view_close(&v);
    if (err)
        return err;
    if (v.error)
        return segment_failed(s, LOG_FILE_INDEX, v.error, "read");
    /* an index that lies must not lead us out of the data */
    *pos = at.position < 0 || at.position >= end ? 0 : at.position;
    return 0;
}

int segment_walk(struct segment *s, struct file *f, int64_t offset, int64_t end, uint8_t *window,
                 size_t window_n, struct file_batches *w)
{
    int64_t start = 0;
    int err = start_position(s, offset, end, false, &start);
    if (!err)
        file_batches_init(w, f, start, end, window, window_n);
    return err;
}

static int find(struct segment *s, struct file *f, int64_t offset, int64_t end, bool now,
                struct batch *b, int64_t *pos)
{
    uint8_t window[WALK_WINDOW];
    struct file_batches w;
    int64_t start = 0;
    int err = start_position(s, offset, end, now, &start);
    if (err)
        return err;
    file_batches_init(&w, f, start, end, window, sizeof(window));
    w.now = now;
    while (file_batches_next(&w, b, pos) == BATCH_OK)
        if (b->last_offset >= offset)
            return 1;
    return segment_failed(s, LOG_FILE_DATA, w.error, "read");
}

int segment_find(struct segment *s, struct file *f, int64_t offset, int64_t end, struct batch *b,
                 int64_t *pos)
{
    return find(s, f, offset, end, false, b, pos);
}

int segment_find_now(struct segment *s, struct file *f, int64_t offset, int64_t end,
                     struct batch *b, int64_t *pos)
{
    return find(s, f, offset, end, true, b, pos);
}

int segment_max_time(struct segment *s, struct time_offset *out)
{
    /* Offset first: with a newer time than offset a search begins too early, never too late. */
    out->offset = atomic_load_explicit(&s->max_timestamp_offset, memory_order_acquire);
    out->timestamp = atomic_load_explicit(&s->max_timestamp, memory_order_acquire);
    if (out->timestamp != TIMESTAMP_UNKNOWN)
        return 0;
    struct index_view v;
    int err = segment_times(s, &v);
    if (!err)
        *out = time_index_last(&v, s->base);
    index_view_close(&v);
    if (err)
        return err;
    if (!v.error && !s->times.growable) { /* it will not change any more */
        atomic_store_explicit(&s->max_timestamp_offset, out->offset, memory_order_release);
        atomic_store_explicit(&s->max_timestamp, out->timestamp, memory_order_release);
    }
    return segment_failed(s, LOG_FILE_TIME, v.error, "read");
}

int segment_mtime(struct segment *s, int64_t *ms)
{
    struct file *f;
    struct file_stat st;
    int err = segment_file(s, &f);
    if (err)
        return err;
    err = segment_failed(s, LOG_FILE_DATA, file_stat(f, &st), "stat");
    file_unref(f);
    *ms = err ? 0 : st.mtime_ms;
    return err;
}

int segment_aborted(struct segment *s, int64_t from, int64_t upper, bool now,
                    int (*each)(void *arg, const struct txn_entry *e), void *arg)
{
    enum { CHUNK = 32 };
    struct txn_entry e[CHUNK];
    char path[LOG_PATH_MAX];
    int at = 0, n;
    if (atomic_load_explicit(&s->txns.n, memory_order_acquire) == 0)
        return 0;
    segment_path(s, LOG_FILE_TXN, path);
    while ((n = now ? txn_index_read_now(&s->txns, at, e, CHUNK)
                    : txn_index_read(&s->txns, s->folder->dir->fs, path, at, e, CHUNK)) > 0) {
        for (int i = 0; i < n; i++) {
            if (e[i].last_offset >= from && e[i].first_offset < upper) {
                int err = each(arg, &e[i]);
                if (err)
                    return err;
            }
            if (e[i].last_stable_offset >= upper)
                return 1;
        }
        at += n;
    }
    return segment_failed(s, LOG_FILE_TXN, n, "read");
}
