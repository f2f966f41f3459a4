/* transport.h - how a connection's bytes cross its socket: as they are (transport_plain.c), or
 * through TLS (transport_tls.c).
 *
 * Connections and peers secure, read, send and poll through this table only.
 *
 * OWNERSHIP  the transport owns the descriptor.
 *
 * THREADS    the connection's reactor. */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "net/chain.h"

enum { TRANSPORT_AGAIN = 1 << 16 }; /* beside the UV_* bits: do not wait for the socket */

struct transport;
struct tls_link; /* private to transport_tls.c */
struct transport_ops {
    /* A step of what comes before the first byte, the TLS handshake. 0 = it is over; -EAGAIN = go
     * on when `want` says so; -errno: `why` has words (-EACCES: a certificate is not accepted).
     * NULL = there is nothing to do first. */
    int (*secure)(struct transport *t);
    /* Bytes put into iov in order; 0 = the other side ended; -EAGAIN = none now; -errno. Fewer than
     * asked for: no more are here. */
    ssize_t (*recv)(struct transport *t, const struct iovec *iov, int n);
    /* As chain_send. */
    ssize_t (*send_chain)(struct transport *t, struct chain *c, size_t budget);
    /* Poll events (UV_READABLE, UV_WRITABLE, TRANSPORT_AGAIN) for a user that wants these. */
    int (*want)(const struct transport *t, bool read, bool write);
    /* Says that nothing more comes from here and throws away what the other side still sent, as far
     * as it is here: closing a socket with unread bytes would reset it, and the last answer be
     * lost. */
    void (*finish)(struct transport *t);
    /* Closes the descriptor. */
    void (*close)(struct transport *t);
    /* What went wrong, when an errno says too little; NULL = the errno says it. Borrowed. May be
     * NULL. */
    const char *(*why)(const struct transport *t);
    /* The user that the other side's certificate names; NULL = none. Borrowed. May be NULL. */
    const char *(*principal)(const struct transport *t);
};

struct transport {
    const struct transport_ops *ops;
    int fd;
    /* Reading waits for room, or writing for bytes: whatever the socket says, try both. */
    bool crossed;
    struct tls_link *tls; /* owned; NULL: plain */
};

/* Takes the non-blocking socket. (TLS: transport_tls_init, tls.h.) */
void transport_plain_init(struct transport *t, int fd);
/* Frees what it has; the socket is the caller's again. */
void transport_let_go(struct transport *t);
/* Bytes that came from the socket and were not asked for yet. */
static inline bool transport_holds(const struct transport *t)
{
    return t->ops->want(t, true, false) & TRANSPORT_AGAIN;
}
static inline const char *transport_why(const struct transport *t)
{
    return t->ops->why ? t->ops->why(t) : NULL;
}

#endif
