/* leader_hints.c - see leader_hints.h. */
#include "server/leader_hints.h"

#include "server/broker.h"

static void add_endpoint(struct leader_hints *h, const struct metadata_snapshot *s, int32_t id)
{
    for (int i = 0; i < h->n; i++)
        if (h->endpoints[i].id == id)
            return;
    const struct broker_info *b = metadata_broker(s, id);
    const struct endpoint *at = b ? broker_endpoint(b, h->listener) : NULL;
    if (!at)
        return;
    if (h->n == h->cap) {
        int cap = h->cap ? 2 * h->cap : 4;
        struct leader_endpoint *more = arena_array(h->arena, struct leader_endpoint, (size_t)cap);
        if (!more)
            return; /* a hint left out does no harm */
        for (int i = 0; i < h->n; i++)
            more[i] = h->endpoints[i];
        h->endpoints = more;
        h->cap = cap;
    }
    struct leader_endpoint e = {id, arena_str(h->arena, at->host), at->port,
                                arena_str(h->arena, b->rack)};
    if (!h->arena->exhausted)
        h->endpoints[h->n++] = e;
}

void leader_hints_add(struct leader_hints *h, struct topic_partition tp, int32_t *leader,
                      int32_t *epoch)
{
    *leader = *epoch = -1;
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(h->broker));
    enum kerr why;
    struct partition *p = replica_manager_find(broker_replicas(h->broker), tp, &why);
    if (p) {
        *leader = partition_leader_id(p);
        *epoch = partition_leader_epoch(p);
        partition_unref(p);
    } else {
        const struct partition_info *known = metadata_partition(s, tp.topic, tp.partition);
        if (known) {
            *leader = known->leader;
            *epoch = known->leader_epoch;
        }
    }
    if (*leader >= 0)
        add_endpoint(h, s, *leader);
    metadata_release(s);
}
