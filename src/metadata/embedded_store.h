/* embedded_store.h - the metadata store of a broker by itself: the tree in memory, every change in
 * a journal under the first log dir before it is answered.
 *
 * FILES      plain files, which an Apache Kafka broker on the same folder ignores:
 *            kafkad-metadata.journal (records: length, CRC-32C, transactions) and
 *            kafkad-metadata.snapshot (the whole tree, replaced as a whole; the journal then starts
 *            anew).
 * CRASH      a record torn at the journal's end is dropped with a log line, never fatal; a damaged
 *            record in front of good ones stops the start, naming file and position, since what
 *            follows would be lost silently.
 * EPHEMERAL  nodes belong to the process: they are not journaled and are gone after a restart.
 *            Transaction ids go on all the same: each start begins a new range, so a czxid is never
 *            seen twice.
 * THREADS    a thread of its own writes the journal (group commit: one fsync for all that is
 *            queued). */
#ifndef METADATA_EMBEDDED_STORE_H
#define METADATA_EMBEDDED_STORE_H

#include "base/clock.h"
#include "base/file.h"
#include "metadata/store.h"

struct embedded_options {
    struct fs *fs; /* NULL: fs_posix() */
    const struct clock *clock;
    const char *dir;        /* must exist; NULL: nothing on disk (tests, simulator) */
    int64_t snapshot_bytes; /* journal size at which a snapshot is made (later once the journal is
                               as large as the last snapshot); 0 = 4 MiB */
    struct executor
        *run_on; /* simulator: serve on this executor instead of a thread; NULL = own thread */
    /* The journal cannot be written any more: the store answers -EIO from now on. On the store's
     * thread, once. May be NULL. */
    void (*failed)(void *arg, int error);
    void *arg;
};
/* 0, or -errno / -EBADMSG with the reason in err. The store is one session; closing the last
 * session closes the tree. @blocks */
int embedded_store_open(const struct embedded_options *o, struct store **out, char *err,
                        size_t err_n);
/* Tests and simulator: another session on the same tree, as another broker would have. */
int embedded_store_attach(struct store *s, struct store **out);
/* Tests and simulator: the session ends: ephemeral nodes go, listeners hear EXPIRED then CONNECTED.
 */
void embedded_store_expire_session(struct store *s);

#endif
