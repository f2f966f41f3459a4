/* transport_plain.c - bytes as they are. */
#include "net/transport.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

enum { FINISH_MAX = 256 * 1024 }; /* a client that goes on sending is reset after all */

static ssize_t plain_recv(struct transport *t, const struct iovec *iov, int n)
{
    ssize_t r;
    do
        r = readv(t->fd, iov, n);
    while (r < 0 && errno == EINTR);
    return r < 0 ? (errno == EWOULDBLOCK ? -EAGAIN : -errno) : r;
}

static ssize_t plain_send_chain(struct transport *t, struct chain *c, size_t budget)
{
    return chain_send(c, t->fd, budget);
}

static int plain_want(const struct transport *t, bool read, bool write)
{
    return (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0);
}

static void plain_close(struct transport *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

static void plain_finish(struct transport *t)
{
    char junk[16 * 1024];
    shutdown(t->fd, SHUT_WR);
    for (size_t got = 0; got < FINISH_MAX;) {
        ssize_t r = recv(t->fd, junk, sizeof(junk), MSG_DONTWAIT);
        if (r <= 0)
            return;
        got += (size_t)r;
    }
}

static const struct transport_ops plain_ops = {
    .recv = plain_recv,
    .send_chain = plain_send_chain,
    .want = plain_want,
    .finish = plain_finish,
    .close = plain_close,
};

void transport_plain_init(struct transport *t, int fd)
{
    *t = (struct transport){.ops = &plain_ops, .fd = fd};
}
