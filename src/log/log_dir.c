/* log_dir.c - one folder of log.dirs: going offline, lock, clean mark, delayed removal. */
#include "log/log_dir_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/logline.h"

static const char clean_mark[] = "{\"version\":0,\"brokerEpoch\":-1}";

struct doomed {
    struct list link;
    int64_t due_ms; /* monotonic */
    bool folder;
    char path[];
};

struct log_dir *log_dir_new(struct fs *fs, const struct clock *clock, const char *path)
{
    /* room for a folder and a file below it */
    if (strlen(path) + 2 * FOLDER_NAME_MAX >= LOG_PATH_MAX)
        return NULL;
    struct log_dir *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->path = strdup(path);
    if (!d->path) {
        free(d);
        return NULL;
    }
    d->fs = fs;
    d->clock = clock;
    d->lock_fd = d->dir_fd = -1;
    list_init(&d->doomed);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->recovered, NULL);
    return d;
}

void log_dir_free(struct log_dir *d)
{
    if (!d)
        return;
    list_each_safe (it, &d->doomed) {
        list_remove(it);
        free(list_entry(it, struct doomed, link));
    }
    if (d->lock_fd >= 0) {
        char path[LOG_PATH_MAX];
        log_path_join(path, d->path, LOCK_NAME);
        fs_unlock(path, d->lock_fd);
    }
    if (d->dir_fd >= 0)
        close(d->dir_fd);
    pthread_cond_destroy(&d->recovered);
    pthread_mutex_destroy(&d->lock);
    free(d->path);
    free(d);
}

const char *log_dir_path(const struct log_dir *d)
{
    return d->path;
}

const struct histogram *log_dir_flushes(const struct log_dir *d)
{
    return &d->flushes_us;
}

bool log_dir_offline(const struct log_dir *d)
{
    return atomic_load_explicit(&d->offline, memory_order_acquire);
}

void log_dir_fail(struct log_dir *d, int error, const char *fmt, ...)
{
    char doing[LOG_PATH_MAX + 256], why[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(doing, sizeof(doing), fmt, ap);
    va_end(ap);
    const char *text = strerror_r(error < 0 ? -error : error, why, sizeof(why));
    if (atomic_exchange(&d->offline, true)) {
        say_debug("log dir", "%s: %s (the dir is offline already)", doing, text);
        return;
    }
    say_error("log dir", "%s goes offline until the next start: %s: %s", d->path, doing, text);
    if (d->on_failure)
        d->on_failure(d->failure_arg, d);
}

int log_dir_claim(struct log_dir *d, char *err, size_t err_n)
{
    char path[LOG_PATH_MAX];
    int rc = fs_mkdir_p(d->fs, d->path);
    if (rc) {
        log_dir_fail(d, rc, "create %s", d->path);
        return rc;
    }
    log_path_join(path, d->path, LOCK_NAME);
    rc = fs_lock(path, &d->lock_fd);
    if (!rc)
        rc = fs_lock_dir(d->path, &d->dir_fd);
    if (rc == -EAGAIN) {
        snprintf(
            err, err_n,
            "log dir %s is in use: another process holds %s. A dir belongs to one broker: stop "
            "the other one or set log.dirs to another folder",
            d->path, path);
        return rc;
    }
    if (rc)
        log_dir_fail(d, rc, "lock %s", path);
    return rc;
}

int log_dir_take_clean_mark(struct log_dir *d)
{
    char path[LOG_PATH_MAX];
    log_path_join(path, d->path, CLEAN_MARK_NAME);
    int rc = fs_unlink(d->fs, path);
    if (rc == -ENOENT)
        return 0;
    /* A crash while loading must find no mark, a crash of the machine included. */
    if (!rc)
        rc = fs_sync_dir(d->fs, d->path);
    if (rc) {
        log_dir_fail(d, rc, "remove %s", path);
        return rc;
    }
    return 1;
}

int log_dir_put_clean_mark(struct log_dir *d)
{
    char path[LOG_PATH_MAX];
    log_path_join(path, d->path, CLEAN_MARK_NAME);
    int rc = fs_replace(d->fs, path, clean_mark, sizeof(clean_mark) - 1);
    if (rc)
        log_dir_fail(d, rc, "write %s", path);
    return rc;
}

void log_dir_begin_recovery(struct log_dir *d)
{
    pthread_mutex_lock(&d->lock);
    while (d->recovering_most > 0 && d->recovering >= d->recovering_most)
        pthread_cond_wait(&d->recovered, &d->lock);
    d->recovering++;
    pthread_mutex_unlock(&d->lock);
}

void log_dir_end_recovery(struct log_dir *d)
{
    pthread_mutex_lock(&d->lock);
    d->recovering--;
    pthread_cond_signal(&d->recovered);
    pthread_mutex_unlock(&d->lock);
}

void log_dir_doom(struct log_dir *d, const char *path, bool folder, int64_t delay_ms)
{
    size_t n = strlen(path) + 1;
    struct doomed *x = malloc(sizeof(*x) + n);
    if (!x) {
        say_warn("log dir", "no memory to remember that %s must go: it goes at the next start",
                 path);
        return;
    }
    x->folder = folder;
    memcpy(x->path, path, n);
    x->due_ms = clock_mono_ms(d->clock) + delay_ms;
    if (x->due_ms < delay_ms) /* overflow: never */
        x->due_ms = INT64_MAX;
    pthread_mutex_lock(&d->lock);
    list_push_back(&d->doomed, &x->link);
    pthread_mutex_unlock(&d->lock);
}

static struct doomed *pop_due(struct log_dir *d, int64_t now_ms)
{
    struct doomed *found = NULL;
    pthread_mutex_lock(&d->lock);
    list_each (it, &d->doomed) {
        struct doomed *x = list_entry(it, struct doomed, link);
        if (x->due_ms <= now_ms) {
            list_remove(it);
            found = x;
            break;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return found;
}

void log_dir_remove_due(struct log_dir *d)
{
    int64_t now_ms = clock_mono_ms(d->clock);
    struct doomed *x;
    while (!log_dir_offline(d) && (x = pop_due(d, now_ms))) {
        int rc = x->folder ? fs_remove_tree(d->fs, x->path) : fs_unlink(d->fs, x->path);
        /* Its whole folder may have gone in the meantime. */
        if (rc && rc != -ENOENT)
            log_dir_fail(d, rc, "remove %s", x->path);
        else if (x->folder)
            say_info("log dir", "removed %s", x->path);
        free(x);
    }
}

int64_t log_dir_next_due(struct log_dir *d)
{
    int64_t next = -1;
    if (log_dir_offline(d))
        return -1;
    pthread_mutex_lock(&d->lock);
    list_each (it, &d->doomed) {
        int64_t due = list_entry(it, struct doomed, link)->due_ms;
        if (next < 0 || due < next)
            next = due;
    }
    pthread_mutex_unlock(&d->lock);
    return next;
}
