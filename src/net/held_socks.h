/* held_socks.h - sockets of refused connections, unread, that are closed after a while: a client
 * that is over its rate would only come back the sooner if it were told at once.
 *
 * There are HELD_SOCKS_MAX at most; beyond, the oldest goes early.
 *
 * THREADS  the executor's. */
#ifndef NET_HELD_SOCKS_H
#define NET_HELD_SOCKS_H

#include "base/executor.h"

enum { HELD_SOCKS_MAX = 1024 };

struct held_socks {
    struct executor *ex;
    struct list socks; /* in order of arrival */
    int n;
    struct timer timer;
};

void held_socks_init(struct held_socks *h, struct executor *ex);
/* Takes the socket. */
void held_socks_add(struct held_socks *h, int fd, int64_t ms);
/* Closes all. */
void held_socks_end(struct held_socks *h);

#endif
