/* broker_txns.h - the transaction coordinator as part of the broker: its thread, its settings. */
#ifndef SERVER_BROKER_TXNS_H
#define SERVER_BROKER_TXNS_H

#include <stddef.h>

struct broker;

/* After the replica manager and the store, before the controller. 0, or -errno with a line in err.
 * @blocks */
int broker_txns_start(struct broker *b, char *err, size_t err_n);
/* Whoever waits is answered, nothing new begins; before the network stops. */
void broker_txns_shut_down(struct broker *b);
/* After everything that may post to the coordinator, the replica manager included. */
void broker_txns_stop(struct broker *b);

#endif
