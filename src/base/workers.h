/* workers.h - threads for what may block: fsync, cold reads, recovery, folder work, large
 * decompressions.
 *
 * A job runs on some worker; then, if it has a `done` and an executor, done runs there. THREADS any
 * may submit. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include "base/executor.h"

struct workers;

struct job {
    struct task task;              /* first used for the pool's queue, then for `done_on` */
    void (*work)(struct job *job); /* on a worker */
    void (*done)(struct job *job); /* on done_on; may free the job. NULL: work() is the last to
                                      touch the job */
    struct executor *done_on;
};

/* n >= 1 threads called name-0, name-1, ... 0 or -errno. */
int workers_start(const char *name, int n, struct workers **out);
/* A pool without threads: submit posts the work to `ex`. For tests and the simulator. */
int workers_sim(struct executor *ex, struct workers **out);
/* Another number of threads, >= 1: new ones begin at once, those too many end when their job is
 * over. 0, or -errno when some could not be begun. @thread any, a job of the pool, too */
int workers_resize(struct workers *w, int n);
void workers_submit(struct workers *w, struct job *job);
/* Tells who brings the jobs that he brings too many: crowded(arg, true) once `most` of them wait
 * for a thread, crowded(arg, false) once no more than half as many do, and so on. Called by whoever
 * submits or takes a job, with the pool's lock: it must not use the pool. Another watch
 * ends the one before, with crowded(arg, false) where that is due. most 0: no more calls, not even
 * one under way. A pool without threads never is. @thread any */
void workers_watch(struct workers *w, int most, void (*crowded)(void *arg, bool is), void *arg);
/* From now on it is known how much the threads work: the ns that they have spent on jobs since,
 * those under way included. 0 before. @thread any */
void workers_measure(struct workers *w);
uint64_t workers_busy_ns(struct workers *w);
int workers_count(struct workers *w);
/* Runs all that is queued, then ends the threads and frees the pool; NULL is fine. The executors of
 * the jobs' done must outlive it. Jobs of a pool without threads still run on its executor. @blocks
 */
void workers_stop(struct workers *w);

#endif
