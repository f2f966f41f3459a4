/* client_resolve.c - are the bootstrap servers names that mean anything? A name that nobody knows
 * is mostly a mistake, and waiting for it does not help: as Apache Kafka's clients, a client is not
 * even made when none of them can be resolved. */
#include <arpa/inet.h>
#include <string.h>

#include "client/client_conf.h"
#include "net/sock.h"

static bool is_number(const char *host)
{
    struct in6_addr six;
    struct in_addr four;
    return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1;
}

bool client_any_resolvable(const char *servers)
{
    char host[256];
    int port;
    bool any = false;
    for (const char *at = servers; at && client_next_address(&at, host, &port);) {
        struct in6_addr ignored;
        if (is_number(host) || sock_resolve(host, &ignored) == 0)
            any = true;
        else
            client_log(2, "Couldn't resolve server %s:%d from bootstrap.servers: no address of %s",
                       host, port, host);
    }
    return any;
}
