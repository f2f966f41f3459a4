/* controller.h - the controller: one event queue on one executor. Elects itself through the store,
 * watches topics, deletions and brokers, drives partition and replica states, and tells brokers
 * through their channels.
 *
 * Knows no socket, no file, no clock of its own: store, executor and channels are handed in. */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include "controller/broker_channel.h"
#include "controller/controller_counts.h"
#include "metadata/metadata_cache.h"
#include "metadata/registration.h"
#include "metadata/store.h"
#include "protocol/errors.h"
#include "protocol/ibp.h"

struct controller;

struct controller_options {
    int32_t broker_id;
    struct store *store;
    struct executor *ex;
    /* Registers this broker again when a session has ended and a new one begins; its first
     * registration is its owner's. On the same executor. Borrowed; NULL: nothing is registered
     * again. */
    struct broker_registrar *registrar;
    struct str listener;   /* between brokers; copied. Null: each broker's first endpoint */
    int ibp;               /* inter.broker.protocol.version (protocol/ibp.h); 0 = the default */
    bool delete_topics;    /* delete.topic.enable */
    int64_t rebalance_ms;  /* leader.imbalance.check.interval.seconds; 0: leaders are left where
                              they are (auto.leader.rebalance.enable) */
    int imbalance_percent; /* leader.imbalance.per.broker.percentage */
    /* unclean.leader.election.enable as in force for the topic; NULL = never. On ex. */
    bool (*unclean)(void *arg, struct str topic);
    /* Channel to a broker (own id: in process). Returns owned; NULL = cannot. On ex. */
    struct broker_channel *(*channel)(void *arg, const struct broker_info *broker);
    /* A change nobody here survives (e.g. the store failed): the broker should stop. On ex, once.
     */
    void (*fatal)(void *arg, const char *why);
    /* Once: the first election is over, and if this broker won it, the first full round as well
     * (all partitions told and metadata sent to the own broker, and answered). On ex. */
    void (*ready)(void *arg);
    void *arg;
};
/* @thread any */
int controller_start(const struct controller_options *o, struct controller **out);
/* Acts no more and closes the channels; memory goes when what is under way at the store and the
 * channels has been answered, so ex must run until both are closed. Before the store is closed. The
 * nodes /controller and /controller_epoch stay: the session's end removes the former. Not from the
 * callbacks above. @thread ex's */
void controller_stop(struct controller *c);

/* A request to the controller: AlterPartition, ControlledShutdown, ElectLeaders,
 * AllocateProducerIds, AlterPartitionReassignments, ListPartitionReassignments. Queued like every
 * other event, so each sees what those before it did. */
struct controller_call { /* the caller's until done */
    int16_t api_key;
    int version;
    const void *request;
    void *response;      /* initialised; filled in */
    struct arena *arena; /* for what the response points at; nobody else's meanwhile */
    struct executor *done_on;
    void (*done)(struct controller_call *call);
    /* NONE; else nothing is in the response: NOT_CONTROLLER (for ControlledShutdown
     * STALE_CONTROLLER_EPOCH), UNKNOWN_SERVER_ERROR without memory. */
    enum kerr refused;
    /* private */
    struct task task;
    struct controller *c;
};
/* @thread any; done never comes from inside. All must be done before controller_stop. */
void controller_call(struct controller *c, struct controller_call *call);

/* Unclean elections may have become allowed for the topic (null: for all). @thread any; before
 * controller_stop */
void controller_unclean_allowed(struct controller *c, struct str topic);

/* Until stop, like the next. @thread any */
const struct controller_counts *controller_counts(const struct controller *c);
/* Fills the look in and calls its done. @thread any but the controller's, which calls done */
void controller_look(struct controller *c, struct controller_look *l);

bool controller_is_active(const struct controller *c); /* @thread any, until stop */

#endif
