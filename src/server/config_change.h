/* config_change.h - a client's change of an entity's settings: what would be stored, and whether it
 * may be. Decides on lists handed in; knows no store.
 *
 * THREADS    one (the queue of settings).
 *
 * OWNERSHIP  texts are borrowed, or in the change's arena. */
#ifndef SERVER_CONFIG_CHANGE_H
#define SERVER_CONFIG_CHANGE_H

#include "metadata/znode.h"
#include "protocol/errors.h"
#include "server/dynamic_config.h"

/* Numbers of resources and operations on the wire. */
enum config_resource {
    RESOURCE_TOPIC = 2,
    RESOURCE_BROKER = 4,
    RESOURCE_BROKER_LOGGER = 8,
};
enum config_op_type { CONFIG_SET = 0, CONFIG_DELETE = 1, CONFIG_APPEND = 2, CONFIG_SUBTRACT = 3 };

struct config_op {
    int type; /* enum config_op_type, if it is one */
    struct str name, value;
};

struct config_change {
    enum config_resource resource; /* TOPIC or BROKER */
    const struct config_op *ops;
    int ops_n;
    bool whole; /* takes the place of all settings: SETs only, each key once */
    struct arena *arena;
    const char *message; /* why it is refused; in the arena or static; NULL: the error's own text */
};

/* What can be told without the store: keys that stand there twice, values that are missing, unknown
 * operations. */
enum kerr config_change_look(struct config_change *c);
/* The settings afterwards, in the arena. What config_change_look refuses must not come here. */
enum kerr config_change_make(struct config_change *c, struct config_list old,
                             struct config_list *out);
/* May a topic have these? */
enum kerr config_change_check_topic(struct config_change *c, struct str topic,
                                    struct config_list list);
/* May this broker, or all of them, have these? */
enum kerr config_change_check_broker(struct config_change *c, struct dynamic_config *d,
                                     enum config_layer layer, struct config_list list);

#endif
