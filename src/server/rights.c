/* rights.c - see rights.h. */
#include "server/rights.h"

#include "server/authorizer.h"
#include "server/broker.h"

static bool ask(const struct request *req, enum acl_operation op, enum acl_resource_type type,
                struct str name, bool log_refused)
{
    const struct authorizer *a = broker_authorizer(req->broker);
    return !a || authorizer_allows(a, req->net->conn, op, type, name, log_refused);
}

bool rights_checked(const struct request *req)
{
    return broker_authorizer(req->broker) != NULL;
}

bool rights_may(const struct request *req, enum acl_operation op, enum acl_resource_type type,
                struct str name)
{
    return ask(req, op, type, name, true);
}

bool rights_may_unlogged(const struct request *req, enum acl_operation op,
                         enum acl_resource_type type, struct str name)
{
    return ask(req, op, type, name, false);
}

bool rights_create_topic(const struct request *req, struct str name)
{
    return rights_cluster_unlogged(req, ACL_CREATE) || rights_topic(req, ACL_CREATE, name);
}

bool rights_idempotent(const struct request *req)
{
    const struct authorizer *a = broker_authorizer(req->broker);
    return rights_cluster_unlogged(req, ACL_IDEMPOTENT_WRITE) ||
           authorizer_allows_any(a, req->net->conn, ACL_WRITE, ACL_TOPIC);
}

/* ---- bit fields ---- */

#define BIT(op) (UINT32_C(1) << (op))

static const uint32_t operations_on[] = {
    [ACL_TOPIC] = BIT(ACL_READ) | BIT(ACL_WRITE) | BIT(ACL_CREATE) | BIT(ACL_DELETE) |
                  BIT(ACL_ALTER) | BIT(ACL_DESCRIBE) | BIT(ACL_DESCRIBE_CONFIGS) |
                  BIT(ACL_ALTER_CONFIGS),
    [ACL_GROUP] = BIT(ACL_READ) | BIT(ACL_DELETE) | BIT(ACL_DESCRIBE),
    [ACL_CLUSTER] = BIT(ACL_CREATE) | BIT(ACL_ALTER) | BIT(ACL_DESCRIBE) | BIT(ACL_CLUSTER_ACTION) |
                    BIT(ACL_DESCRIBE_CONFIGS) | BIT(ACL_ALTER_CONFIGS) | BIT(ACL_IDEMPOTENT_WRITE),
};

int32_t rights_on(const struct request *req, enum acl_resource_type type, struct str name)
{
    uint32_t left = operations_on[type], allowed = 0;
    if (!rights_checked(req))
        return (int32_t)left;
    for (int op = ACL_READ; left >> op; op++)
        if ((left & BIT(op)) && rights_may_unlogged(req, (enum acl_operation)op, type, name))
            allowed |= BIT(op);
    return (int32_t)allowed;
}

int32_t rights_on_cluster(const struct request *req)
{
    if (!rights_cluster(req, ACL_DESCRIBE))
        return 0;
    return rights_on(req, ACL_CLUSTER, STR_LIT("kafka-cluster"));
}
