/* kafka-topics - creates, deletes, describes, lists and changes topics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_regex.h"
#include "tools/tool_topics.h"
#include "tools/tool_zk_brokers.h"

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct topics_args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(list, "list", TOOL_FLAG, NULL, "List all available topics."),
    ROW(describe, "describe", TOOL_FLAG, NULL, "List details for the given topics."),
    ROW(create, "create", TOOL_FLAG, NULL, "Create a new topic."),
    ROW(alter, "alter", TOOL_FLAG, NULL,
        "Alter the number of partitions and replica assignment of topics."),
    ROW(delete, "delete", TOOL_FLAG, NULL, "Delete topics."),
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "REQUIRED: The brokers to connect to, host:port[,host:port...]."),
    ROW(command_config, "command-config", TOOL_TEXT, "String: command config property file",
        "Property file with settings for the admin client."),
    ROW(topic, "topic", TOOL_TEXT, "String: topic",
        "The topic to create, alter, describe or delete. A regular expression, except with "
        "--create; a comma separates alternatives."),
    ROW(topic_id, "topic-id", TOOL_TEXT, "String: topic-id",
        "The id of the topic to describe; wins over --topic."),
    ROW(partitions, "partitions", TOOL_INT, "Integer: # of partitions",
        "The number of partitions of the topic being created or altered (the new total). The "
        "broker's default when not given with --create.",
        .min = 1, .max = INT32_MAX),
    ROW(replication, "replication-factor", TOOL_INT, "Integer: replication factor",
        "Replicas of each partition of the topic being created. The broker's default when not "
        "given.",
        .min = 1, .max = INT16_MAX),
    ROW(assignment, "replica-assignment", TOOL_TEXT, "String: broker_id_for_part1_replica1:...",
        "Manual assignment of partitions to brokers: 1:2,2:3."),
    ROW(config, "config", TOOL_TEXTS, "String: name=value",
        "A setting of the topic being created (with --zookeeper: or altered). May be repeated."),
    ROW(delete_config, "delete-config", TOOL_TEXTS, "String: name",
        "With --alter and --zookeeper: a setting to be removed. With --bootstrap-server use "
        "kafka-configs."),
    ROW(if_not_exists, "if-not-exists", TOOL_FLAG, NULL,
        "With --create: a topic that exists already is no error."),
    ROW(if_exists, "if-exists", TOOL_FLAG, NULL,
        "With --alter, --delete or --describe: a topic that is missing is no error."),
    ROW(exclude_internal, "exclude-internal", TOOL_FLAG, NULL,
        "With --list or --describe: leave internal topics out."),
    ROW(under_replicated, "under-replicated-partitions", TOOL_FLAG, NULL,
        "With --describe: only partitions that have replicas out of sync."),
    ROW(unavailable, "unavailable-partitions", TOOL_FLAG, NULL,
        "With --describe: only partitions whose leader is not available."),
    ROW(under_min_isr, "under-min-isr-partitions", TOOL_FLAG, NULL,
        "With --describe: only partitions with fewer replicas in sync than min.insync.replicas."),
    ROW(at_min_isr, "at-min-isr-partitions", TOOL_FLAG, NULL,
        "With --describe: only partitions with just min.insync.replicas replicas in sync."),
    ROW(overrides, "topics-with-overrides", TOOL_FLAG, NULL,
        "With --describe: only topics with settings of their own."),
    ROW(page, "partition-size-limit-per-response", TOOL_INT, "Integer: maximum partition size",
        "The maximum number of partitions in one answer.", .fallback = "2000", .min = 1,
        .max = INT32_MAX),
    ROW(zookeeper, "zookeeper", TOOL_TEXT, "String: hosts",
        "Of 2.x: a ZooKeeper (hosts, and a folder behind them), whose brokers are asked."),
    ROW(force, "force", TOOL_FLAG, NULL, "Of 2.x: no effect."),
    ROW(disable_rack_aware, "disable-rack-aware", TOOL_FLAG, NULL, "Of 2.x: no effect."),
};

static const struct tool tool = {
    .name = "kafka-topics",
    .about = "This tool helps to create, delete, describe, or change a topic.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- which flags go together ---- */

static void allow_only_with(const struct topics_args *a, const char *flag, bool allowed)
{
    if (!allowed && tool_given(&tool, a, flag))
        tool_usage_error(&tool, "Option \"[%s]\" can't be used with this action", flag);
}

static void check_filters(const struct topics_args *a)
{
    static const char *const filters[] = {"under-replicated-partitions", "unavailable-partitions",
                                          "under-min-isr-partitions", "at-min-isr-partitions",
                                          NULL};
    for (int i = 0; filters[i]; i++)
        allow_only_with(a, filters[i], a->describe);
    allow_only_with(a, "topics-with-overrides", a->describe);
    allow_only_with(a, "topic-id", a->describe);
    tool_excludes(&tool, a, "topics-with-overrides", filters);
}

/* Tools of 2.3 had no defaults of the brokers. */
static void require_counts(const struct topics_args *a)
{
    if (a->partitions == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "Missing required argument \"[partitions]\"");
    if (a->replication == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "Missing required argument \"[replication-factor]\"");
}

static bool changes_settings(const struct topics_args *a)
{
    return a->zookeeper && (a->config.n || a->delete_config.n);
}

static void check_args(const struct topics_args *a)
{
    static const char *const by_count[] = {"partitions", "replication-factor", NULL};
    if (a->list + a->describe + a->create + a->alter + a->delete != 1)
        tool_usage_error(&tool, "Command must include exactly one action: --list, --describe, "
                                "--create, --alter or --delete");
    if (a->bootstrap && a->zookeeper)
        tool_usage_error(&tool, "Only one of --bootstrap-server or --zookeeper must be specified");
    if (!a->bootstrap && !a->zookeeper)
        tool_die("--bootstrap-server must be specified");
    if (!a->topic && !a->list && !a->describe)
        tool_usage_error(&tool, "Missing required argument \"[topic]\"");
    if (a->delete_config.n && !a->zookeeper)
        tool_usage_error(&tool, "Option \"[delete-config]\" can't be used with option "
                                "\"[bootstrap-server]\" (the kafka-configs tool changes settings)");
    allow_only_with(a, "config", a->create || (a->alter && a->zookeeper));
    allow_only_with(a, "delete-config", a->alter);
    allow_only_with(a, "partitions", a->create || a->alter);
    allow_only_with(a, "replication-factor", a->create);
    allow_only_with(a, "replica-assignment", a->create || a->alter);
    allow_only_with(a, "if-not-exists", a->create);
    allow_only_with(a, "if-exists", a->alter || a->delete || a->describe);
    allow_only_with(a, "exclude-internal", a->list || a->describe);
    if (a->create)
        tool_excludes(&tool, a, "replica-assignment", by_count);
    if (a->alter && a->partitions == TOOL_NOT_GIVEN && !changes_settings(a))
        tool_usage_error(&tool, "Missing required argument \"[partitions]\"");
    if (a->zookeeper && a->create && !a->assignment)
        require_counts(a);
    if (a->describe && a->if_exists && !a->topic && !a->topic_id)
        tool_usage_error(&tool, "Option \"[if-exists]\" needs --topic or --topic-id");
    check_filters(a);
}

/* ---- actions ---- */

static bool create(struct topics *t, const struct topics_args *a)
{
    struct topics_assignment assignment;
    kafka_config_t *configs = calloc(a->config.n + 1, sizeof *configs);
    char message[512] = "";
    topics_assignment_parse(&tool, a->assignment, &assignment);
    for (size_t i = 0; configs && i < a->config.n; i++) {
        const char *value;
        size_t n = tool_pair(a->config.v[i], &value);
        if (n == 0 || a->config.v[i][n] != '=')
            tool_die("Invalid topic config: %s: all configs to be added must be in the format "
                     "\"key=val\"",
                     a->config.v[i]);
        configs[i] = (kafka_config_t){strndup(a->config.v[i], n), value};
    }
    if (strpbrk(a->topic, "._"))
        puts("WARNING: Due to limitations in metric names, topics with a period ('.') or "
             "underscore ('_') could collide. To avoid issues it is best to use either, but not "
             "both.");
    kafka_err_t err = kafka_admin_create_topic(
        t->admin, a->topic, a->partitions == TOOL_NOT_GIVEN ? -1 : (int32_t)a->partitions,
        a->replication == TOOL_NOT_GIVEN ? -1 : (int16_t)a->replication, assignment.rows,
        assignment.n, configs, a->config.n, t->timeout_ms, message, sizeof message);
    for (size_t i = 0; configs && i < a->config.n; i++)
        free((char *)configs[i].name);
    free(configs);
    topics_assignment_free(&assignment);
    if (err == KERR_TOPIC_ALREADY_EXISTS && a->if_not_exists)
        return true;
    if (err != KAFKA_OK)
        return topics_failed(err, message);
    printf("Created topic %s.\n", a->topic);
    return true;
}

static bool list(struct topics *t, const struct topics_args *a)
{
    size_t printed = 0;
    for (size_t i = 0; i < t->chosen_n; i++, printed++)
        puts(t->chosen[i]->name);
    if (printed == 0)
        putchar('\n');
    return true;
}

static bool delete_one(struct topics *t, const struct topics_args *a, const char *name)
{
    char message[512] = "";
    kafka_err_t err =
        kafka_admin_delete_topic(t->admin, name, t->timeout_ms, message, sizeof message);
    if (err != KAFKA_OK)
        return topics_failed(err, message);
    if (a->zookeeper)
        printf("Topic %s is marked for deletion.\n"
               "Note: This will have no impact if delete.topic.enable is not set to true.\n",
               name);
    return true;
}

/* --alter of 2.x with --config and --delete-config. */
static bool change_settings(struct topics *t, const struct topics_args *a, const char *name)
{
    size_t n = a->config.n + a->delete_config.n;
    kafka_config_op_t *ops = calloc(n + 1, sizeof *ops);
    char message[512] = "";
    if (!ops)
        tool_die("out of memory");
    puts("WARNING: Altering topic configuration from this script has been deprecated and may be "
         "removed in future releases.\n"
         "         Going forward, please use kafka-configs.sh for this functionality");
    for (size_t i = 0; i < n; i++) {
        bool set = i < a->config.n;
        const char *value = NULL;
        const char *text = set ? a->config.v[i] : a->delete_config.v[i - a->config.n];
        size_t len = set ? tool_pair(text, &value) : strlen(text);
        if (set && (len == 0 || text[len] != '='))
            tool_die("Invalid topic config: %s: all configs to be added must be in the format "
                     "\"key=val\"",
                     text);
        ops[i] = (kafka_config_op_t){.op = set ? KAFKA_CONFIG_SET : KAFKA_CONFIG_DELETE,
                                     .name = strndup(text, len),
                                     .value = value};
    }
    kafka_err_t err = kafka_admin_alter_configs(t->admin, KAFKA_RESOURCE_TOPIC, name, ops, n,
                                                t->timeout_ms, message, sizeof message);
    for (size_t i = 0; i < n; i++)
        free((char *)ops[i].name);
    free(ops);
    if (err != KAFKA_OK)
        return topics_failed(err, message);
    printf("Updated config for topic %s.\n", name);
    return true;
}

static bool alter_one(struct topics *t, const struct topics_args *a,
                      const kafka_topic_info_t *topic)
{
    struct topics_assignment assignment;
    char message[512] = "";
    if (changes_settings(a) && !change_settings(t, a, topic->name))
        return false;
    if (a->partitions == TOOL_NOT_GIVEN)
        return true;
    if (a->zookeeper)
        puts("WARNING: If partitions are increased for a topic that has a key, the partition logic "
             "or ordering of the messages will be affected");
    topics_assignment_parse(&tool, a->assignment, &assignment);
    /* The list covers the partitions that are there already, too. */
    size_t skip = topic->partitions_n < assignment.n ? topic->partitions_n : assignment.n;
    kafka_err_t err = kafka_admin_create_partitions(t->admin, topic->name, (int32_t)a->partitions,
                                                    assignment.rows + skip, assignment.n - skip,
                                                    t->timeout_ms, message, sizeof message);
    topics_assignment_free(&assignment);
    if (err != KAFKA_OK)
        return topics_failed(err, message);
    if (a->zookeeper)
        puts("Adding partitions succeeded!");
    return true;
}

static bool run(struct topics *t, const struct topics_args *a)
{
    if (a->create)
        return create(t, a);
    if (!topics_choose(t, a))
        return false;
    if (a->list)
        return list(t, a);
    if (a->describe)
        return topics_describe(t, a);
    bool ok = true;
    for (size_t i = 0; i < t->chosen_n; i++)
        ok &= a->delete ? delete_one(t, a, t->chosen[i]->name) : alter_one(t, a, t->chosen[i]);
    return ok;
}

int main(int argc, char **argv)
{
    static struct topics_args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    check_args(&a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.command_config);
    char *found = a.zookeeper ? tool_zk_brokers(a.zookeeper) : NULL;
    tool_conf_servers(&tool, conf, found ? found : a.bootstrap, NULL);
    free(found);
    struct topics t = {.admin = tool_admin(conf), .timeout_ms = tool_api_timeout(conf)};
    bool ok = run(&t, &a);
    free(t.chosen);
    kafka_cluster_info_free(t.info);
    kafka_admin_close(t.admin);
    kafka_conf_free(conf);
    return tool_finish(ok ? 0 : 1);
}
