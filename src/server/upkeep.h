/* upkeep.h - work that comes round: retention, flushes, checkpoints. Each kind has a first delay
 * and an interval; it runs on a worker, never twice at once, and its interval begins anew when it
 * ends.
 *
 * THREADS  timers on the executor given, the work on the workers. add before start. */
#ifndef SERVER_UPKEEP_H
#define SERVER_UPKEEP_H

#include "base/executor.h"
#include "base/workers.h"

struct upkeep;

/* Borrows both. 0 or -ENOMEM. */
int upkeep_new(struct executor *ex, struct workers *workers, struct upkeep **out);
/* A kind of work, called with arg. An interval of INT64_MAX means never. 0 or -ENOMEM. */
int upkeep_add(struct upkeep *u, int64_t delay_ms, int64_t interval_ms, void (*work)(void *arg),
               void *arg);
/* Once. @thread any */
void upkeep_start(struct upkeep *u);
/* Nothing begins any more; waits for what runs. Not needed when it was not started. @blocks
 * @thread any but the executor's and the workers' */
void upkeep_stop(struct upkeep *u);
void upkeep_free(struct upkeep *u); /* NULL is fine */

#endif
