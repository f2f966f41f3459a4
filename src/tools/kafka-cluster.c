/* kafka-cluster - tells a cluster's id; unregisters brokers, where a cluster has that. */
#include <stdio.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"

struct args {
    const char *bootstrap, *controller, *config;
    int64_t id;
    struct tool_texts words;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "BOOTSTRAP_SERVER",
        "The brokers to connect to, host:port[,host:port...].", .letter = 'b'),
    ROW(controller, "bootstrap-controller", TOOL_TEXT, "BOOTSTRAP_CONTROLLER",
        "Controllers of a KRaft cluster, which this broker is not part of: refused.",
        .letter = 'C'),
    ROW(config, "config", TOOL_TEXT, "CONFIG",
        "A property file with settings for the admin client.", .letter = 'c'),
    ROW(id, "id", TOOL_INT, "ID", "The broker to unregister (unregister only).", .letter = 'i',
        .min = 0, .max = INT32_MAX),
};

static const struct tool tool = {
    .name = "kafka-cluster",
    .about = "The Kafka cluster tool.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
    .terse = true,
    .words = "{cluster-id | unregister}",
    .words_at = offsetof(struct args, words),
};

static const char *read_command(const struct args *a)
{
    if (a->words.n == 0)
        tool_usage_error(&tool, "too few arguments");
    if (a->words.n > 1)
        tool_usage_error(&tool, "unrecognized arguments: '%s'", a->words.v[1]);
    const char *command = a->words.v[0];
    if (strcmp(command, "cluster-id") != 0 && strcmp(command, "unregister") != 0)
        tool_usage_error(&tool, "invalid choice: '%s' (choose from 'cluster-id', 'unregister')",
                         command);
    if (!a->bootstrap == !a->controller)
        tool_usage_error(&tool, a->bootstrap ? "argument --bootstrap-controller/-C: not allowed "
                                               "with argument --bootstrap-server/-b"
                                             : "one of the arguments --bootstrap-server/-b "
                                               "--bootstrap-controller/-C is required");
    if (a->controller)
        tool_usage_error(&tool, "argument --bootstrap-controller/-C: only a KRaft cluster has "
                                "controllers to connect to; give --bootstrap-server");
    if (strcmp(command, "unregister") == 0 && a->id == TOOL_NOT_GIVEN)
        tool_usage_error(&tool, "argument --id/-i is required");
    return command;
}

/* The request that unregisters is KRaft's: clusters with ZooKeeper forget a broker when its session
 * ends. */
static void unregister(void)
{
    puts("The target cluster does not support the broker unregistration API.");
}

static void print_id(kafka_admin_t *admin, int64_t timeout)
{
    kafka_cluster_info_t *info;
    const char *none = NULL;
    kafka_err_t err = kafka_admin_describe(admin, &none, 0, timeout, &info);
    if (err != KAFKA_OK)
        tool_die("%s", tool_error(err));
    if (info->cluster_id && *info->cluster_id)
        printf("Cluster ID: %s\n", info->cluster_id);
    else
        puts("No cluster ID found. The Kafka version is probably too old.");
    kafka_cluster_info_free(info);
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    if (argc == 1)
        tool_usage_error(&tool, "too few arguments");
    tool_parse(&tool, argc, argv, &a);
    const char *command = read_command(&a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    if (strcmp(command, "cluster-id") == 0)
        print_id(admin, tool_api_timeout(conf));
    else
        unregister();
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    return tool_finish(0);
}
