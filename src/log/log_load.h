/* log_load.h - what is on disk becomes a log: the passes over a folder at start.
 *
 * PASSES  1 unfinished and doomed files (log_swap.c); 2 each .log becomes a segment, missing or
 *         impossible indexes are made anew; 3 after an unclean stop, segments from the recovery
 *         point on are read through, cut at the first batch that is not right, and what follows is
 *         removed; 4 epochs, start, end, producers. */
#ifndef LOG_LOG_LOAD_H
#define LOG_LOG_LOAD_H

#include "log/log_open.h"
#include "log/segment_list.h"

/* Files of ours in a folder, in order of their numbers. */
struct log_names {
    struct log_file_name *v;
    int n, cap;
};
/* 0 or -errno. */
int log_names_list(struct fs *fs, const char *dir, struct log_names *out);
void log_names_free(struct log_names *names);

/* Passes over *.deleted, *.cleaned and *.swap: unfinished swaps are undone or completed. Lists
 * anew if names have changed. 0 or -errno (the caller reports). */
int log_finish_swaps(struct fs *fs, const char *dir, struct log_names *names);

/* Producers as of all records below `upto`: the newest good snapshot, then the batches behind it.
 * Snapshots above `upto` or at and below the log start go. reset_ok: a log without any snapshot
 * has no producers (a clean stop would have left one). 0 or -errno after log_dir_fail. Under the
 * log's lock, or before the log is known. */
int log_load_producers(struct log *log, struct segment *const *segments, int n, int64_t upto,
                       bool reset_ok);

#endif
