/* kafka-console-producer - sends each line of standard input as a record. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_line_reader.h"
#include "tools/tool_lines.h"
#include "tools/tool_progress.h"

struct args {
    const char *topic, *bootstrap, *broker_list, *compression, *acks, *line_reader;
    const char *reader_config, *config;
    bool sync;
    int64_t batch_size, partition_memory, retries, backoff, linger, request_timeout;
    int64_t metadata_age, max_block, memory, socket_buffer;
    struct tool_texts properties, producer_properties;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)
#define MS .min = 0, .max = INT64_MAX
#define I32 .min = 0, .max = INT32_MAX

static const struct tool_option options[] = {
    ROW(topic, "topic", TOOL_TEXT, "String: topic", "The topic to send to.", .required = true),
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "REQUIRED unless --broker-list is given: the brokers to connect to, "
        "host:port[,host:port...]."),
    ROW(broker_list, "broker-list", TOOL_TEXT, "String: broker-list",
        "Deprecated: use --bootstrap-server."),
    ROW(sync, "sync", TOOL_FLAG, NULL, "Wait for each record's outcome before the next line."),
    ROW(compression, "compression-codec", TOOL_MAYBE, "String: compression-codec",
        "none, gzip, snappy, lz4 or zstd (default: none; gzip when given without a value)."),
    ROW(batch_size, "batch-size", TOOL_INT, "Integer: size",
        "Bytes of a batch (default: 16384); --max-partition-memory-bytes takes its place.", I32),
    ROW(partition_memory, "max-partition-memory-bytes", TOOL_INT, "Integer: memory in bytes",
        "Bytes of a batch (default: 16384).", I32),
    ROW(retries, "message-send-max-retries", TOOL_INT, "Integer",
        "How often a batch is sent again (default: 3).", I32),
    ROW(backoff, "retry-backoff-ms", TOOL_INT, "Long", "Wait before that (default: 100).", MS),
    ROW(linger, "timeout", TOOL_INT, "Long: timeout_ms",
        "How long a record may wait for others to share a batch with (default: 1000).", MS),
    ROW(acks, "request-required-acks", TOOL_TEXT, "String: request required acks",
        "0, 1, -1 or all (default: -1)."),
    ROW(request_timeout, "request-timeout-ms", TOOL_INT, "Integer: request timeout ms",
        "How long to wait for an answer (default: 1500).", I32),
    ROW(metadata_age, "metadata-expiry-ms", TOOL_INT, "Long: metadata expiration interval",
        "Metadata is asked for again after this time (default: 300000).", MS),
    ROW(max_block, "max-block-ms", TOOL_INT, "Long: max block on send",
        "How long to wait for metadata or room in memory (default: 60000).", MS),
    ROW(memory, "max-memory-bytes", TOOL_INT, "Long: total memory in bytes",
        "Memory for records that wait (default: 33554432).", MS),
    ROW(socket_buffer, "socket-buffer-size", TOOL_INT, "Integer: size",
        "Bytes of the socket's send buffer (default: 102400).", I32),
    ROW(line_reader, "line-reader", TOOL_TEXT, "String: reader_class",
        "Accepted; lines are read as the standard reader does."),
    ROW(properties, "property", TOOL_TEXTS, "String: prop",
        "Setting of the line reader, name=value: parse.key, key.separator, parse.headers, "
        "headers.delimiter, headers.separator, headers.key.separator, ignore.error, null.marker. "
        "May be repeated."),
    ROW(reader_config, "reader-config", TOOL_TEXT, "String: config file",
        "The same from a file; --property wins."),
    ROW(producer_properties, "producer-property", TOOL_TEXTS, "String: producer_prop",
        "Setting of the producer, name=value. May be repeated."),
    ROW(config, "producer.config", TOOL_TEXT, "String: config file",
        "Settings of the producer; --producer-property wins."),
};

static const struct tool tool = {
    .name = "kafka-console-producer",
    .about = "This tool helps to read data from standard input and publish it to Kafka.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

static void set_number(kafka_conf_t *conf, const char *key, int64_t given, const char *fallback)
{
    if (given != TOOL_NOT_GIVEN)
        tool_conf_set_int(conf, key, given);
    else
        tool_conf_default(conf, key, fallback);
}

/* Explicit flags win over --producer-property, which wins over the file; defaults come last. */
static kafka_conf_t *make_conf(const struct args *a)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_pairs(conf, &a->producer_properties);
    tool_conf_servers(&tool, conf, a->bootstrap, a->broker_list);
    tool_conf_default(conf, "client.id", "console-producer");
    tool_conf_set(conf, "compression.type",
                  !a->compression   ? "none"
                  : *a->compression ? a->compression
                                    : "gzip");
    if (a->acks)
        tool_conf_set(conf, "acks", a->acks);
    tool_conf_default(conf, "acks", "-1");
    set_number(conf, "batch.size",
               a->partition_memory != TOOL_NOT_GIVEN ? a->partition_memory : a->batch_size,
               "16384");
    set_number(conf, "retries", a->retries, "3");
    set_number(conf, "retry.backoff.ms", a->backoff, "100");
    set_number(conf, "linger.ms", a->linger, "1000");
    set_number(conf, "request.timeout.ms", a->request_timeout, "1500");
    set_number(conf, "metadata.max.age.ms", a->metadata_age, "300000");
    set_number(conf, "max.block.ms", a->max_block, "60000");
    set_number(conf, "buffer.memory", a->memory, "33554432");
    set_number(conf, "send.buffer.bytes", a->socket_buffer, "102400");
    return conf;
}

/* ---- sending ---- */

enum { FAILURES_SHOWN = 10 };
struct sending {
    kafka_producer_t *producer;
    const struct args *args;
    atomic_uint_fast64_t failed, done;
};

static void tell_failure(struct sending *s, const char *text)
{
    uint64_t n = atomic_fetch_add(&s->failed, 1) + 1;
    if (n <= FAILURES_SHOWN)
        tool_log_error("Error when sending message to topic %s: %s", s->args->topic, text);
    if (n == FAILURES_SHOWN)
        tool_log_error("further failures are counted only");
}

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    atomic_fetch_add(&((struct sending *)arg)->done, 1);
    if (d->err != KAFKA_OK)
        tell_failure(arg, d->error_message);
}

/* false: stop, the line's record cannot be sent. */
static bool send_record(struct sending *s, const kafka_record_t *record)
{
    kafka_err_t err = s->args->sync ? kafka_producer_send_sync(s->producer, record, NULL)
                                    : kafka_producer_send(s->producer, record, on_delivery, s);
    if (err != KAFKA_OK)
        tell_failure(s, tool_error(err));
    return err == KAFKA_OK || !s->args->sync;
}

/* Returns the exit status. */
static int send_lines(struct sending *s, struct line_reader *reader)
{
    bool typed = isatty(STDIN_FILENO), prompt = typed && isatty(STDOUT_FILENO);
    struct tool_lines lines;
    struct progress progress;
    int64_t sent = 0;
    char *line;
    size_t n;
    int rc = 1, status = 0;
    tool_lines_init(&lines, STDIN_FILENO);
    progress_begin(&progress, !typed && isatty(STDERR_FILENO), NULL, 0);
    while (status == 0 && !tool_interrupted()) {
        if (prompt) {
            putchar('>');
            fflush(stdout);
        }
        if ((rc = tool_lines_next(&lines, &line, &n)) <= 0)
            break;
        kafka_record_t record = {.topic = s->args->topic,
                                 .partition = KAFKA_PARTITION_ANY,
                                 .timestamp = KAFKA_TIMESTAMP_NOW};
        const char *wrong = line_reader_parse(reader, line, n, &record);
        if (wrong) {
            tool_log_error("%s", wrong);
            status = 1;
        } else if (!send_record(s, &record)) {
            status = 1;
        }
        progress_step(&progress, ++sent);
    }
    progress_end(&progress);
    if (rc < 0) {
        tool_log_error("reading standard input: %s", strerror(-rc));
        status = 1;
    }
    tool_lines_fini(&lines);
    return tool_interrupted() ? 130 : status;
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    tool_on_interrupt(NULL, NULL);
    struct line_reader *reader = line_reader_new(a.reader_config, &a.properties);
    kafka_conf_t *conf = make_conf(&a);
    struct sending s = {.producer = tool_producer(conf), .args = &a};
    tool_end_without_progress(&s.done);
    int status = send_lines(&s, reader);
    kafka_producer_close(s.producer, -1);
    uint64_t failed = atomic_load(&s.failed);
    if (failed > FAILURES_SHOWN)
        tool_log_error("%llu records were not sent", (unsigned long long)failed);
    kafka_conf_free(conf);
    line_reader_free(reader);
    return tool_finish(status);
}
