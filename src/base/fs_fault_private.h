/* fs_fault_private.h - shared by fs_fault.c (rules, control) and fs_fault_ops.c (the calls). */
#ifndef BASE_FS_FAULT_PRIVATE_H
#define BASE_FS_FAULT_PRIVATE_H

#include <pthread.h>

#include "base/fs_fault.h"
#include "base/fs_shadow.h"

struct fs_fault {
    struct fs fs;
    struct fs *under;
    /* Around the shadow and the calls that change something, so that record and change agree; open
     * during syncs and while a rule's `before` runs, which may take long. Protects all below. */
    pthread_mutex_t lock;
    struct shadow shadow;
    struct list rules; /* struct rule */
    uint64_t counts[FS_CALLS], total;
    uint64_t fail_at; /* value of total for the call that fails; 0 = none */
    int fail_error;
    uint64_t off_at; /* the same for the first call without power */
    bool off;
};

/* What a write may still do. */
struct write_limit {
    int64_t bytes; /* 0 = all of them */
    int error;     /* -errno to end with after that; 0 = be short */
};

/* Counts the call and lets it wait or fail: 0 to go on, or -errno. `limit` for writes, else NULL.
 * Called without the lock. */
int fs_fault_gate(struct fs_fault *f, enum fs_call call, const char *path,
                  struct write_limit *limit);

extern const struct fs_ops fs_fault_ops;

#endif
