/* acl_rules.h - what a set of ACLs means: may this principal, from this host, do that?
 *
 * An index of all ACLs, made for deciding: it never changes (a change makes a new one that shares
 * what stayed as it was), looks names up by hash, prefixes by each length that some prefix has, and
 * on the way it allocates nothing and takes no lock. It does no IO, and knows neither super users
 * nor connections.
 *
 * RULES     1. ACLs of a resource: literal of its name, literal "*", prefixed with a beginning of
 *              its name. None at all: the caller's default.
 *           2. One holds for who asks when its principal is his or "User:*", its host his or "*".
 *           3. A DENY of the operation (or of ALL) that holds: no, whatever else there is.
 *           4. An ALLOW of it (or of ALL) that holds: yes. DESCRIBE is also allowed by READ, WRITE,
 *              DELETE and ALTER, DESCRIBE_CONFIGS by ALTER_CONFIGS. A DENY implies nothing.
 *           5. Else no.
 *
 * HOSTS     are compared as addresses: "::1" and "0:0:0:0:0:0:0:1" (as Java writes it) are one.
 *           A text that is no address is no host's.
 *
 * OWNERSHIP resources and indexes are counted; both copy what they are made of.
 * THREADS   any; an index that others may see is not changed any more. */
#ifndef ACL_ACL_RULES_H
#define ACL_ACL_RULES_H

#include <netinet/in.h>

#include "acl/acl.h"

/* All ACLs of one pattern. */
struct acl_resource;
/* n == 0 is a resource that has ACLs which nobody can read: they allow nothing, but rule 1 counts
 * them. NULL without memory. Returns owned (one reference). */
struct acl_resource *acl_resource_new(const struct acl_pattern *pattern,
                                      const struct acl_entry *entries, int n);
struct acl_resource *acl_resource_ref(struct acl_resource *r);
void acl_resource_unref(struct acl_resource *r); /* NULL is fine */
const struct acl_pattern *acl_resource_pattern(const struct acl_resource *r);
const struct acl_entry *acl_resource_entries(const struct acl_resource *r, int *n);
/* Are its entries these, in this order? */
bool acl_resource_has(const struct acl_resource *r, const struct acl_entry *entries, int n);

struct acl_index;
/* The resources' patterns differ. References are taken. NULL without memory. Returns owned. */
struct acl_index *acl_index_new(struct acl_resource *const *resources, int n);
void acl_index_free(struct acl_index *x); /* NULL is fine */
/* All of them, in no order. Borrowed. */
struct acl_resource *const *acl_index_resources(const struct acl_index *x, int *n);
/* NULL: there is none. Borrowed. */
struct acl_resource *acl_index_find(const struct acl_index *x, const struct acl_pattern *pattern);

/* Who asks. */
struct acl_subject {
    struct str user;      /* the name of a principal of type User */
    struct in6_addr host; /* IPv4 as IPv4-mapped IPv6 */
    uint64_t hash;        /* acl_subject_of's */
};
struct acl_subject acl_subject_of(struct str user, struct in6_addr host);

/* Rules 1 to 5; `otherwise` is the answer when there are no ACLs of the resource. */
bool acl_allows(const struct acl_index *x, const struct acl_subject *who, enum acl_operation op,
                enum acl_resource_type type, struct str name, bool otherwise);
/* Bits (1 << operation) of all that exist for the type and are allowed. */
uint32_t acl_allowed_operations(const struct acl_index *x, const struct acl_subject *who,
                                enum acl_resource_type type, struct str name, bool otherwise);
/* Is there any resource of the type with which he may do that? As Kafka asks it: a DENY of "*":
 * no; `otherwise`; else is there a pattern with an ALLOW (of just this operation, or of ALL) that
 * no DENY of the same name, or of a beginning of it, covers. An ALLOW of "*" is covered by nothing
 * else than a DENY of "*". */
bool acl_allows_any(const struct acl_index *x, const struct acl_subject *who, enum acl_operation op,
                    enum acl_resource_type type, bool otherwise);

/* An address as text: 0, or -EINVAL when it is none. What follows a '%' is left out. */
int acl_host_parse(struct str text, struct in6_addr *out);

#endif
