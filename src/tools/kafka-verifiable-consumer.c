/* kafka-verifiable-consumer - reads a topic as a member of a group, and says as lines of JSON what
 * happens to it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/codec.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_json.h"
#include "tools/tool_reading.h"

struct args {
    const char *bootstrap, *broker_list, *topic, *group, *instance, *protocol, *assignor, *strategy;
    const char *reset, *config;
    int64_t max_messages, session_timeout;
    bool verbose, autocommit;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "HOST1:PORT1[,HOST2:PORT2[...]]",
        "REQUIRED unless --broker-list is given: the brokers to connect to."),
    ROW(broker_list, "broker-list", TOOL_TEXT, "HOST1:PORT1[,HOST2:PORT2[...]]",
        "Deprecated: use --bootstrap-server."),
    ROW(topic, "topic", TOOL_TEXT, "TOPIC", "The topic to read.", .required = true),
    ROW(group, "group-id", TOOL_TEXT, "GROUP_ID", "The group to be a member of.", .required = true),
    ROW(instance, "group-instance-id", TOOL_TEXT, "GROUP_INSTANCE_ID",
        "Makes it a static member of the group."),
    ROW(protocol, "group-protocol", TOOL_TEXT, "GROUP_PROTOCOL", "classic or consumer.",
        .fallback = "classic"),
    ROW(assignor, "group-remote-assignor", TOOL_TEXT, "GROUP_REMOTE_ASSIGNOR",
        "The broker's assignor, with --group-protocol consumer."),
    ROW(max_messages, "max-messages", TOOL_INT, "MAX-MESSAGES",
        "Read so many records; -1: until a signal comes.", .fallback = "-1"),
    ROW(session_timeout, "session-timeout", TOOL_INT, "TIMEOUT_MS",
        "The member is given up when nothing was heard of it for this time.", .fallback = "30000",
        .min = 1, .max = INT32_MAX),
    ROW(verbose, "verbose", TOOL_FLAG, NULL, "A line for each record."),
    ROW(autocommit, "enable-autocommit", TOOL_FLAG, NULL,
        "Commit in the background, not after each batch of records."),
    ROW(reset, "reset-policy", TOOL_TEXT, "RESETPOLICY",
        "Where to begin without a committed offset: earliest, latest or none.",
        .fallback = "earliest"),
    ROW(strategy, "assignment-strategy", TOOL_TEXT, "ASSIGNMENTSTRATEGY",
        "The class of the assignor, with --group-protocol classic.",
        .fallback = "org.apache.kafka.clients.consumer.RangeAssignor"),
    ROW(config, "consumer.config", TOOL_TEXT, "CONFIG_FILE",
        "Settings of the consumer; those of the flags win."),
};

static const struct tool tool = {
    .name = "kafka-verifiable-consumer",
    .about = "This tool consumes messages from a specific topic and emits consumer events (e.g. "
             "group rebalances, received messages, and offsets committed) as JSON objects to "
             "STDOUT.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
    .terse = true,
    .help_if_bare = true,
};

/* What was read of a partition in one poll. */
struct part {
    const char *topic; /* the messages' */
    int32_t partition;
    int64_t count, first, last;
};

struct consuming {
    const struct args *args;
    struct reading reading;
    int64_t consumed;
    struct part *parts;
    size_t parts_n, parts_cap;
};

/* ---- events ---- */

static void put_partition(struct buf *line, const char *topic, int32_t partition)
{
    buf_printf(line, "{\"topic\":");
    json_put_str(line, str_of(topic));
    buf_printf(line, ",\"partition\":%" PRId32, partition);
}

static void print_partitions(const char *name, const kafka_topic_partition_t *tps, size_t n)
{
    struct buf line;
    tool_json_begin(&line, name);
    buf_printf(&line, ",\"partitions\":[");
    for (size_t i = 0; i < n; i++) {
        buf_printf(&line, "%s", i ? "," : "");
        put_partition(&line, tps[i].topic, tps[i].partition);
        buf_printf(&line, "}");
    }
    buf_printf(&line, "]");
    tool_json_end(&line);
}

static void on_assigned(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n,
                        void *arg)
{
    print_partitions("partitions_assigned", tps, n);
}

static void on_revoked(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    print_partitions("partitions_revoked", tps, n);
}

static void put_bytes(struct buf *line, const void *p, size_t n)
{
    json_put_str(line, p ? (struct str){p, (int32_t)n} : STR_NULL);
}

static void print_record(const kafka_message_t *m)
{
    struct buf line;
    tool_json_begin(&line, "record_data");
    buf_printf(&line, ",\"key\":");
    put_bytes(&line, m->key, m->key_len);
    buf_printf(&line, ",\"value\":");
    put_bytes(&line, m->value, m->value_len);
    buf_printf(&line, ",\"topic\":");
    json_put_str(&line, str_of(m->topic));
    buf_printf(&line, ",\"partition\":%" PRId32 ",\"offset\":%" PRId64, m->partition, m->offset);
    tool_json_end(&line);
}

static void print_consumed(const struct consuming *c)
{
    struct buf line;
    int64_t count = 0;
    for (size_t i = 0; i < c->parts_n; i++)
        count += c->parts[i].count;
    tool_json_begin(&line, "records_consumed");
    buf_printf(&line, ",\"count\":%" PRId64 ",\"partitions\":[", count);
    for (size_t i = 0; i < c->parts_n; i++) {
        const struct part *p = &c->parts[i];
        buf_printf(&line, "%s", i ? "," : "");
        put_partition(&line, p->topic, p->partition);
        buf_printf(&line,
                   ",\"count\":%" PRId64 ",\"minOffset\":%" PRId64 ",\"maxOffset\":%" PRId64 "}",
                   p->count, p->first, p->last);
    }
    buf_printf(&line, "]");
    tool_json_end(&line);
}

static void print_committed(const struct consuming *c, const char *error)
{
    struct buf line;
    tool_json_begin(&line, "offsets_committed");
    buf_printf(&line, ",\"offsets\":[");
    for (size_t i = 0; i < c->parts_n; i++) {
        buf_printf(&line, "%s", i ? "," : "");
        put_partition(&line, c->parts[i].topic, c->parts[i].partition);
        buf_printf(&line, ",\"offset\":%" PRId64 "}", c->parts[i].last + 1);
    }
    buf_printf(&line, "]");
    if (error) {
        buf_printf(&line, ",\"error\":");
        json_put_str(&line, str_of(error));
    }
    buf_printf(&line, ",\"success\":%s", error ? "false" : "true");
    tool_json_end(&line);
}

/* ---- reading ---- */

static struct part *part_of(struct consuming *c, const kafka_message_t *m)
{
    for (size_t i = c->parts_n; i > 0; i--)
        if (c->parts[i - 1].partition == m->partition &&
            strcmp(c->parts[i - 1].topic, m->topic) == 0)
            return &c->parts[i - 1];
    if (c->parts_n == c->parts_cap) {
        size_t cap = c->parts_cap ? 2 * c->parts_cap : 16;
        struct part *grown = realloc(c->parts, cap * sizeof *grown);
        if (!grown)
            tool_die("out of memory");
        c->parts = grown;
        c->parts_cap = cap;
    }
    c->parts[c->parts_n] = (struct part){m->topic, m->partition, 0, m->offset, m->offset};
    return &c->parts[c->parts_n++];
}

static bool enough(const struct consuming *c)
{
    return c->args->max_messages >= 0 && c->consumed >= c->args->max_messages;
}

static void commit(struct consuming *c)
{
    kafka_offset_t *offsets = calloc(c->parts_n + 1, sizeof *offsets);
    if (!offsets)
        tool_die("out of memory");
    for (size_t i = 0; i < c->parts_n; i++)
        offsets[i] = (kafka_offset_t){.topic = c->parts[i].topic,
                                      .partition = c->parts[i].partition,
                                      .leader_epoch = -1,
                                      .offset = c->parts[i].last + 1};
    kafka_err_t err;
    do
        err = kafka_consumer_commit(c->reading.consumer, offsets, c->parts_n, -1);
    while (err == KAFKA_ERR_WAKEUP); /* the signal ends the loop behind this, not the commit */
    print_committed(c, err == KAFKA_OK ? NULL : tool_error(err));
    free(offsets);
}

static void take(struct consuming *c, const kafka_messages_t *m)
{
    size_t i = 0;
    c->parts_n = 0;
    for (; i < kafka_messages_count(m) && !enough(c); i++) {
        const kafka_message_t *one = kafka_messages_at(m, i);
        struct part *p = part_of(c, one);
        p->count++;
        p->last = one->offset;
        c->consumed++;
        if (c->args->verbose)
            print_record(one);
    }
    print_consumed(c);
    reading_give_back(&c->reading, m, i);
    if (!c->args->autocommit)
        commit(c);
}

static int consume(struct consuming *c)
{
    while (!enough(c) && !tool_interrupted() && tool_output_ok()) {
        kafka_messages_t *m;
        kafka_err_t err = kafka_consumer_poll(c->reading.consumer, -1, &m);
        if (m)
            take(c, m);
        kafka_messages_free(m);
        if (err != KAFKA_OK && err != KAFKA_ERR_WAKEUP) {
            tool_log_error("%s: %s", kafka_err_name(err), tool_error(err));
            return 1;
        }
    }
    return 0;
}

static kafka_conf_t *make_conf(const struct args *a)
{
    if (!a->bootstrap == !a->broker_list)
        tool_usage_error(&tool, a->bootstrap ? "argument --broker-list: not allowed with argument "
                                               "--bootstrap-server"
                                             : "one of the arguments --bootstrap-server "
                                               "--broker-list is required");
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a->config);
    tool_conf_servers(&tool, conf, a->bootstrap, a->broker_list);
    tool_conf_set(conf, "group.id", a->group);
    if (a->instance)
        tool_conf_set(conf, "group.instance.id", a->instance);
    tool_conf_set(conf, "group.protocol", a->protocol);
    if (strcmp(a->protocol, "consumer") == 0) {
        if (a->assignor)
            tool_conf_set(conf, "group.remote.assignor", a->assignor);
    } else {
        tool_conf_set_int(conf, "session.timeout.ms", a->session_timeout);
        tool_conf_set(conf, "partition.assignment.strategy", a->strategy);
    }
    tool_conf_set(conf, "enable.auto.commit", a->autocommit ? "true" : "false");
    tool_conf_set(conf, "auto.offset.reset", a->reset);
    return conf;
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
    kafka_conf_t *conf = make_conf(&a);
    struct consuming c = {.args = &a};
    reading_open(&c.reading, conf, a.topic);
    tool_on_interrupt(on_interrupt, &c.reading.consumer);
    tool_watch_output();
    tool_json_event("startup_complete");
    reading_subscribe(
        &c.reading, NULL,
        &(kafka_rebalance_listener_t){.assigned = on_assigned, .revoked = on_revoked});
    int status = consume(&c);
    tool_end_interrupts();
    reading_close(&c.reading);
    tool_json_event("shutdown_complete");
    free(c.parts);
    kafka_conf_free(conf);
    return tool_finish(status);
}
