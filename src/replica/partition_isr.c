/* partition_isr.c - see partition_isr.h. */
#include "replica/partition_isr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "replica/partition_private.h"

void isr_proposal_free(struct isr_proposal *q)
{
    if (!q)
        return;
    free(q->isr);
    free(q);
}

bool partition_broker_alive(const struct partition *p, int32_t id)
{
    const struct metadata_snapshot *s = metadata_acquire(p->env->metadata);
    bool alive = metadata_broker(s, id) != NULL;
    metadata_release(s);
    return alive;
}

/* ---- proposals ---- */

static struct isr_proposal *proposal_new(struct partition *p, int32_t room)
{
    struct isr_proposal *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->isr = calloc((size_t)room, sizeof(*q->isr));
    if (!q->isr) {
        free(q);
        return NULL;
    }
    q->leader_epoch = atomic_load(&p->leader_epoch);
    q->partition_epoch = p->partition_epoch;
    q->controller_epoch = p->controller_epoch;
    q->topic_id = p->topic_id;
    return q;
}

/* "1,2,3" for a log line. */
static const char *ids_text(const int32_t *ids, int32_t n, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < n && at + 1 < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%d", i ? "," : "", (int)ids[i]);
    return out;
}

static void say_change(const struct partition *p, const char *what, const struct isr_proposal *q)
{
    char old[160], now[160];
    say_info("ReplicaManager", "%s-%d: ISR %s from %s to %s, epoch %d", p->topic, (int)p->number,
             what, ids_text(p->isr, p->isr_n, old, sizeof(old)),
             ids_text(q->isr, q->isr_n, now, sizeof(now)), (int)q->leader_epoch);
}

/* The lock is held for writing, the change is made: it has a number now. */
static void begin_locked(struct partition *p, enum isr_state state, struct isr_proposal *q)
{
    p->isr_state = state;
    q->number = ++p->isr_change;
    say_change(p, state == ISR_EXPANDING ? "grows" : "shrinks", q);
}

static void propose(struct partition *p, struct isr_proposal *q)
{
    p->env->isr_writer->propose(p->env->isr_writer, p, q);
}

/* ---- growing ---- */

bool partition_may_join_locked(const struct partition *p, const struct remote_replica *r)
{
    return p->env->isr_writer && p->isr_state == ISR_STABLE && !r->in_isr &&
           r->log_end >= log_high_watermark(p->log) && r->log_end >= p->epoch_start &&
           !remote_replica_refused(r, clock_mono_ms(p->env->clock)) &&
           partition_broker_alive(p, r->id);
}

static struct isr_proposal *grown_locked(struct partition *p, struct remote_replica *r)
{
    struct isr_proposal *q = proposal_new(p, p->isr_n + 1);
    if (!q)
        return NULL; /* the next fetch tries again */
    for (int32_t i = 0; i < p->isr_n; i++)
        q->isr[q->isr_n++] = p->isr[i];
    q->isr[q->isr_n++] = r->id;
    r->joining = true;
    begin_locked(p, ISR_EXPANDING, q);
    return q;
}

void partition_grow_isr(struct partition *p, int32_t id)
{
    struct isr_proposal *q = NULL;
    pthread_rwlock_wrlock(&p->lock);
    struct remote_replica *r =
        atomic_load(&p->role) == PARTITION_LEADER ? partition_remote_locked(p, id) : NULL;
    if (r && partition_may_join_locked(p, r))
        q = grown_locked(p, r);
    pthread_rwlock_unlock(&p->lock);
    if (q)
        propose(p, q);
}

/* May it join by what its last fetch told, and does it still fetch? -1: nobody. */
static int32_t next_to_join_locked(struct partition *p)
{
    int64_t now = clock_mono_ms(p->env->clock), lag = p->env->replica_lag_ms;
    int32_t id = -1;
    if (atomic_load(&p->role) != PARTITION_LEADER)
        return id;
    pthread_mutex_lock(&p->marks);
    for (int32_t i = 0; i < p->remotes_n && id < 0; i++) {
        const struct remote_replica *r = &p->remotes[i];
        if (r->last_fetch_ms >= 0 && now - r->last_fetch_ms <= lag &&
            remote_replica_caught_up(r, log_end_offset(p->log), now, lag) &&
            partition_may_join_locked(p, r))
            id = r->id;
    }
    pthread_mutex_unlock(&p->marks);
    return id;
}

/* Whoever was ripe while another change was under way was passed over. It is not left to its next
 * fetch, which an idle follower may have out for long. */
static void grow_by_next(struct partition *p)
{
    pthread_rwlock_rdlock(&p->lock);
    int32_t id = next_to_join_locked(p);
    pthread_rwlock_unlock(&p->lock);
    if (id >= 0)
        partition_grow_isr(p, id);
}

/* ---- shrinking ---- */

static bool lags_locked(const struct partition *p, const struct remote_replica *r)
{
    return r->in_isr &&
           !remote_replica_caught_up(r, log_end_offset(p->log), clock_mono_ms(p->env->clock),
                                     p->env->replica_lag_ms);
}

static bool any_lags_locked(struct partition *p)
{
    bool any = false;
    if (!p->env->isr_writer || atomic_load(&p->role) != PARTITION_LEADER ||
        p->isr_state != ISR_STABLE)
        return false;
    pthread_mutex_lock(&p->marks);
    for (int32_t i = 0; i < p->remotes_n && !any; i++)
        any = lags_locked(p, &p->remotes[i]);
    pthread_mutex_unlock(&p->marks);
    return any;
}

static struct isr_proposal *shrunk_locked(struct partition *p)
{
    struct isr_proposal *q = proposal_new(p, p->isr_n + 1);
    if (!q)
        return NULL; /* the next round tries again */
    for (int32_t i = 0; i < p->isr_n; i++) {
        const struct remote_replica *r = partition_remote_locked(p, p->isr[i]);
        if (!r || !lags_locked(p, r))
            q->isr[q->isr_n++] = p->isr[i];
    }
    begin_locked(p, ISR_SHRINKING, q);
    return q;
}

void partition_shrink_isr(struct partition *p)
{
    struct isr_proposal *q = NULL;
    pthread_rwlock_rdlock(&p->lock);
    bool any = any_lags_locked(p);
    pthread_rwlock_unlock(&p->lock);
    if (!any)
        return;
    pthread_rwlock_wrlock(&p->lock);
    if (any_lags_locked(p))
        q = shrunk_locked(p);
    pthread_rwlock_unlock(&p->lock);
    if (q)
        propose(p, q);
}

/* ---- answers ---- */

int partition_set_isr_locked(struct partition *p, const int32_t *isr, int32_t n)
{
    int32_t *copy = malloc(((size_t)n + 1) * sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    if (n)
        memcpy(copy, isr, (size_t)n * sizeof(*copy));
    free(p->isr);
    p->isr = copy;
    p->isr_n = n;
    return 0;
}

static void back_to_committed_locked(struct partition *p)
{
    p->isr_state = ISR_STABLE;
    for (int32_t i = 0; i < p->remotes_n; i++)
        p->remotes[i].joining = false;
}

/* What we know is in force. The high watermark need not wait for who was refused. */
static void take_refusal_locked(struct partition *p)
{
    for (int32_t i = 0; i < p->remotes_n; i++)
        if (p->remotes[i].joining)
            p->remotes[i].refused_ms = clock_mono_ms(p->env->clock);
    back_to_committed_locked(p);
    partition_advance_locked(p);
}

/* false: no memory. */
static bool commit_locked(struct partition *p, const struct isr_answer *a)
{
    if (partition_set_isr_locked(p, a->isr, a->isr_n))
        return false;
    back_to_committed_locked(p);
    for (int32_t i = 0; i < p->remotes_n; i++) {
        struct remote_replica *r = &p->remotes[i];
        r->in_isr = is_among(a->isr, a->isr_n, r->id);
    }
    p->partition_epoch = a->partition_epoch;
    partition_advance_locked(p);
    return true;
}

static enum isr_next take_success_locked(struct partition *p, const struct isr_answer *a)
{
    if (a->leader_epoch != atomic_load(&p->leader_epoch) || a->partition_epoch < p->partition_epoch)
        return ISR_SETTLED; /* the LeaderAndIsr that tells more is on its way */
    bool grew = p->isr_state == ISR_EXPANDING;
    if (!commit_locked(p, a))
        return ISR_AGAIN;
    metric_add(grew ? &p->env->counts->expands : &p->env->counts->shrinks, 1);
    return ISR_SETTLED;
}

static enum isr_next take_answer_locked(struct partition *p, const struct isr_answer *a)
{
    switch (a->error) {
    case KERR_NONE:
        return take_success_locked(p, a);
    case KERR_OPERATION_NOT_ATTEMPTED: /* it was not done, and what we know is in force */
        back_to_committed_locked(p);
        return ISR_SETTLED;
    case KERR_INELIGIBLE_REPLICA:
        take_refusal_locked(p);
        return ISR_SETTLED;
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_UNKNOWN_TOPIC_ID:
    case KERR_FENCED_LEADER_EPOCH:
    case KERR_INVALID_UPDATE_VERSION:
    case KERR_INVALID_REQUEST:
    case KERR_NEW_LEADER_ELECTED: /* never guess: a LeaderAndIsr must come */
        return ISR_SETTLED;
    default:
        return ISR_AGAIN;
    }
}

enum isr_next partition_isr_answered(struct partition *p, uint64_t number,
                                     const struct isr_answer *a)
{
    enum isr_next next = ISR_SETTLED;
    pthread_rwlock_wrlock(&p->lock);
    bool ours = atomic_load(&p->role) == PARTITION_LEADER && p->isr_state != ISR_STABLE &&
                p->isr_change == number;
    if (ours)
        next = take_answer_locked(p, a);
    pthread_rwlock_unlock(&p->lock);
    if (!ours)
        return ISR_SETTLED;
    if (a->error != KERR_NONE)
        metric_add(&p->env->counts->refused, 1);
    if (a->error != KERR_NONE && next == ISR_SETTLED)
        say_info("ReplicaManager", "%s-%d: the change of its ISR was answered with %s", p->topic,
                 (int)p->number, kerr_name((int16_t)a->error));
    partition_wake(p);
    if (a->error == KERR_NONE) /* not after a refusal for want of memory: it would come at once */
        grow_by_next(p);
    return next;
}

void partition_isr(struct partition *p, struct isr_view *v)
{
    pthread_rwlock_rdlock(&p->lock);
    v->n = 0;
    for (int32_t i = 0; i < p->isr_n && v->n < v->max; i++)
        v->ids[v->n++] = p->isr[i];
    v->pending = p->isr_state != ISR_STABLE;
    pthread_rwlock_unlock(&p->lock);
}

bool partition_in_sync(struct partition *p, int32_t broker)
{
    pthread_rwlock_rdlock(&p->lock);
    bool in = is_among(p->isr, p->isr_n, broker);
    pthread_rwlock_unlock(&p->lock);
    return in;
}
