/* kafka-consumer-perf-test - how fast records of a topic can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/tool_conf.h"
#include "tools/tool_date.h"
#include "tools/tool_io.h"
#include "tools/tool_reading.h"

struct args {
    const char *bootstrap, *broker_list, *topic, *group, *date_format, *config;
    int64_t messages, fetch_size, socket_buffer, timeout, interval, threads, fetch_threads;
    bool from_latest, detailed, hide_header, print_metrics;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)
#define I32 .max = INT32_MAX

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server to connect to",
        "REQUIRED unless --broker-list is given: the brokers to connect to."),
    ROW(broker_list, "broker-list", TOOL_TEXT, "String: broker-list",
        "Deprecated: use --bootstrap-server."),
    ROW(topic, "topic", TOOL_TEXT, "String: topic", "The topic to consume from.", .required = true),
    ROW(messages, "messages", TOOL_INT, "Long: count", "The number of messages to consume.",
        .required = true, .min = 0, .max = INT64_MAX),
    ROW(group, "group", TOOL_TEXT, "String: gid",
        "The consumer group (default: perf-consumer-<a number>)."),
    ROW(fetch_size, "fetch-size", TOOL_INT, "Integer: size",
        "The amount of data to fetch in a single request, for each partition.",
        .fallback = "1048576", .min = 1, I32),
    ROW(from_latest, "from-latest", TOOL_FLAG, NULL,
        "Start with the latest message instead of the earliest."),
    ROW(socket_buffer, "socket-buffer-size", TOOL_INT, "Integer: size",
        "The size of the socket's receive buffer.", .fallback = "2097152", .min = -1, I32),
    ROW(timeout, "timeout", TOOL_INT, "Long: milliseconds",
        "The longest time between returned records.", .fallback = "10000", .min = 0,
        .max = INT64_MAX),
    ROW(interval, "reporting-interval", TOOL_INT, "Integer: interval_ms",
        "Milliseconds between lines of --show-detailed-stats.", .fallback = "5000", .min = 1, I32),
    ROW(detailed, "show-detailed-stats", TOOL_FLAG, NULL,
        "A line each interval instead of the summary."),
    ROW(date_format, "date-format", TOOL_TEXT, "String: date format",
        "How times are printed, as Java's SimpleDateFormat has it.",
        .fallback = "yyyy-MM-dd HH:mm:ss:SSS"),
    ROW(hide_header, "hide-header", TOOL_FLAG, NULL, "Leave the header out."),
    ROW(print_metrics, "print-metrics", TOOL_FLAG, NULL, "Print metrics at the end."),
    ROW(config, "consumer.config", TOOL_TEXT, "String: config file", "Settings of the consumer."),
    ROW(threads, "threads", TOOL_INT, "Integer: count", "Deprecated and ignored."),
    ROW(fetch_threads, "num-fetch-threads", TOOL_INT, "Integer: count", "Deprecated and ignored."),
};

static const struct tool tool = {
    .name = "kafka-consumer-perf-test",
    .about = "This tool is used to verify the consumer performance.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

struct counts {
    int64_t start_wall, start;
    int64_t join_start;      /* of the rebalance under way; -1: none */
    int64_t join, last_join; /* milliseconds in rebalances, in all and in this interval */
    int64_t bytes, messages;
    int64_t last_report, last_bytes, last_messages;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_real());
}

static double mb(int64_t bytes)
{
    return (double)bytes / (1024 * 1024);
}

static double rate(double what, int64_t ms)
{
    return ms > 0 ? what / ((double)ms / 1000) : 0;
}

static void print_header(const struct args *a)
{
    if (a->hide_header)
        return;
    printf("%s, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
           "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n",
           a->detailed ? "time, threadId" : "start.time, end.time");
    fflush(stdout);
}

static void print_interval(const struct args *a, struct counts *c, int64_t now)
{
    char at[128];
    int64_t ms = now - c->last_report, join = c->last_join;
    double read = mb(c->bytes - c->last_bytes);
    double messages = (double)(c->messages - c->last_messages);
    tool_date(at, sizeof at, a->date_format, c->start_wall + now - c->start);
    printf("%s, 0, %.4f, %.4f, %lld, %.4f, %lld, %lld, %.4f, %.4f\n", at, mb(c->bytes),
           rate(read, ms), (long long)c->messages, rate(messages, ms), (long long)join,
           (long long)(ms - join), rate(read, ms - join), rate(messages, ms - join));
    fflush(stdout);
    c->last_join = 0;
    c->last_report = now;
    c->last_bytes = c->bytes;
    c->last_messages = c->messages;
}

static void print_summary(const struct args *a, const struct counts *c)
{
    char from[128], to[128];
    int64_t ms = now_ms() - c->start, join = c->join, fetch = ms - join;
    tool_date(from, sizeof from, a->date_format, c->start_wall);
    tool_date(to, sizeof to, a->date_format, c->start_wall + ms);
    printf("%s, %s, %.4f, %.4f, %lld, %.4f, %lld, %lld, %.4f, %.4f\n", from, to, mb(c->bytes),
           rate(mb(c->bytes), ms), (long long)c->messages, rate((double)c->messages, ms),
           (long long)join, (long long)fetch, rate(mb(c->bytes), fetch),
           rate((double)c->messages, fetch));
}

static void print_metrics(const kafka_conf_t *conf, const struct counts *c)
{
    const char *id = kafka_conf_get(conf, "client.id");
    int64_t ms = now_ms() - c->start;
    struct {
        const char *name;
        double value;
    } rows[] = {
        {"bytes-consumed-rate", rate((double)c->bytes, ms)},
        {"bytes-consumed-total", (double)c->bytes},
        {"records-consumed-rate", rate((double)c->messages, ms)},
        {"records-consumed-total", (double)c->messages},
    };
    printf("\n%-70s   %s\n", "Metric Name", "Value");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[256];
        snprintf(name, sizeof name, "consumer-fetch-manager-metrics:%s:{client-id=%s}",
                 rows[i].name, id ? id : "");
        printf("%-70s : %.3f\n", name, rows[i].value);
    }
}

/* ---- the run ---- */

static void count(struct counts *c, const kafka_messages_t *m)
{
    size_t n = kafka_messages_count(m);
    for (size_t i = 0; i < n; i++) {
        const kafka_message_t *one = kafka_messages_at(m, i);
        c->bytes += (int64_t)(one->key_len + one->value_len);
    }
    c->messages += (int64_t)n;
}

static void on_revoked(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    ((struct counts *)arg)->join_start = now_ms();
}

static void on_assigned(kafka_consumer_t *consumer, const kafka_topic_partition_t *tps, size_t n,
                        void *arg)
{
    struct counts *c = arg;
    if (c->join_start < 0)
        return;
    c->join += now_ms() - c->join_start;
    c->last_join += now_ms() - c->join_start;
    c->join_start = -1;
}

static void consume(struct reading *r, const struct args *a, struct counts *c)
{
    enum { TURN_MS = 100 };
    int64_t last = now_ms();
    while (c->messages < a->messages && now_ms() - last <= a->timeout && !tool_interrupted()) {
        kafka_messages_t *m;
        kafka_err_t err = kafka_consumer_poll(r->consumer, TURN_MS, &m);
        int64_t now = now_ms();
        if (err == KAFKA_ERR_WAKEUP)
            break;
        if (err != KAFKA_OK)
            tool_die("%s: %s", kafka_err_name(err), tool_error(err));
        if (m) {
            last = now;
            count(c, m);
            kafka_messages_free(m);
        }
        if (a->detailed && now - c->last_report >= a->interval)
            print_interval(a, c, now);
    }
    if (c->messages < a->messages && !tool_interrupted())
        printf("WARNING: Exiting before consuming the expected number of messages: timeout (%lld "
               "ms) exceeded. You can use the --timeout option to increase the timeout.\n",
               (long long)a->timeout);
}

static kafka_conf_t *make_conf(const struct args *a)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_servers(&tool, conf, a->bootstrap, a->broker_list);
    tool_conf_set_int(conf, "max.partition.fetch.bytes", a->fetch_size);
    tool_conf_set_int(conf, "receive.buffer.bytes", a->socket_buffer);
    tool_conf_set(conf, "auto.offset.reset", a->from_latest ? "latest" : "earliest");
    tool_conf_default(conf, "client.id", "perf-consumer-client");
    if (a->group)
        tool_conf_set(conf, "group.id", a->group);
    else
        reading_random_group(conf, "perf-consumer");
    if (a->threads != TOOL_NOT_GIVEN || a->fetch_threads != TOOL_NOT_GIVEN)
        puts("WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be "
             "ignored by the test");
    return conf;
}

static void on_interrupt(void *consumer)
{
    kafka_consumer_wakeup(*(kafka_consumer_t **)consumer);
}

int main(int argc, char **argv)
{
    static struct args a;
    struct reading reading;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    kafka_conf_t *conf = make_conf(&a);
    reading_open(&reading, conf, a.topic);
    tool_on_interrupt(on_interrupt, &reading.consumer);
    print_header(&a);
    struct counts c = {.start_wall = clock_wall_ms(clock_real()), .start = now_ms()};
    c.last_report = c.join_start = c.start;
    reading_subscribe(
        &reading, NULL,
        &(kafka_rebalance_listener_t){.assigned = on_assigned, .revoked = on_revoked, .arg = &c});
    consume(&reading, &a, &c);
    if (a.detailed)
        print_interval(&a, &c, now_ms());
    else
        print_summary(&a, &c);
    if (a.print_metrics)
        print_metrics(conf, &c);
    tool_end_interrupts();
    reading_close(&reading);
    kafka_conf_free(conf);
    return tool_finish(tool_interrupted() ? 130 : 0);
}
