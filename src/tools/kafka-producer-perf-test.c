/* kafka-producer-perf-test - how fast, and how soon, records get to a topic.
 *
 * Each record's callback is given the time of its sending, in its pointer: no memory a record. The
 * callbacks come on one thread, which owns all counts. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_latency.h"
#include "tools/tool_pace.h"
#include "tools/tool_payload.h"

enum { WINDOW_US = 5000000, FAILURES_SHOWN = 10 };

struct args {
    const char *topic, *payload_file, *delimiter, *config, *transactional_id;
    int64_t records, record_size, transaction_ms, decimals;
    double throughput;
    bool monotonic, print_metrics;
    struct tool_texts props;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(topic, "topic", TOOL_TEXT, "TOPIC", "produce messages to this topic", .required = true),
    ROW(records, "num-records", TOOL_INT, "NUM-RECORDS", "number of messages to produce",
        .required = true, .min = 0, .max = INT64_MAX),
    ROW(throughput, "throughput", TOOL_REAL, "THROUGHPUT",
        "at most this many messages a second; -1: no limit", .required = true),
    ROW(record_size, "record-size", TOOL_INT, "RECORD-SIZE",
        "message size in bytes: random letters. One of this and the other two payloads is needed.",
        .min = 1, .max = INT32_MAX),
    ROW(payload_file, "payload-file", TOOL_TEXT, "PAYLOAD-FILE",
        "file of messages, of which one is picked each time"),
    ROW(monotonic, "payload-monotonic", TOOL_FLAG, NULL, "the messages are 0, 1, 2, ..."),
    ROW(delimiter, "payload-delimiter", TOOL_TEXT, "PAYLOAD-DELIMITER",
        "between the messages of the file", .fallback = "\\n"),
    ROW(props, "producer-props", TOOL_WORDS, "PROP-NAME=PROP-VALUE ...",
        "settings of the producer, like bootstrap.servers; win over --producer.config"),
    ROW(config, "producer.config", TOOL_TEXT, "CONFIG-FILE", "file of settings of the producer"),
    ROW(print_metrics, "print-metrics", TOOL_FLAG, NULL, "print metrics at the end"),
    ROW(transactional_id, "transactional-id", TOOL_TEXT, "TRANSACTIONAL-ID",
        "used with --transaction-duration-ms",
        .fallback = "performance-producer-default-transactional-id"),
    ROW(transaction_ms, "transaction-duration-ms", TOOL_INT, "TRANSACTION-DURATION",
        "commit each time this has passed; 0: no transactions", .fallback = "0", .min = 0,
        .max = INT32_MAX),
    ROW(decimals, "latency-decimals", TOOL_INT, "N",
        "digits behind the point of the percentiles (kafkad's own)", .fallback = "0", .min = 0,
        .max = 3),
};

static const struct tool tool = {
    .name = "kafka-producer-perf-test",
    .about = "This tool is used to verify the producer performance.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
    .terse = true,
    .help_if_bare = true,
};

/* ---- counts, of the callbacks' thread ---- */

struct counts {
    struct latency all;
    uint64_t bytes, failed;
    atomic_uint_fast64_t done; /* read by others */
    uint64_t start_us;
    /* since the last line */
    uint64_t window_start_us, window_n, window_bytes, window_sum_us, window_max_us;
};

static struct counts counts;

static double mb(double bytes)
{
    return bytes / (1024 * 1024);
}

static void print_window(uint64_t now)
{
    double seconds = (double)(now - counts.window_start_us) / 1e6;
    printf("%llu records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max "
           "latency.\n",
           (unsigned long long)counts.window_n, (double)counts.window_n / seconds,
           mb((double)counts.window_bytes) / seconds,
           (double)counts.window_sum_us / (double)counts.window_n / 1000,
           (double)counts.window_max_us / 1000);
    fflush(stdout);
    counts.window_start_us = now;
    counts.window_n = counts.window_bytes = counts.window_sum_us = counts.window_max_us = 0;
}

static void count_failure(const kafka_delivery_t *d)
{
    if (++counts.failed <= FAILURES_SHOWN)
        tool_log_error("%s: %s", kafka_err_name(d->err), d->error_message);
}

/* What stands in a callback's pointer: microseconds since the start, and the record's size. */
enum { SIZE_BITS = 24 };
static void *make_tag(uint64_t sent_us, size_t size)
{
    return (void *)(uintptr_t)((sent_us << SIZE_BITS) | (size & ((1 << SIZE_BITS) - 1)));
}

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    uint64_t tag = (uint64_t)(uintptr_t)arg, now = tool_now_us();
    atomic_fetch_add_explicit(&counts.done, 1, memory_order_relaxed);
    if (d->err != KAFKA_OK) {
        count_failure(d);
        return;
    }
    uint64_t us = now - counts.start_us - (tag >> SIZE_BITS);
    latency_add(&counts.all, us);
    counts.bytes += tag & ((1 << SIZE_BITS) - 1);
    counts.window_n++;
    counts.window_bytes += tag & ((1 << SIZE_BITS) - 1);
    counts.window_sum_us += us;
    if (us > counts.window_max_us)
        counts.window_max_us = us;
    if (now - counts.window_start_us >= WINDOW_US)
        print_window(now);
}

static void print_total(int decimals)
{
    const struct latency *l = &counts.all;
    double seconds = (double)(tool_now_us() - counts.start_us) / 1e6;
    double parts[] = {0.5, 0.95, 0.99, 0.999};
    static const char *const names[] = {"50th", "95th", "99th", "99.9th"};
    printf("%llu records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max "
           "latency",
           (unsigned long long)l->n, (double)l->n / seconds, mb((double)counts.bytes) / seconds,
           latency_mean(l), latency_max(l));
    for (int i = 0; i < 4; i++) {
        double ms = latency_percentile(l, parts[i]);
        printf(", %.*f ms %s", decimals, decimals ? ms : floor(ms), names[i]);
    }
    printf(".\n");
}

static void print_metrics(const kafka_conf_t *conf)
{
    const char *id = kafka_conf_get(conf, "client.id");
    double seconds = (double)(tool_now_us() - counts.start_us) / 1e6;
    struct {
        const char *name;
        double value;
    } rows[] = {
        {"outgoing-byte-rate", (double)counts.bytes / seconds},
        {"record-error-total", (double)counts.failed},
        {"record-send-rate", (double)counts.all.n / seconds},
        {"record-send-total", (double)counts.all.n},
        {"request-latency-avg", latency_mean(&counts.all)},
        {"request-latency-max", latency_max(&counts.all)},
    };
    printf("\n%-70s   %s\n", "Metric Name", "Value");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[256];
        snprintf(name, sizeof name, "producer-metrics:%s:{client-id=%s}", rows[i].name,
                 id ? id : "");
        printf("%-70s : %.3f\n", name, rows[i].value);
    }
}

/* ---- transactions: each --transaction-duration-ms one ---- */

struct transactions {
    kafka_producer_t *p;
    uint64_t each_us; /* 0: none are wanted */
    uint64_t begun_us;
    bool open;
};

static void must(kafka_err_t err)
{
    if (err != KAFKA_OK)
        tool_die("%s: %s", kafka_err_name(err), tool_error(err));
}

static void before_record(struct transactions *t)
{
    if (t->each_us == 0 || t->open)
        return;
    must(kafka_producer_begin_transaction(t->p));
    t->open = true;
    t->begun_us = tool_now_us();
}

static void after_record(struct transactions *t, bool last)
{
    if (!t->open || (!last && tool_now_us() - t->begun_us < t->each_us))
        return;
    must(kafka_producer_commit_transaction(t->p, -1));
    t->open = false;
}

/* ---- the run ---- */

static void send_all(kafka_producer_t *p, const struct args *a, struct payload *payload)
{
    int64_t wall_ms = clock_wall_ms(clock_real());
    struct transactions t = {.p = p, .each_us = (uint64_t)a->transaction_ms * 1000};
    if (t.each_us)
        must(kafka_producer_init_transactions(p, -1));
    for (int64_t i = 0; i < a->records && tool_pace(a->throughput, counts.start_us, i); i++) {
        size_t n;
        uint64_t since = tool_now_us() - counts.start_us;
        kafka_record_t record = {.topic = a->topic,
                                 .partition = KAFKA_PARTITION_ANY,
                                 .timestamp = wall_ms + (int64_t)(since / 1000)};
        record.value = payload_at(payload, (uint64_t)i, &n);
        record.value_len = n;
        before_record(&t);
        must(kafka_producer_send(p, &record, on_delivery, make_tag(since, n)));
        after_record(&t, false);
    }
    after_record(&t, true);
}

static struct payload *make_payload(const struct args *a)
{
    if ((a->record_size != TOOL_NOT_GIVEN) + (a->payload_file != NULL) + a->monotonic != 1)
        tool_usage_error(&tool, "one of --record-size, --payload-file and --payload-monotonic is "
                                "needed");
    if (a->payload_file)
        return payload_file(a->payload_file, a->delimiter);
    return a->monotonic ? payload_numbers() : payload_random((size_t)a->record_size);
}

static kafka_conf_t *make_conf(const struct args *a)
{
    if (a->props.n == 0 && !a->config)
        tool_usage_error(&tool, "Either --producer-props or --producer.config must be specified.");
    if (a->throughput == 0)
        tool_usage_error(&tool, "--throughput 0: nothing would ever be sent; -1 is without limit");
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_pairs(conf, &a->props);
    tool_conf_default(conf, "client.id", "perf-producer-client");
    if (a->transaction_ms > 0)
        tool_conf_set(conf, "transactional.id", a->transactional_id);
    return conf;
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    kafka_conf_t *conf = make_conf(&a);
    struct payload *payload = make_payload(&a);
    tool_on_interrupt(NULL, NULL);
    tool_end_without_progress(&counts.done);
    kafka_producer_t *p = tool_producer(conf);
    counts.start_us = counts.window_start_us = tool_now_us();
    send_all(p, &a, payload);
    kafka_producer_flush(p, -1);
    kafka_producer_close(p, -1);
    print_total((int)a.decimals);
    if (counts.failed > FAILURES_SHOWN)
        tool_log_error("%llu records were not sent", (unsigned long long)counts.failed);
    if (a.print_metrics)
        print_metrics(conf);
    payload_free(payload);
    kafka_conf_free(conf);
    return tool_finish(tool_interrupted() ? 130 : 0);
}
