/* acl_follow.c - see acl_follow.h. */
#include "acl/acl_follow.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "metadata/change_notices.h"
#include "metadata/flow.h"

static const char component[] = "AclFollow";

enum { AGAIN_MS = 1000 };

struct acl_follow {
    struct flow flow; /* reads all again */
    struct acl_follow_options o;
    struct change_notices *notices[2]; /* literal, prefixed */
    struct task start_task;
    struct timer again_timer;
    int refs;         /* readers of notices, the flow while it runs, the start task, the owner */
    bool busy, again; /* the flow */
    bool closing;
};

static void unref(struct acl_follow *f)
{
    if (--f->refs)
        return;
    f->o.closed(f->o.arg);
    free(f);
}

/* What could not be told is read again. */
static void later(struct acl_follow *f)
{
    if (!f->closing)
        executor_timer_start(f->o.ex, &f->again_timer, AGAIN_MS);
}

static void told(struct acl_follow *f)
{
    if (f->o.told(f->o.arg) != 0)
        later(f);
}

static void tell(struct acl_follow *f, const struct acl_pattern *p, const struct store_request *r)
{
    struct arena a;
    struct acl_stored one;
    arena_init(&a, 0);
    acl_stored_of(p, r->status, r->ops[0].result, &r->ops[0].stat, &a, &one);
    if (one.status == -ENOMEM || f->o.now(f->o.arg, &one) != 0)
        later(f);
    arena_free(&a);
}

/* ---- notices ---- */

static int decode_notice(struct bytes data, enum acl_pattern_type kind, struct arena *a,
                         struct str *path)
{
    struct acl_pattern p;
    int err = acl_notice_decode(data, kind, a, &p);
    if (err)
        return err;
    *path = str_of(acl_node_path(&p, a));
    return path->p ? 0 : -ENOMEM;
}

static int decode_literal(struct bytes data, struct arena *a, struct str *path)
{
    return decode_notice(data, ACL_LITERAL, a, path);
}

static int decode_prefixed(struct bytes data, struct arena *a, struct str *path)
{
    return decode_notice(data, ACL_PREFIXED, a, path);
}

static bool wants_data(void *arg, struct str path)
{
    (void)arg, (void)path;
    return true;
}

static void on_data(void *arg, struct str path, int status, struct bytes data)
{
    struct acl_follow *f = arg;
    struct acl_pattern p;
    struct store_op op = {.result = data};
    struct store_request r = {.ops = &op, .ops_n = 1, .status = status};
    if (acl_node_path_parse(path, &p))
        tell(f, &p, &r);
}

static void on_round(void *arg)
{
    told(arg);
}

static void on_closed(void *arg)
{
    unref(arg);
}

static int follow_notices(struct acl_follow *f, int i)
{
    struct change_notices_options o = {.store = f->o.store,
                                       .ex = f->o.ex,
                                       .clock = f->o.clock,
                                       .component = component,
                                       .dir = i ? PATH_ACL_PREFIXED_CHANGES : PATH_ACL_CHANGES,
                                       .name_prefix = ACL_CHANGE_PREFIX,
                                       .node_prefix = "",
                                       .decode = i ? decode_prefixed : decode_literal,
                                       .wants_data = wants_data,
                                       .data = on_data,
                                       .round = on_round,
                                       .closed = on_closed,
                                       .arg = f};
    int err = change_notices_new(&o, &f->notices[i]);
    f->refs += !err;
    return err;
}

/* ---- all of them again ---- */

static struct acl_follow *follow_of(struct flow *flow)
{
    return container_of(flow, struct acl_follow, flow);
}

/* A pattern that is asked for, once. */
struct asked {
    struct hnode node;
    struct acl_pattern pattern;
};

static bool same_pattern(const struct hnode *h, const void *key)
{
    return acl_pattern_eq(&hmap_entry(h, struct asked, node)->pattern, key);
}

static void add_pattern(struct flow *flow, struct hmap *seen, const struct acl_pattern *p)
{
    uint64_t hash = acl_pattern_hash(p);
    if (hmap_find(seen, hash, same_pattern, p))
        return;
    struct asked *asked = arena_new(&flow->arena, struct asked);
    char *path = acl_node_path(p, &flow->arena);
    if (!asked || !path || hmap_put(seen, &asked->node, hash)) {
        flow_fail(flow, -ENOMEM);
        return;
    }
    asked->pattern = *p;
    struct store_request *r = store_batch_add(flow_ask(flow), store_op_get(path, false));
    if (r)
        r->user = asked;
}

static void list_names(struct flow *flow)
{
    for (int prefixed = 0; prefixed < 2; prefixed++) {
        for (int type = ACL_RESOURCE_FIRST; type < ACL_RESOURCES; type++) {
            char *path =
                arena_printf(&flow->arena, "%s/%s", prefixed ? PATH_ACL_PREFIXED : PATH_ACL,
                             acl_resource_name(type));
            if (!path)
                flow_fail(flow, -ENOMEM);
            else
                store_batch_add(flow_ask(flow), store_op_children(path, false));
        }
    }
}

/* Those that are there, and those that were: they may be gone. */
static void read_nodes(struct flow *flow)
{
    struct acl_follow *f = follow_of(flow);
    struct hmap seen;
    struct acl_pattern *known;
    int n = 0;
    hmap_init(&seen);
    if (f->o.known(f->o.arg, &flow->arena, &known, &n) != 0)
        flow_fail(flow, -ENOMEM);
    store_batch_each (r, flow_answers(flow)) {
        if (r->status && r->status != -ENOENT)
            flow_fail(flow, r->status);
        for (int i = 0; !r->status && i < r->ops[0].names_n; i++) {
            char *path = arena_printf(&flow->arena, "%s/%s", r->ops[0].path, r->ops[0].names[i]);
            struct acl_pattern p;
            if (!path)
                flow_fail(flow, -ENOMEM);
            else if (acl_node_path_parse(str_of(path), &p))
                add_pattern(flow, &seen, &p);
        }
    }
    for (int i = 0; i < n && !flow->error; i++)
        add_pattern(flow, &seen, &known[i]);
    hmap_free(&seen);
}

static void tell_all(struct flow *flow)
{
    struct acl_follow *f = follow_of(flow);
    store_batch_each (r, flow_answers(flow)) {
        if (r->status && r->status != -ENOENT)
            flow_fail(flow, r->status);
        else
            tell(f, &((struct asked *)r->user)->pattern, r);
    }
    told(f);
}

static const flow_step steps[] = {list_names, read_nodes, tell_all, NULL};

static void read_all(struct acl_follow *f);

static void all_read(struct flow *flow)
{
    struct acl_follow *f = follow_of(flow);
    f->busy = false;
    if (flow->error && flow->error != -ESTALE && !f->closing) {
        say_error(component, "reading all ACLs again: %s", strerror(-flow->error));
        later(f);
    }
    if (f->again && !f->closing)
        read_all(f);
    unref(f);
}

static void read_all(struct acl_follow *f)
{
    f->again = f->busy;
    if (f->busy)
        return;
    f->busy = true;
    f->refs++;
    flow_start(&f->flow, f->o.store, f->o.ex, steps, all_read);
}

static void try_again(struct timer *t)
{
    read_all(container_of(t, struct acl_follow, again_timer));
}

static void session_changed(void *arg, enum store_session state)
{
    if (state == STORE_CONNECTED)
        read_all(arg);
}

/* ---- on demand ---- */

struct refresh {
    struct task task;
    struct acl_follow *f;
    const struct acl_pattern *patterns;
    int n;
    struct arena arena;
    struct store_batch batch;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool over;
};

static void refreshed(struct store_batch *b)
{
    struct refresh *r = container_of(b, struct refresh, batch);
    store_batch_each (one, b)
        tell(r->f, one->user, one);
    if (b->failed)
        later(r->f);
    told(r->f);
    pthread_mutex_lock(&r->lock);
    r->over = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->lock);
}

static void begin_refresh(struct task *t)
{
    struct refresh *r = container_of(t, struct refresh, task);
    store_batch_init(&r->batch, &r->arena);
    for (int i = 0; i < r->n; i++) {
        char *path = acl_node_path(&r->patterns[i], &r->arena);
        struct store_request *one =
            path ? store_batch_add(&r->batch, store_op_get(path, false)) : NULL;
        if (one)
            one->user = (void *)&r->patterns[i];
        else
            r->batch.failed = true;
    }
    store_batch_submit(&r->batch, r->f->o.store, r->f->o.ex, refreshed);
}

void acl_follow_refresh(struct acl_follow *f, const struct acl_pattern *patterns, int n)
{
    struct refresh r = {.f = f, .patterns = patterns, .n = n};
    if (!n)
        return;
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.cond, NULL);
    arena_init(&r.arena, 0);
    task_init(&r.task, begin_refresh);
    executor_post(f->o.ex, &r.task);
    pthread_mutex_lock(&r.lock);
    while (!r.over)
        pthread_cond_wait(&r.cond, &r.lock);
    pthread_mutex_unlock(&r.lock);
    store_batch_clear(&r.batch);
    arena_free(&r.arena);
    pthread_cond_destroy(&r.cond);
    pthread_mutex_destroy(&r.lock);
}

/* ---- life ---- */

int acl_follow_new(const struct acl_follow_options *o, struct acl_follow **out)
{
    *out = NULL;
    struct acl_follow *f = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->o = *o;
    f->refs = 1;
    timer_init(&f->again_timer, try_again);
    *out = f;
    return 0;
}

static void start(struct task *t)
{
    struct acl_follow *f = container_of(t, struct acl_follow, start_task);
    int err = f->closing ? 0 : store_on_session(f->o.store, f->o.ex, session_changed, f);
    for (int i = 0; i < 2 && !f->closing && !err; i++) {
        err = follow_notices(f, i);
        if (!err)
            change_notices_start(f->notices[i]);
    }
    if (err)
        say_error(component, "cannot follow changes of ACLs: %s", strerror(-err));
    unref(f);
}

void acl_follow_start(struct acl_follow *f)
{
    f->refs++; /* nobody else knows of it yet */
    task_init(&f->start_task, start);
    executor_post(f->o.ex, &f->start_task);
}

void acl_follow_close(struct acl_follow *f)
{
    if (!f)
        return;
    f->closing = true;
    store_off_session(f->o.store, session_changed, f);
    executor_timer_stop(f->o.ex, &f->again_timer);
    for (int i = 0; i < 2; i++)
        if (f->notices[i])
            change_notices_close(f->notices[i]);
    if (f->busy)
        flow_cancel(&f->flow, -ECANCELED);
    unref(f);
}
