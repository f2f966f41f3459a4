/* controller_counts.h - what the controller counts of its work, and what it has to do, for metrics.
 *
 * THREADS  counts: the controller's adds, any reads. A look: see controller.h. */
#ifndef CONTROLLER_CONTROLLER_COUNTS_H
#define CONTROLLER_CONTROLLER_COUNTS_H

#include "base/executor.h"
#include "base/metrics.h"

/* What it works on, by the numbers that Kafka's ControllerState tells. */
enum controller_work {
    CONTROLLER_IDLE,
    CONTROLLER_CHANGE,
    CONTROLLER_BROKER_CHANGE,
    CONTROLLER_TOPIC_CHANGE,
    CONTROLLER_TOPIC_DELETION,
    CONTROLLER_REASSIGNMENT,
    CONTROLLER_AUTO_BALANCE,
    CONTROLLER_MANUAL_BALANCE,
    CONTROLLER_CONTROLLED_SHUTDOWN,
    CONTROLLER_ISR_CHANGE,
    CONTROLLER_LEADER_AND_ISR_ANSWER,
    CONTROLLER_LOG_DIR_CHANGE,
    CONTROLLER_UNCLEAN_ENABLE = 13,
    CONTROLLER_TOPIC_UNCLEAN_ENABLE,
    CONTROLLER_LIST_REASSIGNMENTS,
    CONTROLLER_WORKS
};

struct controller_counts {
    struct histogram waited_us;                 /* events, before they were begun */
    struct histogram took_us[CONTROLLER_WORKS]; /* events, from their begin to their end */
    metric unclean;                             /* leaders that were not in sync */
    atomic_int working_on;                      /* enum controller_work */
};

/* Control requests to one broker. */
struct controller_queue {
    int32_t broker;
    int waiting;         /* the one that is on its way included */
    struct tally waited; /* us, before they were sent; empty where they are not */
};

struct controller_look {
    void (*done)(struct controller_look *l); /* @thread the controller's */
    /* Filled in. */
    int events; /* that wait */
    int64_t topics_to_delete, replicas_to_delete;
    int64_t topics_ineligible, replicas_ineligible; /* of these: they wait for a broker */
    struct controller_queue *queues;                /* owned: free(); NULL: none, or no memory */
    int queues_n;
    /* private */
    struct task task;
    struct controller *c;
};

#endif
