/* broker_groups.h - the group coordinator as part of the broker: its threads, its settings. */
#ifndef SERVER_BROKER_GROUPS_H
#define SERVER_BROKER_GROUPS_H

#include <stddef.h>

struct broker;

/* After the replica manager and the store, before the controller. 0, or -errno with a line in err.
 * @blocks */
int broker_groups_start(struct broker *b, char *err, size_t err_n);
/* Members that wait are answered, nothing new begins; before the network stops. */
void broker_groups_shut_down(struct broker *b);
/* After everything that may post to the coordinator, the replica manager included. */
void broker_groups_stop(struct broker *b);

#endif
