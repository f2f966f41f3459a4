/* isr_manager.h - has the controller write ISR changes (AlterPartition).
 *
 * One request is out at a time, with all changes that waited when it went; it is never given up.
 * One change for a partition at a time: a second one, left from an earlier leadership, is refused
 * at once. A change that must be tried again goes with the next request, after a pause.
 * THREADS  proposals come on any; the rest is the executor's. */
#ifndef REPLICA_ISR_MANAGER_H
#define REPLICA_ISR_MANAGER_H

#include "replica/controller_link.h"
#include "replica/partition_isr.h"

struct isr_manager;

struct isr_manager_options {
    int32_t broker_id;
    int ibp;
    struct controller_link *link;       /* borrowed; for nobody else */
    struct executor *ex;                /* the link's */
    int64_t (*broker_epoch)(void *arg); /* of this broker's registration, when a request is made */
    void *arg;
};
/* NULL without memory. */
struct isr_manager *isr_manager_new(const struct isr_manager_options *o);
/* Asks no more; before the link is closed. @thread the executor's */
void isr_manager_stop(struct isr_manager *m);
/* After that, and after the link was closed, when nobody proposes any more and the executor runs
 * none of its tasks. NULL is fine. */
void isr_manager_free(struct isr_manager *m);
struct isr_writer *isr_manager_writer(struct isr_manager *m);

#endif
