/* broker_cluster.h - a broker's ties to other brokers: channels of the controller, fetchers,
 * changes of ISRs. For broker_start.c and broker_stop.c. */
#ifndef SERVER_BROKER_CLUSTER_H
#define SERVER_BROKER_CLUSTER_H

#include <stddef.h>

#include "controller/broker_channel.h"
#include "log/log.h"
#include "metadata/metadata_cache.h"
#include "metadata/producer_ids.h"
#include "net/remote.h"
#include "protocol/ibp.h"

struct broker;
struct controller_link;
struct isr_writer;
struct uv_executor;

/* inter.broker.protocol.version */
int broker_ibp(const struct broker *b);
/* How this broker connects to others by that listener; `ex` NULL: loop and executor are filled in
 * later. */
struct remote_peers broker_peers(const struct broker *b, struct uv_executor *ex,
                                 struct str listener);
/* The controller's channel to a broker, itself included (controller.h). On the controller's
 * executor. */
struct broker_channel *broker_open_channel(void *broker, const struct broker_info *to);
/* Before the replicas are made: whatever follows other brokers, and what tells the controller of
 * ISRs. 0 or -errno with a line in err. */
int broker_make_ties(struct broker *b, char *err, size_t err_n);
/* Who writes ISR changes of what this broker leads. */
struct isr_writer *broker_isr_writer(struct broker *b);
/* A block of producer ids: from the controller, or at older levels from the store (producer_ids.h).
 */
int broker_allocate_producer_ids(void *broker, producer_ids_cb cb, void *cb_arg);
/* Its requests run on the background executor. Returns owned; NULL without memory. */
struct controller_link *broker_link_to_controller(struct broker *b);
/* Others are to lead what this broker leads, as far as they can. Before it is taken down. @blocks
 */
void broker_seek_relief(struct broker *b);
/* The topic's throttled replicas are these now. @thread any */
void broker_throttle_topic(struct broker *b, struct str topic);
/* May this follower's records go out, or ours be asked for, now? (They lag.) */
bool broker_may_replicate(const struct broker *b, bool as_leader, struct topic_partition tp);
/* leader.imbalance.check.interval.seconds, or 0 when leaders are not balanced. */
int64_t broker_rebalance_ms(const struct broker *b);
/* Tells the controller that a log dir of this broker failed. @thread any */
void broker_dir_lost(void *broker);
/* Nothing is asked of the controller any more. Before the registration is taken down. @thread the
 * background executor's */
void broker_close_links(struct broker *b);
/* Nothing is fetched afterwards. Before the registration is taken down. @blocks */
void broker_stop_fetchers(struct broker *b);
void broker_free_ties(struct broker *b); /* after the replicas */

#endif
