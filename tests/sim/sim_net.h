/* sim_net.h - connections between simulated hosts, in the place of net's sockets: peer.h,
 * server_conn.h and reactor.h are kept, by sim_peer.c and sim_server.c.
 *
 * A CONNECTION is in order and without loss, as TCP is; what the network does to its packets shows
 * as delay, or as its end. A frame that cannot pass now (a cut) waits and is tried again, like a
 * packet that is sent again. A host that dies closes its connections, if its kernel lives on; else
 * they hang until it is back, or until somebody's patience ends.
 *
 * Frames go through their bytes. */
#ifndef TESTS_SIM_SIM_NET_H
#define TESTS_SIM_SIM_NET_H

#include "sim.h"

struct sim_net_weather {
    int64_t delay_min, delay_max; /* ns, one way */
    double spike;                 /* chance of a frame that takes up to spike_ns */
    int64_t spike_ns;
    double lose; /* chance that a frame's connection ends instead: before or after it arrived */
};
struct sim_net_weather *sim_net_weather(void);
/* Nothing passes from one to the other (one way) while cut. */
void sim_net_cut(int from, int to, bool cut);
bool sim_net_is_cut(int from, int to);
/* All connections of the host end, as when a switch forgets them. */
void sim_net_reset(struct sim_host *h);
/* After the host's death; polite: its kernel tells the other ends. */
void sim_net_host_died(struct sim_host *h, bool polite);
int64_t sim_net_delay(void);
uint64_t sim_net_frames(void);

/* ---- one connection, for both ends ---- */
enum sim_side { SIDE_CLIENT, SIDE_SERVER };

struct sim_link;
/* What an end wants to know. Called outside of fibers. */
struct sim_end {
    void (*frame)(void *arg, uint8_t *bytes, size_t n); /* takes the bytes (free) */
    void (*closed)(void *arg, int error);
    void (*connected)(void *arg); /* the client's */
    void *arg;
};
/* Begins to connect to what listens there: connected or closed comes. */
struct sim_link *sim_link_connect(struct sim_host *from, const char *host, int port,
                                  int64_t timeout_ns, struct sim_end end);
/* Takes the bytes. */
void sim_link_send(struct sim_link *l, enum sim_side from, uint8_t *bytes, size_t n);
/* This end wants no more; the other one hears of it. */
void sim_link_close(struct sim_link *l, enum sim_side side);
/* The server's end, from `accept` below. */
void sim_link_attach(struct sim_link *l, struct sim_end end);
int sim_link_peer(const struct sim_link *l); /* host id of the client */

/* Who listens. accept is called outside of fibers and attaches. NULL: nobody any more. */
struct sim_listener {
    struct list link;
    struct sim_host *host;
    uint32_t life;
    int port;
    bool accepting;
    void (*accept)(void *arg, struct sim_link *l);
    void *arg;
};
void sim_listen(struct sim_listener *l);
void sim_unlisten(struct sim_listener *l);

#endif
