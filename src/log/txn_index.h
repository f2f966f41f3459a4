/* txn_index.h - <base>.txnindex: the aborted transactions whose marker lies in the segment.
 *
 * FORMAT      34 bytes an entry: int16 version 0, int64 producer id, int64 first offset of the
 *             transaction, int64 offset of its marker, int64 last stable offset once it is
 *             complete. Appended by write(2); made with the first entry. A torn entry at the end is
 *             not read, and cut off before the next one is written.
 * INVARIANTS  marker offsets strictly increase. What was written never changes: a cut makes another
 *             file, and who reads the old one goes on with it.
 * THREADS     reading: any. Appending, cutting: one at a time. Errors are -errno; the caller
 *             reports. */
#ifndef LOG_TXN_INDEX_H
#define LOG_TXN_INDEX_H

#include <stdatomic.h>

#include "base/file.h"
#include "log/spin.h"

#define TXN_ENTRY_BYTES 34

struct txn_entry {
    int64_t producer_id, first_offset, last_offset, last_stable_offset;
};

struct txn_index {
    struct spin lock;
    struct file *file; /* NULL: not open; lock */
    atomic_int n;      /* entries; -1 until the file was looked at; 0 without a file */
    atomic_bool dirty;
    /* Once it is true, the path may lead to another file: what is not open by then is not opened
     * any more, the error is -ESTALE. NULL: the path stays. Fixed once readers can see it. */
    const atomic_bool *gone;
};

void txn_entry_encode(uint8_t out[TXN_ENTRY_BYTES], struct txn_entry e);
/* false: a version that we do not know. */
bool txn_entry_decode(const uint8_t p[TXN_ENTRY_BYTES], struct txn_entry *out);

/* exists: there is a file at the path given to the other calls. */
void txn_index_init(struct txn_index *x, bool exists);
void txn_index_close(struct txn_index *x);
int txn_index_append(struct txn_index *x, struct fs *fs, const char *path, struct txn_entry e);
/* Entries from `from` on, at most `max`: the count, or -errno; -EBADMSG for an unknown version. */
int txn_index_read(struct txn_index *x, struct fs *fs, const char *path, int from,
                   struct txn_entry *out, int max);
/* The same without waiting for the disk: -EAGAIN when the file is not open or not in memory. */
int txn_index_read_now(struct txn_index *x, int from, struct txn_entry *out, int max);
/* *out: its file, for when the path leads elsewhere; NULL without entries. A reference of the
 * caller's. */
int txn_index_file(struct txn_index *x, struct fs *fs, const char *path, struct file **out);
/* Makes `to`, a new one without entries, of those of `from` whose marker is below `offset`; f is
 * its file. Where some go, the path leads to a new file then; after an error, maybe to none. */
int txn_index_cut(struct txn_index *from, struct file *f, struct txn_index *to, struct fs *fs,
                  const char *path, int64_t offset);
/* Every marker offset at or above base and rising, every version known? 1, 0 or -errno. */
int txn_index_sane(struct txn_index *x, struct fs *fs, const char *path, int64_t base);
/* fsync if something was written since the last one. */
int txn_index_sync(struct txn_index *x, struct fs *fs, const char *path);

#endif
