/* tool_acls.h - the parts of kafka-acls: its arguments, the ACLs that they mean, and those who are
 * asked: the brokers, or ZooKeeper's tree.
 *
 * OWNERSHIP  what a function makes lives in the arena of struct acls, texts point into argv. Every
 * function ends the process with a line when it cannot do its work. */
#ifndef TOOLS_TOOL_ACLS_H
#define TOOLS_TOOL_ACLS_H

#include <kafka/admin.h>

#include "base/arena.h"
#include "tools/tool_options.h"

struct acls_args {
    bool add, remove, list, cluster, producer, consumer, idempotent, force;
    const char *bootstrap, *controller, *config, *authorizer, *zk_tls, *pattern;
    struct tool_texts properties;
    struct tool_texts topics, groups, ids, tokens, users;
    struct tool_texts operations, allowed, denied, allowed_hosts, denied_hosts, principals;
};

/* One resource, or filter of resources, of the command line with the ACLs it is to have or lose. */
struct acls_wish {
    kafka_acl_t resource; /* type, pattern and name (NULL = any) */
    kafka_acl_t *v;       /* whole ones: the resource, too, is in each */
    size_t n;
};
struct acls_wishes {
    struct acls_wish *v;
    size_t n;
};

/* How ACLs are come by; each dies with the line of acls_die when something fails. */
struct acls;
struct acls_source {
    /* Those that fit, of a resource behind each other. Added to *out. */
    void (*describe)(struct acls *t, const kafka_acl_t *filter, kafka_acls_t *out);
    void (*create)(struct acls *t, const kafka_acl_t *v, size_t n);
    void (*delete)(struct acls *t, const kafka_acl_t *filters, size_t n);
};

struct store;
struct acls {
    const struct tool *tool;
    const struct acls_args *args;
    struct acls_wishes wishes; /* what it is about */
    const struct acls_source *source;
    struct arena mem;
    kafka_admin_t *admin; /* or */
    struct store *store;
    int64_t timeout_ms;
};

/* What the flags mean; all that is wrong about them is told here, before anybody is asked. For
 * --add and --remove: with the ACLs of principals, hosts and operations, or of --producer and
 * --consumer. Operations that a resource does not know end the process with the usage. */
struct acls_wishes acls_wishes(struct acls *t);

void acls_add(struct acls *t);
void acls_remove(struct acls *t);
void acls_list(struct acls *t);

/* "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)", in the arena. */
const char *acls_resource_text(struct acls *t, const kafka_acl_t *resource);
/* `Error while executing ACL command: text` and exit 1; exception: its name, or NULL. */
_Noreturn void acls_die(const char *exception, const char *text);

extern const struct acls_source acls_of_brokers;
extern const struct acls_source acls_of_zookeeper;
/* Connects t->store, by --authorizer-properties and --zk-tls-config-file. @blocks */
void acls_open_zookeeper(struct acls *t);
void *acls_alloc(struct acls *t, size_t n, size_t size); /* zeroed, in the arena */

#endif
