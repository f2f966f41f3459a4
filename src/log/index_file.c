#include "log/index_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "log/log_dir_private.h"
#include "log/map_guard.h"

enum {
    FIRST_CHUNK = 4096, /* most partitions never need more */
    CHUNK = 64 << 10,
    WARM_BYTES = 8192 /* the end of an index that hot look-ups touch */
};

struct index_map {
    atomic_int refs;
    struct file *file;
    uint8_t *p; /* NULL: no map */
    size_t len;
};

static int64_t full_bytes(const struct index_file *x)
{
    return (int64_t)x->max * x->entry;
}

void index_file_init(struct index_file *x, int entry, int32_t max_bytes, int n, bool growable)
{
    atomic_init(&x->map, NULL);
    x->lock = SPIN_INIT;
    atomic_init(&x->n, n);
    atomic_init(&x->dirty, false);
    x->entry = (uint8_t)entry;
    x->max = max_bytes / entry;
    x->growable = growable;
    x->gone = NULL;
    x->full_size = false;
    x->backed = 0;
}

int index_file_create(struct index_file *x, struct fs *fs, const char *path)
{
    struct file *f;
    int err = fs_open(fs, path, O_RDWR | O_CREAT | O_EXCL, &f);
    if (err == -EEXIST) { /* left by a crash; another inode may still be mapped, so not cut it */
        err = fs_unlink(fs, path);
        if (!err)
            err = fs_open(fs, path, O_RDWR | O_CREAT | O_EXCL, &f);
    }
    if (err)
        return err;
    err = file_truncate(f, full_bytes(x));
    file_unref(f);
    if (err)
        return err;
    atomic_store(&x->n, 0);
    x->full_size = true;
    return 0;
}

int index_file_reset(struct index_file *x, struct fs *fs, const char *path)
{
    struct file *f;
    struct file_stat st;
    int err = fs_open(fs, path, O_RDWR | O_CREAT, &f);
    if (err)
        return err;
    err = file_stat(f, &st);
    if (!err && st.size)
        err = file_truncate(f, 0);
    file_unref(f);
    atomic_store(&x->n, 0);
    atomic_store(&x->dirty, true);
    x->full_size = false;
    x->backed = 0;
    return err;
}

static void map_free(struct index_map *m)
{
    if (m->p)
        file_unmap(m->file, m->p, m->len);
    file_unref(m->file);
    free(m);
}

static void map_release(struct index_map *m)
{
    if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
        map_free(m);
}

/* The open one with a reference, or NULL. */
static struct index_map *map_hold(struct index_file *x)
{
    spin_lock(&x->lock);
    struct index_map *m = atomic_load_explicit(&x->map, memory_order_relaxed);
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    spin_unlock(&x->lock);
    return m;
}

void index_file_close(struct index_file *x)
{
    spin_lock(&x->lock);
    struct index_map *m = atomic_exchange(&x->map, NULL);
    spin_unlock(&x->lock);
    map_release(m);
}

bool index_file_mapped(struct index_file *x)
{
    struct index_map *m = map_hold(x);
    bool mapped = m && m->p;
    map_release(m);
    return mapped;
}

void index_view_close(struct index_view *v)
{
    map_release(v->map);
    v->map = NULL;
    v->p = NULL;
    v->file = NULL;
}

/* The count of a file that nobody has looked at yet. Whoever comes later and sees a file that was
 * extended meanwhile loses the exchange. */
static void settle_count(struct index_file *x, int64_t bytes)
{
    int unknown = -1;
    atomic_compare_exchange_strong(&x->n, &unknown, (int)(bytes / x->entry));
}

static int map_open(struct index_file *x, struct fs *fs, const char *path, struct index_map **out)
{
    struct file_stat st;
    struct index_map *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    atomic_init(&m->refs, 1);
    int err = fs_open(fs, path, x->growable ? O_RDWR : O_RDONLY, &m->file);
    if (err) {
        free(m);
        return err;
    }
    err = file_stat(m->file, &st);
    if (!err) {
        settle_count(x, st.size);
        m->len = (size_t)(x->growable && st.size < full_bytes(x) ? full_bytes(x) : st.size);
        if (m->len) {
            void *p;
            err = file_map(m->file, m->len, x->growable, &p);
            m->p = err ? NULL : p;
            if (err == -ENOMEM) /* out of maps or address space: calls do as well */
                err = 0;
            else if (!err)
                file_drop_fd(m->file);
        } else { /* nothing to read; who writes opens it anew */
            file_drop_fd(m->file);
        }
    }
    if (err) {
        map_free(m);
        return err;
    }
    *out = m;
    return 0;
}

/* Opened if need be, which *opened tells; *out is a reference of the caller's. */
static int map_get(struct index_file *x, struct fs *fs, const char *path, struct index_map **out,
                   bool *opened)
{
    struct index_map *mine, *other;
    *opened = false;
    *out = map_hold(x);
    if (*out)
        return 0;
    int err = map_open(x, fs, path, &mine);
    if (err)
        return err;
    if (x->gone && atomic_load(x->gone)) { /* never published: others would take it for ours */
        map_release(mine);
        return -ESTALE;
    }
    spin_lock(&x->lock);
    other = atomic_load_explicit(&x->map, memory_order_relaxed);
    *out = other ? other : mine; /* somebody was faster */
    atomic_fetch_add_explicit(&(*out)->refs, 1, memory_order_relaxed);
    if (!other)
        atomic_store_explicit(&x->map, mine, memory_order_release);
    spin_unlock(&x->lock);
    *opened = !other;
    if (other)
        map_release(mine);
    return 0;
}

/* Takes the reference on the map. */
static void view_map(const struct index_file *x, struct index_map *m, struct index_view *v)
{
    v->map = m;
    v->n = atomic_load_explicit(&x->n, memory_order_acquire);
    v->p = m->p;
    v->file = m->file;
    /* a file that someone cut behind our back must not fault */
    if (v->p && (size_t)v->n * v->entry > m->len)
        v->n = (int32_t)(m->len / v->entry);
}

bool index_file_view_open(struct index_file *x, struct index_view *v)
{
    *v = (struct index_view){.entry = x->entry};
    if (atomic_load_explicit(&x->n, memory_order_acquire) == 0)
        return true;
    struct index_map *m = map_hold(x);
    if (m)
        view_map(x, m, v);
    return m != NULL;
}

int index_file_view(struct index_file *x, struct fs *fs, const char *path, struct index_view *v)
{
    *v = (struct index_view){.entry = x->entry};
    if (atomic_load_explicit(&x->n, memory_order_acquire) == 0)
        return 0;
    struct index_map *m;
    bool opened;
    int err = map_get(x, fs, path, &m, &opened);
    if (!err)
        view_map(x, m, v);
    return err;
}

/* Is the entry in memory? Look-ups touch few pages, many times. */
static bool in_memory(struct index_view *v, int64_t at)
{
    enum { PAGE = 4096 };
    int64_t page = (at + v->entry - 1) / PAGE + 1;
    if (page == v->page && at / PAGE + 1 == page)
        return true;
    if (!file_in_memory(v->file, v->p + at, v->entry))
        return false;
    v->page = page;
    return true;
}

void index_view_get(struct index_view *v, int32_t i, uint8_t *out)
{
    int64_t at = (int64_t)i * v->entry;
    ssize_t got = v->entry;
    if (v->error)
        got = v->error;
    else if (v->now && v->p && !in_memory(v, at))
        got = -EAGAIN;
    else if (v->now && !v->p)
        got = file_pread_now(v->file, out, v->entry, at);
    else if (v->p && map_guard_copy(out, v->p + at, v->entry))
        got = -EIO;
    else if (!v->p)
        got = file_pread(v->file, out, v->entry, at);
    if (got == v->entry)
        return;
    v->error = got < 0 ? (int)got : -EIO;
    memset(out, 0, v->entry);
}

int64_t index_view_key(struct index_view *v, int32_t i, int at, int size)
{
    uint8_t e[16];
    index_view_get(v, i, e);
    return size == 4 ? (int32_t)get_be32(e + at) : (int64_t)get_be64(e + at);
}

int32_t index_view_floor(struct index_view *v, int at, int size, int64_t key)
{
    if (v->n == 0 || index_view_key(v, 0, at, size) > key)
        return -1;
    int32_t warm = WARM_BYTES / v->entry;
    int32_t hot = v->n - 1 - warm > 0 ? v->n - 1 - warm : 0;
    int32_t lo = 0, hi = hot; /* entry lo is always <= key */
    if (index_view_key(v, hot, at, size) <= key) {
        lo = hot;
        hi = v->n - 1;
    }
    while (lo < hi) {
        int32_t mid = lo + (hi - lo + 1) / 2;
        if (index_view_key(v, mid, at, size) <= key)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* A handle that reads and writes: the open one, or a new one, since a map has none. Let go with
 * file_unref. */
static int handle(struct index_file *x, struct fs *fs, const char *path, struct file **f)
{
    struct index_map *m = map_hold(x);
    bool open = m && !m->p && m->len;
    if (open)
        *f = file_ref(m->file);
    map_release(m);
    return open ? 0 : fs_open(fs, path, O_RDWR, f);
}

/* Makes sure that bytes [0, end) have blocks, and that the file has its full size. */
static int make_room(struct index_file *x, struct fs *fs, const char *path, int64_t end)
{
    struct file *f;
    if (x->full_size && end <= x->backed)
        return 0;
    int64_t len = x->backed ? CHUNK : FIRST_CHUNK;
    if (x->backed + len < end)
        len = end - x->backed;
    if (x->backed + len > full_bytes(x))
        len = full_bytes(x) - x->backed;
    int err = handle(x, fs, path, &f);
    if (err)
        return err;
    if (!x->full_size)
        err = file_truncate(f, full_bytes(x));
    if (!err)
        x->full_size = true;
    if (!err && end > x->backed)
        err = file_allocate(f, x->backed, len);
    if (!err && end > x->backed)
        x->backed += len;
    file_unref(f);
    return err;
}

int index_file_append(struct index_file *x, struct fs *fs, const char *path, const uint8_t *entry,
                      bool *opened)
{
    struct index_map *m;
    int err = map_get(x, fs, path, &m, opened); /* settles the count before the size changes */
    if (err)
        return err;
    int n = atomic_load_explicit(&x->n, memory_order_relaxed);
    int64_t at = (int64_t)n * x->entry;
    err = n < x->max ? make_room(x, fs, path, at + x->entry) : -ENOSPC;
    if (!err && m->p)
        err = map_guard_copy(m->p + at, entry, x->entry);
    else if (!err)
        err = file_pwrite_all(m->file, entry, x->entry, at);
    map_release(m);
    if (err)
        return err;
    atomic_store_explicit(&x->dirty, true, memory_order_relaxed);
    atomic_store_explicit(&x->n, n + 1, memory_order_release);
    return 0;
}

int index_file_seal(struct index_file *x, struct fs *fs, const char *path, const uint8_t *entry)
{
    struct file *f;
    if (!entry && !x->full_size)
        return 0;
    int n = atomic_load_explicit(&x->n, memory_order_relaxed);
    int err = handle(x, fs, path, &f);
    if (err)
        return err;
    if (entry) /* by a call: it shows in a map as well */
        err = file_pwrite_all(f, entry, x->entry, (int64_t)n++ * x->entry);
    if (!err)
        err = file_truncate(f, (int64_t)n * x->entry);
    file_unref(f);
    if (err)
        return err;
    x->full_size = false;
    x->backed = 0;
    atomic_store_explicit(&x->dirty, true, memory_order_relaxed);
    atomic_store_explicit(&x->n, n, memory_order_release);
    return 0;
}

int index_file_sync(struct index_file *x, struct fs *fs, const char *path)
{
    if (!atomic_exchange_explicit(&x->dirty, false, memory_order_acq_rel))
        return 0;
    struct file *f;
    int err = handle(x, fs, path, &f);
    if (err) { /* nothing was lost: the next sync has to do it */
        atomic_store_explicit(&x->dirty, true, memory_order_release);
        return err;
    }
    struct index_map *m = map_hold(x);
    int64_t bytes = (int64_t)atomic_load_explicit(&x->n, memory_order_acquire) * x->entry;
    if (m && m->p && bytes)
        err = file_msync(m->file, m->p, (size_t)bytes);
    map_release(m);
    if (!err)
        err = file_sync(f); /* its size too: a sealed index must come back sealed */
    file_unref(f);
    return log_sync_failed(err);
}
