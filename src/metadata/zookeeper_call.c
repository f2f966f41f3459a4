/* zookeeper_call.c - see zookeeper_call.h. */
#include "metadata/zookeeper_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "metadata/store_answer.h"
#include "metadata/tree.h"
#include "metadata/zookeeper_acl.h"

enum { SEQUENCE_DIGITS = 10, OP_OVERHEAD = 64, ALL_PERMS = 0x1f, READ_PERM = 0x01 };

/* The library only reads these. */
static struct ACL open_list[] = {{ALL_PERMS, {"world", "anyone"}}};
static struct ACL private_list[] = {{ALL_PERMS, {"auth", ""}}};
static struct ACL readable_list[] = {{ALL_PERMS, {"auth", ""}}, {READ_PERM, {"world", "anyone"}}};
static const struct ACL_vector access_lists[] = {
    [NODE_OPEN] = {1, open_list},
    [NODE_READABLE] = {2, readable_list},
    [NODE_PRIVATE] = {1, private_list},
};

static const struct {
    int rc, status;
} statuses[] = {
    {ZOK, 0},
    {ZNONODE, -ENOENT},
    {ZNODEEXISTS, -EEXIST},
    {ZNOTEMPTY, -ENOTEMPTY},
    {ZBADVERSION, STORE_BAD_VERSION},
    {ZNOCHILDRENFOREPHEMERALS, -EINVAL},
    {ZBADARGUMENTS, -EINVAL},
    {ZINVALIDACL, -EINVAL},
    {ZNOAUTH, -EACCES},
    {ZAUTHFAILED, -EACCES},
    {ZSESSIONEXPIRED, -ESTALE},
    {ZINVALIDSTATE, -ESTALE},
    {ZCLOSING, -ESTALE},
    {ZRUNTIMEINCONSISTENCY, -ECANCELED}, /* another one of the multi failed */
    {ZNOTREADONLY, -EROFS},
    {ZMARSHALLINGERROR, -ENOMEM},
};

static int status_of(int rc)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i].rc == rc)
            return statuses[i].status;
    return -EIO;
}

bool zookeeper_call_is_lost(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED ||
           rc == ZTHROTTLEDOP;
}

/* ---- making ---- */

static bool is_single(const struct store_request *r)
{
    return !r->multi && r->ops[0].type != STORE_CHECK; /* ZooKeeper checks in multis only */
}

static size_t path_room(const struct zookeeper_call *c, const struct store_op *op)
{
    return c->chroot_len + strlen(op->path) + SEQUENCE_DIGITS + 2;
}

/* "/" in a chroot is the chroot itself. */
static void write_path(char *out, const char *chroot, const char *path)
{
    size_t n = strlen(chroot);
    memcpy(out, chroot, n);
    strcpy(out + n, n && strcmp(path, "/") == 0 ? "" : path);
}

static int room_for_multi(struct zookeeper_call *c, size_t paths_len)
{
    size_t n = (size_t)c->request->ops_n;
    size_t ops = n * sizeof(*c->multi_ops), results = n * sizeof(*c->results);
    c->multi_ops = calloc(1, ops + results + n * sizeof(*c->stats) + paths_len);
    if (!c->multi_ops)
        return -ENOMEM;
    c->results = (zoo_op_result_t *)((char *)c->multi_ops + ops);
    c->stats = (struct Stat *)((char *)c->results + results);
    c->made = (char *)(c->stats + n);
    return 0;
}

struct zookeeper_call *zookeeper_call_new(struct store_request *r, const char *chroot, bool protect)
{
    struct zookeeper_call *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->request = r;
    c->protect = protect;
    c->chroot_len = strlen(chroot);
    list_init(&c->link);
    size_t len = 0;
    for (int i = 0; i < r->ops_n; i++) {
        len += path_room(c, &r->ops[i]);
        c->bytes += path_room(c, &r->ops[i]) + OP_OVERHEAD;
        if (r->ops[i].type <= STORE_SET && r->ops[i].data.len > 0)
            c->bytes += (size_t)r->ops[i].data.len;
    }
    c->paths = malloc(len + 1);
    if (!c->paths || (r->ops_n && !is_single(r) && room_for_multi(c, len))) {
        zookeeper_call_free(c);
        return NULL;
    }
    char *at = c->paths;
    for (int i = 0; i < r->ops_n; i++) {
        write_path(at, chroot, r->ops[i].path);
        at += path_room(c, &r->ops[i]);
    }
    return c;
}

void zookeeper_call_free(struct zookeeper_call *c)
{
    if (!c)
        return;
    free(c->paths);
    free(c->multi_ops);
    free(c);
}

/* With the number that it will get: "/q/" is fine for a sequential node. */
static bool path_ok(const struct store_op *op)
{
    char numbered[TREE_PATH_MAX + SEQUENCE_DIGITS + 1];
    if (op->type != STORE_CREATE || !(op->flags & STORE_SEQUENTIAL))
        return tree_path_ok(op->path);
    int n = snprintf(numbered, sizeof(numbered), "%s%010d", op->path, 0);
    return n > 0 && (size_t)n < sizeof(numbered) && tree_path_ok(numbered);
}

int zookeeper_call_check(const struct zookeeper_call *c)
{
    const struct store_request *r = c->request;
    if (!store_request_well_formed(r))
        return -EINVAL;
    for (int i = 0; i < r->ops_n; i++)
        if (!path_ok(&r->ops[i]) || (r->ops[i].type == STORE_DELETE && !r->ops[i].path[1]))
            return -EINVAL;
    return c->bytes > ZOOKEEPER_BYTES_MAX ? -E2BIG : 0;
}

/* ---- sending ---- */

static void over(const void *data, int rc)
{
    struct zookeeper_call *c =
        (struct zookeeper_call *)data; /* ours; const by the library's type */
    c->over(c, rc);
}

static void over_void(int rc, const void *data)
{
    over(data, rc);
}

static void over_stat(int rc, const struct Stat *stat, const void *data)
{
    ((struct zookeeper_call *)data)->stat = stat;
    over(data, rc);
}

static void over_path(int rc, const char *path, const struct Stat *stat, const void *data)
{
    ((struct zookeeper_call *)data)->value = path;
    over_stat(rc, stat, data);
}

static void over_data(int rc, const char *value, int value_len, const struct Stat *stat,
                      const void *data)
{
    ((struct zookeeper_call *)data)->value = value;
    ((struct zookeeper_call *)data)->value_len = value_len;
    over_stat(rc, stat, data);
}

static void over_names(int rc, const struct String_vector *names, const struct Stat *stat,
                       const void *data)
{
    ((struct zookeeper_call *)data)->names = names;
    over_stat(rc, stat, data);
}

static const char *data_of(const struct store_op *op)
{
    if (op->data.len < 0)
        return NULL;
    return op->data.p ? (const char *)op->data.p : "";
}

static int data_len(const struct store_op *op)
{
    return op->data.len < 0 ? -1 : op->data.len;
}

static const struct ACL_vector *access_of(const struct zookeeper_call *c, const struct store_op *op)
{
    return &access_lists[zookeeper_node_access(op->path, c->protect)];
}

static int send_single(struct zookeeper_call *c, zhandle_t *zh)
{
    const struct store_op *op = &c->request->ops[0];
    watcher_fn watch = op->watch ? c->watcher : NULL;
    void *ctx = op->watch ? c->owner : NULL;
    switch (op->type) {
    case STORE_CREATE:
        return zoo_acreate2(zh, c->paths, data_of(op), data_len(op), access_of(c, op), op->flags,
                            over_path, c);
    case STORE_SET:
        return zoo_aset(zh, c->paths, data_of(op), data_len(op), op->version, over_stat, c);
    case STORE_DELETE:
        return zoo_adelete(zh, c->paths, op->version, over_void, c);
    case STORE_GET:
        return zoo_awget(zh, c->paths, watch, ctx, over_data, c);
    case STORE_EXISTS:
        return zoo_awexists(zh, c->paths, watch, ctx, over_stat, c);
    default:
        return zoo_awget_children2(zh, c->paths, watch, ctx, over_names, c);
    }
}

static void fill_op(struct zookeeper_call *c, int i, const char *path, char *made)
{
    const struct store_op *op = &c->request->ops[i];
    zoo_op_t *out = &c->multi_ops[i];
    switch (op->type) {
    case STORE_CREATE:
        zoo_create_op_init(out, path, data_of(op), data_len(op), access_of(c, op), op->flags, made,
                           (int)path_room(c, op));
        break;
    case STORE_SET:
        zoo_set_op_init(out, path, data_of(op), data_len(op), op->version, &c->stats[i]);
        break;
    case STORE_DELETE:
        zoo_delete_op_init(out, path, op->version);
        break;
    default:
        zoo_check_op_init(out, path, op->version);
        break;
    }
}

int zookeeper_call_send(struct zookeeper_call *c, zhandle_t *zh)
{
    const struct store_request *r = c->request;
    if (is_single(r))
        return send_single(c, zh);
    size_t at = 0;
    for (int i = 0; i < r->ops_n; i++) {
        fill_op(c, i, c->paths + at, c->made + at);
        at += path_room(c, &r->ops[i]);
    }
    return zoo_amulti(zh, r->ops_n, c->multi_ops, c->results, over_void, c);
}

/* ---- taking the answer ---- */

static void take_stat(struct store_op *op, const struct Stat *st)
{
    if (st)
        op->stat = (struct store_stat){.version = st->version,
                                       .czxid = st->czxid,
                                       .mzxid = st->mzxid,
                                       .ctime_ms = st->ctime,
                                       .mtime_ms = st->mtime,
                                       .ephemeral = st->ephemeralOwner != 0,
                                       .owner = st->ephemeralOwner,
                                       .children_n = st->numChildren};
}

static int take_bytes(struct store_op *op, const char *p, int len)
{
    op->result = BYTES_NULL;
    if (len < 0 || !p)
        return 0;
    uint8_t *copy = malloc((size_t)len + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, p, (size_t)len);
    copy[len] = 0;
    op->result = (struct bytes){copy, len};
    return 0;
}

/* The path as made, without the chroot: the caller's own, or with its number a copy. */
static int take_made_path(const struct zookeeper_call *c, struct store_op *op, const char *made)
{
    if (!(op->flags & STORE_SEQUENTIAL)) {
        op->result = (struct bytes){(const uint8_t *)op->path, (int32_t)strlen(op->path)};
        return 0;
    }
    size_t len = made ? strlen(made) : 0;
    return len < c->chroot_len ? -EIO
                               : take_bytes(op, made + c->chroot_len, (int)(len - c->chroot_len));
}

/* One block: the pointers, then the names. */
static int take_names(struct store_op *op, const struct String_vector *v)
{
    size_t count = v ? (size_t)v->count : 0, bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(v->data[i]) + 1;
    char **names = malloc(count * sizeof(*names) + bytes + 1);
    if (!names)
        return -ENOMEM;
    char *text = (char *)(names + count);
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(v->data[i]) + 1;
        names[i] = memcpy(text, v->data[i], n);
        text += n;
    }
    op->names = names;
    op->names_n = (int)count;
    op->partial = false;
    return 0;
}

static int take_single(struct zookeeper_call *c, struct store_op *op)
{
    take_stat(op, c->stat);
    switch (op->type) {
    case STORE_CREATE:
        return take_made_path(c, op, c->value);
    case STORE_GET:
        return take_bytes(op, c->value, c->value_len);
    case STORE_CHILDREN:
        op->as_of = c->stat ? c->stat->pzxid : 0;
        return take_names(op, c->names);
    default:
        return 0;
    }
}

/* The server says which one failed, and nothing of those before it. */
static void take_failed_multi(struct store_request *r, const zoo_op_result_t *results, int rc)
{
    store_request_refuse(r, -ECANCELED);
    r->status = status_of(rc);
    for (int i = 0; i < r->ops_n; i++) {
        if (results[i].err == rc) {
            r->ops[i].status = r->status;
            return;
        }
    }
    store_request_refuse(r, status_of(rc)); /* none of it was looked at */
}

static void take_multi(struct zookeeper_call *c, int rc)
{
    struct store_request *r = c->request;
    if (rc != ZOK) {
        take_failed_multi(r, c->results, rc);
        return;
    }
    const char *made = c->made;
    for (int i = 0; i < r->ops_n; i++) {
        struct store_op *op = &r->ops[i];
        if (op->type == STORE_SET)
            take_stat(op, &c->stats[i]);
        if (op->type == STORE_CREATE)
            op->status = take_made_path(c, op, made);
        if (op->status)
            r->status = op->status;
        made += path_room(c, op);
    }
}

void zookeeper_call_take(struct zookeeper_call *c, int rc)
{
    struct store_request *r = c->request;
    store_request_reset(r);
    if (!is_single(r)) {
        take_multi(c, rc);
        return;
    }
    int status = rc == ZOK ? take_single(c, &r->ops[0]) : status_of(rc);
    r->status = r->ops[0].status = status;
}

bool zookeeper_call_arms(const struct store_request *r)
{
    const struct store_op *op = &r->ops[0];
    return !r->multi && op->watch && op->type >= STORE_GET &&
           (!op->status || (op->type == STORE_EXISTS && op->status == -ENOENT));
}
