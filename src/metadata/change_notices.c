/* change_notices.c - see change_notices.h. One round: list, read the notices, read the entities
 * they name, remove what is old. Events during a round start another one after it. */
#include "metadata/change_notices.h"

#include <stdlib.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "metadata/flow.h"

static const int64_t keep_ms = 15 * 60 * 1000;

/* One that was seen and not removed yet. */
struct notice {
    struct list link;
    int64_t ctime_ms;
    char name[];
};

struct change_notices {
    struct flow flow;
    struct change_notices_options o;
    struct store_watch watch;
    size_t prefix_n;
    struct task start_task;
    struct list seen; /* of struct notice, oldest first */
    int64_t last;     /* number of the last one looked at; -1 none */
    int64_t as_of;    /* transaction of the listing that had it */
    /* The round's; they count once all of it is told. */
    struct list new_seen;
    int64_t new_last, new_as_of;
    struct list entities; /* in the flow's arena */
    struct hmap by_path;  /* the same, each path once */
    bool start_posted, busy, again, closing;
};

/* One that a round found named. */
struct entity {
    struct hnode node;
    struct list link;
    struct str path;
};

static struct change_notices *changes_of(struct flow *f)
{
    return container_of(f, struct change_notices, flow);
}

/* -1: not a notice. */
static int64_t number_of(const struct change_notices *c, const char *name)
{
    if (strncmp(name, c->o.name_prefix, c->prefix_n) != 0)
        return -1;
    const char *digits = name + c->prefix_n;
    size_t n = strlen(digits);
    if (!n || n > 18 || strspn(digits, "0123456789") != n)
        return -1;
    return strtoll(digits, NULL, 10);
}

/* Numbers have ten digits, or more: the longer name is the later one. */
static int by_number(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t x_n = strlen(x), y_n = strlen(y);
    return x_n != y_n ? (x_n < y_n ? -1 : 1) : strcmp(x, y);
}

static void list_notices(struct flow *f)
{
    struct store_op op = store_op_children(changes_of(f)->o.dir, true);
    op.newer_than = changes_of(f)->as_of;
    store_batch_add(flow_ask(f), op);
}

static void read_notices(struct flow *f)
{
    struct change_notices *c = changes_of(f);
    struct store_request *r = store_batch_first(flow_answers(f));
    struct store_op *op = &r->ops[0];
    if (r->status) {
        flow_fail(f, r->status);
        return;
    }
    c->new_as_of = op->as_of;
    c->new_last = c->last;
    if (op->names_n)
        qsort(op->names, (size_t)op->names_n, sizeof(char *), by_number);
    for (int i = 0; i < op->names_n; i++) {
        if (number_of(c, op->names[i]) <= c->last)
            continue;
        c->new_last = number_of(c, op->names[i]);
        char *path = arena_printf(&f->arena, "%s/%s", c->o.dir, op->names[i]);
        if (path)
            store_batch_add(flow_ask(f), store_op_get(path, false));
    }
}

static void remember(struct change_notices *c, const struct store_op *op)
{
    const char *name = strrchr(op->path, '/') + 1;
    struct notice *n = malloc(sizeof(*n) + strlen(name) + 1);
    if (!n) /* it stays for another broker, or the next start, to remove */
        return;
    n->ctime_ms = op->stat.ctime_ms;
    memcpy(n->name, name, strlen(name) + 1);
    list_push_back(&c->new_seen, &n->link);
}

/* The node may well be there, and say something. */
static bool is_no_answer(int status)
{
    return status == -ESTALE || status == -ETIMEDOUT || status == -ENOMEM;
}

static bool path_equals(const struct hnode *h, const void *key)
{
    return str_eq(hmap_entry(h, struct entity, node)->path, *(const struct str *)key);
}

/* Two notices of one entity make one reading. */
static void add_entity(struct flow *f, struct str path)
{
    struct change_notices *c = changes_of(f);
    uint64_t hash = hash_str(path);
    if (hmap_find(&c->by_path, hash, path_equals, &path))
        return;
    struct entity *e = arena_new(&f->arena, struct entity);
    char *node = arena_printf(&f->arena, "%s%.*s", c->o.node_prefix, STR_ARG(path));
    if (!e || !node || hmap_put(&c->by_path, &e->node, hash)) {
        flow_fail(f, -ENOMEM);
        return;
    }
    e->path = path;
    list_push_back(&c->entities, &e->link);
    if (!c->o.wants_data(c->o.arg, path))
        return;
    struct store_request *r = store_batch_add(flow_ask(f), store_op_get(node, false));
    if (r)
        r->user = e;
}

static void read_entities(struct flow *f)
{
    struct change_notices *c = changes_of(f);
    store_batch_each (r, flow_answers(f)) {
        struct str path;
        if (is_no_answer(r->status))
            flow_fail(f, r->status);
        if (r->status) /* removed meanwhile, so it was old */
            continue;
        remember(c, &r->ops[0]);
        int err = c->o.decode(r->ops[0].result, &f->arena, &path);
        if (err == -ENOMEM)
            flow_fail(f, err);
        else if (err)
            say_error(c->o.component, "%s is malformed and ignored", r->ops[0].path);
        else
            add_entity(f, path);
    }
}

static void tell_and_purge(struct flow *f)
{
    struct change_notices *c = changes_of(f);
    store_batch_each (r, flow_answers(f))
        if (is_no_answer(r->status))
            flow_fail(f, r->status);
    if (f->error)
        return;
    c->last = c->new_last;
    c->as_of = c->new_as_of;
    list_splice(&c->seen, &c->new_seen);
    store_batch_each (r, flow_answers(f))
        c->o.data(c->o.arg, ((struct entity *)r->user)->path, r->status, r->ops[0].result);
    list_each (at, &c->entities)
        if (c->o.changed)
            c->o.changed(c->o.arg, list_entry(at, struct entity, link)->path);
    if (c->o.round && !list_empty(&c->entities))
        c->o.round(c->o.arg);
    int64_t now = clock_wall_ms(c->o.clock);
    while (!list_empty(&c->seen)) {
        struct notice *n = list_entry(c->seen.next, struct notice, link);
        if (now - n->ctime_ms < keep_ms)
            break;
        char *path = arena_printf(&f->arena, "%s/%s", c->o.dir, n->name);
        if (path)
            store_batch_add(flow_ask(f), store_op_delete(path, STORE_ANY_VERSION));
        list_remove(&n->link);
        free(n);
    }
}

static const flow_step steps[] = {list_notices, read_notices, read_entities, tell_and_purge, NULL};

static void begin_round(struct change_notices *c);
static void session_changed(void *arg, enum store_session state);

static void forget(struct list *notices)
{
    for (struct list *at; (at = list_pop(notices));)
        free(list_entry(at, struct notice, link));
}

static void free_all(struct change_notices *c)
{
    forget(&c->seen);
    c->o.closed(c->o.arg);
    free(c);
}

static void round_over(struct flow *f)
{
    struct change_notices *c = changes_of(f);
    c->busy = false;
    list_init(&c->entities); /* they go with the flow's arena */
    hmap_free(&c->by_path);
    forget(&c->new_seen); /* none, but after a failure */
    if (f->error && f->error != -ESTALE && !c->closing)
        say_error(c->o.component, "reading notices: %s", strerror(-f->error));
    if (c->closing)
        free_all(c);
    else if (c->again)
        begin_round(c);
}

static void begin_round(struct change_notices *c)
{
    c->again = c->busy;
    if (c->busy)
        return;
    c->busy = true;
    flow_start(&c->flow, c->o.store, c->o.ex, steps, round_over);
}

static void notices_changed(struct store_watch *w)
{
    begin_round(container_of(w, struct change_notices, watch));
}

static void session_changed(void *arg, enum store_session state)
{
    struct change_notices *c = arg;
    if (state == STORE_CONNECTED) /* watches went with the old session */
        begin_round(c);
}

static void start(struct task *t)
{
    struct change_notices *c = container_of(t, struct change_notices, start_task);
    c->start_posted = false;
    if (c->closing)
        free_all(c);
    else
        begin_round(c);
}

int change_notices_new(const struct change_notices_options *o, struct change_notices **out)
{
    *out = NULL;
    struct change_notices *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->o = *o;
    c->prefix_n = strlen(o->name_prefix);
    c->last = -1;
    list_init(&c->seen);
    list_init(&c->new_seen);
    list_init(&c->entities);
    hmap_init(&c->by_path);
    task_init(&c->start_task, start);
    c->watch = (struct store_watch){
        .path = o->dir, .children = true, .on = o->ex, .fired = notices_changed};
    int err = store_watch(o->store, &c->watch);
    if (!err)
        err = store_on_session(o->store, o->ex, session_changed, c);
    if (err) {
        store_unwatch(o->store, &c->watch);
        free(c);
        return err;
    }
    *out = c;
    return 0;
}

void change_notices_start(struct change_notices *c)
{
    c->start_posted = true;
    executor_post(c->o.ex, &c->start_task);
}

void change_notices_close(struct change_notices *c)
{
    c->closing = true;
    store_unwatch(c->o.store, &c->watch);
    store_off_session(c->o.store, session_changed, c);
    if (c->busy)
        flow_cancel(&c->flow, -ECANCELED);
    else if (!c->start_posted)
        free_all(c);
}
