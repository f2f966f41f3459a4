/* partition_read.c - what fetchers and those who ask for offsets are shown.
 *
 * All checks of a read and the read itself happen under one hold of the lock, so that the epoch
 * that was checked is the epoch that was read. Files are searched for times only after it has been
 * let go. */
#include "base/clock.h"
#include "replica/partition_private.h"

/* A follower gets no record that could go with the leader's power (flush.messages): the leader,
 * back in the same epoch, would put another one in its place, and nobody could tell them apart.
 * What it has already is no reason to answer. */
static int64_t replica_bound_locked(const struct partition *p, int64_t offset)
{
    int64_t end = log_end_offset(p->log), safe = log_flush_bound(p->log);
    if (safe < offset)
        safe = offset;
    return safe < end ? safe : end;
}

static int64_t bound_locked(const struct partition *p, int32_t replica_id, int64_t offset,
                            enum isolation isolation)
{
    if (replica_id >= 0)
        return replica_bound_locked(p, offset);
    return isolation == READ_COMMITTED ? log_last_stable_offset(p->log)
                                       : log_high_watermark(p->log);
}

/* Is the fetcher's log another one than ours, seen from the epoch of its last record? */
static enum kerr check_divergence(struct partition *p, const struct partition_read_args *args,
                                  struct partition_read *out)
{
    if (args->last_fetched_epoch < 0)
        return KERR_NONE;
    int32_t epoch;
    int64_t end;
    log_end_offset_for_epoch(p->log, args->last_fetched_epoch, &epoch, &end);
    if (epoch < 0 || end < 0)
        return KERR_OFFSET_OUT_OF_RANGE;
    if (args->offset < log_start_offset(p->log))
        return KERR_OFFSET_OUT_OF_RANGE;
    if (epoch < args->last_fetched_epoch || end < args->offset) {
        out->diverging_epoch = epoch;
        out->diverging_end_offset = end;
    }
    return KERR_NONE;
}

static enum kerr access(struct partition *p, const struct partition_read_args *args)
{
    enum kerr e = partition_access_locked(p, args->current_leader_epoch, args->leader_only);
    if (e == KERR_NONE && args->replica_id >= 0 && !partition_remote_locked(p, args->replica_id))
        e = args->current_leader_epoch >= 0 ? KERR_UNKNOWN_LEADER_EPOCH
                                            : KERR_NOT_LEADER_OR_FOLLOWER;
    return e;
}

static struct partition_read nothing_read(void)
{
    return (struct partition_read){.slice = {.first_offset = -1},
                                   .high_watermark = -1,
                                   .last_stable_offset = -1,
                                   .log_start_offset = -1,
                                   .log_end_offset = -1,
                                   .diverging_epoch = -1,
                                   .diverging_end_offset = -1,
                                   .aborted_n = -1};
}

static enum kerr read_slice(struct partition *p, const struct partition_read_args *args,
                            struct arena *a, struct partition_read *out)
{
    int64_t bound = bound_locked(p, args->replica_id, args->offset, args->isolation);
    if (a && args->replica_id < 0 && args->isolation == READ_COMMITTED)
        return (args->now ? log_read_committed_now : log_read_committed)(
            p->log, args->offset, args->max_bytes, bound, args->min_one, args->hard_limit, a,
            &out->slice, &out->aborted, &out->aborted_n);
    return (args->now ? log_read_now : log_read)(p->log, args->offset, args->max_bytes, bound,
                                                 args->min_one, args->hard_limit, &out->slice);
}

/* *joins: it may be ripe for the ISR. */
static bool note_follower(struct partition *p, const struct partition_read_args *args, int64_t end,
                          bool *joins)
{
    pthread_mutex_lock(&p->marks);
    struct remote_replica *r = partition_remote_locked(p, args->replica_id);
    bool news = r->log_start < args->fetcher_log_start, grew = r->log_end < args->offset;
    remote_replica_fetched(r, args->offset, args->fetcher_log_start, end,
                           clock_mono_ms(p->env->clock));
    *joins = partition_may_join_locked(p, r);
    pthread_mutex_unlock(&p->marks);
    if (grew && !partition_isr_enough_locked(p))
        news = true; /* nothing else tells who waits for partition_check_held */
    return partition_advance_locked(p) || news;
}

enum kerr partition_read(struct partition *p, const struct partition_read_args *args,
                         struct arena *a, struct partition_read *out)
{
    *out = nothing_read();
    bool moved = false, joins = false;
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = access(p, args);
    if (e == KERR_NONE) {
        /* In this order: appends go on meanwhile, and what is told must not decrease. */
        out->log_start_offset = log_start_offset(p->log);
        out->last_stable_offset = log_last_stable_offset(p->log);
        out->high_watermark = log_high_watermark(p->log);
        /* Before the read: what the fetcher could have had. */
        int64_t end =
            args->replica_id >= 0 ? replica_bound_locked(p, args->offset) : log_end_offset(p->log);
        out->log_end_offset = end;
        e = check_divergence(p, args, out);
        if (e == KERR_NONE && out->diverging_epoch < 0) {
            e = read_slice(p, args, a, out);
            if (e == KERR_NONE && args->replica_id >= 0 && !args->reread)
                moved = note_follower(p, args, end, &joins);
        }
    }
    pthread_rwlock_unlock(&p->lock);
    if (joins)
        partition_grow_isr(p, args->replica_id);
    if (moved)
        partition_wake(p);
    if (e != KERR_NONE)
        *out = nothing_read();
    return e;
}

enum kerr partition_probe(struct partition *p, const struct partition_read_args *args,
                          int64_t *bound, bool *diverges)
{
    struct partition_read found = nothing_read();
    *bound = -1;
    *diverges = false;
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = access(p, args);
    if (e == KERR_NONE) {
        *bound = bound_locked(p, args->replica_id, args->offset, args->isolation);
        e = check_divergence(p, args, &found);
        *diverges = found.diverging_epoch >= 0;
    }
    pthread_rwlock_unlock(&p->lock);
    return e;
}

/* ---- offsets by time and by epoch ---- */

struct lookup_view { /* what the search goes by, taken under the lock */
    struct log *log; /* one reference */
    int64_t bound;
    int32_t leader_epoch;
    bool behind_epoch; /* consumer, and the high watermark is below the start of our epoch */
};

static enum kerr take_view(struct partition *p, int32_t replica_id, enum isolation isolation,
                           int32_t current_leader_epoch, struct lookup_view *v)
{
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = partition_access_locked(p, current_leader_epoch, replica_id != -2);
    if (e == KERR_NONE) {
        v->log = log_ref(p->log);
        v->bound = replica_id == -1 ? bound_locked(p, -1, -1, isolation) : log_end_offset(p->log);
        v->leader_epoch = atomic_load(&p->leader_epoch);
        v->behind_epoch = replica_id == -1 && p->epoch_start > log_high_watermark(p->log);
    }
    pthread_rwlock_unlock(&p->lock);
    return e;
}

enum kerr partition_list_offset(struct partition *p, int32_t replica_id, enum isolation isolation,
                                int64_t timestamp, int32_t current_leader_epoch,
                                struct offset_lookup *out)
{
    *out = (struct offset_lookup){-1, -1, -1};
    struct lookup_view v;
    enum kerr e = take_view(p, replica_id, isolation, current_leader_epoch, &v);
    if (e != KERR_NONE)
        return e;
    if (timestamp == LIST_LATEST) {
        if (v.behind_epoch)
            e = KERR_OFFSET_NOT_AVAILABLE;
        else
            *out = (struct offset_lookup){v.bound, -1, v.leader_epoch};
    } else if (timestamp != LIST_LATEST_TIERED) {
        e = log_lookup(v.log, timestamp, v.bound, out);
        if (e == KERR_NONE && out->offset < 0 && timestamp != LIST_EARLIEST &&
            timestamp != LIST_EARLIEST_LOCAL && v.behind_epoch)
            e = KERR_OFFSET_NOT_AVAILABLE;
    }
    log_unref(v.log);
    return e;
}

enum kerr partition_offsets_before(struct partition *p, int32_t replica_id, int64_t timestamp,
                                   int max, struct arena *a, int64_t **offsets, int *n)
{
    *offsets = NULL;
    *n = 0;
    struct lookup_view v;
    enum kerr e = take_view(p, replica_id, READ_UNCOMMITTED, -1, &v);
    if (e != KERR_NONE)
        return e;
    e = log_offsets_before(v.log, timestamp, v.bound, max, a, offsets, n);
    log_unref(v.log);
    return e;
}

enum kerr partition_epoch_end(struct partition *p, int32_t current_leader_epoch, int32_t epoch,
                              int32_t *found_epoch, int64_t *end_offset)
{
    *found_epoch = -1;
    *end_offset = -1;
    pthread_rwlock_rdlock(&p->lock);
    enum kerr e = partition_access_locked(p, current_leader_epoch, true);
    if (e == KERR_NONE)
        log_end_offset_for_epoch(p->log, epoch, found_epoch, end_offset);
    pthread_rwlock_unlock(&p->lock);
    return e;
}
