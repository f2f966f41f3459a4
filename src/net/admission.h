/* admission.h - which new connections are let in, and when: numbers of connections (over all, per
 * listener, per address) and rates at which they are made.
 *
 * It decides on numbers handed in, knows no socket and no clock. Numbers of open connections are
 * kept by others (struct net_server, listener.h, ip_count.h).
 *
 * RATES  As Kafka measures them (base/rate.h). Over the rate of a listener, or of all: the acceptor
 * waits, at most one sample. Over the rate of an address: the connection is refused, does not
 * count, and its closing is put off, at most one sample.
 *
 * THREADS  any; a lock inside. */
#ifndef NET_ADMISSION_H
#define NET_ADMISSION_H

#include <netinet/in.h>
#include <pthread.h>

#include "base/hmap.h"
#include "base/rate.h"
#include "net/server_conn.h"

struct admission_listener {
    struct list link;
    char *name;
    bool exempt; /* from what limits all listeners together */
    int max_connections;
    double max_rate;
    struct rate rate;
};

struct admission {
    pthread_mutex_t lock; /* all below */
    struct rate_window window;
    int max_connections, max_per_ip;
    struct net_ip_limit *ip_limits; /* by address; owned */
    int ip_limits_n;
    double max_rate;
    struct rate rate;
    struct list listeners; /* of struct admission_listener */
    double ip_rate;        /* of addresses without one of their own */
    struct hmap ip_rates;  /* of struct ip_rate, configured */
    struct hmap ip_seen;   /* of struct ip_seen, counted */
    struct list ip_lru;    /* of struct ip_seen, oldest first */
};

void admission_init(struct admission *a, const struct net_limits *limits);
void admission_free(struct admission *a);
/* See net_server_set_admission. */
int admission_set(struct admission *a, const struct net_admission *limits);
/* `ip` NULL = the default. INFINITY = none. 0 or -ENOMEM. */
int admission_set_ip_rate(struct admission *a, const struct in6_addr *ip, double rate);
/* Called once for each listener before it accepts. Returns owned, NULL without memory. What is
 * left at the end goes with `a`. */
struct admission_listener *admission_listener_new(struct admission *a, const char *name);
void admission_listener_free(struct admission *a, struct admission_listener *l); /* NULL is fine */

/* May one more be accepted, with so many open on this listener and on all? */
bool admission_slot_free(struct admission *a, const struct admission_listener *l, int on_listener,
                         int on_all);
/* Are there more open than `max.connections` allows, so that one of a listener that is not exempt
 * has to go? */
bool admission_exceeded(struct admission *a, int on_all);
bool admission_exempt(struct admission *a, const struct admission_listener *l);
/* Counts one new connection of the listener; the ms to wait before it is accepted. */
int64_t admission_new_ms(struct admission *a, struct admission_listener *l, int64_t now_ms);
/* Counts one new connection of the address; > 0: it is refused, and closed after that many ms. */
int64_t admission_ip_ms(struct admission *a, const struct in6_addr *ip, int64_t now_ms);
/* max.connections.per.ip for this address. */
int admission_max_per_ip(struct admission *a, const struct in6_addr *ip);
/* Addresses counted at present, for tests. */
int admission_ips_seen(struct admission *a);

#endif
