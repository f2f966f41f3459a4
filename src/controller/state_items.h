/* state_items.h - many partitions' state nodes, read and written for the state machines of
 * partitions and of replicas. Inside controller/ only.
 *
 * An item is a partition on its way: its machine decides by what is known of it and has it written
 * on the condition that the store knows the same; a conflict has it read, and decided again. What
 * is asked for in one round goes out together, the writes in multis of many, each under the fence.
 * A multi that fails has changed nothing: its items are written again, each by itself.
 * THREADS    the controller's. */
#ifndef CONTROLLER_STATE_ITEMS_H
#define CONTROLLER_STATE_ITEMS_H

#include "controller/controller_private.h"

enum state_phase {
    STATE_OVER,   /* nothing more to do */
    STATE_KNOWN,  /* to be decided by what is known; state_ask passes it over */
    STATE_READ,   /* its node is to be read */
    STATE_CREATE, /* its node, and that above, are to be made with `node` */
    STATE_WRITE,  /* `node` is to be written, if the store has `epoch` */
};

struct state_item {
    struct ctl_partition *partition;
    struct ctl_replica *replica; /* the machine's own; NULL when it is about the partition */
    enum state_phase phase;
    bool alone;   /* a multi with it failed */
    bool unclean; /* partitions: the leader in `node` was not in sync */
    int32_t epoch;
    struct partition_node node;
};

/* What the machine does with an answer; it leaves the item in the phase that is right now. */
struct state_answers {
    /* What was just read, which no later controller has written. */
    void (*read)(struct flow *f, struct state_item *it, const struct partition_node *now,
                 int32_t epoch);
    /* `node` is in the store, in this epoch. */
    void (*written)(struct flow *f, struct state_item *it, int32_t epoch);
};

/* Asks for what the items' phases say. false: nothing to ask for. */
bool state_ask(struct flow *f, struct state_item *items, int n);
/* In the next step: hands the answers on. Items that cannot go on are OVER, with a log line. */
void state_take(struct flow *f, const struct state_answers *how);
/* The state as it is known. */
struct partition_node state_known(const struct ctl_partition *p);
/* To be written in the phase WRITE. */
void state_write(struct state_item *it, struct partition_node node, int32_t epoch);

#endif
