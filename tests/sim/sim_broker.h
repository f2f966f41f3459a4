/* sim_broker.h - a broker's program on a simulated host: server/broker_start.c and what follows. */
#ifndef TESTS_SIM_SIM_BROKER_H
#define TESTS_SIM_SIM_BROKER_H

#include "sim.h"
#include "sim_fs.h"

struct broker;

/* What all brokers of a run are set to. */
struct sim_cluster {
    int brokers;
    bool flush_each; /* flush.messages=1: what is acknowledged survives the loss of power */
    int dirs;
    const char *ibp; /* NULL: the default */
    const char *min_insync;
    bool preferred; /* auto.leader.rebalance.enable, often */
};
extern struct sim_cluster sim_cluster;

enum { SIM_PORT = 9092 };

/* Begins another life; the host must be down. */
void sim_broker_start(struct sim_host *h);
/* A controlled stop, as SIGTERM asks for. Goes on by itself. */
void sim_broker_stop(struct sim_host *h);
/* Ends it now; with the power, or its process alone. */
void sim_broker_kill(struct sim_host *h, enum sim_crash how);
/* Like that, at the n-th change of a file from now. */
void sim_broker_kill_at(struct sim_host *h, enum sim_crash how, uint64_t changes);
/* The broker, once it serves; NULL. */
struct broker *sim_broker(const struct sim_host *h);
bool sim_broker_serves(const struct sim_host *h);
bool sim_broker_stops(const struct sim_host *h);

#endif
