/* committed.h - OffsetFetch, as consumers and admin need it.
 *
 * THREADS  filling and walking: any, no state. Asking: a thread of the application. */
#ifndef CLIENT_COMMITTED_H
#define CLIENT_COMMITTED_H

#include "base/arena.h"
#include "client/coordinator.h"

struct offset_fetch_request;
struct offset_fetch_response;

struct committed_offset { /* borrowed */
    struct str topic;
    int32_t partition;
    int64_t offset; /* -1: none */
    int32_t leader_epoch;
    struct str metadata;
    kafka_err_t err;
};

/* Offsets of transactions that may still be aborted: brokers from 2.5 on can hold them back. */
enum committed_stable { STABLE_NO, STABLE_IF_KNOWN, STABLE_OR_FAIL };

/* The layout of one group, which is enough here. */
enum { COMMITTED_MAX_VERSION = 7 };
/* tps NULL: all partitions. Memory from the arena; borrows the names. */
bool committed_fill(struct arena *a, struct offset_fetch_request *req, const char *group,
                    const kafka_topic_partition_t *tps, size_t n, bool require_stable);
/* Each partition of the answer. Returns the group's own error. */
kafka_err_t committed_walk(int version, const struct offset_fetch_response *m,
                           void (*each)(void *arg, const struct committed_offset *o), void *arg);
/* Asks and waits. Returns owned, in *out. @blocks */
kafka_err_t committed_get(struct cluster *c, struct coordinator *co, const char *group,
                          const kafka_topic_partition_t *tps, size_t n,
                          enum committed_stable stable, bool interruptible, int64_t timeout_ms,
                          kafka_offset_list_t **out);

#endif
