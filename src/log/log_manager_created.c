/* log_manager_created.c - making new logs durable, many at a time.
 *
 * A log of its own would cost three fsyncs, each a wait for the disk. Of many, all that is dirty is
 * written back first, in one go; then the fsyncs, which are made all the same since only they tell
 * of errors, find little to do. */
#include <stdlib.h>

#include "log/log_manager_private.h"
#include "log/log_private.h"

enum { MANY = 8 };

void log_manager_note_created(struct log_manager *m, struct log *log)
{
    pthread_mutex_lock(&m->lock);
    if (m->created_n == m->created_cap) {
        int cap = m->created_cap ? m->created_cap * 2 : 16;
        struct log **v = realloc(m->created, (size_t)cap * sizeof(struct log *));
        if (v) {
            m->created = v;
            m->created_cap = cap;
        }
    }
    if (m->created_n < m->created_cap) /* else its first flush makes it durable */
        m->created[m->created_n++] = log_ref(log);
    pthread_mutex_unlock(&m->lock);
}

static struct log **take_created(struct log_manager *m, int *n)
{
    pthread_mutex_lock(&m->lock);
    struct log **v = m->created;
    *n = m->created_n;
    m->created = NULL;
    m->created_n = m->created_cap = 0;
    pthread_mutex_unlock(&m->lock);
    return v;
}

void log_manager_forget_created(struct log_manager *m)
{
    int n;
    struct log **v = take_created(m, &n);
    log_manager_snapshot_free(v, n);
}

static void sync_one(void *arg, int i)
{
    struct log *log = ((struct log **)arg)[i];
    (void)log_sync_created(log); /* a failure has taken the dir offline */
}

/* One fsync of a dir covers the names of all folders in it. */
static void sync_folders(struct log **v, int n)
{
    struct log_dir *done = NULL;
    for (int i = 0; i < n; i++) {
        struct log *log = v[i];
        struct log_dir *d = log->folder.dir;
        if (log_dir_offline(d))
            continue;
        if (d == done) {
            atomic_store(&log->unsynced_folder, false);
            continue;
        }
        int err = log_sync_folder(log);
        if (err && !log_error_is_shortage(err))
            log_dir_fail(d, err, "sync %s", d->path);
        done = err ? NULL : d;
    }
}

static int by_dir(const void *a, const void *b)
{
    const struct log *x = *(struct log *const *)a, *y = *(struct log *const *)b;
    return (x->folder.dir > y->folder.dir) - (x->folder.dir < y->folder.dir);
}

void log_manager_sync_created(struct log_manager *m)
{
    int n;
    struct log **v = take_created(m, &n);
    if (n == 0) {
        free(v);
        return;
    }
    qsort(v, (size_t)n, sizeof(*v), by_dir);
    if (n >= MANY)
        for (int i = 0; i < n; i++)
            if (i == 0 || v[i]->folder.dir != v[i - 1]->folder.dir)
                fs_write_back(m->fs, v[i]->folder.dir->path);
    log_manager_parallel("log-create", log_manager_light_threads(m, n), n, sync_one, v);
    sync_folders(v, n);
    log_manager_snapshot_free(v, n);
}
