/* controller.h - the controller: one event queue on one executor. Elects itself through the store,
 * watches topics, deletions and brokers, drives partition and replica states, and tells brokers
 * through their channels.
 *
 * Knows no socket, no file, no clock of its own: store, executor and channels are handed in. */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include "controller/broker_channel.h"
#include "metadata/metadata_cache.h"
#include "metadata/store.h"

struct controller;

struct controller_options {
    int32_t broker_id;
    int64_t broker_epoch; /* czxid of the own registration */
    struct store *store;
    struct executor *ex;
    /* Channel to a broker (own id: in process). Returns owned; NULL = cannot. */
    struct broker_channel *(*channel)(void *arg, int32_t broker_id);
    /* A change nobody here survives (e.g. the store failed): the broker should stop. */
    void (*fatal)(void *arg, const char *why);
    /* The first full round (all partitions told, metadata sent to the own broker) is over. On ex.
     */
    void (*ready)(void *arg);
    void *arg;
};
int controller_start(const struct controller_options *o, struct controller **out);
/* On ex, or when ex no longer runs. */
void controller_stop(struct controller *c);
bool controller_is_active(const struct controller *c); /* @thread any */

#endif
