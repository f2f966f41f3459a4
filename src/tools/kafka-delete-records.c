/* kafka-delete-records - deletes records of partitions below given offsets. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"

struct args {
    const char *bootstrap, *file, *command_config;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server(s) to use for bootstrapping",
        "REQUIRED: The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(file, "offset-json-file", TOOL_TEXT, "String: Offset json file path",
        "REQUIRED: The JSON file with offset per partition. The format to use is: "
        "{\"partitions\": [{\"topic\": \"foo\", \"partition\": 1, \"offset\": 1}], \"version\": "
        "1}. "
        "An offset of -1 means the high watermark.",
        .required = true),
    ROW(command_config, "command-config", TOOL_TEXT, "String: command config property file path",
        "Property file with settings for the admin client."),
};

static const struct tool tool = {
    .name = "kafka-delete-records",
    .about = "This tool helps to delete records of the given partitions down to the specified "
             "offset.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

struct wanted {
    json_t *document; /* topic names point into it */
    kafka_topic_partition_t *partitions;
    int64_t *offsets, *low;
    kafka_err_t *errs;
    size_t n;
};

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        tool_die("%s: %s (line %d)", path, error.text, error.line);
    if (!json_is_object(document))
        tool_die("%s: not a JSON object", path);
    json_t *version = json_object_get(document, "version");
    if (version && (!json_is_integer(version) || json_integer_value(version) != 1))
        tool_die("%s: not supported version field value", path);
    if (!json_is_array(json_object_get(document, "partitions")))
        tool_die("%s: missing partitions field", path);
    return document;
}

static int64_t integer(const json_t *o, const char *key, const char *path)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v))
        tool_die("%s: a partition has no whole number \"%s\"", path, key);
    return json_integer_value(v);
}

static int by_partition(const void *a, const void *b)
{
    const kafka_topic_partition_t *const *x = a, *const *y = b;
    int order = strcmp((*x)->topic, (*y)->topic);
    return order ? order
                 : ((*x)->partition > (*y)->partition) - ((*x)->partition < (*y)->partition);
}

static void refuse_duplicates(const struct wanted *w)
{
    const kafka_topic_partition_t **sorted = calloc(w->n + 1, sizeof *sorted);
    if (!sorted)
        tool_die("out of memory");
    for (size_t i = 0; i < w->n; i++)
        sorted[i] = &w->partitions[i];
    qsort(sorted, w->n, sizeof *sorted, by_partition);
    for (size_t i = 1; i < w->n; i++)
        if (by_partition(&sorted[i - 1], &sorted[i]) == 0)
            tool_die("Offset json file contains duplicate topic partitions: %s-%d",
                     sorted[i]->topic, sorted[i]->partition);
    free(sorted);
}

static struct wanted read_file(const char *path)
{
    struct wanted w = {.document = load(path)};
    json_t *list = json_object_get(w.document, "partitions");
    w.n = json_array_size(list);
    w.partitions = calloc(w.n + 1, sizeof *w.partitions);
    w.offsets = calloc(w.n + 1, sizeof *w.offsets);
    w.low = calloc(w.n + 1, sizeof *w.low);
    w.errs = calloc(w.n + 1, sizeof *w.errs);
    if (!w.partitions || !w.offsets || !w.low || !w.errs)
        tool_die("out of memory");
    for (size_t i = 0; i < w.n; i++) {
        const json_t *o = json_array_get(list, i);
        const char *topic = json_string_value(json_object_get(o, "topic"));
        int64_t partition = integer(o, "partition", path);
        if (!topic || partition < 0 || partition > INT32_MAX)
            tool_die("%s: a partition has no topic, or no number", path);
        w.partitions[i] = (kafka_topic_partition_t){topic, (int32_t)partition};
        w.offsets[i] = integer(o, "offset", path);
    }
    refuse_duplicates(&w);
    return w;
}

static void print_outcomes(const struct wanted *w)
{
    puts("Records delete operation completed:");
    for (size_t i = 0; i < w->n; i++) {
        char exception[128];
        printf("partition: %s-%d\t", w->partitions[i].topic, w->partitions[i].partition);
        if (w->errs[i] == KAFKA_OK)
            printf("low_watermark: %lld\n", (long long)w->low[i]);
        else
            printf("error: %s: %s\n", tool_java_exception(w->errs[i], exception),
                   kafka_err_text(w->errs[i]));
    }
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    struct wanted w = read_file(a.file);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.command_config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    puts("Executing records delete operation");
    kafka_err_t err = kafka_admin_delete_records(admin, w.partitions, w.offsets, w.n,
                                                 tool_api_timeout(conf), w.low, w.errs);
    if (err != KAFKA_OK)
        tool_die("%s", kafka_err_text(err));
    print_outcomes(&w);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    json_decref(w.document);
    free(w.partitions);
    free(w.offsets);
    free(w.low);
    free(w.errs);
    return tool_finish(0);
}
