/* partition_flush.c - group commit: the fsyncs that appends wait for, gathered.
 *
 * One job at a time is on its way for a partition, so that many producers waiting for one slow disk
 * take one worker, not all. A flush covers what was appended before it began; who came later is
 * served by the next round, which is a job of its own. */
#include "replica/partition_private.h"

static void flush_told(struct task *t)
{
    struct partition_flush *f = container_of(t, struct partition_flush, task);
    f->done(f);
}

/* Is the wait over after a flush? Under flush_lock, so that the log ends behind all that was
 * appended before the flush was asked for. */
static bool is_over(struct partition_flush *f, const struct log *log, enum kerr error)
{
    f->error = error;
    if (error != KERR_NONE || f->up_to <= log_recovery_point(log))
        return true;
    if (f->up_to <= log_end_offset(log))
        return false;
    f->error = KERR_NOT_LEADER_OR_FOLLOWER; /* cut off meanwhile: no flush gets there */
    return true;
}

/* Takes off those whose wait is over; false: none is left and nothing more was asked for, so the
 * job has ended. */
static bool settle(struct partition *p, const struct log *log, enum kerr error, struct list *over)
{
    pthread_mutex_lock(&p->flush_lock);
    list_each_safe (it, &p->flushes) {
        struct partition_flush *f = list_entry(it, struct partition_flush, link);
        if (!is_over(f, log, error))
            continue;
        list_remove(it);
        list_push_back(over, it);
    }
    bool more = !list_empty(&p->flushes) || p->flush_again;
    p->flush_again = false;
    p->flush_running = more;
    pthread_mutex_unlock(&p->flush_lock);
    return more;
}

/* *log: what was flushed, owned; NULL without one. A log that has been moved to another dir
 * meanwhile is gone, and what was in it is in the other one. */
static enum kerr flush_current(struct partition *p, struct log **log)
{
    enum kerr e = KERR_KAFKA_STORAGE_ERROR;
    struct log *before = NULL;
    *log = partition_log(p);
    while (*log && *log != before && (e = log_flush(*log)) != KERR_NONE) {
        log_unref(before);
        before = *log;
        *log = partition_log(p);
    }
    log_unref(before);
    return e;
}

enum kerr partition_flush_now(struct partition *p)
{
    struct log *log;
    enum kerr e = flush_current(p, &log);
    if (log)
        log_unref(log);
    return e;
}

/* What is flushed may be committed by that, and goes to followers. */
static void count_flushed(struct partition *p)
{
    bool moved = false, holds_back = false;
    pthread_rwlock_rdlock(&p->lock);
    if (atomic_load(&p->role) == PARTITION_LEADER)
        moved = partition_advance_locked(p);
    if (p->log)
        holds_back = log_flush_bound(p->log) != INT64_MAX;
    pthread_rwlock_unlock(&p->lock);
    if (moved || holds_back)
        partition_wake(p);
}

/* One round. Who came meanwhile waits for another one behind the workers' other jobs: a busy
 * partition must not keep a worker. */
static void flush_work(struct job *job)
{
    struct partition *p = container_of(job, struct partition, flush_job);
    struct log *log;
    enum kerr e = flush_current(p, &log);
    if (e == KERR_NONE)
        count_flushed(p);
    struct list over = LIST_INIT(over);
    bool more = settle(p, log, e, &over);
    if (log)
        log_unref(log);
    for (struct list *it; (it = list_pop(&over)) != NULL;) {
        struct partition_flush *f = list_entry(it, struct partition_flush, link);
        executor_post(f->done_on, &f->task);
    }
    if (more)
        workers_submit(p->flush_workers, &p->flush_job);
    else
        partition_unref(p);
}

static void start_locked(struct partition *p, struct workers *w)
{
    if (p->flush_running)
        return;
    p->flush_running = true;
    p->flush_workers = w;
    partition_ref(p);
    p->flush_job.work = flush_work;
    p->flush_job.done = NULL;
    workers_submit(w, &p->flush_job);
}

void partition_flush(struct partition *p, struct workers *w, struct partition_flush *f)
{
    list_init(&f->link);
    task_init(&f->task, flush_told);
    f->error = KERR_NONE;
    pthread_mutex_lock(&p->flush_lock);
    list_push_back(&p->flushes, &f->link);
    start_locked(p, w);
    pthread_mutex_unlock(&p->flush_lock);
}

void partition_flush_soon(struct partition *p, struct workers *w)
{
    pthread_mutex_lock(&p->flush_lock);
    if (p->flush_running)
        p->flush_again = true;
    start_locked(p, w);
    pthread_mutex_unlock(&p->flush_lock);
}
