/* acl.c - see acl.h. One table a kind of name; everything else walks over it. */
#include "acl/acl.h"

#include <ctype.h>
#include <stddef.h>

#include "base/hmap.h"
#include "base/utf8.h"

struct name {
    const char *pascal, *upper;
};

static const struct name resources[ACL_RESOURCES] = {
    [ACL_RESOURCE_UNKNOWN] = {"Unknown", "UNKNOWN"},
    [ACL_RESOURCE_ANY] = {"Any", "ANY"},
    [ACL_TOPIC] = {"Topic", "TOPIC"},
    [ACL_GROUP] = {"Group", "GROUP"},
    [ACL_CLUSTER] = {"Cluster", "CLUSTER"},
    [ACL_TRANSACTIONAL_ID] = {"TransactionalId", "TRANSACTIONAL_ID"},
    [ACL_DELEGATION_TOKEN] = {"DelegationToken", "DELEGATION_TOKEN"},
    [ACL_USER] = {"User", "USER"},
};
static const struct name operations[ACL_OPERATIONS] = {
    [ACL_OPERATION_UNKNOWN] = {"Unknown", "UNKNOWN"},
    [ACL_OPERATION_ANY] = {"Any", "ANY"},
    [ACL_ALL] = {"All", "ALL"},
    [ACL_READ] = {"Read", "READ"},
    [ACL_WRITE] = {"Write", "WRITE"},
    [ACL_CREATE] = {"Create", "CREATE"},
    [ACL_DELETE] = {"Delete", "DELETE"},
    [ACL_ALTER] = {"Alter", "ALTER"},
    [ACL_DESCRIBE] = {"Describe", "DESCRIBE"},
    [ACL_CLUSTER_ACTION] = {"ClusterAction", "CLUSTER_ACTION"},
    [ACL_DESCRIBE_CONFIGS] = {"DescribeConfigs", "DESCRIBE_CONFIGS"},
    [ACL_ALTER_CONFIGS] = {"AlterConfigs", "ALTER_CONFIGS"},
    [ACL_IDEMPOTENT_WRITE] = {"IdempotentWrite", "IDEMPOTENT_WRITE"},
    [ACL_CREATE_TOKENS] = {"CreateTokens", "CREATE_TOKENS"},
    [ACL_DESCRIBE_TOKENS] = {"DescribeTokens", "DESCRIBE_TOKENS"},
};
static const struct name permissions[ACL_PERMISSIONS] = {
    [ACL_PERMISSION_UNKNOWN] = {"Unknown", "UNKNOWN"},
    [ACL_PERMISSION_ANY] = {"Any", "ANY"},
    [ACL_DENY] = {"Deny", "DENY"},
    [ACL_ALLOW] = {"Allow", "ALLOW"},
};
static const struct name patterns[ACL_PATTERNS] = {
    [ACL_PATTERN_UNKNOWN] = {"Unknown", "UNKNOWN"}, [ACL_PATTERN_ANY] = {"Any", "ANY"},
    [ACL_PATTERN_MATCH] = {"Match", "MATCH"},       [ACL_LITERAL] = {"Literal", "LITERAL"},
    [ACL_PREFIXED] = {"Prefixed", "PREFIXED"},
};

static const struct name *name_of(const struct name *all, int n, int code)
{
    return &all[code > 0 && code < n ? code : 0];
}

const char *acl_resource_name(int type)
{
    return name_of(resources, ACL_RESOURCES, type)->pascal;
}
const char *acl_resource_upper(int type)
{
    return name_of(resources, ACL_RESOURCES, type)->upper;
}
const char *acl_operation_name(int operation)
{
    return name_of(operations, ACL_OPERATIONS, operation)->pascal;
}
const char *acl_operation_upper(int operation)
{
    return name_of(operations, ACL_OPERATIONS, operation)->upper;
}
const char *acl_permission_name(int permission)
{
    return name_of(permissions, ACL_PERMISSIONS, permission)->pascal;
}
const char *acl_permission_upper(int permission)
{
    return name_of(permissions, ACL_PERMISSIONS, permission)->upper;
}
const char *acl_pattern_upper(int kind)
{
    return name_of(patterns, ACL_PATTERNS, kind)->upper;
}

/* The first two are no names of the store. */
static int find_name(const struct name *all, int n, struct str name)
{
    for (int i = 2; i < n; i++)
        if (str_eqz(name, all[i].pascal))
            return i;
    return 0;
}

enum acl_resource_type acl_resource_of_name(struct str name)
{
    return (enum acl_resource_type)find_name(resources, ACL_RESOURCES, name);
}
enum acl_operation acl_operation_of_name(struct str name)
{
    return (enum acl_operation)find_name(operations, ACL_OPERATIONS, name);
}
enum acl_permission acl_permission_of_name(struct str name)
{
    return (enum acl_permission)find_name(permissions, ACL_PERMISSIONS, name);
}

/* The same letters, whatever their case, and whatever is between the words? */
static bool same_letters(struct str text, const char *pascal)
{
    for (int32_t i = 0; i < text.len; i++) {
        if (text.p[i] == '_' || text.p[i] == '-')
            continue;
        if (!*pascal || tolower((unsigned char)text.p[i]) != tolower((unsigned char)*pascal))
            return false;
        pascal++;
    }
    return !*pascal;
}

static int find_text(const struct name *all, int n, struct str text)
{
    for (int i = 1; i < n; i++)
        if (same_letters(text, all[i].pascal))
            return i;
    return 0;
}

enum acl_resource_type acl_resource_of_text(struct str text)
{
    return (enum acl_resource_type)find_text(resources, ACL_RESOURCES, text);
}
enum acl_operation acl_operation_of_text(struct str text)
{
    return (enum acl_operation)find_text(operations, ACL_OPERATIONS, text);
}
enum acl_permission acl_permission_of_text(struct str text)
{
    return (enum acl_permission)find_text(permissions, ACL_PERMISSIONS, text);
}
enum acl_pattern_type acl_pattern_of_text(struct str text)
{
    return (enum acl_pattern_type)find_text(patterns, ACL_PATTERNS, text);
}

static int known(int n, int code)
{
    return code > 0 && code < n ? code : 0;
}

enum acl_resource_type acl_resource_of_code(int8_t code)
{
    return (enum acl_resource_type)known(ACL_RESOURCES, code);
}
enum acl_operation acl_operation_of_code(int8_t code)
{
    return (enum acl_operation)known(ACL_OPERATIONS, code);
}
enum acl_permission acl_permission_of_code(int8_t code)
{
    return (enum acl_permission)known(ACL_PERMISSIONS, code);
}
enum acl_pattern_type acl_pattern_of_code(int8_t code)
{
    return (enum acl_pattern_type)known(ACL_PATTERNS, code);
}

#define BIT(op) (UINT32_C(1) << (op))

uint32_t acl_operations_of(enum acl_resource_type type)
{
    static const uint32_t of[ACL_RESOURCES] = {
        [ACL_TOPIC] = BIT(ACL_READ) | BIT(ACL_WRITE) | BIT(ACL_CREATE) | BIT(ACL_DELETE) |
                      BIT(ACL_ALTER) | BIT(ACL_DESCRIBE) | BIT(ACL_DESCRIBE_CONFIGS) |
                      BIT(ACL_ALTER_CONFIGS),
        [ACL_GROUP] = BIT(ACL_READ) | BIT(ACL_DELETE) | BIT(ACL_DESCRIBE),
        [ACL_CLUSTER] = BIT(ACL_CREATE) | BIT(ACL_ALTER) | BIT(ACL_DESCRIBE) |
                        BIT(ACL_CLUSTER_ACTION) | BIT(ACL_DESCRIBE_CONFIGS) |
                        BIT(ACL_ALTER_CONFIGS) | BIT(ACL_IDEMPOTENT_WRITE),
        [ACL_TRANSACTIONAL_ID] = BIT(ACL_WRITE) | BIT(ACL_DESCRIBE),
        [ACL_DELEGATION_TOKEN] = BIT(ACL_DESCRIBE),
        [ACL_USER] = BIT(ACL_CREATE_TOKENS) | BIT(ACL_DESCRIBE_TOKENS),
    };
    return of[known(ACL_RESOURCES, (int)type)];
}

/* ---- bindings ---- */

uint64_t acl_pattern_hash(const struct acl_pattern *p)
{
    return hash_str(p->name) ^ hash_int((uint64_t)p->type << 8 | (uint64_t)p->kind);
}

bool acl_pattern_eq(const struct acl_pattern *a, const struct acl_pattern *b)
{
    return a->type == b->type && a->kind == b->kind && str_eq(a->name, b->name);
}

bool acl_entry_eq(const struct acl_entry *a, const struct acl_entry *b)
{
    return a->operation == b->operation && a->permission == b->permission &&
           str_eq(a->principal, b->principal) && str_eq(a->host, b->host);
}

struct str acl_user_of(struct str principal)
{
    static const char type[] = "User:";
    int32_t n = (int32_t)sizeof(type) - 1;
    if (principal.len < n || memcmp(principal.p, type, (size_t)n) != 0)
        return STR_NULL;
    return (struct str){principal.p + n, principal.len - n};
}

bool acl_principal_ok(struct str principal)
{
    return principal.len > 0 && memchr(principal.p, ':', (size_t)principal.len);
}

static bool is_text(struct str s)
{
    return s.len <= 0 || utf8_valid(s.p, (size_t)s.len);
}

const char *acl_name_problem(struct str name)
{
    if (name.len <= 0)
        return "Invalid empty resource name";
    if (memchr(name.p, '/', (size_t)name.len))
        return "A resource name must not contain a '/'";
    if (!is_text(name))
        return "A resource name must be UTF-8 text";
    if (memchr(name.p, 0, (size_t)name.len))
        return "A resource name must not contain a null character";
    if (str_eqz(name, ".") || str_eqz(name, ".."))
        return "A resource name must not be \".\" or \"..\"";
    return NULL;
}

static const char *pattern_problem(const struct acl_pattern *p)
{
    if (p->type <= ACL_RESOURCE_ANY)
        return "The resource type must be a known one, and not ANY";
    if (p->kind < ACL_LITERAL)
        return "The pattern type must be LITERAL or PREFIXED";
    if (p->type == ACL_CLUSTER && !str_eqz(p->name, ACL_CLUSTER_NAME))
        return "The only valid name for the CLUSTER resource is " ACL_CLUSTER_NAME;
    return acl_name_problem(p->name);
}

const char *acl_binding_problem(const struct acl_binding *b)
{
    const struct acl_entry *e = &b->entry;
    const char *problem = pattern_problem(&b->pattern);
    if (problem)
        return problem;
    if (e->operation <= ACL_OPERATION_ANY)
        return "The operation must be a known one, and not ANY";
    if (e->permission <= ACL_PERMISSION_ANY)
        return "The permission type must be ALLOW or DENY";
    if (!acl_principal_ok(e->principal))
        return "The principal must have the form Type:name";
    if (!is_text(e->principal) || !is_text(e->host))
        return "Principal and host must be UTF-8 text";
    return e->host.len > 0 ? NULL : "The host must not be empty";
}

const char *acl_filter_problem(const struct acl_filter *f)
{
    bool whole = f->type != ACL_RESOURCE_UNKNOWN && f->kind != ACL_PATTERN_UNKNOWN &&
                 f->operation != ACL_OPERATION_UNKNOWN && f->permission != ACL_PERMISSION_UNKNOWN;
    return whole ? NULL : "The filter contains unknown elements";
}

/* ---- filters ---- */

static bool begins_with(struct str s, struct str prefix)
{
    return s.len >= prefix.len &&
           (prefix.len <= 0 || memcmp(s.p, prefix.p, (size_t)prefix.len) == 0);
}

bool acl_filter_matches_pattern(const struct acl_filter *f, const struct acl_pattern *p)
{
    bool any_kind = f->kind == ACL_PATTERN_ANY || f->kind == ACL_PATTERN_MATCH;
    if (f->type != ACL_RESOURCE_ANY && f->type != p->type)
        return false;
    if (!any_kind && f->kind != p->kind)
        return false;
    if (str_is_null(f->name))
        return true;
    if (f->kind != ACL_PATTERN_MATCH)
        return str_eq(f->name, p->name);
    return p->kind == ACL_PREFIXED ? begins_with(f->name, p->name)
                                   : str_eq(f->name, p->name) || str_eqz(p->name, ACL_WILDCARD);
}

bool acl_filter_matches_entry(const struct acl_filter *f, const struct acl_entry *e)
{
    return (str_is_null(f->principal) || str_eq(f->principal, e->principal)) &&
           (str_is_null(f->host) || str_eq(f->host, e->host)) &&
           (f->operation == ACL_OPERATION_ANY || f->operation == e->operation) &&
           (f->permission == ACL_PERMISSION_ANY || f->permission == e->permission);
}
