/* listener_tls.h - the TLS of one listener: as a server for its clients, and as the client of other
 * brokers' listeners of that name. Made from ssl.* settings, and again when these, or the files
 * they name, have changed.
 *
 * THREADS  one at a time; the two struct tls are shared with connections. */
#ifndef SERVER_LISTENER_TLS_H
#define SERVER_LISTENER_TLS_H

#include "net/tls.h"
#include "server/config.h"

struct listener_tls {
    struct tls *server, *client; /* owned; NULL until it is loaded */
    uint64_t loaded;             /* a print of the settings and files */
};

/* Loads it if that was not done, or something has changed; connections made from then on use it. 0,
 * or -errno with a line in err: as before. @blocks on files */
int listener_tls_load(struct listener_tls *t, const struct config *c, const char *listener,
                      char *err, size_t err_n);
/* May these settings come into force? For one that is loaded the certificate must stay the same
 * name's (ssl.allow.dn.changes, ssl.allow.san.changes). 0, or -errno with a line. @blocks on files
 */
int listener_tls_check(const struct listener_tls *t, const struct config *c, const char *listener,
                       char *err, size_t err_n);
/* No connection uses it. */
void listener_tls_clear(struct listener_tls *t);

#endif
