/* kafka-acls - gives, takes and lists the rights of principals. */
#include <stdio.h>
#include <string.h>

#include "tools/tool_acls.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_zk_brokers.h"

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct acls_args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "The brokers to connect to, host:port[,host:port...]. They must have an authorizer."),
    ROW(controller, "bootstrap-controller", TOOL_TEXT, "String: controller to connect to",
        "Of KRaft: there are no controllers apart from brokers here."),
    ROW(config, "command-config", TOOL_TEXT, "String: command-config",
        "Property file with settings for the admin client; with --bootstrap-server only."),
    ROW(authorizer, "authorizer", TOOL_TEXT, "String: authorizer",
        "DEPRECATED: The class of the authorizer when ZooKeeper is written to directly. "
        "kafka.security.authorizer.AclAuthorizer and kafka.security.auth.SimpleAclAuthorizer "
        "mean the same here."),
    ROW(properties, "authorizer-properties", TOOL_TEXTS, "String: authorizer-properties",
        "DEPRECATED: key=value settings, each with a flag of its own, for ACLs straight in "
        "ZooKeeper, without a broker: zookeeper.connect=host:port[,host:port...][/chroot], "
        "zookeeper.set.acl, zookeeper.digest.auth."),
    ROW(zk_tls, "zk-tls-config-file", TOOL_TEXT, "String: Authorizer ZooKeeper TLS configuration",
        "DEPRECATED: A file with the settings that --authorizer-properties takes."),
    ROW(add, "add", TOOL_FLAG, NULL, "Indicates you are trying to add ACLs."),
    ROW(remove, "remove", TOOL_FLAG, NULL, "Indicates you are trying to remove ACLs."),
    ROW(list, "list", TOOL_FLAG, NULL,
        "List ACLs for the specified resource, use --topic <topic> or --group <group> or "
        "--cluster to specify a resource."),
    ROW(topics, "topic", TOOL_TEXTS, "String: topic",
        "Topic to which ACLs should be added or removed. A value of '*' indicates ACL should "
        "apply to all topics."),
    ROW(groups, "group", TOOL_TEXTS, "String: group",
        "Consumer group to which the ACLs should be added or removed. A value of '*' indicates "
        "the ACLs should apply to all groups."),
    ROW(ids, "transactional-id", TOOL_TEXTS, "String: transactional-id",
        "The transactionalId to which ACLs should be added or removed. A value of '*' indicates "
        "the ACLs should apply to all transactionalIds."),
    ROW(tokens, "delegation-token", TOOL_TEXTS, "String: delegation-token",
        "Delegation token to which ACLs should be added or removed. A value of '*' indicates ACL "
        "should apply to all tokens."),
    ROW(users, "user-principal", TOOL_TEXTS, "String: user-principal",
        "The user principal, as a resource, to which ACLs should be added or removed. A value of "
        "'*' indicates the ACLs should apply to all users."),
    ROW(cluster, "cluster", TOOL_FLAG, NULL, "Add/Remove cluster ACLs."),
    ROW(pattern, "resource-pattern-type", TOOL_TEXT, "ANY|MATCH|LITERAL|PREFIXED",
        "The type of the resource pattern or pattern filter. When adding acls, this should be a "
        "specific pattern type, e.g. 'literal' or 'prefixed'. When listing or removing acls, a "
        "specific pattern type can be used to list or remove acls from specific resource "
        "patterns, or 'any' or 'match', where 'any' will match any pattern type, but will match "
        "the resource name exactly, and 'match' will perform pattern matching to list or remove "
        "all acls that affect the supplied resource(s).",
        .fallback = "LITERAL"),
    ROW(operations, "operation", TOOL_TEXTS, "String",
        "Operation that is being allowed or denied (default: All): All, Read, Write, Create, "
        "Delete, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, "
        "IdempotentWrite, CreateTokens, DescribeTokens."),
    ROW(allowed, "allow-principal", TOOL_TEXTS, "String: allow-principal",
        "principal is in principalType:name format, e.g. User:alice. User:* is everybody."),
    ROW(denied, "deny-principal", TOOL_TEXTS, "String: deny-principal",
        "principal is in principalType:name format. By default anyone not added through "
        "--allow-principal is denied access. You only need to use this option as negation to "
        "already allowed set."),
    ROW(allowed_hosts, "allow-host", TOOL_TEXTS, "String: allow-host",
        "Host from which principals listed in --allow-principal will have access. If you have "
        "specified --allow-principal then the default for this option will be set to '*' which "
        "allows access from all hosts."),
    ROW(denied_hosts, "deny-host", TOOL_TEXTS, "String: deny-host",
        "Host from which principals listed in --deny-principal will be denied access. If you "
        "have specified --deny-principal then the default for this option will be set to '*' "
        "which denies access from all hosts."),
    ROW(principals, "principal", TOOL_TEXTS, "String: principal",
        "List ACLs for the specified principal, in principalType:name format. Note that "
        "principalType:* is no pattern: it lists what is given to just that."),
    ROW(producer, "producer", TOOL_FLAG, NULL,
        "Convenience option to add/remove ACLs for producer role. This will generate ACLs that "
        "allows WRITE,DESCRIBE and CREATE on topic."),
    ROW(idempotent, "idempotent", TOOL_FLAG, NULL,
        "Enable idempotence for the producer. This should be used in combination with the "
        "--producer option. Note that idempotence is enabled automatically if the producer is "
        "authorized to a particular transactional-id."),
    ROW(consumer, "consumer", TOOL_FLAG, NULL,
        "Convenience option to add/remove ACLs for consumer role. This will generate ACLs that "
        "allows READ,DESCRIBE on topic and READ on group."),
    ROW(force, "force", TOOL_FLAG, NULL, "Assume Yes to all queries and do not prompt."),
};

static const struct tool tool = {
    .name = "kafka-acls",
    .about = "This tool helps to manage acls on kafka.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- flags that need or exclude each other ---- */

static void check_source(const struct acls_args *a)
{
    if (a->controller)
        tool_usage_error(&tool,
                         "--bootstrap-controller %s: there are no controllers apart from "
                         "brokers here, give --bootstrap-server",
                         a->controller);
    if (a->bootstrap && a->authorizer)
        tool_usage_error(&tool, "Only one of --bootstrap-server or --authorizer must be specified");
    if (!a->bootstrap && !a->properties.n)
        tool_usage_error(&tool, "Missing required argument \"[authorizer-properties]\": give "
                                "--bootstrap-server, or a ZooKeeper with --authorizer-properties "
                                "zookeeper.connect=...");
    if (a->config && !a->bootstrap)
        tool_usage_error(
            &tool, "The --command-config option can only be used with --bootstrap-server option");
    if (a->bootstrap && a->properties.n)
        tool_usage_error(
            &tool, "The --authorizer-properties option can only be used with --authorizer option");
}

static void check_roles(const struct acls_args *a)
{
    if (a->producer && !a->topics.n)
        tool_usage_error(&tool, "With --producer you must specify a --topic");
    if (a->idempotent && !a->producer)
        tool_usage_error(&tool, "The --idempotent option is only available if --producer is set");
    if (a->consumer && (!a->topics.n || !a->groups.n || (!a->producer && (a->cluster || a->ids.n))))
        tool_usage_error(&tool, "With --consumer you must specify a --topic and a --group and no "
                                "--cluster or --transactional-id option should be specified.");
}

static void check_args(const struct acls_args *a)
{
    static const char *const changes[] = {
        "producer",  "consumer",       "allow-host", "allow-principal",
        "deny-host", "deny-principal", NULL};
    static const char *const by_hand[] = {"operation", "deny-principal", "deny-host", NULL};
    check_source(a);
    if (a->add + a->remove + a->list != 1)
        tool_usage_error(&tool,
                         "Command must include exactly one action: --list, --add, --remove. ");
    tool_excludes(&tool, a, "list", changes);
    tool_excludes(&tool, a, "producer", by_hand);
    tool_excludes(&tool, a, "consumer", by_hand);
    if (a->principals.n && !a->list)
        tool_usage_error(&tool, "The --principal option is only available if --list is set");
    check_roles(a);
}

static void run(struct acls *t)
{
    if (t->args->add)
        acls_add(t);
    else if (t->args->remove)
        acls_remove(t);
    else
        acls_list(t);
}

static void run_by_brokers(struct acls *t)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, t->args->config);
    tool_conf_servers(&tool, conf, t->args->bootstrap, NULL);
    t->source = &acls_of_brokers;
    t->admin = tool_admin(conf);
    t->timeout_ms = tool_api_timeout(conf);
    run(t);
    kafka_admin_close(t->admin);
    kafka_conf_free(conf);
}

/* As an authorizer of Kafka's would, without a broker. */
static void run_by_zookeeper(struct acls *t)
{
    fputs("Warning: support for ACL configuration directly through the authorizer is deprecated "
          "and will be removed in a future release. Please use --bootstrap-server instead to set "
          "ACLs through the admin client.\n",
          stderr);
    acls_open_zookeeper(t);
    run(t);
    tool_zk_close(t->store);
}

int main(int argc, char **argv)
{
    static struct acls_args a;
    struct acls t = {.tool = &tool, .args = &a};
    tool_start();
    arena_init(&t.mem, 0);
    tool_parse(&tool, argc, argv, &a);
    check_args(&a);
    t.wishes = acls_wishes(&t);
    if (a.bootstrap)
        run_by_brokers(&t);
    else
        run_by_zookeeper(&t);
    arena_free(&t.mem);
    return tool_finish(0);
}
