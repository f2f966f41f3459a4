/* segment_recover.h - reading a segment through: its valid part, new indexes, and what its batches
 * say to the producers and the epochs. Before anybody else sees the segment.
 *
 * THREADS    the one that loads the log, alone.
 *
 * OWNERSHIP  borrows all it is given. */
#ifndef LOG_SEGMENT_RECOVER_H
#define LOG_SEGMENT_RECOVER_H

#include "log/epoch_cache.h"
#include "log/producer_state.h"
#include "log/segment.h"

struct segment_recovery {
    int64_t trust_below; /* batches that end below are known to be on disk: heads only */
    bool keep_data;      /* only indexes are made anew: nothing is cut */
    /* NULL: left alone. With producers the transaction index is made anew too. */
    struct producer_state *producers;
    struct epoch_cache *epochs;
    const struct log_config *config;
    /* results */
    int64_t next_offset; /* behind the last valid batch */
    int64_t cut_bytes;
    const char *why; /* static; NULL when all was valid */
};
/* 0 or -errno (after log_dir_fail). The segment is sealed and its files are closed. */
int segment_recover(struct segment *s, struct segment_recovery *r);

/* The records from `from` on and below `upto`, for the producers. A batch that cannot be read ends
 * it. */
int segment_replay_producers(struct segment *s, int64_t from, int64_t upto,
                             struct producer_state *ps);
/* Epochs of all batches, in memory. */
int segment_collect_epochs(struct segment *s, struct epoch_cache *epochs);
/* Closes what was opened: before publishing, so that a log at rest holds nothing. */
void segment_close_files(struct segment *s);
/* For a cleanly closed active segment: settles its index counts, newest timestamp and end without
 * leaving anything open. *sane false: an index is missing or cannot be right. */
int segment_settle(struct segment *s, int64_t *next_offset, bool *sane);

#endif
