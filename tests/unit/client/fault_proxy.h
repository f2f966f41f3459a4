/* fault_proxy.h - between a client and a broker: passes bytes on, and damages what comes back as
 * told.
 *
 * THREADS  one of its own; every function here may be called from any. */
#ifndef TESTS_CLIENT_FAULT_PROXY_H
#define TESTS_CLIENT_FAULT_PROXY_H

enum proxy_fault {
    PROXY_FINE,
    PROXY_FLIP,   /* a byte of every so many is another */
    PROXY_CUT,    /* the connection ends after so many bytes of answers */
    PROXY_DRIP,   /* one byte a millisecond, so many of them, then as it comes */
    PROXY_SILENT, /* answers are swallowed */
    /* no broker behind it: what the port says to whoever connects, then it waits */
    PROXY_HTTP,
    PROXY_TLS,
    PROXY_HANGUP, /* closes at once */
};

struct fault_proxy;
/* port: the broker's. */
struct fault_proxy *fault_proxy_start(int port);
int fault_proxy_port(const struct fault_proxy *p);
/* "127.0.0.1:port"; borrowed */
const char *fault_proxy_address(const struct fault_proxy *p);
/* For connections from now on and those there are. seed: which bytes. */
void fault_proxy_set(struct fault_proxy *p, enum proxy_fault fault, int every, unsigned seed);
void fault_proxy_stop(struct fault_proxy *p);

#endif
