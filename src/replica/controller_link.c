/* controller_link.c - see controller_link.h. */
#include "replica/controller_link.h"

#include <errno.h>
#include <stdlib.h>

enum { LOOK_UP_MS = 100, RECONNECT_MS = 50 };

struct controller_link {
    struct controller_link_options o; /* listener and client_id are owned */
    struct list requests;             /* the first one is out while `busy` */
    struct remote *remote;            /* NULL: the controller is to be looked up */
    struct timer timer;
    bool busy, closed;
};

static struct controller_request *first(struct controller_link *l)
{
    return list_entry(l->requests.next, struct controller_request, link);
}

static int64_t now_ms(const struct controller_link *l)
{
    return executor_now_ms(l->o.ex);
}

static void forget(struct controller_link *l)
{
    struct remote *r = l->remote;
    l->remote = NULL;
    remote_close(r);
}

/* The controller's address of now; false: nobody is known. */
static bool look_up(struct controller_link *l)
{
    const struct metadata_snapshot *s = metadata_acquire(l->o.metadata);
    const struct broker_info *b = metadata_broker(s, metadata_controller(s));
    const struct endpoint *e = NULL;
    if (b && l->o.listener.len <= 0)
        e = b->endpoints_n ? &b->endpoints[0] : NULL;
    else if (b)
        e = broker_endpoint(b, l->o.listener);
    if (e)
        l->remote = remote_open(&l->o.opener, e->host, e->port, l->o.client_id, l->o.timeout_ms);
    metadata_release(s);
    return l->remote != NULL;
}

static void go_on(struct controller_link *l);

static void later(struct controller_link *l, int64_t ms)
{
    if (!l->closed && !list_empty(&l->requests))
        executor_timer_start(l->o.ex, &l->timer, ms);
}

/* Takes the first request off and tells. */
static bool finish(struct controller_link *l, int status, int version, const void *response)
{
    struct controller_request *r = first(l);
    list_remove(&r->link);
    if (!r->done(r, status, version, response) || status)
        return true;
    list_push_front(&l->requests, &r->link);
    return false;
}

static void answered(void *arg, int status, int version, const void *response)
{
    struct controller_link *l = arg;
    l->busy = false;
    if (l->closed)
        return;
    if (status == 0 || status == -ENOTSUP || status == -ENOMEM) {
        if (finish(l, status, version, response)) {
            go_on(l);
            return;
        }
    }
    forget(l);
    later(l, RECONNECT_MS);
}

/* Those whose time is over. */
static void expire(struct controller_link *l)
{
    while (!l->busy && !list_empty(&l->requests) && first(l)->limit_ms > 0 &&
           first(l)->deadline_ms <= now_ms(l))
        finish(l, -ETIMEDOUT, -1, NULL);
}

static void go_on(struct controller_link *l)
{
    if (l->busy || l->closed || timer_armed(&l->timer))
        return;
    expire(l);
    if (list_empty(&l->requests))
        return;
    if (!l->remote && !look_up(l)) {
        later(l, LOOK_UP_MS);
        return;
    }
    struct controller_request *r = first(l);
    int64_t timeout = l->o.timeout_ms;
    if (r->limit_ms > 0 && r->deadline_ms - now_ms(l) < timeout)
        timeout = r->deadline_ms - now_ms(l);
    l->busy = true;
    if (remote_send(l->remote, r->api_key, r->min_version, r->max_version, r->request, timeout,
                    answered, l)) {
        l->busy = false;
        later(l, RECONNECT_MS);
    }
}

static void on_timer(struct timer *t)
{
    go_on(container_of(t, struct controller_link, timer));
}

void controller_link_send(struct controller_link *l, struct controller_request *r)
{
    r->deadline_ms = now_ms(l) + r->limit_ms;
    list_push_back(&l->requests, &r->link);
    go_on(l);
}

struct controller_link *controller_link_new(const struct controller_link_options *o)
{
    struct controller_link *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->o = *o;
    char *listener = str_dup(o->listener), *client_id = str_dup(str_of(o->client_id));
    l->o.listener.p = listener;
    l->o.client_id = client_id;
    if ((o->listener.len > 0 && !listener) || (o->client_id && !client_id)) {
        free(listener);
        free(client_id);
        free(l);
        return NULL;
    }
    list_init(&l->requests);
    timer_init(&l->timer, on_timer);
    return l;
}

void controller_link_close(struct controller_link *l)
{
    if (!l)
        return;
    l->closed = true;
    executor_timer_stop(l->o.ex, &l->timer);
    forget(l);
    while (!list_empty(&l->requests)) {
        struct controller_request *r = first(l);
        list_remove(&r->link);
        r->done(r, -ECANCELED, -1, NULL);
    }
    free((char *)l->o.listener.p);
    free((char *)l->o.client_id);
    free(l);
}
