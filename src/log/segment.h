/* segment.h - one segment of a log: <base>.log and its indexes.
 *
 * The segment with the highest base is the active one, the only one appended to. Files are opened
 * at first use (segment_file, the views), so that a log at rest costs no descriptors, and closed
 * when too many are open (open_files.h).
 *
 * INVARIANTS  S1 offsets in the file are >= base and rise; last offset - base <= 2^31 - 1.
 *             S2 `size` covers whole batches and is published after their bytes; what lies behind
 *                it in the file (a preallocated tail, a failed write) is never read.
 *             S3 indexes point into [0, size).
 * OWNERSHIP   reference counted: each segment list holds one. The last one closes and unmaps. The
 *             folder must outlive the segment.
 * THREADS     reading: any thread that pinned a list. append, seal, doom: the log's mutex.
 * ERRORS      -errno, after log_dir_fail unless it is a shortage (descriptors, memory); -ESTALE
 *             when the segment's files have been taken away meanwhile: look at the log's list
 *             again. -EAGAIN only from the calls that do not wait. */
#ifndef LOG_SEGMENT_H
#define LOG_SEGMENT_H

#include "log/file_batches.h"
#include "log/log_config.h"
#include "log/log_dir_private.h"
#include "log/offset_index.h"
#include "log/spin.h"
#include "log/time_index.h"
#include "log/txn_index.h"

#define TIMESTAMP_UNKNOWN INT64_MIN /* not looked up yet */

struct segment {
    atomic_int refs;
    const struct log_folder *folder;
    int64_t base;
    enum log_file_stage stage; /* of its files' names; LIVE once readers can see it */
    struct spin file_lock;
    struct file *file;     /* NULL: not open; file_lock */
    struct list open_link; /* open_files; its lock */
    int maps;              /* counted there; the same */
    atomic_bool used;      /* since open_files looked last */
    _Atomic int64_t size;
    struct index_file offsets, times;
    struct txn_index txns;
    /* Largest timestamp, and the last offset of the batch that holds it (times.h). Written in this
     * order, read in the other. */
    _Atomic int64_t max_timestamp, max_timestamp_offset;
    atomic_bool doomed; /* its files are renamed away or replaced */
    atomic_bool dirty;  /* data written since the last sync */
    atomic_bool warned; /* about a timestamp in the future */

    /* the log's mutex */
    bool ready;                   /* the fields below are right */
    bool preallocated;            /* the file is longer than size */
    int64_t first_timestamp;      /* largest of the first append; TIMESTAMP_UNKNOWN until read */
    int64_t since_index;          /* bytes since the last index entry */
    struct time_offset last_time; /* last entry of the time index */
    int64_t created_ms;           /* wall clock, of this object */
    int64_t jitter_ms;
};

/* Makes the files of an empty segment, removing what a crash left under the names. */
int segment_create(const struct log_folder *folder, int64_t base, const struct log_config *c,
                   struct segment **out);
/* The same under the names of a replacement in the making (.cleaned), which nobody sees before
 * segment_reopen and log_replace. Never preallocated. */
int segment_create_cleaned(const struct log_folder *folder, int64_t base,
                           const struct log_config *c, struct segment **out);
/* It is sealed and synced: opens its files as those of a segment that does not grow. All of them,
 * so that its names are not needed while they change. Only then may stage be set to LIVE. */
int segment_reopen(struct segment *s);
/* Removes the files of a segment that was created and is not needed after all: an empty one left
 * behind would hide what is written at its offsets later. */
void segment_discard(struct segment *s);
/* A segment whose files are there already. active: it may grow. NULL without memory. No I/O. */
struct segment *segment_existing(const struct log_folder *folder, int64_t base, int64_t size,
                                 bool has_txn_index, bool active, const struct log_config *c);
struct segment *segment_ref(struct segment *s);
void segment_unref(struct segment *s);

static inline int64_t segment_size(const struct segment *s)
{
    return atomic_load_explicit(&s->size, memory_order_acquire);
}
/* Path of one of its files. */
void segment_path(const struct segment *s, enum log_file_kind kind, char out[LOG_PATH_MAX]);
/* Reports an error of a call on one of its files; returns what the caller should return. */
int segment_failed(struct segment *s, enum log_file_kind kind, int err, const char *doing);

/* ---- reading ---- */
/* The open file; *out is a reference of the caller's. */
int segment_file(struct segment *s, struct file **out);
/* From now on its descriptors count, and may be closed while nobody uses them; so its files must
 * have their final names. */
void segment_economize(struct segment *s);
/* Closes its files and unmaps its indexes; the next use opens them again. For open_files.c. */
void segment_drop_files(struct segment *s);
/* Gives it an open file; takes the reference. */
void segment_give_file(struct segment *s, struct file *f);
/* Views are closed by the caller (index_view_close), also after an error. */
int segment_offsets(struct segment *s, struct index_view *v);
int segment_times(struct segment *s, struct index_view *v);
/* The first batch whose last offset is >= offset, in [0, end). 1 found (head in *b, place in
 * *pos), 0 not, -errno. */
int segment_find(struct segment *s, struct file *f, int64_t offset, int64_t end, struct batch *b,
                 int64_t *pos);
/* The same three without waiting for the disk: -EAGAIN when a file is not open, or what is looked
 * for not in memory. */
int segment_file_now(struct segment *s, struct file **out);
int segment_offsets_now(struct segment *s, struct index_view *v);
int segment_find_now(struct segment *s, struct file *f, int64_t offset, int64_t end,
                     struct batch *b, int64_t *pos);
/* Starts a walk at a batch at or before the one that holds `offset`, up to `end`. */
int segment_walk(struct segment *s, struct file *f, int64_t offset, int64_t end, uint8_t *window,
                 size_t window_n, struct file_batches *w);
/* Largest timestamp (-1: none). */
int segment_max_time(struct segment *s, struct time_offset *out);
int segment_mtime(struct segment *s, int64_t *ms);
/* Aborted transactions of its index whose marker is at or above `from` and that begin below
 * `upper`, to each(arg, entry), which returns 0 or -errno. 1: no later segment can have more; 0: go
 * on; -errno. now: as above. */
int segment_aborted(struct segment *s, int64_t from, int64_t upper, bool now,
                    int (*each)(void *arg, const struct txn_entry *e), void *arg);

/* ---- writing: the active segment, under the log's mutex ---- */
/* Reads what appending needs, once. */
int segment_ready(struct segment *s);
/* One write at the end. Not visible until segment_published. On failure the file is cut back. */
int segment_write(struct segment *s, const void *p, size_t n);
/* The same of n bytes in pieces, which are used up. */
int segment_writev(struct segment *s, struct iovec *iov, int pieces);
/* Counts n bytes at pos, of an append that ends with last_offset, for the indexes. t: its largest
 * timestamp. Called after the write, before publishing. */
int segment_index(struct segment *s, int64_t pos, size_t n, int64_t last_offset,
                  struct time_offset t, int32_t interval);
static inline void segment_publish(struct segment *s, size_t n)
{
    int64_t size = atomic_load_explicit(&s->size, memory_order_relaxed);
    atomic_store_explicit(&s->size, size + (int64_t)n, memory_order_release);
}
int segment_add_txn(struct segment *s, struct txn_entry e);
/* It stops being active, or is closed: last time entry, files cut to what they hold. */
int segment_seal(struct segment *s);
/* fsync of data and indexes. all: also when nothing was written by this process. Not under the
 * mutex. */
int segment_sync(struct segment *s, bool all);
/* Sets when its files were changed last, for those who have no better clue to its age. */
int segment_set_mtime(struct segment *s, int64_t mtime_ms);
/* Renames its files to .deleted and has them removed after the delay. */
int segment_doom(struct segment *s, int64_t delay_ms);
/* A segment object that holds only what lies below `offset`; the old one is doomed, its files are
 * cut. */
int segment_truncated(struct segment *old, int64_t offset, const struct log_config *c,
                      struct segment **out);

#endif
