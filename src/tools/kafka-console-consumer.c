/* kafka-console-consumer - prints the records of a topic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_format.h"
#include "tools/tool_io.h"
#include "tools/tool_progress.h"
#include "tools/tool_reading.h"

struct args {
    const char *bootstrap, *topic, *include, *whitelist, *offset, *group, *isolation;
    const char *formatter, *formatter_config, *key_deserializer, *value_deserializer, *config;
    int64_t partition, max_messages, timeout;
    bool from_beginning, skip, systest;
    struct tool_texts properties, consumer_properties;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(topic, "topic", TOOL_TEXT, "String: topic", "The topic to consume."),
    ROW(include, "include", TOOL_TEXT, "String: Java regex (String)",
        "Pattern of the topics to consume."),
    ROW(whitelist, "whitelist", TOOL_TEXT, "String: Java regex (String)",
        "Deprecated: use --include."),
    ROW(partition, "partition", TOOL_INT, "Integer: partition",
        "The one partition to consume; from its end unless --offset or --from-beginning is given.",
        .min = 0, .max = INT32_MAX),
    ROW(offset, "offset", TOOL_TEXT, "String: consume offset",
        "The offset to begin at: a number, earliest or latest. Needs --partition."),
    ROW(from_beginning, "from-beginning", TOOL_FLAG, NULL,
        "Begin with the earliest record instead of the latest."),
    ROW(group, "group", TOOL_TEXT, "String: consumer group id",
        "The consumer group (default: console-consumer-<a number>, which commits nothing)."),
    ROW(max_messages, "max-messages", TOOL_INT, "Integer: num_messages",
        "Stop after so many records.", .min = 0, .max = INT64_MAX),
    ROW(timeout, "timeout-ms", TOOL_INT, "Integer: timeout_ms",
        "Stop when no record has come for this time.", .min = 0, .max = INT64_MAX),
    ROW(isolation, "isolation-level", TOOL_TEXT, "String",
        "read_committed: leave out what open or aborted transactions wrote.",
        .fallback = "read_uncommitted"),
    ROW(skip, "skip-message-on-error", TOOL_FLAG, NULL, "Go on when a record cannot be formatted."),
    ROW(formatter, "formatter", TOOL_TEXT, "String: class",
        "How records are printed: DefaultMessageFormatter, LoggingMessageFormatter, "
        "NoOpMessageFormatter; of __consumer_offsets: OffsetsMessageFormatter, "
        "GroupMetadataMessageFormatter; of __transaction_state: TransactionLogMessageFormatter."),
    ROW(properties, "property", TOOL_TEXTS, "String: prop",
        "Setting of the formatter, name=value: print.timestamp, print.partition, print.offset, "
        "print.headers, print.key, print.value, key.separator, line.separator, headers.separator, "
        "null.literal, key.deserializer, value.deserializer, headers.deserializer. May be "
        "repeated."),
    ROW(formatter_config, "formatter-config", TOOL_TEXT, "String: config file",
        "The same from a file; --property wins."),
    ROW(key_deserializer, "key-deserializer", TOOL_TEXT, "String: deserializer for key",
        "What keys are: StringDeserializer, LongDeserializer, ..."),
    ROW(value_deserializer, "value-deserializer", TOOL_TEXT, "String: deserializer for values",
        "What values are."),
    ROW(consumer_properties, "consumer-property", TOOL_TEXTS, "String: consumer_prop",
        "Setting of the consumer, name=value. May be repeated."),
    ROW(config, "consumer.config", TOOL_TEXT, "String: config file",
        "Settings of the consumer; --consumer-property wins."),
    ROW(systest, "enable-systest-events", TOOL_FLAG, NULL, "Print shutdown_complete at the end."),
};

static const struct tool tool = {
    .name = "kafka-console-consumer",
    .about = "This tool helps to read data from Kafka topics and outputs it to standard output.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

static int64_t read_offset(const struct args *a)
{
    int64_t offset;
    if (a->from_beginning)
        return KAFKA_OFFSET_BEGINNING;
    if (!a->offset || strcmp(a->offset, "latest") == 0)
        return KAFKA_OFFSET_END;
    if (strcmp(a->offset, "earliest") == 0)
        return KAFKA_OFFSET_BEGINNING;
    if (!tool_int_of(a->offset, &offset) || offset < 0)
        tool_usage_error(&tool,
                         "The provided offset value '%s' is incorrect. Valid values are "
                         "'earliest', 'latest', or a non-negative long.",
                         a->offset);
    return offset;
}

static void check_args(const struct args *a)
{
    int topics = (a->topic != NULL) + (a->include || a->whitelist);
    bool one = a->partition != TOOL_NOT_GIVEN;
    if (topics != 1)
        tool_usage_error(&tool, "Exactly one of --include/--topic is required.");
    if (one && !a->topic)
        tool_usage_error(&tool, "The topic is required when partition is specified.");
    if (one && a->group)
        tool_usage_error(&tool, "Options group and partition cannot be specified together.");
    if (a->offset && !one)
        tool_usage_error(&tool, "The partition is required when offset is specified.");
    if (a->offset && a->from_beginning)
        tool_usage_error(&tool, "Options from-beginning and offset cannot be specified together.");
}

static kafka_conf_t *make_conf(const struct args *a)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_pairs(conf, &a->consumer_properties);
    tool_conf_servers(&tool, conf, a->bootstrap, NULL);
    tool_conf_default(conf, "client.id", "console-consumer");
    tool_conf_set(conf, "isolation.level", a->isolation);
    const char *reset = kafka_conf_get(conf, "auto.offset.reset");
    if (a->from_beginning && reset && strcmp(reset, "earliest") != 0)
        tool_usage_error(
            &tool,
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset=%s', "
            "please remove one option",
            reset);
    tool_conf_default(conf, "auto.offset.reset", a->from_beginning ? "earliest" : "latest");
    const char *group = kafka_conf_get(conf, "group.id");
    if (a->group && group && strcmp(group, a->group) != 0)
        tool_usage_error(&tool, "The group ids provided in different places (directly using "
                                "'--group', via '--consumer-property', or via "
                                "'--consumer.config') do not match.");
    if (a->partition != TOOL_NOT_GIVEN && group)
        tool_usage_error(&tool, "Options group and partition cannot be specified together.");
    if (a->group)
        tool_conf_set(conf, "group.id", a->group);
    else if (!group && a->partition == TOOL_NOT_GIVEN) {
        reading_random_group(conf, "console-consumer");
        tool_conf_default(conf, "enable.auto.commit", "false");
    }
    return conf;
}

/* ---- printing ---- */

struct printing {
    struct reading reading;
    struct format *format;
    const struct args *args;
    int64_t printed;
    struct progress progress;
};

static bool enough(const struct printing *p)
{
    return p->args->max_messages != TOOL_NOT_GIVEN && p->printed >= p->args->max_messages;
}

static int reader_gone(void)
{
    fputs("Unable to write to standard out, closing consumer.\n", stderr);
    return 0;
}

/* Exit status, or -1 to go on. */
static int print_message(struct printing *p, const kafka_message_t *m)
{
    const char *wrong = format_print(p->format, m, stdout);
    p->printed++;
    if (wrong && !p->args->skip) {
        tool_log_error("Error processing message, terminating consumer process: %s", wrong);
        return 1;
    }
    if (wrong)
        tool_log_error("Error processing message, skipping this message: %s", wrong);
    return -1;
}

static int print_messages(struct printing *p, const kafka_messages_t *m)
{
    int status = -1;
    size_t i = 0;
    while (status < 0 && i < kafka_messages_count(m) && !enough(p) && tool_output_ok())
        status = print_message(p, kafka_messages_at(m, i++));
    progress_step(&p->progress, p->printed);
    fflush(stdout); /* who watches sees records as they come */
    reading_give_back(&p->reading, m, i);
    return status < 0 && !tool_output_ok() ? reader_gone() : status;
}

static int run(struct printing *p)
{
    int64_t wait = p->args->timeout == TOOL_NOT_GIVEN ? -1 : p->args->timeout;
    kafka_err_t err = KAFKA_OK;
    int status = -1;
    if (p->args->partition != TOOL_NOT_GIVEN)
        err = reading_one(&p->reading, (int32_t)p->args->partition, read_offset(p->args));
    else
        reading_subscribe(&p->reading, p->args->include ? p->args->include : p->args->whitelist,
                          NULL);
    while (err == KAFKA_OK && status < 0 && !enough(p)) {
        kafka_messages_t *m;
        err = kafka_consumer_poll(p->reading.consumer, wait, &m);
        if (m) {
            status = print_messages(p, m);
            kafka_messages_free(m);
        } else if (err == KAFKA_OK && !tool_interrupted() && tool_output_ok()) {
            tool_log_error("Error processing message, terminating consumer process: no record "
                           "within %lld ms",
                           (long long)wait);
            return 0;
        }
        if (tool_interrupted())
            return 0;
        if (status < 0 && !enough(p) && !tool_output_ok())
            return reader_gone();
    }
    if (err != KAFKA_OK && err != KAFKA_ERR_WAKEUP) {
        tool_log_error("Error processing message, terminating consumer process: %s: %s",
                       kafka_err_name(err), tool_error(err));
        return 1;
    }
    return status < 0 ? 0 : status;
}

static void on_interrupt(void *consumer)
{
    kafka_consumer_wakeup(*(kafka_consumer_t **)consumer);
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    check_args(&a);
    read_offset(&a);
    struct printing p = {.args = &a,
                         .format = format_new(a.formatter, a.formatter_config, &a.properties,
                                              a.key_deserializer, a.value_deserializer)};
    kafka_conf_t *conf = make_conf(&a);
    reading_open(&p.reading, conf, a.topic);
    tool_on_interrupt(on_interrupt, &p.reading.consumer);
    tool_watch_output();
    progress_begin(&p.progress, progress_wanted(), NULL, 0);
    int status = run(&p);
    progress_end(&p.progress);
    tool_end_interrupts();
    status = tool_finish(status);
    if (a.systest)
        puts("shutdown_complete");
    fprintf(stderr, "Processed a total of %lld messages\n", (long long)p.printed);
    reading_close(&p.reading);
    format_free(p.format);
    kafka_conf_free(conf);
    return status;
}
