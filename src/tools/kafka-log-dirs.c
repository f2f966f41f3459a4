/* kafka-log-dirs - prints the log dirs of brokers and the replicas in them, as one line of JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"

struct args {
    const char *bootstrap, *topics, *brokers, *command_config;
    bool describe;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: The server(s) to use for bootstrapping",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(describe, "describe", TOOL_FLAG, NULL,
        "Describe the specified log directories on the specified brokers.", .required = true),
    ROW(topics, "topic-list", TOOL_TEXT, "String: Topic list",
        "The list of topics to be queried in the form \"topic1,topic2,topic3\". All topics will be "
        "queried if no topic list is specified.",
        .fallback = ""),
    ROW(brokers, "broker-list", TOOL_TEXT, "String: Broker list",
        "The list of brokers to be queried in the form \"0,1,2\". All brokers in the cluster will "
        "be queried if no broker list is specified."),
    ROW(command_config, "command-config", TOOL_TEXT, "String: Admin client property file",
        "Property file with settings for the admin client."),
};

static const struct tool tool = {
    .name = "kafka-log-dirs",
    .about = "This tool helps to query log directory usage on the specified brokers.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- which ---- */

static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        if (len == n && strncmp(at, name, n) == 0)
            return true;
        at += len;
    }
    return false;
}

static bool exists(const kafka_cluster_info_t *info, int64_t id)
{
    for (size_t i = 0; i < info->nodes_n; i++)
        if (info->nodes[i].id == id)
            return true;
    return false;
}

static void add_id(char *list, size_t n, int64_t id)
{
    size_t at = strlen(list);
    snprintf(list + at, n - at, "%s%lld", at ? "," : "", (long long)id);
}

/* The ids asked for, or all there are. Owned. */
static int32_t *choose_brokers(const struct args *a, const kafka_cluster_info_t *info, size_t *n)
{
    char missing[512] = "", current[512] = "";
    const char *list = a->brokers ? a->brokers : "";
    int32_t *ids = calloc(strlen(list) + info->nodes_n + 1, sizeof *ids);
    if (!ids)
        tool_die("out of memory");
    *n = 0;
    for (const char *at = list; *at; at += strspn(at, ", ")) {
        char text[32];
        int64_t id;
        size_t len = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)len, at);
        if (!tool_int_of(text, &id))
            tool_die("For input string: \"%.*s\"", (int)len, at);
        if (exists(info, id))
            ids[(*n)++] = (int32_t)id;
        else
            add_id(missing, sizeof missing, id);
        at += len;
    }
    for (size_t i = 0; i < info->nodes_n; i++) {
        add_id(current, sizeof current, info->nodes[i].id);
        if (!*list)
            ids[(*n)++] = info->nodes[i].id;
    }
    if (*missing)
        tool_die("ERROR: The given brokers do not exist from --broker-list: %s. Current existent "
                 "brokers: %s",
                 missing, current);
    return ids;
}

/* ---- JSON ---- */

static json_t *replica_json(const kafka_log_dir_replica_t *r)
{
    char name[300];
    snprintf(name, sizeof name, "%s-%d", r->topic, r->partition);
    return json_pack("{s:s, s:I, s:I, s:b}", "partition", name, "size", (json_int_t)r->size,
                     "offsetLag", (json_int_t)r->offset_lag, "isFuture", r->future);
}

static json_t *dir_json(const kafka_log_dir_t *d, const char *topics)
{
    char exception[128];
    json_t *list = json_array();
    for (size_t i = 0; i < d->replicas_n; i++)
        if (!*topics || listed(topics, d->replicas[i].topic))
            json_array_append_new(list, replica_json(&d->replicas[i]));
    json_t *error = d->err ? json_string(tool_java_exception(d->err, exception)) : json_null();
    return json_pack("{s:s, s:o, s:o}", "logDir", d->path, "error", error, "partitions", list);
}

static json_t *broker_json(kafka_admin_t *admin, int32_t id, const struct args *a, int64_t timeout)
{
    kafka_log_dirs_t *found;
    kafka_err_t err = kafka_admin_describe_log_dirs(admin, id, timeout, &found);
    if (err != KAFKA_OK)
        tool_die("broker %d: %s", id, tool_error(err));
    json_t *dirs = json_array();
    for (size_t i = 0; i < found->dirs_n; i++)
        json_array_append_new(dirs, dir_json(&found->dirs[i], a->topics));
    kafka_log_dirs_free(found);
    return json_pack("{s:i, s:o}", "broker", id, "logDirs", dirs);
}

int main(int argc, char **argv)
{
    static struct args a;
    kafka_cluster_info_t *info;
    const char *none = NULL;
    size_t n;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.command_config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    int64_t timeout = tool_api_timeout(conf);
    kafka_err_t err = kafka_admin_describe(admin, &none, 0, timeout, &info);
    if (err != KAFKA_OK)
        tool_die("%s", tool_error(err));
    int32_t *ids = choose_brokers(&a, info, &n);
    puts("Querying brokers for log directories information");
    json_t *brokers = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(brokers, broker_json(admin, ids[i], &a, timeout));
    printf("Received log directory information from brokers ");
    for (size_t i = 0; i < n; i++)
        printf(i ? ",%d" : "%d", ids[i]);
    json_t *document = json_pack("{s:i, s:o}", "version", 1, "brokers", brokers);
    char *text = json_dumps(document, JSON_COMPACT);
    printf("\n%s\n", text ? text : "");
    bool complete = text != NULL;
    free(text);
    json_decref(document);
    free(ids);
    kafka_cluster_info_free(info);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    return tool_finish(complete ? 0 : 1);
}
