/* epoch_cache.h - the leader epochs of a log and where each began: leader-epoch-checkpoint and its
 * copy in memory.
 *
 * INVARIANTS  epochs and start offsets strictly increase; no start is above the log end.
 * CRASH       what is above the recovery point, a load finds in the batches themselves; so a new
 *             epoch is written without a sync, and synced (epoch_cache_sync) before the recovery
 *             point passes its records. A file that a crash of the machine has damaged is made anew
 *             from the batches. Cuts may be lost and are made again at load.
 * THREADS     changes: one at a time (the log's mutex). Questions: any thread. */
#ifndef LOG_EPOCH_CACHE_H
#define LOG_EPOCH_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/file.h"

#define EPOCH_FILE_NAME "leader-epoch-checkpoint"

struct epoch_entry {
    int32_t epoch;
    int64_t start; /* first offset written in this epoch */
};

struct epoch_cache {
    pthread_mutex_t lock; /* v, n, cap; never held over I/O */
    struct epoch_entry *v;
    int n, cap;
    /* Hash of the file's text as last read or written, and its length; length 0 = not known. What
     * is there already is not written again: a start of thousands of quiet logs then needs no
     * fsync. The changer's own, like `unsaved`: memory has changed since; the next append saves it.
     */
    uint64_t on_disk;
    size_t on_disk_n;
    bool unsaved;
    atomic_bool unsynced; /* the file was written and not synced since */
};

void epoch_cache_init(struct epoch_cache *c);
void epoch_cache_free(struct epoch_cache *c);

/* Replaces what is in memory. 0, -EBADMSG (the cache is empty then), -ENOMEM. */
int epoch_cache_parse(struct epoch_cache *c, const char *text, size_t len);
/* Reads <dir>/leader-epoch-checkpoint. *had_text: the file is there and not of 0 bytes. 0,
 * -ENOENT, -EBADMSG, -errno. */
int epoch_cache_read(struct epoch_cache *c, struct fs *fs, const char *dir, bool *had_text);
/* sync: durable when it returns 0. */
int epoch_cache_write(struct epoch_cache *c, struct fs *fs, const char *dir, bool sync);
/* What was written without a sync. 0 or -errno; the folder is left to the caller, *named: it has to
 * be synced. @thread any, one at a time */
int epoch_cache_sync(struct epoch_cache *c, struct fs *fs, const char *dir, bool *named);

/* Would (epoch, start) change anything? An entry of the last epoch that begins no later does. */
bool epoch_cache_is_news(struct epoch_cache *c, int32_t epoch, int64_t start);
/* Adds it, dropping entries from the end that it contradicts. In memory only: recovery. */
int epoch_cache_note(struct epoch_cache *c, int32_t epoch, int64_t start);
/* Adds it, in the file first, without a sync; for what is no news, saves a cut that is not saved
 * yet. 0 or -errno. */
int epoch_cache_assign(struct epoch_cache *c, struct fs *fs, const char *dir, int32_t epoch,
                       int64_t start);
/* Drop entries with start >= end / fold those with start <= start into one at `start`. In memory;
 * true when something changed (then write). */
bool epoch_cache_cut_end(struct epoch_cache *c, int64_t end);
bool epoch_cache_cut_start(struct epoch_cache *c, int64_t start);
void epoch_cache_clear(struct epoch_cache *c);

/* End of `epoch` in a log that ends at log_end: (-1, -1) when undefined. */
void epoch_cache_end_offset(struct epoch_cache *c, int32_t epoch, int64_t log_end, int32_t *found,
                            int64_t *end);
int32_t epoch_cache_latest(struct epoch_cache *c);                    /* -1 without any */
int32_t epoch_cache_of_offset(struct epoch_cache *c, int64_t offset); /* -1: before the first */
/* Epoch of the first entry if it begins at or below `start`, else -1. */
int32_t epoch_cache_earliest(struct epoch_cache *c, int64_t start);
int epoch_cache_count(struct epoch_cache *c);
struct epoch_entry epoch_cache_at(struct epoch_cache *c, int i);

#endif
