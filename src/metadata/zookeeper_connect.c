/* zookeeper_connect.c - see zookeeper_connect.h. */
#include "metadata/zookeeper_connect.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "metadata/tree.h"

enum { DEFAULT_PORT = 2181 };

/* Where the port's digits begin, or NULL; ":" inside the brackets of an IPv6 address is none. */
static const char *find_port(struct str host)
{
    for (int32_t i = host.len; i-- > 0 && host.p[i] != ']';)
        if (host.p[i] == ':')
            return host.p + i + 1;
    return NULL;
}

static bool port_ok(const char *digits, const char *end)
{
    char text[8];
    size_t n = (size_t)(end - digits);
    if (!n || n > 5 || strspn(digits, "0123456789") < n)
        return false;
    memcpy(text, digits, n);
    text[n] = 0;
    long port = strtol(text, NULL, 10);
    return port > 0 && port < 65536;
}

static const char *add_host(struct str host, struct buf *out)
{
    const char *port = find_port(host);
    const char *end = host.p + host.len;
    if (!host.len || port == host.p + 1)
        return "a host is missing";
    if (port && !port_ok(port, end))
        return "a port must be 1 to 65535";
    for (const char *p = host.p; p < end; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return "a host has white space or control characters";
    if (out->len)
        buf_put(out, ",", 1);
    buf_put(out, host.p, (size_t)host.len);
    if (!port) {
        char text[16];
        int n = snprintf(text, sizeof(text), ":%d", DEFAULT_PORT);
        buf_put(out, text, (size_t)n);
    }
    return NULL;
}

static const char *add_hosts(struct str list, struct buf *out)
{
    for (;;) {
        const char *comma = memchr(list.p, ',', (size_t)list.len);
        struct str host = {list.p, comma ? (int32_t)(comma - list.p) : list.len};
        while (host.len && *host.p == ' ')
            host.p++, host.len--;
        while (host.len && host.p[host.len - 1] == ' ')
            host.len--;
        const char *problem = add_host(host, out);
        if (problem || !comma)
            return problem;
        list.len -= (int32_t)(comma + 1 - list.p);
        list.p = comma + 1;
    }
}

int zookeeper_connect_parse(const char *text, struct zookeeper_connect *out, char *err,
                            size_t err_n)
{
    *out = (struct zookeeper_connect){NULL, NULL};
    struct buf hosts = BUF_INIT;
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    const char *problem = add_hosts((struct str){text, (int32_t)n}, &hosts);
    if (!problem && slash && !tree_path_ok(slash))
        problem = "the folder behind the hosts must be an absolute path such as /kafka";
    if (problem) {
        buf_free(&hosts);
        snprintf(err, err_n, "zookeeper.connect=%s: %s", text, problem);
        return -EINVAL;
    }
    buf_put(&hosts, "", 1);
    if (!hosts.failed)
        out->hosts = strdup((const char *)hosts.p);
    out->chroot = strdup(slash && slash[1] ? slash : "");
    buf_free(&hosts);
    if (out->hosts && out->chroot)
        return 0;
    zookeeper_connect_clear(out);
    snprintf(err, err_n, "no memory");
    return -ENOMEM;
}

void zookeeper_connect_clear(struct zookeeper_connect *c)
{
    free(c->hosts);
    free(c->chroot);
    *c = (struct zookeeper_connect){NULL, NULL};
}

void zookeeper_server_text(const struct sockaddr *at, socklen_t len,
                           char out[ZOOKEEPER_SERVER_TEXT])
{
    char host[48], port[8];
    if (!at || getnameinfo(at, len, host, sizeof(host), port, sizeof(port),
                           NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(out, ZOOKEEPER_SERVER_TEXT, "?");
    else
        snprintf(out, ZOOKEEPER_SERVER_TEXT, at->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                 port);
}
