/* producer_snapshot.h - <offset>.snapshot: the producers' state as of all records below an offset.
 * The bytes are described in producer_state.h.
 *
 * CRASH  written under its final name; a torn one fails its CRC and the one before it is used.
 * THREADS  whoever has the state: under the log's mutex, or while nobody else sees the log. */
#ifndef LOG_PRODUCER_SNAPSHOT_H
#define LOG_PRODUCER_SNAPSHOT_H

#include "base/file.h"
#include "log/producer_state.h"

/* sync: durable (the file; its name needs a sync of the folder). 0 or -errno. */
int producer_snapshot_write(const struct producer_state *ps, struct fs *fs, const char *dir,
                            int64_t offset, bool sync);
/* Into an empty state. 0; -EBADMSG corrupt; -errno. */
int producer_snapshot_read(struct producer_state *ps, struct fs *fs, const char *dir,
                           int64_t offset, int64_t now_ms, int64_t expiration_ms);

#endif
