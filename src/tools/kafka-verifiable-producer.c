/* kafka-verifiable-producer - sends numbers, and says of each as a line of JSON what became of it.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "protocol/codec.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_json.h"
#include "tools/tool_pace.h"

struct args {
    const char *topic, *bootstrap, *broker_list, *config;
    int64_t max_messages, throughput, acks, create_time, value_prefix, repeating_keys;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(topic, "topic", TOOL_TEXT, "TOPIC", "The topic to send to.", .required = true),
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "HOST1:PORT1[,HOST2:PORT2[...]]",
        "REQUIRED unless --broker-list is given: the brokers to connect to."),
    ROW(broker_list, "broker-list", TOOL_TEXT, "HOST1:PORT1[,HOST2:PORT2[...]]",
        "Deprecated: use --bootstrap-server."),
    ROW(max_messages, "max-messages", TOOL_INT, "MAX-MESSAGES",
        "Send so many records; -1: until a signal comes.", .fallback = "-1"),
    ROW(throughput, "throughput", TOOL_INT, "THROUGHPUT",
        "At most so many records in a second; -1: without limit.", .fallback = "-1"),
    ROW(acks, "acks", TOOL_INT, "ACKS", "0, 1 or -1 (all in-sync replicas).", .fallback = "-1",
        .min = -1, .max = 1),
    ROW(config, "producer.config", TOOL_TEXT, "CONFIG_FILE",
        "Settings of the producer, which win over those of the flags."),
    ROW(create_time, "message-create-time", TOOL_INT, "CREATETIME",
        "The time (ms) of the first record; the others' go on from there. -1: now.",
        .fallback = "-1"),
    ROW(value_prefix, "value-prefix", TOOL_INT, "VALUE-PREFIX",
        "A number and a dot in front of each value."),
    ROW(repeating_keys, "repeating-keys", TOOL_INT, "REPEATING-KEYS",
        "Keys 0 to n-1 in turn; without it keys are null.", .min = 1, .max = INT32_MAX),
};

static const struct tool tool = {
    .name = "kafka-verifiable-producer",
    .about = "This tool produces increasing integers to the specified topic and prints JSON "
             "metadata to stdout on each \"send\" request, making externally visible which "
             "messages have been acked and which have not.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
    .terse = true,
    .help_if_bare = true,
};

enum { WAITING_MAX = 20000 };

struct sending {
    const struct args *args;
    kafka_producer_t *producer;
    uint64_t start_us;
    int64_t sent;
    atomic_int_fast64_t acked;
    atomic_uint_fast64_t done; /* acked or failed */
};

/* What a delivery needs to know of its record; freed by it. */
struct sent {
    struct sending *sending;
    char key[24], value[48];
    bool has_key;
};

static void put_record(struct buf *line, const struct sent *r)
{
    buf_printf(line, ",\"key\":");
    json_put_str(line, r->has_key ? str_of(r->key) : STR_NULL);
    buf_printf(line, ",\"value\":");
    json_put_str(line, str_of(r->value));
}

static void print_success(const struct sent *r, const kafka_delivery_t *d)
{
    struct buf line = BUF_INIT;
    tool_json_begin(&line, "producer_send_success");
    put_record(&line, r);
    buf_printf(&line, ",\"partition\":%" PRId32 ",\"offset\":%" PRId64 ",\"topic\":", d->partition,
               d->offset);
    json_put_str(&line, str_of(d->topic));
    tool_json_end(&line);
}

static void print_failure(const struct sent *r, kafka_err_t err, const char *message)
{
    struct buf line = BUF_INIT;
    char class[128];
    tool_json_begin(&line, "producer_send_error");
    put_record(&line, r);
    buf_printf(&line, ",\"topic\":");
    json_put_str(&line, str_of(r->sending->args->topic));
    buf_printf(&line, ",\"exception\":\"class %s\",\"message\":", tool_java_exception(err, class));
    json_put_str(&line, str_of(message));
    tool_json_end(&line);
}

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    struct sent *r = arg;
    if (d->err == KAFKA_OK) {
        atomic_fetch_add(&r->sending->acked, 1);
        print_success(r, d);
    } else {
        print_failure(r, d->err, d->error_message);
    }
    atomic_fetch_add(&r->sending->done, 1);
    free(r);
}

static struct sent *make_record(struct sending *s, int64_t i)
{
    const struct args *a = s->args;
    struct sent *r = calloc(1, sizeof *r);
    if (!r)
        tool_die("out of memory");
    r->sending = s;
    r->has_key = a->repeating_keys != TOOL_NOT_GIVEN;
    if (r->has_key)
        snprintf(r->key, sizeof r->key, "%" PRId64, i % a->repeating_keys);
    if (a->value_prefix != TOOL_NOT_GIVEN)
        snprintf(r->value, sizeof r->value, "%" PRId64 ".%" PRId64, a->value_prefix, i);
    else
        snprintf(r->value, sizeof r->value, "%" PRId64, i);
    return r;
}

static void send_one(struct sending *s, int64_t i)
{
    struct sent *r = make_record(s, i);
    int64_t since_ms = (int64_t)(tool_now_us() - s->start_us) / 1000;
    kafka_record_t record = {.topic = s->args->topic,
                             .partition = KAFKA_PARTITION_ANY,
                             .timestamp = s->args->create_time < 0
                                              ? KAFKA_TIMESTAMP_NOW
                                              : s->args->create_time + since_ms,
                             .value = r->value,
                             .value_len = strlen(r->value)};
    if (r->has_key) {
        record.key = r->key;
        record.key_len = strlen(r->key);
    }
    s->sent++;
    kafka_err_t err = kafka_producer_send(s->producer, &record, on_delivery, r);
    if (err != KAFKA_OK) {
        print_failure(r, err, tool_error(err));
        atomic_fetch_add(&s->done, 1);
        free(r);
    }
}

/* Each record that was taken is a line yet to be printed; with too many of them a signal would be
 * heard, and seconds later obeyed. */
static void keep_few_waiting(struct sending *s)
{
    while (s->sent - (int64_t)atomic_load(&s->done) > WAITING_MAX && tool_output_ok())
        if (!tool_sleep_ms(1))
            return;
}

static void print_end(struct sending *s)
{
    struct buf line = BUF_INIT;
    char rate[48];
    int64_t acked = atomic_load(&s->acked);
    double seconds = (double)(tool_now_us() - s->start_us) / 1e6;
    tool_json_event("shutdown_complete");
    tool_json_begin(&line, "tool_data");
    buf_printf(&line,
               ",\"sent\":%" PRId64 ",\"acked\":%" PRId64 ",\"target_throughput\":%" PRId64
               ",\"avg_throughput\":%s",
               s->sent, acked, s->args->throughput,
               tool_java_double(seconds > 0 ? (double)acked / seconds : 0, rate));
    tool_json_end(&line);
}

static kafka_conf_t *make_conf(const struct args *a)
{
    if (!a->bootstrap == !a->broker_list)
        tool_usage_error(&tool, a->bootstrap ? "argument --broker-list: not allowed with argument "
                                               "--bootstrap-server"
                                             : "one of the arguments --bootstrap-server "
                                               "--broker-list is required");
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_servers(&tool, conf, a->bootstrap, a->broker_list);
    tool_conf_set_int(conf, "acks", a->acks);
    tool_conf_set(conf, "retries", "0");
    tool_conf_load(conf, a->config);
    return conf;
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    kafka_conf_t *conf = make_conf(&a);
    tool_on_interrupt(NULL, NULL);
    struct sending s = {.args = &a, .producer = tool_producer(conf)};
    tool_end_without_progress(&s.done);
    tool_json_event("startup_complete");
    s.start_us = tool_now_us();
    double rate = a.throughput == 0 ? -1 : (double)a.throughput;
    for (int64_t i = 0; (a.max_messages < 0 || i < a.max_messages) && tool_output_ok() &&
                        tool_pace(rate, s.start_us, i);
         i++) {
        send_one(&s, i);
        keep_few_waiting(&s);
    }
    kafka_producer_flush(s.producer, -1);
    kafka_producer_close(s.producer, -1);
    print_end(&s);
    kafka_conf_free(conf);
    return tool_finish(0);
}
