/* cleaner.h - compaction: the threads that keep compacted logs small, and who may work on a log.
 *
 * Each thread takes the log with the largest dirty share (cleaner_choose.h), compacts it
 * (cleaner_work.h) and writes down how far it came (cleaner-offset-checkpoint); then it looks after
 * retention of the compacted logs; then it looks for the next, or rests.
 *
 * DAMAGE   a log whose data does not read is marked, told in one line, and left alone until the
 *          next start; the others go on.
 * THREADS  new, free: one, and no other call meanwhile. The rest: any. */
#ifndef LOG_CLEANER_H
#define LOG_CLEANER_H

#include "log/log_manager.h"

struct cleaner;

struct cleaner_options {
    struct log_manager *logs; /* borrowed */
    const struct clock *clock;
    int threads;
    int64_t dedupe_bytes; /* memory of the offset maps, of all threads together */
    double load_factor;
    int64_t io_buffer_bytes;     /* of all threads together, for reading and writing */
    double max_bytes_per_second; /* read and written, of all threads together */
    int64_t backoff_ms;          /* rest when there is nothing to do */
};

/* Without threads yet. From now on deleting a log waits until nobody works on it. 0; -EINVAL when
 * the memory is too little for a map of two keys; -ENOMEM. */
int cleaner_new(const struct cleaner_options *o, struct cleaner **out);
/* 0 or -errno; what was started runs on. */
int cleaner_start(struct cleaner *c);
/* Other numbers and sizes (not other logs): threads that run are ended and others started. When the
 * sizes will not do all is as before. -errno as of new and start. @blocks like stop */
int cleaner_set_options(struct cleaner *c, const struct cleaner_options *o);
/* Ends the threads, for good; what they are at is given up, nothing of it is left. @blocks */
void cleaner_stop(struct cleaner *c);
void cleaner_free(struct cleaner *c); /* after stop; NULL is fine */

/* One round in this thread: compacts at most one log, then retention. true when it compacted one.
 * For tests, and whoever has threads of his own. One at a time, and not with threads started.
 * @blocks */
bool cleaner_round(struct cleaner *c);

/* Nobody works on the log from its return until as many resumes. @blocks until a thread has noticed
 */
void cleaner_pause(struct cleaner *c, struct log *log);
void cleaner_resume(struct cleaner *c, struct log *log);

struct cleaner_stats {
    double max_dirty_percent;              /* of the logs looked at last */
    double max_buffer_utilization_percent; /* fullest map of the threads' last runs */
    double recopy_percent;                 /* bytes written / read by the last runs */
    double max_clean_time_s;
    double max_compaction_delay_s; /* how far the most overdue log was over its lag */
    int64_t last_run_ms;           /* monotonic; -1: none yet */
    int64_t logs_cleaned;          /* since the start */
};
void cleaner_stats(struct cleaner *c, struct cleaner_stats *out);
/* Logs of a dir that are left alone, and their dirty bytes. */
void cleaner_uncleanable(struct cleaner *c, const struct log_dir *d, int *logs, int64_t *bytes);

#endif
