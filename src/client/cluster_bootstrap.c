/* cluster_bootstrap.c - the first brokers: bootstrap.servers, as client.dns.lookup has it. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "client/cluster_private.h"

static bool add(struct cluster *c, const char *host, int port)
{
    struct node *n = node_open(c, -1, str_of(host), port);
    if (n)
        list_push_back(&c->bootstrap, &n->link);
    return n != NULL;
}

/* Each address of the name by its canonical name, so that what checks names (Kerberos) meets the
 * one that the broker knows itself by. A name that cannot be looked up now (client_resolve.c has
 * told) is kept as it is. */
static bool add_canonical(struct cluster *c, const char *host, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int err = getaddrinfo(host, NULL, &hints, &found);
    if (err)
        return add(c, host, port);
    bool ok = true;
    for (const struct addrinfo *a = found; ok && a; a = a->ai_next) {
        char name[NI_MAXHOST];
        err = getnameinfo(a->ai_addr, a->ai_addrlen, name, sizeof name, NULL, 0, 0);
        ok = add(c, err ? host : name, port);
    }
    freeaddrinfo(found);
    return ok;
}

bool cluster_add_bootstrap(struct cluster *c)
{
    const char *at = client_conf_string(c->conf, c->scope, "bootstrap.servers");
    bool canonical = strcmp(client_conf_string(c->conf, c->scope, "client.dns.lookup"),
                            "resolve_canonical_bootstrap_servers_only") == 0;
    char host[256];
    int port;
    while (client_next_address(&at, host, &port))
        if (!(canonical ? add_canonical : add)(c, host, port))
            return false;
    return true;
}
