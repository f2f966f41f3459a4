/* tree.h - the nodes of the embedded store in memory, with ZooKeeper's rules: versions, sequence
 * numbers, ephemeral nodes, parents that must exist, only empty nodes may go. No files, no watches,
 * no threads.
 *
 * CHANGES      are made inside a tree_txn, which can be rolled back until it is committed; so a
 *              multi is all or nothing.
 * INVARIANTS   (T1) every node but the root has a parent in the tree.
 *              (T2) an ephemeral node has no children.
 *              (T3) a parent's list of children is in order of czxid, oldest first.
 *              (T4) version is the number of sets since creation; `made` never shrinks, so a
 *                   sequence number is given once in a node's life.
 *              tree_check() tests them.
 * THREADS      one at a time. */
#ifndef METADATA_TREE_H
#define METADATA_TREE_H

#include "base/hmap.h"
#include "base/list.h"
#include "base/str.h"
#include "metadata/store.h"

struct tree_node {
    struct hnode by_name; /* in parent->children */
    struct list by_age;   /* in parent->ages */
    struct tree_node *parent;
    struct hmap children;
    struct list ages; /* the children, oldest first */
    uint8_t *data;    /* owned; NUL behind it */
    int32_t data_len; /* -1 null */
    int32_t version;
    int64_t czxid, mzxid, ctime_ms, mtime_ms;
    int64_t owner; /* session; 0 = persistent */
    uint32_t made; /* children made here so far: the next sequence number */
    uint16_t name_len;
    char name[];
};

struct tree {
    struct tree_node *root;
    size_t nodes_n; /* the root included */
};

enum { TREE_PATH_MAX = 1024, TREE_DATA_MAX = 16 << 20 };

int tree_init(struct tree *t);
void tree_free(struct tree *t);

/* Is it an absolute path of non-empty components, none of them "." or "..", without control
 * characters, at most TREE_PATH_MAX bytes? */
bool tree_path_ok(const char *path);
/* NULL = no such node. Returns borrowed until it is deleted. */
struct tree_node *tree_find(const struct tree *t, const char *path);
void tree_stat(const struct tree_node *n, struct store_stat *st);
/* Writes the node's path and a NUL; false when it does not fit. */
bool tree_path(const struct tree_node *n, char *out, size_t size);

struct tree_undo;
struct tree_txn {
    struct tree *tree;
    struct tree_undo *last;
    int64_t zxid, now_ms;
};
void tree_begin(struct tree_txn *x, struct tree *t, int64_t zxid, int64_t now_ms);
/* owner 0 makes a persistent node. *made: the node, with its sequence number where `sequential`.
 * 0, -ENOENT no parent, -EEXIST, -EINVAL path or ephemeral parent, -ENOMEM. */
int tree_create(struct tree_txn *x, const char *path, struct bytes data, int64_t owner,
                bool sequential, struct tree_node **made);
/* 0, -ENOENT, STORE_BAD_VERSION, -EINVAL (too large), -ENOMEM. */
int tree_set(struct tree_txn *x, const char *path, struct bytes data, int32_t version,
             struct tree_node **changed);
/* 0, -ENOENT, STORE_BAD_VERSION, -ENOTEMPTY, -EINVAL (the root), -ENOMEM. */
int tree_delete(struct tree_txn *x, const char *path, int32_t version);
int tree_verify(const struct tree *t, const char *path, int32_t version);
void tree_commit(struct tree_txn *x);
void tree_rollback(struct tree_txn *x);

/* Every node, the root first, parents before children, oldest first; stops at the first non-zero
 * and returns it. */
int tree_each(const struct tree *t, int (*each)(void *arg, const struct tree_node *n), void *arg);
/* For a snapshot's reader, in the order of tree_each: puts a node in as it was ("/": sets the
 * root). 0, -ENOENT, -EEXIST, -EINVAL, -ENOMEM. */
int tree_restore(struct tree *t, const char *path, struct bytes data, const struct store_stat *st,
                 uint32_t made);
/* NULL when the invariants hold, else which does not. */
const char *tree_check(const struct tree *t);

#endif
