/* kafka-e2e-latency - sends one record, waits until a consumer has it, again and again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_latency.h"
#include "tools/tool_payload.h"
#include "tools/tool_reading.h"

enum { REPORT_EACH = 1000 };

struct args {
    int64_t decimals;
    struct tool_texts words;
};

static const struct tool_option options[] = {
    TOOL_ROW(struct args, decimals, "latency-decimals", TOOL_INT, "N",
             "Digits behind the point of the percentiles (kafkad's own).", .fallback = "0",
             .min = 0, .max = 3),
};

static const struct tool tool = {
    .name = "kafka-e2e-latency",
    .about = "This tool measures the time from sending a record to receiving it.",
    .options = options,
    .options_n = 1,
    .words = "broker_list topic num_messages producer_acks message_size_bytes [properties_file]",
    .words_at = offsetof(struct args, words),
};

struct run {
    kafka_admin_t *admin;
    kafka_producer_t *producer;
    struct reading reading;
    struct payload *payload;
    const char *topic;
    int64_t count;
    int64_t timeout_ms; /* of each call and each record: default.api.timeout.ms */
    struct latency latency;
};

static void check(kafka_err_t err, const char *what)
{
    if (err != KAFKA_OK)
        tool_die("%s: %s: %s", what, kafka_err_name(err), tool_error(err));
}

static void make_topic(struct run *r)
{
    kafka_cluster_info_t *info;
    char message[512] = "";
    check(kafka_admin_describe(r->admin, &r->topic, 1, r->timeout_ms, &info),
          "looking for the topic");
    bool missing = info->topics_n == 1 && info->topics[0].err == KERR_UNKNOWN_TOPIC_OR_PARTITION;
    kafka_cluster_info_free(info);
    if (!missing)
        return;
    printf("Topic \"%s\" does not exist. Will create topic with 1 partition(s) and replication "
           "factor = 1\n",
           r->topic);
    kafka_err_t err = kafka_admin_create_topic(r->admin, r->topic, 1, 1, NULL, 0, NULL, 0,
                                               r->timeout_ms, message, sizeof message);
    if (err != KAFKA_OK)
        tool_die("creating topic %s: %s", r->topic, *message ? message : tool_error(err));
}

/* The consumer stands at the end of every partition before the first record goes out. */
static void go_to_end(struct run *r)
{
    int64_t offset;
    struct reading *reading = &r->reading;
    kafka_err_t err;
    while ((err = reading_all(reading)) == KERR_UNKNOWN_TOPIC_OR_PARTITION && tool_sleep_ms(100))
        ;
    check(err, "assigning partitions");
    for (size_t i = 0; i < reading->parts_n; i++)
        check(kafka_consumer_position(reading->consumer, reading->parts[i].topic,
                                      reading->parts[i].partition, r->timeout_ms, &offset),
              "finding the end");
}

static void receive(struct run *r, const void *value, size_t n)
{
    kafka_messages_t *m;
    check(kafka_consumer_poll(r->reading.consumer, r->timeout_ms, &m), "receiving");
    if (!m)
        tool_die("poll() timed out before finding a result (timeout:[%lld])",
                 (long long)r->timeout_ms);
    if (kafka_messages_count(m) != 1)
        tool_die("Only one result was expected during this test. We found [%zu]",
                 kafka_messages_count(m));
    const kafka_message_t *got = kafka_messages_at(m, 0);
    if (got->value_len != n || memcmp(got->value, value, n) != 0)
        tool_die("The message read is not the message sent");
    kafka_messages_free(m);
}

static uint64_t now_ns(void)
{
    return (uint64_t)clock_mono_ns(clock_real());
}

static void measure(struct run *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        size_t n;
        const void *value = payload_at(r->payload, (uint64_t)i, &n);
        kafka_record_t record = {.topic = r->topic,
                                 .partition = KAFKA_PARTITION_ANY,
                                 .timestamp = KAFKA_TIMESTAMP_NOW,
                                 .value = value,
                                 .value_len = n};
        uint64_t begin = now_ns();
        check(kafka_producer_send_sync(r->producer, &record, NULL), "sending");
        receive(r, value, n);
        uint64_t took = now_ns() - begin;
        latency_add(&r->latency, took / 1000);
        if (i % REPORT_EACH == 0) {
            printf("%lld\t%f\n", (long long)i, (double)took / 1e6);
            fflush(stdout);
        }
    }
}

static void print_result(const struct run *r, int decimals)
{
    static const double parts[] = {0.5, 0.99, 0.999};
    static const char *const names[] = {"50th", "99th", "99.9th"};
    printf("Avg latency: %.4f ms\n", latency_mean(&r->latency));
    printf("Percentiles: ");
    for (int i = 0; i < 3; i++) {
        double ms = latency_percentile(&r->latency, parts[i]);
        printf("%s%s = %.*f", i ? ", " : "", names[i], decimals, decimals ? ms : floor(ms));
    }
    putchar('\n');
}

static int64_t read_count(const char *text, const char *what, int64_t max)
{
    int64_t n;
    if (!tool_int_of(text, &n) || n < 1 || n > max)
        tool_die("%s is %s: a number from 1 to %lld is wanted", what, text, (long long)max);
    return n;
}

static kafka_conf_t *make_conf(const char *servers, const char *file)
{
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, file);
    tool_conf_servers(&tool, conf, servers, NULL);
    return conf;
}

int main(int argc, char **argv)
{
    static struct run r;
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    if (a.words.n != 5 && a.words.n != 6) {
        fprintf(stderr, "USAGE: %s %s\n", tool.name, tool.words);
        return 1;
    }
    const char *acks = a.words.v[3];
    if (strcmp(acks, "1") != 0 && strcmp(acks, "all") != 0)
        tool_die("Latency testing requires synchronous acknowledgement. Please use 1 or all");
    r.topic = a.words.v[1];
    r.count = read_count(a.words.v[2], "num_messages", INT64_MAX - 1);
    r.payload = payload_random((size_t)read_count(a.words.v[4], "message_size_bytes", INT32_MAX));

    const char *file = a.words.n == 6 ? a.words.v[5] : NULL;
    kafka_conf_t *conf = make_conf(a.words.v[0], file);
    r.admin = tool_admin(conf);
    r.timeout_ms = tool_api_timeout(conf);
    make_topic(&r);
    kafka_conf_t *reading = make_conf(a.words.v[0], file);
    tool_conf_set(reading, "auto.offset.reset", "latest");
    reading_open(&r.reading, reading, r.topic);
    kafka_conf_t *sending = make_conf(a.words.v[0], file);
    tool_conf_set(sending, "acks", acks);
    tool_conf_set(sending, "linger.ms", "0");
    r.producer = tool_producer(sending);
    go_to_end(&r);
    measure(&r);
    print_result(&r, (int)a.decimals);

    kafka_producer_close(r.producer, -1);
    reading_close(&r.reading);
    kafka_admin_close(r.admin);
    kafka_conf_free(conf);
    kafka_conf_free(reading);
    kafka_conf_free(sending);
    payload_free(r.payload);
    return tool_finish(0);
}
