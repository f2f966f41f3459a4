/* assignor_racks.c - when the racks of members and replicas decide who reads what (KIP-881): a
 * member had better read from a replica in its own rack. */
#include <string.h>

#include "client/assignor.h"

bool assignor_rack_has(const kafka_topic_size_t *topic, int32_t partition, const char *rack)
{
    for (const char *const *r = topic->racks ? topic->racks[partition] : NULL; r && *r; r++)
        if (strcmp(*r, rack) == 0)
            return true;
    return false;
}

static bool same_racks(const char *const *a, const char *const *b)
{
    for (; *a && *b; a++, b++)
        if (strcmp(*a, *b) != 0)
            return false;
    return !*a && !*b;
}

/* Is there a choice at all? */
static bool racks_differ(const kafka_topic_size_t *topics, size_t topics_n)
{
    const char *const *first = NULL;
    static const char *const none[] = {NULL};
    for (size_t t = 0; t < topics_n; t++)
        for (int32_t p = 0; p < topics[t].partitions; p++) {
            const char *const *racks = topics[t].racks ? topics[t].racks[p] : none;
            if (!first)
                first = racks;
            else if (!same_racks(first, racks))
                return true;
        }
    return false;
}

static bool member_is_near(const kafka_group_member_t *m, const kafka_topic_size_t *topics,
                           size_t topics_n)
{
    bool subscribed = false, near = false;
    for (size_t t = 0; t < topics_n; t++) {
        subscribed |= assignor_is_subscribed(m, topics[t].name);
        for (int32_t p = 0; !near && p < topics[t].partitions; p++)
            near = assignor_rack_has(&topics[t], p, m->rack);
    }
    return subscribed && near;
}

bool assignor_racks_matter(const kafka_group_member_t *members, size_t members_n,
                           const kafka_topic_size_t *topics, size_t topics_n)
{
    if (!racks_differ(topics, topics_n))
        return false;
    for (size_t m = 0; m < members_n; m++)
        if (members[m].rack && member_is_near(&members[m], topics, topics_n))
            return true;
    return false;
}
