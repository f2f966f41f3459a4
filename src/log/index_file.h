/* index_file.h - an array of fixed-size entries in a mapped file that grows at its end: what the
 * offset index and the time index have in common.
 *
 * FORMAT      entries back to back, no header, no checksum. While a segment is active the file has
 *             its full size (zeros behind the entries); afterwards it is cut to the entries.
 *
 * OPENING     lazily, at the first look-up or entry; a map holds no descriptor. The map of a file
 *             that may grow covers the full size from the start, so growing does not replace it.
 *             Maps are a scarce thing (vm.max_map_count): open_files.h closes those not used for
 *             longest, which are opened again at the next use. Without room for a map the entries
 *             are read and written by calls instead.
 *
 * OWNERSHIP   a view holds a reference on the map it looks at, until index_view_close.
 *
 * INVARIANTS  an entry's bytes are in place before the count that covers it is published, and never
 *             change afterwards. Blocks are allocated before a store into the map, so a full disk
 *             is an error code; so is a page that cannot be read (map_guard.h).
 *
 * CRASH       of no consequence: after an unclean stop indexes are made anew.
 *
 * THREADS     reading: any. Growing, cutting: one at a time (the log's mutex). Errors are -errno;
 *             the caller knows the path and reports. */
#ifndef LOG_INDEX_FILE_H
#define LOG_INDEX_FILE_H

#include <stdatomic.h>

#include "base/file.h"
#include "log/spin.h"

struct index_map; /* the open file and its map; counted */

struct index_file {
    _Atomic(struct index_map *) map; /* NULL: not open; changed under lock, which also guards that a
                                        reference is taken of what it points at */
    struct spin lock;
    atomic_int n;  /* entries; -1 until the file's size was looked at */
    int32_t max;   /* entries that fit */
    uint8_t entry; /* bytes of one */
    bool growable; /* the active segment's; fixed once readers can see it */
    /* Once it is true, the path may lead to another file: what is opened later is not kept, the
     * error is -ESTALE. NULL: the path stays. Fixed once readers can see it. */
    const atomic_bool *gone;
    /* writer only */
    bool full_size; /* the file has been extended to its full size */
    int64_t backed; /* bytes from the start that have blocks */
    atomic_bool dirty;
};

/* The file is expected at the path given to the other calls. `n` as above. */
void index_file_init(struct index_file *x, int entry, int32_t max_bytes, int n, bool growable);
/* Makes the file with its full size, empty. An older one is removed. */
int index_file_create(struct index_file *x, struct fs *fs, const char *path);
/* Makes an empty one of whatever is at the path, which nobody has mapped: recovery. Not of its full
 * size before the first entry. */
int index_file_reset(struct index_file *x, struct fs *fs, const char *path);
/* Unmaps, closes; the file stays as it is, and the next use opens it again. Views go on. @thread
 * any
 */
void index_file_close(struct index_file *x);
/* Is it open, with a map of the process? */
bool index_file_mapped(struct index_file *x);

/* A look at the published entries. Opens the file if need be: may block on it. */
struct index_view {
    struct index_map *map; /* a reference; NULL: nothing is held */
    const uint8_t *p;      /* the map; NULL: read by calls */
    struct file *file;
    int32_t n;
    uint8_t entry;
    int error; /* sticky -errno of reads */
    /* Set after the view was taken: entries that are not in memory are not waited for, but give the
     * error -EAGAIN. */
    bool now;
    int64_t page; /* of the last entry that was found in memory; behind it */
};
int index_file_view(struct index_file *x, struct fs *fs, const char *path, struct index_view *v);
/* The same of one that is open, or known to be empty; false when it is neither. */
bool index_file_view_open(struct index_file *x, struct index_view *v);
/* Also for one that could not be taken, and once more. Its n and error stay. */
void index_view_close(struct index_view *v);
/* Copies entry i (zeros after an error). */
void index_view_get(struct index_view *v, int32_t i, uint8_t *out);
/* A field of entry i: `size` 4 or 8 bytes at `at`, signed. */
int64_t index_view_key(struct index_view *v, int32_t i, int at, int size);
/* The last entry whose field is <= key; -1 when there is none. The field must not decrease. Looks
 * at the entries near the end first, so that hot look-ups stay on the same few pages. */
int32_t index_view_floor(struct index_view *v, int at, int size, int64_t key);

static inline bool index_file_full(const struct index_file *x, int reserve)
{
    return atomic_load_explicit(&x->n, memory_order_relaxed) >= x->max - reserve;
}

/* Writer. The entry is visible when it returns 0. *opened, also after an error: this call opened
 * the file (others may have closed it at any time), so there may be a map more to count. */
int index_file_append(struct index_file *x, struct fs *fs, const char *path, const uint8_t *entry,
                      bool *opened);
/* Adds an entry (NULL: none) and cuts the file to its entries. Maps nothing and leaves nothing open
 * that was not: a stop closes thousands. The count must be settled. */
int index_file_seal(struct index_file *x, struct fs *fs, const char *path, const uint8_t *entry);
/* fsync if something was written since the last one. */
int index_file_sync(struct index_file *x, struct fs *fs, const char *path);

#endif
