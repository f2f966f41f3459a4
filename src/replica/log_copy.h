/* log_copy.h - one piece of a log's move to another dir. For log_mover.c and its tests.
 * THREADS  one piece of a partition at a time. */
#ifndef REPLICA_LOG_COPY_H
#define REPLICA_LOG_COPY_H

#include "log/log_manager.h"
#include "replica/partition.h"

enum copy_result {
    COPY_MORE,   /* go on */
    COPY_WAIT,   /* not now */
    COPY_DONE,   /* the copy is the partition's log now */
    COPY_FAILED, /* give it up */
};
/* Cuts `to` to what it has in common with `from`, copies up to `bytes` (at least one batch), and
 * when nothing is left puts `to` in the place of `from`. @blocks */
enum copy_result log_copy_piece(struct partition *p, struct log *from, struct log *to,
                                struct log_manager *logs, uint32_t bytes, int64_t *copied);

#endif
