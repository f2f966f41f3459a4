/* registration.c - see registration.h. */
#include "metadata/registration.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "metadata/flow.h"
#include "metadata/paths.h"
#include "metadata/znode.h"

struct broker_registrar {
    struct flow flow;
    struct broker_registrar_options o;
    struct arena arena; /* self and data */
    struct broker_info self;
    struct bytes data;
    char *path;
    char component[48];
    _Atomic int64_t epoch;
    int64_t own_sessions[8]; /* that this process had, latest last: their nodes are ours */
    int own_sessions_n;
    struct store_watch watch; /* of the node, while it is another's */
    struct timer timer;
    bool busy, waiting, gave_up, closing;
    bool changed; /* the node, since it was looked at */
    void (*done)(void *arg, int status, int64_t epoch);
    void *arg;
};

static struct broker_registrar *registrar_of(struct flow *f)
{
    return container_of(f, struct broker_registrar, flow);
}

static bool same_place(const struct broker_info *a, const struct broker_info *b)
{
    for (int i = 0; i < a->endpoints_n; i++)
        for (int k = 0; k < b->endpoints_n; k++)
            if (a->endpoints[i].port == b->endpoints[k].port &&
                str_eq(a->endpoints[i].host, b->endpoints[k].host))
                return true;
    return false;
}

static void list_brokers(struct flow *f)
{
    store_batch_add(flow_ask(f), store_op_children(PATH_BROKER_IDS, false));
}

static void read_brokers(struct flow *f)
{
    struct store_request *r = store_batch_first(flow_answers(f));
    if (r->status) {
        flow_fail(f, r->status);
        return;
    }
    for (int i = 0; i < r->ops[0].names_n; i++) {
        char *path = arena_printf(&f->arena, PATH_BROKER_IDS "/%s", r->ops[0].names[i]);
        if (path)
            store_batch_add(flow_ask(f), store_op_get(path, false));
    }
}

/* Two brokers that advertise one address would take each other's clients. */
static void check_endpoints(struct flow *f)
{
    struct broker_registrar *g = registrar_of(f);
    store_batch_each (r, flow_answers(f)) {
        struct broker_info other;
        int32_t id = atoi(strrchr(r->ops[0].path, '/') + 1);
        if (r->status || id == g->self.id ||
            znode_broker_decode(r->ops[0].result, id, &f->arena, &other))
            continue;
        if (same_place(&g->self, &other)) {
            say_error(g->component, "broker %d already advertises one of our endpoints", id);
            flow_fail(f, -EADDRINUSE);
            return;
        }
    }
}

static void create_node(struct flow *f)
{
    struct broker_registrar *g = registrar_of(f);
    int64_t session = store_session_id(g->o.store);
    enum { KEPT = sizeof(g->own_sessions) / sizeof(g->own_sessions[0]) };
    if (!g->own_sessions_n || g->own_sessions[g->own_sessions_n - 1] != session) {
        if (g->own_sessions_n == KEPT)
            memmove(g->own_sessions, g->own_sessions + 1, sizeof(int64_t) * (KEPT - 1));
        else
            g->own_sessions_n++;
        g->own_sessions[g->own_sessions_n - 1] = session;
    }
    struct store_op ops[] = {store_op_create(g->path, BYTES_NULL, STORE_EPHEMERAL),
                             store_op_set(g->path, g->data, 0)};
    store_batch_add_multi(flow_ask(f), ops, 2);
}

static void registered(struct flow *f, int64_t epoch)
{
    struct broker_registrar *g = registrar_of(f);
    atomic_store(&g->epoch, epoch);
    if (g->o.registered)
        g->o.registered(g->o.arg, epoch);
    say_info(g->component, "registered with epoch %" PRId64, epoch);
    flow_end(f);
}

static void look_who(struct flow *f)
{
    struct broker_registrar *g = registrar_of(f);
    g->changed = false;
    store_batch_add(flow_ask(f), store_op_get(g->path, true));
}

/* Where the one that holds our node says it is; to be told to people. */
static const char *place_of(struct flow *f, const struct store_request *r)
{
    struct broker_info other;
    if (znode_broker_decode(r->ops[0].result, registrar_of(f)->self.id, &f->arena, &other) ||
        !other.endpoints_n)
        return "an unknown place";
    const struct endpoint *e = &other.endpoints[0];
    const char *text = arena_printf(&f->arena, "%.*s:%d", STR_ARG(e->host), e->port);
    return text ? text : "";
}

static void look_at_outcome(struct flow *f)
{
    struct store_request *r = store_batch_first(flow_answers(f));
    if (!r->status)
        registered(f, r->ops[1].stat.czxid);
    else if (r->status == -EEXIST)
        look_who(f);
    else
        flow_fail(f, r->status);
}

static bool own_session(const struct broker_registrar *g, int64_t owner)
{
    for (int i = 0; i < g->own_sessions_n; i++)
        if (g->own_sessions[i] == owner)
            return true;
    return false;
}

/* The node is there: whose is it? */
static void look_at_owner(struct flow *f)
{
    struct broker_registrar *g = registrar_of(f);
    struct store_request *r = store_batch_first(flow_answers(f));
    const struct store_stat *st = &r->ops[0].stat;
    if (r->status == -ENOENT) {
        flow_goto(f, create_node);
    } else if (r->status) {
        flow_fail(f, r->status);
    } else if (st->owner == store_session_id(g->o.store)) {
        registered(f, st->czxid);
    } else if (own_session(g, st->owner)) {
        store_batch_add(flow_ask(f), store_op_delete(g->path, STORE_ANY_VERSION));
    } else if (g->gave_up) {
        say_error(g->component,
                  "broker id %d is taken: %s is still held by session 0x%" PRIx64
                  " of a broker at %s",
                  g->self.id, g->path, st->owner, place_of(f, r));
        flow_fail(f, -EEXIST);
    } else {
        if (!timer_armed(&g->timer)) {
            say_warn(g->component,
                     "%s is held by session 0x%" PRIx64 " of a broker at %s, waiting up to %" PRId64
                     " ms for its end: a broker that died is registered until its session expires",
                     g->path, st->owner, place_of(f, r), g->o.wait_ms);
            executor_timer_start(g->o.ex, &g->timer, g->o.wait_ms);
        }
        g->waiting = !g->changed;
        if (g->waiting)
            flow_wait(f);
    }
}

static void try_again(struct flow *f)
{
    flow_goto(f, create_node);
}

static const flow_step steps[] = {list_brokers,    read_brokers,  check_endpoints, create_node,
                                  look_at_outcome, look_at_owner, try_again,       NULL};

static void go_on(struct broker_registrar *g)
{
    if (!g->waiting)
        return;
    g->waiting = false;
    flow_resume(&g->flow);
}

static void node_changed(struct store_watch *w)
{
    struct broker_registrar *g = container_of(w, struct broker_registrar, watch);
    g->changed = true;
    go_on(g);
}

static void waited_enough(struct timer *t)
{
    struct broker_registrar *g = container_of(t, struct broker_registrar, timer);
    g->gave_up = true;
    go_on(g);
}

static void free_all(struct broker_registrar *g)
{
    arena_free(&g->arena);
    free(g);
}

static void flow_done(struct flow *f)
{
    struct broker_registrar *g = registrar_of(f);
    executor_timer_stop(g->o.ex, &g->timer);
    g->busy = false;
    g->done(g->arg, f->error, f->error ? -1 : atomic_load(&g->epoch));
    if (g->closing)
        free_all(g);
}

/* Copies what `self` borrows. */
static int copy_self(struct broker_registrar *g, const struct broker_info *self)
{
    struct endpoint *e = arena_array(&g->arena, struct endpoint, (size_t)self->endpoints_n);
    if (!e)
        return -ENOMEM;
    g->self = *self;
    g->self.rack = arena_str(&g->arena, self->rack);
    g->self.endpoints = e;
    for (int i = 0; i < self->endpoints_n; i++) {
        e[i] = self->endpoints[i];
        e[i].listener = arena_str(&g->arena, self->endpoints[i].listener);
        e[i].host = arena_str(&g->arena, self->endpoints[i].host);
        if (!e[i].listener.p || !e[i].host.p)
            return -ENOMEM;
    }
    return 0;
}

int broker_registrar_new(const struct broker_registrar_options *o, struct broker_registrar **out)
{
    *out = NULL;
    struct broker_registrar *g = calloc(1, sizeof(*g));
    if (!g)
        return -ENOMEM;
    g->o = *o;
    g->o.self = NULL;
    atomic_init(&g->epoch, -1);
    arena_init(&g->arena, 0);
    timer_init(&g->timer, waited_enough);
    snprintf(g->component, sizeof(g->component), "BrokerRegistration id=%d", o->self->id);
    int err = copy_self(g, o->self);
    g->path = path_broker(&g->arena, o->self->id);
    g->data = znode_broker_encode(&g->self, o->jmx_port, clock_wall_ms(o->clock), &g->arena);
    if (!g->path || !g->data.p)
        err = -ENOMEM;
    g->watch = (struct store_watch){.path = g->path, .on = o->ex, .fired = node_changed};
    if (!err)
        err = store_watch(o->store, &g->watch);
    if (err) {
        arena_free(&g->arena);
        free(g);
        return err;
    }
    *out = g;
    return 0;
}

void broker_registrar_free(struct broker_registrar *g)
{
    if (!g)
        return;
    store_unwatch(g->o.store, &g->watch);
    if (!g->busy) {
        free_all(g);
        return;
    }
    g->closing = true;
    flow_cancel(&g->flow, -ECANCELED);
    go_on(g);
}

void broker_registrar_register(struct broker_registrar *g,
                               void (*done)(void *arg, int status, int64_t epoch), void *arg)
{
    g->done = done;
    g->arg = arg;
    g->waiting = g->gave_up = g->changed = false;
    g->busy = true;
    flow_start(&g->flow, g->o.store, g->o.ex, steps, flow_done);
}

struct run_wait {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool over;
    int status;
    int64_t epoch;
};

static void run_done(void *arg, int status, int64_t epoch)
{
    struct run_wait *w = arg;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    w->status = status;
    w->epoch = epoch;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

/* The status. */
static int wait_run(struct run_wait *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->over)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return w->status;
}

int broker_registrar_run(struct broker_registrar *g, int64_t *epoch)
{
    struct run_wait w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, -1};
    broker_registrar_register(g, run_done, &w); /* only posts: the steps run on the executor */
    int status = wait_run(&w);
    if (epoch)
        *epoch = w.epoch;
    return status;
}

struct update {
    struct task task;
    struct broker_registrar *g;
    const struct broker_info *self;
    struct run_wait wait;
    struct bytes data;
};

/* What was said before stays in the arena: a registration under way may still send it. */
static void update_on_executor(struct task *t)
{
    struct update *u = container_of(t, struct update, task);
    struct broker_registrar *g = u->g;
    struct broker_info before = g->self;
    int err = copy_self(g, u->self);
    struct bytes data =
        err ? BYTES_NULL
            : znode_broker_encode(&g->self, g->o.jmx_port, clock_wall_ms(g->o.clock), &g->arena);
    if (data.p)
        u->data = g->data = data;
    else
        g->self = before;
    run_done(&u->wait, data.p ? 0 : -ENOMEM, -1);
}

int broker_registrar_update(struct broker_registrar *g, const struct broker_info *self)
{
    struct update u = {.g = g,
                       .self = self,
                       .wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, -1}};
    task_init(&u.task, update_on_executor);
    executor_post(g->o.ex, &u.task);
    int rc = wait_run(&u.wait);
    if (rc)
        return rc;
    struct store_op op = store_op_set(g->path, u.data, STORE_ANY_VERSION);
    struct store_request r = {.ops = &op, .ops_n = 1};
    rc = store_run(g->o.store, &r);
    store_request_clear(&r);
    return rc == -ENOENT ? 0 : rc;
}

int64_t broker_registrar_epoch(const struct broker_registrar *g)
{
    return atomic_load(&g->epoch);
}
