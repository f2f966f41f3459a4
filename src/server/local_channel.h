/* local_channel.h - the controller's channel to the broker it lives in: requests are applied by
 * the control queue as the structs they are, without a socket.
 *
 * CLOSE    requests not begun end with -ECANCELED; one that is being applied ends as it ends. Each
 * callback still comes, on the executor, and the channel frees itself after the last one. */
#ifndef SERVER_LOCAL_CHANNEL_H
#define SERVER_LOCAL_CHANNEL_H

#include "controller/broker_channel.h"
#include "replica/replica_manager.h"
#include "server/control_queue.h"

/* Borrows queue and replicas, which outlive the channel. Callbacks come on `ex`. Returns owned
 * (->close); NULL without memory. */
struct broker_channel *local_channel_new(struct control_queue *q, struct replica_manager *replicas,
                                         int32_t broker_id, struct executor *ex);

#endif
