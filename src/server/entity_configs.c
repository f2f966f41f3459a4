/* entity_configs.c - reading and writing the settings of entities; see entity_configs.h. What they
 * do is in entity_apply.c. */
#include "server/entity_configs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "metadata/config_write.h"
#include "metadata/paths.h"
#include "server/broker_private.h"
#include "server/entity_apply.h"
#include "server/entity_rereads.h"
#include "server/quota_entity.h"

char *entity_own_path(const struct broker *b, struct arena *a)
{
    return arena_printf(a, "brokers/%d", b->id);
}

void entity_configs_submit(struct broker *b, struct control_op *op)
{
    control_queue_submit(b->config_queue, op);
}

/* ---- reading ---- */

/* The node's data in the arena; null when there is no node. */
static int read_node(struct broker *b, const char *path, struct arena *a, struct bytes *out)
{
    struct bytes data = BYTES_NULL;
    *out = BYTES_NULL;
    int rc = store_get(b->store, path, &data, NULL);
    if (rc == 0 && data.p) {
        struct str copy = arena_str(a, (struct str){(const char *)data.p, data.len});
        *out = (struct bytes){(const uint8_t *)copy.p, copy.len};
        rc = copy.p ? 0 : -ENOMEM;
    }
    free((void *)data.p);
    return rc == -ENOENT ? 0 : rc;
}

int entity_configs_read(struct broker *b, struct str path, struct arena *a, struct config_list *out)
{
    struct bytes data;
    char *node = arena_printf(a, PATH_CONFIG "/%.*s", STR_ARG(path));
    *out = (struct config_list){NULL, 0};
    if (!node)
        return -ENOMEM;
    int rc = read_node(b, node, a, &data);
    return rc ? rc : znode_config_decode(data, a, out);
}

static int read_and_apply(struct broker *b, struct str path)
{
    struct arena a;
    struct config_list list;
    arena_init(&a, 0);
    int rc = entity_configs_read(b, path, &a, &list);
    if (!rc)
        rc = entity_apply(b, path, list);
    if (rc)
        say_error("EntityConfigs", "the settings of %.*s stay as they are: %s", STR_ARG(path),
                  rc == -EBADMSG ? "those in the store are malformed" : strerror(-rc));
    arena_free(&a);
    return rc == -EBADMSG ? 0 : rc;
}

/* ---- all of a kind ---- */

static int children_of(struct broker *b, const char *path, struct arena *a, char ***names, int *n)
{
    struct store_op op = store_op_children(path, false);
    struct store_request r = {.ops = &op, .ops_n = 1};
    int rc = store_run(b->store, &r);
    *n = 0;
    *names = rc ? NULL : arena_array(a, char *, (size_t)op.names_n);
    if (!rc && !*names)
        rc = -ENOMEM;
    for (int i = 0; !rc && i < op.names_n; i++) {
        (*names)[i] = (char *)arena_str(a, str_of(op.names[i])).p;
        rc = (*names)[i] ? 0 : -ENOMEM;
        *n = i + 1;
    }
    store_request_clear(&r);
    return rc == -ENOENT ? 0 : rc;
}

struct walk {
    struct broker *b;
    struct arena *a;
    int (*each)(void *arg, const struct quota_entity *e, struct config_list list);
    void *arg;
};

static int tell(struct walk *w, const char *path)
{
    struct quota_entity e;
    struct config_list list;
    if (!quota_entity_parse(str_of(path), w->a, &e))
        return 0; /* no name that anybody gives */
    int rc = entity_configs_read(w->b, str_of(path), w->a, &list);
    if (rc == -EBADMSG) {
        say_error("EntityConfigs", PATH_CONFIG "/%s is malformed and ignored", path);
        return 0;
    }
    return rc ? rc : w->each(w->arg, &e, list);
}

static int walk(struct walk *w, const char *folder, bool deeper)
{
    char **names;
    int n;
    char *path = arena_printf(w->a, PATH_CONFIG "/%s", folder);
    int rc = path ? children_of(w->b, path, w->a, &names, &n) : -ENOMEM;
    for (int i = 0; !rc && i < n; i++) {
        char *entity = arena_printf(w->a, "%s/%s", folder, names[i]);
        char *below = arena_printf(w->a, "%s/clients", entity);
        rc = entity && below ? tell(w, entity) : -ENOMEM;
        if (!rc && deeper)
            rc = walk(w, below, false);
    }
    return rc;
}

int entity_configs_each(struct broker *b, const char *folder, struct arena *a,
                        int (*each)(void *arg, const struct quota_entity *e,
                                    struct config_list list),
                        void *arg)
{
    struct walk w = {b, a, each, arg};
    return walk(&w, folder, strcmp(folder, "users") == 0);
}

/* ---- at the start and after notices ---- */

int entity_configs_load_brokers(struct broker *b)
{
    struct arena a;
    arena_init(&a, 0);
    char *own = entity_own_path(b, &a);
    int rc = own ? read_and_apply(b, STR_LIT(ENTITY_ALL_BROKERS)) : -ENOMEM;
    if (!rc)
        rc = read_and_apply(b, str_of(own));
    arena_free(&a);
    return rc;
}

static int apply_quota(void *arg, const struct quota_entity *e, struct config_list list)
{
    return entity_apply_quota(arg, e, list);
}

int entity_configs_load_clients(struct broker *b)
{
    static const char *const folders[] = {"users", "clients", "ips"};
    struct arena a;
    int rc = 0;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && !rc; i++)
        rc = entity_configs_each(b, folders[i], &a, apply_quota, b);
    arena_free(&a);
    return rc;
}

/* For another try, if the store said nothing of them. */
static int reread(void *arg, struct str path)
{
    int rc = read_and_apply(arg, path);
    return rc == -ESTALE || rc == -ETIMEDOUT || rc == -ENOMEM ? rc : 0;
}

int entity_configs_make(struct broker *b)
{
    int rc = control_queue_new(b->workers, &b->config_queue);
    if (!rc)
        b->rereads = entity_rereads_new(uv_executor_ex(b->background), b->config_queue, reread, b);
    return rc ? rc : b->rereads ? 0 : -ENOMEM;
}

void entity_configs_changed(struct broker *b, struct str path)
{
    if (entity_concerns(b, path) && entity_rereads_add(b->rereads, path) != 0)
        say_error("EntityConfigs", "no memory to read the settings of %.*s again", STR_ARG(path));
}

/* ---- writing ---- */

struct writing {
    pthread_mutex_t lock;
    pthread_cond_t over_changed;
    bool over;
    enum kerr error;
};

static void written(void *arg, enum kerr error)
{
    struct writing *w = arg;
    pthread_mutex_lock(&w->lock);
    w->error = error;
    w->over = true;
    pthread_cond_signal(&w->over_changed);
    pthread_mutex_unlock(&w->lock);
}

static enum kerr write_and_wait(struct broker *b, struct str path, struct config_list list)
{
    struct writing w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false,
                        KERR_UNKNOWN_SERVER_ERROR};
    if (config_write(b->store, uv_executor_ex(b->background), path, list, written, &w) != 0)
        return KERR_UNKNOWN_SERVER_ERROR;
    pthread_mutex_lock(&w.lock);
    while (!w.over)
        pthread_cond_wait(&w.over_changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_mutex_destroy(&w.lock);
    pthread_cond_destroy(&w.over_changed);
    return w.error;
}

/* The node goes unless it has children, or somebody wrote to it meanwhile. */
static bool delete_empty(struct broker *b, const char *path)
{
    struct bytes data = BYTES_NULL;
    struct config_list list;
    struct store_stat stat;
    struct arena a;
    arena_init(&a, 0);
    bool gone = false;
    if (store_get(b->store, path, &data, &stat) == 0 && znode_config_decode(data, &a, &list) == 0 &&
        list.n == 0 && stat.children_n == 0) {
        struct store_op op = store_op_delete(path, stat.version);
        struct store_request r = {.ops = &op, .ops_n = 1};
        gone = store_run(b->store, &r) == 0;
        store_request_clear(&r);
    }
    free((void *)data.p);
    arena_free(&a);
    return gone;
}

/* With what is then empty above it, below the folder of the kind. */
static void remove_entity(struct broker *b, struct str path)
{
    char node[1024];
    int n = snprintf(node, sizeof(node), PATH_CONFIG "/%.*s", STR_ARG(path));
    if (n >= (int)sizeof(node))
        return;    /* it stays, empty */
    int depth = 0; /* slashes behind "/config/users/" */
    for (int i = 0; i < path.len; i++)
        depth += path.p[i] == '/';
    while (depth-- > 0 && delete_empty(b, node))
        *strrchr(node, '/') = 0;
}

enum kerr entity_configs_write(struct broker *b, struct str path, struct config_list list)
{
    struct quota_entity e;
    struct arena a;
    enum kerr error = write_and_wait(b, path, list);
    if (error != KERR_NONE)
        return error;
    arena_init(&a, 0);
    if (list.n == 0 && quota_entity_parse(path, &a, &e))
        remove_entity(b, path);
    arena_free(&a);
    int rc = entity_apply(b, path, list);
    if (rc)
        say_error("EntityConfigs", "settings of %.*s: %s", STR_ARG(path), strerror(-rc));
    return KERR_NONE; /* it is written; the notice makes us try again */
}
