/* cleaner_rules.h - what compaction keeps. Decides on facts handed in.
 *
 * RECORDS     of each key the newest value, and everything above what the offset map covers. A
 *             tombstone (null value) goes too, but late enough for readers to notice it: the first
 *             compaction that meets it writes the time from which it may go into the batch (the
 *             delete horizon), a compaction after that time drops it.
 * MARKERS     of transactions go when none of the transaction's data was left, by the same delay.
 * PRODUCERS   the batch with the last data of an active producer leaves at least its head, which
 *             carries the sequence; a producer known by a marker only keeps that one.
 * OLD FORMATS (magic 0, 1) have no place for a horizon: their tombstones go by the age of the file.
 *
 * THREADS     any: no state but what the caller hands in. */
#ifndef LOG_CLEANER_RULES_H
#define LOG_CLEANER_RULES_H

#include "protocol/record_batch.h"

struct cleaner_rules {
    int64_t now_ms, delete_retention_ms;
    int64_t covered_to;          /* the offset map knows all records up to here */
    bool keep_legacy_tombstones; /* of the segment at hand */
};

/* What is known of the producer of a batch. */
struct cleaner_producer {
    int64_t id;
    int64_t last_data_offset; /* -1: no data batch is remembered */
    int16_t epoch;
};

/* Does this batch carry what must be remembered of its producer? */
bool cleaner_last_of_producer(const struct batch *b, const struct cleaner_producer *p);
/* Its delete horizon; -1 without one. */
static inline int64_t cleaner_horizon(const struct batch *b)
{
    return b->magic == 2 && (b->attributes & BATCH_DELETE_HORIZON) ? b->base_timestamp : -1;
}
/* Do all its records go? removable: it is data of an aborted transaction, or a marker whose
 * transaction has left no data. */
bool cleaner_drops_batch(const struct cleaner_rules *r, const struct batch *b, bool removable);
/* One record of a batch that is data and does not go as a whole. newest: the offset of the last
 * record of its key that the map knows, -1 for none. */
bool cleaner_keeps_record(const struct cleaner_rules *r, const struct batch *b, int64_t offset,
                          bool has_key, bool has_value, int64_t newest);

enum cleaner_outcome {
    CLEANER_NOTHING,  /* no trace of it is left */
    CLEANER_HEAD,     /* its head without records */
    CLEANER_ORIGINAL, /* its bytes as they are */
    CLEANER_REBUILT   /* a new batch of the records that are kept */
};
struct cleaner_verdict {
    enum cleaner_outcome outcome;
    int64_t horizon; /* of the rebuilt batch; -1 without one */
};
struct cleaner_kept {
    int32_t records, dropped;
    bool tombstone; /* some kept record is one */
};
/* What is written for the batch. marker_removable: it is a marker that may go once its horizon has
 * passed. */
struct cleaner_verdict cleaner_judge(const struct cleaner_rules *r, const struct batch *b,
                                     struct cleaner_kept kept, bool marker_removable,
                                     bool last_of_producer);

#endif
