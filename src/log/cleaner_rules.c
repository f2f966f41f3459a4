#include "log/cleaner_rules.h"

bool cleaner_last_of_producer(const struct batch *b, const struct cleaner_producer *p)
{
    if (!p || b->producer_id < 0)
        return false;
    if (p->last_data_offset >= 0)
        return b->last_offset == p->last_data_offset;
    return batch_is_control(b) && b->producer_epoch == p->epoch;
}

bool cleaner_drops_batch(const struct cleaner_rules *r, const struct batch *b, bool removable)
{
    if (!removable || !batch_is_control(b))
        return removable;
    int64_t horizon = cleaner_horizon(b);
    return horizon >= 0 && horizon <= r->now_ms;
}

static bool keeps_tombstone(const struct cleaner_rules *r, const struct batch *b)
{
    if (b->magic < 2)
        return r->keep_legacy_tombstones;
    int64_t horizon = cleaner_horizon(b);
    return horizon < 0 || r->now_ms < horizon;
}

bool cleaner_keeps_record(const struct cleaner_rules *r, const struct batch *b, int64_t offset,
                          bool has_key, bool has_value, int64_t newest)
{
    if (offset > r->covered_to)
        return true;
    if (!has_key) /* from a time when the topic was not compacted */
        return false;
    return offset >= newest && (has_value || keeps_tombstone(r, b));
}

static int64_t new_horizon(const struct cleaner_rules *r)
{
    int64_t t;
    return __builtin_add_overflow(r->now_ms, r->delete_retention_ms, &t) ? INT64_MAX : t;
}

struct cleaner_verdict cleaner_judge(const struct cleaner_rules *r, const struct batch *b,
                                     struct cleaner_kept kept, bool marker_removable,
                                     bool last_of_producer)
{
    int64_t horizon = cleaner_horizon(b);
    if (kept.records == 0)
        return (struct cleaner_verdict){last_of_producer ? CLEANER_HEAD : CLEANER_NOTHING, -1};
    if (b->magic == 2 && horizon < 0 && (kept.tombstone || marker_removable))
        return (struct cleaner_verdict){CLEANER_REBUILT, new_horizon(r)};
    return (struct cleaner_verdict){kept.dropped ? CLEANER_REBUILT : CLEANER_ORIGINAL, horizon};
}
