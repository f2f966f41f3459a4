/* broker_acls.c - the broker's authorizer: made at the start with all ACLs that the store has, kept
 * fresh by the notices of whoever changes them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl_follow.h"
#include "base/logline.h"
#include "metadata/zookeeper_connect.h"
#include "metadata/zookeeper_store.h"
#include "server/authorizer.h"
#include "server/broker_private.h"

static const char component[] = "Authorizer";

#define AUTHORIZER "kafka.security.authorizer.AclAuthorizer"

static bool is_ours(const char *name)
{
    static const char *const names[] = {AUTHORIZER, "kafka.security.auth.SimpleAclAuthorizer"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_wanted(const struct config *c)
{
    const char *name = config_string(c, "authorizer.class.name");
    return name && *name;
}

static int make(const struct config *c, const struct clock *clock, struct authorizer **out,
                char *err, size_t err_n)
{
    struct authorizer_options o = {.super_users = config_string(c, "super.users"),
                                   .allow_everyone =
                                       config_bool(c, "allow.everyone.if.no.acl.found"),
                                   .clock = clock};
    return authorizer_new(&o, out, err, err_n);
}

int broker_check_authorizer(const struct config *c, char *err, size_t err_n)
{
    const char *url = config_string(c, "authorizer.zookeeper.url");
    struct zookeeper_connect where;
    struct authorizer *z;
    if (!is_wanted(c))
        return 0;
    if (!is_ours(config_string(c, "authorizer.class.name"))) {
        /* Who asks for an authorizer must not get a broker that lets everybody do everything. */
        snprintf(err, err_n,
                 "authorizer.class.name=%.200s: Java classes cannot be loaded here; this broker's "
                 "authorizer is " AUTHORIZER,
                 config_string(c, "authorizer.class.name"));
        return -ENOTSUP;
    }
    int rc = url && *url ? zookeeper_connect_parse(url, &where, err, err_n) : 1;
    if (rc == 0)
        zookeeper_connect_clear(&where);
    if (rc < 0)
        return rc;
    rc = make(c, clock_real(), &z, err, err_n);
    authorizer_free(z);
    return rc;
}

static int now(void *arg, const struct acl_stored *one)
{
    struct broker *b = arg;
    return authorizer_put(b->authorizer, one);
}

static int told(void *arg)
{
    struct broker *b = arg;
    return authorizer_publish(b->authorizer);
}

static int known(void *arg, struct arena *a, struct acl_pattern **out, int *n)
{
    struct broker *b = arg;
    return authorizer_patterns(b->authorizer, a, out, n);
}

static void closed(void *arg)
{
    (void)arg;
}

/* ---- the store that has them ---- */

static int own_int(const struct config *c, const char *key, int64_t otherwise)
{
    int64_t own = config_int(c, key);
    return (int)(own == INT64_MIN ? otherwise : own);
}

struct store *broker_acl_store(const struct broker *b)
{
    return b->acl_store ? b->acl_store : b->store;
}

static int open_store(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = b->config;
    const char *url = config_string(c, "authorizer.zookeeper.url");
    const char *connect = config_string(c, "zookeeper.connect");
    int64_t session = config_int(c, "zookeeper.session.timeout.ms");
    int64_t connection = config_int(c, "zookeeper.connection.timeout.ms");
    struct zookeeper_options o = {
        .connect = url,
        .session_timeout_ms = own_int(c, "authorizer.zookeeper.session.timeout.ms", session),
        .connection_timeout_ms = own_int(c, "authorizer.zookeeper.connection.timeout.ms",
                                         connection == INT64_MIN ? session : connection),
        .max_in_flight = own_int(c, "authorizer.zookeeper.max.in.flight.requests",
                                 config_int(c, "zookeeper.max.in.flight.requests")),
        .protect = config_bool(c, "zookeeper.set.acl"),
        .digest = config_string(c, "zookeeper.digest.auth"),
    };
    if (!url || !*url || (connect && strcmp(url, connect) == 0))
        return 0;
    say_info(component, "ACLs are in ZooKeeper at %s", url);
    return zookeeper_store_open(&o, &b->acl_store, err, err_n);
}

/* ---- start and end ---- */

static int load(struct broker *b)
{
    struct arena a;
    struct acl_stored *all;
    int n, rc = acl_store_paths(broker_acl_store(b));
    arena_init(&a, 0);
    if (!rc)
        rc = acl_store_load(broker_acl_store(b), &a, &all, &n);
    for (int i = 0; !rc && i < n; i++)
        rc = authorizer_put(b->authorizer, &all[i]);
    if (!rc)
        rc = authorizer_publish(b->authorizer);
    if (!rc)
        say_info(component, "ACLs of %d resource patterns are in force", n);
    arena_free(&a);
    return rc;
}

/* What would leave the cluster without replication is told at once, where it can be known. */
static void look_at_brokers(struct broker *b)
{
    struct in6_addr here = IN6ADDR_LOOPBACK_INIT;
    const struct config *c = b->config;
    for (int i = 0; i < c->listeners_n; i++) {
        const struct listener_config *l = &c->listeners[i];
        bool open = l->security_protocol == 0 && strcmp(l->name, c->inter_broker_listener) == 0;
        if (!open || authorizer_would(b->authorizer, STR_LIT("ANONYMOUS"), here, ACL_CLUSTER_ACTION,
                                      ACL_CLUSTER, STR_LIT(ACL_CLUSTER_NAME)))
            continue;
        say_warn(component,
                 "brokers come over the listener %s, where they are User:ANONYMOUS: it may not do "
                 "ClusterAction, so they will be refused, unless ACLs that name their hosts allow "
                 "it; see super.users",
                 l->name);
    }
}

int broker_acls_start(struct broker *b, char *err, size_t err_n)
{
    if (!is_wanted(b->config))
        return 0;
    int rc = make(b->config, b->clock, &b->authorizer, err, err_n);
    if (!rc)
        rc = open_store(b, err, err_n);
    if (rc)
        return rc;
    struct acl_follow_options follow = {.store = broker_acl_store(b),
                                        .ex = uv_executor_ex(b->background),
                                        .clock = b->clock,
                                        .now = now,
                                        .told = told,
                                        .known = known,
                                        .closed = closed,
                                        .arg = b};
    rc = load(b);
    if (!rc)
        rc = acl_follow_new(&follow, &b->acl_follow);
    if (rc)
        return broker_start_failed(err, err_n, rc, "cannot read the ACLs");
    acl_follow_start(b->acl_follow);
    if (broker_on_zookeeper(b))
        look_at_brokers(b);
    return 0;
}

void broker_acls_refresh(struct broker *b, const struct acl_pattern *patterns, int n)
{
    acl_follow_refresh(b->acl_follow, patterns, n);
}

void broker_acls_end(struct broker *b)
{
    acl_follow_close(b->acl_follow);
}

void broker_acls_free(struct broker *b)
{
    authorizer_free(b->authorizer);
}
