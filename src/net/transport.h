/* transport.h - how a connection's bytes cross its socket: as they are (transport_plain.c), or
 * through TLS.
 *
 * Connections and peers read, send and poll through this table only. TLS slots in as a second form:
 * a struct that begins with a struct transport and holds the SSL object; recv runs the handshake
 * until it is done and then SSL_read; send_chain is chain_read into one record's buffer and
 * SSL_write (or sendfile once the kernel does TLS); want turns SSL's own wishes (a read that must
 * write first) into poll events and sets TRANSPORT_AGAIN while decrypted bytes wait inside it,
 * where poll cannot see them. SASL needs nothing here: it is requests, judged by the handler.
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
struct transport_ops {
    /* Bytes put into iov in order; 0 = the other side ended; -EAGAIN = none now; -errno. */
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
};

struct transport {
    const struct transport_ops *ops;
    int fd;
};

/* Takes the non-blocking socket. */
void transport_plain_init(struct transport *t, int fd);

#endif
