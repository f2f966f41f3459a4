/* journal.h - the embedded store's two files under one folder: read both at start, append a frame
 * and make it durable, replace the snapshot.
 *
 * FILES    kafkad-metadata.journal, kafkad-metadata.snapshot; bytes: journal_format.h.
 *
 * CRASH    Appending: see journal_format.h. Snapshot: the new snapshot replaces the old one, then
 *          an empty journal replaces the journal; in between the journal's transactions are older
 *          than the snapshot and are skipped.
 *
 * ERRORS   the first failed write or sync is final: what is on disk is not known any more, so every
 *          later call fails with it. A snapshot that lacks descriptors or memory is left for later.
 *
 * THREADS  one at a time. */
#ifndef METADATA_JOURNAL_H
#define METADATA_JOURNAL_H

#include "base/file.h"
#include "metadata/journal_format.h"

struct journal {
    struct fs *fs;
    char *path, *snapshot_path;
    struct file *file;
    int64_t size;          /* bytes of good frames, header included */
    int64_t snapshot_size; /* of the last snapshot, or of the journal when one could not be made; 0
                              = none */
    int error;             /* first failure, -errno */
};

/* Reads what `dir` (which must exist) holds into the empty tree, or begins a journal there.
 * *zxid: the last transaction. 0; -EBADMSG damaged; -errno; the reason in err. */
int journal_open(struct journal *j, struct fs *fs, const char *dir, struct tree *t, int64_t *zxid,
                 char *err, size_t err_n);
/* One frame, durable when this returns 0. @blocks */
int journal_append(struct journal *j, const struct buf *payload);
/* Replaces the snapshot and empties the journal. @blocks */
int journal_snapshot(struct journal *j, const struct tree *t, int64_t zxid);
/* Accepts a half-opened one. */
void journal_close(struct journal *j);

#endif
