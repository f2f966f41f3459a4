/* replication_throttle.h - how fast replicas that lag may catch up: {leader,follower}.replication.
 * throttled.rate for the replicas that topics list in
 * {leader,follower}.replication.throttled.replicas.
 *
 * What goes to and comes from listed replicas is counted; those that lag are held back while the
 * rate is above its limit. Replicas in sync never are.
 *
 * THREADS  any. */
#ifndef SERVER_REPLICATION_THROTTLE_H
#define SERVER_REPLICATION_THROTTLE_H

#include "base/clock.h"
#include "base/rate.h"
#include "log/log.h"

enum throttle_side { THROTTLE_LEADER, THROTTLE_FOLLOWER, THROTTLE_SIDES };

struct replication_throttle;

/* NULL without memory. */
struct replication_throttle *replication_throttle_new(int32_t broker_id, struct rate_window window,
                                                      const struct clock *clock);
void replication_throttle_free(struct replication_throttle *t); /* NULL is fine */

/* The topic's lists as they are now: "0:1,3:1" (partition:broker), "*", empty or NULL. */
void replication_throttle_set(struct replication_throttle *t, struct str topic, const char *leader,
                              const char *follower);
/* Does the topic list this broker's replica of the partition? */
bool replication_throttle_lists(struct replication_throttle *t, enum throttle_side side,
                                struct topic_partition tp);
/* Is more than `limit` bytes a second on its way? */
bool replication_throttle_exceeded(struct replication_throttle *t, enum throttle_side side,
                                   double limit);
/* Bytes a second, for metrics. */
double replication_throttle_rate(struct replication_throttle *t, enum throttle_side side);
void replication_throttle_count(struct replication_throttle *t, enum throttle_side side,
                                int64_t bytes);

#endif
