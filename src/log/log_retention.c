/* log_retention.c - deleting old segments: below the log start, over the size, over the age.
 *
 * Looking needs no lock (a pinned list); taking out takes the log's mutex for a moment; renaming is
 * done beside appends.
 *
 * INVARIANTS  nothing at or above the high watermark goes; only whole segments from the front go;
 *             an empty active segment stays. */
#include <errno.h>
#include <inttypes.h>

#include "base/logline.h"
#include "log/log_private.h"

struct check {
    struct log *log;
    const struct log_config *config;
    const struct segment_list *list;
    int64_t now_ms;
    int64_t high_watermark, start, end;
    int64_t over; /* bytes over retention.bytes, less what is marked already */
};

static int64_t next_base(const struct check *c, int i)
{
    return i + 1 < c->list->n ? c->list->v[i + 1]->base : c->end;
}

/* Does everything of segment i lie below the high watermark? */
static bool committed(const struct check *c, int i)
{
    return c->high_watermark >= next_base(c, i) &&
           !(i + 1 == c->list->n && segment_size(c->list->v[i]) == 0);
}

static bool below_start(struct check *c, int i)
{
    return i + 1 < c->list->n && next_base(c, i) <= c->start;
}

static bool over_size(struct check *c, int i)
{
    int64_t size = segment_size(c->list->v[i]);
    if (c->over < size)
        return false;
    c->over -= size;
    return true;
}

/* A record from the future holds back its segment and all later ones: say so, once. */
static void warn_future(struct segment *s, int64_t t)
{
    enum { SLACK_MS = 3600 * 1000 };
    if (t <= clock_wall_ms(s->folder->dir->clock) + SLACK_MS || atomic_exchange(&s->warned, true))
        return;
    char path[LOG_PATH_MAX];
    segment_path(s, LOG_FILE_DATA, path);
    say_warn("log",
             "%s holds a record of time %" PRId64
             ", which is in the future: retention by time keeps it and all later segments until "
             "then",
             path, t);
}

static bool over_age(struct check *c, int i)
{
    struct segment *s = c->list->v[i];
    struct time_offset newest;
    int64_t age;
    if (segment_max_time(s, &newest))
        return false;
    if (newest.timestamp < 0 && segment_mtime(s, &newest.timestamp))
        return false;
    warn_future(s, newest.timestamp);
    if (__builtin_sub_overflow(c->now_ms, newest.timestamp, &age))
        return false;
    return age > c->config->retention_ms;
}

/* How many segments from the front on pass. */
static int count_while(struct check *c, bool (*test)(struct check *c, int i))
{
    int n = 0;
    while (n < c->list->n && committed(c, n) && test(c, n))
        n++;
    return n;
}

/* Takes the first n segments of `seen` out of the log. 0 or -errno; 1 when things have changed
 * meanwhile. Under flush_lock, so that nothing but appends can. */
static int take_out(struct log *log, const struct segment_list *seen, int n, int64_t upto)
{
    int err = log_usable(log) || upto > log_high_watermark(log) ? 1 : 0;
    if (!err && n == log->segments.now->n) /* never without a segment */
        err = log_roll(log, log_end_offset(log));
    struct segment_list *now = log->segments.now;
    if (err || n >= now->n || now->v[0] != seen->v[0])
        return err ? err : 1;
    struct segment_list *left = segment_list_tail(now, n);
    if (!left)
        return -ENOMEM;
    log->touched = true;
    log_move_start(log, left->v[0]->base);
    segment_lists_publish(&log->segments, left);
    return 0;
}

static int drop_front(struct log *log, const struct segment_list *seen, int n, int64_t upto)
{
    pthread_mutex_lock(&log->lock);
    int64_t delay_ms = log->config->c.file_delete_delay_ms;
    int err = take_out(log, seen, n, upto);
    pthread_mutex_unlock(&log->lock);
    for (int i = 0; i < n && !err; i++)
        err = segment_doom(seen->v[i], delay_ms);
    atomic_store(&log->names_dirty, true);
    return err;
}

static int run_check(struct log *log, const struct log_config *config, int64_t now_ms,
                     bool (*test)(struct check *c, int i), const char *why)
{
    struct segment_list *list = log_pin(log);
    struct check c = {.log = log,
                      .config = config,
                      .list = list,
                      .now_ms = now_ms,
                      .high_watermark = log_high_watermark(log),
                      .start = log_start_offset(log),
                      .end = log_end_offset(log)};
    c.over = -config->retention_bytes;
    for (int i = 0; i < list->n; i++)
        c.over += segment_size(list->v[i]);
    int n = count_while(&c, test);
    int64_t first = list->v[0]->base, upto = n ? next_base(&c, n - 1) : first;
    int err = n ? drop_front(log, list, n, upto) : 1;
    segment_list_unpin(list);
    if (err)
        return 0;
    say_info("log", "%s: deleted %d segments, offsets %" PRId64 " to %" PRId64 ", %s",
             log_path(log), n, first, upto - 1, why);
    return n;
}

int log_retention(struct log *log, int64_t now_ms)
{
    int n = 0;
    const struct log_config *c = log_config_ref(log);
    bool deletes = c->cleanup_policy & CLEANUP_DELETE;
    pthread_mutex_lock(&log->flush_lock);
    if (!log_usable(log)) {
        n += run_check(log, c, now_ms, below_start, "below the log start");
        if (deletes && c->retention_bytes >= 0)
            n += run_check(log, c, now_ms, over_size, "over retention.bytes");
        if (deletes && c->retention_ms >= 0)
            n += run_check(log, c, now_ms, over_age, "over retention.ms");
    }
    pthread_mutex_unlock(&log->flush_lock);
    log_config_unref(c);
    return n;
}
