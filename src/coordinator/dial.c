/* dial.c - see dial.h. */
#include "coordinator/dial.h"

#include <stdlib.h>

void dial_hang_up(struct dial *d)
{
    struct remote *r = d->remote;
    d->remote = NULL;
    free(d->host);
    d->host = NULL;
    remote_close(r);
}

bool dial_to(struct dial *d, const struct remote_opener *opener, const struct endpoint *e,
             const char *client_id, int64_t timeout_ms)
{
    if (d->remote && d->port == e->port && str_eqz(e->host, d->host))
        return true;
    dial_hang_up(d);
    d->port = e->port;
    d->host = str_dup(e->host);
    if (d->host)
        d->remote = remote_open(opener, e->host, e->port, client_id, timeout_ms);
    return d->remote != NULL;
}
