/* relief.h - asking the controller for relief before the stop: that other brokers lead what this
 * one leads (ControlledShutdown). Some attempts, with pauses; then the broker stops anyway.
 *
 * Knows no socket: requests go through `send`.
 *
 * THREADS  the executor's. */
#ifndef SERVER_RELIEF_H
#define SERVER_RELIEF_H

#include "base/executor.h"
#include "protocol/msg/controlled_shutdown.h"
#include "replica/controller_link.h"

struct relief_options {
    struct executor *ex;
    int32_t broker_id;
    int64_t broker_epoch;
    int version;  /* of the request */
    int attempts; /* controlled.shutdown.max.retries */
    int64_t pause_ms;
    int64_t limit_ms;                    /* of one attempt */
    bool (*controller_known)(void *arg); /* nobody to be asked: a failed attempt */
    void (*send)(void *arg, struct controller_request *r); /* as controller_link_send */
    /* Once; relieved: nothing is led any more that others can lead. */
    void (*done)(void *arg, bool relieved);
    void *arg;
};

struct relief { /* the caller's, until done */
    struct relief_options o;
    struct controller_request request;
    struct controlled_shutdown_request body;
    struct timer timer;
    int tried;
};

void relief_ask(struct relief *r, const struct relief_options *o);

#endif
