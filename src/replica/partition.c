/* partition.c - the object itself: its life, what can be asked of it, and who waits for it. */
#include <stdlib.h>
#include <string.h>

#include "replica/partition_private.h"

static int init_locks(struct partition *p)
{
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    /* A role change must get in between the appends of a busy partition. */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int e = pthread_rwlock_init(&p->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    if (e)
        return -e;
    pthread_mutex_init(&p->marks, NULL);
    pthread_mutex_init(&p->following, NULL);
    pthread_mutex_init(&p->flush_lock, NULL);
    pthread_mutex_init(&p->waiters_lock, NULL);
    return 0;
}

struct partition *partition_new(const struct partition_env *env, struct topic_partition tp)
{
    struct partition *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->topic = str_dup(tp.topic);
    if (!p->topic || init_locks(p)) {
        free(p->topic);
        free(p);
        return NULL;
    }
    p->env = env;
    p->topic_len = tp.topic.len;
    p->number = tp.partition;
    atomic_init(&p->refs, 1);
    atomic_init(&p->role, PARTITION_NONE);
    atomic_init(&p->leader_id, -1);
    atomic_init(&p->leader_epoch, -1);
    p->controller_epoch = -1;
    p->awaited.leader = -1;
    p->epoch_start = -1;
    list_init(&p->flushes);
    list_init(&p->waiters);
    return p;
}

struct partition *partition_ref(struct partition *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void partition_unref(struct partition *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (p->log)
        log_unref(p->log);
    pthread_rwlock_destroy(&p->lock);
    pthread_mutex_destroy(&p->marks);
    pthread_mutex_destroy(&p->following);
    pthread_mutex_destroy(&p->flush_lock);
    pthread_mutex_destroy(&p->waiters_lock);
    topic_counts_unref(p->counts);
    free(p->remotes);
    free(p->isr);
    free(p->topic);
    free(p);
}

/* ---- what can be asked ---- */

struct topic_partition partition_tp(const struct partition *p)
{
    return (struct topic_partition){{p->topic, p->topic_len}, p->number};
}

struct topic_counts *partition_counts(const struct partition *p)
{
    return p->counts;
}

int32_t partition_leader_epoch(const struct partition *p)
{
    return atomic_load(&p->leader_epoch);
}

int32_t partition_leader_id(const struct partition *p)
{
    return atomic_load(&p->leader_id);
}

bool partition_is_leader(const struct partition *p)
{
    return atomic_load(&p->role) == PARTITION_LEADER;
}

struct uuid partition_topic_id(const struct partition *p)
{
    struct partition *q = (struct partition *)p; /* the lock is all that changes */
    pthread_rwlock_rdlock(&q->lock);
    struct uuid id = q->topic_id;
    pthread_rwlock_unlock(&q->lock);
    return id;
}

struct log *partition_log(struct partition *p)
{
    pthread_rwlock_rdlock(&p->lock);
    struct log *log = p->log ? log_ref(p->log) : NULL;
    pthread_rwlock_unlock(&p->lock);
    return log;
}

enum kerr partition_check_epoch_locked(const struct partition *p, int32_t current_leader_epoch)
{
    int32_t own = atomic_load_explicit(&p->leader_epoch, memory_order_relaxed);
    if (current_leader_epoch < 0 || current_leader_epoch == own)
        return KERR_NONE;
    return current_leader_epoch < own ? KERR_FENCED_LEADER_EPOCH : KERR_UNKNOWN_LEADER_EPOCH;
}

enum kerr partition_check_epoch(const struct partition *p, int32_t current_leader_epoch)
{
    return partition_check_epoch_locked(p, current_leader_epoch);
}

enum kerr partition_access_locked(const struct partition *p, int32_t current_leader_epoch,
                                  bool leader_only)
{
    int role = atomic_load_explicit(&p->role, memory_order_relaxed);
    if (role == PARTITION_OFFLINE)
        return KERR_KAFKA_STORAGE_ERROR;
    if (role == PARTITION_NONE || role == PARTITION_GONE)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    enum kerr e = partition_check_epoch_locked(p, current_leader_epoch);
    if (e != KERR_NONE)
        return e;
    if (leader_only && role != PARTITION_LEADER)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    return KERR_NONE;
}

/* ---- waiters ---- */

/* No wake-up is lost: both sides change waiters_n by a read-modify-write. Either the waker's comes
 * after the waiter's, and it sees the waiter; or before, and the waiter, which looks at the
 * partition after partition_wait, sees what moved. */
void partition_wait(struct partition *p, struct partition_waiter *w)
{
    w->partition = partition_ref(p);
    pthread_mutex_lock(&p->waiters_lock);
    list_push_back(&p->waiters, &w->link);
    pthread_mutex_unlock(&p->waiters_lock);
    atomic_fetch_add_explicit(&p->waiters_n, 1, memory_order_acq_rel);
}

void partition_unwait(struct partition_waiter *w)
{
    struct partition *p = w->partition;
    if (!p)
        return;
    atomic_fetch_sub_explicit(&p->waiters_n, 1, memory_order_acq_rel);
    pthread_mutex_lock(&p->waiters_lock);
    list_remove(&w->link);
    pthread_mutex_unlock(&p->waiters_lock);
    w->partition = NULL;
    partition_unref(p);
}

void partition_wake(struct partition *p)
{
    if (atomic_fetch_add_explicit(&p->waiters_n, 0, memory_order_acq_rel) == 0)
        return;
    pthread_mutex_lock(&p->waiters_lock);
    list_each (it, &p->waiters)
        list_entry(it, struct partition_waiter, link)
            ->wake(list_entry(it, struct partition_waiter, link));
    pthread_mutex_unlock(&p->waiters_lock);
}
