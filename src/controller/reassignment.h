/* reassignment.h - moves of partitions: what the files that begin, end and are asked for them
 * share. Inside controller/ only. THREADS    the controller's. */
#ifndef CONTROLLER_REASSIGNMENT_H
#define CONTROLLER_REASSIGNMENT_H

#include "controller/controller_private.h"

struct move {
    struct ctl_partition *p;
    struct id_list target;
    struct id_list origin; /* while it ends */
};

/* Adds one to those of a request; of two for a partition the last counts. */
void move_add(struct move *moves, int *n, struct ctl_partition *p, struct id_list target);
/* As a job of the step's. The array is the job's from now on. */
void moves_begin(struct flow *f, struct move *moves, int n);

/* Steps: the node of tools names only what is still to be done. */
void moves_read_asked(struct flow *f);
void moves_shrink_asked(struct flow *f);
void moves_asked_written(struct flow *f);

#endif
