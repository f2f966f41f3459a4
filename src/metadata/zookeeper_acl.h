/* zookeeper_acl.h - who may touch the nodes that we make, by their path.
 * THREADS  any. */
#ifndef METADATA_ZOOKEEPER_ACL_H
#define METADATA_ZOOKEEPER_ACL_H

#include <stdbool.h>

enum node_access {
    NODE_OPEN,     /* everybody may do everything */
    NODE_READABLE, /* everybody may read, its creator may do everything */
    NODE_PRIVATE   /* its creator alone */
};

/* `path` is without the chroot. `protect` is zookeeper.set.acl. */
enum node_access zookeeper_node_access(const char *path, bool protect);

#endif
