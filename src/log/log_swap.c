/* log_swap.c - names in a folder, and files that were on their way in or out when the process
 * ended.
 *
 * A replacement of segments is written as .cleaned, renamed to .swap from the highest base down,
 * and, once all of it is .swap, takes the place of the old segments from the lowest base up. So
 * .cleaned beside .swap of higher bases means that it was not complete: all of it goes. Only .swap:
 * it is complete, and what it replaces goes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "log/file_batches.h"
#include "log/log_load.h"

static int add_name(void *arg, const char *name)
{
    struct log_names *names = arg;
    struct log_file_name parsed;
    if (!log_file_name_parse(name, &parsed))
        return 0;
    if (names->n == names->cap) {
        int cap = names->cap ? names->cap * 2 : 16;
        struct log_file_name *v = realloc(names->v, (size_t)cap * sizeof(*v));
        if (!v)
            return -ENOMEM;
        names->v = v;
        names->cap = cap;
    }
    names->v[names->n++] = parsed;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct log_file_name *x = a, *y = b;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

int log_names_list(struct fs *fs, const char *dir, struct log_names *out)
{
    *out = (struct log_names){0};
    int err = fs_list(fs, dir, add_name, out);
    if (err) {
        log_names_free(out);
        return err;
    }
    if (out->n)
        qsort(out->v, (size_t)out->n, sizeof(out->v[0]), by_number);
    return 0;
}

void log_names_free(struct log_names *names)
{
    free(names->v);
    *names = (struct log_names){0};
}

static int remove_file(struct fs *fs, const char *dir, const struct log_file_name *f)
{
    char path[LOG_PATH_MAX];
    log_file_path(path, dir, f->base, f->kind, f->stage);
    int err = fs_unlink(fs, path);
    return err == -ENOENT ? 0 : err;
}

/* Offset behind the last batch of a complete replacement. */
static int swap_end(struct fs *fs, const char *dir, int64_t base, int64_t *end)
{
    char path[LOG_PATH_MAX];
    uint8_t window[4096];
    struct file_batches w;
    struct file_stat st;
    struct file *f;
    struct batch b;
    int64_t pos;
    log_file_path(path, dir, base, LOG_FILE_DATA, LOG_STAGE_SWAP);
    int err = fs_open(fs, path, O_RDONLY, &f);
    if (err)
        return err;
    err = file_stat(f, &st);
    if (!err) {
        file_batches_init(&w, f, 0, st.size, window, sizeof(window));
        while (file_batches_next(&w, &b, &pos) == BATCH_OK)
            *end = batch_next_offset(&b);
        err = w.error;
    }
    file_unref(f);
    return err;
}

/* Undoes what was not complete, and removes the doomed. */
static int drop_unfinished(struct fs *fs, const char *dir, const struct log_names *names)
{
    int64_t lowest_cleaned = INT64_MAX;
    for (int i = 0; i < names->n; i++)
        if (names->v[i].stage == LOG_STAGE_CLEANED && names->v[i].base < lowest_cleaned)
            lowest_cleaned = names->v[i].base;
    int err = 0;
    /* .swap before .cleaned: after a crash in between the same is found again */
    for (int i = 0; i < names->n && !err; i++)
        if (names->v[i].stage == LOG_STAGE_DELETED ||
            (names->v[i].stage == LOG_STAGE_SWAP && names->v[i].base >= lowest_cleaned))
            err = remove_file(fs, dir, &names->v[i]);
    for (int i = 0; i < names->n && !err; i++)
        if (names->v[i].stage == LOG_STAGE_CLEANED)
            err = remove_file(fs, dir, &names->v[i]);
    return err;
}

/* Removes what complete replacements replace, then puts them in place. */
static int complete_swaps(struct fs *fs, const char *dir, const struct log_names *names)
{
    int64_t lo = INT64_MAX, hi = -1;
    int err = 0;
    for (int i = 0; i < names->n && !err; i++) {
        const struct log_file_name *f = &names->v[i];
        if (f->stage != LOG_STAGE_SWAP || f->kind != LOG_FILE_DATA)
            continue;
        int64_t end = f->base + 1; /* also an empty one replaces what has its base */
        err = swap_end(fs, dir, f->base, &end);
        lo = f->base < lo ? f->base : lo;
        hi = end > hi ? end : hi;
    }
    for (int i = 0; i < names->n && !err; i++)
        if (names->v[i].stage == LOG_STAGE_LIVE && names->v[i].base >= lo && names->v[i].base < hi)
            err = remove_file(fs, dir, &names->v[i]);
    for (int i = 0; i < names->n && !err; i++) {
        char from[LOG_PATH_MAX], to[LOG_PATH_MAX];
        const struct log_file_name *f = &names->v[i];
        if (f->stage != LOG_STAGE_SWAP)
            continue;
        log_file_path(from, dir, f->base, f->kind, LOG_STAGE_SWAP);
        log_file_path(to, dir, f->base, f->kind, LOG_STAGE_LIVE);
        err = fs_rename(fs, from, to);
    }
    return err ? err : fs_sync_dir(fs, dir);
}

static bool any(const struct log_names *names, enum log_file_stage stage)
{
    for (int i = 0; i < names->n; i++)
        if (names->v[i].stage == stage)
            return true;
    return false;
}

static int list_again(struct fs *fs, const char *dir, struct log_names *names)
{
    log_names_free(names);
    return log_names_list(fs, dir, names);
}

int log_finish_swaps(struct fs *fs, const char *dir, struct log_names *names)
{
    int err = 0;
    if (any(names, LOG_STAGE_DELETED) || any(names, LOG_STAGE_CLEANED)) {
        err = drop_unfinished(fs, dir, names);
        if (!err)
            err = list_again(fs, dir, names);
    }
    if (!err && any(names, LOG_STAGE_SWAP)) {
        err = complete_swaps(fs, dir, names);
        if (!err)
            err = list_again(fs, dir, names);
    }
    return err;
}
