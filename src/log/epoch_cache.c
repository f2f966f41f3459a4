#include "log/epoch_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hmap.h"
#include "log/checkpoint.h"
#include "log/log_dir_private.h"
#include "log/log_names.h"

enum { FILE_MAX_BYTES = 64 << 20 };

void epoch_cache_init(struct epoch_cache *c)
{
    *c = (struct epoch_cache){0};
    pthread_mutex_init(&c->lock, NULL);
}

void epoch_cache_free(struct epoch_cache *c)
{
    free(c->v);
    pthread_mutex_destroy(&c->lock);
}

static int reserve(struct epoch_cache *c)
{
    if (c->n < c->cap)
        return 0;
    int cap = c->cap ? c->cap * 2 : 4;
    struct epoch_entry *v = realloc(c->v, (size_t)cap * sizeof(*v));
    if (!v)
        return -ENOMEM;
    c->v = v;
    c->cap = cap;
    return 0;
}

static int add_line(void *arg, const struct str *fields)
{
    struct epoch_cache *c = arg;
    int64_t epoch, start;
    if (!checkpoint_int(fields[0], 0, INT32_MAX, &epoch) ||
        !checkpoint_int(fields[1], 0, INT64_MAX, &start))
        return -EBADMSG;
    if (c->n && (epoch <= c->v[c->n - 1].epoch || start <= c->v[c->n - 1].start))
        return -EBADMSG;
    if (reserve(c))
        return -ENOMEM;
    c->v[c->n++] = (struct epoch_entry){(int32_t)epoch, start};
    return 0;
}

int epoch_cache_parse(struct epoch_cache *c, const char *text, size_t len)
{
    pthread_mutex_lock(&c->lock);
    c->n = 0;
    /* without its last line end it was cut, perhaps inside a number */
    int err = len && text[len - 1] != '\n' ? -EBADMSG : 0;
    if (!err)
        err = checkpoint_parse(text, len, 2, add_line, c);
    if (err)
        c->n = 0;
    pthread_mutex_unlock(&c->lock);
    return err;
}

int epoch_cache_read(struct epoch_cache *c, struct fs *fs, const char *dir, bool *had_text)
{
    char path[LOG_PATH_MAX];
    char *text;
    size_t len;
    *had_text = false;
    log_path_join(path, dir, EPOCH_FILE_NAME);
    int err = fs_read_all(fs, path, FILE_MAX_BYTES, &text, &len);
    if (err)
        return err == -EFBIG ? -EBADMSG : err;
    *had_text = len > 0;
    c->on_disk = hash_bytes(text, len);
    c->on_disk_n = len;
    err = epoch_cache_parse(c, text, len);
    free(text);
    return err;
}

/* APPENDED: over what is there, to which the text only adds an entry, so that any part of the write
 * leaves a count or a line that is wrong, which shows. UNSYNCED: a new file; any part of that
 * shows, too. SYNCED: durable. */
enum how { APPENDED, UNSYNCED, SYNCED };

static int write_text(struct epoch_cache *c, const struct buf *text, struct fs *fs, const char *dir,
                      enum how how)
{
    static int (*const write[])(struct fs *, const char *, const void *, size_t) = {
        [APPENDED] = fs_overwrite, [UNSYNCED] = fs_replace_unsynced, [SYNCED] = fs_replace};
    char path[LOG_PATH_MAX];
    uint64_t hash = hash_bytes(text->p, text->len);
    if (c->on_disk_n == text->len && c->on_disk == hash &&
        !(how == SYNCED && atomic_load(&c->unsynced))) {
        c->unsaved = false;
        return 0;
    }
    c->on_disk_n = 0; /* if it fails, who knows which */
    log_path_join(path, dir, EPOCH_FILE_NAME);
    int err = write[how](fs, path, text->p, text->len);
    if (how != SYNCED) /* behind the write: a sync that runs beside it does not cover it */
        atomic_store(&c->unsynced, true);
    if (err)
        return err;
    c->on_disk = hash;
    c->on_disk_n = text->len;
    c->unsaved = false;
    return 0;
}

static int write_entries(struct epoch_cache *c, const struct epoch_entry *v, int n, struct fs *fs,
                         const char *dir, enum how how)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "0\n%d\n", n);
    for (int i = 0; i < n; i++)
        buf_printf(&text, "%" PRId32 " %" PRId64 "\n", v[i].epoch, v[i].start);
    int err = text.failed ? -ENOMEM : write_text(c, &text, fs, dir, how);
    buf_free(&text);
    return err;
}

/* Only changers call it, one at a time, so v and n stand still without the lock. */
int epoch_cache_write(struct epoch_cache *c, struct fs *fs, const char *dir, bool sync)
{
    return write_entries(c, c->v, c->n, fs, dir, sync ? SYNCED : UNSYNCED);
}

int epoch_cache_sync(struct epoch_cache *c, struct fs *fs, const char *dir, bool *named)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    *named = false;
    if (!atomic_exchange(&c->unsynced, false)) /* first: a write from now on counts again */
        return 0;
    log_path_join(path, dir, EPOCH_FILE_NAME);
    int err = fs_open(fs, path, O_RDWR, &f);
    if (err) { /* nothing was lost: the next one has to do it */
        atomic_store(&c->unsynced, true);
        return err;
    }
    err = log_sync_failed(file_sync(f));
    file_unref(f);
    *named = !err;
    return err;
}

/* How many entries stay in front of (epoch, start). */
static int kept_before(const struct epoch_cache *c, int32_t epoch, int64_t start)
{
    int n = c->n;
    while (n && (c->v[n - 1].epoch >= epoch || c->v[n - 1].start >= start))
        n--;
    return n;
}

bool epoch_cache_is_news(struct epoch_cache *c, int32_t epoch, int64_t start)
{
    return epoch >= 0 && start >= 0 &&
           !(c->n && c->v[c->n - 1].epoch == epoch && c->v[c->n - 1].start <= start);
}

int epoch_cache_note(struct epoch_cache *c, int32_t epoch, int64_t start)
{
    if (!epoch_cache_is_news(c, epoch, start))
        return 0;
    pthread_mutex_lock(&c->lock);
    int err = reserve(c);
    if (!err) {
        c->n = kept_before(c, epoch, start);
        c->v[c->n++] = (struct epoch_entry){epoch, start};
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}

int epoch_cache_assign(struct epoch_cache *c, struct fs *fs, const char *dir, int32_t epoch,
                       int64_t start)
{
    if (!epoch_cache_is_news(c, epoch, start))
        return c->unsaved ? epoch_cache_write(c, fs, dir, false) : 0;
    int n = kept_before(c, epoch, start);
    struct epoch_entry *v = malloc(((size_t)n + 1) * sizeof(*v));
    if (!v)
        return -ENOMEM;
    if (n)
        memcpy(v, c->v, (size_t)n * sizeof(*v));
    v[n] = (struct epoch_entry){epoch, start};
    /* is the file what is in memory, and nothing of it goes? A new log's is empty */
    bool adds = n == c->n && (c->on_disk_n ? !c->unsaved : n == 0);
    int err = write_entries(c, v, n + 1, fs, dir, adds ? APPENDED : UNSYNCED);
    if (err) {
        free(v);
        return err;
    }
    pthread_mutex_lock(&c->lock);
    free(c->v);
    c->v = v;
    c->n = c->cap = n + 1;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

bool epoch_cache_cut_end(struct epoch_cache *c, int64_t end)
{
    pthread_mutex_lock(&c->lock);
    int n = c->n;
    while (n && c->v[n - 1].start >= end)
        n--;
    bool changed = n != c->n;
    c->n = n;
    c->unsaved |= changed;
    pthread_mutex_unlock(&c->lock);
    return changed;
}

bool epoch_cache_cut_start(struct epoch_cache *c, int64_t start)
{
    pthread_mutex_lock(&c->lock);
    int last = -1; /* the last entry that begins at or below start */
    while (last + 1 < c->n && c->v[last + 1].start <= start)
        last++;
    bool changed = last > 0 || (last == 0 && c->v[0].start < start);
    if (changed) {
        memmove(c->v, c->v + last, (size_t)(c->n - last) * sizeof(c->v[0]));
        c->n -= last;
        c->v[0].start = start;
        c->unsaved = true;
    }
    pthread_mutex_unlock(&c->lock);
    return changed;
}

void epoch_cache_clear(struct epoch_cache *c)
{
    pthread_mutex_lock(&c->lock);
    c->unsaved |= c->n > 0;
    c->n = 0;
    pthread_mutex_unlock(&c->lock);
}

void epoch_cache_end_offset(struct epoch_cache *c, int32_t epoch, int64_t log_end, int32_t *found,
                            int64_t *end)
{
    *found = -1;
    *end = -1;
    pthread_mutex_lock(&c->lock);
    if (epoch >= 0 && c->n && epoch <= c->v[c->n - 1].epoch) {
        int i = c->n - 1; /* the largest epoch at or below the one asked for */
        while (i >= 0 && c->v[i].epoch > epoch)
            i--;
        *found = i < 0 ? epoch : c->v[i].epoch;
        *end = i == c->n - 1 ? log_end : c->v[i + 1].start;
    }
    pthread_mutex_unlock(&c->lock);
}

int32_t epoch_cache_latest(struct epoch_cache *c)
{
    pthread_mutex_lock(&c->lock);
    int32_t epoch = c->n ? c->v[c->n - 1].epoch : -1;
    pthread_mutex_unlock(&c->lock);
    return epoch;
}

int32_t epoch_cache_of_offset(struct epoch_cache *c, int64_t offset)
{
    pthread_mutex_lock(&c->lock);
    int i = c->n - 1;
    while (i >= 0 && c->v[i].start > offset)
        i--;
    int32_t epoch = i < 0 ? -1 : c->v[i].epoch;
    pthread_mutex_unlock(&c->lock);
    return epoch;
}

int32_t epoch_cache_earliest(struct epoch_cache *c, int64_t start)
{
    pthread_mutex_lock(&c->lock);
    int32_t epoch = c->n && c->v[0].start <= start ? c->v[0].epoch : -1;
    pthread_mutex_unlock(&c->lock);
    return epoch;
}

int epoch_cache_count(struct epoch_cache *c)
{
    pthread_mutex_lock(&c->lock);
    int n = c->n;
    pthread_mutex_unlock(&c->lock);
    return n;
}

struct epoch_entry epoch_cache_at(struct epoch_cache *c, int i)
{
    pthread_mutex_lock(&c->lock);
    struct epoch_entry e = c->v[i];
    pthread_mutex_unlock(&c->lock);
    return e;
}
