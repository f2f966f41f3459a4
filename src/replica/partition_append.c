/* partition_append.c - a leader appends, and its high watermark follows.
 *
 * The high watermark is the least log end of the leader, the ISR, and those outside it that keep up
 * and are alive (so that they can close in on a busy leader). It stands still while the committed
 * ISR is smaller than min.insync.replicas, and does not pass what flush.messages wants flushed
 * first: what was seen here once must not go with the power. */
#include "base/clock.h"
#include "replica/partition_private.h"

static bool is_enough(const struct partition *p, int32_t isr_n)
{
    if (isr_n >= p->replicas_n)
        return true; /* the effective minimum is never more than the number of replicas */
    const struct log_config *c = log_config_ref(p->log);
    int32_t min = c->min_insync_replicas < p->replicas_n ? c->min_insync_replicas : p->replicas_n;
    log_config_unref(c);
    return isr_n >= min;
}

bool partition_isr_enough_locked(const struct partition *p)
{
    return is_enough(p, p->isr_n);
}

bool partition_isr_enough_after_locked(const struct partition *p)
{
    return is_enough(p, p->isr_n + (p->isr_state == ISR_EXPANDING));
}

/* ---- high watermark ---- */

bool remote_replica_caught_up(const struct remote_replica *r, int64_t leader_end, int64_t now_ms,
                              int64_t lag_ms)
{
    return r->log_end == leader_end ||
           (r->last_caught_up_ms >= 0 && now_ms - r->last_caught_up_ms <= lag_ms);
}

bool remote_replica_refused(const struct remote_replica *r, int64_t now_ms)
{
    enum { PAUSE_MS = 1000 };
    return r->refused_ms >= 0 && now_ms - r->refused_ms < PAUSE_MS;
}

void remote_replica_fetched(struct remote_replica *r, int64_t offset, int64_t log_start,
                            int64_t end, int64_t now_ms)
{
    int64_t caught_up = -1;
    if (offset >= end)
        caught_up = now_ms;
    else if (offset >= r->leader_end_at_last_fetch)
        caught_up = r->last_fetch_ms;
    if (caught_up > r->last_caught_up_ms)
        r->last_caught_up_ms = caught_up;
    r->log_end = offset;
    r->log_start = log_start;
    if (end > r->leader_end_at_last_fetch)
        r->leader_end_at_last_fetch = end;
    r->last_fetch_ms = now_ms;
}

/* Not in the ISR, but as good as: to go on without it would keep it out for as long as records
 * come.
 */
static bool about_to_join(const struct partition *p, const struct remote_replica *r, int64_t end)
{
    int64_t now = clock_mono_ms(p->env->clock);
    return remote_replica_caught_up(r, end, now, p->env->replica_lag_ms) &&
           !remote_replica_refused(r, now) && partition_broker_alive(p, r->id);
}

static int64_t candidate(struct partition *p)
{
    int64_t end = log_end_offset(p->log), safe = log_flush_bound(p->log);
    int64_t least = safe < end ? safe : end;
    for (int32_t i = 0; i < p->remotes_n; i++) {
        const struct remote_replica *r = &p->remotes[i];
        if (r->log_end < least && (r->in_isr || r->joining || about_to_join(p, r, end)))
            least = r->log_end;
    }
    return least;
}

bool partition_advance_locked(struct partition *p)
{
    bool moved = false;
    if (!partition_isr_enough_locked(p))
        return false;
    pthread_mutex_lock(&p->marks);
    int64_t to = candidate(p), now = log_high_watermark(p->log);
    if (to > now)
        moved = log_set_high_watermark(p->log, to) > now;
    pthread_mutex_unlock(&p->marks);
    return moved;
}

/* ---- append ---- */

static enum kerr check_append_locked(const struct partition *p, int16_t required_acks)
{
    enum kerr e = partition_access_locked(p, -1, true);
    if (e == KERR_NONE && required_acks == -1 && !partition_isr_enough_locked(p))
        e = KERR_NOT_ENOUGH_REPLICAS;
    return e;
}

enum kerr partition_check_append(struct partition *p, int16_t required_acks)
{
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = check_append_locked(p, required_acks);
    pthread_rwlock_unlock(&p->lock);
    return e;
}

enum kerr partition_append(struct partition *p, struct prepared *pr, enum append_origin origin,
                           int16_t required_acks, struct partition_append *out)
{
    *out = (struct partition_append){
        .info = {.first_offset = -1, .last_offset = -1, .log_append_time = -1}};
    int64_t log_start = -1;
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = check_append_locked(p, required_acks);
    if (p->log)
        log_start = log_start_offset(p->log);
    if (e == KERR_NONE)
        e = log_append(p->log, pr, atomic_load_explicit(&p->leader_epoch, memory_order_relaxed),
                       origin, &out->info);
    out->term = p->term;
    if (e == KERR_NONE)
        partition_advance_locked(p);
    pthread_rwlock_unlock(&p->lock);

    if (e != KERR_NONE) {
        out->info = (struct append_info){.first_offset = -1,
                                         .last_offset = -1,
                                         .log_append_time = -1,
                                         .log_start_offset = log_start};
        return e;
    }
    out->required_offset = out->info.last_offset + 1;
    if (!out->info.duplicate)
        partition_wake(p);
    return KERR_NONE;
}

uint32_t partition_term(struct partition *p)
{
    pthread_rwlock_rdlock(&p->lock);
    uint32_t term = p->term;
    pthread_rwlock_unlock(&p->lock);
    return term;
}

enum kerr partition_check_committed(struct partition *p, int64_t required_offset, uint32_t term)
{
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = partition_access_locked(p, -1, true);
    if (e == KERR_NONE && p->term != term)
        e = KERR_NOT_LEADER_OR_FOLLOWER;
    if (e == KERR_NONE) {
        if (log_high_watermark(p->log) < required_offset)
            e = KERR_REQUEST_TIMED_OUT;
        else if (!partition_isr_enough_after_locked(p))
            e = KERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND;
    }
    pthread_rwlock_unlock(&p->lock);
    return e;
}

/* Those that may be elected without loss: the ISR, and who may be in it already. */
static bool isr_has_locked(struct partition *p, int64_t offset)
{
    bool has = log_flush_bound(p->log) >= offset && log_end_offset(p->log) >= offset;
    pthread_mutex_lock(&p->marks);
    for (int32_t i = 0; i < p->remotes_n; i++)
        if (p->remotes[i].in_isr || p->remotes[i].joining)
            has &= p->remotes[i].log_end >= offset;
    pthread_mutex_unlock(&p->marks);
    return has;
}

enum kerr partition_check_held(struct partition *p, int64_t offset, uint32_t term)
{
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = partition_access_locked(p, -1, true);
    if (e == KERR_NONE && p->term != term)
        e = KERR_NOT_LEADER_OR_FOLLOWER;
    if (e == KERR_NONE && log_high_watermark(p->log) < offset && !isr_has_locked(p, offset))
        e = KERR_REQUEST_TIMED_OUT;
    pthread_rwlock_unlock(&p->lock);
    return e;
}
