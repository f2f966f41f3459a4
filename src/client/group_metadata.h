/* group_metadata.h - the inside of kafka_group_metadata_t: values that do not change. One block of
 * memory. THREADS any. */
#ifndef CLIENT_GROUP_METADATA_H
#define CLIENT_GROUP_METADATA_H

#include <kafka/common.h>

struct kafka_group_metadata {
    int32_t generation; /* -1: no member */
    const char *group_id;
    const char *member_id;   /* "" without one */
    const char *instance_id; /* NULL: none */
};

/* Copies all. Returns owned, NULL without memory. */
kafka_group_metadata_t *group_metadata_make(const char *group_id, int32_t generation,
                                            const char *member_id, const char *instance_id);

#endif
