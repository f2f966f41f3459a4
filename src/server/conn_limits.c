/* conn_limits.c - see conn_limits.h. */
#include "server/conn_limits.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/logline.h"
#include "server/config_value.h"
#include "server/machine_memory.h"

static int clamp_int(int64_t v)
{
    return v > INT_MAX ? INT_MAX : (int)v;
}

/* No more than a quarter of the memory there is, of a small machine or container. */
uint64_t conn_limits_answers(uint64_t most, uint64_t memory)
{
    enum { LEAST = 8 << 20 };
    uint64_t part = memory / 4;
    if (memory == 0 || part >= most)
        return most;
    return part < LEAST ? LEAST : part;
}

struct net_limits conn_limits_fixed(const struct config *c)
{
    struct net_limits l = net_limits_default();
    int64_t inflight = config_int(c, "queued.max.request.bytes");
    l.max_answer_bytes = (size_t)conn_limits_answers(l.max_answer_bytes, machine_memory(""));
    l.max_frame = (uint32_t)config_int(c, "socket.request.max.bytes");
    l.max_inflight_bytes = inflight > 0 ? (uint64_t)inflight : 0;
    l.max_idle_ms = config_int(c, "connections.max.idle.ms");
    l.max_connections = clamp_int(config_int(c, "max.connections"));
    l.max_connections_per_ip = clamp_int(config_int(c, "max.connections.per.ip"));
    l.send_buffer = clamp_int(config_int(c, "socket.send.buffer.bytes"));
    l.receive_buffer = clamp_int(config_int(c, "socket.receive.buffer.bytes"));
    l.backlog = clamp_int(config_int(c, "socket.listen.backlog.size"));
    l.rate_samples = clamp_int(config_int(c, "quota.window.num"));
    l.rate_sample_ms = config_int(c, "quota.window.size.seconds") * 1000;
    return l;
}

/* The greatest value of the key means that there is no limit. */
static double rate_of(int64_t v)
{
    return v >= INT_MAX ? INFINITY : (double)v;
}

/* "host:count" */
static bool override_of(struct str element, struct net_ip_limit *out)
{
    const char *colon = memrchr(element.p, ':', (size_t)element.len);
    char *host = colon ? str_dup((struct str){element.p, (int32_t)(colon - element.p)}) : NULL;
    if (!host)
        return false;
    out->max = clamp_int(strtoll(colon + 1, NULL, 10));
    int rc = net_ip_of(host, &out->ip);
    if (rc)
        say_error("SocketServer", "max.connections.per.ip.overrides: %s has no address: %s", host,
                  strerror(-rc));
    free(host);
    return rc == 0;
}

static int ip_limits_of(const struct config *c, struct net_ip_limit **out)
{
    const char *text = config_string(c, "max.connections.per.ip.overrides");
    struct str e;
    int n = 0;
    *out = calloc(strlen(text) / 2 + 1, sizeof(**out)); /* each has a separator and more */
    for (const char *at = text; *out && config_list_next(&at, &e);)
        n += e.len > 0 && override_of(e, &(*out)[n]);
    return n;
}

int conn_limits_apply(const struct config *c, struct net_server *s)
{
    struct net_ip_limit *ips;
    int n = c->listeners_n, ips_n = ip_limits_of(c, &ips);
    struct net_listener_limit *own = calloc((size_t)n, sizeof(*own));
    int rc = -ENOMEM;
    if (own && ips) {
        for (int i = 0; i < n; i++) {
            const char *name = c->listeners[i].name;
            own[i].listener = name;
            own[i].max_connections =
                clamp_int(config_listener_int(c, name, "max.connections", INT_MAX));
            own[i].max_rate =
                rate_of(config_listener_int(c, name, "max.connection.creation.rate", INT_MAX));
        }
        struct net_admission l = {
            .max_connections = clamp_int(config_int(c, "max.connections")),
            .max_connections_per_ip = clamp_int(config_int(c, "max.connections.per.ip")),
            .ip_limits = ips,
            .ip_limits_n = ips_n,
            .max_rate = rate_of(config_int(c, "max.connection.creation.rate")),
            .listeners = own,
            .listeners_n = n,
            .exempt_listener = n > 1 ? c->inter_broker_listener : NULL};
        rc = net_server_set_admission(s, &l);
    }
    free(own);
    free(ips);
    return rc;
}
