/* tool_zk_brokers.c - see tool_zk_brokers.h. */
#include "tools/tool_zk_brokers.h"

#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/props.h"
#include "metadata/paths.h"
#include "metadata/znode.h"
#include "metadata/zookeeper_store.h"
#include "tools/tool_io.h"

enum { SESSION_MS = 30000, CONNECT_MS = 30000, IN_FLIGHT = 10 };

/* Where everybody may connect, else whatever there is. */
static const struct endpoint *best_endpoint(const struct broker_info *b)
{
    for (int i = 0; i < b->endpoints_n; i++)
        if (b->endpoints[i].security_protocol == 0)
            return &b->endpoints[i];
    return b->endpoints_n ? &b->endpoints[0] : NULL;
}

static void add_broker(struct store *s, const char *name, struct arena *a, struct buf *out)
{
    struct bytes data;
    struct broker_info info;
    char *path = arena_printf(a, PATH_BROKER_IDS "/%s", name);
    if (!path || store_get(s, path, &data, NULL))
        return; /* gone meanwhile */
    if (!znode_broker_decode(data, atoi(name), a, &info)) {
        const struct endpoint *e = best_endpoint(&info);
        bool v6 = e && memchr(e->host.p, ':', (size_t)e->host.len);
        if (e)
            buf_printf(out, "%s%s%.*s%s:%d", out->len ? "," : "", v6 ? "[" : "", STR_ARG(e->host),
                       v6 ? "]" : "", e->port);
    }
    free((void *)data.p);
}

static int list_brokers(struct store *s, struct buf *out)
{
    struct arena a;
    struct store_op op = store_op_children(PATH_BROKER_IDS, false);
    struct store_request r = {.ops = &op, .ops_n = 1};
    arena_init(&a, 0);
    int rc = store_run(s, &r);
    for (int i = 0; i < op.names_n; i++)
        add_broker(s, op.names[i], &a, out);
    store_request_clear(&r);
    arena_free(&a);
    buf_put(out, "", 1);
    return rc == -ENOENT ? 0 : rc;
}

struct store *tool_zk_open(const char *connect)
{
    return tool_zk_open_as(connect, NULL);
}

/* Owned; the file is read for the client, too, which tells of what is wrong with it. */
static struct props *read_file(const char *path)
{
    struct props *p = props_new();
    if (p && path)
        (void)props_load(p, path, NULL);
    if (!p)
        tool_die("out of memory");
    return p;
}

struct store *tool_zk_open_by(const char *flag, const char *connect, const struct props *p,
                              bool make)
{
    const char *protect = props_get(p, "zookeeper.set.acl");
    struct zookeeper_options o = {.connect = connect,
                                  .session_timeout_ms = SESSION_MS,
                                  .connection_timeout_ms = CONNECT_MS,
                                  .max_in_flight = IN_FLIGHT,
                                  .protect = protect && strcmp(protect, "true") == 0,
                                  .digest = props_get(p, "zookeeper.digest.auth"),
                                  .make_nothing = !make};
    struct store *s;
    char err[512] = "";
    if (o.protect && !o.digest)
        tool_die("%s: zookeeper.set.acl=true: needs credentials, zookeeper.digest.auth", flag);
    logline_set_level(LOGLINE_WARN); /* who has the port wrong is told before the time is over */
    int rc = zookeeper_store_open(&o, &s, err, sizeof(err));
    logline_set_level(LOGLINE_FATAL); /* what the session does is nobody's concern here */
    if (rc)
        tool_die("%s: %s", flag, *err ? err : strerror(-rc));
    return s;
}

static struct store *open_as(const char *connect, const char *path, bool make)
{
    struct props *p = read_file(path);
    struct store *s = tool_zk_open_by("--zookeeper", connect, p, make);
    props_free(p);
    return s;
}

struct store *tool_zk_open_as(const char *connect, const char *path)
{
    return open_as(connect, path, false);
}

struct store *tool_zk_open_or_make(const char *connect, const char *path)
{
    return open_as(connect, path, true);
}

void tool_zk_close(struct store *s)
{
    store_close(s);
    logline_set_level(LOGLINE_INFO);
}

void tool_zk_die(const char *why)
{
    tool_die("--zookeeper: %s", why);
}

char *tool_zk_brokers(const char *connect)
{
    struct buf found = BUF_INIT;
    struct store *s = tool_zk_open(connect);
    int rc = list_brokers(s, &found);
    tool_zk_close(s);
    if (rc)
        tool_zk_die(strerror(-rc));
    if (found.failed)
        tool_die("out of memory");
    if (found.len <= 1)
        tool_die("--zookeeper %s: no broker is registered there", connect);
    return (char *)found.p;
}
