/* file.c - calls through the table of a struct fs, whole reads and writes on top of partial ones,
 * reference counts. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

int fs_open(struct fs *fs, const char *path, int flags, struct file **out)
{
    return fs->ops->open(fs, path, flags, 0644, out);
}

struct file *file_ref(struct file *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void file_unref(struct file *f)
{
    if (f && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
        f->fs->ops->close(f);
}

ssize_t file_pread(struct file *f, void *p, size_t n, int64_t off)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = f->fs->ops->pread(f, (char *)p + have, n - have, off + (int64_t)have);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

ssize_t file_pread_now(struct file *f, void *p, size_t n, int64_t off)
{
    size_t have = 0;
    if (!f->fs->ops->pread_now)
        return file_pread(f, p, n, off);
    while (have < n) {
        ssize_t got = f->fs->ops->pread_now(f, (char *)p + have, n - have, off + (int64_t)have);
        if (got < 0 && !(got == -EAGAIN && have))
            return got;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

bool file_in_memory(struct file *f, const void *p, size_t len)
{
    return !f->fs->ops->in_memory || f->fs->ops->in_memory(f, p, len);
}

/* Drops `done` bytes and empty pieces from the front of the vector. */
static void iov_skip(struct iovec **iov, int *n, size_t done)
{
    while (*n && done >= (*iov)->iov_len) {
        done -= (*iov)->iov_len;
        (*iov)++;
        (*n)--;
    }
    if (done) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + done;
        (*iov)->iov_len -= done;
    }
}

int file_pwritev_all(struct file *f, struct iovec *iov, int n, int64_t off)
{
    iov_skip(&iov, &n, 0);
    while (n) {
        ssize_t put = f->fs->ops->pwritev(f, iov, n < IOV_MAX ? n : IOV_MAX, off);
        if (put < 0)
            return (int)put;
        if (put == 0)
            return -EIO; /* no progress and no reason: never loop on it */
        off += put;
        iov_skip(&iov, &n, (size_t)put);
    }
    return 0;
}

int file_pwrite_all(struct file *f, const void *p, size_t n, int64_t off)
{
    struct iovec one = {(void *)(uintptr_t)p, n};
    return file_pwritev_all(f, &one, 1, off);
}

int file_sync(struct file *f)
{
    return f->fs->ops->sync(f);
}

int file_truncate(struct file *f, int64_t size)
{
    return f->fs->ops->truncate(f, size);
}

int file_allocate(struct file *f, int64_t off, int64_t len)
{
    return f->fs->ops->allocate(f, off, len);
}

int file_stat(struct file *f, struct file_stat *st)
{
    return f->fs->ops->fstat(f, st);
}

int file_set_mtime(struct file *f, int64_t mtime_ms)
{
    return f->fs->ops->set_mtime(f, mtime_ms);
}

int file_map(struct file *f, size_t len, bool writable, void **out)
{
    return f->fs->ops->map(f, len, writable, out);
}

int file_msync(struct file *f, void *p, size_t len)
{
    return f->fs->ops->msync(f, p, len);
}

int file_unmap(struct file *f, void *p, size_t len)
{
    return f->fs->ops->unmap(f, p, len);
}

void file_drop_fd(struct file *f)
{
    if (f->fs->ops->drop_fd)
        f->fs->ops->drop_fd(f);
}

int fs_rename(struct fs *fs, const char *from, const char *to)
{
    return fs->ops->rename(fs, from, to);
}

int fs_unlink(struct fs *fs, const char *path)
{
    return fs->ops->unlink(fs, path);
}

int fs_mkdir(struct fs *fs, const char *path)
{
    return fs->ops->mkdir(fs, path, 0755);
}

int fs_rmdir(struct fs *fs, const char *path)
{
    return fs->ops->rmdir(fs, path);
}

int fs_sync_dir(struct fs *fs, const char *path)
{
    return fs->ops->sync_dir(fs, path);
}

void fs_write_back(struct fs *fs, const char *path)
{
    if (fs->ops->write_back)
        fs->ops->write_back(fs, path);
}

int fs_stat(struct fs *fs, const char *path, struct file_stat *st)
{
    return fs->ops->stat(fs, path, st);
}

int fs_list(struct fs *fs, const char *path, int (*each)(void *arg, const char *name), void *arg)
{
    return fs->ops->list(fs, path, each, arg);
}
