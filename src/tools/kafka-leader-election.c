/* kafka-leader-election - makes the preferred, or any living, replica of partitions their leader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_elections.h"
#include "tools/tool_io.h"
#include "tools/tool_partition_file.h"

struct args {
    const char *bootstrap, *type, *topic, *file, *config;
    int64_t partition;
    bool all;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: host:port",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(type, "election-type", TOOL_TEXT, "[PREFERRED,UNCLEAN]: election type",
        "preferred: the first of its replicas becomes a partition's leader, if it is in sync. "
        "unclean: a partition without a leader gets any replica that lives as its leader; records "
        "may be lost.",
        .required = true),
    ROW(topic, "topic", TOOL_TEXT, "String: topic name", "The topic; needs --partition."),
    ROW(partition, "partition", TOOL_INT, "Integer: partition id", "The partition; needs --topic.",
        .min = 0, .max = INT32_MAX),
    ROW(file, "path-to-json-file", TOOL_TEXT, "String: Path to JSON file",
        "A file with the partitions: {\"partitions\": [{\"topic\": \"foo\", \"partition\": 1}]}"),
    ROW(all, "all-topic-partitions", TOOL_FLAG, NULL,
        "All partitions for which there is something to do."),
    ROW(config, "admin.config", TOOL_TEXT, "String: config file",
        "Property file with settings for the admin client."),
};

static const struct tool tool = {
    .name = "kafka-leader-election",
    .about = "This tool attempts to elect a new leader for a set of topic partitions.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

static const char *const type_names[] = {"PREFERRED", "UNCLEAN"};

static int read_type(const char *text)
{
    for (int i = 0; i < 2; i++)
        if (strcasecmp(text, type_names[i]) == 0)
            return i;
    tool_usage_error(&tool, "--election-type %s: preferred or unclean is wanted", text);
}

static void check_args(const struct args *a)
{
    if ((a->topic != NULL) + (a->file != NULL) + a->all != 1)
        tool_usage_error(&tool, "One and only one of the following options is required: topic, "
                                "path-to-json-file, all-topic-partitions");
    if (!a->topic != (a->partition == TOOL_NOT_GIVEN))
        tool_usage_error(&tool, "Missing required option(s): %s", a->topic ? "partition" : "topic");
}

static kafka_conf_t *make_conf(const struct args *a)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_servers(&tool, conf, a->bootstrap, NULL);
    tool_conf_default(conf, "default.api.timeout.ms", "30000");
    tool_conf_default(conf, "request.timeout.ms", "15000");
    return conf;
}

static void fail(kafka_err_t err)
{
    if (err == KAFKA_ERR_TIMED_OUT || err == KERR_REQUEST_TIMED_OUT)
        tool_die("Timeout waiting for election results: %s", tool_error(err));
    if (err == KERR_CLUSTER_AUTHORIZATION_FAILED)
        tool_die("Not authorized to perform leader election");
    tool_die("Error while making request: %s", tool_error(err));
}

int main(int argc, char **argv)
{
    static struct args a;
    struct partition_file file = {0};
    kafka_elections_t *elections;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    check_args(&a);
    int type = read_type(a.type);
    kafka_topic_partition_t one = {a.topic, (int32_t)a.partition};
    if (a.file)
        file = partition_file_read(a.file, false);
    kafka_conf_t *conf = make_conf(&a);
    kafka_admin_t *admin = tool_admin(conf);
    const kafka_topic_partition_t *wanted = a.topic ? &one : a.file ? file.v : NULL;
    kafka_err_t err = kafka_admin_elect_leaders(admin, type, wanted, a.topic ? 1 : file.n,
                                                tool_api_timeout(conf), &elections);
    if (err != KAFKA_OK)
        fail(err);
    char what[64];
    snprintf(what, sizeof what, "leader election (%s)", type_names[type]);
    int status = tool_elections_print(elections, what, "replica(s)");
    kafka_elections_free(elections);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    if (a.file)
        partition_file_free(&file);
    return tool_finish(status);
}
