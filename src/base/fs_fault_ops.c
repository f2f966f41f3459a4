/* fs_fault_ops.c - the calls of the faulty file layer: each passes the gate, goes to the layer
 * below and leaves its way back in the shadow. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs_fault_private.h"

struct fault_file {
    struct file f; /* first */
    struct fs_fault *owner;
    struct file *under;
    struct node *node;
};

static struct fs_fault *of(struct fs *fs)
{
    return container_of(fs, struct fs_fault, fs);
}

static struct fault_file *file_of(struct file *f)
{
    return (struct fault_file *)f;
}

static void lock(struct fs_fault *f)
{
    pthread_mutex_lock(&f->lock);
}

static void unlock(struct fs_fault *f)
{
    pthread_mutex_unlock(&f->lock);
}

static void file_path(struct fault_file *f, char path[PATH_MAX])
{
    lock(f->owner);
    shadow_node_path(f->node, path);
    unlock(f->owner);
}

static int gate_file(struct fault_file *f, enum fs_call call)
{
    char path[PATH_MAX];
    file_path(f, path);
    return fs_fault_gate(f->owner, call, path, NULL);
}

/* Cleans the path, then the gate. */
static int gate_path(struct fs *fs, enum fs_call call, const char *path, char clean[PATH_MAX])
{
    int err = shadow_path(path, clean);
    return err ? err : fs_fault_gate(of(fs), call, clean, NULL);
}

static void drop_node(struct node *n)
{
    n->open--;
    shadow_unref(n);
}

/* The old content goes as a truncation, whose way back is known. */
static int empty(struct fs_fault *f, struct file *under, struct node *n)
{
    struct write_undo *w;
    shadow_fold_maps(&f->shadow, n);
    int err = shadow_write_begin(under, SHADOW_TRUNCATE, 0, 0, &w);
    if (err)
        return err;
    err = file_truncate(under, 0);
    shadow_write_end(&f->shadow, n, w, err ? -1 : 0);
    return err;
}

static int open_under(struct fs_fault *f, const char *path, int flags, int mode,
                      struct fault_file *file)
{
    struct file_stat st;
    bool is_new = fs_stat(f->under, path, &st) == -ENOENT;
    int err = f->under->ops->open(f->under, path, flags & ~O_TRUNC, mode, &file->under);
    if (err)
        return err;
    file->node = shadow_node(&f->shadow, path);
    file->node->open++;
    if (is_new)
        shadow_created(&f->shadow, path);
    if (flags & O_TRUNC)
        err = empty(f, file->under, file->node);
    if (err) {
        drop_node(file->node);
        file_unref(file->under);
    }
    return err;
}

static int fault_open(struct fs *fs, const char *path, int flags, int mode, struct file **out)
{
    struct fs_fault *f = of(fs);
    char clean[PATH_MAX];
    *out = NULL;
    int err = gate_path(fs, FS_OPEN, path, clean);
    if (err)
        return err;
    struct fault_file *file = calloc(1, sizeof(*file));
    if (!file)
        return -ENOMEM;
    lock(f);
    err = open_under(f, clean, flags, mode, file);
    unlock(f);
    if (err) {
        free(file);
        return err;
    }
    file->f.fs = fs;
    file->f.fd = -1;
    atomic_init(&file->f.refs, 1);
    file->owner = f;
    *out = &file->f;
    return 0;
}

static void fault_close(struct file *f)
{
    struct fault_file *file = file_of(f);
    lock(file->owner);
    drop_node(file->node);
    file_unref(file->under);
    unlock(file->owner);
    free(file);
}

static ssize_t fault_pread(struct file *f, void *p, size_t n, int64_t off)
{
    struct fault_file *file = file_of(f);
    int err = gate_file(file, FS_PREAD);
    return err ? err : file->under->fs->ops->pread(file->under, p, n, off);
}

static ssize_t fault_pread_now(struct file *f, void *p, size_t n, int64_t off)
{
    struct fault_file *file = file_of(f);
    int err = gate_file(file, FS_PREAD_NOW);
    return err ? err : file_pread_now(file->under, p, n, off);
}

static bool fault_in_memory(struct file *f, const void *p, size_t len)
{
    return gate_file(file_of(f), FS_PREAD_NOW) == 0;
}

/* The first `limit` bytes of the vector: pieces used, the last of them cut. `cut` has room for n.
 */
static int iov_limit(const struct iovec *iov, int n, int64_t limit, struct iovec *cut)
{
    int used = 0;
    for (; used < n && limit > 0; used++) {
        cut[used] = iov[used];
        if ((uint64_t)limit < cut[used].iov_len)
            cut[used].iov_len = (size_t)limit;
        limit -= (int64_t)cut[used].iov_len;
    }
    return used;
}

static ssize_t write_recorded(struct fault_file *file, const struct iovec *iov, int n, int64_t off)
{
    struct write_undo *w;
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    int err = shadow_write_begin(file->under, SHADOW_WRITE, off, len, &w);
    if (err)
        return err;
    ssize_t put = file->under->fs->ops->pwritev(file->under, iov, n, off);
    shadow_write_end(&file->owner->shadow, file->node, w, put);
    return put;
}

static ssize_t fault_pwritev(struct file *f, const struct iovec *iov, int n, int64_t off)
{
    struct fault_file *file = file_of(f);
    char path[PATH_MAX];
    struct write_limit limit = {0};
    file_path(file, path);
    int err = fs_fault_gate(file->owner, FS_PWRITEV, path, &limit);
    if (err)
        return err;
    struct iovec *cut = NULL;
    if (limit.bytes) {
        cut = malloc((size_t)n * sizeof(*cut));
        if (!cut)
            return -ENOMEM;
        n = iov_limit(iov, n, limit.bytes, cut);
        iov = cut;
    }
    lock(file->owner);
    ssize_t put = write_recorded(file, iov, n, off);
    unlock(file->owner);
    free(cut);
    return put >= 0 && limit.error ? limit.error : put;
}

/* The sync runs with the lock open. An injected failure counts as a real one. */
static int synced(struct fault_file *file, enum fs_call call, void *p, size_t len)
{
    struct fs_fault *f = file->owner;
    int err = gate_file(file, call);
    lock(f);
    int64_t from = call == FS_MSYNC ? shadow_map_offset(file->node, p) : 0;
    int64_t to = call == FS_MSYNC ? from + (int64_t)len : INT64_MAX;
    shadow_fold_maps(&f->shadow, file->node);
    uint64_t seq = f->shadow.seq;
    unlock(f);
    if (!err)
        err = call == FS_SYNC ? file_sync(file->under) : file_msync(file->under, p, len);
    lock(f);
    if (from >= 0)
        shadow_sync_end(file->node, seq, from, to, !err);
    unlock(f);
    return err;
}

static int fault_sync(struct file *f)
{
    return synced(file_of(f), FS_SYNC, NULL, 0);
}

static int fault_msync(struct file *f, void *p, size_t len)
{
    return synced(file_of(f), FS_MSYNC, p, len);
}

static int fault_truncate(struct file *f, int64_t size)
{
    struct fault_file *file = file_of(f);
    struct write_undo *w;
    int err = gate_file(file, FS_TRUNCATE);
    if (err)
        return err;
    lock(file->owner);
    shadow_fold_maps(&file->owner->shadow, file->node);
    err = shadow_write_begin(file->under, SHADOW_TRUNCATE, size, 0, &w);
    if (!err) {
        err = file_truncate(file->under, size);
        shadow_write_end(&file->owner->shadow, file->node, w, err ? -1 : 0);
    }
    unlock(file->owner);
    return err;
}

static int fault_allocate(struct file *f, int64_t off, int64_t len)
{
    struct fault_file *file = file_of(f);
    struct write_undo *w;
    int err = gate_file(file, FS_ALLOCATE);
    if (err)
        return err;
    lock(file->owner);
    err = shadow_write_begin(file->under, SHADOW_GROW, 0, 0, &w);
    if (!err) {
        err = file_allocate(file->under, off, len);
        shadow_write_end(&file->owner->shadow, file->node, w, 0); /* a failed one may have grown */
    }
    unlock(file->owner);
    return err;
}

static int fault_fstat(struct file *f, struct file_stat *st)
{
    int err = gate_file(file_of(f), FS_STAT);
    return err ? err : file_stat(file_of(f)->under, st);
}

/* Not remembered: what a crash makes of it matters to nobody. */
static int fault_set_mtime(struct file *f, int64_t mtime_ms)
{
    int err = gate_file(file_of(f), FS_SET_MTIME);
    return err ? err : file_set_mtime(file_of(f)->under, mtime_ms);
}

static int fault_map(struct file *f, size_t len, bool writable, void **out)
{
    struct fault_file *file = file_of(f);
    *out = NULL;
    int err = gate_file(file, FS_MAP);
    if (err)
        return err;
    lock(file->owner);
    err = file_map(file->under, len, writable, out);
    if (!err && writable)
        shadow_map_add(file->node, file->under, *out, len);
    unlock(file->owner);
    return err;
}

static int fault_unmap(struct file *f, void *p, size_t len)
{
    struct fault_file *file = file_of(f);
    lock(file->owner);
    shadow_map_remove(&file->owner->shadow, file->node, p);
    int err = file_unmap(file->under, p, len);
    unlock(file->owner);
    return err;
}

/* Names */

/* What stands at the path and is about to lose its name: an open file to keep its content, or NULL
 * for a folder or nothing. */
static int keep_content(struct fs_fault *f, const char *path, bool *exists, struct file **out)
{
    struct file_stat st;
    *out = NULL;
    int err = fs_stat(f->under, path, &st);
    *exists = !err;
    if (err || st.is_dir)
        return err == -ENOENT ? 0 : err;
    return fs_open(f->under, path, O_RDONLY, out);
}

static int fault_rename(struct fs *fs, const char *from, const char *to)
{
    struct fs_fault *f = of(fs);
    char clean[PATH_MAX], clean_to[PATH_MAX];
    int err = gate_path(fs, FS_RENAME, from, clean);
    if (!err)
        err = shadow_path(to, clean_to);
    if (err)
        return err;
    struct file *saved;
    bool exists;
    lock(f);
    err = keep_content(f, clean_to, &exists, &saved);
    if (!err)
        err = fs_rename(f->under, clean, clean_to);
    if (!err && strcmp(clean, clean_to))
        shadow_renamed(&f->shadow, clean, clean_to, exists, saved);
    else
        file_unref(saved);
    unlock(f);
    return err;
}

static int remove_name(struct fs *fs, enum fs_call call, const char *path)
{
    struct fs_fault *f = of(fs);
    char clean[PATH_MAX];
    int err = gate_path(fs, call, path, clean);
    if (err)
        return err;
    struct file *saved;
    bool exists;
    lock(f);
    err = keep_content(f, clean, &exists, &saved);
    if (!err)
        err = call == FS_UNLINK ? fs_unlink(f->under, clean) : fs_rmdir(f->under, clean);
    if (!err)
        shadow_unlinked(&f->shadow, clean, saved);
    else
        file_unref(saved);
    unlock(f);
    return err;
}

static int fault_unlink(struct fs *fs, const char *path)
{
    return remove_name(fs, FS_UNLINK, path);
}

static int fault_rmdir(struct fs *fs, const char *path)
{
    return remove_name(fs, FS_RMDIR, path);
}

static int fault_mkdir(struct fs *fs, const char *path, int mode)
{
    struct fs_fault *f = of(fs);
    char clean[PATH_MAX];
    int err = gate_path(fs, FS_MKDIR, path, clean);
    if (err)
        return err;
    lock(f);
    err = f->under->ops->mkdir(f->under, clean, mode);
    if (!err)
        shadow_created(&f->shadow, clean);
    unlock(f);
    return err;
}

static int fault_sync_dir(struct fs *fs, const char *path)
{
    struct fs_fault *f = of(fs);
    char clean[PATH_MAX];
    int err = shadow_path(path, clean);
    if (err)
        return err;
    err = fs_fault_gate(f, FS_SYNC_DIR, clean, NULL);
    lock(f);
    struct node *dir = shadow_node(&f->shadow, clean);
    uint64_t seq = f->shadow.seq;
    unlock(f);
    if (!err)
        err = fs_sync_dir(f->under, clean);
    lock(f);
    shadow_sync_dir_end(&f->shadow, dir, seq, !err);
    shadow_unref(dir);
    unlock(f);
    return err;
}

static int fault_stat(struct fs *fs, const char *path, struct file_stat *st)
{
    char clean[PATH_MAX];
    int err = gate_path(fs, FS_STAT, path, clean);
    return err ? err : fs_stat(of(fs)->under, clean, st);
}

static int fault_list(struct fs *fs, const char *path, int (*each)(void *arg, const char *name),
                      void *arg)
{
    char clean[PATH_MAX];
    int err = gate_path(fs, FS_LIST, path, clean);
    return err ? err : fs_list(of(fs)->under, clean, each, arg);
}

const struct fs_ops fs_fault_ops = {
    .open = fault_open,
    .close = fault_close,
    .pread = fault_pread,
    .pread_now = fault_pread_now,
    .in_memory = fault_in_memory,
    .pwritev = fault_pwritev,
    .sync = fault_sync,
    .truncate = fault_truncate,
    .allocate = fault_allocate,
    .fstat = fault_fstat,
    .set_mtime = fault_set_mtime,
    .map = fault_map,
    .msync = fault_msync,
    .unmap = fault_unmap,
    .rename = fault_rename,
    .unlink = fault_unlink,
    .mkdir = fault_mkdir,
    .rmdir = fault_rmdir,
    .sync_dir = fault_sync_dir,
    .stat = fault_stat,
    .list = fault_list,
};
