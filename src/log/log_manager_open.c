/* log_manager_open.c - start: whose the dirs are, and loading what is in them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "log/log_manager_private.h"
#include "log/log_private.h"
#include "log/meta_properties.h"

/* ---- meta.properties ---- */

struct identity {
    int32_t broker_id; /* -1: not known yet */
    char broker_from[LOG_PATH_MAX];
    char cluster_id[CLUSTER_ID_MAX]; /* "": not known yet */
    char cluster_from[LOG_PATH_MAX];
};

static struct identity identity_of(const struct log_manager_options *o)
{
    struct identity id = {.broker_id = o->broker_id < 0 ? -1 : o->broker_id};
    snprintf(id.broker_from, sizeof(id.broker_from), "the setting broker.id");
    if (o->cluster_id)
        snprintf(id.cluster_id, sizeof(id.cluster_id), "%s", o->cluster_id);
    snprintf(id.cluster_from, sizeof(id.cluster_from), "the metadata store");
    return id;
}

/* Takes over what the file says, or finds that it contradicts what is known. */
static int agree(struct identity *id, const char *dir, const struct meta_properties *m, char *err,
                 size_t err_n)
{
    if (m->broker_id >= 0 && id->broker_id >= 0 && m->broker_id != id->broker_id) {
        snprintf(err, err_n,
                 "%s/" META_PROPERTIES_NAME ": broker.id is %" PRId32 ", allowed is %" PRId32
                 " (from %s). The folder belongs to another broker, or "
                 "broker.id was changed: set the id back, or use a new folder",
                 dir, m->broker_id, id->broker_id, id->broker_from);
        return -EINVAL;
    }
    if (m->cluster_id[0] && id->cluster_id[0] && strcmp(m->cluster_id, id->cluster_id) != 0) {
        snprintf(err, err_n,
                 "%s/" META_PROPERTIES_NAME ": cluster.id is %s, allowed is %s (from %s). The "
                 "folder belongs to another cluster, or zookeeper.connect leads to the wrong one",
                 dir, m->cluster_id, id->cluster_id, id->cluster_from);
        return -EINVAL;
    }
    if (m->broker_id >= 0 && id->broker_id < 0) {
        id->broker_id = m->broker_id;
        snprintf(id->broker_from, sizeof(id->broker_from), "%s/" META_PROPERTIES_NAME, dir);
    }
    if (m->cluster_id[0] && !id->cluster_id[0]) {
        snprintf(id->cluster_id, sizeof(id->cluster_id), "%s", m->cluster_id);
        snprintf(id->cluster_from, sizeof(id->cluster_from), "%s/" META_PROPERTIES_NAME, dir);
    }
    return 0;
}

int log_manager_read_meta(const struct log_manager_options *o, int32_t *broker_id,
                          char cluster_id[64], char *err, size_t err_n)
{
    struct identity id = identity_of(o);
    for (int i = 0; i < o->dirs_n; i++) {
        struct meta_properties m;
        int rc = meta_properties_read(o->fs, o->dirs[i], &m, err, err_n);
        if (rc && rc != -EINVAL && rc != -ENOMEM)
            continue; /* not readable: the dir goes offline when it is opened */
        if (!rc) {
            rc = agree(&id, o->dirs[i], &m, err, err_n);
            meta_properties_free(&m);
        }
        if (rc)
            return rc;
    }
    *broker_id = id.broker_id;
    snprintf(cluster_id, CLUSTER_ID_MAX, "%s", id.cluster_id);
    return 0;
}

/* The file of a dir that has none yet, or lacks an id. All dirs agree when this is called. */
static void settle_meta(struct managed_dir *md, int32_t broker_id, const char *cluster_id)
{
    char why[256] = "";
    struct meta_properties m;
    int rc = meta_properties_read(md->dir->fs, md->dir->path, &m, why, sizeof(why));
    if (!rc) {
        rc = broker_id < 0 ? 0
                           : meta_properties_update(md->dir->fs, md->dir->path, &m, broker_id,
                                                    cluster_id[0] ? cluster_id : NULL);
        meta_properties_free(&m);
    }
    if (rc)
        log_dir_fail(md->dir, rc, "read or write %s/" META_PROPERTIES_NAME, md->dir->path);
}

static int settle_all_meta(struct log_manager *m, const struct log_manager_options *o, char *err,
                           size_t err_n)
{
    char cluster_id[CLUSTER_ID_MAX];
    int32_t broker_id;
    int rc = log_manager_read_meta(o, &broker_id, cluster_id, err, err_n);
    for (int i = 0; !rc && i < m->dirs_n; i++)
        if (!log_dir_offline(m->dirs[i].dir))
            settle_meta(&m->dirs[i], broker_id, cluster_id);
    return rc;
}

/* ---- one dir ---- */

struct to_load {
    struct str topic; /* into `name` */
    int32_t partition;
    char *name;
    bool future;
};

/* The folders of one dir and what became of them. */
struct dir_load {
    struct managed_dir *md;
    struct to_load *v;
    int n, cap;
    char *err; /* of the whole start */
    size_t err_n;
    atomic_int done;
    _Atomic int64_t said_ms;
};

static void read_checkpoint(struct managed_dir *md, const char *name, struct offset_checkpoint *c)
{
    char path[LOG_PATH_MAX];
    log_path_join(path, md->dir->path, name);
    int err = offset_checkpoint_read(md->dir->fs, path, c);
    if (err)
        say_warn("log", "%s is not readable (%s): taken as empty", path,
                 err == -EBADMSG ? "damaged" : strerror(-err));
}

static bool not_ours(const char *name)
{
    if (strcmp(name, "lost+found") == 0) {
        say_warn("log", "the folder lost+found in a log dir is left alone");
        return true;
    }
    return strcmp(name, "remote-log-index-cache") == 0 || strcmp(name, "__cluster_metadata-0") == 0;
}

static int add_folder(struct dir_load *dl, const char *name)
{
    struct to_load item = {0};
    struct log_dir *d = dl->md->dir;
    char path[LOG_PATH_MAX];
    if (not_ours(name))
        return 0;
    log_path_join(path, d->path, name);
    if (!(item.name = strdup(name)))
        return -ENOMEM;
    switch (folder_name_parse(item.name, &item.topic, &item.partition)) {
    case FOLDER_FUTURE:
        item.future = true;
        /* fall through */
    case FOLDER_LOG:
        if (dl->n == dl->cap) {
            int cap = dl->cap ? dl->cap * 2 : 64;
            struct to_load *v = realloc(dl->v, (size_t)cap * sizeof(*v));
            if (!v)
                break;
            dl->v = v;
            dl->cap = cap;
        }
        dl->v[dl->n++] = item;
        return 0;
    case FOLDER_DELETE:
        log_dir_doom(d, path, true, 0);
        free(item.name);
        return 0;
    case FOLDER_STRAY:
        say_warn("log", "%s is set aside: not loaded, not deleted", path);
        free(item.name);
        return 0;
    case FOLDER_BAD:
        snprintf(dl->err, dl->err_n,
                 "%s is not a folder of a partition (<topic>-<partition>): move it out of the log "
                 "dir",
                 path);
        free(item.name);
        return -EINVAL;
    }
    free(item.name);
    return -ENOMEM;
}

static int each_name(void *arg, const char *name)
{
    struct dir_load *dl = arg;
    char path[LOG_PATH_MAX];
    struct file_stat st;
    log_path_join(path, dl->md->dir->path, name);
    int err = fs_stat(dl->md->dir->fs, path, &st);
    if (err || !st.is_dir)
        return err == -ENOENT ? 0 : err;
    return add_folder(dl, name);
}

/* Reads what the dir holds. -EINVAL is fatal; other errors have taken it offline. */
static int list_dir(struct dir_load *dl)
{
    struct managed_dir *md = dl->md;
    if (log_dir_offline(md->dir))
        return 0;
    int clean = log_dir_take_clean_mark(md->dir);
    if (clean < 0)
        return 0;
    md->clean = clean;
    read_checkpoint(md, CHECKPOINT_RECOVERY_POINT, &md->recovery_points);
    read_checkpoint(md, CHECKPOINT_LOG_START, &md->start_offsets);
    read_checkpoint(md, CHECKPOINT_HIGH_WATERMARK, &md->high_watermarks);
    read_checkpoint(md, CHECKPOINT_CLEANER, &md->cleaned);
    int err = fs_list(md->dir->fs, md->dir->path, each_name, dl);
    if (err && err != -EINVAL) {
        log_dir_fail(md->dir, err, "list %s", md->dir->path);
        err = 0;
    }
    return err;
}

static void progress(struct dir_load *dl)
{
    enum { EVERY_MS = 5000 };
    struct log_dir *d = dl->md->dir;
    int done = atomic_fetch_add(&dl->done, 1) + 1;
    int64_t now = clock_mono_ms(d->clock), said = atomic_load(&dl->said_ms);
    if (now - said >= EVERY_MS && atomic_compare_exchange_strong(&dl->said_ms, &said, now))
        say_info("log", "%s: %d of %d logs loaded", d->path, done, dl->n);
}

static void load_one(void *arg, int i)
{
    struct dir_load *dl = arg;
    struct managed_dir *md = dl->md;
    struct log_manager *m = md->manager;
    const struct to_load *item = &dl->v[i];
    struct log_config c = m->defaults;
    struct log *log;
    if (log_dir_offline(md->dir))
        return;
    if (m->topic_config)
        m->topic_config(m->arg, item->topic, &c);
    struct log_open_args a = {.dir = md->dir,
                              .tp = {item->topic, item->partition},
                              .folder = item->future ? item->name : NULL,
                              .config = &c,
                              .clean = md->clean,
                              .remove_topic_id = m->remove_topic_ids};
    offset_checkpoint_get(&md->recovery_points, a.tp.topic, a.tp.partition, &a.recovery_point);
    offset_checkpoint_get(&md->start_offsets, a.tp.topic, a.tp.partition, &a.start_offset);
    offset_checkpoint_get(&md->high_watermarks, a.tp.topic, a.tp.partition, &a.high_watermark);
    offset_checkpoint_get(&md->cleaned, a.tp.topic, a.tp.partition, &a.cleaned_to);
    int err = log_open(&a, &log);
    if (!err) {
        atomic_store(&log->future, item->future);
        err = item->future ? log_manager_add_future(m, log) : log_manager_add(m, log);
        log_unref(log);
    }
    /* A log that is left out would look like an empty one to whoever makes it anew. */
    if (err)
        log_dir_fail(md->dir, err, "load %s/%s", md->dir->path, item->name);
    progress(dl);
}

static void load_dir(void *arg, int at)
{
    struct dir_load *dl = &((struct dir_load *)arg)[at];
    struct managed_dir *md = dl->md;
    if (log_dir_offline(md->dir))
        return;
    int64_t begin = clock_mono_ms(md->dir->clock);
    atomic_store(&dl->said_ms, begin);
    if (!md->clean && dl->n)
        say_info("log", "%s: %d logs, the last stop was not clean: they are checked", md->dir->path,
                 dl->n);
    md->dir->recovering_most = md->manager->threads;
    log_manager_parallel("log-load", log_manager_light_threads(md->manager, dl->n), dl->n, load_one,
                         dl);
    if (log_dir_offline(md->dir))
        return;
    md->loaded = true;
    if (dl->n)
        say_info("log", "%s: %d logs loaded in %" PRId64 " ms", md->dir->path, dl->n,
                 clock_mono_ms(md->dir->clock) - begin);
}

/* ---- all dirs ---- */

/* The same folder twice would be two dirs with one lock. */
static int check_distinct(const struct log_manager_options *o, char *err, size_t err_n)
{
    for (int i = 0; i < o->dirs_n; i++)
        for (int j = 0; j < i; j++) {
            char *a = realpath(o->dirs[i], NULL), *b = realpath(o->dirs[j], NULL);
            bool same = strcmp(a ? a : o->dirs[i], b ? b : o->dirs[j]) == 0;
            free(a);
            free(b);
            if (same) {
                snprintf(err, err_n, "log.dirs names the folder %s twice (as %s)", o->dirs[i],
                         o->dirs[j]);
                return -EINVAL;
            }
        }
    return 0;
}

static int claim_dirs(struct log_manager *m, const struct log_manager_options *o, char *err,
                      size_t err_n)
{
    int rc = 0;
    for (int i = 0; i < o->dirs_n && !rc; i++) {
        struct managed_dir *md = &m->dirs[m->dirs_n];
        md->manager = m;
        md->dir = log_dir_new(o->fs, o->clock, o->dirs[i]);
        if (!md->dir) {
            snprintf(err, err_n, "log dir %s: its path is too long", o->dirs[i]);
            return -ENAMETOOLONG;
        }
        pthread_mutex_init(&md->checkpoint_lock, NULL);
        m->dirs_n++;
        md->dir->open_files = &m->open_files;
        md->dir->on_failure = o->dir_failed;
        md->dir->failure_arg = o->arg;
        md->dir->save_arg = md;
        rc = log_dir_claim(md->dir, err, err_n) == -EAGAIN ? -EAGAIN : 0;
        if (rc && check_distinct(o, err, err_n))
            rc = -EINVAL; /* it is ourselves who have it */
    }
    return rc;
}

struct place {
    const struct to_load *item;
    const char *dir;
};

static int by_partition(const void *a, const void *b)
{
    const struct to_load *x = ((const struct place *)a)->item;
    const struct to_load *y = ((const struct place *)b)->item;
    int c = str_cmp(x->topic, y->topic);
    if (!c)
        c = (x->partition > y->partition) - (x->partition < y->partition);
    return c ? c : x->future - y->future;
}

/* One partition in two dirs: the stop came in the middle of a move. Only a person can tell which
 * one to keep. */
static int check_same_partition(const struct dir_load *loads, int n, char *err, size_t err_n)
{
    size_t count = 0, used = 0;
    for (int i = 0; i < n; i++)
        count += (size_t)loads[i].n;
    struct place *v = malloc((count + 1) * sizeof(*v));
    if (!v)
        return -ENOMEM;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < loads[i].n; j++)
            v[used++] = (struct place){&loads[i].v[j], loads[i].md->dir->path};
    qsort(v, used, sizeof(*v), by_partition);
    int rc = 0;
    for (size_t i = 1; i < used && !rc; i++)
        if (by_partition(&v[i - 1], &v[i]) == 0) {
            snprintf(err, err_n,
                     "one partition has two folders: %s/%s and %s/%s. Move one of them away",
                     v[i - 1].dir, v[i - 1].item->name, v[i].dir, v[i].item->name);
            rc = -EINVAL;
        }
    free(v);
    return rc;
}

/* Do the files of the dir speak of logs that are not there? */
static bool names_others(const struct managed_dir *md)
{
    const struct offset_checkpoint *all[] = {&md->recovery_points, &md->start_offsets,
                                             &md->high_watermarks, &md->cleaned};
    for (int i = 0; i < 4; i++)
        for (size_t j = 0; j < all[i]->n; j++) {
            struct topic_partition tp = {all[i]->v[j].topic, all[i]->v[j].partition};
            struct log *log = log_manager_find(md->manager, tp);
            struct log *future = log_manager_future(md->manager, tp);
            bool here =
                (log && log->folder.dir == md->dir) || (future && future->folder.dir == md->dir);
            log_unref(log);
            log_unref(future);
            if (!here)
                return true;
        }
    return false;
}

/* Does the file call records recovered that are no longer there? Those that come in their place
 * would be trusted after a power cut, whatever became of them. */
static bool points_lie_ahead(const struct managed_dir *md)
{
    for (size_t j = 0; j < md->recovery_points.n; j++) {
        const struct offset_entry *e = &md->recovery_points.v[j];
        struct log *log =
            log_manager_find(md->manager, (struct topic_partition){e->topic, e->partition});
        bool ahead = log && log->folder.dir == md->dir && e->offset > log_recovery_point(log);
        log_unref(log);
        if (ahead)
            return true;
    }
    return false;
}

static int save_recovery_points(void *arg, struct log_dir *d)
{
    return managed_dir_write(arg, FILE_RECOVERY_POINTS);
}

static int save_cleaned(void *arg, struct log_dir *d)
{
    return managed_dir_write(arg, FILE_CLEANED);
}

static void finish_dir(struct managed_dir *md)
{
    if (!log_dir_offline(md->dir))
        atomic_store(&md->stale, names_others(md));
    md->dir->save_recovery_points = save_recovery_points;
    md->dir->save_cleaned = save_cleaned;
    if (!log_dir_offline(md->dir) && points_lie_ahead(md))
        (void)managed_dir_write_all(md); /* a failure takes the dir offline */
    offset_checkpoint_free(&md->recovery_points);
    offset_checkpoint_free(&md->start_offsets);
    offset_checkpoint_free(&md->high_watermarks);
    offset_checkpoint_free(&md->cleaned);
}

/* Logs of a dir that failed while it was loaded are not served. */
static void drop_logs(struct hmap *map, struct log_dir *d)
{
    for (struct hnode *n = hmap_first(map), *next; n; n = next) {
        next = hmap_next(map, n);
        struct log *log = hmap_entry(n, struct log, node);
        if (log->folder.dir != d)
            continue;
        hmap_remove(map, n);
        log_unref(log);
    }
}

static int load_all(struct log_manager *m, struct dir_load *loads, char *err, size_t err_n)
{
    int rc = 0;
    for (int i = 0; i < m->dirs_n && !rc; i++) {
        loads[i].md = &m->dirs[i];
        loads[i].err = err;
        loads[i].err_n = err_n;
        rc = list_dir(&loads[i]);
    }
    if (!rc)
        rc = check_same_partition(loads, m->dirs_n, err, err_n);
    if (rc)
        return rc;
    log_manager_parallel("log-load-dir", m->dirs_n, m->dirs_n, load_dir, loads);
    for (int i = 0; i < m->dirs_n; i++) {
        if (log_dir_offline(m->dirs[i].dir)) {
            drop_logs(&m->logs, m->dirs[i].dir);
            drop_logs(&m->futures, m->dirs[i].dir);
        }
        finish_dir(&m->dirs[i]);
    }
    if (log_manager_online_dirs(m) == 0) {
        snprintf(err, err_n, "no log dir is usable");
        return -EIO;
    }
    return 0;
}

static void free_loads(struct dir_load *loads, int n)
{
    for (int i = 0; loads && i < n; i++) {
        for (int j = 0; j < loads[i].n; j++)
            free(loads[i].v[j].name);
        free(loads[i].v);
    }
    free(loads);
}

static struct log_manager *manager_new(const struct log_manager_options *o)
{
    struct log_manager *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->fs = o->fs;
    m->clock = o->clock;
    m->threads = o->recovery_threads < 1 ? 1 : o->recovery_threads;
    m->remove_topic_ids = o->remove_topic_ids;
    open_files_init(&m->open_files, o->max_open_files);
    m->topic_config = o->topic_config;
    m->dir_failed = o->dir_failed;
    m->arg = o->arg;
    m->defaults = o->defaults;
    pthread_mutex_init(&m->change_lock, NULL);
    pthread_mutex_init(&m->lock, NULL);
    hmap_init(&m->logs);
    hmap_init(&m->futures);
    hmap_init(&m->preferred);
    m->dirs = calloc((size_t)o->dirs_n + 1, sizeof(*m->dirs));
    if (!m->dirs) {
        log_manager_abandon(m);
        return NULL;
    }
    return m;
}

int log_manager_open(const struct log_manager_options *o, struct log_manager **out, char *err,
                     size_t err_n)
{
    *out = NULL;
    snprintf(err, err_n, "no memory");
    struct log_manager *m = manager_new(o);
    struct dir_load *loads = calloc((size_t)o->dirs_n + 1, sizeof(*loads));
    int rc = m && loads ? claim_dirs(m, o, err, err_n) : -ENOMEM;
    if (!rc)
        rc = check_distinct(o, err, err_n);
    if (!rc)
        rc = settle_all_meta(m, o, err, err_n);
    if (!rc)
        rc = load_all(m, loads, err, err_n);
    free_loads(loads, m ? m->dirs_n : 0);
    if (rc)
        log_manager_abandon(m);
    else
        *out = m;
    return rc;
}
