/* dialer.c - name -> addresses -> the first that answers.
 *
 * STATES  RESOLVING (uv_getaddrinfo holds the dialer) or STARTING (a posted task does; the host was
 * a number, which needs no thread to look it up) -> TRYING (an attempt's poll and the timer)
 *         -> done. Cancelled in the first two, it is freed by what holds it. */
#include "net/dialer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/sock.h"

enum dialer_state { DIALER_RESOLVING, DIALER_STARTING, DIALER_TRYING };

/* One address being tried; its poll handle outlives the dialer by a turn of the loop. */
struct attempt {
    uv_poll_t poll;
    struct dialer *dialer;
    int fd;
};

struct dialer {
    uv_loop_t *loop;
    struct executor *ex;
    struct dialer_options options;
    dialer_cb cb; /* NULL: cancelled */
    void *arg;
    enum dialer_state state;
    uv_getaddrinfo_t lookup;
    struct task start;
    struct addrinfo *found; /* owned by libuv's allocator; NULL for a number */
    struct addrinfo *next;
    struct addrinfo number;
    struct sockaddr_storage number_address;
    struct attempt *attempt;
    struct timer timeout;
    int last_error;
};

static void try_next(struct dialer *d);

static void dialer_free(struct dialer *d)
{
    if (d->found)
        uv_freeaddrinfo(d->found);
    free(d);
}

static void finish(struct dialer *d, int fd)
{
    dialer_cb cb = d->cb;
    void *arg = d->arg;
    dialer_free(d);
    cb(arg, fd);
}

/* ---- attempts ---- */

static void on_attempt_closed(uv_handle_t *h)
{
    free(container_of((uv_poll_t *)h, struct attempt, poll));
}

/* Ends the attempt; the socket stays open. Returns it. */
static int attempt_end(struct dialer *d)
{
    struct attempt *a = d->attempt;
    int fd = a->fd;
    executor_timer_stop(d->ex, &d->timeout);
    d->attempt = NULL;
    uv_close((uv_handle_t *)&a->poll, on_attempt_closed);
    return fd;
}

static void attempt_failed(struct dialer *d, int err)
{
    close(attempt_end(d));
    d->last_error = err;
    try_next(d);
}

static void on_timeout(struct timer *t)
{
    attempt_failed(container_of(t, struct dialer, timeout), -ETIMEDOUT);
}

static void on_connected(uv_poll_t *h, int status, int events)
{
    struct attempt *a = container_of(h, struct attempt, poll);
    struct dialer *d = a->dialer;
    int err = 0;
    socklen_t n = sizeof(err);
    if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
        err = errno;
    if (err)
        attempt_failed(d, -err);
    else if (status < 0)
        attempt_failed(d, status);
    else
        finish(d, attempt_end(d));
}

/* Begins to connect; 0 or -errno. */
static int attempt_begin(struct dialer *d, const struct addrinfo *to)
{
    struct attempt *a = calloc(1, sizeof(*a));
    if (!a)
        return -ENOMEM;
    a->dialer = d;
    a->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int err = -errno;
    if (a->fd < 0)
        goto no_socket;
    sock_tune(a->fd, d->options.send_buffer, d->options.receive_buffer);
    if (d->options.receive_least > 0)
        sock_receive_at_least(a->fd, d->options.receive_least);
    if (connect(a->fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS) {
        err = -errno;
        goto fail;
    }
    if ((err = uv_poll_init(d->loop, &a->poll, a->fd)))
        goto fail;
    d->attempt = a;
    uv_poll_start(&a->poll, UV_WRITABLE, on_connected);
    if (d->options.timeout_ms > 0)
        executor_timer_start(d->ex, &d->timeout, d->options.timeout_ms);
    return 0;
fail:
    close(a->fd);
no_socket:
    free(a);
    return err;
}

static void try_next(struct dialer *d)
{
    d->state = DIALER_TRYING;
    while (d->next) {
        const struct addrinfo *to = d->next;
        d->next = to->ai_next;
        int err = attempt_begin(d, to);
        if (!err)
            return;
        d->last_error = err;
    }
    finish(d, d->last_error);
}

/* ---- addresses ---- */

static void on_start(struct task *t)
{
    struct dialer *d = container_of(t, struct dialer, start);
    if (d->cb)
        try_next(d);
    else
        dialer_free(d);
}

static void on_lookup(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct dialer *d = container_of(lookup, struct dialer, lookup);
    d->found = d->next = found;
    if (!d->cb)
        dialer_free(d);
    else if (status < 0)
        finish(d, status == UV_ENOMEM || status == UV_EAI_MEMORY ? -ENOMEM : -EHOSTUNREACH);
    else
        try_next(d);
}

/* Is the host a number? Then it is all there is to try. */
static bool take_number(struct dialer *d, const char *host, int port)
{
    struct sockaddr_storage *a = &d->number_address;
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)a) != 0 &&
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)a) != 0)
        return false;
    bool four = a->ss_family == AF_INET;
    d->number = (struct addrinfo){
        .ai_family = a->ss_family,
        .ai_addr = (struct sockaddr *)a,
        .ai_addrlen = four ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6),
    };
    d->next = &d->number;
    return true;
}

static int look_up(struct dialer *d, const char *host, int port)
{
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    return uv_getaddrinfo(d->loop, &d->lookup, on_lookup, host, service, &hints);
}

struct dialer *dialer_start(uv_loop_t *loop, struct executor *ex, const char *host, int port,
                            const struct dialer_options *o, dialer_cb cb, void *arg)
{
    struct dialer *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->loop = loop;
    d->ex = ex;
    d->options = *o;
    d->cb = cb;
    d->arg = arg;
    timer_init(&d->timeout, on_timeout);
    task_init(&d->start, on_start);
    d->last_error = -EHOSTUNREACH;
    d->state = DIALER_STARTING;
    if (!take_number(d, host, port) && look_up(d, host, port) == 0)
        d->state = DIALER_RESOLVING;
    else
        executor_post(ex, &d->start); /* with nothing to try if the lookup did not even begin */
    return d;
}

void dialer_cancel(struct dialer *d)
{
    d->cb = NULL;
    switch (d->state) {
    case DIALER_RESOLVING:
        (void)uv_cancel((uv_req_t *)&d->lookup); /* may be too late; on_lookup comes either way */
        break;
    case DIALER_STARTING:
        break;
    case DIALER_TRYING:
        close(attempt_end(d));
        dialer_free(d);
        break;
    }
}
