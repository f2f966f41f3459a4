/* isr_store.h - writes ISR changes to the store itself, as leaders below 2.7-IV2 do, and lets the
 * controller know of them now and then.
 *
 * A write is made on the condition that the state is the one last heard of. If it is not, the
 * controller has changed it, and its LeaderAndIsr is on its way: the change stays pending until
 * then. (Unless the state holds just what was to be written: an answer had got lost.) After any
 * other error but a lost session the state is read until it tells what came of the write. What was
 * written goes into one notice for the controller, when 5 s have passed without another change, or
 * 60 s since the last notice.
 *
 * THREADS  proposals come on any; the rest is the executor's. */
#ifndef REPLICA_ISR_STORE_H
#define REPLICA_ISR_STORE_H

#include "metadata/store.h"
#include "replica/partition_isr.h"

struct isr_store;

struct isr_store_options {
    int32_t broker_id;
    struct store *store;
    struct executor *ex;
};
/* NULL without memory. */
struct isr_store *isr_store_new(const struct isr_store_options *o);
/* Writes no more notices, answers nobody. When nobody proposes any more. @thread the executor's */
void isr_store_stop(struct isr_store *s);
/* After that, and after the store was closed. NULL is fine. */
void isr_store_free(struct isr_store *s);
struct isr_writer *isr_store_writer(struct isr_store *s);

#endif
