/* cleaner_work_private.h - one compaction under way, for cleaner_work.c and the two passes.
 *
 * THREADS    the cleaner thread that does the work.
 *
 * OWNERSHIP  on its stack; borrows all it points at until the compaction is over. */
#ifndef LOG_CLEANER_WORK_PRIVATE_H
#define LOG_CLEANER_WORK_PRIVATE_H

#include "log/cleaner_work.h"
#include "log/segment_list.h"
#include "protocol/record_iter.h"

enum { CLEANER_AHEAD = 16 /* records whose slots of the map are fetched together */ };

struct cleaner_run {
    struct cleaner_work *w;
    struct log *log;
    const struct log_config *config;
    const struct segment_list *list; /* as it was when the work began */
    const struct cleaner_choice *choice;
    int64_t now_ms;
    struct cleaner_result *result;
};

/* The records of a batch that is data or a control batch. why is set on -EBADMSG. */
int cleaner_records_open(struct cleaner_run *run, const struct batch *b, struct record_iter *it);
int cleaner_records_next(struct cleaner_run *run, struct record_iter *it, struct record *r);
void cleaner_records_close(struct cleaner_run *run, struct record_iter *it);
/* The marker in a control batch. */
int cleaner_marker(struct cleaner_run *run, const struct batch *b, struct txn_marker *m);
/* Aborted transactions of segment i of the list, for what comes next. */
int cleaner_add_aborted(struct cleaner_run *run, struct cleaner_txns *t, int i, int64_t from,
                        int64_t upto);
/* Reads on in w->in: bytes, 0 at the end, or -errno; -ECANCELED when the work should end. */
ssize_t cleaner_fill(struct cleaner_run *run);
int cleaner_next(struct cleaner_run *run, struct batch *b);
/* Notes what is wrong with the data; returns -EBADMSG. */
int cleaner_damaged(struct cleaner_run *run, int64_t at, const char *why);

/* ---- cleaner_map.c: fills w->map; *covered_to: the map knows all records up to there ---- */
int cleaner_map_dirty(struct cleaner_run *run, int64_t *covered_to);
/* ---- cleaner_copy.c: segments [first, first + n) of the list into w->out, which is left queued
 * ---- */
struct cleaner_copy {
    struct cleaner_run *run;
    struct cleaner_txns txns;
    struct cleaner_producers producers;
    int64_t covered_to;
    int64_t legacy_horizon_ms; /* files changed later keep their old tombstones */
};
int cleaner_copy_segment(struct cleaner_copy *c, int i);

#endif
