/* config_write.c - see config_write.h. */
#include "metadata/config_write.h"

#include <stdlib.h>

#include "base/logline.h"
#include "metadata/flow.h"
#include "metadata/paths.h"

enum {
    LIMIT_MS = 30000 /* for the store, which may be cut off */
};

struct config_writing {
    struct flow flow;
    struct arena arena; /* all below */
    char *path;
    struct bytes data, notice;
    enum kerr error;
    void (*done)(void *arg, enum kerr error);
    void *arg;
};

static struct config_writing *writing_of(struct flow *f)
{
    return container_of(f, struct config_writing, flow);
}

static void refuse(struct flow *f, enum kerr error)
{
    writing_of(f)->error = error;
    flow_end(f);
}

static void read_controller(struct flow *f)
{
    store_batch_add(flow_ask(f), store_op_get(PATH_CONTROLLER, false));
}

static void write_node(struct flow *f)
{
    struct config_writing *w = writing_of(f);
    struct store_request *r = store_batch_first(flow_answers(f));
    struct controller_node c;
    if (r->status && r->status != -ENOENT) {
        flow_fail(f, r->status);
        return;
    }
    if (r->status || znode_controller_decode(r->ops[0].result, &c) || c.kraft_epoch > 0) {
        refuse(f, KERR_STALE_CONTROLLER_EPOCH);
        return;
    }
    store_batch_add_checked(flow_ask(f), store_op_check(PATH_CONTROLLER, r->ops[0].stat.version),
                            store_op_set(w->path, w->data, STORE_ANY_VERSION));
}

/* Each missing level with null data, then the node: "/config/users/u/clients/c". */
static void create_levels(struct flow *f)
{
    struct config_writing *w = writing_of(f);
    for (char *slash = strchr(w->path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *level = arena_printf(&f->arena, "%.*s", (int)(slash - w->path), w->path);
        if (level)
            store_batch_add(flow_ask(f), store_op_create(level, BYTES_NULL, 0));
    }
    store_batch_add(flow_ask(f), store_op_create(w->path, w->data, 0));
}

static void notify(struct flow *f)
{
    store_batch_add(flow_ask(f), store_op_create(PATH_CONFIG_CHANGE_PREFIX, writing_of(f)->notice,
                                                 STORE_SEQUENTIAL));
}

static void look_at_set(struct flow *f)
{
    struct store_request *r = store_batch_first(flow_answers(f));
    if (!r->status)
        flow_goto(f, notify);
    else if (r->ops[1].status == -ENOENT)
        return; /* create_levels */
    else if (r->ops[0].status == STORE_BAD_VERSION || r->ops[0].status == -ENOENT)
        flow_goto(f, read_controller); /* another controller: perhaps one that forbids it */
    else
        flow_fail(f, r->status);
}

static void look_at_create(struct flow *f)
{
    int status = 0;
    store_batch_each (r, flow_answers(f))
        status = r->status; /* the last one counts */
    if (status == -EEXIST)  /* somebody was faster: the last writer wins */
        flow_goto(f, read_controller);
    else if (status)
        flow_fail(f, status);
}

static void look_at_notice(struct flow *f)
{
    int status = store_batch_first(flow_answers(f))->status;
    if (status)
        flow_fail(f, status);
}

static const flow_step steps[] = {read_controller, write_node, look_at_set,    create_levels,
                                  look_at_create,  notify,     look_at_notice, NULL};

static void writing_done(struct flow *f)
{
    struct config_writing *w = writing_of(f);
    if (f->error) {
        say_error("ConfigWriter", "writing %s: %s", w->path, strerror(-f->error));
        w->error = f->error == -ETIMEDOUT ? KERR_REQUEST_TIMED_OUT : KERR_UNKNOWN_SERVER_ERROR;
    }
    w->done(w->arg, w->error);
    arena_free(&w->arena);
    free(w);
}

int config_write(struct store *s, struct executor *ex, struct str entity_path,
                 struct config_list list, void (*done)(void *arg, enum kerr error), void *arg)
{
    struct config_writing *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    arena_init(&w->arena, 0);
    w->path = arena_printf(&w->arena, PATH_CONFIG "/%.*s", STR_ARG(entity_path));
    w->data = znode_config_encode(list, &w->arena);
    w->notice = znode_config_change_encode(entity_path, &w->arena);
    w->flow.limit_ms = LIMIT_MS;
    w->done = done;
    w->arg = arg;
    if (!w->path || !w->data.p || !w->notice.p) {
        arena_free(&w->arena);
        free(w);
        return -ENOMEM;
    }
    flow_start(&w->flow, s, ex, steps, writing_done);
    return 0;
}
