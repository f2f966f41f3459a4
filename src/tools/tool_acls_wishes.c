/* tool_acls_wishes.c - what kafka-acls' flags mean: resources, and the ACLs for them. See
 * tool_acls.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "tools/tool_acls.h"

enum { TEXT = 512 };

/* As Java's trim. */
static const char *trimmed(struct acls *t, const char *text)
{
    while (*text && (unsigned char)*text <= ' ')
        text++;
    size_t n = strlen(text);
    while (n && (unsigned char)text[n - 1] <= ' ')
        n--;
    char *out = acls_alloc(t, n + 1, 1);
    memcpy(out, text, n);
    return out;
}

/* ---- resources ---- */

static int pattern_of(struct acls *t)
{
    const char *text = t->args->pattern;
    for (int p = KAFKA_ACL_PATTERN_ANY; p <= KAFKA_ACL_PATTERN_PREFIXED; p++)
        if (strcasecmp(text, kafka_acl_pattern_name(p)) == 0) {
            if (t->args->add && p < KAFKA_ACL_PATTERN_LITERAL)
                tool_usage_error(t->tool,
                                 "A '--resource-pattern-type' value of '%s' is not valid when "
                                 "adding acls.",
                                 kafka_acl_pattern_name(p));
            return p;
        }
    tool_usage_error(t->tool,
                     "Cannot parse argument '%s' of option resource-pattern-type: one of any, "
                     "match, literal, prefixed is wanted",
                     text);
}

static void add_resource(struct acls_wishes *w, int type, int pattern, const char *name)
{
    for (size_t i = 0; i < w->n; i++) {
        const kafka_acl_t *r = &w->v[i].resource;
        if (r->resource_type == type && strcmp(r->name, name) == 0)
            return;
    }
    w->v[w->n++].resource =
        (kafka_acl_t){.resource_type = type, .pattern_type = pattern, .name = name};
}

/* Without any: the usage where one is needed, else one that fits all. */
static struct acls_wishes resources(struct acls *t, bool needed)
{
    const struct acls_args *a = t->args;
    const struct {
        int type;
        const struct tool_texts *names;
    } flags[] = {{KAFKA_ACL_RESOURCE_TOPIC, &a->topics},
                 {KAFKA_ACL_RESOURCE_GROUP, &a->groups},
                 {KAFKA_ACL_RESOURCE_TRANSACTIONAL_ID, &a->ids},
                 {KAFKA_ACL_RESOURCE_DELEGATION_TOKEN, &a->tokens},
                 {KAFKA_ACL_RESOURCE_USER, &a->users}};
    enum { FLAGS = sizeof flags / sizeof *flags };
    int pattern = pattern_of(t);
    size_t n = 2;
    for (size_t i = 0; i < FLAGS; i++)
        n += flags[i].names->n;
    struct acls_wishes w = {acls_alloc(t, n, sizeof *w.v), 0};
    for (size_t i = 0; i < FLAGS; i++) {
        for (size_t k = 0; k < flags[i].names->n; k++)
            add_resource(&w, flags[i].type, pattern, trimmed(t, flags[i].names->v[k]));
        if (i == 0 && pattern == KAFKA_ACL_PATTERN_LITERAL && (a->cluster || a->idempotent))
            add_resource(&w, KAFKA_ACL_RESOURCE_CLUSTER, pattern, KAFKA_ACL_CLUSTER_NAME);
    }
    if (w.n == 0 && needed)
        tool_usage_error(t->tool,
                         "You must provide at least one resource: --topic <topic> or --cluster or "
                         "--group <group> or --transactional-id <id> or --delegation-token "
                         "<Delegation Token ID> or --user-principal <User:name>");
    if (w.n == 0)
        w.v[w.n++].resource = (kafka_acl_t){.resource_type = KAFKA_ACL_RESOURCE_ANY,
                                            .pattern_type = KAFKA_ACL_PATTERN_ANY};
    return w;
}

/* ---- operations ---- */

#define BIT(operation) (1u << (operation))

static void check_operations(struct acls *t, const struct acls_wish *w)
{
    unsigned known =
        BIT(KAFKA_ACL_ALL) | acl_operations_of((enum acl_resource_type)w->resource.resource_type);
    char names[TEXT] = "";
    size_t at = 0;
    bool fine = true;
    for (size_t i = 0; i < w->n; i++)
        fine &= (known & BIT(w->v[i].operation)) != 0;
    if (fine)
        return;
    for (int o = KAFKA_ACL_ALL; o <= KAFKA_ACL_DESCRIBE_TOKENS; o++)
        if (known & BIT(o))
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "",
                                   kafka_acl_operation_name(o));
    tool_usage_error(t->tool, "ResourceType %s only supports operations %s",
                     kafka_acl_resource_name(w->resource.resource_type), names);
}

/* "DescribeConfigs" and DESCRIBE_CONFIGS are the same. */
static bool same_operation(const char *text, const char *name)
{
    for (;; text++, name++) {
        name += *name == '_';
        text += *text == '_';
        if (toupper((unsigned char)*text) != *name)
            return false;
        if (!*name)
            return true;
    }
}

/* Bits of --operation; All when there is none. */
static unsigned operations_of(struct acls *t)
{
    const struct tool_texts *given = &t->args->operations;
    unsigned bits = given->n ? 0 : BIT(KAFKA_ACL_ALL);
    for (size_t i = 0; i < given->n; i++) {
        const char *text = trimmed(t, given->v[i]);
        int o = KAFKA_ACL_ALL;
        while (o <= KAFKA_ACL_DESCRIBE_TOKENS && !same_operation(text, kafka_acl_operation_name(o)))
            o++;
        if (o > KAFKA_ACL_DESCRIBE_TOKENS)
            tool_usage_error(t->tool,
                             "Cannot parse argument '%s' of option operation: one of All, Read, "
                             "Write, Create, Delete, Alter, Describe, ClusterAction, "
                             "DescribeConfigs, AlterConfigs, IdempotentWrite, CreateTokens, "
                             "DescribeTokens is wanted",
                             text);
        bits |= BIT(o);
    }
    return bits;
}

/* ---- ACLs ---- */

static const char *principal_of(struct acls *t, const char *text)
{
    const char *name = trimmed(t, text), *colon = strchr(name, ':');
    if (!colon || colon == name || !colon[1]) {
        char why[TEXT];
        snprintf(why, sizeof why,
                 "expected a string in format principalType:principalName but got %s", name);
        acls_die(NULL, why);
    }
    return name;
}

static const struct tool_texts anywhere = {(const char *[]){"*"}, 1};

/* Principals x operations x hosts, behind what the wish has. */
static void cross(struct acls *t, struct acls_wish *w, const struct tool_texts *principals,
                  const struct tool_texts *hosts, int permission, unsigned operations)
{
    for (size_t p = 0; p < principals->n; p++)
        for (size_t h = 0; h < hosts->n; h++)
            for (int o = KAFKA_ACL_ALL; o <= KAFKA_ACL_DESCRIBE_TOKENS; o++) {
                if (!(operations & BIT(o)))
                    continue;
                kafka_acl_t acl = w->resource;
                acl.principal = principal_of(t, principals->v[p]);
                acl.host = trimmed(t, hosts->v[h]);
                acl.operation = o;
                acl.permission = permission;
                w->v[w->n++] = acl;
            }
}

static void wish(struct acls *t, struct acls_wish *w, unsigned operations)
{
    const struct acls_args *a = t->args;
    const struct tool_texts *allowed = a->allowed_hosts.n ? &a->allowed_hosts : &anywhere;
    const struct tool_texts *denied = a->denied_hosts.n ? &a->denied_hosts : &anywhere;
    size_t most = (a->allowed.n * allowed->n + a->denied.n * denied->n) *
                  (size_t)__builtin_popcount(operations);
    w->v = acls_alloc(t, most + 1, sizeof *w->v);
    w->n = 0;
    cross(t, w, &a->allowed, allowed, KAFKA_ACL_ALLOW, operations);
    cross(t, w, &a->denied, denied, KAFKA_ACL_DENY, operations);
    check_operations(t, w);
}

/* What --producer and --consumer give of a resource; 0: they do not concern it. */
static unsigned convenient(const struct acls_args *a, int type)
{
    unsigned bits = 0;
    if (a->producer && type == KAFKA_ACL_RESOURCE_TOPIC)
        bits |= BIT(KAFKA_ACL_WRITE) | BIT(KAFKA_ACL_DESCRIBE) | BIT(KAFKA_ACL_CREATE);
    if (a->producer && type == KAFKA_ACL_RESOURCE_TRANSACTIONAL_ID)
        bits |= BIT(KAFKA_ACL_WRITE) | BIT(KAFKA_ACL_DESCRIBE);
    if (a->idempotent && type == KAFKA_ACL_RESOURCE_CLUSTER)
        bits |= BIT(KAFKA_ACL_IDEMPOTENT_WRITE);
    if (a->consumer && type == KAFKA_ACL_RESOURCE_TOPIC)
        bits |= BIT(KAFKA_ACL_READ) | BIT(KAFKA_ACL_DESCRIBE);
    if (a->consumer && type == KAFKA_ACL_RESOURCE_GROUP)
        bits |= BIT(KAFKA_ACL_READ);
    return bits;
}

struct acls_wishes acls_wishes(struct acls *t)
{
    const struct acls_args *a = t->args;
    struct acls_wishes named = resources(t, !a->list);
    if (a->list)
        return named;
    struct acls_wishes out = {acls_alloc(t, named.n, sizeof *out.v), 0};
    bool by_role = a->producer || a->consumer;
    unsigned given = operations_of(t);
    for (size_t i = 0; i < named.n; i++) {
        unsigned bits = by_role ? convenient(a, named.v[i].resource.resource_type) : given;
        if (!bits)
            continue;
        wish(t, &named.v[i], bits);
        out.v[out.n++] = named.v[i];
        if (a->add && named.v[i].n == 0)
            tool_usage_error(t->tool, "You must specify one of: --allow-principal, "
                                      "--deny-principal when trying to add ACLs.");
    }
    return out;
}
