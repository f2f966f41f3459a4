/* fs_fault.h - a file layer for tests: wraps another and makes chosen calls fail, be short, wait,
 * or be forgotten.
 *
 * Rules are tried in order; the first that matches acts. A path pattern is as of fnmatch(3) on the
 * whole path.
 *
 * With `fs_fault_crash` it also plays a machine crash: it remembers what was written since each
 * file's last sync (and names since each folder's last sync) and can drop or tear it. THREADS  any.
 */
#ifndef BASE_FS_FAULT_H
#define BASE_FS_FAULT_H

#include "base/file.h"

enum fs_call {
    FS_OPEN,
    FS_PREAD,
    FS_PWRITEV,
    FS_SYNC,
    FS_TRUNCATE,
    FS_ALLOCATE,
    FS_MAP,
    FS_MSYNC,
    FS_RENAME,
    FS_UNLINK,
    FS_MKDIR,
    FS_RMDIR,
    FS_SYNC_DIR,
    FS_STAT,
    FS_LIST,
    FS_CALLS
};

struct fs_fault_rule {
    enum fs_call call;
    const char *path;    /* fnmatch pattern; NULL = any */
    int skip;            /* let this many matching calls pass first */
    int times;           /* then act on this many; -1 = for ever */
    int error;           /* positive errno to fail with; 0 = do not fail */
    int64_t write_bytes; /* FS_PWRITEV: write only this many, then fail with `error`, or be short if
                            it is 0; -1 = off */
    /* Called (and waited for) before the call goes on; a test blocks here to delay it. */
    void (*before)(void *arg);
    void *arg;
};

struct fs_fault;
struct fs_fault *fs_fault_new(struct fs *under); /* borrows; returns owned */
void fs_fault_free(struct fs_fault *f);
struct fs *fs_fault_fs(struct fs_fault *f);
void fs_fault_add(struct fs_fault *f, struct fs_fault_rule rule);
void fs_fault_clear(struct fs_fault *f);
/* Matching calls so far, failed ones included. */
uint64_t fs_fault_count(struct fs_fault *f, enum fs_call call);
/* Number of all calls; with fail_at(n, errno) a test visits every failure point: the n-th call from
 * now fails. */
void fs_fault_fail_at(struct fs_fault *f, uint64_t n, int error);

enum fs_crash {
    FS_CRASH_DROP,
    FS_CRASH_TEAR
}; /* unsynced writes vanish; or a prefix chosen by `seed` stays */
/* Puts the files under `dir` into the state a machine crash would leave. All files must be closed.
 */
int fs_fault_crash(struct fs_fault *f, const char *dir, enum fs_crash how, uint64_t seed);

#endif
