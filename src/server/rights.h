/* rights.h - may the client of a request do this? Asked by the handlers as soon as they have the
 * request; who is let do what the authorizer knows (authorizer.h). Without one everybody may do
 * everything, at the price of one branch.
 *
 * APIs that need one operation on the cluster, and nothing else, have it in their row (api_table.c)
 * and are never begun without it. What the others need is in docs/operations.md.
 *
 * THREADS    the connection's reactor. Nothing is allocated. */
#ifndef SERVER_RIGHTS_H
#define SERVER_RIGHTS_H

#include "server/authorizer.h"
#include "server/request.h"

/* Is anybody refused anything? */
bool rights_checked(const struct request *req);

/* A refusal is logged. */
bool rights_may(const struct request *req, enum acl_operation op, enum acl_resource_type type,
                struct str name);
/* Not logged: where lists leave out what may not be seen, and where another right would do. */
bool rights_may_unlogged(const struct request *req, enum acl_operation op,
                         enum acl_resource_type type, struct str name);

static inline bool rights_topic(const struct request *req, enum acl_operation op, struct str name)
{
    return rights_may(req, op, ACL_TOPIC, name);
}
static inline bool rights_group(const struct request *req, enum acl_operation op, struct str name)
{
    return rights_may(req, op, ACL_GROUP, name);
}
static inline bool rights_txn(const struct request *req, enum acl_operation op, struct str name)
{
    return rights_may(req, op, ACL_TRANSACTIONAL_ID, name);
}
static inline bool rights_cluster(const struct request *req, enum acl_operation op)
{
    return rights_may(req, op, ACL_CLUSTER, STR_LIT("kafka-cluster"));
}
static inline bool rights_cluster_unlogged(const struct request *req, enum acl_operation op)
{
    return rights_may_unlogged(req, op, ACL_CLUSTER, STR_LIT("kafka-cluster"));
}

/* To make a topic: CREATE on the cluster or on the topic. */
bool rights_create_topic(const struct request *req, struct str name);
/* To be an idempotent producer: IDEMPOTENT_WRITE, or WRITE on some topic, whatever it is. */
bool rights_idempotent(const struct request *req);

/* Which of the operations that exist for the type are allowed: bit = operation. */
int32_t rights_on(const struct request *req, enum acl_resource_type type, struct str name);
/* As answers tell those on the cluster: 0 to who may not DESCRIBE it. */
int32_t rights_on_cluster(const struct request *req);

#endif
