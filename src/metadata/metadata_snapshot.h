/* metadata_snapshot.h - one state of the metadata cache and how the next is made of it. Inside
 * metadata/ only; users see metadata_cache.h. */
#ifndef METADATA_METADATA_SNAPSHOT_H
#define METADATA_METADATA_SNAPSHOT_H

#include "metadata/topic_set.h"

struct metadata_snapshot {
    _Atomic int64_t refs; /* metadata_cache.c */
    int32_t controller;
    struct broker_info *brokers; /* sorted by id; endpoints and texts lie behind in one block */
    int brokers_n;
    struct topic_set by_name, by_id; /* by_id lacks topics without one */
    _Atomic(const struct topic_info **) sorted;
};

/* Empty; NULL without memory. */
struct metadata_snapshot *metadata_snapshot_new(void);
void metadata_snapshot_free(struct metadata_snapshot *s);
/* *out: `old` with the request merged; owned. 0, -ENOMEM, -EINVAL. */
int metadata_snapshot_update(const struct metadata_snapshot *old,
                             const struct update_metadata_request *req,
                             struct metadata_snapshot **out);

#endif
