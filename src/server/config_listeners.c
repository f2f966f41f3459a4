/* config_listeners.c - listeners, advertised.listeners, listener.security.protocol.map and the
 * inter-broker listener, with the older keys host.name, port and advertised.*.
 *
 * Names are compared in upper case. Two listeners may not share an address and port that they would
 * both bind; what is advertised may be shared (two names behind one load balancer). */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/config_private.h"

static const char *const protocols[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};

/* One NAME://host:port, pointing into the setting's text. */
struct endpoint_text {
    struct str name, host;
    int port;
};

static bool same_name(struct str a, const char *b)
{
    if (a.len != (int32_t)strlen(b))
        return false;
    for (int32_t i = 0; i < a.len; i++)
        if (toupper((unsigned char)a.p[i]) != toupper((unsigned char)b[i]))
            return false;
    return true;
}

static char *upper_dup(struct str s)
{
    char *z = str_dup(s);
    for (char *p = z; p && *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return z;
}

static bool host_valid(struct str host)
{
    for (int32_t i = 0; i < host.len; i++)
        if (!isalnum((unsigned char)host.p[i]) && !strchr("-%._:", host.p[i]))
            return false;
    return true;
}

static bool parse_endpoint(struct str s, struct endpoint_text *out)
{
    const char *sep = memmem(s.p, (size_t)s.len, "://", 3);
    if (!sep || sep == s.p)
        return false;
    out->name = (struct str){s.p, (int32_t)(sep - s.p)};
    const char *p = sep + 3, *end = s.p + s.len;
    const char *colon = memrchr(p, ':', (size_t)(end - p));
    if (!colon || colon + 1 == end || end - colon > 6)
        return false;
    out->host = (struct str){p, (int32_t)(colon - p)};
    if (out->host.len >= 2 && *p == '[' && colon[-1] == ']')
        out->host = (struct str){p + 1, out->host.len - 2};
    out->port = 0;
    for (const char *d = colon + 1; d < end; d++) {
        if (!isdigit((unsigned char)*d))
            return false;
        out->port = out->port * 10 + (*d - '0');
    }
    return out->port <= 65535 && host_valid(out->host);
}

/* As much of it as fits into a line that says more. */
static struct str shown(struct str s)
{
    return (struct str){s.p, s.len < 200 ? s.len : 200};
}

static int endpoint_refused(const char *key, struct str s, char *err, size_t err_n)
{
    snprintf(err, err_n,
             "Invalid value %.*s for configuration %s: must be a list of NAME://host:port "
             "with ports from 0 to 65535",
             STR_ARG(shown(s)), key);
    return -EINVAL;
}

/* The security protocol of a listener name, or -1. */
static int protocol_of(const struct config *c, struct str name)
{
    struct str pair;
    for (const char *at = config_string(c, "listener.security.protocol.map");
         config_list_next(&at, &pair);) {
        const char *colon = memchr(pair.p, ':', (size_t)pair.len);
        if (!colon)
            continue;
        struct str key = {pair.p, (int32_t)(colon - pair.p)};
        struct str value = {colon + 1, (int32_t)(pair.p + pair.len - colon - 1)};
        if (key.len != name.len || strncasecmp(key.p, name.p, (size_t)key.len) != 0)
            continue;
        for (int i = 0; i < 4; i++)
            if (str_eqz(value, protocols[i]))
                return i;
    }
    return -1;
}

static int check_protocol_map(const struct config *c, char *err, size_t err_n)
{
    const char *text = config_string(c, "listener.security.protocol.map");
    struct str pair;
    for (const char *at = text; config_list_next(&at, &pair);) {
        const char *colon = memchr(pair.p, ':', (size_t)pair.len);
        bool known = false;
        for (int i = 0; colon && i < 4; i++)
            known |= str_eqz((struct str){colon + 1, (int32_t)(pair.p + pair.len - colon - 1)},
                             protocols[i]);
        if (!known) {
            snprintf(
                err, err_n,
                "Invalid value %.300s for configuration listener.security.protocol.map: must be "
                "a list of NAME:PROTOCOL with one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
                text);
            return -EINVAL;
        }
    }
    return 0;
}

static struct listener_config *find_listener(const struct config *c, struct str name)
{
    for (int i = 0; i < c->listeners_n; i++)
        if (same_name(name, c->listeners[i].name))
            return &c->listeners[i];
    return NULL;
}

static int count_elements(const char *text)
{
    int n = 0;
    struct str ignored;
    for (const char *at = text; config_list_next(&at, &ignored);)
        n++;
    return n;
}

static int add_listener(struct config *c, const char *key, struct str text, char *err, size_t err_n)
{
    struct endpoint_text e;
    if (!parse_endpoint(text, &e))
        return endpoint_refused(key, text, err, err_n);
    int protocol = protocol_of(c, e.name);
    if (protocol < 0) {
        snprintf(err, err_n,
                 "Invalid value %.*s for configuration %s: listener %.*s has no protocol in "
                 "listener.security.protocol.map",
                 STR_ARG(shown(text)), key, STR_ARG(shown(e.name)));
        return -EINVAL;
    }
    if (find_listener(c, e.name)) {
        snprintf(err, err_n,
                 "Invalid value %.*s for configuration %s: each listener must have a name of its "
                 "own",
                 STR_ARG(shown(text)), key);
        return -EINVAL;
    }
    for (int i = 0; i < c->listeners_n; i++) {
        const struct listener_config *l = &c->listeners[i];
        if (e.port && l->port == e.port && str_eqz(e.host, l->host)) {
            snprintf(err, err_n,
                     "Invalid value %.*s for configuration %s: address and port are those of "
                     "listener %s",
                     STR_ARG(shown(text)), key, l->name);
            return -EINVAL;
        }
    }
    struct listener_config *l = &c->listeners[c->listeners_n++];
    l->name = upper_dup(e.name);
    l->host = str_dup(e.host);
    l->port = e.port;
    l->security_protocol = (int16_t)protocol;
    return l->name && l->host ? 0 : -ENOMEM;
}

static int load_bound(struct config *c, const char *key, const char *text, char *err, size_t err_n)
{
    int n = count_elements(text);
    if (n == 0) {
        snprintf(err, err_n,
                 "Invalid value '%.300s' for configuration %s: must name at least one listener",
                 text, key);
        return -EINVAL;
    }
    c->listeners = calloc((size_t)n, sizeof(*c->listeners));
    if (!c->listeners)
        return -ENOMEM;
    struct str e;
    for (const char *at = text; config_list_next(&at, &e);) {
        int rc = add_listener(c, key, e, err, err_n);
        if (rc)
            return rc;
    }
    return 0;
}

/* The name by which others reach this machine, as far as the resolver knows one. */
static char *canonical_host_name(void)
{
    char name[HOST_NAME_MAX + 1];
    if (gethostname(name, sizeof(name)) != 0)
        return strdup("localhost");
    name[HOST_NAME_MAX] = 0;
    struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char *result = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) == 0 && found->ai_canonname)
        result = strdup(found->ai_canonname);
    if (found)
        freeaddrinfo(found);
    return result ? result : strdup(name);
}

static int advertise(struct listener_config *l, const char *key, struct str text, struct str host,
                     int port, char *err, size_t err_n)
{
    if (str_eqz(host, "0.0.0.0")) {
        snprintf(err, err_n,
                 "Invalid value %.*s for configuration %s: 0.0.0.0 cannot be advertised, must be "
                 "an address that clients can connect to",
                 STR_ARG(shown(text)), key);
        return -EINVAL;
    }
    l->advertised_host = host.len > 0 ? str_dup(host) : canonical_host_name();
    l->advertised_port = port;
    return l->advertised_host ? 0 : -ENOMEM;
}

static int load_advertised(struct config *c, const char *key, const char *text, char *err,
                           size_t err_n)
{
    struct str s;
    for (const char *at = text; config_list_next(&at, &s);) {
        struct endpoint_text e;
        if (!parse_endpoint(s, &e))
            return endpoint_refused(key, s, err, err_n);
        struct listener_config *l = find_listener(c, e.name);
        if (!l || l->advertised_host) {
            snprintf(err, err_n, "Invalid value %.300s for configuration %s: %s %.*s", text, key,
                     l ? "must name each listener once, twice is" : "listeners has no listener",
                     STR_ARG(shown(e.name)));
            return -EINVAL;
        }
        int rc = advertise(l, key, s, e.host, e.port, err, err_n);
        if (rc)
            return rc;
    }
    return 0;
}

static int advertise_bound(struct config *c, char *err, size_t err_n)
{
    for (int i = 0; i < c->listeners_n; i++) {
        struct listener_config *l = &c->listeners[i];
        int rc = advertise(l, "listeners", str_of(l->host), str_of(l->host), l->port, err, err_n);
        if (rc)
            return rc;
    }
    return 0;
}

/* PLAINTEXT://host:port of the older keys. */
static void old_endpoint(char *out, size_t n, const char *host, int64_t port)
{
    bool v6 = strchr(host, ':') != NULL;
    snprintf(out, n, "PLAINTEXT://%s%s%s:%lld", v6 ? "[" : "", host, v6 ? "]" : "",
             (long long)port);
}

static int load_listeners(struct config *c, char *err, size_t err_n)
{
    if (config_is_given(c, "listeners"))
        return load_bound(c, "listeners", config_string(c, "listeners"), err, err_n);
    if (config_is_given(c, "port") || config_is_given(c, "host.name")) {
        char text[512];
        old_endpoint(text, sizeof(text), config_string(c, "host.name"), config_int(c, "port"));
        return load_bound(c, config_is_given(c, "port") ? "port" : "host.name", text, err, err_n);
    }
    return load_bound(c, "listeners", config_string(c, "listeners"), err, err_n);
}

static int load_advertised_listeners(struct config *c, char *err, size_t err_n)
{
    if (config_is_given(c, "advertised.listeners"))
        return load_advertised(c, "advertised.listeners", config_string(c, "advertised.listeners"),
                               err, err_n);
    if (!config_is_given(c, "advertised.host.name") && !config_is_given(c, "advertised.port"))
        return advertise_bound(c, err, err_n);
    const char *host = config_string(c, "advertised.host.name");
    int64_t port = config_int(c, "advertised.port");
    char text[512];
    old_endpoint(text, sizeof(text), host ? host : config_string(c, "host.name"),
                 port != INT64_MIN ? port : config_int(c, "port"));
    return load_advertised(c, port != INT64_MIN ? "advertised.port" : "advertised.host.name", text,
                           err, err_n);
}

/* Takes over the name when it is an advertised listener. */
static int set_inter_broker(struct config *c, const char *key, const char *name, char *err,
                            size_t err_n)
{
    const struct listener_config *l = find_listener(c, str_of(name));
    if (!l || !l->advertised_host) {
        snprintf(err, err_n,
                 "Invalid value %.300s for configuration %s: must be the name of an advertised "
                 "listener",
                 name, key);
        return -EINVAL;
    }
    c->inter_broker_listener = l->name;
    return 0;
}

static int load_inter_broker(struct config *c, char *err, size_t err_n)
{
    const char *by_name = config_string(c, "inter.broker.listener.name");
    if (!by_name)
        return set_inter_broker(c, "security.inter.broker.protocol",
                                config_string(c, "security.inter.broker.protocol"), err, err_n);
    if (config_is_given(c, "security.inter.broker.protocol")) {
        snprintf(
            err, err_n,
            "Invalid value %.300s for configuration inter.broker.listener.name: must not be set "
            "together with security.inter.broker.protocol",
            by_name);
        return -EINVAL;
    }
    return set_inter_broker(c, "inter.broker.listener.name", by_name, err, err_n);
}

static int check_control_plane(struct config *c, char *err, size_t err_n)
{
    const char *name = config_string(c, "control.plane.listener.name");
    if (!name)
        return 0;
    const struct listener_config *l = find_listener(c, str_of(name));
    if (l && l->advertised_host && !same_name(str_of(name), c->inter_broker_listener))
        return 0;
    snprintf(err, err_n,
             "Invalid value %.300s for configuration control.plane.listener.name: must be an "
             "advertised listener other than the inter-broker listener",
             name);
    return -EINVAL;
}

int config_listeners_load(struct config *c, char *err, size_t err_n)
{
    int (*const steps[])(struct config *, char *, size_t) = {
        load_listeners, load_advertised_listeners, load_inter_broker, check_control_plane};
    int rc = check_protocol_map(c, err, err_n);
    for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(*steps); i++)
        rc = steps[i](c, err, err_n);
    return rc;
}

void config_listeners_free(struct config *c)
{
    for (int i = 0; i < c->listeners_n; i++) {
        free(c->listeners[i].name);
        free(c->listeners[i].host);
        free(c->listeners[i].advertised_host);
    }
    free(c->listeners);
}
