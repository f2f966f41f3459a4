/* assignor_roundrobin.c - roundrobin: it looks at the subscriptions only. */
#include "client/assignor.h"

/* All partitions, dealt in a circle to the members who want them. */
kafka_err_t assign_roundrobin(const kafka_group_member_t *members, size_t members_n,
                              const kafka_topic_size_t *topics, size_t topics_n,
                              kafka_assignment_t *out, void *arg)
{
    size_t next = 0;
    for (size_t t = 0; t < topics_n; t++) {
        bool wanted = false;
        for (size_t m = 0; m < members_n && !wanted; m++)
            wanted = assignor_is_subscribed(&members[m], topics[t].name);
        for (int32_t p = 0; wanted && p < topics[t].partitions; p++) {
            while (!assignor_is_subscribed(&members[next], topics[t].name))
                next = (next + 1) % members_n;
            kafka_assignment_add(out, next, topics[t].name, p);
            next = (next + 1) % members_n;
        }
    }
    return KAFKA_OK;
}
