/* client_security.h - how a client's connections are secured, from its settings.
 *
 * THREADS  one at a time; what it gives is used on the client's thread. */
#ifndef CLIENT_CLIENT_SECURITY_H
#define CLIENT_CLIENT_SECURITY_H

#include "client/client_conf.h"
#include "net/peer.h"

struct client_security {
    struct peer_security peer; /* for peer_options; what it points to is owned by this */
    struct peer_auth *sasl;    /* peer.auth, NULL without SASL */
};

/* 0, or -errno with a line in err: a setting, a key store. @blocks on files */
int client_security_open(struct client_security *s, const kafka_conf_t *conf,
                         enum client_scope scope, char *err, size_t err_n);
/* When no connection is left. */
void client_security_close(struct client_security *s);

#endif
