/* dial.h - a connection to a broker that may move: opened when it is needed, at the address that it
 * has then.
 *
 * THREADS  the remote's. */
#ifndef COORDINATOR_DIAL_H
#define COORDINATOR_DIAL_H

#include "metadata/metadata_cache.h"
#include "net/remote.h"

struct dial {              /* zeroed at first */
    struct remote *remote; /* NULL: to be opened */
    char *host;            /* that it leads to */
    int port;
};

/* Makes remote lead to the endpoint; false without memory. Nothing may be out at another one. */
bool dial_to(struct dial *d, const struct remote_opener *opener, const struct endpoint *e,
             const char *client_id, int64_t timeout_ms);
/* Fails what is out, with -ECANCELED, before it returns. */
void dial_hang_up(struct dial *d);

#endif
