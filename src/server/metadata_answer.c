/* metadata_answer.c - see metadata_answer.h. */
#include "server/metadata_answer.h"

#include <errno.h>

/* Numbers of ACL operations on the wire. */
enum {
    OP_READ = 3,
    OP_WRITE = 4,
    OP_CREATE = 5,
    OP_DELETE = 6,
    OP_ALTER = 7,
    OP_DESCRIBE = 8,
    OP_CLUSTER_ACTION = 9,
    OP_DESCRIBE_CONFIGS = 10,
    OP_ALTER_CONFIGS = 11,
    OP_IDEMPOTENT_WRITE = 12,
};
#define BIT(op) (INT32_C(1) << (op))

int32_t topic_operations_all(void)
{
    return BIT(OP_READ) | BIT(OP_WRITE) | BIT(OP_CREATE) | BIT(OP_DELETE) | BIT(OP_ALTER) |
           BIT(OP_DESCRIBE) | BIT(OP_DESCRIBE_CONFIGS) | BIT(OP_ALTER_CONFIGS);
}

int32_t cluster_operations_all(void)
{
    return BIT(OP_CREATE) | BIT(OP_ALTER) | BIT(OP_DESCRIBE) | BIT(OP_CLUSTER_ACTION) |
           BIT(OP_DESCRIBE_CONFIGS) | BIT(OP_ALTER_CONFIGS) | BIT(OP_IDEMPOTENT_WRITE);
}

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
