/* cleaner_output.h - the segments that a group becomes, while they are written.
 *
 * Batches are queued: bytes of the caller's that it keeps until the flush (what stays as it is), or
 * bytes that were built into `built`. A flush is one write. Mostly one segment comes out; another
 * is begun when a file or a relative offset would not fit any more.
 *
 * CRASH    the files are .cleaned: the next start removes them.
 *
 * ERRORS   -errno after the dir was taken offline, or of a shortage; -ESTALE when the folder goes.
 *
 * THREADS  one. */
#ifndef LOG_CLEANER_OUTPUT_H
#define LOG_CLEANER_OUTPUT_H

#include "log/segment.h"

struct cleaner_piece;

struct cleaner_output {
    const struct log_folder *folder;
    const struct log_config *config; /* borrowed until finish */
    int64_t base;                    /* of the first segment */
    int64_t bytes_max;               /* of a segment: what positions can express; less in tests */
    struct segment **v;              /* made so far, a reference each; the last one is written to */
    int n;
    struct buf built;
    size_t built_queued; /* of it */
    /* queued */
    struct cleaner_piece *pieces;
    size_t pieces_n, pieces_cap;
    struct iovec *iov;   /* of pieces_cap */
    size_t queued;       /* bytes */
    int64_t last_offset; /* of what was queued last; base - 1 at first */
    int64_t bytes;       /* written so far */
    int64_t unsynced;    /* bytes since the last sync of the file */
};

void cleaner_output_init(struct cleaner_output *out);
void cleaner_output_free(struct cleaner_output *out); /* memory only; after finish or drop */
/* Begins the replacement of segments from `base` on. Borrows both. 0 or -errno. */
int cleaner_output_begin(struct cleaner_output *out, const struct log_folder *folder,
                         const struct log_config *config, int64_t base);
/* Queues the batch whose bytes are at b->p. txn: an entry for the transaction index, of the marker
 * in it; NULL without one. */
int cleaner_output_keep(struct cleaner_output *out, const struct batch *b,
                        const struct txn_entry *txn);
/* The same of the batch that was appended to out->built. */
int cleaner_output_built(struct cleaner_output *out, const struct txn_entry *txn);
/* Writes what is queued. Returns bytes, or -errno. */
ssize_t cleaner_output_flush(struct cleaner_output *out);
/* Seals, dates, syncs and opens all of them: ready for log_replace. */
int cleaner_output_finish(struct cleaner_output *out, int64_t mtime_ms);
/* Lets the segments go; their files stay (they have been put in place). */
void cleaner_output_release(struct cleaner_output *out);
/* Removes their files unless they have been put in place, then the same. */
void cleaner_output_drop(struct cleaner_output *out);

#endif
