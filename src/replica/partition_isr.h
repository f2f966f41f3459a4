/* partition_isr.h - the ISR of a leader as a state machine: what is committed, and at most one
 * change on its way to whoever writes it down.
 *
 *            follower caught up                 a member lags
 *   STABLE ----------------------> EXPANDING  --------------------> SHRINKING (from STABLE)
 *     ^                                |                                |
 *     +---- written, or refused -------+--------------------------------+
 *           (a LeaderAndIsr replaces whatever there is)
 *
 * EXPANDING   the one that joins counts at once for the high watermark; the committed ISR is as it
 *             was.
 * SHRINKING   those that leave count until that is written.
 * An answer that leaves open what is in force (the state was changed by the controller, or this
 * leader is not one any more) changes nothing: the change stays pending until the LeaderAndIsr that
 * must be under way. */
#ifndef REPLICA_PARTITION_ISR_H
#define REPLICA_PARTITION_ISR_H

#include "replica/partition.h"

/* A change that is to be written. */
struct isr_proposal {
    uint64_t number; /* of the partition's changes */
    int32_t leader_epoch, partition_epoch, controller_epoch;
    struct uuid topic_id;
    int32_t *isr; /* the proposal's own; isr_proposal_free */
    int32_t isr_n;
};
void isr_proposal_free(struct isr_proposal *q);

/* Who writes changes. */
struct isr_writer {
    /* Takes the proposal, whatever happens; answers later by partition_isr_answered, from any
     * thread and never from inside. @thread any; no lock held */
    void (*propose)(struct isr_writer *w, struct partition *p, struct isr_proposal *q);
};

/* What is known of the state that a proposal was for. */
struct isr_answer {
    enum kerr error;
    int32_t leader_epoch, partition_epoch; /* without error, like the rest */
    const int32_t *isr;
    int32_t isr_n;
};
enum isr_next {
    ISR_SETTLED, /* nothing more is to be done for the proposal */
    ISR_AGAIN    /* it is still wanted: propose the same again, after a pause */
};
/* Takes over what came of the proposal `number`. Wakes waiters. No lock held. @thread any */
enum isr_next partition_isr_answered(struct partition *p, uint64_t number,
                                     const struct isr_answer *a);

/* Members that lag are to leave; nothing while a change is under way. @thread any */
void partition_shrink_isr(struct partition *p);

struct isr_view {
    int32_t *ids; /* the caller's, room for `max` */
    int max, n;
    bool pending;
};
/* The committed ISR, for dumps and tests. */
void partition_isr(struct partition *p, struct isr_view *v);

#endif
