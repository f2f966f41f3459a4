/* cleaner_producers.h - the active producers of a log and their last data, as compaction must
 * remember them. A copy: what producers write later lies above what is compacted. */
#ifndef LOG_CLEANER_PRODUCERS_H
#define LOG_CLEANER_PRODUCERS_H

#include <stddef.h>

#include "log/cleaner_rules.h"

struct log;

struct cleaner_producers {
    struct cleaner_producer *v; /* by id; owned */
    size_t n;
};

/* 0 or -ENOMEM. Takes the log's lock for a moment. */
int cleaner_producers_copy(struct log *log, struct cleaner_producers *out);
void cleaner_producers_free(struct cleaner_producers *p);
/* NULL when it is not active. */
const struct cleaner_producer *cleaner_producers_find(const struct cleaner_producers *p,
                                                      int64_t id);

#endif
