/* partition_flush.c - group commit: the fsyncs that appends wait for, gathered.
 *
 * One job at a time is on its way for a partition, so that many producers waiting for one slow disk
 * take one worker, not all. A flush covers what was appended before it began; who came later is
 * served by the next round. */
#include "replica/partition_private.h"

static void flush_told(struct task *t)
{
    struct partition_flush *f = container_of(t, struct partition_flush, task);
    f->done(f);
}

/* Takes off those whose wait is over; false: none is left and nothing more was asked for, so the
 * job has ended. */
static bool settle(struct partition *p, int64_t reached, enum kerr error, struct list *over)
{
    pthread_mutex_lock(&p->flush_lock);
    list_each_safe (it, &p->flushes) {
        struct partition_flush *f = list_entry(it, struct partition_flush, link);
        if (error == KERR_NONE && f->up_to > reached)
            continue;
        f->error = error;
        list_remove(it);
        list_push_back(over, it);
    }
    bool more = !list_empty(&p->flushes) || p->flush_again;
    p->flush_again = false;
    p->flush_running = more;
    pthread_mutex_unlock(&p->flush_lock);
    return more;
}

static void flush_work(struct job *job)
{
    struct partition *p = container_of(job, struct partition, flush_job);
    bool more;
    do {
        struct log *log = partition_log(p);
        enum kerr e = log ? log_flush(log) : KERR_KAFKA_STORAGE_ERROR;
        int64_t reached = log ? log_recovery_point(log) : -1;
        if (log)
            log_unref(log);
        struct list over = LIST_INIT(over);
        more = settle(p, reached, e, &over);
        for (struct list *it; (it = list_pop(&over)) != NULL;) {
            struct partition_flush *f = list_entry(it, struct partition_flush, link);
            executor_post(f->done_on, &f->task);
        }
    } while (more);
    partition_unref(p);
}

static void start_locked(struct partition *p, struct workers *w)
{
    if (p->flush_running)
        return;
    p->flush_running = true;
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
