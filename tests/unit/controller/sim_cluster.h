/* sim_cluster.h - a cluster without sockets and disks: brokers with a real controller, registration
 * and metadata cache each, on one simulated executor and one embedded store, and a model of what a
 * broker does with control requests. Everything replays exactly.
 *
 * The model checks epochs as a broker must, applies each request as decoded from its wire form, and
 * keeps what it was told, so that tests can compare it with the store. */
#ifndef TESTS_CONTROLLER_SIM_CLUSTER_H
#define TESTS_CONTROLLER_SIM_CLUSTER_H

#include "base/sim_executor.h"
#include "controller/controller.h"
#include "controller/topic_admin.h"
#include "metadata/registration.h"

#include "metadata/store_test.h"

enum { SIM_BROKERS = 5 };

/* One replica as its broker sees it. */
struct sim_replica {
    struct list link;
    char topic[256];
    struct uuid id;
    int32_t partition;
    int32_t leader, leader_epoch;
    bool stopped; /* told to stop, folder kept */
};

struct sim_broker {
    struct sim_cluster *cluster;
    int32_t id;
    bool up;
    struct store *session;
    struct broker_registrar *registrar;
    struct controller *controller;
    struct metadata_cache *cache;
    struct topic_admin *admin;
    struct list disk;         /* of sim_replica; survives its death */
    int32_t controller_epoch; /* highest seen */
    bool ready, fatal;
    /* Faults. */
    bool hold;              /* answers nothing for now */
    int16_t stop_error;     /* what it answers to a deletion */
    const char *dead_topic; /* lies in a log dir that failed */
    /* Counts. */
    int lisr, umr, sr, lisr_partitions, umr_partitions, lisr_new;
    struct list channels; /* towards it, of sim_channel */
};

struct sim_cluster {
    struct sim_clock clock;
    struct sim_executor *e;
    struct executor *ex;
    struct store *base; /* a session of nobody, for the test's own look */
    struct sim_broker brokers[SIM_BROKERS];
    int brokers_n;
    bool unclean;
    const char *racks; /* set before sim_start, like the next */
    int ibp;           /* level of all; 0 = the default */
    int64_t rebalance_ms;
    struct arena arena; /* of the test */
};

void sim_start(struct sim_cluster *c, int brokers);
/* The same, and this broker is the controller. */
void sim_start_under(struct sim_cluster *c, int brokers, int32_t controller);
void sim_stop(struct sim_cluster *c);
/* Begins a broker's life; drain to let it register and elect. */
void sim_broker_start(struct sim_cluster *c, int32_t id);
/* Ends it at this instant. clean: what it had asked of the store is still done, else not. */
void sim_broker_kill(struct sim_cluster *c, int32_t id, bool clean);
/* Its node goes and comes in one transaction, as when its process was killed and is back before
 * anybody looked. Not drained. */
void sim_bounce(struct sim_cluster *c, int32_t id);
void sim_drain(struct sim_cluster *c);
struct sim_broker *sim_active(struct sim_cluster *c); /* the one controller; NULL none */
/* Lets a broker that was held go on. */
void sim_release(struct sim_cluster *c, int32_t id);

/* Through the admin code of the controller's broker. The error. */
int sim_create_topic(struct sim_cluster *c, const char *name, int partitions, int replication);
int sim_create_assigned(struct sim_cluster *c, const char *name, const int32_t *brokers, int n);
int sim_delete_topic(struct sim_cluster *c, const char *name);
int sim_grow_topic(struct sim_cluster *c, const char *name, int count);

/* The state node; leader -9 when there is none. */
struct partition_node sim_state(struct sim_cluster *c, const char *topic, int partition,
                                int32_t *version);
struct sim_replica *sim_replica(struct sim_cluster *c, int32_t broker, const char *topic,
                                int partition); /* NULL */
bool sim_exists(struct sim_cluster *c, const char *path);
/* What must hold when nothing is under way; fails the test otherwise. */
void sim_check(struct sim_cluster *c);

#endif
