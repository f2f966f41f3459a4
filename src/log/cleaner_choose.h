/* cleaner_choose.h - how dirty is a log, and may it be compacted now? Decides on facts handed in.
 *
 *   log start         cleaned_to              first_uncleanable      active
 *      |  clean  ........|  dirty  ................|  not yet  ..........|
 *      [segment][segment][segment][segment][segment][segment][segment   ]
 *                                          ^ upto: whole segments only
 *
 * first_dirty        what compaction has been through; the log start without a valid one.
 * first_uncleanable  the least of: last stable offset (records above may still be undone), base of
 *                    the active segment (it is written to), base of the first dirty segment with a
 *                    record younger than min.compaction.lag.ms.
 * overdue            the oldest dirty segment began longer ago than max.compaction.lag.ms.
 *
 * THREADS    any: no state. */
#ifndef LOG_CLEANER_CHOOSE_H
#define LOG_CLEANER_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

struct cleaner_segment {
    int64_t base, size;
    int64_t max_timestamp;   /* needed with a min lag only */
    int64_t first_timestamp; /* largest of the first batch; needed with a max lag only */
};

struct cleaner_facts {
    const struct cleaner_segment *segments; /* by base; the last one is active */
    int segments_n;
    int64_t start, end, last_stable;
    int64_t cleaned_to; /* 0: never */
    int64_t now_ms;
    int64_t min_lag_ms, max_lag_ms;
    double min_ratio;
};

struct cleaner_choice {
    int64_t first_dirty, first_uncleanable;
    int64_t upto; /* base of the segment where compaction stops */
    bool reset;   /* cleaned_to was not valid: below the log start or above its end */
    int64_t clean_bytes, cleanable_bytes;
    double ratio; /* cleanable / (clean + cleanable); 0 of nothing */
    int64_t overdue_ms;
    bool eligible;
};

void cleaner_choose(const struct cleaner_facts *f, struct cleaner_choice *out);
/* Where dirty segments begin: the first index whose timestamps matter. */
int64_t cleaner_first_dirty(const struct cleaner_facts *f, bool *reset);
/* Index of the first segment that holds, or comes behind, `offset`; segments_n - 1 at most. */
int cleaner_segment_from(const struct cleaner_facts *f, int64_t offset);

#endif
