/* broker_security.h - how a broker's connections are secured, listener by listener: what its own
 * listener asks of clients, and what it does itself as the client of another broker's listener of
 * that name.
 *
 * Settings of a listener are looked up as "listener.name.<listener>.<key>", else "<key>"
 * (config_listener_string).
 *
 * THREADS  any: has its lock. What is handed out stays where it is until the end. */
#ifndef SERVER_BROKER_SECURITY_H
#define SERVER_BROKER_SECURITY_H

#include "net/peer.h"
#include "net/server_conn.h"
#include "server/config.h"

struct broker_security;

/* Makes it for the listeners of the settings. Borrows users, tokens and clock. 0, or -errno with a
 * line in err. @blocks on key stores
 */
struct scram_users;
struct tokens; /* NULL: there are none */
int broker_security_new(const struct config *c, struct scram_users *users, struct tokens *tokens,
                        const struct clock *clock, struct broker_security **out, char *err,
                        size_t err_n);
/* When no connection is left. NULL is fine. */
void broker_security_free(struct broker_security *s);
/* Other settings are in force: new listeners get theirs, changed key stores are loaded. 0, or
 * -errno with a line in err after as much as could be done. @blocks */
int broker_security_apply(struct broker_security *s, const struct config *c, char *err,
                          size_t err_n);
/* May these settings come into force? 0, or -errno with a line. @blocks on key stores */
int broker_security_check(struct broker_security *s, const struct config *c, char *err,
                          size_t err_n);
/* Of one of our listeners; NULL = nothing was made for it as it stands there (_apply has not been
 * called, or has failed): it must not be bound, for it would let everybody in. */
const struct listen_security *broker_security_listen(struct broker_security *s,
                                                     const struct listener_config *l);
/* On the way to a broker's listener of that name. */
struct peer_security broker_security_peer(struct broker_security *s, struct str listener);

#endif
