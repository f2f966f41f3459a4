/* dynamic_config.h - the settings in force: the file's, and on top those that were changed while
 * running, for all brokers and for this one alone.
 *
 * Who needs several values that belong together takes a reference on the present settings; a change
 * publishes others. What a proposed change may hold is checked here as Kafka does, before it is
 * stored; what the store holds all the same (other brokers wrote it, or other versions) is taken as
 * far as it is legal.
 *
 * THREADS  any. */
#ifndef SERVER_DYNAMIC_CONFIG_H
#define SERVER_DYNAMIC_CONFIG_H

#include "metadata/znode.h"
#include "server/config.h"

struct dynamic_config;

/* Takes its own reference on the settings that the broker was started with. NULL without memory. */
struct dynamic_config *dynamic_config_new(const struct config *start);
void dynamic_config_free(struct dynamic_config *d);

/* One more that is asked whether settings may change so: NULL = yes, else malloc'ed text. Once,
 * before others check. */
void dynamic_config_set_check(struct dynamic_config *d,
                              char *(*check)(void *arg, const struct config *now,
                                             const struct config *then),
                              void *arg);
/* Returns shared (config_unref). */
const struct config *dynamic_config_ref(struct dynamic_config *d);

/* May this layer be stored? NULL = yes; else malloc'ed text that says why not. Without memory *ok
 * is false and the text may be NULL. */
char *dynamic_config_check(struct dynamic_config *d, enum config_layer layer,
                           const struct props *proposed, bool *ok);
/* The layer is now this. What cannot be is left out, with a line. True: other settings are in force
 * now. */
bool dynamic_config_set(struct dynamic_config *d, enum config_layer layer, struct config_list list);

#endif
