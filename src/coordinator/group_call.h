/* group_call.h - one request at the group coordinator.
 *
 * The coordinator reads the API's generated request and fills in its generated response. Response
 * items that carry an error already (a topic the caller may not read) are passed over, so the
 * server lays the response out as the request is and notes what it refuses itself.
 *
 * MEMORY   all of it is the caller's until `done`: request, response, and the arena that the
 *          answer's parts come from.
 *
 * THREADS  between submission and `done` the response and the arena belong to the coordinator's
 *          thread. */
#ifndef COORDINATOR_GROUP_CALL_H
#define COORDINATOR_GROUP_CALL_H

#include "base/arena.h"
#include "base/executor.h"
#include "protocol/errors.h"

enum group_api {
    GROUP_JOIN,
    GROUP_SYNC,
    GROUP_HEARTBEAT,
    GROUP_LEAVE,
    GROUP_COMMIT,
    GROUP_TXN_COMMIT,
    GROUP_FETCH,
    GROUP_LIST,
    GROUP_DESCRIBE,
    GROUP_DELETE,
    GROUP_OFFSET_DELETE,
    GROUP_CONSUMER_HEARTBEAT,
    GROUP_CONSUMER_DESCRIBE,
    GROUP_APIS
};

struct member;

struct group_call {
    enum group_api api;
    int version;
    struct str client_id;   /* null when the client gives none */
    struct str client_host; /* "/10.1.2.3" */
    const void *in;         /* the API's request */
    void *out;              /* the API's response, initialised */
    struct arena *arena;
    /* ConsumerGroupHeartbeat: which state of rights the server hides topics of the answer by, 0 =
     * it hides none. With another one than last time the assignment is told again. */
    uint64_t rights;
    uint64_t txn_guard; /* TxnOffsetCommit: what its append needs (log/txn_guards.h); 0: nothing */
    /* Exactly once, on the coordinator's thread. The response stands then. */
    void (*done)(struct group_call *c);
    /* The arena could not take the answer: the response must not be used. */
    bool no_memory;

    /* private to the coordinator */
    struct member *parked; /* a join or sync that waits for others */
    struct task task;
    void *manager;
    int shard;
    bool single;
};

/* All is filled in: calls done. */
void group_call_end(struct group_call *c);

#endif
