/* tool_zk_configs.c - see tool_zk_configs.h. */
#include "tools/tool_zk_configs.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metadata/paths.h"
#include "metadata/store.h"
#include "metadata/znode.h"

/* The node's data, in the arena; -ENOENT: there is no such node. */
static int read_node(struct store *s, const char *path, struct arena *mem, struct config_list *out,
                     struct store_stat *stat)
{
    struct bytes data, kept;
    int rc = store_get(s, path, &data, stat);
    *out = (struct config_list){NULL, 0};
    if (rc)
        return rc;
    struct str copy = arena_str(mem, (struct str){(const char *)data.p, data.len});
    kept = (struct bytes){(const uint8_t *)copy.p, copy.len};
    bool lost = data.p && !copy.p;
    free((void *)data.p);
    return lost ? -ENOMEM : znode_config_decode(kept, mem, out);
}

/* false: it is so already. */
static bool change(struct config_list *l, const kafka_config_t *c)
{
    int at = 0;
    while (at < l->n && !str_eqz(l->v[at].name, c->name))
        at++;
    if (!c->value) {
        if (at == l->n)
            return false;
        l->v[at] = l->v[--l->n];
        return true;
    }
    if (at < l->n && str_eqz(l->v[at].value, c->value))
        return false;
    l->n += at == l->n;
    l->v[at] = (struct config_pair){str_of(c->name), str_of(c->value)};
    return true;
}

/* 0; -EAGAIN: somebody was faster; -errno. */
static int write_config(struct store *s, struct arena *mem, const char *path, bool there,
                        struct config_list l, int32_t version)
{
    struct bytes data = znode_config_encode(l, mem);
    if (!data.p)
        return -ENOMEM;
    struct store_op op = store_op_set(path, data, version);
    struct store_request req = {.ops = &op, .ops_n = 1};
    bool created = false;
    int rc = there ? store_run(s, &req) : store_create_path(s, path, data, &created);
    store_request_clear(&req);
    if (there ? rc == STORE_BAD_VERSION || rc == -ENOENT : !rc && !created)
        return -EAGAIN;
    return rc;
}

static int notify(struct store *s, struct arena *mem, const char *entity)
{
    struct bytes data = znode_config_change_encode(str_of(entity), mem);
    bool created;
    if (!data.p)
        return -ENOMEM;
    int rc = store_create_path(s, PATH_CONFIG_CHANGES, BYTES_NULL, &created);
    if (rc)
        return rc;
    struct store_op op = store_op_create(PATH_CONFIG_CHANGE_PREFIX, data, STORE_SEQUENTIAL);
    struct store_request req = {.ops = &op, .ops_n = 1};
    rc = store_run(s, &req);
    store_request_clear(&req);
    return rc;
}

static int try_once(struct store *s, struct arena *mem, const char *path,
                    const kafka_config_t *configs, size_t n, bool *changed)
{
    struct config_list now, l;
    struct store_stat stat = {0};
    int rc = read_node(s, path, mem, &now, &stat);
    bool there = rc != -ENOENT;
    *changed = false;
    if (rc && there)
        return rc;
    l = (struct config_list){arena_array(mem, struct config_pair, (size_t)now.n + n), now.n};
    if (!l.v)
        return -ENOMEM;
    if (now.n)
        memcpy(l.v, now.v, (size_t)now.n * sizeof *l.v);
    for (size_t i = 0; i < n; i++)
        *changed |= change(&l, &configs[i]);
    return *changed ? write_config(s, mem, path, there, l, stat.version) : 0;
}

int tool_zk_configure(struct store *s, struct arena *mem, const char *entity,
                      const kafka_config_t *configs, size_t n, bool *changed)
{
    char *path = entity ? arena_printf(mem, PATH_CONFIG "/%s", entity) : NULL;
    int rc = path ? -EAGAIN : -ENOMEM;
    while (rc == -EAGAIN)
        rc = try_once(s, mem, path, configs, n, changed);
    return rc || !*changed ? rc : notify(s, mem, entity);
}

/* ---- users ---- */

/* As Java's URLEncoder with what Kafka changes of it. */
const char *tool_zk_user_entity(const char *user, struct arena *mem)
{
    static const char folder[] = "users/";
    char *out = arena_alloc(mem, sizeof folder + 3 * strlen(user)), *to = out;
    if (!out)
        return NULL;
    memcpy(to, folder, sizeof folder - 1);
    to += sizeof folder - 1;
    for (const char *p = user; *p; p++) {
        if (isalnum((unsigned char)*p) || strchr(".-_", *p)) {
            *to++ = *p;
            continue;
        }
        *to++ = '%';
        *to++ = "0123456789ABCDEF"[(unsigned char)*p >> 4];
        *to++ = "0123456789ABCDEF"[(unsigned char)*p & 15];
    }
    *to = 0;
    return out;
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

static const char *name_of(const char *node, struct arena *mem)
{
    char *out = arena_alloc(mem, strlen(node) + 1), *to = out;
    for (const char *p = node; out && *p; p++) {
        if (*p == '%' && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
            *to++ = (char)(hex(p[1]) * 16 + hex(p[2]));
            p += 2;
        } else {
            *to++ = *p;
        }
    }
    if (out)
        *to = 0;
    return out;
}

struct telling {
    struct arena mem;
    void (*each)(void *arg, const char *user, const kafka_config_t *pairs, size_t n);
    void *arg;
};

static int by_name(const void *a, const void *b)
{
    const kafka_config_t *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int tell(struct store *s, struct telling *t, const char *entity, const char *user)
{
    struct config_list list;
    char *path = entity ? arena_printf(&t->mem, PATH_CONFIG "/%s", entity) : NULL;
    int rc = path && user ? read_node(s, path, &t->mem, &list, NULL) : -ENOMEM;
    if (rc || list.n == 0)
        return rc == -ENOENT ? 0 : rc;
    kafka_config_t *pairs = arena_array(&t->mem, kafka_config_t, (size_t)list.n);
    if (!pairs)
        return -ENOMEM;
    for (int i = 0; i < list.n; i++)
        pairs[i] = (kafka_config_t){arena_str(&t->mem, list.v[i].name).p,
                                    arena_str(&t->mem, list.v[i].value).p};
    qsort(pairs, (size_t)list.n, sizeof *pairs, by_name);
    t->each(t->arg, user, pairs, (size_t)list.n);
    return 0;
}

static int tell_all(struct store *s, struct telling *t)
{
    struct store_op op = store_op_children(PATH_CONFIG "/users", false);
    struct store_request req = {.ops = &op, .ops_n = 1};
    int rc = store_run(s, &req);
    for (int i = 0; i < op.names_n && !rc; i++)
        if (strcmp(op.names[i], "<default>") != 0)
            rc = tell(s, t, arena_printf(&t->mem, "users/%s", op.names[i]),
                      name_of(op.names[i], &t->mem));
    store_request_clear(&req);
    return rc == -ENOENT ? 0 : rc;
}

int tool_zk_users(struct store *s, const char *user,
                  void (*each)(void *arg, const char *user, const kafka_config_t *pairs, size_t n),
                  void *arg)
{
    struct telling t = {.each = each, .arg = arg};
    arena_init(&t.mem, 0);
    int rc = user ? tell(s, &t, tool_zk_user_entity(user, &t.mem), user) : tell_all(s, &t);
    arena_free(&t.mem);
    return rc;
}
