/* tool_acls_zk.c - kafka-acls without a broker: ACLs where a cluster's brokers keep them, in
 * ZooKeeper. See tool_acls.h. */
#include <errno.h>
#include <string.h>

#include "acl/acl_store.h"
#include "base/props.h"
#include "tools/tool_acls.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_zk_brokers.h"

void acls_open_zookeeper(struct acls *t)
{
    struct props *p = props_new();
    if (!p)
        tool_die("out of memory");
    tool_props(p, t->args->zk_tls, &t->args->properties);
    const char *tls = props_get(p, "zookeeper.ssl.client.enable");
    const char *connect = props_get(p, "authorizer.zookeeper.url");
    if (!connect)
        connect = props_get(p, "zookeeper.connect");
    if (!connect)
        acls_die(NULL, "--authorizer-properties: zookeeper.connect=host:port is needed");
    if (tls && strcmp(tls, "true") == 0)
        acls_die(NULL, "zookeeper.ssl.client.enable=true: there is no TLS towards ZooKeeper here");
    t->source = &acls_of_zookeeper;
    t->store = tool_zk_open_by("--authorizer-properties", connect, p, t->args->add);
    props_free(p);
}

static void check(int rc)
{
    if (rc)
        acls_die(NULL, rc == -EBADMSG  ? "the node of this resource in ZooKeeper cannot be read"
                       : rc == -EAGAIN ? "others change the ACLs of this resource again and again"
                                       : strerror(-rc));
}

static struct acl_filter filter_of(const kafka_acl_t *f)
{
    return (struct acl_filter){.type = (enum acl_resource_type)f->resource_type,
                               .kind = (enum acl_pattern_type)f->pattern_type,
                               .name = str_of(f->name),
                               .principal = str_of(f->principal),
                               .host = str_of(f->host),
                               .operation = (enum acl_operation)f->operation,
                               .permission = (enum acl_permission)f->permission};
}

static const char *text(struct acls *t, struct str s)
{
    const char *copy = arena_str(&t->mem, s).p;
    if (!copy)
        tool_die("out of memory");
    return copy;
}

static void describe(struct acls *t, const kafka_acl_t *filter, kafka_acls_t *out)
{
    struct acl_filter f = filter_of(filter);
    struct acl_binding *found;
    int n;
    check(acl_store_find(t->store, &f, &t->mem, &found, &n));
    kafka_acl_t *v = acls_alloc(t, out->n + (size_t)n, sizeof *v);
    if (out->n)
        memcpy(v, out->v, out->n * sizeof *v);
    for (int i = 0; i < n; i++)
        v[out->n++] = (kafka_acl_t){.resource_type = found[i].pattern.type,
                                    .pattern_type = found[i].pattern.kind,
                                    .name = text(t, found[i].pattern.name),
                                    .principal = text(t, found[i].entry.principal),
                                    .host = text(t, found[i].entry.host),
                                    .operation = found[i].entry.operation,
                                    .permission = found[i].entry.permission};
    out->v = v;
}

static void create(struct acls *t, const kafka_acl_t *v, size_t n)
{
    struct acl_binding *b = acls_alloc(t, n, sizeof *b);
    int *errors = acls_alloc(t, n, sizeof *errors);
    for (size_t i = 0; i < n; i++) {
        b[i] = (struct acl_binding){{(enum acl_resource_type)v[i].resource_type,
                                     (enum acl_pattern_type)v[i].pattern_type, str_of(v[i].name)},
                                    {str_of(v[i].principal), str_of(v[i].host),
                                     (enum acl_operation)v[i].operation,
                                     (enum acl_permission)v[i].permission}};
        const char *problem = acl_binding_problem(&b[i]);
        if (problem)
            acls_die(NULL, problem);
    }
    check(acl_store_paths(t->store));
    check(acl_store_add(t->store, b, (int)n, errors, &t->mem, NULL));
    for (size_t i = 0; i < n; i++)
        check(errors[i]);
}

static void delete (struct acls *t, const kafka_acl_t *filters, size_t n)
{
    struct acl_filter *f = acls_alloc(t, n, sizeof *f);
    struct acl_deleted *gone;
    int gone_n;
    for (size_t i = 0; i < n; i++)
        f[i] = filter_of(&filters[i]);
    check(acl_store_delete(t->store, f, (int)n, &t->mem, &gone, &gone_n, NULL));
    for (int i = 0; i < gone_n; i++)
        check(gone[i].error);
}

const struct acls_source acls_of_zookeeper = {describe, create, delete};
