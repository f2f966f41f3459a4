/* file.h - files and folders through a table that tests can replace.
 *
 * Everything that touches a disk goes through a struct fs: the real one (fs_posix) or one that
 * fails, tears, delays or forgets (fs_fault.h). Functions return 0 (or a count) or -errno, and
 * never retry an fsync.
 *
 * struct file is reference counted, so that a slice on its way to a socket keeps the descriptor
 * open while the segment it came from is rolled, renamed or deleted. The last unref closes.
 *
 * THREADS  any, also on the same file: positions are explicit. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct fs;
struct file;

struct file_stat {
    int64_t size;
    int64_t mtime_ms;
    bool is_dir;
};

struct fs_ops {
    int (*open)(struct fs *fs, const char *path, int flags, int mode, struct file **out);
    void (*close)(struct file *f); /* frees f; errors of close(2) cannot matter after fsync */
    ssize_t (*pread)(struct file *f, void *p, size_t n, int64_t off);
    /* Both may be NULL: see file_pread_now and file_in_memory. */
    ssize_t (*pread_now)(struct file *f, void *p, size_t n, int64_t off);
    bool (*in_memory)(struct file *f, const void *p, size_t len);
    ssize_t (*pwritev)(struct file *f, const struct iovec *iov, int n,
                       int64_t off); /* may be short */
    int (*sync)(struct file *f);
    int (*truncate)(struct file *f, int64_t size);
    int (*allocate)(struct file *f, int64_t off,
                    int64_t len); /* posix_fallocate: blocks behind, size grown */
    int (*fstat)(struct file *f, struct file_stat *st);
    int (*set_mtime)(struct file *f, int64_t mtime_ms);
    int (*map)(struct file *f, size_t len, bool writable, void **out);
    int (*msync)(struct file *f, void *p, size_t len);
    int (*unmap)(struct file *f, void *p, size_t len);
    void (*drop_fd)(struct file *f); /* may be NULL: see file_drop_fd */
    int (*rename)(struct fs *fs, const char *from, const char *to);
    int (*unlink)(struct fs *fs, const char *path);
    int (*mkdir)(struct fs *fs, const char *path, int mode);
    int (*rmdir)(struct fs *fs, const char *path);
    int (*sync_dir)(struct fs *fs, const char *path);
    /* May be NULL: see fs_write_back. */
    void (*write_back)(struct fs *fs, const char *path);
    int (*stat)(struct fs *fs, const char *path, struct file_stat *st);
    /* Calls each(name) for every entry but . and .. ; stops at the first non-zero and returns it.
     */
    int (*list)(struct fs *fs, const char *path, int (*each)(void *arg, const char *name),
                void *arg);
};

struct fs {
    const struct fs_ops *ops;
};

struct file {
    struct fs *fs;
    atomic_int refs;
    int fd; /* for sendfile; -1 when the form has none: then read and send */
};

/* The machine's files. Static. */
struct fs *fs_posix(void);

/* O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC as open(2); O_CLOEXEC is added. *out starts with one
 * reference. A pipe under that name is no file, and not waited for: -ESPIPE. */
int fs_open(struct fs *fs, const char *path, int flags, struct file **out);
struct file *file_ref(struct file *f); /* returns f */
void file_unref(struct file *f);       /* NULL is fine */

/* Reads until n bytes or the end of the file: the count, or -errno. */
ssize_t file_pread(struct file *f, void *p, size_t n, int64_t off);
/* The same of what is in memory, without waiting for the disk: fewer than n bytes also where the
 * next page would have to be read; -EAGAIN when that is the first. File systems that cannot tell
 * just read. */
ssize_t file_pread_now(struct file *f, void *p, size_t n, int64_t off);
/* Are all these bytes of a map in memory, so that touching them does not wait? true when nobody can
 * tell. */
bool file_in_memory(struct file *f, const void *p, size_t len);
/* Writes all, going on after short writes: 0 or -errno; on error an unknown part may be written.
 * `iov` is used up. */
int file_pwritev_all(struct file *f, struct iovec *iov, int n, int64_t off);
int file_pwrite_all(struct file *f, const void *p, size_t n, int64_t off);
int file_sync(struct file *f);
int file_truncate(struct file *f, int64_t size);
int file_allocate(struct file *f, int64_t off, int64_t len);
int file_stat(struct file *f, struct file_stat *st);
int file_set_mtime(struct file *f, int64_t mtime_ms);
int file_map(struct file *f, size_t len, bool writable, void **out);
int file_msync(struct file *f, void *p, size_t len);
int file_unmap(struct file *f, void *p, size_t len);
/* Closes the descriptor of a file that is mapped: from now on only msync, unmap and unref are
 * allowed. Thousands of maps then cost no descriptors. */
void file_drop_fd(struct file *f);

int fs_rename(struct fs *fs, const char *from, const char *to);
int fs_unlink(struct fs *fs, const char *path);
int fs_mkdir(struct fs *fs, const char *path);
int fs_mkdir_p(struct fs *fs, const char *path); /* each new folder's parent is synced */
int fs_rmdir(struct fs *fs, const char *path);
int fs_remove_tree(struct fs *fs, const char *path); /* gone already is fine */
/* -EMFILE, -ENFILE, -ENOMEM: the folder could not be opened, nothing was tried. Any other error:
 * the fsync failed, and is not to be tried again. */
int fs_sync_dir(struct fs *fs, const char *path);
/* Writes back all that is dirty on the file system that holds `path`, so that the many fsyncs which
 * follow find little to do. A hint: it promises nothing and tells of no error, the fsyncs do. */
void fs_write_back(struct fs *fs, const char *path);
int fs_stat(struct fs *fs, const char *path, struct file_stat *st);
int fs_list(struct fs *fs, const char *path, int (*each)(void *arg, const char *name), void *arg);

/* Whole file into memory (NUL behind it). -EFBIG over max. *out is owned (free). */
int fs_read_all(struct fs *fs, const char *path, size_t max, char **out, size_t *len);
/* <path>.tmp, sync, rename over path, sync the folder: afterwards the file is the old or the new,
 * never a mix. */
int fs_replace(struct fs *fs, const char *path, const void *p, size_t n);
/* The same without any sync: after a crash of the machine it may be the old, the new, cut or empty.
 */
int fs_replace_unsynced(struct fs *fs, const char *path, const void *p, size_t n);
/* Writes over what is there, without any sync, for files that can be made anew: the cheapest way (a
 * rename over a file makes some file systems write at once). If the process ends in the middle, or
 * the machine crashes, it may be any mix. */
int fs_overwrite(struct fs *fs, const char *path, const void *p, size_t n);

/* fcntl write lock on the whole file, as a JVM takes it; -EAGAIN when another process holds it.
 * Always real. The descriptor must stay open (closing any descriptor of the file drops the lock).
 * What is locked is the file of that name: one that its last holder unlinks meanwhile is left. */
int fs_lock(const char *path, int *fd_out);
void fs_unlock(const char *path, int fd); /* unlinks, then closes */
/* A lock on the folder itself, beside that of a file in it, which is worth nothing once somebody
 * removes the file: flock(2), until *fd_out is closed. -EAGAIN when it is held already, by another
 * process or by another descriptor of ours. 0 and -1 where the file system has no such locks.
 * Always real. */
int fs_lock_dir(const char *path, int *fd_out);

#endif
