/* metadata_answer.h - what Metadata and DescribeCluster both show: brokers as seen from a listener.
 *
 * THREADS    the request's reactor, between metadata_acquire and _release of the snapshot. */
#ifndef SERVER_METADATA_ANSWER_H
#define SERVER_METADATA_ANSWER_H

#include "metadata/metadata_cache.h"
#include "server/request.h"

/* The partition of this cluster that a client can reach: brokers with an endpoint on the listener.
 */
struct visible_broker {
    int32_t id;
    const struct endpoint *endpoint;
    struct str rack;
};
/* Count of *out (in the arena), or -ENOMEM. Borrowed from the snapshot. */
int visible_brokers(const struct metadata_snapshot *s, struct str listener, struct arena *a,
                    struct visible_broker **out);

#endif
