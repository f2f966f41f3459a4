/* fs_shadow_crash.c - going back: first over the names, newest first, then over each file's writes.
 *
 * A torn crash keeps a first part of the names' changes (file systems log those in order) and a
 * first part of each file's writes, and cuts the write behind that part in its middle. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs_shadow_private.h"

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    return next_random(state) % n;
}

/* Is `n` the folder or somewhere in it? With `now`, only by names that are there. */
static bool inside(const struct node *n, const struct node *dir, bool now)
{
    for (; n; n = n->parent) {
        if (n == dir)
            return true;
        if (now && !n->there)
            return false;
    }
    return false;
}

/* Names */

static int copy_content(struct file *from, struct file *to)
{
    char block[8192];
    for (int64_t off = 0;;) {
        ssize_t got = file_pread(from, block, sizeof(block), off);
        if (got <= 0)
            return (int)got;
        int err = file_pwrite_all(to, block, (size_t)got, off);
        if (err)
            return err;
        off += got;
    }
}

/* Gives a node that has lost its name the old one again. */
static int bring_back(struct shadow *s, struct node *n, struct file *saved)
{
    char path[PATH_MAX];
    shadow_node_path(n, path);
    int err;
    if (saved) {
        struct file *f;
        err = fs_open(s->under, path, O_RDWR | O_CREAT | O_EXCL, &f);
        if (!err) {
            err = copy_content(saved, f);
            file_unref(f);
        }
    } else {
        err = fs_mkdir(s->under, path);
    }
    shadow_attach(n);
    return err;
}

static int undo_created(struct shadow *s, struct name_undo *u)
{
    char path[PATH_MAX];
    shadow_node_path(u->node, path);
    shadow_detach(u->node);
    return fs_remove_tree(s->under, path);
}

static int undo_renamed(struct shadow *s, struct name_undo *u)
{
    char now[PATH_MAX], before[PATH_MAX];
    shadow_node_path(u->node, now);
    shadow_move(u->node, u->from_dir, strdup(u->from));
    shadow_node_path(u->node, before);
    int err = fs_rename(s->under, now, before);
    if (!err && u->replaced)
        err = bring_back(s, u->replaced, u->saved);
    return err;
}

static int undo_name(struct shadow *s, struct name_undo *u)
{
    if (u->what == NAME_UNLINKED)
        return bring_back(s, u->node, u->saved);
    if (!u->node->there)
        return 0; /* a later change that reached the disk took it away */
    return u->what == NAME_CREATED ? undo_created(s, u) : undo_renamed(s, u);
}

static int undo_names(struct shadow *s, struct node *dir, enum fs_crash how, uint64_t *random)
{
    struct list mine = LIST_INIT(mine);
    uint64_t n = 0;
    list_each_safe (it, &s->names) {
        struct name_undo *u = list_entry(it, struct name_undo, link);
        if (!inside(u->dir, dir, false))
            continue;
        list_remove(it);
        list_push_back(&mine, it);
        n++;
    }
    uint64_t keep = how == FS_CRASH_KEEP ? n : how == FS_CRASH_TEAR ? below(random, n + 1) : 0;
    int err = 0;
    for (; n; n--) {
        struct name_undo *u = list_entry(mine.prev, struct name_undo, link);
        list_remove(&u->link);
        if (n > keep && !err)
            err = undo_name(s, u);
        shadow_name_free(u);
    }
    return err;
}

/* Writes */

static int set_size(struct file *f, int64_t size)
{
    struct file_stat st;
    int err = file_stat(f, &st);
    if (err || st.size == size)
        return err;
    return file_truncate(f, size);
}

/* Takes the write back but for its first `keep` bytes. */
static int undo_write(struct file *f, const struct write_undo *w, size_t keep)
{
    int64_t from = w->off + (int64_t)keep;
    if (w->old_len > keep) {
        int err = file_pwrite_all(f, w->old + keep, w->old_len - keep, from);
        if (err)
            return err;
    }
    return set_size(f, keep && from > w->old_size ? from : w->old_size);
}

static int undo_writes(struct shadow *s, struct node *n, enum fs_crash how, uint64_t *random)
{
    uint64_t count = 0, keep = 0;
    list_each (it, &n->writes)
        count++;
    if (how == FS_CRASH_TEAR)
        keep = below(random, count + 1);
    else if (how == FS_CRASH_KEEP)
        keep = count;
    char path[PATH_MAX];
    struct file *f;
    shadow_node_path(n, path);
    int err = fs_open(s->under, path, O_RDWR, &f);
    if (err)
        return err;
    for (; count > keep && !err; count--) {
        struct write_undo *w = list_entry(n->writes.prev, struct write_undo, link);
        size_t part = 0;
        if (how == FS_CRASH_TEAR && count == keep + 1 && w->len)
            part = (size_t)below(random, w->len);
        err = undo_write(f, w, part);
        list_remove(&w->link);
        free(w);
    }
    file_unref(f);
    return err;
}

static int crash_in(struct shadow *s, struct node *dir, enum fs_crash how, uint64_t *random)
{
    list_each (it, &s->nodes) {
        struct node *n = list_entry(it, struct node, all);
        if (n->open && inside(n, dir, false))
            return -EBUSY;
    }
    s->frozen = false;
    int err = undo_names(s, dir, how, random);
    list_each (it, &s->nodes) {
        struct node *n = list_entry(it, struct node, all);
        if (!inside(n, dir, false))
            continue;
        if (!err && !list_empty(&n->writes) && inside(n, dir, true))
            err = undo_writes(s, n, how, random);
        shadow_writes_free(n);
        n->lost = false;
    }
    return err;
}

int shadow_crash(struct shadow *s, const char *path, enum fs_crash how, uint64_t seed)
{
    struct node *dir = shadow_node(s, path);
    int err = crash_in(s, dir, how, &seed);
    shadow_unref(dir);
    return err;
}
