/* fs_posix.c - the machine's files. Calls that a signal interrupts are made again; fsync and msync
 * are not: after a failure nobody knows what reached the disk, and a second call may lie. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define RETRY(call)                        \
    ({                                     \
        __typeof__(call) rc_;              \
        do                                 \
            rc_ = (call);                  \
        while (rc_ < 0 && errno == EINTR); \
        rc_;                               \
    })

static int result(int rc)
{
    return rc < 0 ? -errno : 0;
}

/* A pipe under a file's name: to open it waits for its other side, perhaps for ever, and there are
 * no positions in it. -ESPIPE or 0. */
static int refuse_pipe(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    return S_ISFIFO(st.st_mode) ? -ESPIPE : 0;
}

static int posix_open(struct fs *fs, const char *path, int flags, int mode, struct file **out)
{
    *out = NULL;
    struct file *f = malloc(sizeof(*f));
    if (!f)
        return -ENOMEM;
    /* without waiting: files never do, and of pipes see above */
    int fd = RETRY(open(path, flags | O_CLOEXEC | O_NONBLOCK, mode));
    int err = fd < 0 ? -errno : refuse_pipe(fd);
    if (err) {
        if (fd >= 0)
            close(fd);
        free(f);
        return err;
    }
    f->fs = fs;
    atomic_init(&f->refs, 1);
    f->fd = fd;
    *out = f;
    return 0;
}

static void posix_drop_fd(struct file *f)
{
    if (f->fd >= 0)
        close(f->fd); /* on Linux the descriptor is gone even after EINTR */
    f->fd = -1;
}

static void posix_close(struct file *f)
{
    posix_drop_fd(f);
    free(f);
}

static ssize_t posix_pread(struct file *f, void *p, size_t n, int64_t off)
{
    ssize_t got = RETRY(pread(f->fd, p, n, off));
    return got < 0 ? -errno : got;
}

static ssize_t posix_pread_now(struct file *f, void *p, size_t n, int64_t off)
{
    struct iovec one = {p, n};
    ssize_t got = RETRY(preadv2(f->fd, &one, 1, off, RWF_NOWAIT));
    if (got < 0 && errno == EOPNOTSUPP) /* a file system in memory, for one */
        return posix_pread(f, p, n, off);
    return got < 0 ? -errno : got;
}

static bool posix_in_memory(struct file *f, const void *p, size_t len)
{
    enum { AT_ONCE = 64 };
    unsigned char there[AT_ONCE];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)p & ~(page - 1), end = (uintptr_t)p + len;
    while (at < end) {
        size_t pages = (end - at + page - 1) / page;
        pages = pages < AT_ONCE ? pages : AT_ONCE;
        if (mincore((void *)at, pages * page, there) < 0)
            return true;
        for (size_t i = 0; i < pages; i++)
            if (!(there[i] & 1))
                return false;
        at += pages * page;
    }
    return true;
}

static ssize_t posix_pwritev(struct file *f, const struct iovec *iov, int n, int64_t off)
{
    ssize_t put = RETRY(pwritev(f->fd, iov, n, off));
    return put < 0 ? -errno : put;
}

static int posix_sync(struct file *f)
{
    return result(fsync(f->fd));
}

static int posix_truncate(struct file *f, int64_t size)
{
    return result(RETRY(ftruncate(f->fd, size)));
}

static int posix_allocate(struct file *f, int64_t off, int64_t len)
{
    int err;
    do
        err = posix_fallocate(f->fd, off, len);
    while (err == EINTR);
    return -err;
}

static void fill_stat(const struct stat *from, struct file_stat *st)
{
    st->size = from->st_size;
    st->mtime_ms = (int64_t)from->st_mtim.tv_sec * 1000 + from->st_mtim.tv_nsec / 1000000;
    st->is_dir = S_ISDIR(from->st_mode);
}

static int posix_fstat(struct file *f, struct file_stat *st)
{
    struct stat raw;
    if (fstat(f->fd, &raw) < 0)
        return -errno;
    fill_stat(&raw, st);
    return 0;
}

static int posix_set_mtime(struct file *f, int64_t mtime_ms)
{
    int64_t ms = mtime_ms % 1000;
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT},
                            {.tv_sec = mtime_ms / 1000 - (ms < 0), .tv_nsec = 0}};
    t[1].tv_nsec = (ms < 0 ? ms + 1000 : ms) * 1000000;
    return result(futimens(f->fd, t));
}

static int posix_map(struct file *f, size_t len, bool writable, void **out)
{
    int prot = PROT_READ | (writable ? PROT_WRITE : 0);
    void *p = mmap(NULL, len, prot, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED) {
        *out = NULL;
        return -errno;
    }
    /* A touch is to cost one page. Else the kernel fills the cache around it, as far as the disk's
     * read-ahead goes (megabytes, on some): for a thousand indexes, gigabytes of zeroes. */
    (void)madvise(p, len, MADV_RANDOM);
    *out = p;
    return 0;
}

static int posix_msync(struct file *f, void *p, size_t len)
{
    return result(msync(p, len, MS_SYNC));
}

static int posix_unmap(struct file *f, void *p, size_t len)
{
    return result(munmap(p, len));
}

static int posix_rename(struct fs *fs, const char *from, const char *to)
{
    return result(rename(from, to));
}

static int posix_unlink(struct fs *fs, const char *path)
{
    return result(unlink(path));
}

static int posix_mkdir(struct fs *fs, const char *path, int mode)
{
    return result(mkdir(path, (mode_t)mode));
}

static int posix_rmdir(struct fs *fs, const char *path)
{
    return result(rmdir(path));
}

static int posix_sync_dir(struct fs *fs, const char *path)
{
    int fd = RETRY(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return -errno;
    int err = result(fsync(fd));
    close(fd);
    /* a failed fsync must not look like the lack of a descriptor or of memory, after which callers
     * may try again: a failed open above may */
    return err == -ENOMEM || err == -EMFILE || err == -ENFILE ? -EIO : err;
}

static void posix_write_back(struct fs *fs, const char *path)
{
    int fd = RETRY(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return;
    (void)syncfs(fd); /* what it would tell, the fsync of the file in question tells too */
    close(fd);
}

static int posix_stat(struct fs *fs, const char *path, struct file_stat *st)
{
    struct stat raw;
    if (stat(path, &raw) < 0)
        return -errno;
    fill_stat(&raw, st);
    return 0;
}

static int posix_list(struct fs *fs, const char *path, int (*each)(void *arg, const char *name),
                      void *arg)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
    int rc = 0;
    while (!rc) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            rc = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            rc = each(arg, entry->d_name);
    }
    closedir(dir);
    return rc;
}

static const struct fs_ops posix_ops = {
    .open = posix_open,
    .close = posix_close,
    .pread = posix_pread,
    .pread_now = posix_pread_now,
    .in_memory = posix_in_memory,
    .pwritev = posix_pwritev,
    .sync = posix_sync,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .fstat = posix_fstat,
    .set_mtime = posix_set_mtime,
    .map = posix_map,
    .msync = posix_msync,
    .unmap = posix_unmap,
    .drop_fd = posix_drop_fd,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .mkdir = posix_mkdir,
    .rmdir = posix_rmdir,
    .sync_dir = posix_sync_dir,
    .write_back = posix_write_back,
    .stat = posix_stat,
    .list = posix_list,
};

struct fs *fs_posix(void)
{
    static struct fs posix = {&posix_ops}; /* never written to */
    return &posix;
}

/* Is the locked descriptor still the file that the name leads to? The one who held the lock before
 * us may have unlinked it after we opened it: then others lock a new file. */
static bool is_named(int fd, const char *path)
{
    struct stat mine, named;
    return fstat(fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
}

int fs_lock(const char *path, int *fd_out)
{
    enum { TRIES = 100 }; /* each is lost only to one who ended in this very moment */
    *fd_out = -1;
    for (int i = 0; i < TRIES; i++) {
        int fd = RETRY(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        if (fd < 0)
            return -errno;
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_SETLK, &whole) < 0) {
            int err = errno == EACCES ? -EAGAIN : -errno;
            close(fd);
            return err;
        }
        if (is_named(fd, path)) {
            *fd_out = fd;
            return 0;
        }
        close(fd);
    }
    return -EAGAIN;
}

int fs_lock_dir(const char *path, int *fd_out)
{
    *fd_out = -1;
    int fd = RETRY(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int err = errno == EWOULDBLOCK ? -EAGAIN : 0; /* some file systems have no such lock */
        close(fd);
        return err;
    }
    *fd_out = fd;
    return 0;
}

void fs_unlock(const char *path, int fd)
{
    if (is_named(fd, path)) /* else the name is another one's lock by now */
        unlink(path);       /* while it is still held: the next holder makes a new one */
    close(fd);
}
