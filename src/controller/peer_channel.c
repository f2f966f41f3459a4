/* peer_channel.c - see peer_channel.h. */
#include "controller/peer_channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/metrics.h"

enum { RETRY_PAUSE_MS = 100 };

struct call {
    struct list link;
    int16_t api_key;
    int version;
    const void *request;
    channel_cb cb;
    void *arg;
    int64_t since_ns; /* queued; -1: has been sent */
};

struct peer_channel {
    struct broker_channel base;
    struct remote *remote;
    struct executor *ex;
    struct list calls; /* the first one is out while `sending` */
    struct timer retry;
    bool sending, closed;
    bool troubled; /* the last attempt failed: that has been logged */
    int64_t timeout_ms;
    int32_t own_id;
    struct histogram waited_us; /* requests, before they were sent */
};

static void send_first(struct peer_channel *c);

static struct call *first_call(struct peer_channel *c)
{
    return list_entry(c->calls.next, struct call, link);
}

/* Failure or not, once it is said. */
static void tell_trouble(struct peer_channel *c, int status)
{
    char component[32];
    if (c->troubled == (status != 0))
        return;
    c->troubled = status != 0;
    snprintf(component, sizeof(component), "Controller id=%d", c->own_id);
    if (status)
        say_warn(component, "broker %d does not take %s: %s; trying on", c->base.broker_id,
                 api_find(first_call(c)->api_key)->name, strerror(-status));
    else
        say_info(component, "broker %d answers again", c->base.broker_id);
}

static void finish(struct call *call, int status, const void *response)
{
    list_remove(&call->link);
    call->cb(call->arg, status, response);
    free(call);
}

static void answered(void *arg, int status, int version, const void *response)
{
    struct peer_channel *c = arg;
    (void)version;
    c->sending = false;
    if (c->closed)
        return;
    tell_trouble(c, status);
    if (status) {
        executor_timer_start(c->ex, &c->retry, RETRY_PAUSE_MS);
        return;
    }
    finish(first_call(c), 0, response);
    send_first(c);
}

static void note_wait(struct peer_channel *c, struct call *call)
{
    if (call->since_ns < 0) /* it is sent again */
        return;
    histogram_add(&c->waited_us, (uint64_t)(clock_mono_ns(c->ex->clock) - call->since_ns) / 1000);
    call->since_ns = -1;
}

static void send_first(struct peer_channel *c)
{
    if (c->sending || c->closed || timer_armed(&c->retry) || list_empty(&c->calls))
        return;
    struct call *call = first_call(c);
    c->sending = true;
    note_wait(c, call);
    if (remote_send(c->remote, call->api_key, call->version, call->version, call->request,
                    c->timeout_ms, answered, c)) {
        c->sending = false;
        executor_timer_start(c->ex, &c->retry, RETRY_PAUSE_MS);
    }
}

static void retry(struct timer *t)
{
    send_first(container_of(t, struct peer_channel, retry));
}

static void channel_send(struct broker_channel *base, int16_t api_key, int version,
                         const void *request, channel_cb cb, void *arg)
{
    struct peer_channel *c = container_of(base, struct peer_channel, base);
    struct call *call = calloc(1, sizeof(*call));
    if (!call) {
        cb(arg, -ENOMEM, NULL);
        return;
    }
    *call = (struct call){.api_key = api_key,
                          .version = version,
                          .request = request,
                          .cb = cb,
                          .arg = arg,
                          .since_ns = clock_mono_ns(c->ex->clock)};
    list_push_back(&c->calls, &call->link);
    send_first(c);
}

static void channel_close(struct broker_channel *base)
{
    struct peer_channel *c = container_of(base, struct peer_channel, base);
    c->closed = true;
    executor_timer_stop(c->ex, &c->retry);
    remote_close(c->remote);
    while (!list_empty(&c->calls))
        finish(first_call(c), -ECANCELED, NULL);
    free(c);
}

static int channel_waiting(struct broker_channel *base, const struct histogram **waited_us)
{
    struct peer_channel *c = container_of(base, struct peer_channel, base);
    int n = 0;
    list_each (at, &c->calls)
        n++;
    *waited_us = &c->waited_us;
    return n;
}

struct broker_channel *peer_channel_new(const struct peer_channel_options *o,
                                        const struct remote_opener *opener, struct executor *ex)
{
    struct peer_channel *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->base = (struct broker_channel){o->broker_id, channel_send, channel_close, channel_waiting};
    c->ex = ex;
    c->timeout_ms = o->timeout_ms;
    c->own_id = o->own_id;
    list_init(&c->calls);
    timer_init(&c->retry, retry);
    c->remote = remote_open(opener, o->host, o->port, o->client_id, o->timeout_ms);
    if (!c->remote) {
        free(c);
        return NULL;
    }
    return &c->base;
}
