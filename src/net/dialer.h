/* dialer.h - opens a TCP connection without blocking: looks the name up, then tries each address in
 * turn.
 *
 * THREADS  everything on the loop given. */
#ifndef NET_DIALER_H
#define NET_DIALER_H

#include <uv.h>

#include "base/executor.h"

struct dialer;

struct dialer_options {
    int64_t timeout_ms;              /* for each address; <= 0 = the system's */
    int send_buffer, receive_buffer; /* <= 0 = the system's */
    int receive_least;               /* see sock_receive_at_least; 0 = none */
};

/* fd: a connected non-blocking socket, now the callee's; or -errno of the last address tried
 * (-EHOSTUNREACH when the name is unknown). */
typedef void (*dialer_cb)(void *arg, int fd);

/* Borrows loop and executor (same thread), copies the rest. The callback comes once, never before
 * this returns; then the dialer is gone. NULL without memory. */
struct dialer *dialer_start(uv_loop_t *loop, struct executor *ex, const char *host, int port,
                            const struct dialer_options *o, dialer_cb cb, void *arg);
/* Before the callback has come: it will not. */
void dialer_cancel(struct dialer *d);

#endif
