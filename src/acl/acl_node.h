/* acl_node.h - where ACLs are in the tree of a ZooKeeper-mode cluster, and what their nodes hold.
 *
 *   /kafka-acl/<Type>/<name>                      ACLs of literal patterns, JSON
 *   /kafka-acl-extended/prefixed/<Type>/<name>    ACLs of prefixed ones
 *   /kafka-acl-changes/acl_changes_<n>            "TYPE:name": a literal pattern has changed
 *   /kafka-acl-extended-changes/acl_changes_<n>   JSON: a prefixed one has
 *
 * Entries that this version cannot read (of an operation yet to come, say) say nothing here, but
 * are written back as they were.
 *
 * ERRORS     decode: 0; -EBADMSG not such a node; -ENOMEM. encode: null bytes without memory.
 * OWNERSHIP  results are in the arena.
 * THREADS    any. */
#ifndef ACL_ACL_NODE_H
#define ACL_ACL_NODE_H

#include "acl/acl.h"
#include "base/arena.h"

#define PATH_ACL "/kafka-acl"
#define PATH_ACL_PREFIXED "/kafka-acl-extended/prefixed"
#define PATH_ACL_CHANGES "/kafka-acl-changes"
#define PATH_ACL_PREFIXED_CHANGES "/kafka-acl-extended-changes"
#define ACL_CHANGE_PREFIX "acl_changes_"

struct acl_node {
    struct acl_entry *entries; /* each once */
    int n;
    struct str *strange; /* the JSON of those that were not understood */
    int strange_n;
};

struct hmap;
/* Puts the entry, which must stay, into a set of them: 1 it was not there, 0 it was, or -ENOMEM. */
int acl_entry_note(struct hmap *known, const struct acl_entry *e, struct arena *a);

/* Null and empty data hold none. */
int acl_node_decode(struct bytes data, struct arena *a, struct acl_node *out);
struct bytes acl_node_encode(const struct acl_node *node, struct arena *a);

/* The node of a pattern, and back: false when the path is none, or its type is not known. */
char *acl_node_path(const struct acl_pattern *p, struct arena *a);
bool acl_node_path_parse(struct str path, struct acl_pattern *out /* borrows */);

/* A notice that the pattern has changed. */
struct bytes acl_notice_encode(const struct acl_pattern *p, struct arena *a);
int acl_notice_decode(struct bytes data, enum acl_pattern_type kind, struct arena *a,
                      struct acl_pattern *out);
/* The sequential node to create for a notice: its path without the number. */
const char *acl_notice_path(enum acl_pattern_type kind);

#endif
