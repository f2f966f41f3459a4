/* net_counts.h - what a server counts of its connections, by listener and network thread, for
 * metrics (net_limits.count).
 *
 * Each listener has a block of counters for each thread, which alone adds to it: a plain load and
 * store, no lock, no line that another thread writes.
 * THREADS  adds: the connection's reactor. Reads: any. */
#ifndef NET_NET_COUNTS_H
#define NET_NET_COUNTS_H

#include "base/metrics.h"

enum net_count {
    NET_OPENED, /* connections */
    NET_CLOSED,
    NET_LOGINS, /* by SASL, or else a TLS handshake */
    NET_LOGINS_FAILED,
    NET_LOGINS_AGAIN, /* of those that were in */
    NET_EXPIRED,      /* sessions that ended because nobody logged in again */
    NET_REQUESTS,
    NET_BYTES_IN,
    NET_BYTES_OUT,
    NET_COUNTS
};

/* Of one listener on one thread. */
struct net_figures {
    char listener[128]; /* cut, if need be */
    int processor;
    uint64_t n[NET_COUNTS];
};

#endif
