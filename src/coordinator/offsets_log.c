/* offsets_log.c - see offsets_log.h.
 *
 * One list a partition holds what waits for the high watermark, oldest first: as it moves, and as
 * time passes, appends leave at the front. The partition's waiter is hung only while the list is
 * not empty. */
#include "coordinator/offsets_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/coordinator_append.h"
#include "protocol/batch_builder.h"

#define LOG_TAG "GroupMetadataManager"

enum { TOMBSTONES_BATCH_MAX = 256 << 10 /* bytes; they must fit whatever the topic allows */ };

struct waiting { /* appends to one partition that wait for its replicas */
    struct offsets_log *owner;
    struct partition *partition; /* one reference while the list is not empty */
    struct partition_waiter waiter;
    struct list appends;
    struct task task;
    atomic_bool posted;
    struct timer deadline;
};

struct offsets_log {
    struct group_log log;
    struct offsets_log_options o;
    struct waiting *waiting; /* by number of partition */
    struct batch_builder *builder;
    bool stopped;
    atomic_int busy;
};

/* ---- ends ---- */

static void end_now(struct group_append *a)
{
    struct offsets_log *l = a->owner;
    a->done(a); /* it is its owner's again */
    atomic_fetch_sub(&l->busy, 1);
}

static void end_task(struct task *t)
{
    end_now(container_of(t, struct group_append, task));
}

static void end_later(struct offsets_log *l, struct group_append *a, enum kerr error)
{
    a->error = error;
    task_init(&a->task, end_task);
    executor_post(l->o.ex, &a->task);
}

/* ---- waiting for replicas ---- */

static void let_go(struct waiting *w)
{
    partition_unwait(&w->waiter);
    executor_timer_stop(w->owner->o.ex, &w->deadline);
    partition_unref(w->partition);
    w->partition = NULL;
}

static struct group_append *oldest(struct waiting *w)
{
    return list_empty(&w->appends) ? NULL : list_entry(w->appends.next, struct group_append, link);
}

static void arm(struct waiting *w)
{
    struct group_append *a = oldest(w);
    int64_t left = a->deadline_ms - executor_now_ms(w->owner->o.ex);
    executor_timer_start(w->owner->o.ex, &w->deadline, left > 0 ? left : 0);
}

/* Ends those at the front whose answer is known; with `over` all of them, with that error, but
 * later: the caller may be in the midst of an append. */
static void settle(struct waiting *w, enum kerr over)
{
    struct list ended;
    struct group_append *a;
    list_init(&ended);
    int64_t now = executor_now_ms(w->owner->o.ex);
    while ((a = oldest(w)) != NULL) {
        a->error = partition_check_committed(w->partition, a->required_offset, a->term);
        if (a->error == KERR_REQUEST_TIMED_OUT && over != KERR_NONE)
            a->error = over;
        else if (a->error == KERR_REQUEST_TIMED_OUT && a->deadline_ms > now)
            break;
        list_remove(&a->link);
        list_push_back(&ended, &a->link);
    }
    if (a)
        arm(w);
    else
        let_go(w);
    /* Their owners may append anew from in here. */
    struct list *l;
    while ((l = list_pop(&ended)) != NULL) {
        a = list_entry(l, struct group_append, link);
        if (over == KERR_NONE)
            end_now(a);
        else
            end_later(w->owner, a, a->error);
    }
}

static void on_wake(struct partition_waiter *pw)
{
    struct waiting *w = container_of(pw, struct waiting, waiter);
    if (!atomic_exchange(&w->posted, true))
        executor_post(w->owner->o.ex, &w->task);
}

static void look_again(struct task *t)
{
    struct waiting *w = container_of(t, struct waiting, task);
    atomic_exchange(&w->posted, false);
    if (w->partition)
        settle(w, KERR_NONE);
    if (w->owner->stopped)
        atomic_fetch_sub(&w->owner->busy, 1);
}

static void time_over(struct timer *t)
{
    settle(container_of(t, struct waiting, deadline), KERR_NONE);
}

static void wait_for_replicas(struct offsets_log *l, struct partition *p, struct group_append *a)
{
    struct waiting *w = &l->waiting[a->partition];
    if (w->partition && w->partition != p) /* that one is gone; so are its appends */
        settle(w, KERR_NOT_LEADER_OR_FOLLOWER);
    a->deadline_ms =
        executor_now_ms(l->o.ex) + (a->timeout_ms > 0 ? a->timeout_ms : l->o.timeout_ms);
    list_push_back(&w->appends, &a->link);
    if (w->partition)
        return; /* the deadline of the oldest is armed, its waiter hung */
    w->partition = partition_ref(p);
    partition_wait(p, &w->waiter);
    arm(w);
    /* What moved before the waiter hung is seen here, but not from inside the append. */
    on_wake(&w->waiter);
}

/* The append is in the log: ends it now (later), or when its replicas have it. */
static void await(struct offsets_log *l, struct partition *p, struct group_append *a)
{
    enum kerr e = l->o.required_acks == -1
                      ? partition_check_committed(p, a->required_offset, a->term)
                      : KERR_NONE;
    if (e == KERR_REQUEST_TIMED_OUT && !l->stopped)
        wait_for_replicas(l, p, a);
    else
        end_later(l, a, e);
}

/* ---- flushes that flush.messages demands before an acknowledgement ---- */

struct flushing {
    struct partition_flush flush;
    struct offsets_log *log;
    struct partition *partition;
    struct group_append *append;
};

static void flushed(struct partition_flush *pf)
{
    struct flushing *f = container_of(pf, struct flushing, flush);
    if (pf->error == KERR_NONE)
        await(f->log, f->partition, f->append);
    else
        end_later(f->log, f->append, pf->error);
    partition_unref(f->partition);
    atomic_fetch_sub(&f->log->busy, 1);
    free(f);
}

static enum kerr start_flush(struct offsets_log *l, struct partition *p, struct group_append *a,
                             int64_t up_to)
{
    struct flushing *f = calloc(1, sizeof(*f));
    if (!f)
        return KERR_UNKNOWN_SERVER_ERROR; /* it is written, but the promise is not kept */
    f->log = l;
    f->partition = partition_ref(p);
    f->append = a;
    f->flush.up_to = up_to;
    f->flush.done = flushed;
    f->flush.done_on = l->o.ex;
    atomic_fetch_add(&l->busy, 1);
    partition_flush(p, l->o.workers, &f->flush);
    return KERR_NONE;
}

/* ---- batches ---- */

static struct batch_options options_of(const struct offsets_log *l, int64_t producer_id,
                                       int16_t producer_epoch)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.codec = l->o.codec;
    o.producer_id = producer_id;
    o.producer_epoch = producer_epoch;
    o.transactional = producer_id >= 0;
    o.base_sequence = producer_id >= 0 ? 0 : -1;
    return o;
}

/* As many of the records as `max` bytes take (one at least) become a batch. Returns how many, or
 * -ENOMEM, -EMSGSIZE. */
static int build(struct offsets_log *l, const struct batch_options *o, int64_t now_ms,
                 const struct group_record *r, int n, size_t max, struct buf *out)
{
    int rc = 0, i = 0;
    batch_builder_reset(l->builder, o);
    for (; i < n && rc == 0; i++) {
        if (i > 0 && batch_builder_size(l->builder) + (size_t)r[i].key.len > max)
            break;
        rc = batch_builder_add(l->builder, i, now_ms, r[i].key, r[i].value, NULL, 0);
    }
    if (!rc)
        rc = batch_builder_finish(l->builder, out);
    return rc ? rc : i;
}

static struct partition *find(struct offsets_log *l, int32_t number, enum kerr *why)
{
    struct topic_partition tp = {l->o.topic, number};
    if (!l->stopped)
        return replica_manager_find(l->o.replicas, tp, why);
    *why = KERR_NOT_LEADER_OR_FOLLOWER;
    return NULL;
}

static enum kerr write_batch(struct offsets_log *l, struct partition *p, struct group_append *a,
                             const struct group_record *r, int n, struct partition_append *done,
                             int64_t *flush_messages)
{
    struct batch_options o = options_of(l, a->producer_id, a->producer_epoch);
    struct buf bytes = BUF_INIT;
    int64_t now = clock_wall_ms(l->o.ex->clock);
    int built = build(l, &o, now, r, n, SIZE_MAX, &bytes);
    enum kerr e = built >= 0           ? KERR_NONE
                  : built == -EMSGSIZE ? KERR_MESSAGE_TOO_LARGE
                                       : KERR_UNKNOWN_SERVER_ERROR;
    if (e == KERR_NONE)
        e = coordinator_append(p, &bytes, a->txn_guard, l->o.required_acks, now, done,
                               flush_messages);
    buf_free(&bytes);
    return e;
}

/* ---- the interface ---- */

static void append(struct group_log *log, struct group_append *a, const struct group_record *r,
                   int n)
{
    struct offsets_log *l = container_of(log, struct offsets_log, log);
    struct partition_append done;
    int64_t flush_messages;
    enum kerr e = KERR_NONE;
    struct partition *p = find(l, a->partition, &e);
    a->base_offset = -1;
    a->owner = l;
    list_init(&a->link);
    atomic_fetch_add(&l->busy, 1);
    if (p)
        e = write_batch(l, p, a, r, n, &done, &flush_messages);
    if (e == KERR_NONE) {
        a->base_offset = done.info.first_offset;
        a->required_offset = done.required_offset;
        a->term = done.term;
        if (done.info.rolled)
            partition_flush_soon(p, l->o.workers);
        if (!done.info.needs_flush)
            await(l, p, a);
        else
            e = start_flush(l, p, a, done.required_offset - flush_messages + 1);
    }
    if (e != KERR_NONE)
        end_later(l, a, e);
    partition_unref(p);
}

static enum kerr append_now(struct group_log *log, int32_t number, const struct group_record *r,
                            int n)
{
    struct offsets_log *l = container_of(log, struct offsets_log, log);
    struct batch_options o = options_of(l, -1, -1);
    enum kerr e = KERR_NONE;
    struct partition *p = find(l, number, &e);
    struct buf bytes = BUF_INIT;
    int64_t now = clock_wall_ms(l->o.ex->clock);
    while (p && n > 0 && e == KERR_NONE) {
        struct partition_append done;
        int64_t flush_messages;
        bytes.len = 0;
        int built = build(l, &o, now, r, n, TOMBSTONES_BATCH_MAX, &bytes);
        e = built > 0 ? coordinator_append(p, &bytes, 0, 0, now, &done, &flush_messages)
                      : KERR_UNKNOWN_SERVER_ERROR;
        if (e == KERR_NONE && (done.info.rolled || done.info.needs_flush))
            partition_flush_soon(p, l->o.workers);
        r += built;
        n -= built;
    }
    buf_free(&bytes);
    partition_unref(p);
    return e;
}

/* ---- life ---- */

static const struct group_log_ops ops = {append, append_now};

int offsets_log_new(const struct offsets_log_options *o, struct offsets_log **out)
{
    struct offsets_log *l = *out = calloc(1, sizeof(*l));
    struct batch_options options = BATCH_OPTIONS_DEFAULT;
    if (!l)
        return -ENOMEM;
    l->log.ops = &ops;
    l->o = *o;
    atomic_init(&l->busy, 0);
    l->builder = batch_builder_new(&options);
    l->waiting = calloc((size_t)o->partitions_n, sizeof(*l->waiting));
    if (!l->builder || !l->waiting) {
        offsets_log_free(l);
        *out = NULL;
        return -ENOMEM;
    }
    for (int32_t i = 0; i < o->partitions_n; i++) {
        struct waiting *w = &l->waiting[i];
        w->owner = l;
        w->waiter.wake = on_wake;
        list_init(&w->appends);
        task_init(&w->task, look_again);
        atomic_init(&w->posted, false);
        timer_init(&w->deadline, time_over);
    }
    return 0;
}

struct group_log *offsets_log_of(struct offsets_log *l)
{
    return &l->log;
}

void offsets_log_stop(struct offsets_log *l)
{
    if (l->stopped)
        return;
    l->stopped = true;
    for (int32_t i = 0; i < l->o.partitions_n; i++) {
        struct waiting *w = &l->waiting[i];
        if (w->partition)
            settle(w, KERR_NOT_LEADER_OR_FOLLOWER);
        if (atomic_load(&w->posted)) /* no wake comes any more, but its task is in the queue */
            atomic_fetch_add(&l->busy, 1);
    }
}

int offsets_log_busy(const struct offsets_log *l)
{
    return atomic_load(&l->busy);
}

void offsets_log_free(struct offsets_log *l)
{
    if (!l)
        return;
    batch_builder_free(l->builder);
    free(l->waiting);
    free(l);
}
