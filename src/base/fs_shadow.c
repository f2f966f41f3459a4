/* fs_shadow.c - the tree of names, and the record of what is not yet on the disk. */
#include "base/fs_shadow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs_shadow_private.h"

void *shadow_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        abort();
    return p;
}

static char *copy_name(const char *name, size_t n)
{
    char *copy = shadow_alloc(n + 1);
    memcpy(copy, name, n);
    copy[n] = '\0';
    return copy;
}

/* Nodes */

struct node *shadow_ref(struct node *n)
{
    n->refs++;
    return n;
}

void shadow_writes_free(struct node *n)
{
    struct list *link;
    while ((link = list_pop(&n->writes)))
        free(list_entry(link, struct write_undo, link));
}

void shadow_unref(struct node *n)
{
    while (n && --n->refs == 0) {
        struct node *parent = n->parent;
        shadow_writes_free(n);
        list_remove(&n->all);
        free(n->name);
        free(n);
        n = parent;
    }
}

void shadow_attach(struct node *n)
{
    n->there = true;
    list_push_back(&n->parent->children, &n->sibling);
    shadow_ref(n);
}

void shadow_detach(struct node *n)
{
    n->there = false;
    list_remove(&n->sibling);
    shadow_unref(n);
}

void shadow_move(struct node *n, struct node *parent, char *name)
{
    struct node *old = n->parent;
    n->parent = shadow_ref(parent);
    free(n->name);
    n->name = name;
    list_remove(&n->sibling);
    list_push_back(&parent->children, &n->sibling);
    shadow_unref(old);
}

static struct node *make(struct shadow *s, struct node *parent, const char *name, size_t len)
{
    struct node *n = shadow_alloc(sizeof(*n));
    *n = (struct node){.parent = parent ? shadow_ref(parent) : NULL, .name = copy_name(name, len)};
    list_init(&n->children);
    list_init(&n->sibling);
    list_init(&n->writes);
    list_init(&n->maps);
    list_push_back(&s->nodes, &n->all);
    if (parent)
        shadow_attach(n);
    else
        n->refs = 1;
    return n;
}

static struct node *child(struct shadow *s, struct node *parent, const char *name, size_t len)
{
    list_each (it, &parent->children) {
        struct node *n = list_entry(it, struct node, sibling);
        if (strlen(n->name) == len && memcmp(n->name, name, len) == 0)
            return n;
    }
    return make(s, parent, name, len);
}

struct node *shadow_node(struct shadow *s, const char *path)
{
    struct node *n = s->root;
    while (*path) {
        size_t len = strcspn(++path, "/");
        if (len)
            n = child(s, n, path, len);
        path += len;
    }
    return shadow_ref(n);
}

void shadow_node_path(const struct node *n, char out[PATH_MAX])
{
    char *at = out + PATH_MAX - 1;
    *at = '\0';
    for (; n->parent; n = n->parent) {
        size_t len = strlen(n->name);
        if (len + 1 > (size_t)(at - out))
            abort(); /* shadow_path lets none so long in */
        at -= len;
        memcpy(at, n->name, len);
        *--at = '/';
    }
    if (!*at)
        *--at = '/';
    memmove(out, at, (size_t)(out + PATH_MAX - at));
}

int shadow_path(const char *path, char out[PATH_MAX])
{
    size_t n = 0;
    if (*path != '/') {
        if (!getcwd(out, PATH_MAX))
            return -errno;
        n = strcmp(out, "/") ? strlen(out) : 0;
    }
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len && !(len == 1 && *path == '.')) {
            if (n + 1 + len >= PATH_MAX)
                return -ENAMETOOLONG;
            out[n++] = '/';
            memcpy(out + n, path, len);
            n += len;
        }
        path += len;
        path += *path == '/';
    }
    if (!n)
        out[n++] = '/';
    out[n] = '\0';
    return 0;
}

void shadow_init(struct shadow *s, struct fs *under)
{
    *s = (struct shadow){.under = under};
    list_init(&s->nodes);
    list_init(&s->names);
    s->root = make(s, NULL, "", 0);
}

void shadow_free(struct shadow *s)
{
    struct list *link;
    while ((link = list_pop(&s->names)))
        shadow_name_free(list_entry(link, struct name_undo, link));
    while ((link = list_pop(&s->nodes))) { /* all of them go: no counting */
        struct node *n = list_entry(link, struct node, all);
        shadow_writes_free(n);
        free(n->name);
        free(n);
    }
}

/* Writes */

static int read_old(struct file *under, struct write_undo *w)
{
    ssize_t got = file_pread(under, w->old, w->old_len, w->off);
    if (got < 0)
        return (int)got;
    if ((size_t)got < w->old_len) /* someone else cut the file: what is gone reads as zero */
        memset(w->old + got, 0, w->old_len - (size_t)got);
    return 0;
}

int shadow_write_begin(struct file *under, enum shadow_change what, int64_t off, size_t len,
                       struct write_undo **out)
{
    *out = NULL;
    struct file_stat st;
    int err = file_stat(under, &st);
    if (err)
        return err;
    int64_t end = what == SHADOW_WRITE ? off + (int64_t)len : st.size;
    if (end > st.size)
        end = st.size;
    size_t old_len = what != SHADOW_GROW && off >= 0 && off < end ? (size_t)(end - off) : 0;
    struct write_undo *w = shadow_alloc(sizeof(*w) + old_len);
    *w = (struct write_undo){
        .off = off, .len = what == SHADOW_WRITE ? len : 0, .old_size = st.size, .old_len = old_len};
    list_init(&w->link);
    err = read_old(under, w);
    if (err) {
        free(w);
        return err;
    }
    *out = w;
    return 0;
}

void shadow_write_end(struct shadow *s, struct node *n, struct write_undo *w, ssize_t done)
{
    if (done < 0 || (done == 0 && w->len)) {
        free(w);
        return;
    }
    if (w->len) {
        w->len = (size_t)done;
        if (w->old_len > w->len)
            w->old_len = w->len;
    }
    w->seq = ++s->seq;
    list_push_back(&n->writes, &w->link);
}

/* Names */

void shadow_name_free(struct name_undo *u)
{
    shadow_unref(u->dir);
    shadow_unref(u->node);
    shadow_unref(u->from_dir);
    shadow_unref(u->replaced);
    file_unref(u->saved);
    free(u->from);
    free(u);
}

/* Takes the reference to `node`. */
static struct name_undo *name_changed(struct shadow *s, enum name_change what, struct node *node,
                                      struct file *saved)
{
    struct name_undo *u = shadow_alloc(sizeof(*u));
    *u = (struct name_undo){.seq = ++s->seq,
                            .what = what,
                            .dir = shadow_ref(node->parent),
                            .node = node,
                            .saved = saved};
    list_push_back(&s->names, &u->link);
    return u;
}

void shadow_created(struct shadow *s, const char *path)
{
    name_changed(s, NAME_CREATED, shadow_node(s, path), NULL);
}

void shadow_unlinked(struct shadow *s, const char *path, struct file *saved)
{
    struct node *n = shadow_node(s, path);
    name_changed(s, NAME_UNLINKED, n, saved);
    shadow_detach(n);
}

void shadow_renamed(struct shadow *s, const char *from, const char *to, bool replaced,
                    struct file *saved)
{
    const char *name = strrchr(to, '/') + 1;
    char to_dir[PATH_MAX];
    snprintf(to_dir, sizeof(to_dir), "%.*s", (int)(name - 1 - to), to);
    struct node *n = shadow_node(s, from);
    struct node *there = replaced ? shadow_node(s, to) : NULL;
    if (there)
        shadow_detach(there);
    struct node *from_dir = shadow_ref(n->parent), *dir = shadow_node(s, to_dir);
    char *old_name = copy_name(n->name, strlen(n->name));
    shadow_move(n, dir, copy_name(name, strlen(name)));
    shadow_unref(dir);
    struct name_undo *u = name_changed(s, NAME_RENAMED, n, saved);
    u->from_dir = from_dir;
    u->from = old_name;
    u->replaced = there;
}

/* Syncs */

void shadow_sync_end(struct node *n, uint64_t seq, int64_t from, int64_t to, bool ok)
{
    n->lost |= !ok;
    if (n->lost)
        return;
    list_each_safe (it, &n->writes) {
        struct write_undo *w = list_entry(it, struct write_undo, link);
        if (w->seq > seq)
            break;
        if (w->mapped && (w->off < from || w->off >= to))
            continue;
        list_remove(&w->link);
        free(w);
    }
}

/* A name is on the disk when the folder it stands in has been synced, whichever way it got there.
 */
static bool saved_by(const struct name_undo *u, const struct node *dir)
{
    if (u->dir == dir)
        return true;
    return u->what != NAME_UNLINKED && u->node->there && u->node->parent == dir;
}

void shadow_sync_dir_end(struct shadow *s, struct node *dir, uint64_t seq, bool ok)
{
    dir->lost |= !ok;
    if (dir->lost)
        return;
    list_each_safe (it, &s->names) {
        struct name_undo *u = list_entry(it, struct name_undo, link);
        if (u->seq <= seq && saved_by(u, dir)) {
            list_remove(&u->link);
            shadow_name_free(u);
        }
    }
}
