/* conn_limits.h - the settings that limit connections, put into the network's words. */
#ifndef SERVER_CONN_LIMITS_H
#define SERVER_CONN_LIMITS_H

#include "net/server_conn.h"
#include "server/config.h"

/* Bytes that answers may hold: `most`, or less where there is less `memory` (0: not known). */
uint64_t conn_limits_answers(uint64_t most, uint64_t memory);
/* What is fixed at the start. */
struct net_limits conn_limits_fixed(const struct config *c);
/* What may change while running, handed to the server. Names of hosts that have no address are
 * passed over with a line. 0 or -ENOMEM. @blocks on looking names up */
int conn_limits_apply(const struct config *c, struct net_server *s);

#endif
