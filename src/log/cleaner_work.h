/* cleaner_work.h - compacting one log, in two passes.
 *
 * PASS 1   the dirty segments, oldest first: the newest offset of each key goes into the offset
 *          map, until all are read or the map is full.
 *
 * PASS 2   all segments below where pass 1 ended, group by group: what the rules keep is written to
 *          new segments, which then take the group's place (log_replace.c).
 *
 * RESULT   end_offset: compaction has been through all below. Offsets, order and times of records
 *          never change.
 *
 * CRASH    each group is exchanged as a whole; what was not is done again next time.
 *
 * ERRORS   -EBADMSG: the data is damaged (`why`, `at`); -ECANCELED: asked to stop, or the log has
 *          changed under the work; other -errno: the dir is offline, or a shortage.
 *
 * THREADS  one for each struct cleaner_work. */
#ifndef LOG_CLEANER_WORK_H
#define LOG_CLEANER_WORK_H

#include "log/cleaner_choose.h"
#include "log/cleaner_input.h"
#include "log/cleaner_output.h"
#include "log/cleaner_producers.h"
#include "log/cleaner_txns.h"
#include "log/log.h"
#include "log/offset_map.h"
#include "protocol/batch_builder.h"

struct cleaner_work {
    struct offset_map *map; /* owned */
    struct cleaner_input in;
    struct cleaner_output out;
    struct batch_builder *builder; /* owned */
    struct buf kept;               /* a byte for each record of a batch: does it stay? */
    struct buf body;               /* memory for decompression */
    /* Called with the bytes of each read and write; may wait. false: stop. */
    bool (*moved)(void *arg, size_t n);
    void *arg;
};

/* map_bytes, buffer_bytes: of this thread. As offset_map_new. */
int cleaner_work_init(struct cleaner_work *w, size_t map_bytes, double load_factor,
                      size_t buffer_bytes);
void cleaner_work_free(struct cleaner_work *w);

struct cleaner_result {
    int64_t end_offset;
    int64_t bytes_mapped;              /* read by pass 1 */
    int64_t bytes_before, bytes_after; /* read and written by pass 2 */
    int64_t records_before, records_after;
    int64_t keyless; /* records dropped for want of a key */
    double map_fill; /* keys in the map / keys that fit */
    int segments_before, segments_after;
    const char *why; /* static; of -EBADMSG */
    int64_t at;      /* about where */
};

/* cuts: of the log (log_cuts) in front of what `choice` was made from. */
int cleaner_work_run(struct cleaner_work *w, struct log *log, const struct cleaner_choice *choice,
                     int cuts, struct cleaner_result *out);

#endif
