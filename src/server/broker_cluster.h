/* broker_cluster.h - a broker's ties to other brokers: channels of the controller, fetchers,
 * changes of ISRs. For broker_start.c and broker_stop.c. */
#ifndef SERVER_BROKER_CLUSTER_H
#define SERVER_BROKER_CLUSTER_H

#include "controller/broker_channel.h"
#include "metadata/metadata_cache.h"
#include "protocol/ibp.h"

struct broker;

/* inter.broker.protocol.version */
int broker_ibp(const struct broker *b);
/* The controller's channel to a broker, itself included (controller.h). On the controller's
 * executor. */
struct broker_channel *broker_open_channel(void *broker, const struct broker_info *to);

#endif
