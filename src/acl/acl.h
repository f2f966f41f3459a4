/* acl.h - what an ACL is: who may, or may not, do what with which resources. Codes are those of the
 * protocol, names those of Kafka in its two spellings.
 *
 *   binding = pattern (type, name, literal or prefixed) + entry (principal, host, operation, allow
 *             or deny)
 *
 * A principal is a text "Type:name", split at the first colon; "User:*" is everybody. A host is an
 * IP address or "*". The literal name "*" is every resource of the type.
 *
 * OWNERSHIP  texts are borrowed by whoever fills the structs.
 * THREADS    any: no state. */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum acl_resource_type {
    ACL_RESOURCE_UNKNOWN,
    ACL_RESOURCE_ANY, /* of filters only */
    ACL_TOPIC,
    ACL_GROUP,
    ACL_CLUSTER,
    ACL_TRANSACTIONAL_ID,
    ACL_DELEGATION_TOKEN,
    ACL_USER,
};
#define ACL_RESOURCES ((int)ACL_USER + 1)
#define ACL_RESOURCE_FIRST ((int)ACL_TOPIC)

enum acl_operation {
    ACL_OPERATION_UNKNOWN,
    ACL_OPERATION_ANY, /* of filters only */
    ACL_ALL,
    ACL_READ,
    ACL_WRITE,
    ACL_CREATE,
    ACL_DELETE,
    ACL_ALTER,
    ACL_DESCRIBE,
    ACL_CLUSTER_ACTION,
    ACL_DESCRIBE_CONFIGS,
    ACL_ALTER_CONFIGS,
    ACL_IDEMPOTENT_WRITE,
    ACL_CREATE_TOKENS,
    ACL_DESCRIBE_TOKENS,
};
#define ACL_OPERATIONS ((int)ACL_DESCRIBE_TOKENS + 1)

enum acl_permission {
    ACL_PERMISSION_UNKNOWN,
    ACL_PERMISSION_ANY, /* of filters only */
    ACL_DENY,
    ACL_ALLOW,
};
#define ACL_PERMISSIONS ((int)ACL_ALLOW + 1)

enum acl_pattern_type {
    ACL_PATTERN_UNKNOWN,
    ACL_PATTERN_ANY,   /* of filters only: literal and prefixed ones of just that name */
    ACL_PATTERN_MATCH, /* of filters only: whatever holds for a resource of that name */
    ACL_LITERAL,
    ACL_PREFIXED,
};
#define ACL_PATTERNS ((int)ACL_PREFIXED + 1)

#define ACL_CLUSTER_NAME "kafka-cluster" /* the only resource of type CLUSTER */
#define ACL_WILDCARD "*"
#define ACL_EVERYBODY "User:*"

struct acl_pattern {
    enum acl_resource_type type;
    enum acl_pattern_type kind;
    struct str name;
};
struct acl_entry {
    struct str principal, host;
    enum acl_operation operation;
    enum acl_permission permission;
};
struct acl_binding {
    struct acl_pattern pattern;
    struct acl_entry entry;
};

/* What bindings are wanted. Names, principal and host: null = all of them. */
struct acl_filter {
    enum acl_resource_type type;
    enum acl_pattern_type kind;
    struct str name;
    struct str principal, host;
    enum acl_operation operation;
    enum acl_permission permission;
};
#define ACL_FILTER_ALL                                                                    \
    ((struct acl_filter){ACL_RESOURCE_ANY, ACL_PATTERN_ANY, STR_NULL, STR_NULL, STR_NULL, \
                         ACL_OPERATION_ANY, ACL_PERMISSION_ANY})

/* Names as in the store, "TransactionalId", "IdempotentWrite", and upper case as tools and logs
 * show them, "TRANSACTIONAL_ID". A code that is not known gives "Unknown", "UNKNOWN". */
const char *acl_resource_name(int type);
const char *acl_resource_upper(int type);
const char *acl_operation_name(int operation);
const char *acl_operation_upper(int operation);
const char *acl_permission_name(int permission);
const char *acl_permission_upper(int permission);
const char *acl_pattern_upper(int kind);
/* By the store's name, exactly; UNKNOWN when it is none. ANY is none. */
enum acl_resource_type acl_resource_of_name(struct str name);
enum acl_operation acl_operation_of_name(struct str name);
enum acl_permission acl_permission_of_name(struct str name);
/* As people write them: either spelling, in any case, "-" or "_" or nothing between the words.
 * UNKNOWN when it is none; ANY and MATCH are some. */
enum acl_resource_type acl_resource_of_text(struct str text);
enum acl_operation acl_operation_of_text(struct str text);
enum acl_permission acl_permission_of_text(struct str text);
enum acl_pattern_type acl_pattern_of_text(struct str text);
/* From the wire; what is not known becomes UNKNOWN. */
enum acl_resource_type acl_resource_of_code(int8_t code);
enum acl_operation acl_operation_of_code(int8_t code);
enum acl_permission acl_permission_of_code(int8_t code);
enum acl_pattern_type acl_pattern_of_code(int8_t code);

/* Bits (1 << operation) of what can be done with a resource of the type, without ALL. */
uint32_t acl_operations_of(enum acl_resource_type type);

/* For tables whose key is a pattern. */
uint64_t acl_pattern_hash(const struct acl_pattern *p);
bool acl_pattern_eq(const struct acl_pattern *a, const struct acl_pattern *b);
bool acl_entry_eq(const struct acl_entry *a, const struct acl_entry *b);
/* The name in "User:name"; null: the principal is of another type, which no client has. */
struct str acl_user_of(struct str principal);
/* Does the principal text have a type and a colon? */
bool acl_principal_ok(struct str principal);
/* Why no resource can have the name; NULL = it can. Static text. */
const char *acl_name_problem(struct str name);
/* What is wrong with a binding that is to be added; NULL = nothing. Static text. */
const char *acl_binding_problem(const struct acl_binding *b);
/* The same of a filter, which holds UNKNOWN codes. */
const char *acl_filter_problem(const struct acl_filter *f);

bool acl_filter_matches_pattern(const struct acl_filter *f, const struct acl_pattern *p);
bool acl_filter_matches_entry(const struct acl_filter *f, const struct acl_entry *e);
static inline bool acl_filter_matches(const struct acl_filter *f, const struct acl_binding *b)
{
    return acl_filter_matches_pattern(f, &b->pattern) && acl_filter_matches_entry(f, &b->entry);
}

#endif
