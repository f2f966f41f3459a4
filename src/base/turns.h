/* turns.h - jobs of one kind on a pool that others need, too: so many of them at once at most, and
 * one for each owner (a client); the others wait in order of arrival.
 *
 * THREADS any; a lock inside. */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H

#include "base/workers.h"

struct turns;

struct turn_job {
    struct job job; /* done (not NULL: the job is used after its work) and done_on */
    void (*work)(struct turn_job *job); /* in place of job.work */
    const void *owner;                  /* only compared */
    /* private */
    struct turns *turns;
    struct list link;
};

/* Borrows the pool. most >= 1. NULL without memory. */
struct turns *turns_new(struct workers *pool, int most);
/* None is waiting or running; NULL is fine. */
void turns_free(struct turns *t);
/* From the next job on. */
void turns_set_most(struct turns *t, int most);
void turns_submit(struct turns *t, struct turn_job *job);

#endif
