/* group_metadata.c - see group_metadata.h. */
#include "client/group_metadata.h"

#include <stdlib.h>
#include <string.h>

/* Copies s to *at, which moves behind it. NULL stays NULL. */
static const char *put(char **at, const char *s)
{
    if (!s)
        return NULL;
    char *start = *at;
    size_t n = strlen(s) + 1;
    memcpy(start, s, n);
    *at += n;
    return start;
}

kafka_group_metadata_t *group_metadata_make(const char *group_id, int32_t generation,
                                            const char *member_id, const char *instance_id)
{
    size_t n = strlen(group_id) + strlen(member_id) + (instance_id ? strlen(instance_id) : 0) + 3;
    kafka_group_metadata_t *g = malloc(sizeof *g + n);
    if (!g)
        return NULL;
    char *at = (char *)(g + 1);
    g->generation = generation;
    g->group_id = put(&at, group_id);
    g->member_id = put(&at, member_id);
    g->instance_id = put(&at, instance_id);
    return g;
}

kafka_group_metadata_t *kafka_group_metadata_new(const char *group_id)
{
    return group_metadata_make(group_id, -1, "", NULL);
}

void kafka_group_metadata_free(kafka_group_metadata_t *g)
{
    free(g);
}
