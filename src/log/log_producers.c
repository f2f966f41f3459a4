/* log_producers.c - the producers that a log knows of, for those who look at it, or are about to
 * append. */
#include "log/log_private.h"

int log_active_producers(struct log *log, struct arena *a, struct active_producer **out)
{
    int n = 0;
    pthread_mutex_lock(&log->lock);
    *out = arena_array(a, struct active_producer, producer_state_count(&log->producers));
    if (*out) {
        hmap_each (h, &log->producers.by_id) {
            const struct producer *p = hmap_entry(h, struct producer, node);
            if (p->epoch < 0)
                continue;
            (*out)[n++] = (struct active_producer){
                .id = p->id,
                .epoch = p->epoch,
                .last_sequence = p->batches_n ? p->batches[p->newest].last_sequence : -1,
                .last_timestamp = p->last_timestamp,
                .coordinator_epoch = p->coordinator_epoch,
                .txn_first_offset = p->txn_first_offset};
        }
    }
    pthread_mutex_unlock(&log->lock);
    return *out ? n : -ENOMEM;
}

void log_count_producers(struct log *log, struct log_producer_counts *out)
{
    pthread_mutex_lock(&log->lock);
    const struct list *open = &log->producers.open;
    *out = (struct log_producer_counts){(int64_t)log->producers.by_id.n, -1};
    if (open->next && !list_empty(open)) /* without producers it is not made */
        out->oldest_txn_ms = list_entry(open->next, struct producer, open)->last_timestamp;
    pthread_mutex_unlock(&log->lock);
}

bool log_begin_txn(struct log *log, int64_t producer_id, int16_t epoch, int32_t sequence,
                   int64_t now_ms, uint64_t *guard)
{
    pthread_mutex_lock(&log->lock);
    bool open = producer_has_open_txn(&log->producers, producer_id);
    *guard = open ? TXN_GUARD_NONE
                  : txn_guards_begin(&log->guards, producer_id, epoch, sequence, now_ms);
    pthread_mutex_unlock(&log->lock);
    return !open;
}
