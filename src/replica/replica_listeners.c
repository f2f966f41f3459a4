/* replica_listeners.c - telling others of this broker what control requests changed: coordinators,
 * which live where the leader of their partition is. */
#include <stdlib.h>

#include "base/logline.h"
#include "protocol/msg/update_metadata.h"
#include "replica/replica_manager_private.h"

enum { LEADER_DURING_DELETE = -2 };

void replica_manager_listen(struct replica_manager *m, struct replica_listener *l)
{
    l->next = m->env.listeners;
    m->env.listeners = l;
}

void replica_listeners_led(const struct partition *p, int32_t leader_epoch)
{
    for (struct replica_listener *l = p->env->listeners; l; l = l->next)
        if (l->led)
            l->led(l, partition_tp(p), leader_epoch);
}

void replica_listeners_resigned(const struct partition *p, int32_t leader_epoch)
{
    for (struct replica_listener *l = p->env->listeners; l; l = l->next)
        if (l->resigned)
            l->resigned(l, partition_tp(p), leader_epoch);
}

/* ---- deletions ---- */

typedef struct update_metadata_request_partition_state partition_state;

static void tell(struct replica_manager *m, struct str topic, const int32_t *partitions, int n)
{
    for (struct replica_listener *l = m->env.listeners; n > 0 && l; l = l->next)
        if (l->deleted)
            l->deleted(l, topic, partitions, n);
}

/* Runs of partitions of one topic, as they stand in the request. */
static void tell_deleted(struct replica_manager *m, struct str topic, const partition_state *v,
                         int32_t count)
{
    struct str of = topic;
    int n = 0;
    int32_t *numbers = NULL;
    for (int32_t i = 0; i < count; i++) {
        struct str name = str_is_null(topic) ? v[i].topic_name : topic;
        if (v[i].leader != LEADER_DURING_DELETE)
            continue;
        if (!numbers && !(numbers = calloc((size_t)count, sizeof(*numbers)))) {
            say_error("ReplicaManager", "no memory to tell of deleted partitions");
            return;
        }
        if (n > 0 && !str_eq(name, of)) {
            tell(m, of, numbers, n);
            n = 0;
        }
        of = name;
        numbers[n++] = v[i].partition_index;
    }
    tell(m, of, numbers, n);
    free(numbers);
}

void replica_listeners_deleted(struct replica_manager *m, const struct update_metadata_request *r)
{
    if (!m->env.listeners)
        return;
    tell_deleted(m, STR_NULL, r->ungrouped_partition_states.v, r->ungrouped_partition_states.n);
    for (int32_t t = 0; t < r->topic_states.n; t++)
        tell_deleted(m, r->topic_states.v[t].topic_name, r->topic_states.v[t].partition_states.v,
                     r->topic_states.v[t].partition_states.n);
}
