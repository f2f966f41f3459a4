/* log_check.h - do the invariants of a log hold? Reads everything; for tests and for a person who
 * looks at a broken folder.
 *
 *   B1 walking a .log consumes exactly its bytes, every checksum is right
 *   B2 offsets rise inside a segment and stay in front of the next one's base
 *   B3 last offset - base of the segment <= 2^31 - 1
 *   B4 record counts and offset deltas of a batch fit its head
 *   I1 offset index: offsets and positions rise, a position is the start of a batch, the offset is
 *      the last one of a batch there or behind
 *   I2 time index: times rise, offsets do not fall, nothing up to the offset is newer
 *   I3 the last time entry of a segment that is not active is its newest time
 *   I4 indexes are cut to their entries, or (active) have their full size
 *   F1 each .log has an .index and a .timeindex, and none is there without
 *   P1 log start <= last stable offset <= high watermark <= log end; first base <= log start;
 *      recovery point <= log end
 *   S1 snapshot: its size and checksum are right, offsets in it are below its own
 *   T1 transaction index: markers rise and lie in the segment, first < last, stable <= last + 1
 *   E1 epochs and their starts rise, the last one starts at or below the log end
 *   E2 a batch's epoch is that of its offset (where the file still tells; a log start that is not
 *      yet in the checkpoint falls back after a crash, the epochs below it do not come back) */
#ifndef LOG_LOG_CHECK_H
#define LOG_LOG_CHECK_H

#include "log/log.h"

/* Of a log in use: stops appends meanwhile. false with the first violation in `why`. @blocks */
bool log_check(struct log *log, char *why, size_t why_n);
/* Of a folder that was closed cleanly. */
bool log_check_folder(struct fs *fs, const char *path, char *why, size_t why_n);

#endif
