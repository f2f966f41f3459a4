/* partition_facts.c - what an operator asks about a partition: looked up when asked. */
#include "replica/partition_private.h"

/* The least ISR that acks=all wants, never more than there are replicas. */
static int32_t min_isr_locked(const struct partition *p)
{
    const struct log_config *c = log_config_ref(p->log);
    int32_t min = c->min_insync_replicas < p->replicas_n ? c->min_insync_replicas : p->replicas_n;
    log_config_unref(c);
    return min;
}

/* Replicas that a reassignment only brings here are not lacking: those that it goes by count. */
static int32_t wanted_locked(const struct partition *p)
{
    int32_t n = p->replicas_n - (p->adding ? 1 : 0);
    for (int32_t i = 0; i < p->remotes_n; i++)
        n -= p->remotes[i].adding ? 1 : 0;
    return n;
}

static void leader_facts_locked(const struct partition *p, struct partition_facts *f)
{
    int32_t min = min_isr_locked(p);
    f->leads = true;
    f->moving = atomic_load(&p->moving);
    f->isr_n = p->isr_n;
    f->replicas_n = p->replicas_n;
    f->under_replicated = p->isr_n < wanted_locked(p);
    f->under_min_isr = p->isr_n < min;
    f->at_min_isr = p->isr_n == min;
    f->stable_lag = log_high_watermark(p->log) - log_last_stable_offset(p->log);
}

static void log_facts_locked(const struct partition *p, struct partition_facts *f)
{
    f->has_log = true;
    f->size = log_size(p->log);
    f->segments = log_segment_count(p->log);
    f->log_start = log_start_offset(p->log);
    f->log_end = log_end_offset(p->log);
    log_count_producers(p->log, &f->producers);
}

void partition_facts(struct partition *p, struct partition_facts *f)
{
    *f = (struct partition_facts){.producers.oldest_txn_ms = -1};
    pthread_rwlock_rdlock(&p->lock);
    int role = atomic_load(&p->role);
    f->offline = role == PARTITION_OFFLINE;
    f->follows = role == PARTITION_FOLLOWER;
    f->leader = atomic_load(&p->leader_id);
    f->lag = f->follows ? atomic_load(&p->lag) : -1;
    if (p->log)
        log_facts_locked(p, f);
    if (p->log && role == PARTITION_LEADER)
        leader_facts_locked(p, f);
    pthread_rwlock_unlock(&p->lock);
}

bool partition_adds_replica(struct partition *p, int32_t broker)
{
    bool adds = false;
    if (!atomic_load_explicit(&p->moving, memory_order_relaxed))
        return false;
    pthread_rwlock_rdlock(&p->lock);
    for (int32_t i = 0; i < p->remotes_n; i++)
        adds |= p->remotes[i].id == broker && p->remotes[i].adding;
    pthread_rwlock_unlock(&p->lock);
    return adds;
}
