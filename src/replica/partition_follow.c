/* partition_follow.c - see partition_follow.h. */
#include "replica/partition_follow.h"

#include "base/logline.h"
#include "replica/partition_private.h"

/* A shortage (descriptors, memory) may pass, a dir that failed does not. */
static enum kerr failure_in(const struct log *log, enum kerr e)
{
    return e == KERR_KAFKA_STORAGE_ERROR && !log_dir_offline(log_dir_of(log))
               ? KERR_UNKNOWN_SERVER_ERROR
               : e;
}

/* What the next fetch asks for tells the leader what is safe here: so flush.messages is kept
 * first. No lock held: the log may go meanwhile. */
static enum kerr flush_if_due(struct partition *p)
{
    struct log *log = partition_log(p);
    bool due = log && log_flush_bound(log) < log_end_offset(log);
    enum kerr e = due ? partition_flush_now(p) : KERR_NONE;
    if (log)
        log_unref(log);
    if (e == KERR_NONE)
        return e;
    log = partition_log(p); /* it may have been moved to another dir */
    if (!log)
        return atomic_load(&p->role) == PARTITION_OFFLINE ? KERR_KAFKA_STORAGE_ERROR
                                                          : KERR_NOT_LEADER_OR_FOLLOWER;
    e = failure_in(log, e);
    log_unref(log);
    return e;
}

/* With the lock held for reading on success: roles stay while the log is worked on. */
static enum kerr enter(struct partition *p, int32_t leader_epoch)
{
    pthread_rwlock_rdlock(&p->lock);
    int role = atomic_load_explicit(&p->role, memory_order_relaxed);
    enum kerr e = KERR_NONE;
    if (role == PARTITION_OFFLINE)
        e = KERR_KAFKA_STORAGE_ERROR;
    else if (role != PARTITION_FOLLOWER || atomic_load(&p->leader_epoch) != leader_epoch)
        e = KERR_NOT_LEADER_OR_FOLLOWER;
    if (e != KERR_NONE)
        pthread_rwlock_unlock(&p->lock);
    return e;
}

/* As above, to change the log as it was seen. `following` is held on success. */
static enum kerr enter_to_change(struct partition *p, int32_t leader_epoch, struct follow_seen seen)
{
    enum kerr e = enter(p, leader_epoch);
    if (e != KERR_NONE)
        return e;
    pthread_mutex_lock(&p->following);
    if (log_end_offset(p->log) == seen.end && atomic_load(&p->cuts) == seen.cuts)
        return KERR_NONE;
    pthread_mutex_unlock(&p->following);
    pthread_rwlock_unlock(&p->lock);
    return KERR_OFFSET_OUT_OF_RANGE;
}

static void look(struct partition *p, struct follow_view *out)
{
    out->log_start = log_start_offset(p->log);
    out->cuts = atomic_load(&p->cuts); /* before the end: one that was cut meanwhile is noticed */
    out->log_end = log_end_offset(p->log);
    out->high_watermark = log_high_watermark(p->log);
    out->latest_epoch = log_latest_epoch(p->log);
}

static void leave(struct partition *p, struct follow_view *view)
{
    look(p, view);
    pthread_rwlock_unlock(&p->lock);
}

/* Returns what became of it. */
static enum kerr leave_changed(struct partition *p, enum kerr e, struct follow_view *view)
{
    e = failure_in(p->log, e);
    look(p, view);
    pthread_mutex_unlock(&p->following);
    pthread_rwlock_unlock(&p->lock);
    return e;
}

enum kerr partition_follow_view(struct partition *p, int32_t leader_epoch, struct follow_view *out)
{
    enum kerr e = enter(p, leader_epoch);
    if (e == KERR_NONE)
        leave(p, out);
    return e == KERR_NONE ? flush_if_due(p) : e;
}

/* ---- append ---- */

const struct append_policy partition_replicated = {.origin = APPEND_REPLICATION,
                                                   .produce_version = -1,
                                                   .max_message_bytes = INT32_MAX,
                                                   .compression = COMPRESSION_PRODUCER,
                                                   .before_max_ms = INT64_MAX,
                                                   .after_max_ms = INT64_MAX};

/* The leader's log may begin in the middle of a batch: an empty log then begins with that batch. */
static enum kerr begin_at_batch(struct partition *p, const struct prepared *pr)
{
    int64_t first = pr->batches[0].head.base_offset, end = log_end_offset(p->log);
    if (first >= end || log_start_offset(p->log) != end)
        return KERR_NONE;
    say_info("ReplicaManager", "%s-%d: the leader's log begins inside the batch at %lld", p->topic,
             (int)p->number, (long long)first);
    return log_truncate_fully(p->log, first);
}

static void count_bytes(struct partition *p, size_t n)
{
    struct replica_counts *c = p->env->counts;
    metric_spread_add(&c->bytes_in, n);
    if (p->adding)
        metric_spread_add(&c->moved_in, n);
}

static enum kerr append_locked(struct partition *p, struct prepared *pr)
{
    struct append_info info;
    enum kerr e = begin_at_batch(p, pr);
    if (e == KERR_NONE)
        e = log_append_as_follower(p->log, pr, &info);
    if (e == KERR_NONE)
        count_bytes(p, pr->len);
    if (e == KERR_NONE && info.rolled && p->env->workers)
        partition_flush_soon(p, p->env->workers);
    return e;
}

/* Before the log start: that may not be above the watermark. */
static enum kerr take_marks(struct partition *p, const struct follow_append *a, bool *moved)
{
    int64_t before = log_high_watermark(p->log);
    int64_t now = log_set_high_watermark(p->log, a->leader_high_watermark);
    if (now < before)
        say_info("ReplicaManager",
                 "%s-%d: high watermark goes down from %lld to %lld, its leader's", p->topic,
                 (int)p->number, (long long)before, (long long)now);
    *moved = now != before;
    int64_t start = a->leader_log_start;
    if (start <= log_start_offset(p->log))
        return KERR_NONE;
    /* a start above our watermark lifts it, where there are records */
    if (start > now && start <= log_end_offset(p->log))
        log_set_high_watermark(p->log, start);
    else if (start > now)
        return KERR_NONE; /* what we lack of the leader is found out by the next fetch */
    return log_raise_start_offset(p->log, start);
}

static void note_lag(struct partition *p, int64_t leader_high_watermark)
{
    int64_t lag = leader_high_watermark - log_end_offset(p->log);
    atomic_store_explicit(&p->lag, lag > 0 ? lag : 0, memory_order_relaxed);
}

enum kerr partition_follow_append(struct partition *p, const struct follow_append *a,
                                  struct follow_view *view)
{
    struct arena arena;
    struct prepared pr = {.batches_n = 0};
    bool moved = false;
    enum kerr e = KERR_NONE;
    arena_init(&arena, 0); /* bounded by the fetch answer */
    /* Checksums are looked at without the lock. Replicated bytes are left as they are. */
    if (a->len > 0)
        e = records_prepare(&partition_replicated, (uint8_t *)a->records, (size_t)a->len, &arena,
                            &pr);
    if (e == KERR_NONE && (e = enter_to_change(p, a->leader_epoch, a->seen)) == KERR_NONE) {
        if (pr.batches_n > 0)
            e = append_locked(p, &pr);
        if (e == KERR_NONE)
            e = take_marks(p, a, &moved);
        if (e == KERR_NONE)
            note_lag(p, a->leader_high_watermark);
        e = leave_changed(p, e, view);
    }
    if (a->len > 0)
        prepared_free(&pr);
    arena_free(&arena);
    if (moved)
        partition_wake(p);
    return e == KERR_NONE ? flush_if_due(p) : e;
}

/* ---- cuts ---- */

static void note_cut(struct partition *p, int64_t end_before)
{
    if (log_end_offset(p->log) != end_before)
        atomic_fetch_add(&p->cuts, 1);
}

static enum kerr cut_locked(struct partition *p, int64_t offset)
{
    int64_t end = log_end_offset(p->log), hw = log_high_watermark(p->log);
    if (offset < end)
        say_info("ReplicaManager", "%s-%d: cut from %lld to %lld%s, as its leader's log is",
                 p->topic, (int)p->number, (long long)end, (long long)offset,
                 offset < hw ? ", below the high watermark" : "");
    enum kerr e = log_truncate_to(p->log, offset < end ? offset : end);
    note_cut(p, end);
    return e;
}

enum kerr partition_follow_truncate(struct partition *p, int32_t leader_epoch,
                                    struct follow_seen seen, int64_t offset,
                                    struct follow_view *view)
{
    enum kerr e = enter_to_change(p, leader_epoch, seen);
    if (e != KERR_NONE)
        return e;
    e = cut_locked(p, offset);
    e = leave_changed(p, e, view);
    partition_wake(p);
    return e;
}

enum kerr partition_follow_restart(struct partition *p, int32_t leader_epoch,
                                   struct follow_seen seen, int64_t offset,
                                   struct follow_view *view)
{
    enum kerr e = enter_to_change(p, leader_epoch, seen);
    if (e != KERR_NONE)
        return e;
    say_warn("ReplicaManager", "%s-%d: dropped, and begun anew at %lld, where its leader begins",
             p->topic, (int)p->number, (long long)offset);
    e = log_truncate_fully(p->log, offset);
    note_cut(p, seen.end);
    e = leave_changed(p, e, view);
    partition_wake(p);
    return e;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum kerr partition_follow_diverged(struct partition *p, int32_t leader_epoch,
                                    struct follow_seen seen, int32_t their_epoch, int64_t their_end,
                                    bool *sure, struct follow_view *view)
{
    *sure = true;
    enum kerr e = enter_to_change(p, leader_epoch, seen);
    if (e != KERR_NONE)
        return e;
    int64_t to = least(their_end, seen.end);
    if (their_epoch >= 0) {
        int32_t epoch;
        int64_t ours;
        log_end_offset_for_epoch(p->log, their_epoch, &epoch, &ours);
        if (epoch == their_epoch)
            to = least(ours, to);
        else if (epoch >= 0) { /* an epoch that the leader may not have either */
            to = least(ours, seen.end);
            *sure = false;
        }
    }
    e = cut_locked(p, to);
    e = leave_changed(p, e, view);
    partition_wake(p);
    return e;
}
