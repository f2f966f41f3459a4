/* acl_store.h - ACLs in the metadata store, of either form: read all, add, delete, each as every
 * broker and every kafka-acls of a ZooKeeper-mode cluster does it.
 *
 * A change of a pattern: read its node and version, compute, then in one transaction write it
 * (create, set or delete, all on condition that it is as it was read) and put a notice beside it,
 * so that there is no change that the brokers are not told of. On conflict again, with a short
 * pause, a few times. What is there already, or is not there, is not written and not told.
 *
 * THREADS  any; all of it @blocks. */
#ifndef ACL_ACL_STORE_H
#define ACL_ACL_STORE_H

#include "acl/acl.h"
#include "acl/acl_node.h"
#include "base/arena.h"
#include "metadata/store.h"

/* Makes the nodes that others rely on. 0 or -errno. */
int acl_store_paths(struct store *s);

/* One pattern as it is in the store. */
struct acl_stored {
    struct acl_pattern pattern;
    int status; /* 0; -ENOENT there is no node; -EBADMSG it cannot be read (then it counts as having
                   ACLs); or the store's */
    struct acl_node node;
    int32_t version; /* of the node, when there is one */
};
/* From the answer to a GET of a pattern's node; a line in the log if it cannot be read. */
void acl_stored_of(const struct acl_pattern *pattern, int status, struct bytes data,
                   const struct store_stat *stat, struct arena *a, struct acl_stored *out);
/* All patterns that have a node, by type and name; a type or a node that cannot be read is told of
 * by a line in the log (the latter is in the list all the same). In the arena. 0 or -errno. */
int acl_store_load(struct store *s, struct arena *a, struct acl_stored **out, int *n);
/* One. *out in any case. 0; -EBADMSG, or the store's. */
int acl_store_read(struct store *s, const struct acl_pattern *pattern, struct arena *a,
                   struct acl_stored *out);

/* Changes a pattern's ACLs. edit: changes `node`, whose memory is in the arena; 1, or 0 when there
 * is nothing to change, or -errno. Called again after a conflict. 1 changed, 0 not; -EBADMSG: the
 * node cannot be read, and stays; -EAGAIN: others changed it each time; or what edit or the store
 * gave. */
typedef int (*acl_store_edit)(void *arg, const struct acl_pattern *pattern, struct acl_node *node,
                              struct arena *a);
int acl_store_update(struct store *s, const struct acl_pattern *pattern, acl_store_edit edit,
                     void *arg, struct arena *a);

/* Patterns that were changed, each once. In the arena that the call was given. */
struct acl_changed {
    struct acl_pattern *v;
    int n;
};
/* Adds bindings, which must have no problem (acl_binding_problem). errors[i] (of n) = 0, or -errno
 * as of _update. `changed` may be NULL. 0, or -ENOMEM. */
int acl_store_add(struct store *s, const struct acl_binding *bindings, int n, int *errors,
                  struct arena *a, struct acl_changed *changed);

/* What each of n filters deletes: a binding is deleted once, by the first filter that it fits. */
struct acl_deleted {
    struct acl_binding binding;
    int filter;
    int error; /* 0, or -errno as of _update: then it may still be there */
};
/* In the arena. 0, or -errno when the patterns could not be listed. */
int acl_store_delete(struct store *s, const struct acl_filter *filters, int n, struct arena *a,
                     struct acl_deleted **out, int *out_n, struct acl_changed *changed);
/* What fits the filter, in order of pattern and as the nodes have them. In the arena. 0 or -errno.
 */
int acl_store_find(struct store *s, const struct acl_filter *f, struct arena *a,
                   struct acl_binding **out, int *n);

#endif
