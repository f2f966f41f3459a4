/* coordinator.h - the broker that looks after a group (or a transactional id): found by
 * FindCoordinator, forgotten when it turns out not to be the one, found again with a backoff.
 *
 * A consumer's connection to it is its own: a Fetch that waits on the shared one must not hold up a
 * heartbeat. Others share the broker's.
 *
 * THREADS  the cluster's background thread, but for init. */
#ifndef CLIENT_COORDINATOR_H
#define CLIENT_COORDINATOR_H

#include "client/cluster.h"

enum { COORDINATOR_GROUP = 0, COORDINATOR_TRANSACTION = 1 };

struct coordinator {
    struct cluster *cluster;
    const char *key; /* borrowed */
    int8_t type;
    void (*changed)(void *arg); /* may be NULL: one was found, or `err` was set */
    void *arg;

    bool shared;       /* set after init: use the shared connection */
    struct node *node; /* NULL: not known; with `shared` also when node_id is */
    int32_t node_id;   /* with `shared`; -1: not known */
    kafka_err_t err;   /* why none will be found; KAFKA_OK */
    bool closed;
    int failures;                /* in a row */
    struct coordinator_ask *ask; /* under way */
    struct timer timer;
    struct list waiters; /* operations */
};

/* Borrows all; finds nothing yet. @thread any */
void coordinator_init(struct coordinator *co, struct cluster *c, int8_t type, const char *key);
/* The coordinator, or NULL: it is being looked for, and `changed` will be called, or `err` says
 * that it is not allowed. */
struct node *coordinator_node(struct coordinator *co);
/* It did not answer, or is not the one: look again when next asked. Requests under way are
 * canceled. */
void coordinator_forget(struct coordinator *co);
/* The same if it is that one. */
void coordinator_failed(struct coordinator *co, struct node *n);
/* An operation waits for it; resumed when it is found. */
void coordinator_wait(struct coordinator *co, struct op *op);
/* Does the error (of a broker or a connection) mean that another may be the coordinator now? */
bool coordinator_is_stale(kafka_err_t err);
/* Ends all; no operation may be left. */
void coordinator_close(struct coordinator *co);

#endif
