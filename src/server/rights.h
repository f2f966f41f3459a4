/* rights.h - what handlers ask the authorizer (authorizer.h), in short; and the rights that are
 * made of several. Asked as soon as the request is there; what a request waits for afterwards does
 * not change what it may do.
 *
 * APIs that need one operation on the cluster, and nothing else, have it in their row (api_table.c)
 * and are never begun without it. What the others need is in docs/operations.md.
 *
 * COST       without an authorizer a branch; with one, no memory and no lock.
 * THREADS    any. */
#ifndef SERVER_RIGHTS_H
#define SERVER_RIGHTS_H

#include "server/authorizer.h"

static inline bool rights_topic(const struct request *req, enum acl_operation op, struct str name)
{
    return authorize(req, op, ACL_TOPIC, name);
}
static inline bool rights_group(const struct request *req, enum acl_operation op, struct str name)
{
    return authorize(req, op, ACL_GROUP, name);
}
static inline bool rights_txn(const struct request *req, enum acl_operation op, struct str name)
{
    return authorize(req, op, ACL_TRANSACTIONAL_ID, name);
}

/* Not logged: where another right would do as well. */
static inline bool rights_cluster_quietly(const struct request *req, enum acl_operation op)
{
    return authorize_quietly(req, op, ACL_CLUSTER, STR_LIT(ACL_CLUSTER_NAME));
}

/* To make a topic: CREATE on the cluster or on the topic. */
static inline bool rights_create_topic(const struct request *req, struct str name)
{
    return rights_cluster_quietly(req, ACL_CREATE) || rights_topic(req, ACL_CREATE, name);
}

/* To be an idempotent producer: IDEMPOTENT_WRITE, or WRITE on some topic, whatever it is. */
static inline bool rights_idempotent(const struct request *req)
{
    return rights_cluster_quietly(req, ACL_IDEMPOTENT_WRITE) ||
           authorize_any(req, ACL_WRITE, ACL_TOPIC);
}

/* The operations on the cluster as answers tell them: none to who may not DESCRIBE it. */
static inline int32_t rights_on_cluster(const struct request *req)
{
    if (!authorize_cluster(req, ACL_DESCRIBE))
        return 0;
    return authorized_operations(req, ACL_CLUSTER, STR_LIT(ACL_CLUSTER_NAME));
}

#endif
