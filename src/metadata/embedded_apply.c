/* embedded_apply.c - see embedded_apply.h. */
#include "metadata/embedded_apply.h"

#include <stdlib.h>

#include "metadata/store_answer.h"

static bool is_read(enum store_op_type type)
{
    return type == STORE_GET || type == STORE_EXISTS || type == STORE_CHILDREN;
}

/* One block: the pointers, then the names. */
static int list_children(const struct tree_node *n, struct store_op *op, int64_t as_of)
{
    size_t count = 0, bytes = 0;
    for (struct list *at = n->ages.prev; at != &n->ages; at = at->prev) {
        const struct tree_node *c = list_entry(at, struct tree_node, by_age);
        if (c->czxid <= op->newer_than)
            break;
        count++;
        bytes += c->name_len + 1u;
    }
    char **names = malloc(count * sizeof(*names) + bytes + 1);
    if (!names)
        return -ENOMEM;
    char *text = (char *)(names + count);
    struct list *at = n->ages.prev;
    for (size_t i = 0; i < count; i++, at = at->prev) {
        const struct tree_node *c = list_entry(at, struct tree_node, by_age);
        names[i] = memcpy(text, c->name, c->name_len + 1u);
        text += c->name_len + 1u;
    }
    op->names = names;
    op->names_n = (int)count;
    op->partial = op->newer_than > 0;
    op->as_of = as_of;
    return 0;
}

static int copy_result(const struct tree_node *n, struct store_op *op)
{
    op->result = BYTES_NULL;
    if (n->data_len < 0)
        return 0;
    uint8_t *p = malloc((size_t)n->data_len + 1);
    if (!p)
        return -ENOMEM;
    memcpy(p, n->data, (size_t)n->data_len + 1);
    op->result = (struct bytes){p, n->data_len};
    return 0;
}

static int read_op(struct embedded_state *s, const void *session, struct store_op *op)
{
    if (!tree_path_ok(op->path))
        return -EINVAL;
    struct tree_node *n = tree_find(&s->tree, op->path);
    if (op->watch && (n || op->type == STORE_EXISTS))
        watches_arm(s->watches, session, op->path, op->type == STORE_CHILDREN);
    if (!n)
        return -ENOENT;
    tree_stat(n, &op->stat);
    switch (op->type) {
    case STORE_GET:
        return copy_result(n, op);
    case STORE_CHILDREN:
        return list_children(n, op, s->zxid);
    default:
        return 0;
    }
}

/* The path as made: the caller's own, or with its number a copy. */
static int path_result(struct store_op *op, const struct tree_node *n)
{
    if (!(op->flags & STORE_SEQUENTIAL)) {
        op->result = (struct bytes){(const uint8_t *)op->path, (int32_t)strlen(op->path)};
        return 0;
    }
    char path[TREE_PATH_MAX + 16];
    if (!tree_path(n, path, sizeof(path)))
        return -EINVAL;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    op->result = (struct bytes){(uint8_t *)copy, (int32_t)strlen(copy)};
    return 0;
}

static int write_op(struct tree_txn *x, int64_t session_id, struct store_op *op)
{
    struct tree_node *n = NULL;
    int err;
    switch (op->type) {
    case STORE_CREATE:
        err = tree_create(x, op->path, op->data, op->flags & STORE_EPHEMERAL ? session_id : 0,
                          op->flags & STORE_SEQUENTIAL, &n);
        if (!err)
            err = path_result(op, n);
        break;
    case STORE_SET:
        err = tree_set(x, op->path, op->data, op->version, &n);
        break;
    case STORE_DELETE:
        n = tree_find(x->tree, op->path);
        op->stat.ephemeral = n && n->owner; /* decides whether the journal hears of it */
        return tree_delete(x, op->path, op->version);
    default:
        return tree_verify(x->tree, op->path, op->version);
    }
    if (!err)
        tree_stat(n, &op->stat);
    return err;
}

static void note_parent(struct watches *w, const char *path)
{
    char parent[TREE_PATH_MAX + 16];
    size_t n = (size_t)(strrchr(path, '/') - path);
    memcpy(parent, n ? path : "/", n ? n : 1);
    parent[n ? n : 1] = 0;
    watches_note(w, parent, true);
}

/* After success: for the journal and the watches. now_ms: the time that the tree has, too. */
static void record_op(struct embedded_state *s, int64_t now_ms, size_t *count_at,
                      const struct store_op *op)
{
    if (op->type == STORE_CHECK)
        return;
    const char *path = op->type == STORE_CREATE ? (const char *)op->result.p : op->path;
    if (!op->stat.ephemeral) {
        if (*count_at == SIZE_MAX)
            *count_at = journal_put_txn(&s->txns, s->zxid, now_ms);
        journal_put_op(&s->txns, *count_at, op->type, path, op->data);
    }
    watches_note(s->watches, path, false);
    if (op->type == STORE_DELETE)
        watches_note(s->watches, path, true);
    if (op->type != STORE_SET)
        note_parent(s->watches, path);
}

static void write_ops(struct embedded_state *s, int64_t session_id, struct store_request *r)
{
    struct tree_txn x;
    tree_begin(&x, &s->tree, s->zxid + 1, clock_wall_ms(s->clock));
    int err = 0, failing = 0;
    for (int i = 0; i < r->ops_n && !err; i++) {
        err = write_op(&x, session_id, &r->ops[i]);
        failing = i;
    }
    if (err) {
        tree_rollback(&x);
        store_request_refuse(r, -ECANCELED);
        r->status = r->ops[failing].status = err;
        return;
    }
    if (x.last)
        s->zxid++;
    tree_commit(&x);
    size_t count_at = SIZE_MAX;
    for (int i = 0; i < r->ops_n; i++)
        record_op(s, x.now_ms, &count_at, &r->ops[i]);
}

void embedded_apply(struct embedded_state *s, const void *session, int64_t id,
                    struct store_request *r)
{
    if (!store_request_well_formed(r)) {
        store_request_refuse(r, -EINVAL);
        return;
    }
    if (is_read(r->ops[0].type))
        r->status = r->ops[0].status = read_op(s, session, &r->ops[0]);
    else
        write_ops(s, id, r);
}

struct owned_paths {
    int64_t owner;
    struct buf paths;
};

static int collect_owned(void *arg, const struct tree_node *n)
{
    struct owned_paths *o = arg;
    char path[TREE_PATH_MAX + 16];
    if (n->owner == o->owner && tree_path(n, path, sizeof(path)))
        buf_put(&o->paths, path, strlen(path) + 1);
    return o->paths.failed ? -ENOMEM : 0;
}

void embedded_end_session(struct embedded_state *s, int64_t id)
{
    struct owned_paths o = {.owner = id, .paths = BUF_INIT};
    struct tree_txn x;
    tree_each(&s->tree, collect_owned, &o);
    tree_begin(&x, &s->tree, s->zxid + 1, clock_wall_ms(s->clock));
    for (size_t at = 0; at < o.paths.len; at += strlen((char *)o.paths.p + at) + 1) {
        const char *path = (char *)o.paths.p + at;
        if (tree_delete(&x, path, STORE_ANY_VERSION))
            continue;
        struct store_op op = store_op_delete(path, STORE_ANY_VERSION);
        op.stat.ephemeral = true;
        size_t unused = 0;
        record_op(s, x.now_ms, &unused, &op);
    }
    if (x.last)
        s->zxid++;
    tree_commit(&x);
    buf_free(&o.paths);
}
