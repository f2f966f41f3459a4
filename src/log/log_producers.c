/* log_producers.c - the producers that a log knows of, for those who look at it. */
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
