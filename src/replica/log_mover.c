/* log_mover.c - the threads and the list of moves; see log_mover.h. One piece of a move is copied
 * by log_copy.c.
 *
 * A move that cannot go on now (its partition has no role yet) is looked at again after a while;
 * one that waits for its rate, too. */
#include "replica/log_mover.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cond.h"
#include "base/logline.h"
#include "base/thread.h"
#include "replica/log_copy.h"

enum { RETRY_MS = 500, PIECE_BYTES = 1 << 20, THREADS_MAX = 64 };

static const char component[] = "LogMover";

struct move {
    struct list link;
    struct topic_partition tp; /* the topic's text lies behind */
    bool busy;                 /* a thread has it */
    bool cancelled;            /* whoever has it is to let go */
    bool paused;               /* the cleaner is kept off `from` */
    struct log *from;          /* one reference while paused */
    int64_t not_before_ms;     /* monotonic */
};

struct log_mover {
    struct log_mover_options o;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct list moves; /* in order of topic and partition */
    struct rate rate;
    bool stopping;
    int threads_n;
    pthread_t threads[THREADS_MAX];
};

/* ---- the list; the lock is held ---- */

static int compare(struct topic_partition a, struct topic_partition b)
{
    int c = str_cmp(a.topic, b.topic);
    return c ? c : (a.partition > b.partition) - (a.partition < b.partition);
}

static struct move *find(struct log_mover *m, struct topic_partition tp)
{
    list_each (at, &m->moves) {
        struct move *v = list_entry(at, struct move, link);
        if (compare(v->tp, tp) == 0)
            return v;
    }
    return NULL;
}

static int add(struct log_mover *m, struct topic_partition tp)
{
    if (find(m, tp))
        return 0;
    struct move *v = calloc(1, sizeof(*v) + (size_t)tp.topic.len);
    if (!v)
        return -ENOMEM;
    v->tp = tp;
    v->tp.topic.p = memcpy(v + 1, tp.topic.p, (size_t)tp.topic.len);
    struct list *before = m->moves.next;
    while (before != &m->moves && compare(list_entry(before, struct move, link)->tp, tp) < 0)
        before = before->next;
    list_push_back(before, &v->link);
    pthread_cond_broadcast(&m->changed);
    return 0;
}

static void resume_cleaner(struct log_mover *m, struct move *v)
{
    if (!v->paused)
        return;
    cleaner_resume(m->o.cleaner(m->o.arg), v->from);
    log_unref(v->from);
    v->from = NULL;
    v->paused = false;
}

static void drop(struct log_mover *m, struct move *v)
{
    resume_cleaner(m, v);
    list_remove(&v->link);
    free(v);
    pthread_cond_broadcast(&m->changed);
}

/* The next one that may go on now. *wait_ms: how long none can; -1 = there is none. */
static struct move *next(struct log_mover *m, int64_t *wait_ms)
{
    int64_t now = clock_mono_ms(m->o.clock);
    *wait_ms = list_empty(&m->moves) ? -1 : RETRY_MS;
    list_each (at, &m->moves) {
        struct move *v = list_entry(at, struct move, link);
        if (v->busy || v->cancelled)
            continue;
        if (v->not_before_ms <= now)
            return v;
        if (v->not_before_ms - now < *wait_ms)
            *wait_ms = v->not_before_ms - now;
    }
    return NULL;
}

/* ---- one piece ---- */

/* The cleaner must not replace segments that are being read. Without the lock; `v` is ours. */
static void pause_cleaner(struct log_mover *m, struct move *v, struct log *from)
{
    struct cleaner *c = m->o.cleaner ? m->o.cleaner(m->o.arg) : NULL;
    if (!c || v->paused)
        return;
    cleaner_pause(c, from);
    v->from = log_ref(from);
    v->paused = true;
}

/* Is the log that is copied in a dir that has failed? Then the copy may be all that is left of it.
 */
static bool source_failed(const struct partition *p, enum kerr why, const struct log *from)
{
    return p ? from && log_offline(from) : why == KERR_KAFKA_STORAGE_ERROR;
}

/* Without the lock. *copied: bytes. A copy that cannot be finished goes; one whose log is lost with
 * its dir is kept, and goes on after a start at which the log is there again. */
static enum copy_result copy_piece(struct log_mover *m, struct move *v, int64_t *copied)
{
    enum kerr why = KERR_NONE;
    *copied = 0;
    struct log *to = log_manager_future(m->o.logs, v->tp);
    if (!to)
        return COPY_FAILED;
    struct partition *p = replica_manager_find(m->o.replicas, v->tp, &why);
    struct log *from = p ? partition_log(p) : NULL;
    enum copy_result r = COPY_WAIT;
    if (log_offline(to) || source_failed(p, why, from)) {
        r = COPY_FAILED;
    } else if (from) {
        pause_cleaner(m, v, from);
        r = log_copy_piece(p, from, to, m->o.logs,
                           m->o.piece_bytes ? m->o.piece_bytes : PIECE_BYTES, copied);
    }
    if (r == COPY_FAILED && !source_failed(p, why, from))
        log_manager_drop_future(m->o.logs, to);
    log_unref(from);
    log_unref(to);
    if (p)
        partition_unref(p);
    return r;
}

/* How long nothing may be copied because of the rate; asked anew before each piece, since the limit
 * may have been changed. The lock is held. */
static int64_t throttled_ms(struct log_mover *m, int64_t now)
{
    double limit = m->o.max_rate ? m->o.max_rate(m->o.arg) : INFINITY;
    int64_t ms = isinf(limit) ? 0 : rate_throttle_ms(&m->rate, &m->o.window, limit, now);
    return ms < RETRY_MS ? ms : RETRY_MS;
}

/* The piece has been copied; the lock is held again. */
static void settle(struct log_mover *m, struct move *v, enum copy_result r, int64_t copied)
{
    int64_t now = clock_mono_ms(m->o.clock);
    v->busy = false;
    pthread_cond_broadcast(&m->changed);
    if (v->cancelled) /* whoever did that waits, and drops it */
        return;
    if (r == COPY_DONE || r == COPY_FAILED) {
        if (r == COPY_DONE)
            say_info(component, "%.*s-%d has moved", STR_ARG(v->tp.topic), (int)v->tp.partition);
        else
            say_warn(component, "the move of %.*s-%d is given up", STR_ARG(v->tp.topic),
                     (int)v->tp.partition);
        drop(m, v);
        return;
    }
    v->not_before_ms = r == COPY_WAIT ? now + RETRY_MS : now;
    if (copied > 0)
        rate_record(&m->rate, &m->o.window, (double)copied, now);
}

static void *mover_main(void *arg)
{
    struct log_mover *m = arg;
    struct move *mine = NULL; /* the last one, as long as it may go on */
    pthread_mutex_lock(&m->lock);
    while (!m->stopping) {
        int64_t ms, copied;
        struct move *v = mine ? mine : next(m, &ms);
        if (!v) {
            cond_wait_until(&m->changed, &m->lock,
                            ms < 0 ? INT64_MAX : clock_mono_ms(clock_real()) + ms);
            continue;
        }
        mine = NULL;
        if ((ms = throttled_ms(m, clock_mono_ms(m->o.clock))) > 0) {
            v->not_before_ms = clock_mono_ms(m->o.clock) + ms;
            continue;
        }
        v->busy = true;
        pthread_mutex_unlock(&m->lock);
        enum copy_result r = copy_piece(m, v, &copied);
        pthread_mutex_lock(&m->lock);
        bool goes_on = r == COPY_MORE && !v->cancelled;
        settle(m, v, r, copied);
        /* Nobody can have taken it: the lock is still held. */
        mine = goes_on && v->not_before_ms <= clock_mono_ms(m->o.clock) ? v : NULL;
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- life ---- */

int log_mover_new(const struct log_mover_options *o, struct log_mover **out)
{
    struct log_mover *m = *out = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->o = *o;
    pthread_mutex_init(&m->lock, NULL);
    cond_init(&m->changed);
    list_init(&m->moves);
    return 0;
}

static void take_up(void *arg, struct log *future)
{
    struct log_mover *m = arg;
    if (add(m, log_topic_partition(future)) != 0)
        say_error(component, "no memory to go on with a move before the next start");
}

int log_mover_start(struct log_mover *m)
{
    int err = 0, n = m->o.threads < 1 ? 1 : m->o.threads < THREADS_MAX ? m->o.threads : THREADS_MAX;
    pthread_mutex_lock(&m->lock);
    log_manager_each_future(m->o.logs, take_up, m);
    for (; m->threads_n < n && !err; m->threads_n += !err) {
        char name[32];
        snprintf(name, sizeof(name), "log-mover-%d", m->threads_n);
        err = thread_start(name, mover_main, m, &m->threads[m->threads_n]);
    }
    pthread_mutex_unlock(&m->lock);
    return err;
}

void log_mover_stop(struct log_mover *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    for (; m->threads_n > 0; m->threads_n--)
        pthread_join(m->threads[m->threads_n - 1], NULL);
    while (!list_empty(&m->moves))
        drop(m, list_entry(m->moves.next, struct move, link));
}

void log_mover_free(struct log_mover *m)
{
    if (!m)
        return;
    log_mover_stop(m);
    rate_free(&m->rate);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

int log_mover_count(struct log_mover *m)
{
    int n = 0;
    pthread_mutex_lock(&m->lock);
    list_each (at, &m->moves)
        n++;
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* ---- asked to move ---- */

/* Gives up the move of the partition, if there is one to another dir. It may be over before that,
 * and others may ask for the same at once. */
static void give_up(struct log_mover *m, struct topic_partition tp, const struct log_dir *to)
{
    struct log *future = log_manager_future(m->o.logs, tp);
    if (future && log_dir_of(future) != to) {
        struct move *v;
        pthread_mutex_lock(&m->lock);
        while ((v = find(m, tp)) && v->busy) {
            v->cancelled = true;
            pthread_cond_wait(&m->changed, &m->lock);
        }
        if (v)
            drop(m, v);
        pthread_mutex_unlock(&m->lock);
        log_manager_drop_future(m->o.logs, future);
    }
    log_unref(future);
}

static enum kerr begin(struct log_mover *m, struct topic_partition tp, struct log *current,
                       struct log_dir *to)
{
    enum kerr e = log_manager_make_future(m->o.logs, current, to);
    if (e != KERR_NONE)
        return e;
    pthread_mutex_lock(&m->lock);
    int err = add(m, tp);
    pthread_mutex_unlock(&m->lock);
    return err ? KERR_UNKNOWN_SERVER_ERROR : KERR_NONE;
}

/* CONCURRENT_TRANSACTIONS: the partition has just moved, or somebody else has another wish. */
static enum kerr try_begin(struct log_mover *m, struct topic_partition tp, struct log_dir *to)
{
    enum kerr e = KERR_NONE;
    struct partition *p = replica_manager_find(m->o.replicas, tp, &e);
    struct log *current = p ? partition_log(p) : NULL;
    if (current && log_offline(current)) {
        e = KERR_KAFKA_STORAGE_ERROR;
    } else if (current) {
        e = log_dir_of(current) == to ? KERR_NONE : begin(m, tp, current, to);
    } else if (e != KERR_KAFKA_STORAGE_ERROR) {
        log_manager_prefer_dir(m->o.logs, tp, to);
        e = KERR_REPLICA_NOT_AVAILABLE;
    }
    log_unref(current);
    if (p)
        partition_unref(p);
    return e;
}

enum kerr log_mover_move(struct log_mover *m, struct topic_partition tp, const char *path)
{
    enum kerr e;
    struct log_dir *to = log_manager_dir(m->o.logs, path);
    char name[FOLDER_NAME_MAX];
    if (!folder_name_future(name, tp.topic, tp.partition, UUID_ZERO))
        return KERR_INVALID_TOPIC_EXCEPTION;
    if (!to)
        return KERR_LOG_DIR_NOT_FOUND;
    if (log_dir_offline(to))
        return KERR_KAFKA_STORAGE_ERROR;
    do {
        give_up(m, tp, to);
        e = try_begin(m, tp, to);
    } while (e == KERR_CONCURRENT_TRANSACTIONS);
    return e;
}
