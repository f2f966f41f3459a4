/* kafka-configs - describes and changes settings of topics and brokers, and quotas of users, client
 * ids and addresses. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_configs.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_visible.h"
#include "tools/tool_zk_brokers.h"

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct configs_args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(alter, "alter", TOOL_FLAG, NULL, "Alter the configuration for the entity."),
    ROW(describe, "describe", TOOL_FLAG, NULL, "List configs for the given entity."),
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "REQUIRED: The brokers to connect to, host:port[,host:port...]."),
    ROW(controller, "bootstrap-controller", TOOL_TEXT, "String: controller to connect to",
        "Of KRaft: there are no controllers apart from brokers here."),
    ROW(zookeeper, "zookeeper", TOOL_TEXT, "String: urls",
        "Of 2.x: a ZooKeeper, whose brokers are asked; SCRAM credentials are written "
        "and users described there."),
    ROW(zk_tls, "zk-tls-config-file", TOOL_TEXT, "String: file", "Of 2.x: with --zookeeper only."),
    ROW(command_config, "command-config", TOOL_TEXT, "String: command config property file",
        "Property file with settings for the admin client."),
    ROW(types, "entity-type", TOOL_TEXTS, "String",
        "Type of entity (topics/clients/users/brokers/broker-loggers/ips); users and clients may "
        "be given together."),
    ROW(names, "entity-name", TOOL_TEXTS, "String",
        "Name of entity (topic name/client id/user principal name/broker id/ip)."),
    ROW(entity_default, "entity-default", TOOL_FLAG, NULL,
        "Default entity name for clients/users/brokers/ips (applies to the entity type that "
        "stands before it)."),
    ROW(topic, "topic", TOOL_TEXT, "String", "The topic's name."),
    ROW(client, "client", TOOL_TEXT, "String", "The client's ID."),
    ROW(client_defaults, "client-defaults", TOOL_FLAG, NULL,
        "The config defaults for all clients."),
    ROW(user, "user", TOOL_TEXT, "String", "The user's principal name."),
    ROW(user_defaults, "user-defaults", TOOL_FLAG, NULL, "The config defaults for all users."),
    ROW(broker, "broker", TOOL_TEXT, "String", "The broker's ID."),
    ROW(broker_defaults, "broker-defaults", TOOL_FLAG, NULL,
        "The config defaults for all brokers."),
    ROW(broker_logger, "broker-logger", TOOL_TEXT, "String",
        "The broker's ID for its logger config."),
    ROW(ip, "ip", TOOL_TEXT, "String", "The IP address."),
    ROW(ip_defaults, "ip-defaults", TOOL_FLAG, NULL, "The config defaults for all IPs."),
    ROW(add, "add-config", TOOL_TEXT, "String",
        "Key value pairs of configs to add: k1=v1,k2=[v1,v2,v2],k3=v3. Square brackets group "
        "values which contain commas."),
    ROW(add_file, "add-config-file", TOOL_TEXT, "String",
        "Path to a properties file with configs to add."),
    ROW(delete, "delete-config", TOOL_TEXT, "String", "Config keys to remove: k1,k2."),
    ROW(all, "all", TOOL_FLAG, NULL,
        "With --describe: all configs of the topic, broker or broker-logger, not only the dynamic "
        "ones."),
    ROW(force, "force", TOOL_FLAG, NULL, "Of 2.x: no effect."),
};

static const struct tool tool = {
    .name = "kafka-configs",
    .about = "This tool helps to manipulate and describe entity config for a topic, client, user, "
             "broker or ip.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

void configs_refuse(const char *fmt, ...)
{
    va_list args;
    fflush(stdout);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void configs_fail(const struct configs *c, kafka_err_t err, const char *message)
{
    char exception[128];
    fflush(stdout);
    fprintf(stderr, "Error while executing config command with args '");
    for (int i = 1; i < c->argc; i++)
        fprintf(stderr, "%s%s", i > 1 ? " " : "", c->argv[i]);
    tool_print_visible(stderr, "'\n%s: %s\n", tool_java_exception(err, exception),
                       *message ? message : tool_error(err));
    exit(1);
}

static void check_args(const struct configs_args *a)
{
    static const char *const changes[] = {"add-config", "add-config-file", "delete-config", NULL};
    static const char *const file[] = {"add-config-file", NULL}, *const alter[] = {"alter", NULL};
    if (a->alter + a->describe != 1)
        tool_usage_error(&tool, "Command must include exactly one action: --describe, --alter");
    if (a->controller)
        tool_usage_error(&tool,
                         "--bootstrap-controller %s: there are no controllers apart from "
                         "brokers here, give --bootstrap-server",
                         a->controller);
    if (a->bootstrap && a->zookeeper)
        tool_usage_error(&tool, "Only one of --bootstrap-server or --zookeeper can be specified");
    if (!a->bootstrap && !a->zookeeper)
        tool_usage_error(&tool, "One of the required --bootstrap-server, --bootstrap-controller or "
                                "--zookeeper arguments must be specified");
    tool_excludes(&tool, a, "add-config", file);
    tool_excludes(&tool, a, "all", alter);
    if (a->describe)
        tool_excludes(&tool, a, "describe", changes);
    if (a->alter && !a->add && !a->add_file && !a->delete)
        tool_usage_error(&tool, "At least one of --add-config, --add-config-file, or "
                                "--delete-config must be specified with --alter");
}

/* SCRAM credentials are written before there is a broker that could be asked. */
static bool without_brokers(struct configs *c)
{
    const char *const given[] = {c->args->add, c->args->delete};
    bool scram = c->args->add_file != NULL && c->entities.types[0] == TYPE_USER;
    if (!c->args->zookeeper)
        return false;
    if (c->args->describe)
        return configs_describe_in_zookeeper(c);
    for (int i = 0; i < 2; i++)
        scram |= given[i] && strstr(given[i], "SCRAM-SHA-") != NULL;
    if (scram)
        configs_alter(c);
    return scram;
}

int main(int argc, char **argv)
{
    static struct configs_args a;
    struct configs c = {.tool = &tool, .args = &a, .argc = argc, .argv = argv};
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    check_args(&a);
    configs_entities_of(&tool, &a, argc, argv, &c.entities);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.command_config);
    if (a.zookeeper)
        puts(
            "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
            "Use --bootstrap-server instead to specify a broker to connect to.");
    if (without_brokers(&c)) {
        kafka_conf_free(conf);
        return tool_finish(0);
    }
    char *found = a.zookeeper ? tool_zk_brokers(a.zookeeper) : NULL;
    tool_conf_servers(&tool, conf, found ? found : a.bootstrap, NULL);
    free(found);
    c.admin = tool_admin(conf);
    c.timeout_ms = tool_api_timeout(conf);
    if (a.alter)
        configs_alter(&c);
    else
        configs_describe(&c);
    kafka_admin_close(c.admin);
    kafka_conf_free(conf);
    return tool_finish(0);
}
