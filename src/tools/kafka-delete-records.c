/* kafka-delete-records - deletes records of partitions below given offsets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_partition_file.h"

struct args {
    const char *bootstrap, *file, *command_config;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server(s) to use for bootstrapping",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(file, "offset-json-file", TOOL_TEXT, "String: Offset json file path",
        "The JSON file with offset per partition. The format to use is: "
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

static void *array(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        tool_die("out of memory");
    return p;
}

static void print_outcomes(const struct partition_file *w, const int64_t *low,
                           const kafka_err_t *errs)
{
    puts("Records delete operation completed:");
    for (size_t i = 0; i < w->n; i++) {
        char exception[128];
        printf("partition: %s-%d\t", w->v[i].topic, w->v[i].partition);
        if (errs[i] == KAFKA_OK)
            printf("low_watermark: %lld\n", (long long)low[i]);
        else
            printf("error: %s: %s\n", tool_java_exception(errs[i], exception),
                   kafka_err_text(errs[i]));
    }
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    struct partition_file w = partition_file_read(a.file, true);
    int64_t *low = array(w.n, sizeof *low);
    kafka_err_t *errs = array(w.n, sizeof *errs);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.command_config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    puts("Executing records delete operation");
    kafka_err_t err =
        kafka_admin_delete_records(admin, w.v, w.offsets, w.n, tool_api_timeout(conf), low, errs);
    if (err != KAFKA_OK)
        tool_die("%s", tool_error(err));
    print_outcomes(&w, low, errs);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    partition_file_free(&w);
    free(low);
    free(errs);
    return tool_finish(0);
}
