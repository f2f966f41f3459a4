/* assignor_simple.c - range and roundrobin: they look at the subscriptions only. */
#include <stdlib.h>
#include <string.h>

#include "client/assignor.h"

/* Per topic: consecutive partitions, the first members one more where it does not divide. */
kafka_err_t assign_range(const kafka_group_member_t *members, size_t members_n,
                         const kafka_topic_size_t *topics, size_t topics_n, kafka_assignment_t *out,
                         void *arg)
{
    size_t *subscribed = malloc((members_n + 1) * sizeof *subscribed);
    if (!subscribed)
        return KAFKA_ERR_NO_MEMORY;
    for (size_t t = 0; t < topics_n; t++) {
        int32_t n = 0, next = 0;
        for (size_t m = 0; m < members_n; m++)
            if (assignor_is_subscribed(&members[m], topics[t].name))
                subscribed[n++] = m;
        for (int32_t i = 0; i < n; i++) {
            int32_t quota = topics[t].partitions / n + (i < topics[t].partitions % n);
            for (int32_t k = 0; k < quota; k++)
                kafka_assignment_add(out, subscribed[i], topics[t].name, next++);
        }
    }
    free(subscribed);
    return KAFKA_OK;
}

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
