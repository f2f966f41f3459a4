/* kafka-get-offsets - prints offsets of partitions: first, last, or by time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_part_filter.h"

struct args {
    const char *bootstrap, *broker_list, *topic, *partitions, *topic_partitions, *time, *config;
    bool exclude_internal;
    int64_t offsets, max_wait;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: HOST1:PORT1,...,HOST3:PORT3",
        "REQUIRED unless --broker-list is given: the brokers to connect to."),
    ROW(broker_list, "broker-list", TOOL_TEXT, "String: HOST1:PORT1,...,HOST3:PORT3",
        "Deprecated: use --bootstrap-server."),
    ROW(topic, "topic", TOOL_TEXT, "String: topic",
        "Regular expression of the topics (default: all)."),
    ROW(partitions, "partitions", TOOL_TEXT, "String: partition ids",
        "Comma-separated list of partitions (default: all)."),
    ROW(topic_partitions, "topic-partitions", TOOL_TEXT, "String: topic1:1,topic2:0-3,topic3,:5-",
        "Comma-separated list of topic patterns with a partition or a range of them, whose upper "
        "end is left out."),
    ROW(time, "time", TOOL_TEXT,
        "String: <timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp",
        "The offset of the first record at or after this time (ms), or one of the names; also -4 "
        "or earliest-local, -5 or latest-tiered.",
        .fallback = "latest"),
    ROW(exclude_internal, "exclude-internal-topics", TOOL_FLAG, NULL, "Leave internal topics out."),
    ROW(config, "command-config", TOOL_TEXT, "String: config file",
        "Property file with settings for the client."),
    ROW(offsets, "offsets", TOOL_INT, "Integer: count", "Of 2.x: no effect."),
    ROW(max_wait, "max-wait-ms", TOOL_INT, "Integer: ms", "Of 2.x: no effect."),
};

static const struct tool tool = {
    .name = "kafka-get-offsets",
    .about = "An interactive shell for getting topic-partition offsets.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

static void fail(const char *text)
{
    tool_die("Error occurred: %s", text);
}

static int64_t read_time(const char *text)
{
    static const char *const names[] = {"latest", "earliest", "max-timestamp", "earliest-local",
                                        "latest-tiered"};
    enum { NAMES = sizeof names / sizeof *names };
    int64_t time;
    for (int i = 0; i < NAMES; i++)
        if (strcmp(text, names[i]) == 0)
            return -1 - i;
    if (!tool_int_of(text, &time) || time < -NAMES)
        tool_die("Error occurred: Malformed time argument %s. Please use -1 or latest / -2 or "
                 "earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered, or "
                 "a specified long format timestamp",
                 text);
    return time;
}

/* ---- partitions ---- */

struct found {
    kafka_topic_partition_t *v;
    size_t n;
};

/* In the order of the text "topic-partition". */
static int by_text(const void *a, const void *b)
{
    const kafka_topic_partition_t *x = a, *y = b;
    char left[300], right[300];
    snprintf(left, sizeof left, "%s-%d", x->topic, x->partition);
    snprintf(right, sizeof right, "%s-%d", y->topic, y->partition);
    return strcmp(left, right);
}

static void add(struct found *f, const kafka_topic_info_t *topic, const struct part_filter *filter,
                bool exclude_internal)
{
    bool internal = topic->internal || tool_topic_is_internal(topic->name);
    if (exclude_internal && internal)
        return;
    kafka_topic_partition_t *grown =
        realloc(f->v, (f->n + topic->partitions_n + 1) * sizeof *grown);
    if (!grown)
        fail("out of memory");
    f->v = grown;
    for (size_t i = 0; i < topic->partitions_n; i++) {
        int32_t partition = topic->partitions[i].partition;
        if (part_filter_matches(filter, topic->name, partition))
            f->v[f->n++] = (kafka_topic_partition_t){topic->name, partition};
    }
}

static void print_offsets(kafka_consumer_t *c, const struct found *f, int64_t time, int64_t timeout)
{
    int64_t *times = calloc(f->n, sizeof *times), *offsets = calloc(f->n, sizeof *offsets);
    kafka_err_t *errs = calloc(f->n, sizeof *errs);
    if (!times || !offsets || !errs)
        fail("out of memory");
    for (size_t i = 0; i < f->n; i++)
        times[i] = time;
    kafka_err_t err =
        kafka_consumer_list_offsets(c, f->v, times, f->n, timeout, offsets, NULL, errs);
    if (err != KAFKA_OK)
        fail(tool_error(err));
    for (size_t i = 0; i < f->n; i++) {
        if (errs[i] != KAFKA_OK)
            fprintf(stderr, "Skip getting offsets for topic-partition %s-%d due to error: %s\n",
                    f->v[i].topic, f->v[i].partition, kafka_err_text(errs[i]));
        else if (offsets[i] >= 0)
            printf("%s:%d:%lld\n", f->v[i].topic, f->v[i].partition, (long long)offsets[i]);
    }
    free(times);
    free(offsets);
    free(errs);
}

int main(int argc, char **argv)
{
    static const char *const apart[] = {"topic", "partitions", NULL};
    static struct args a;
    struct found found = {NULL, 0};
    kafka_cluster_info_t *info;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    tool_excludes(&tool, &a, "topic-partitions", apart);
    int64_t time = read_time(a.time);
    struct part_filter *filter = part_filter_new(a.topic, a.partitions, a.topic_partitions);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.config);
    tool_conf_servers(&tool, conf, a.bootstrap, a.broker_list);
    int64_t timeout = tool_api_timeout(conf);

    kafka_admin_t *admin = tool_admin(conf);
    kafka_err_t err = kafka_admin_describe(admin, NULL, 0, timeout, &info);
    if (err != KAFKA_OK)
        fail(tool_error(err));
    for (size_t i = 0; i < info->topics_n; i++)
        add(&found, &info->topics[i], filter, a.exclude_internal);
    if (found.n == 0)
        fail("Could not match any topic-partitions with the specified filters");
    qsort(found.v, found.n, sizeof *found.v, by_text);
    tool_conf_set(conf, "allow.auto.create.topics", "false");
    kafka_consumer_t *consumer = tool_consumer(conf);
    print_offsets(consumer, &found, time, timeout);
    kafka_consumer_close(consumer);
    kafka_admin_close(admin);
    kafka_cluster_info_free(info);
    kafka_conf_free(conf);
    part_filter_free(filter);
    free(found.v);
    return tool_finish(0);
}
