/* log_manager.c - the map of logs: finding, making, deleting, upkeep, stop. */
#include "log/log_manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/thread.h"
#include "log/log_manager_private.h"
#include "log/log_private.h"

/* ---- the map ---- */

static bool tp_equals(const struct hnode *node, const void *key)
{
    const struct log *log = hmap_entry(node, struct log, node);
    return topic_partition_eq(log_topic_partition(log), *(const struct topic_partition *)key);
}

struct log *log_map_find(const struct hmap *map, struct topic_partition tp)
{
    struct hnode *n = hmap_find(map, topic_partition_hash(tp), tp_equals, &tp);
    return n ? hmap_entry(n, struct log, node) : NULL;
}

static struct log *find_locked(struct log_manager *m, struct topic_partition tp)
{
    return log_map_find(&m->logs, tp);
}

struct log *log_manager_find(struct log_manager *m, struct topic_partition tp)
{
    pthread_mutex_lock(&m->lock);
    struct log *log = find_locked(m, tp);
    if (log)
        log_ref(log);
    pthread_mutex_unlock(&m->lock);
    return log;
}

int log_manager_add(struct log_manager *m, struct log *log)
{
    struct topic_partition tp = log_topic_partition(log);
    pthread_mutex_lock(&m->lock);
    int err =
        find_locked(m, tp) ? -EEXIST : hmap_put(&m->logs, &log->node, topic_partition_hash(tp));
    if (!err)
        log_ref(log);
    pthread_mutex_unlock(&m->lock);
    return err;
}

struct log **log_manager_snapshot(struct log_manager *m, const struct log_dir *d, int *n)
{
    const struct hmap *maps[] = {&m->logs, &m->futures};
    *n = 0;
    pthread_mutex_lock(&m->lock);
    struct log **v = malloc((m->logs.n + m->futures.n + 1) * sizeof(*v));
    for (int i = 0; v && i < 2; i++) {
        hmap_each (node, maps[i]) {
            struct log *log = hmap_entry(node, struct log, node);
            if (!d || log->folder.dir == d)
                v[(*n)++] = log_ref(log);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return v;
}

void log_manager_snapshot_free(struct log **v, int n)
{
    for (int i = 0; v && i < n; i++)
        log_unref(v[i]);
    free(v);
}

void log_manager_each(struct log_manager *m, void (*each)(void *arg, struct log *log), void *arg)
{
    int n;
    struct log **v = log_manager_snapshot(m, NULL, &n);
    for (int i = 0; v && i < n; i++)
        if (!log_is_future(v[i]))
            each(arg, v[i]);
    log_manager_snapshot_free(v, n);
}

int log_manager_count(struct log_manager *m)
{
    pthread_mutex_lock(&m->lock);
    int n = (int)m->logs.n;
    pthread_mutex_unlock(&m->lock);
    return n;
}

int log_manager_dirs(struct log_manager *m, struct log_dir **out, int max)
{
    for (int i = 0; i < m->dirs_n && i < max; i++)
        out[i] = m->dirs[i].dir;
    return m->dirs_n;
}

int log_manager_online_dirs(struct log_manager *m)
{
    int n = 0;
    for (int i = 0; i < m->dirs_n; i++)
        n += !log_dir_offline(m->dirs[i].dir);
    return n;
}

void log_manager_set_defaults(struct log_manager *m, const struct log_config *c)
{
    pthread_mutex_lock(&m->lock);
    m->defaults = *c;
    pthread_mutex_unlock(&m->lock);
}

/* ---- making and deleting ---- */

static struct managed_dir *emptiest(struct log_manager *m)
{
    struct managed_dir *best = NULL;
    for (int i = 0; i < m->dirs_n; i++) {
        struct managed_dir *md = &m->dirs[i];
        if (!log_dir_offline(md->dir) &&
            (!best || atomic_load(&md->dir->logs) < atomic_load(&best->dir->logs)))
            best = md;
    }
    return best;
}

static enum kerr create(struct log_manager *m, struct topic_partition tp, bool is_new,
                        struct uuid topic_id, const struct log_config *config, struct log **out)
{
    /* It may lie in a dir that is offline: a second one would come up empty. */
    if (!is_new && log_manager_online_dirs(m) < m->dirs_n)
        return KERR_KAFKA_STORAGE_ERROR;
    struct log_dir *wanted = log_manager_take_preferred(m, tp);
    struct managed_dir *md =
        wanted && !log_dir_offline(wanted) ? log_manager_managed(m, wanted) : emptiest(m);
    if (!md)
        return KERR_KAFKA_STORAGE_ERROR;
    if (atomic_load(&md->stale) && managed_dir_write_all(md))
        return KERR_KAFKA_STORAGE_ERROR;
    int err =
        log_create_unsynced(md->dir, tp, config, m->remove_topic_ids ? UUID_ZERO : topic_id, out);
    if (!err)
        err = log_manager_add(m, *out);
    if (!err)
        log_manager_note_created(m, *out);
    if (err) {
        log_unref(*out);
        *out = NULL;
    }
    return log_kerr(err);
}

enum kerr log_manager_get_or_create(struct log_manager *m, struct topic_partition tp, bool is_new,
                                    struct uuid topic_id, const struct log_config *config,
                                    struct log **out)
{
    enum kerr code = KERR_NONE;
    *out = log_manager_find(m, tp);
    if (!*out) {
        pthread_mutex_lock(&m->change_lock);
        *out = log_manager_find(m, tp);
        if (!*out)
            code = create(m, tp, is_new, topic_id, config, out);
        pthread_mutex_unlock(&m->change_lock);
    }
    if (*out && log_offline(*out)) {
        log_unref(*out);
        *out = NULL;
        code = KERR_KAFKA_STORAGE_ERROR;
    }
    return code;
}

struct managed_dir *log_manager_managed(struct log_manager *m, const struct log_dir *d)
{
    struct managed_dir *md = m->dirs;
    while (md->dir != d)
        md++;
    return md;
}

enum kerr log_manager_delete(struct log_manager *m, struct topic_partition tp)
{
    enum kerr code;
    pthread_mutex_lock(&m->change_lock);
    log_manager_drop_future_locked(m, tp);
    pthread_mutex_lock(&m->lock);
    struct log *log = find_locked(m, tp);
    int64_t delay_ms = m->defaults.file_delete_delay_ms;
    pthread_mutex_unlock(&m->lock);
    if (log) {
        if (m->cleaner) /* it writes in the folder */
            cleaner_pause(m->cleaner, log);
        code = log_kerr(log_delete(log, delay_ms));
        if (m->cleaner)
            cleaner_resume(m->cleaner, log);
        if (!code) {
            pthread_mutex_lock(&m->lock);
            hmap_remove(&m->logs, &log->node);
            pthread_mutex_unlock(&m->lock);
            atomic_store(&log_manager_managed(m, log->folder.dir)->stale, true);
            log_unref(log);
        }
    } else {
        code = log_manager_online_dirs(m) < m->dirs_n ? KERR_KAFKA_STORAGE_ERROR
                                                      : KERR_UNKNOWN_TOPIC_OR_PARTITION;
    }
    pthread_mutex_unlock(&m->change_lock);
    return code;
}

/* ---- upkeep ---- */

static void flush_if_due(void *arg, struct log *log)
{
    const struct log_manager *m = arg;
    const struct log_config *c = log_config_ref(log);
    int64_t age = clock_wall_ms(m->clock) - log_last_flush_ms(log);
    if (c->flush_ms != INT64_MAX && age >= c->flush_ms && !log_usable(log) &&
        log_end_offset(log) > log_recovery_point(log))
        (void)log_flush(log);
    log_config_unref(c);
}

void log_manager_flush_due(struct log_manager *m)
{
    log_manager_each(m, flush_if_due, m);
}

/* What is compacted, the cleaner looks after. */
static void retain(void *arg, struct log *log)
{
    const struct log_manager *m = arg;
    if (!log_is_compacted(log))
        log_retention(log, clock_wall_ms(m->clock));
}

void log_manager_retention(struct log_manager *m)
{
    log_manager_each(m, retain, m);
}

static void expire(void *arg, struct log *log)
{
    const struct log_manager *m = arg;
    log_expire_producers(log, clock_wall_ms(m->clock));
}

void log_manager_expire_producers(struct log_manager *m)
{
    log_manager_each(m, expire, m);
}

void log_manager_delete_due(struct log_manager *m)
{
    for (int i = 0; i < m->dirs_n; i++) {
        struct managed_dir *md = &m->dirs[i];
        if (log_dir_offline(md->dir))
            continue;
        if (atomic_load(&md->stale))
            (void)managed_dir_write_all(md);
        log_dir_remove_due(md->dir);
    }
}

int64_t log_manager_next_delete_ms(struct log_manager *m)
{
    int64_t next = -1;
    for (int i = 0; i < m->dirs_n; i++) {
        struct managed_dir *md = &m->dirs[i];
        int64_t due = log_dir_next_due(md->dir);
        if (atomic_load(&md->stale) && !log_dir_offline(md->dir))
            due = clock_mono_ms(m->clock);
        if (due >= 0 && (next < 0 || due < next))
            next = due;
    }
    return next;
}

/* ---- many at a time ---- */

struct parallel {
    void (*work)(void *arg, int i);
    void *arg;
    int n;
    atomic_int next;
};

static void *parallel_run(void *arg)
{
    struct parallel *p = arg;
    int i;
    while ((i = atomic_fetch_add(&p->next, 1)) < p->n)
        p->work(p->arg, i);
    return NULL;
}

int log_manager_light_threads(const struct log_manager *m, int n)
{
    enum { FEW_LOGS = 64, LIGHT_THREADS = 8 };
    return n > FEW_LOGS && m->threads < LIGHT_THREADS ? LIGHT_THREADS : m->threads;
}

void log_manager_parallel(const char *name, int threads, int n, void (*work)(void *arg, int i),
                          void *arg)
{
    enum { MAX_THREADS = 256 };
    struct parallel p = {.work = work, .arg = arg, .n = n};
    pthread_t t[MAX_THREADS];
    int started = 0;
    if (threads > n)
        threads = n;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    /* this thread is one of them, so that without threads to have it does all */
    while (started < threads - 1 && thread_start(name, parallel_run, &p, &t[started]) == 0)
        started++;
    parallel_run(&p);
    for (int i = 0; i < started; i++)
        pthread_join(t[i], NULL);
}

/* ---- stop ---- */

struct closing {
    struct log **logs;
    atomic_bool failed;
};

static void seal_one(void *arg, int i)
{
    struct closing *c = arg;
    if (log_seal(c->logs[i]))
        atomic_store(&c->failed, true);
}

static void close_one(void *arg, int i)
{
    struct closing *c = arg;
    if (log_close(c->logs[i]))
        atomic_store(&c->failed, true);
}

static void close_dir(void *arg, int at)
{
    enum { MANY = 64 };
    struct managed_dir *md = &((struct log_manager *)arg)->dirs[at];
    struct closing c = {0};
    int n, dirty = 0;
    if (log_dir_offline(md->dir))
        return;
    c.logs = log_manager_snapshot(md->manager, md->dir, &n);
    if (!c.logs) {
        say_error("log", "%s: no memory for a clean stop", md->dir->path);
        return;
    }
    int threads = log_manager_light_threads(md->manager, n);
    log_manager_parallel("log-close", threads, n, seal_one, &c);
    for (int i = 0; i < n; i++)
        dirty += c.logs[i]->sealed;
    /* one write-back of everything, instead of a commit of the file system's journal for each */
    if (dirty > MANY)
        fs_write_back(md->dir->fs, md->dir->path);
    log_manager_parallel("log-close", threads, n, close_one, &c);
    log_manager_snapshot_free(c.logs, n);
    log_dir_remove_due(md->dir);
    if (atomic_load(&c.failed) || !md->loaded) {
        say_warn("log", "%s: not all logs could be closed, so it gets no mark of a clean stop",
                 md->dir->path);
        return;
    }
    if (managed_dir_write_all(md) == 0)
        (void)log_dir_put_clean_mark(md->dir);
}

void log_manager_close(struct log_manager *m)
{
    log_manager_parallel("log-close-dir", m->dirs_n, m->dirs_n, close_dir, m);
    log_manager_abandon(m);
}

static void free_dir(struct managed_dir *md)
{
    offset_checkpoint_free(&md->recovery_points);
    offset_checkpoint_free(&md->start_offsets);
    offset_checkpoint_free(&md->high_watermarks);
    offset_checkpoint_free(&md->cleaned);
    pthread_mutex_destroy(&md->checkpoint_lock);
    if (md->dir && atomic_load(&md->dir->logs) > 0) { /* rather a leak than a dangling pointer */
        say_error("log", "%s: %d logs are still in use after the stop", md->dir->path,
                  atomic_load(&md->dir->logs));
        md->dir->open_files = NULL;
    } else {
        log_dir_free(md->dir);
    }
}

static void abandon_logs(struct hmap *map)
{
    for (struct hnode *n = hmap_first(map), *next; n; n = next) {
        next = hmap_next(map, n);
        struct log *log = hmap_entry(n, struct log, node);
        atomic_store(&log->gone, true);
        log_unref(log);
    }
    hmap_free(map);
}

void log_manager_abandon(struct log_manager *m)
{
    if (!m)
        return;
    abandon_logs(&m->logs);
    abandon_logs(&m->futures);
    log_manager_forget_preferred(m);
    log_manager_forget_created(m);
    for (int i = 0; i < m->dirs_n; i++)
        free_dir(&m->dirs[i]);
    free(m->dirs);
    open_files_free(&m->open_files);
    pthread_mutex_destroy(&m->change_lock);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
