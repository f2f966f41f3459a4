/* control_gate.h - orders of a controller that never was are refused.
 *
 * A broker obeys the highest controller epoch it has heard of. Whoever may connect could name one
 * of the far future, and no real controller would be obeyed any more. So an epoch that is new here
 * must not be higher than /controller_epoch says: a controller raises that before it gives its
 * first order. (What an order of a true epoch says is believed, as by Apache Kafka: who may send
 * such is a matter of listeners and of who reaches them.)
 *
 * THREADS  any may ask. */
#ifndef SERVER_CONTROL_GATE_H
#define SERVER_CONTROL_GATE_H

#include <stdatomic.h>

#include "metadata/store.h"

struct control_gate {
    struct store *store; /* borrowed */
    atomic_int epoch;    /* highest that the store has told of */
};

struct control_ask { /* the caller's, until `done` */
    struct store_op ops[2];
    struct store_request requests[2];
    struct control_gate *gate;
    int32_t epoch;
    void (*done)(struct control_ask *a, bool passes); /* on the executor given */
};

void control_gate_init(struct control_gate *g, struct store *store);
/* Is the epoch known to have been reached? */
bool control_gate_knows(const struct control_gate *g, int32_t epoch);
/* Asks the store whether a->epoch has been reached. If that cannot be found out in time the answer
 * is yes. */
void control_gate_ask(struct control_gate *g, struct control_ask *a, struct executor *ex);

#endif
