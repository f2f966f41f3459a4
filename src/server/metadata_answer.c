/* metadata_answer.c - see metadata_answer.h. */
#include "server/metadata_answer.h"

#include <errno.h>

int visible_brokers(const struct metadata_snapshot *s, struct str listener, struct arena *a,
                    struct visible_broker **out)
{
    const struct broker_info *brokers;
    int n = metadata_brokers(s, &brokers), visible = 0;
    *out = arena_array(a, struct visible_broker, n);
    if (!*out)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        const struct endpoint *e = broker_endpoint(&brokers[i], listener);
        if (e)
            (*out)[visible++] = (struct visible_broker){brokers[i].id, e, brokers[i].rack};
    }
    return visible;
}
