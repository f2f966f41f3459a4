/* partition_delete.c - deleting records below an offset, as clients ask a leader to.
 *
 * The leader raises its log start; followers hear of it with their next fetch and tell theirs with
 * the one after. Files go with the next retention. */
#include "replica/partition_private.h"

/* *offset: PARTITION_HIGH_WATERMARK becomes what it stands for. */
static enum kerr raise_start(struct log *log, int64_t *offset)
{
    const struct log_config *config = log_config_ref(log);
    bool deletes = config->cleanup_policy & CLEANUP_DELETE;
    log_config_unref(config);
    if (*offset == PARTITION_HIGH_WATERMARK)
        *offset = log_high_watermark(log);
    if (!deletes)
        return KERR_POLICY_VIOLATION;
    return *offset < 0 ? KERR_OFFSET_OUT_OF_RANGE : log_raise_start_offset(log, *offset);
}

enum kerr partition_delete_records(struct partition *p, int64_t offset, int64_t *raised_to)
{
    *raised_to = -1;
    /* To the end: the log must not be replaced by a copy in another dir before that knows. */
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = partition_access_locked(p, -1, true);
    if (e == KERR_NONE)
        e = raise_start(p->log, &offset);
    pthread_rwlock_unlock(&p->lock);
    if (e == KERR_NONE) {
        *raised_to = offset;
        partition_wake(p);
    }
    return e;
}

enum kerr partition_low_watermark(struct partition *p, int64_t *low)
{
    *low = -1;
    const struct metadata_snapshot *s = metadata_acquire(p->env->metadata);
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = partition_access_locked(p, -1, true);
    if (e == KERR_NONE) {
        *low = log_start_offset(p->log);
        pthread_mutex_lock(&p->marks);
        for (int32_t i = 0; i < p->remotes_n; i++)
            if (p->remotes[i].log_start < *low && metadata_broker(s, p->remotes[i].id))
                *low = p->remotes[i].log_start;
        pthread_mutex_unlock(&p->marks);
    }
    pthread_rwlock_unlock(&p->lock);
    metadata_release(s);
    return e;
}
