/* tree.c - nodes of the embedded store: see tree.h.
 *
 * A node that is deleted stays allocated, unlinked, until its transaction ends. Rolling back works
 * off the changes newest first, so the neighbours that a deleted node's own links name are in place
 * again when it is put back. */
#include "metadata/tree.h"

#include <stdio.h>
#include <stdlib.h>

enum undo_kind { UNDO_CREATE, UNDO_SET, UNDO_DELETE };

struct tree_undo {
    struct tree_undo *before;
    enum undo_kind kind;
    struct tree_node *node;
    /* UNDO_SET: as it was */
    uint8_t *data;
    int32_t data_len;
    int64_t mzxid, mtime_ms;
};

static struct tree_node *node_new(const char *name, size_t name_len)
{
    struct tree_node *n = calloc(1, sizeof(*n) + name_len + 1);
    if (!n)
        return NULL;
    hmap_init(&n->children);
    list_init(&n->by_age);
    list_init(&n->ages);
    n->data_len = -1;
    n->name_len = (uint16_t)name_len;
    memcpy(n->name, name, name_len);
    return n;
}

static void node_free(struct tree_node *n)
{
    if (!n)
        return;
    hmap_free(&n->children);
    free(n->data);
    free(n);
}

/* NUL behind the copy; *out stays NULL for null data. */
static int copy_data(struct bytes data, uint8_t **out)
{
    *out = NULL;
    if (data.len < 0)
        return 0;
    if (data.len > TREE_DATA_MAX)
        return -EINVAL;
    uint8_t *p = malloc((size_t)data.len + 1);
    if (!p)
        return -ENOMEM;
    if (data.len)
        memcpy(p, data.p, (size_t)data.len);
    p[data.len] = 0;
    *out = p;
    return 0;
}

int tree_init(struct tree *t)
{
    t->root = node_new("", 0);
    t->nodes_n = 1;
    return t->root ? 0 : -ENOMEM;
}

/* The node after `n` in a walk, children before siblings; NULL behind the last. */
static struct tree_node *walk_next(const struct tree_node *n)
{
    if (!list_empty(&n->ages))
        return list_entry(n->ages.next, struct tree_node, by_age);
    for (; n->parent; n = n->parent)
        if (n->by_age.next != &n->parent->ages)
            return list_entry(n->by_age.next, struct tree_node, by_age);
    return NULL;
}

void tree_free(struct tree *t)
{
    struct tree_node *n = t->root;
    while (n) { /* always the first leaf; its parent becomes one in time */
        while (!list_empty(&n->ages))
            n = list_entry(n->ages.next, struct tree_node, by_age);
        struct tree_node *parent = n->parent;
        list_remove(&n->by_age);
        node_free(n);
        n = parent;
    }
    *t = (struct tree){0};
}

static bool component_ok(const char *p, size_t n)
{
    if (!n || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
            return false;
    return true;
}

bool tree_path_ok(const char *path)
{
    if (!path || path[0] != '/' || strnlen(path, TREE_PATH_MAX + 1) > TREE_PATH_MAX)
        return false;
    if (!path[1])
        return true;
    for (const char *at = path; *at;) {
        size_t n = strcspn(at + 1, "/");
        if (!component_ok(at + 1, n))
            return false;
        at += 1 + n;
    }
    return true;
}

static bool name_equals(const struct hnode *h, const void *key)
{
    const struct tree_node *n = hmap_entry(h, struct tree_node, by_name);
    const struct str *name = key;
    return n->name_len == name->len && memcmp(n->name, name->p, n->name_len) == 0;
}

static struct tree_node *child(const struct tree_node *n, const char *name, size_t len)
{
    struct str key = {name, (int32_t)len};
    struct hnode *h = hmap_find(&n->children, hash_str(key), name_equals, &key);
    return h ? hmap_entry(h, struct tree_node, by_name) : NULL;
}

/* Walks the first `len` bytes of a legal path. */
static struct tree_node *find_n(const struct tree *t, const char *path, size_t len)
{
    struct tree_node *n = t->root;
    for (size_t at = 1; n && at < len;) {
        size_t end = at;
        while (end < len && path[end] != '/')
            end++;
        n = child(n, path + at, end - at);
        at = end + 1;
    }
    return n;
}

struct tree_node *tree_find(const struct tree *t, const char *path)
{
    return tree_path_ok(path) ? find_n(t, path, strlen(path)) : NULL;
}

void tree_stat(const struct tree_node *n, struct store_stat *st)
{
    *st = (struct store_stat){.version = n->version,
                              .czxid = n->czxid,
                              .mzxid = n->mzxid,
                              .ctime_ms = n->ctime_ms,
                              .mtime_ms = n->mtime_ms,
                              .ephemeral = n->owner != 0,
                              .owner = n->owner,
                              .children_n = (int32_t)n->children.n};
}

bool tree_path(const struct tree_node *n, char *out, size_t size)
{
    size_t len = 0;
    for (const struct tree_node *up = n; up->parent; up = up->parent)
        len += 1u + up->name_len;
    if (!len) /* the root */
        return snprintf(out, size, "/") < (int)size;
    if (len >= size)
        return false;
    out[len] = 0;
    for (const struct tree_node *up = n; up->parent; up = up->parent) {
        len -= up->name_len;
        memcpy(out + len, up->name, up->name_len);
        out[--len] = '/';
    }
    return true;
}

static int link_node(struct tree *t, struct tree_node *parent, struct tree_node *n)
{
    struct str name = {n->name, n->name_len};
    int err = hmap_put(&parent->children, &n->by_name, hash_str(name));
    if (err)
        return err;
    n->parent = parent;
    t->nodes_n++;
    return 0;
}

/* Leaves n's own by_age links as they are, for relink(). */
static void unlink_node(struct tree *t, struct tree_node *n)
{
    hmap_remove(&n->parent->children, &n->by_name);
    n->by_age.prev->next = n->by_age.next;
    n->by_age.next->prev = n->by_age.prev;
    t->nodes_n--;
}

static void relink(struct tree *t, struct tree_node *n)
{
    if (link_node(t, n->parent, n)) /* cannot be: the buckets are still there */
        abort();
    n->by_age.prev->next = &n->by_age;
    n->by_age.next->prev = &n->by_age;
}

void tree_begin(struct tree_txn *x, struct tree *t, int64_t zxid, int64_t now_ms)
{
    *x = (struct tree_txn){.tree = t, .zxid = zxid, .now_ms = now_ms};
}

static struct tree_undo *undo_new(enum undo_kind kind, struct tree_node *n)
{
    struct tree_undo *u = calloc(1, sizeof(*u));
    if (u) {
        u->kind = kind;
        u->node = n;
    }
    return u;
}

static void undo_push(struct tree_txn *x, struct tree_undo *u)
{
    u->before = x->last;
    x->last = u;
}

static int make_node(const char *name, size_t name_len, struct bytes data, struct tree_node **out)
{
    *out = NULL;
    struct tree_node *n = node_new(name, name_len);
    if (!n)
        return -ENOMEM;
    int err = copy_data(data, &n->data);
    if (err) {
        node_free(n);
        return err;
    }
    n->data_len = data.len < 0 ? -1 : data.len;
    *out = n;
    return 0;
}

int tree_create(struct tree_txn *x, const char *path, struct bytes data, int64_t owner,
                bool sequential, struct tree_node **made)
{
    *made = NULL;
    size_t len = path ? strnlen(path, TREE_PATH_MAX + 1) : 0;
    char numbered[TREE_PATH_MAX + 16]; /* "/a/" may be numbered just as "/a/b-" */
    snprintf(numbered, sizeof(numbered), "%.*s0000000000", (int)len, path ? path : "");
    if (!tree_path_ok(sequential ? numbered : path))
        return -EINVAL;
    if (!sequential && !path[1])
        return -EEXIST;
    size_t parent_len = len;
    while (path[parent_len - 1] != '/')
        parent_len--;
    struct tree_node *parent = find_n(x->tree, path, parent_len - 1);
    if (!parent)
        return -ENOENT;
    if (parent->owner)
        return -EINVAL;
    if (sequential)
        snprintf(numbered, sizeof(numbered), "%.*s%010u", (int)len, path, parent->made);
    const char *name = (sequential ? numbered : path) + parent_len;
    if (child(parent, name, strlen(name)))
        return -EEXIST;

    struct tree_undo *u = undo_new(UNDO_CREATE, NULL);
    struct tree_node *n = NULL;
    int err = u ? make_node(name, strlen(name), data, &n) : -ENOMEM;
    if (!err)
        err = link_node(x->tree, parent, n);
    if (err) {
        node_free(n);
        free(u);
        return err;
    }
    list_push_back(&parent->ages, &n->by_age);
    n->czxid = n->mzxid = x->zxid;
    n->ctime_ms = n->mtime_ms = x->now_ms;
    n->owner = owner;
    parent->made++;
    u->node = n;
    undo_push(x, u);
    *made = n;
    return 0;
}

int tree_verify(const struct tree *t, const char *path, int32_t version)
{
    if (!tree_path_ok(path))
        return -EINVAL;
    struct tree_node *n = tree_find(t, path);
    if (!n)
        return -ENOENT;
    return version == STORE_ANY_VERSION || version == n->version ? 0 : STORE_BAD_VERSION;
}

int tree_set(struct tree_txn *x, const char *path, struct bytes data, int32_t version,
             struct tree_node **changed)
{
    *changed = NULL;
    int err = tree_verify(x->tree, path, version);
    if (err)
        return err;
    struct tree_node *n = tree_find(x->tree, path);
    struct tree_undo *u = undo_new(UNDO_SET, n);
    if (!u)
        return -ENOMEM;
    uint8_t *copy;
    err = copy_data(data, &copy);
    if (err) {
        free(u);
        return err;
    }
    u->data = n->data;
    u->data_len = n->data_len;
    u->mzxid = n->mzxid;
    u->mtime_ms = n->mtime_ms;
    n->data = copy;
    n->data_len = data.len < 0 ? -1 : data.len;
    n->version++;
    n->mzxid = x->zxid;
    n->mtime_ms = x->now_ms;
    undo_push(x, u);
    *changed = n;
    return 0;
}

int tree_delete(struct tree_txn *x, const char *path, int32_t version)
{
    int err = tree_verify(x->tree, path, version);
    if (err)
        return err;
    struct tree_node *n = tree_find(x->tree, path);
    if (!n->parent)
        return -EINVAL;
    if (n->children.n)
        return -ENOTEMPTY;
    struct tree_undo *u = undo_new(UNDO_DELETE, n);
    if (!u)
        return -ENOMEM;
    unlink_node(x->tree, n);
    undo_push(x, u);
    return 0;
}

void tree_commit(struct tree_txn *x)
{
    for (struct tree_undo *u = x->last, *before; u; u = before) {
        before = u->before;
        if (u->kind == UNDO_DELETE)
            node_free(u->node);
        free(u->data);
        free(u);
    }
    x->last = NULL;
}

static void undo(struct tree *t, struct tree_undo *u)
{
    struct tree_node *n = u->node;
    switch (u->kind) {
    case UNDO_CREATE:
        n->parent->made--;
        unlink_node(t, n);
        node_free(n);
        break;
    case UNDO_SET:
        free(n->data);
        n->data = u->data;
        n->data_len = u->data_len;
        n->mzxid = u->mzxid;
        n->mtime_ms = u->mtime_ms;
        n->version--;
        break;
    case UNDO_DELETE:
        relink(t, n);
        break;
    }
}

void tree_rollback(struct tree_txn *x)
{
    for (struct tree_undo *u = x->last, *before; u; u = before) {
        before = u->before;
        undo(x->tree, u);
        free(u);
    }
    x->last = NULL;
}

int tree_each(const struct tree *t, int (*each)(void *arg, const struct tree_node *n), void *arg)
{
    for (struct tree_node *n = t->root; n; n = walk_next(n)) {
        int err = each(arg, n);
        if (err)
            return err;
    }
    return 0;
}

int tree_restore(struct tree *t, const char *path, struct bytes data, const struct store_stat *st,
                 uint32_t made)
{
    struct tree_txn x;
    struct tree_node *n;
    bool root = strcmp(path, "/") == 0;
    tree_begin(&x, t, st->czxid, st->ctime_ms);
    int err = root ? tree_set(&x, path, data, STORE_ANY_VERSION, &n)
                   : tree_create(&x, path, data, 0, false, &n);
    tree_commit(&x);
    if (err)
        return err;
    if (!root)
        n->parent->made--; /* the parent knows better: its own count was restored before */
    n->version = st->version;
    n->czxid = st->czxid;
    n->mzxid = st->mzxid;
    n->ctime_ms = st->ctime_ms;
    n->mtime_ms = st->mtime_ms;
    n->made = made;
    return 0;
}

static const char *check_node(const struct tree_node *n)
{
    size_t children = 0;
    int64_t last = INT64_MIN;
    list_each (at, &n->ages) {
        const struct tree_node *c = list_entry(at, struct tree_node, by_age);
        if (c->parent != n)
            return "T1: a child with another parent";
        if (c->czxid < last)
            return "T3: children out of order";
        last = c->czxid;
        children++;
    }
    if (children != n->children.n)
        return "T1: list and map of children differ";
    if (n->owner && children)
        return "T2: an ephemeral node has children";
    if (n->version < 0 || n->made < children)
        return "T4: version or count of children made";
    return NULL;
}

const char *tree_check(const struct tree *t)
{
    size_t n = 1;
    const char *problem = check_node(t->root);
    for (struct tree_node *at = walk_next(t->root); at && !problem; at = walk_next(at), n++)
        problem = check_node(at);
    if (!problem && n != t->nodes_n)
        problem = "T1: node count";
    return problem;
}
