/* cluster_racks.h - in which racks a topic's partitions have replicas, as one Metadata answer tells
 * it.
 *
 * THREADS  the caller's lock: the cluster's. */
#ifndef CLIENT_CLUSTER_RACKS_H
#define CLIENT_CLUSTER_RACKS_H

#include "base/arena.h"
#include "protocol/msg/metadata.h"

struct topic_racks {
    int32_t partitions;
    const char *const **v; /* by partition: sorted, each once, NULL at the end */
    uint64_t hash;         /* equal for equal racks */
    struct arena mem;
};

/* NULL when no broker has a rack, or without memory. Returns owned. */
struct topic_racks *topic_racks_new(const struct metadata_response *m,
                                    const struct metadata_response_topic *topic);
void topic_racks_free(struct topic_racks *r); /* NULL is fine */
/* In the arena's memory; NULL without memory. */
const char *const *const *topic_racks_copy(const struct topic_racks *r, struct arena *a);

#endif
