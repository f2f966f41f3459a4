/* fs_shadow.h - what a machine crash would forget; for fs_fault.c only.
 *
 * A tree of the names that were touched. A file's node has the way back for each write since its
 * last sync (old bytes, old size); the shadow has the way back for each change of a name since its
 * folder's last sync. Going back, newest first, gives the state on the disk.
 *
 * Paths are absolute and clean (shadow_path). Without memory it aborts: it runs in tests only.
 * THREADS  the caller's lock, around everything. */
#ifndef BASE_FS_SHADOW_H
#define BASE_FS_SHADOW_H

#include <limits.h>

#include "base/file.h"
#include "base/fs_fault.h"
#include "base/list.h"

/* A live writable mapping. */
struct shadow_map {
    struct list link;   /* node's maps */
    struct file *under; /* borrowed */
    uint8_t *p;
    size_t len;
    uint8_t *saved; /* its bytes as of mapping or the last fold */
};

struct node {
    struct list all;     /* shadow's nodes, in order of making */
    struct node *parent; /* kept when the name is gone: where it was */
    char *name;
    bool there;           /* has its name: is among its parent's children */
    bool lost;            /* a sync failed: later ones do not save what came before */
    int refs;             /* its name, its children, open files, name changes */
    int open;             /* open files */
    struct list children; /* by sibling */
    struct list sibling;
    struct list writes; /* struct write_undo, oldest first */
    struct list maps;   /* struct shadow_map: live writable mappings */
};

struct shadow {
    struct fs *under;
    struct node *root;
    struct list nodes; /* by all */
    struct list names; /* struct name_undo, oldest first */
    uint64_t seq;      /* of the last write or name change */
    bool frozen;       /* no power: mappings are recorded no more */
};

void shadow_init(struct shadow *s, struct fs *under);
void shadow_free(struct shadow *s);

/* Absolute, without empty or "." parts. -ENAMETOOLONG or 0. */
int shadow_path(const char *path, char out[PATH_MAX]);
/* The node of the path, made if it is new. Returns shared: shadow_unref it. */
struct node *shadow_node(struct shadow *s, const char *path);
void shadow_unref(struct node *n);
void shadow_node_path(const struct node *n, char out[PATH_MAX]);

/* A change of a file's bytes or size: begin before it, end after it with how many bytes were really
 * written (-1: nothing happened). `off` is the new size for SHADOW_TRUNCATE and unused for
 * SHADOW_GROW. Takes the way back from `under`, the open file below. */
enum shadow_change { SHADOW_WRITE, SHADOW_TRUNCATE, SHADOW_GROW };
struct write_undo;
int shadow_write_begin(struct file *under, enum shadow_change what, int64_t off, size_t len,
                       struct write_undo **out);
void shadow_write_end(struct shadow *s, struct node *n, struct write_undo *w, ssize_t done);

/* The caller has just made the change below. `saved` is an open file below that has lost its name
 * by it (NULL: none, or a folder); takes it. */
void shadow_created(struct shadow *s, const char *path);
void shadow_unlinked(struct shadow *s, const char *path, struct file *saved);
void shadow_renamed(struct shadow *s, const char *from, const char *to, bool replaced,
                    struct file *saved);

/* A sync has two ends, between which the lock is open. What came before `seq`, s->seq at the begin
 * (for a file: after shadow_fold_maps), is on the disk if it went well; but of what was stored into
 * mappings only the pages from..to. */
void shadow_sync_end(struct node *n, uint64_t seq, int64_t from, int64_t to, bool ok);
void shadow_sync_dir_end(struct shadow *s, struct node *dir, uint64_t seq, bool ok);

void shadow_map_add(struct node *n, struct file *under, void *p, size_t len);
/* Before the mapping goes. */
void shadow_map_remove(struct shadow *s, struct node *n, void *p);
/* Where in the file p is, that points into a mapping; -1 when into none. */
int64_t shadow_map_offset(const struct node *n, const void *p);
/* Records what the file's mappings have changed as writes: before a sync or a change of size. */
void shadow_fold_maps(struct shadow *s, struct node *n);
/* From now until the crash, changes in mappings count for nothing and are taken back when they go.
 */
void shadow_freeze(struct shadow *s);

int shadow_crash(struct shadow *s, const char *dir, enum fs_crash how, uint64_t seed);

#endif
