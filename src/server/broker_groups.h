/* broker_groups.h - the group coordinator as part of the broker: its threads, its settings. */
#ifndef SERVER_BROKER_GROUPS_H
#define SERVER_BROKER_GROUPS_H

#include <stddef.h>
#include <stdint.h>

struct broker;

/* How many partitions an internal topic has: groups, and transactional ids, are found by that
 * number for ever. The topic's own once it exists, whatever the setting (`key`) says now. 0 or
 * -errno.
 * @blocks */
int broker_internal_partitions(struct broker *b, const char *topic, const char *key, int32_t *out);
/* After the replica manager and the store, before the controller. 0, or -errno with a line in err.
 * @blocks */
int broker_groups_start(struct broker *b, char *err, size_t err_n);
/* Members that wait are answered, nothing new begins; before the network stops. */
void broker_groups_shut_down(struct broker *b);
/* After everything that may post to the coordinator, the replica manager included. */
void broker_groups_stop(struct broker *b);

#endif
