/* zookeeper_store.h - the metadata store of a cluster: one session at ZooKeeper.
 *
 * CUT OFF    requests wait and are sent (again) when a server answers; in the order in which they
 *            were submitted, but for one that was already sent over a new connection before the
 *            loss of the old one was known: it may take effect before those that were lost with it.
 * EXPIRED    see store.h. The next session is tried for until it comes, once a second.
 * TOO LARGE  -E2BIG: more than 4 MiB, or lost three times with its connection while larger than
 *            what a server takes by default (it hangs up on such a request).
 * MULTI      a CREATE in it gets no stat.
 * ACCESS     -EACCES: the node's access list forbids it. -EROFS: the server is read-only.
 * WATCHES    live as long as the session, over all its connections.
 * THREADS    the library's two and one of our own per store. */
#ifndef METADATA_ZOOKEEPER_STORE_H
#define METADATA_ZOOKEEPER_STORE_H

#include "metadata/store.h"

struct zookeeper_options {
    const char *connect; /* host:port,host:port/chroot */
    int session_timeout_ms;
    int connection_timeout_ms; /* to the first connection */
    int max_in_flight;         /* requests under way at once */
    bool protect;              /* zookeeper.set.acl: needs `digest` */
    const char *digest;        /* "user:password", or NULL: nobody */
    bool make_nothing;         /* the chroot is not made; without it there are no nodes */
};

/* Connects and makes the chroot. 0, or -errno with one line in err. The options are copied. @blocks
 */
int zookeeper_store_open(const struct zookeeper_options *o, struct store **out, char *err,
                         size_t err_n);

#endif
