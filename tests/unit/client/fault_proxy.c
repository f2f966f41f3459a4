/* fault_proxy.c - see fault_proxy.h. */
#include "client/fault_proxy.h"

#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS = 64 };

struct pair {
    int client, broker; /* broker -1: none behind */
    long passed;        /* bytes of answers */
};

struct fault_proxy {
    pthread_t thread;
    pthread_mutex_t lock;
    int listener, wake, port, broker_port;
    char address[32];
    struct pair pairs[PAIRS];
    int n;
    enum proxy_fault fault;
    int every;
    unsigned random;
    bool stopping;
};

static int listen_anywhere(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert_true(listen(fd, 64) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static int dial(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

static void greet(const struct fault_proxy *p, int fd)
{
    static const char http[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 70}; /* fatal: protocol version */
    if (p->fault == PROXY_HTTP)
        (void)!send(fd, http, sizeof http - 1, MSG_NOSIGNAL);
    if (p->fault == PROXY_TLS)
        (void)!send(fd, alert, sizeof alert, MSG_NOSIGNAL);
}

static void take_client(struct fault_proxy *p)
{
    int fd = accept(p->listener, NULL, NULL);
    assert_true(fd >= 0);
    bool alone = p->fault >= PROXY_HTTP;
    int broker = alone || p->n == PAIRS ? -1 : dial(p->broker_port);
    if (p->n == PAIRS || p->fault == PROXY_HANGUP || (!alone && broker < 0)) {
        close(fd);
        return;
    }
    greet(p, fd);
    p->pairs[p->n++] = (struct pair){fd, broker, 0};
}

static void close_pair(struct fault_proxy *p, int i)
{
    close(p->pairs[i].client);
    if (p->pairs[i].broker >= 0)
        close(p->pairs[i].broker);
    p->pairs[i] = p->pairs[--p->n];
}

static bool pass(int to, const uint8_t *bytes, ssize_t n)
{
    for (ssize_t sent = 0; sent < n;) {
        ssize_t k = send(to, bytes + sent, (size_t)(n - sent), MSG_NOSIGNAL);
        if (k <= 0)
            return false;
        sent += k;
    }
    return true;
}

static bool drip(struct fault_proxy *p, int to, const uint8_t *bytes, ssize_t n)
{
    ssize_t slow = n < p->every ? n : p->every;
    for (ssize_t i = 0; i < slow; i++) {
        if (!pass(to, bytes + i, 1))
            return false;
        poll(NULL, 0, 1);
    }
    return pass(to, bytes + slow, n - slow);
}

/* Answers, damaged. false: the connection ends. */
static bool pass_answer(struct fault_proxy *p, struct pair *c, uint8_t *bytes, ssize_t n)
{
    long before = c->passed;
    c->passed += n;
    switch (p->fault) {
    case PROXY_FLIP:
        for (ssize_t i = 0; i < n; i++) {
            p->random = p->random * 1103515245u + 12345u;
            if ((p->random >> 8) % (unsigned)p->every == 0)
                bytes[i] ^= (uint8_t)(1 << ((p->random >> 24) % 8));
        }
        return pass(c->client, bytes, n);
    case PROXY_CUT:
        if (c->passed >= p->every) {
            pass(c->client, bytes, p->every > before ? p->every - before : 0);
            return false;
        }
        return pass(c->client, bytes, n);
    case PROXY_DRIP:
        return drip(p, c->client, bytes, n);
    case PROXY_SILENT:
        return true;
    default:
        return pass(c->client, bytes, n);
    }
}

/* false: the connection ends. */
static bool serve(struct fault_proxy *p, struct pair *c, bool from_client)
{
    static uint8_t bytes[65536]; /* the proxy's one thread */
    ssize_t n = recv(from_client ? c->client : c->broker, bytes, sizeof bytes, 0);
    if (n <= 0)
        return false;
    if (from_client)
        return c->broker < 0 || pass(c->broker, bytes, n);
    return pass_answer(p, c, bytes, n);
}

static void round_of(struct fault_proxy *p)
{
    struct pollfd fds[2 + 2 * PAIRS];
    int n = p->n;
    fds[0] = (struct pollfd){p->wake, POLLIN, 0};
    fds[1] = (struct pollfd){p->listener, POLLIN, 0};
    for (int i = 0; i < n; i++) {
        fds[2 + 2 * i] = (struct pollfd){p->pairs[i].client, POLLIN, 0};
        fds[3 + 2 * i] = (struct pollfd){p->pairs[i].broker, POLLIN, 0};
    }
    pthread_mutex_unlock(&p->lock);
    poll(fds, (nfds_t)(2 + 2 * n), -1);
    pthread_mutex_lock(&p->lock);
    uint64_t count;
    if (fds[0].revents)
        assert_int_equal(read(p->wake, &count, sizeof count), sizeof count);
    for (int i = n - 1; i >= 0; i--) {
        bool alive = !fds[2 + 2 * i].revents || serve(p, &p->pairs[i], true);
        alive = alive && (!fds[3 + 2 * i].revents || serve(p, &p->pairs[i], false));
        if (!alive)
            close_pair(p, i);
    }
    if (fds[1].revents)
        take_client(p);
}

static void *run(void *arg)
{
    struct fault_proxy *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping)
        round_of(p);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct fault_proxy *fault_proxy_start(int port)
{
    struct fault_proxy *p = calloc(1, sizeof *p);
    assert_non_null(p);
    pthread_mutex_init(&p->lock, NULL);
    p->broker_port = port;
    p->listener = listen_anywhere(&p->port);
    p->wake = eventfd(0, 0);
    snprintf(p->address, sizeof p->address, "127.0.0.1:%d", p->port);
    assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
    return p;
}

int fault_proxy_port(const struct fault_proxy *p)
{
    return p->port;
}

const char *fault_proxy_address(const struct fault_proxy *p)
{
    return p->address;
}

void fault_proxy_set(struct fault_proxy *p, enum proxy_fault fault, int every, unsigned seed)
{
    pthread_mutex_lock(&p->lock);
    p->fault = fault;
    p->every = every;
    p->random = seed * 2654435761u + 1;
    pthread_mutex_unlock(&p->lock);
}

void fault_proxy_stop(struct fault_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_mutex_unlock(&p->lock);
    assert_int_equal(write(p->wake, &(uint64_t){1}, 8), 8);
    pthread_join(p->thread, NULL);
    while (p->n > 0)
        close_pair(p, p->n - 1);
    close(p->listener);
    close(p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
