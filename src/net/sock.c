/* sock.c - the system's socket calls, as this room needs them. */
#include "net/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct in6_addr sock_ip(const struct sockaddr_storage *a)
{
    struct in6_addr ip = IN6ADDR_ANY_INIT;
    if (a->ss_family == AF_INET) {
        memcpy(ip.s6_addr, mapped_prefix, 12);
        memcpy(ip.s6_addr + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
    } else if (a->ss_family == AF_INET6) {
        ip = ((const struct sockaddr_in6 *)a)->sin6_addr;
    }
    return ip;
}

int sock_port(const struct sockaddr_storage *a)
{
    return ntohs(a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
                                         : ((const struct sockaddr_in6 *)a)->sin6_port);
}

void sock_text(const struct sockaddr_storage *a, char host[SOCK_HOST_MAX], char name[SOCK_NAME_MAX])
{
    struct in6_addr ip = sock_ip(a);
    bool v4 = IN6_IS_ADDR_V4MAPPED(&ip);
    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? (void *)(ip.s6_addr + 12) : (void *)&ip, host,
                   SOCK_HOST_MAX))
        strcpy(host, "?");
    snprintf(name, SOCK_NAME_MAX, v4 ? "%s:%d" : "[%s]:%d", host, sock_port(a));
}

static void set_int(int fd, int level, int option, int value)
{
    /* Refused only for descriptors that are no TCP sockets; then it makes no difference. */
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

void sock_tune(int fd, int send_buffer, int receive_buffer)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    if (send_buffer > 0)
        set_int(fd, SOL_SOCKET, SO_SNDBUF, send_buffer);
    if (receive_buffer > 0)
        set_int(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
}

void sock_receive_at_least(int fd, int bytes)
{
    int now = 0; /* twice what was asked for, as Linux counts */
    socklen_t n = sizeof(now);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &now, &n) < 0 || now / 2 < bytes)
        set_int(fd, SOL_SOCKET, SO_RCVBUF, bytes);
}

int sock_bound_port(int fd)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    return getsockname(fd, (struct sockaddr *)&a, &n) == 0 ? sock_port(&a) : -1;
}

static int listen_on(const struct sockaddr *a, socklen_t n, int backlog, int receive_buffer)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (a->sa_family == AF_INET6)
        set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    /* Before listen: the window that a connection may scale to is settled in its handshake. */
    if (receive_buffer > 0)
        set_int(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
    if (bind(fd, a, n) < 0 || listen(fd, backlog) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

static int listen_all(int port, int backlog, int receive_buffer)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = listen_on((struct sockaddr *)&six, sizeof(six), backlog, receive_buffer);
    if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
        return fd;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return listen_on((struct sockaddr *)&four, sizeof(four), backlog, receive_buffer);
}

/* The errno that says best what getaddrinfo found. */
static int resolve_errno(int gai)
{
    switch (gai) {
    case EAI_SYSTEM:
        return -errno;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EAGAIN;
    default:
        return -EADDRNOTAVAIL;
    }
}

int sock_resolve(const char *host, struct in6_addr *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int gai = getaddrinfo(host, NULL, &hints, &found);
    if (gai != 0)
        return resolve_errno(gai);
    int rc = -EADDRNOTAVAIL;
    for (int pass = 0; pass < 2 && rc; pass++) {
        for (struct addrinfo *a = found; a && rc; a = a->ai_next) {
            if ((a->ai_family == AF_INET) != (pass == 0) ||
                a->ai_addrlen > sizeof(struct sockaddr_storage))
                continue;
            struct sockaddr_storage s = {0};
            memcpy(&s, a->ai_addr, a->ai_addrlen);
            *out = sock_ip(&s);
            rc = 0;
        }
    }
    freeaddrinfo(found);
    return rc;
}

int sock_listen(const char *host, int port, int backlog, int receive_buffer)
{
    if (!*host || strcmp(host, "0.0.0.0") == 0)
        return listen_all(port, backlog, receive_buffer);

    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    int gai = getaddrinfo(host, service, &hints, &found);
    if (gai != 0)
        return resolve_errno(gai);
    /* The first that binds; IPv4 before IPv6, as Java has it: "localhost" is 127.0.0.1. */
    int fd = -EADDRNOTAVAIL;
    for (int pass = 0; pass < 2 && fd < 0; pass++)
        for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
            if ((a->ai_family == AF_INET) == (pass == 0))
                fd = listen_on(a->ai_addr, a->ai_addrlen, backlog, receive_buffer);
    freeaddrinfo(found);
    return fd;
}

bool sock_broken(int fd)
{
    struct pollfd p = {.fd = fd};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}
