/* cleaner.c - what a cleaner thread does, round by round. */
#include "log/cleaner.h"

#include <inttypes.h>

#include "base/cond.h"
#include "base/logline.h"
#include "log/cleaner_facts.h"
#include "log/cleaner_private.h"
#include "log/log_manager_private.h"
#include "log/log_private.h"

/* ---- waiting ---- */

/* Under lock. */
static bool must_end(const struct cleaner *c, const struct log *log)
{
    return c->stopping || (log && log->cleaning.state == CLEANING_ABORTED);
}

void cleaner_rest(struct cleaner *c, const struct log *log, int64_t ms)
{
    enum { DAY_MS = 24 * 3600 * 1000 }; /* far below what overflows */
    int64_t until = clock_mono_ms(clock_real()) + (ms > DAY_MS ? DAY_MS : ms);
    while (!must_end(c, log) && cond_wait_until(&c->cond, &c->lock, until))
        ;
}

/* Bytes were read or written: throttles, and tells whether to go on. */
static bool moved(void *arg, size_t n)
{
    struct cleaner_thread *t = arg;
    struct cleaner *c = t->cleaner;
    if (!log_is_compacted(t->log)) /* the policy has changed */
        return false;
    pthread_mutex_lock(&c->lock);
    int64_t ms = cleaner_throttle_note(&c->throttle, n, clock_mono_ns(c->clock));
    if (ms > 0)
        cleaner_rest(c, t->log, ms);
    bool go_on = !must_end(c, t->log);
    pthread_mutex_unlock(&c->lock);
    return go_on && !log_usable(t->log);
}

/* ---- who may work on a log ---- */

/* t: to compact it; NULL: for retention only. */
static bool take(struct cleaner *c, struct cleaner_thread *t, struct log *log)
{
    pthread_mutex_lock(&c->lock);
    bool taken = !c->stopping && cleaning_take(&log->cleaning, t != NULL);
    if (taken && t)
        t->log = log;
    pthread_mutex_unlock(&c->lock);
    return taken;
}

static void finish(struct cleaner *c, struct cleaner_thread *t, struct log *log, bool uncleanable)
{
    pthread_mutex_lock(&c->lock);
    if (t)
        t->log = NULL;
    log->cleaning.uncleanable |= uncleanable;
    cleaning_finish(&log->cleaning);
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
}

void cleaner_pause(struct cleaner *c, struct log *log)
{
    pthread_mutex_lock(&c->lock);
    if (!cleaning_pause(&log->cleaning)) {
        pthread_cond_broadcast(&c->cond); /* its thread may be asleep */
        while (log->cleaning.state != CLEANING_PAUSED)
            pthread_cond_wait(&c->cond, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

void cleaner_resume(struct cleaner *c, struct log *log)
{
    pthread_mutex_lock(&c->lock);
    cleaning_resume(&log->cleaning);
    pthread_mutex_unlock(&c->lock);
}

/* ---- choosing ---- */

/* The best one so far; all of one look at the logs. */
struct search {
    struct cleaner *c;
    struct log *log; /* one reference */
    struct cleaner_choice choice;
    int cuts;
    double max_dirty;
    int64_t max_overdue_ms;
};

static bool at_rest(struct cleaner *c, struct log *log)
{
    pthread_mutex_lock(&c->lock);
    bool rests = log->cleaning.state == CLEANING_NONE && !log->cleaning.uncleanable;
    pthread_mutex_unlock(&c->lock);
    return rests;
}

static void look_at(void *arg, struct log *log)
{
    struct search *s = arg;
    struct cleaner_choice ch;
    if (!log_is_compacted(log) || log_usable(log) || !at_rest(s->c, log))
        return;
    int cuts = log_cuts(log);
    if (cleaner_choose_log(log, clock_wall_ms(s->c->clock), &ch))
        return;
    if (ch.reset) /* it is written down with the next file that is */
        log_set_cleaned(log, ch.first_dirty, cuts);
    if (ch.ratio > s->max_dirty)
        s->max_dirty = ch.ratio;
    if (ch.overdue_ms > s->max_overdue_ms)
        s->max_overdue_ms = ch.overdue_ms;
    if (!ch.eligible || (s->log && ch.ratio <= s->choice.ratio))
        return;
    log_unref(s->log);
    s->log = log_ref(log);
    s->choice = ch;
    s->cuts = cuts;
}

static void choose(struct cleaner *c, struct search *s)
{
    *s = (struct search){.c = c};
    log_manager_each(c->logs, look_at, s);
    pthread_mutex_lock(&c->lock);
    c->max_dirty_percent = s->max_dirty * 100;
    c->max_delay_s = (double)s->max_overdue_ms / 1000;
    pthread_mutex_unlock(&c->lock);
}

/* ---- compacting ---- */

static struct managed_dir *dir_of(struct cleaner *c, const struct log *log)
{
    struct managed_dir *md = c->logs->dirs;
    while (md->dir != log->folder.dir)
        md++;
    return md;
}

static void report(const struct log *log, const struct cleaner_result *r, int64_t from,
                   double seconds)
{
    const double mb = 1 << 20;
    say_info("cleaner",
             "%s-%d: compacted, offsets %" PRId64 " to %" PRId64 " were new: %.1f MB became %.1f "
             "MB (%d segments became %d), in %.1f s",
             log->topic, log->partition, from, r->end_offset - 1, (double)r->bytes_before / mb,
             (double)r->bytes_after / mb, r->segments_before, r->segments_after, seconds);
    if (r->keyless)
        say_warn("cleaner", "%s-%d: %" PRId64 " records without a key were dropped", log->topic,
                 log->partition, r->keyless);
}

static void report_damage(const struct log *log, const struct cleaner_result *r)
{
    say_error("cleaner",
              "%s is not compacted any more until the next start: near offset %" PRId64 ", %s",
              log_path(log), r->at, r->why ? r->why : "a batch cannot be compacted");
}

/* Errors that say the data is at fault, not the machine or the moment. */
static bool is_damage(int err)
{
    return err == -EBADMSG || err == -EOVERFLOW;
}

/* true: compacted. */
static bool compact(struct cleaner_thread *t, struct search *s)
{
    struct cleaner *c = t->cleaner;
    struct log *log = s->log;
    struct cleaner_result r;
    int64_t begin = clock_mono_ns(c->clock);
    t->work.moved = moved;
    t->work.arg = t;
    int err = cleaner_work_run(&t->work, log, &s->choice, s->cuts, &r);
    double seconds = (double)(clock_mono_ns(c->clock) - begin) / 1e9;
    if (!err) {
        log_set_cleaned(log, r.end_offset, s->cuts);
        err = managed_dir_write(dir_of(c, log), FILE_CLEANED);
    }
    if (!err)
        report(log, &r, s->choice.first_dirty, seconds);
    else if (is_damage(err))
        report_damage(log, &r);
    else if (err != -ECANCELED && !log_offline(log))
        say_warn("cleaner", "%s: not compacted for now: %s", log_path(log), strerror(-err));
    pthread_mutex_lock(&c->lock);
    t->last =
        (struct last_run){r.map_fill, seconds, r.bytes_mapped + r.bytes_before, r.bytes_after};
    c->last_run_ms = clock_mono_ms(c->clock);
    c->logs_cleaned += !err;
    pthread_mutex_unlock(&c->lock);
    finish(c, t, log, is_damage(err));
    return !err;
}

/* ---- retention ---- */

/* Of what the manager leaves to us. A log in work is looked at next time. */
static void retain(void *arg, struct log *log)
{
    struct cleaner *c = arg;
    if (!log_is_compacted(log) || !take(c, NULL, log))
        return;
    log_retention(log, clock_wall_ms(c->clock));
    finish(c, NULL, log, false);
}

bool cleaner_round_of(struct cleaner_thread *t)
{
    struct cleaner *c = t->cleaner;
    struct search s;
    bool done = false;
    choose(c, &s);
    if (s.log && take(c, t, s.log))
        done = compact(t, &s);
    log_unref(s.log);
    log_manager_each(c->logs, retain, c);
    return done;
}

bool cleaner_round(struct cleaner *c)
{
    return cleaner_round_of(&c->crew.v[0]);
}

/* ---- figures ---- */

void cleaner_stats(struct cleaner *c, struct cleaner_stats *out)
{
    int64_t read = 0, written = 0;
    *out = (struct cleaner_stats){0};
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->crew.n; i++) {
        const struct last_run *last = &c->crew.v[i].last;
        if (last->map_fill * 100 > out->max_buffer_utilization_percent)
            out->max_buffer_utilization_percent = last->map_fill * 100;
        if (last->seconds > out->max_clean_time_s)
            out->max_clean_time_s = last->seconds;
        read += last->read;
        written += last->written;
    }
    out->recopy_percent = read ? 100 * (double)written / (double)read : 0;
    out->max_dirty_percent = c->max_dirty_percent;
    out->max_compaction_delay_s = c->max_delay_s;
    out->last_run_ms = c->last_run_ms;
    out->logs_cleaned = c->logs_cleaned;
    pthread_mutex_unlock(&c->lock);
}

struct uncleanable {
    struct cleaner *c;
    const struct log_dir *dir;
    int logs;
    int64_t bytes;
};

static void count_uncleanable(void *arg, struct log *log)
{
    struct uncleanable *u = arg;
    struct cleaner_choice ch;
    pthread_mutex_lock(&u->c->lock);
    bool marked = log->cleaning.uncleanable;
    pthread_mutex_unlock(&u->c->lock);
    if (!marked || log->folder.dir != u->dir)
        return;
    u->logs++;
    if (!cleaner_choose_log(log, clock_wall_ms(u->c->clock), &ch))
        u->bytes += ch.cleanable_bytes;
}

void cleaner_uncleanable(struct cleaner *c, const struct log_dir *d, int *logs, int64_t *bytes)
{
    struct uncleanable u = {.c = c, .dir = d};
    log_manager_each(c->logs, count_uncleanable, &u);
    *logs = u.logs;
    *bytes = u.bytes;
}
