/* partition_role.c - a partition becomes leader, follower, offline or gone.
 *
 * Only the replica manager's control work comes here, one call at a time, so roles can be read here
 * without the lock; it is taken to write, and to keep appends and reads from straddling the change.
 * Nothing is truncated and the high watermark is not lowered on becoming leader. */
#include <stdlib.h>

#include "base/clock.h"
#include "replica/replica_manager_private.h"

struct remote_replica *partition_remote_locked(struct partition *p, int32_t id)
{
    for (int32_t i = 0; i < p->remotes_n; i++)
        if (p->remotes[i].id == id)
            return &p->remotes[i];
    return NULL;
}

/* What a leader of a new epoch knows of a replica: `old` is what it knew as leader of the last one.
 * Only of the last one: in an epoch that it did not hear of, others may have cut their logs as
 * another leader's is. */
static struct remote_replica remote_fresh(int32_t id, bool in_isr, const struct remote_replica *old,
                                          int64_t leader_end, int64_t now)
{
    struct remote_replica r = {.id = id,
                               .in_isr = in_isr,
                               .log_end = -1,
                               .log_start = -1,
                               .last_fetch_ms = -1,
                               .last_caught_up_ms = in_isr ? now : -1,
                               .leader_end_at_last_fetch = -1,
                               .refused_ms = -1};
    if (old) {
        r.log_end = old->log_end;
        r.log_start = old->log_start;
        r.leader_end_at_last_fetch = leader_end;
        r.last_fetch_ms = in_isr ? now : -1;
    }
    return r;
}

/* Returns owned; *n of them. NULL with *n > 0: no memory. */
static struct remote_replica *make_remotes(struct partition *p, const struct leadership *l,
                                           bool knows, bool new_epoch, int64_t leader_end,
                                           int32_t *n)
{
    int64_t now = clock_mono_ms(p->env->clock);
    struct remote_replica *out = calloc((size_t)l->replicas_n + 1, sizeof *out);
    *n = 0;
    for (int32_t i = 0; i < l->replicas_n; i++) {
        int32_t id = l->replicas[i];
        if (id == p->env->broker_id || is_among(l->replicas, i, id))
            continue;
        if (out) {
            bool in_isr = is_among(l->isr, l->isr_n, id);
            struct remote_replica *old = knows ? partition_remote_locked(p, id) : NULL;
            out[*n] = remote_fresh(id, in_isr, old, leader_end, now);
            if (old && !new_epoch) {
                out[*n] = *old;
                out[*n].in_isr = in_isr;
                out[*n].joining = false;
            }
            out[*n].adding = is_among(l->adding, l->adding_n, id);
        }
        ++*n;
    }
    return out;
}

/* Nobody but a leader has one. */
static void drop_isr_locked(struct partition *p)
{
    free(p->isr);
    p->isr = NULL;
    p->isr_n = 0;
    p->isr_state = ISR_STABLE;
}

static void take_over_locked(struct partition *p, const struct leadership *l, struct log *log)
{
    p->controller_epoch = l->controller_epoch;
    p->partition_epoch = l->partition_epoch;
    if (!uuid_is_zero(l->topic_id))
        p->topic_id = l->topic_id;
    p->replicas_n = l->replicas_n;
    atomic_store(&p->moving, l->moving);
    p->adding = is_among(l->adding, l->adding_n, p->env->broker_id);
    atomic_store(&p->leader_id, l->leader);
    atomic_store(&p->leader_epoch, l->leader_epoch);
    if (p->log != log) {
        if (p->log)
            log_unref(p->log);
        p->log = log_ref(log);
    }
}

enum kerr partition_make_leader(struct partition *p, const struct leadership *l, struct log *log)
{
    if (l->partition_epoch < p->partition_epoch)
        return KERR_NONE; /* the answer to an ISR change of our own came first */
    bool was_leader = atomic_load(&p->role) == PARTITION_LEADER;
    int32_t epoch = atomic_load(&p->leader_epoch);
    bool new_epoch = l->leader_epoch > epoch;
    bool knows = was_leader && l->leader_epoch <= epoch + 1;
    enum kerr e = KERR_NONE;
    if (new_epoch && !was_leader) /* nobody appends yet: the fsync needs no lock */
        e = log_begin_epoch(log, l->leader_epoch);
    if (e != KERR_NONE)
        return e;

    pthread_rwlock_wrlock(&p->lock);
    if (new_epoch && was_leader)
        e = log_begin_epoch(log, l->leader_epoch);
    int32_t remotes_n;
    struct remote_replica *remotes =
        make_remotes(p, l, knows, new_epoch, log_end_offset(log), &remotes_n);
    if (e == KERR_NONE && (!remotes || partition_set_isr_locked(p, l->isr, l->isr_n)))
        e = KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE) {
        take_over_locked(p, l, log);
        struct remote_replica *old = p->remotes;
        p->remotes = remotes;
        p->remotes_n = remotes_n;
        remotes = old;
        p->isr_state = ISR_STABLE; /* a change on its way is answered to nobody */
        if (new_epoch)
            p->epoch_start = log_end_offset(log);
        atomic_store(&p->role, PARTITION_LEADER);
        partition_advance_locked(p);
    }
    pthread_rwlock_unlock(&p->lock);
    free(remotes);
    if (p->env->workers && log_flush_bound(log) < log_end_offset(log))
        partition_flush_soon(p, p->env->workers); /* nobody else may come to ask for it */
    partition_wake(p);
    if (e == KERR_NONE)
        replica_listeners_led(p, l->leader_epoch);
    return e;
}

enum kerr partition_make_follower(struct partition *p, const struct leadership *l, struct log *log)
{
    if (l->partition_epoch < p->partition_epoch)
        return KERR_NONE;
    pthread_rwlock_wrlock(&p->lock);
    take_over_locked(p, l, log);
    free(p->remotes);
    p->remotes = NULL;
    p->remotes_n = 0;
    drop_isr_locked(p);
    atomic_store(&p->lag, -1);
    p->epoch_start = -1;
    p->term++;
    atomic_store(&p->role, PARTITION_FOLLOWER);
    pthread_rwlock_unlock(&p->lock);
    partition_wake(p);
    replica_listeners_resigned(p, l->leader_epoch);
    return KERR_NONE;
}

bool partition_leads_for_others(struct partition *p)
{
    pthread_rwlock_rdlock(&p->lock);
    bool does = atomic_load(&p->role) == PARTITION_LEADER && p->remotes_n > 0;
    pthread_rwlock_unlock(&p->lock);
    return does;
}

static void leave(struct partition *p, enum partition_role role)
{
    pthread_rwlock_wrlock(&p->lock);
    struct log *log = p->log;
    p->log = NULL;
    free(p->remotes);
    p->remotes = NULL;
    p->remotes_n = 0;
    drop_isr_locked(p);
    p->term++;
    atomic_store(&p->role, (int)role);
    pthread_rwlock_unlock(&p->lock);
    if (log)
        log_unref(log);
    partition_wake(p);
}

void partition_make_offline(struct partition *p)
{
    leave(p, PARTITION_OFFLINE);
    /* Nobody else tells the coordinators: of a leader without a log the controller's requests fail.
     */
    replica_listeners_resigned(p, atomic_load(&p->leader_epoch));
}

void partition_step_down(struct partition *p, int32_t leader_epoch)
{
    leave(p, PARTITION_NONE);
    replica_listeners_resigned(p, leader_epoch);
}

void partition_make_gone(struct partition *p)
{
    leave(p, PARTITION_GONE);
    replica_listeners_resigned(p, -1);
}

void partition_take_topic_id(struct partition *p, struct uuid id)
{
    pthread_rwlock_wrlock(&p->lock);
    p->topic_id = id;
    pthread_rwlock_unlock(&p->lock);
}

void partition_set_config(struct partition *p, const struct log_config *c)
{
    bool moved = false, due = false;
    pthread_rwlock_rdlock(&p->lock);
    if (p->log) {
        log_set_config(p->log, c);
        due = log_flush_bound(p->log) < log_end_offset(p->log);
        if (atomic_load(&p->role) == PARTITION_LEADER)
            moved = partition_advance_locked(p);
    }
    pthread_rwlock_unlock(&p->lock);
    if (due && p->env->workers) /* what is held back now may have nobody who comes to ask for it */
        partition_flush_soon(p, p->env->workers);
    if (moved)
        partition_wake(p);
}
