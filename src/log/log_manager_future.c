/* log_manager_future.c - moving a partition's log to another dir: a second log is made there,
 * copied into by somebody else (replica/log_mover.h), and takes the place of the first.
 *
 * CRASH  While it is a -future folder it is loaded as that at the next start. Between the two
 *        renames of the swap both folders have the usual name, and the next start stops with a line
 *        that names them: only a person can tell which one to keep. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "log/log_manager_private.h"
#include "log/log_private.h"

enum { PREFERRED_MAX = 10000 };

/* ---- dirs ---- */

static bool same_path(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    while (n > 1 && a[n - 1] == '/')
        n--;
    while (m > 1 && b[m - 1] == '/')
        m--;
    return n == m && memcmp(a, b, n) == 0;
}

struct log_dir *log_manager_dir(struct log_manager *m, const char *path)
{
    for (int i = 0; i < m->dirs_n; i++)
        if (same_path(m->dirs[i].dir->path, path))
            return m->dirs[i].dir;
    return NULL;
}

/* ---- where a log that is not there yet is wanted ---- */

struct preferred {
    struct hnode node;
    struct log_dir *dir;
    struct topic_partition tp; /* the topic's text lies behind */
};

static bool preferred_equals(const struct hnode *node, const void *key)
{
    const struct preferred *p = hmap_entry(node, struct preferred, node);
    const struct topic_partition *tp = key;
    return p->tp.partition == tp->partition && str_eq(p->tp.topic, tp->topic);
}

struct log_dir *log_manager_take_preferred(struct log_manager *m, struct topic_partition tp)
{
    struct log_dir *d = NULL;
    pthread_mutex_lock(&m->lock);
    struct hnode *n = hmap_find(&m->preferred, topic_partition_hash(tp), preferred_equals, &tp);
    if (n) {
        struct preferred *p = hmap_entry(n, struct preferred, node);
        d = p->dir;
        hmap_remove(&m->preferred, n);
        free(p);
    }
    pthread_mutex_unlock(&m->lock);
    return d;
}

void log_manager_prefer_dir(struct log_manager *m, struct topic_partition tp, struct log_dir *d)
{
    (void)log_manager_take_preferred(m, tp);
    size_t len = tp.topic.len > 0 ? (size_t)tp.topic.len : 0;
    struct preferred *p = malloc(sizeof(*p) + len);
    if (!p)
        return; /* it is only a wish */
    *p = (struct preferred){.dir = d, .tp = tp};
    p->tp.topic.p = memcpy(p + 1, tp.topic.p, len);
    pthread_mutex_lock(&m->lock);
    if (m->preferred.n >= PREFERRED_MAX ||
        hmap_put(&m->preferred, &p->node, topic_partition_hash(tp)) != 0)
        free(p);
    pthread_mutex_unlock(&m->lock);
}

void log_manager_forget_preferred(struct log_manager *m)
{
    for (struct hnode *n; (n = hmap_first(&m->preferred));) {
        hmap_remove(&m->preferred, n);
        free(hmap_entry(n, struct preferred, node));
    }
    hmap_free(&m->preferred);
}

/* ---- the second log ---- */

struct log *log_manager_future(struct log_manager *m, struct topic_partition tp)
{
    pthread_mutex_lock(&m->lock);
    struct log *log = log_map_find(&m->futures, tp);
    if (log)
        log_ref(log);
    pthread_mutex_unlock(&m->lock);
    return log;
}

void log_manager_each_future(struct log_manager *m, void (*each)(void *arg, struct log *log),
                             void *arg)
{
    int n = 0;
    pthread_mutex_lock(&m->lock);
    struct log **v = malloc((m->futures.n + 1) * sizeof(*v));
    if (v)
        hmap_each (node, &m->futures)
            v[n++] = log_ref(hmap_entry(node, struct log, node));
    pthread_mutex_unlock(&m->lock);
    for (int i = 0; i < n; i++)
        each(arg, v[i]);
    log_manager_snapshot_free(v, n);
}

int log_manager_add_future(struct log_manager *m, struct log *log)
{
    struct topic_partition tp = log_topic_partition(log);
    pthread_mutex_lock(&m->lock);
    int err = log_map_find(&m->futures, tp)
                  ? -EEXIST
                  : hmap_put(&m->futures, &log->node, topic_partition_hash(tp));
    if (!err)
        log_ref(log);
    pthread_mutex_unlock(&m->lock);
    return err;
}

static enum kerr make(struct log_manager *m, struct log *current, struct log_dir *d)
{
    struct log *log;
    struct managed_dir *md = log_manager_managed(m, d);
    if (log_manager_online_dirs(m) < m->dirs_n)
        return KERR_KAFKA_STORAGE_ERROR;
    if (atomic_load(&md->stale) && managed_dir_write_all(md))
        return KERR_KAFKA_STORAGE_ERROR;
    const struct log_config *c = log_config_ref(current);
    int err = log_create_future(d, log_topic_partition(current), c,
                                m->remove_topic_ids ? UUID_ZERO : log_topic_id(current), &log);
    log_config_unref(c);
    if (err == -ENAMETOOLONG)
        return KERR_INVALID_TOPIC_EXCEPTION;
    if (!err) {
        err = log_manager_add_future(m, log);
        log_unref(log);
    }
    return log_kerr(err);
}

enum kerr log_manager_make_future(struct log_manager *m, struct log *current, struct log_dir *d)
{
    enum kerr code = KERR_NONE;
    pthread_mutex_lock(&m->change_lock);
    struct log *log = log_manager_future(m, log_topic_partition(current));
    struct log *now = log_manager_find(m, log_topic_partition(current));
    if (now != current || now->folder.dir == d || (log && log->folder.dir != d))
        code = KERR_CONCURRENT_TRANSACTIONS;
    else if (!log)
        code = make(m, current, d);
    log_unref(log);
    log_unref(now);
    pthread_mutex_unlock(&m->change_lock);
    return code;
}

/* Off the map, and its folder goes. change_lock is held. */
static void drop_locked(struct log_manager *m, struct log *log)
{
    struct managed_dir *md = log_manager_managed(m, log->folder.dir);
    pthread_mutex_lock(&m->lock);
    hmap_remove(&m->futures, &log->node);
    int64_t delay_ms = m->defaults.file_delete_delay_ms;
    pthread_mutex_unlock(&m->lock);
    (void)log_delete(log,
                     delay_ms); /* fails when its dir has failed: then the next start finds it */
    atomic_store(&md->stale, true);
    log_unref(log); /* the map's */
}

void log_manager_drop_future_locked(struct log_manager *m, struct topic_partition tp)
{
    struct log *log = log_manager_future(m, tp);
    if (log)
        drop_locked(m, log);
    log_unref(log);
}

void log_manager_drop_future(struct log_manager *m, struct log *future)
{
    pthread_mutex_lock(&m->change_lock);
    struct log *now = log_manager_future(m, log_topic_partition(future));
    if (now == future)
        drop_locked(m, future);
    log_unref(now);
    pthread_mutex_unlock(&m->change_lock);
}

/* change_lock is held. */
static enum kerr swap(struct log_manager *m, struct log *current, struct log *future)
{
    int err = log_become_current(future);
    if (err)
        return log_kerr(err);
    pthread_mutex_lock(&m->lock);
    hmap_remove(&m->logs, &current->node);
    hmap_remove(&m->futures, &future->node);
    int64_t delay_ms = m->defaults.file_delete_delay_ms;
    /* There was room for it a moment ago. */
    err = hmap_put(&m->logs, &future->node, topic_partition_hash(log_topic_partition(future)));
    pthread_mutex_unlock(&m->lock);
    if (log_delete(current, delay_ms) != 0)
        say_error("log",
                  "%s: the folder that was moved away from stays; remove it before the next "
                  "start",
                  log_path(current));
    atomic_store(&log_manager_managed(m, current->folder.dir)->stale, true);
    log_unref(current); /* the map's */
    return log_kerr(err);
}

enum kerr log_manager_swap_future(struct log_manager *m, struct log *current, struct log *future)
{
    struct topic_partition tp = log_topic_partition(current);
    pthread_mutex_lock(&m->change_lock);
    struct log *copy = log_manager_future(m, tp), *now = log_manager_find(m, tp);
    enum kerr code = copy != future || now != current              ? KERR_UNKNOWN_SERVER_ERROR
                     : log_offline(current) || log_offline(future) ? KERR_KAFKA_STORAGE_ERROR
                                                                   : swap(m, current, future);
    log_unref(now);
    log_unref(copy);
    pthread_mutex_unlock(&m->change_lock);
    return code;
}
