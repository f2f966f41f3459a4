/* admin_private.h - the inside of an admin client. */
#ifndef CLIENT_ADMIN_PRIVATE_H
#define CLIENT_ADMIN_PRIVATE_H

#include "client/cluster.h"

struct kafka_admin {
    struct cluster *cluster;
    kafka_conf_t *conf;
};

/* UNKNOWN_TOPIC_OR_PARTITION as an outcome that is not retried; turned back before the user sees
 * it. */
#define ADMIN_UNKNOWN_TOPIC (-299)

#endif
