/* znode_broker.c - the node of a registered broker: where it listens, and its rack. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "metadata/json.h"

enum { PROTOCOLS_N = 4 };
static const char *const protocols[PROTOCOLS_N] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT",
                                                   "SASL_SSL"};

static const char *protocol_name(int16_t protocol)
{
    return protocol >= 0 && protocol < PROTOCOLS_N ? protocols[protocol] : "PLAINTEXT";
}

static int protocol_of(struct str name, int16_t *out)
{
    for (int16_t i = 0; i < PROTOCOLS_N; i++)
        if (str_eqz(name, protocols[i])) {
            *out = i;
            return 0;
        }
    return -EBADMSG;
}

/* "NAME://host:port"; a host with colons stands in brackets. */
static json_t *endpoint_text(const struct endpoint *e, struct arena *a)
{
    bool v6 = e->host.len > 0 && memchr(e->host.p, ':', (size_t)e->host.len);
    char *text = arena_printf(a, v6 ? "%.*s://[%.*s]:%d" : "%.*s://%.*s:%d", STR_ARG(e->listener),
                              e->host.len < 0 ? 0 : (int)e->host.len,
                              e->host.len < 0 ? "" : e->host.p, (int)e->port);
    return text ? json_string(text) : NULL;
}

static const struct endpoint *first_plaintext(const struct broker_info *b)
{
    for (int i = 0; i < b->endpoints_n; i++)
        if (b->endpoints[i].security_protocol == 0)
            return &b->endpoints[i];
    return NULL;
}

struct bytes znode_broker_encode(const struct broker_info *b, int32_t jmx_port,
                                 int64_t timestamp_ms, struct arena *a)
{
    json_t *o = json_object(), *endpoints = json_array(), *map = json_object();
    int err = 0;
    for (int i = 0; i < b->endpoints_n; i++) {
        const struct endpoint *e = &b->endpoints[i];
        struct str name = arena_str(a, e->listener);
        err |= json_array_append_new(endpoints, endpoint_text(e, a));
        err |=
            json_put(map, name.p ? name.p : "", json_string(protocol_name(e->security_protocol)));
    }
    const struct endpoint *plain = first_plaintext(b);
    err |= json_put(o, "version", json_integer(5));
    err |= json_put(o, "features", json_object());
    err |= json_put(o, "host", plain ? json_of_str(plain->host) : json_null());
    err |= json_put(o, "port", json_integer(plain ? plain->port : -1));
    err |= json_put(o, "jmx_port", json_integer(jmx_port));
    err |= json_put(o, "timestamp", json_of_i64_text(timestamp_ms));
    err |= json_put(o, "endpoints", endpoints);
    if (!str_is_null(b->rack))
        err |= json_put(o, "rack", json_of_str(b->rack));
    err |= json_put(o, "listener_security_protocol_map", map);
    if (err) {
        json_decref(o);
        o = NULL;
    }
    return json_emit(o, a);
}

static int parse_port(struct str text, int32_t *out)
{
    char digits[8];
    if (text.len < 1 || text.len >= (int32_t)sizeof(digits))
        return -EBADMSG;
    memcpy(digits, text.p, (size_t)text.len);
    digits[text.len] = 0;
    char *end;
    long port = strtol(digits, &end, 10);
    if (*end || port < -1 || port > 65535)
        return -EBADMSG;
    *out = (int32_t)port;
    return 0;
}

/* `text` lies in the arena; so do the parts. */
static int parse_endpoint(struct str text, struct endpoint *e)
{
    const char *scheme = memmem(text.p, (size_t)text.len, "://", 3);
    const char *colon = memrchr(text.p, ':', (size_t)text.len);
    if (!scheme || scheme == text.p || colon <= scheme)
        return -EBADMSG;
    e->listener = (struct str){text.p, (int32_t)(scheme - text.p)};
    e->host = (struct str){scheme + 3, (int32_t)(colon - scheme - 3)};
    if (e->host.len >= 2 && e->host.p[0] == '[' && e->host.p[e->host.len - 1] == ']') {
        e->host.p++;
        e->host.len -= 2;
    }
    return parse_port((struct str){colon + 1, (int32_t)(text.p + text.len - colon - 1)}, &e->port);
}

/* Without a map (below version 4) the listener is named as its protocol. */
static int find_protocol(const json_t *map, struct endpoint *e, struct arena *a)
{
    if (!json_is_object(map))
        return protocol_of(e->listener, &e->security_protocol);
    struct str key = arena_str(a, e->listener), name;
    if (!key.p)
        return -ENOMEM;
    int err = json_to_str(json_object_get(map, key.p), a, &name);
    return err ? err : protocol_of(name, &e->security_protocol);
}

static int get_endpoints(const json_t *o, struct arena *a, struct broker_info *b)
{
    const json_t *list = json_object_get(o, "endpoints");
    const json_t *map = json_object_get(o, "listener_security_protocol_map");
    if (!json_is_array(list))
        return -EBADMSG;
    size_t n = json_array_size(list);
    struct endpoint *e = arena_array(a, struct endpoint, n);
    if (!e)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct str text;
        int err = json_to_str(json_array_get(list, i), a, &text);
        if (!err)
            err = parse_endpoint(text, &e[i]);
        if (!err)
            err = find_protocol(map, &e[i], a);
        if (err)
            return err;
    }
    b->endpoints = e;
    b->endpoints_n = (int)n;
    return 0;
}

/* Version 1 has host and port of its one PLAINTEXT endpoint. */
static int get_only_endpoint(const json_t *o, struct arena *a, struct broker_info *b)
{
    struct endpoint *e = arena_new(a, struct endpoint);
    if (!e)
        return -ENOMEM;
    e->listener = STR_LIT("PLAINTEXT");
    int err = json_get_str(o, "host", a, &e->host);
    if (!err)
        err = json_get_i32(o, "port", &e->port);
    b->endpoints = e;
    b->endpoints_n = 1;
    return err;
}

int znode_broker_decode(struct bytes data, int32_t id, struct arena *a, struct broker_info *b)
{
    int32_t version;
    *b = (struct broker_info){.id = id, .rack = STR_NULL};
    json_t *o = json_parse(data);
    if (!o)
        return -EBADMSG;
    int err = json_get_i32(o, "version", &version);
    if (!err && version < 1)
        err = -EBADMSG;
    if (!err)
        err = version == 1 ? get_only_endpoint(o, a, b) : get_endpoints(o, a, b);
    const json_t *rack = json_object_get(o, "rack");
    if (!err && rack && !json_is_null(rack))
        err = json_to_str(rack, a, &b->rack);
    json_decref(o);
    return err;
}
