/* fs_fault.h - a file layer for tests: wraps another and makes chosen calls fail, be short, wait,
 * or be forgotten.
 *
 * RULES  are tried in order; the first that matches acts. One that still skips, or has acted its
 * times, lets the next ones have the call. A path pattern is as of fnmatch(3) on the whole path,
 * made absolute; '*' matches '/' too. A file that was renamed goes by its present path.
 *
 * CRASH  with fs_fault_crash it also plays a machine crash: it remembers what was written since
 * each file's last sync (and names since each folder's last sync) and can drop or tear it. What an
 * fsync that failed should have saved is lost even if a later one succeeds, as it is on Linux.
 *
 * Paths go through no symbolic link below the crashed folder and have no "..". Descriptors are not
 * shown (file.fd is -1), so that no read passes by.
 *
 * THREADS  any, fs_fault_crash alone. */
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
    FS_SET_MTIME,
    FS_LIST,
    FS_PREAD_NOW, /* and asking for mapped pages; EAGAIN: as if it were not in memory */
    FS_CALLS
};

struct fs_fault_rule {
    enum fs_call call;
    const char *path;    /* fnmatch pattern; NULL = any */
    int skip;            /* let this many matching calls pass first */
    int times;           /* then act on this many; -1 = for ever */
    int error;           /* positive errno to fail with; 0 = do not fail */
    int64_t write_bytes; /* FS_PWRITEV: write only this many, then fail with `error`, or be short if
                            that is 0; 0 or less = off */
    /* Called (and waited for) before the call goes on; a test blocks here to delay it. */
    void (*before)(void *arg);
    void *arg;
};

struct fs_fault;
/* Borrows `under`. Returns owned; NULL without memory. */
struct fs_fault *fs_fault_new(struct fs *under);
/* All its files must be closed. */
void fs_fault_free(struct fs_fault *f);
struct fs *fs_fault_fs(struct fs_fault *f);
/* Copies the rule. */
void fs_fault_add(struct fs_fault *f, struct fs_fault_rule rule);
/* Forgets all rules, a coming fail_at and a power cut; counts stay. */
void fs_fault_clear(struct fs_fault *f);
/* Matching calls so far, failed ones included. */
uint64_t fs_fault_count(struct fs_fault *f, enum fs_call call);
/* Calls of all kinds so far. With fail_at a test visits every failure point: the n-th call from now
 * (1: the next) fails; n == 0 takes that back. */
uint64_t fs_fault_total(struct fs_fault *f);
void fs_fault_fail_at(struct fs_fault *f, uint64_t n, int error);
/* The same for a crash: the n-th call from now and all after it fail with EIO and change nothing,
 * nor do mapped files change any more; so the code under test can be shut down, and its files
 * closed, without a trace. fs_fault_crash turns the power on again. */
void fs_fault_power_off_at(struct fs_fault *f, uint64_t n);

enum fs_crash {
    FS_CRASH_DROP, /* all unsynced writes and names vanish */
    FS_CRASH_TEAR, /* of each file's writes, and of all names, a first part chosen by `seed` stays;
                      the last write of that part may be cut in its middle */
    FS_CRASH_KEEP  /* nothing vanishes: only the process has ended, at the power cut */
};
/* Puts what is in the folder `dir` into the state that a machine crash would leave. Files in it
 * must be closed: else -EBUSY. 0 or -errno. */
int fs_fault_crash(struct fs_fault *f, const char *dir, enum fs_crash how, uint64_t seed);

#endif
