/* authorizer.h - may this request's principal do that? Asked by every handler.
 *
 * Without authorizer.class.name there is none: one test of a pointer, and everybody may do
 * everything. With it, ACLs decide (acl_rules.h), but never for super.users; where no ACL speaks of
 * a resource, allow.everyone.if.no.acl.found does. ACLs are those in the metadata store; changes,
 * by whomever, arrive by notices (acl_follow.c) or, made here, before they are answered.
 *
 * Who asks is the connection's principal, of type User, at the connection's IP address.
 *
 * COST       a decision takes no lock and no memory: the ACLs are a snapshot that is never changed.
 * LOG        a denial is a line at info, at debug what is allowed; the same denial comes once in a
 *            while (net/seldom.h). _quietly: none, for lists that are filtered.
 * THREADS    any. */
#ifndef SERVER_AUTHORIZER_H
#define SERVER_AUTHORIZER_H

#include "acl/acl.h"
#include "acl/acl_rules.h"
#include "base/clock.h"
#include "server/request.h"

struct acl_stored;
struct authorizer;

/* NULL: there is none. In broker.c; a test's broker has its own. */
struct authorizer *broker_authorizer(const struct broker *b);

/* ---- for handlers ---- */

/* Where the ACLs are kept. In broker_acls.c, as the next. */
struct store *broker_acl_store(const struct broker *b);
/* These were changed here: they are in force when it returns. @blocks @thread a worker */
void broker_acls_refresh(struct broker *b, const struct acl_pattern *patterns, int n);

bool authorizer_decides(struct authorizer *z, const struct request *req, enum acl_operation op,
                        enum acl_resource_type type, struct str name, bool quiet);
bool authorizer_decides_any(struct authorizer *z, const struct request *req, enum acl_operation op,
                            enum acl_resource_type type);
uint32_t authorizer_allowed(struct authorizer *z, const struct request *req,
                            enum acl_resource_type type, struct str name);

static inline bool authorizer_enabled(const struct request *req)
{
    return broker_authorizer(req->broker) != NULL;
}
static inline bool authorize(const struct request *req, enum acl_operation op,
                             enum acl_resource_type type, struct str name)
{
    struct authorizer *z = broker_authorizer(req->broker);
    return !z || authorizer_decides(z, req, op, type, name, false);
}
/* The same, and a denial is not logged. */
static inline bool authorize_quietly(const struct request *req, enum acl_operation op,
                                     enum acl_resource_type type, struct str name)
{
    struct authorizer *z = broker_authorizer(req->broker);
    return !z || authorizer_decides(z, req, op, type, name, true);
}
static inline bool authorize_cluster(const struct request *req, enum acl_operation op)
{
    return authorize(req, op, ACL_CLUSTER, STR_LIT(ACL_CLUSTER_NAME));
}
/* With some resource of the type, whichever (Kafka's authorizeByResourceType). */
static inline bool authorize_any(const struct request *req, enum acl_operation op,
                                 enum acl_resource_type type)
{
    struct authorizer *z = broker_authorizer(req->broker);
    return !z || authorizer_decides_any(z, req, op, type);
}
/* A number that is another one when ACLs have come into force since; 0: there is no authorizer. Who
 * asks first and looks at rights afterwards misses no change that he does not see by the number. */
uint64_t authorizer_state(struct authorizer *z);
static inline uint64_t rights_state(const struct request *req)
{
    struct authorizer *z = broker_authorizer(req->broker);
    return z ? authorizer_state(z) : 0;
}
/* Bits (1 << operation) of what may be done with the resource, as answers show them. */
static inline int32_t authorized_operations(const struct request *req, enum acl_resource_type type,
                                            struct str name)
{
    struct authorizer *z = broker_authorizer(req->broker);
    return (int32_t)(z ? authorizer_allowed(z, req, type, name) : acl_operations_of(type));
}

/* ---- for the broker and for tests ---- */

struct authorizer_options {
    const char *super_users; /* "User:a;User:b"; NULL or "" = none */
    bool allow_everyone;     /* where there is no ACL */
    const struct clock *clock;
};
/* Knows no ACLs yet. 0, or -errno with a line in err. */
int authorizer_new(const struct authorizer_options *o, struct authorizer **out, char *err,
                   size_t err_n);
/* When nobody asks any more. NULL is fine. */
void authorizer_free(struct authorizer *z);
/* Counts when published. 0; what the store did not answer to is passed over; -ENOMEM: as before. */
int authorizer_put(struct authorizer *z, const struct acl_stored *now);
int authorizer_publish(struct authorizer *z); /* 0 or -ENOMEM: as before */
/* For tests: adds the binding to what is there. 0 or -ENOMEM. */
int authorizer_add(struct authorizer *z, const struct acl_binding *b);
/* May this user do that? As for a request, and never logged. */
bool authorizer_would(struct authorizer *z, struct str user, struct in6_addr host,
                      enum acl_operation op, enum acl_resource_type type, struct str name);
/* The ACLs that fit the filter, by pattern, as they were published last. In the arena. 0 or
 * -ENOMEM. */
int authorizer_find(struct authorizer *z, const struct acl_filter *f, struct arena *a,
                    struct acl_binding **out, int *n);
/* The patterns that have ACLs. In the arena. 0 or -ENOMEM. */
int authorizer_patterns(struct authorizer *z, struct arena *a, struct acl_pattern **out, int *n);

#endif
