/* partition_nearest.c - which replica a consumer should read from (KIP-392): one in its own rack
 * that is in sync and has the offset; the leader where there is none, or where the leader is near,
 * too. */
#include "replica/partition_private.h"

struct candidate {
    int32_t id; /* -1: none yet */
    int64_t log_end, behind_ms;
};

/* In the rack, and with an endpoint that the consumer can use? */
static bool is_near(const struct metadata_snapshot *s, int32_t id, struct str rack,
                    struct str listener)
{
    const struct broker_info *b = metadata_broker(s, id);
    return b && str_eq(b->rack, rack) && broker_endpoint(b, listener);
}

static bool is_better(const struct candidate *a, const struct candidate *than)
{
    if (than->id < 0 || a->log_end != than->log_end)
        return than->id < 0 || a->log_end > than->log_end;
    if (a->behind_ms != than->behind_ms)
        return a->behind_ms < than->behind_ms;
    return a->id > than->id;
}

static int32_t nearest_locked(struct partition *p, const struct metadata_snapshot *s,
                              int64_t offset, struct str rack, struct str listener)
{
    struct candidate best = {-1, -1, 0};
    int64_t now = clock_mono_ms(p->env->clock);
    pthread_mutex_lock(&p->marks);
    for (int32_t i = 0; i < p->remotes_n; i++) {
        const struct remote_replica *r = &p->remotes[i];
        if (!r->in_isr || r->log_start > offset || r->log_end < offset ||
            !is_near(s, r->id, rack, listener))
            continue;
        struct candidate c = {r->id, r->log_end, now - r->last_caught_up_ms};
        if (is_better(&c, &best))
            best = c;
    }
    pthread_mutex_unlock(&p->marks);
    return best.id;
}

int32_t partition_nearest_replica(struct partition *p, int64_t offset, struct str rack,
                                  struct str listener)
{
    int32_t id = -1;
    if (rack.len <= 0)
        return -1;
    const struct metadata_snapshot *s = metadata_acquire(p->env->metadata);
    pthread_rwlock_rdlock(&p->lock);
    if (atomic_load(&p->role) == PARTITION_LEADER && !is_near(s, p->env->broker_id, rack, listener))
        id = nearest_locked(p, s, offset, rack, listener);
    pthread_rwlock_unlock(&p->lock);
    metadata_release(s);
    return id;
}
