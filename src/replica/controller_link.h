/* controller_link.h - requests of a broker to whoever is the controller.
 *
 * One request at a time; what is asked meanwhile waits its turn. The controller is the one that the
 * metadata cache names, asked again every 100 ms while it names none. A connection that fails, or
 * an answer that says "not the controller", makes it forget that address and ask again, the same
 * request first. So a request survives any number of controllers, unless its time is limited.
 *
 * THREADS  the executor's. */
#ifndef REPLICA_CONTROLLER_LINK_H
#define REPLICA_CONTROLLER_LINK_H

#include "metadata/metadata_cache.h"
#include "net/remote.h"

struct controller_link;

struct controller_link_options {
    struct metadata_cache *metadata;
    struct str listener;         /* where the controller is reached; copied. Empty: the first */
    struct remote_opener opener; /* on the executor */
    struct executor *ex;
    const char *client_id; /* copied */
    int64_t timeout_ms;    /* for each answer: then it counts as a lost connection */
};
/* NULL without memory. */
struct controller_link *controller_link_new(const struct controller_link_options *o);
/* Requests that are left end with -ECANCELED before it returns. NULL is fine. Not from a callback.
 */
void controller_link_close(struct controller_link *l);

struct controller_request { /* the caller's, until `done`'s last call */
    struct list link;
    int16_t api_key;
    int min_version, max_version;
    const void *request;
    int64_t limit_ms; /* from the call on; <= 0: no limit */
    /* status: 0 and a response; -ENOTSUP: no version in common with this controller; -ETIMEDOUT:
     * the limit; -ENOMEM; -ECANCELED. Returns true for "that is not the controller": it will be
     * asked again (only looked at when status is 0). The request may be freed if it returns false.
     */
    bool (*done)(struct controller_request *r, int status, int version, const void *response);
    /* private */
    int64_t deadline_ms;
};
void controller_link_send(struct controller_link *l, struct controller_request *r);

#endif
