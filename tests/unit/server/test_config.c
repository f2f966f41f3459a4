/* Loading server.properties: values, priorities, refusals, unknown keys. */
#include "project_paths.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "protocol/compression.h"
#include "protocol/records_append.h"
#include "server/config_private.h"

static char err[4096];
static char lines[4096]; /* what was logged */

static void keep_line(enum logline_level level, const char *line, void *arg)
{
    size_t at = strlen(lines);
    snprintf(lines + at, sizeof(lines) - at, "%s\n", line);
}

static int load(const char *text, struct config **out)
{
    struct props *p = props_new();
    assert_non_null(p);
    assert_int_equal(props_parse(p, text, strlen(text), NULL), 0);
    err[0] = 0;
    lines[0] = 0;
    logline_set_sink(keep_line, NULL);
    int rc = config_load(p, out, err, sizeof(err));
    logline_set_sink(NULL, NULL);
    return rc;
}

static struct config *loaded(const char *text)
{
    struct config *c;
    if (load(text, &c) != 0)
        fail_msg("refused: %s", err);
    return c;
}

/* Is refused, and the reason holds every one of the words (separated by '|'). */
static void refused(const char *text, const char *words)
{
    struct config *c;
    assert_int_equal(load(text, &c), -EINVAL);
    assert_null(c);
    char copy[512];
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *save, *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
        if (!strstr(err, w))
            fail_msg("%s: \"%s\" lacks \"%s\"", text, err, w);
}

/* The only broker there will ever be keeps the one replica of its internal topics. */
static void internal_topics_of_a_lonely_broker(void **state)
{
    static const char *const keys[] = {"offsets.topic.replication.factor",
                                       "transaction.state.log.min.isr",
                                       "transaction.state.log.replication.factor"};
    static const int64_t in_a_cluster[] = {3, 2, 3};
    struct config *alone = loaded(""), *member = loaded("zookeeper.connect=h:2181"),
                  *empty = loaded("zookeeper.connect=");
    for (int i = 0; i < 3; i++) {
        const struct config_row *row = config_find(str_of(keys[i]));
        assert_int_equal(config_int(alone, keys[i]), 1);
        assert_string_equal(config_text(alone, row), "1");
        assert_string_equal(config_default(alone, row), "1");
        assert_int_equal(config_int(empty, keys[i]), 1);
        assert_int_equal(config_int(member, keys[i]), in_a_cluster[i]);
        assert_string_equal(config_default(member, row), row->default_text);
    }
    config_free(alone);
    config_free(empty);
    config_free(member);
}

static void more_replicas_than_a_lonely_broker_has(void **state)
{
    struct config *c = loaded("offsets.topic.replication.factor=3\n"
                              "transaction.state.log.replication.factor=1");
    assert_int_equal(config_int(c, "offsets.topic.replication.factor"), 3); /* it was asked for */
    assert_non_null(strstr(lines, "offsets.topic.replication.factor is 3"));
    assert_non_null(strstr(lines, "at most 1 is allowed"));
    assert_null(strstr(lines, "transaction.state.log"));
    config_free(c);
    c = loaded("offsets.topic.replication.factor=3\nzookeeper.connect=h:2181");
    assert_null(strstr(lines, "allowed"));
    config_free(c);
}

static void tables_are_sorted_and_complete(void **state)
{
    int n;
    const struct config_row *rows = config_rows(&n);
    assert_int_equal(n, 273);
    for (int i = 0; i < n; i++) {
        assert_true(i == 0 || strcmp(rows[i - 1].name, rows[i].name) < 0);
        assert_true(rows[i].doc && strlen(rows[i].doc) > 10);
        assert_ptr_equal(config_find(str_of(rows[i].name)), &rows[i]);
        assert_true(!rows[i].topic_name || topic_config_find(str_of(rows[i].topic_name)));
    }
    const struct topic_config_row *topics = topic_config_rows(&n);
    assert_int_equal(n, 36);
    for (int i = 0; i < n; i++) {
        assert_true(i == 0 || strcmp(topics[i - 1].name, topics[i].name) < 0);
        for (int k = 0; topics[i].synonyms[k]; k++) {
            const struct config_row *row = config_find(str_of(topics[i].synonyms[k]));
            assert_non_null(row);
            assert_string_equal(row->topic_name, topics[i].name);
        }
    }
    assert_null(config_find(str_of("no.such.key")));
}

/* A default that its own row refuses would stop every start. */
static void every_default_is_legal(void **state)
{
    int n;
    const struct config_row *rows = config_rows(&n);
    for (int i = 0; i < n; i++) {
        struct config_value v;
        if (!rows[i].default_text)
            continue;
        assert_null(config_value_parse(rows[i].name, rows[i].type, &rows[i].valid,
                                       rows[i].default_text, &v));
        free(v.text);
    }
    const struct topic_config_row *topics = topic_config_rows(&n);
    for (int i = 0; i < n; i++)
        assert_null(
            topic_config_check(NULL, str_of(topics[i].name), str_of(topics[i].default_text)));
}

static void defaults_are_those_of_kafka(void **state)
{
    struct config *c = loaded("");
    assert_int_equal(c->broker_id, -1);
    assert_int_equal(c->listeners_n, 1);
    assert_string_equal(c->listeners[0].name, "PLAINTEXT");
    assert_string_equal(c->listeners[0].host, "");
    assert_int_equal(c->listeners[0].port, 9092);
    assert_true(strlen(c->listeners[0].advertised_host) > 0);
    assert_string_equal(c->log_dirs[0], "/tmp/kafka-logs");
    assert_string_equal(c->inter_broker_listener, "PLAINTEXT");
    assert_int_equal(c->ibp, 309);
    const struct log_config *d = &c->log_defaults;
    assert_int_equal(d->segment_bytes, 1073741824);
    assert_int_equal(d->segment_ms, 604800000);
    assert_int_equal(d->retention_ms, 604800000);
    assert_int_equal(d->retention_bytes, -1);
    assert_true(d->flush_ms == INT64_MAX && d->flush_messages == INT64_MAX);
    assert_int_equal(d->max_message_bytes, 1048588);
    assert_int_equal(d->cleanup_policy, CLEANUP_DELETE);
    assert_int_equal(d->compression, COMPRESSION_PRODUCER);
    assert_true(d->timestamp_after_max_ms == INT64_MAX && d->timestamp_before_max_ms == INT64_MAX);
    assert_true(d->min_cleanable_ratio == 0.5);
    assert_int_equal(d->producer_id_expiration_ms, 86400000);
    assert_int_equal(d->index_interval_bytes, 4096);
    assert_int_equal(config_int(c, "num.network.threads"), 3);
    assert_true(config_int(c, "log.retention.ms") == INT64_MIN);
    assert_false(config_is_given(c, "num.partitions"));
    config_free(c);
}

static void values_of_every_type_are_read(void **state)
{
    struct config *c = loaded("broker.id = 7 \n auto.create.topics.enable=FALSE\n"
                              "log.cleaner.min.cleanable.ratio=0.25\nnum.partitions=+3\n"
                              "ssl.enabled.protocols= TLSv1.2 , TLSv1.3 \nbroker.rack= r 1 \n"
                              "offsets.commit.required.acks=1\nlog.flush.interval.messages=10\n");
    assert_int_equal(c->broker_id, 7);
    assert_false(config_bool(c, "auto.create.topics.enable"));
    assert_string_equal(config_string(c, "auto.create.topics.enable"), "false");
    assert_true(config_double(c, "log.cleaner.min.cleanable.ratio") == 0.25);
    assert_int_equal(config_int(c, "num.partitions"), 3);
    assert_true(config_is_given(c, "num.partitions"));
    assert_string_equal(config_string(c, "ssl.enabled.protocols"), "TLSv1.2,TLSv1.3");
    assert_string_equal(config_string(c, "broker.rack"), "r 1");
    config_free(c);
}

static void bad_values_name_key_value_and_range(void **state)
{
    refused("num.partitions=0", "num.partitions|Invalid value 0|at least 1");
    refused("num.partitions=ten", "num.partitions|ten|whole number (int)");
    refused("num.partitions=", "num.partitions|whole number (int)");
    refused("num.partitions=2147483648", "num.partitions|2147483648");
    refused("num.partitions=0x10", "num.partitions|0x10");
    refused("num.partitions=1 2", "num.partitions|1 2");
    refused("offsets.topic.replication.factor=40000", "offsets.topic.replication.factor|short");
    refused("compression.lz4.level=18", "compression.lz4.level|18|from 1 to 17");
    refused("compression.gzip.level=0", "compression.gzip.level|0|1 to 9, or -1");
    refused("log.cleaner.min.cleanable.ratio=1.5", "1.5|from 0 to 1");
    refused("log.cleaner.min.cleanable.ratio=inf", "inf");
    refused("auto.create.topics.enable=yes", "auto.create.topics.enable|yes|true or false");
    refused("compression.type=brotli", "compression.type|brotli|zstd, lz4, snappy");
    refused("log.cleanup.policy=delete,keep", "log.cleanup.policy|delete,keep|compact, delete");
    refused("log.message.timestamp.type=createtime", "createtime|CreateTime, LogAppendTime");
    refused("log.retention.ms=0", "log.retention.ms|0|at least 1, or -1");
    refused("log.roll.hours=0", "log.roll.hours|0");
    refused("log.roll.ms=0", "log.roll.ms|0|at least 1");
    char longer[3000] = "listener.security.protocol.map=";
    memset(longer + strlen(longer), 'x', sizeof longer - 1 - strlen(longer));
    refused(longer, "xxx|listener.security.protocol.map"); /* the key is told all the same */
    static const char *const addresses[] = {"9404",     "a",          "a:",    "a:x",    "a:65536",
                                            "::1:9404", "[]:1",       "[::1]", "[::1:9", "a b:1",
                                            "a:-1",     "http://a:1", "a:1/x"};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        char line[64];
        snprintf(line, sizeof(line), "metrics.http.listener=%s", addresses[i]);
        refused(line, "metrics.http.listener|host:port");
    }
    refused("max.connections.per.ip.overrides=a", "max.connections.per.ip.overrides|host:count");
    refused("listener.name.a.num.network.threads=0", "listener.name.a.num.network.threads|0");
}

static void broker_id_and_node_id_are_one(void **state)
{
    struct config *c = loaded("node.id=5");
    assert_int_equal(c->broker_id, 5);
    config_free(c);
    c = loaded("node.id=5\nbroker.id=5");
    assert_int_equal(c->broker_id, 5);
    config_free(c);
    refused("node.id=5\nbroker.id=6", "node.id|5|broker.id");
    refused("broker.id=-2", "broker.id|-2");
    refused("broker.id=1001", "broker.id|1001|1000");
    c = loaded("broker.id=1001\nbroker.id.generation.enable=false");
    assert_int_equal(c->broker_id, 1001);
    config_free(c);
    refused("broker.id.generation.enable=false", "broker.id|-1|at least 0");
}

static int64_t retention(const char *text)
{
    struct config *c = loaded(text);
    int64_t v = c->log_defaults.retention_ms;
    config_free(c);
    return v;
}

static void ms_wins_over_minutes_over_hours(void **state)
{
    assert_int_equal(retention("log.retention.hours=1"), 3600000);
    assert_int_equal(retention("log.retention.hours=1\nlog.retention.minutes=2"), 120000);
    assert_int_equal(
        retention("log.retention.hours=1\nlog.retention.minutes=2\nlog.retention.ms=3"), 3);
    assert_int_equal(retention("log.retention.hours=-1"), -1);
    assert_int_equal(retention("log.retention.minutes=-7"), -1);
    assert_int_equal(retention("log.retention.ms=-1\nlog.retention.hours=5"), -1);
    assert_true(retention("log.retention.ms=9223372036854775807") == INT64_MAX);
    struct config *c = loaded("log.roll.hours=2\nlog.roll.jitter.hours=1\n"
                              "log.flush.scheduler.interval.ms=500\n"
                              "log.message.timestamp.difference.max.ms=9\n"
                              "log.message.timestamp.after.max.ms=8\n"
                              "log.cleanup.policy=compact, delete\ncompression.type=zstd\n"
                              "log.message.timestamp.type=LogAppendTime\n");
    const struct log_config *d = &c->log_defaults;
    assert_int_equal(d->segment_ms, 7200000);
    assert_int_equal(d->segment_jitter_ms, 3600000);
    assert_int_equal(d->flush_ms, 500);
    assert_int_equal(d->timestamp_before_max_ms, 9);
    assert_int_equal(d->timestamp_after_max_ms, 8);
    assert_int_equal(d->cleanup_policy, CLEANUP_COMPACT | CLEANUP_DELETE);
    assert_int_equal(d->compression, CODEC_ZSTD);
    assert_true(d->log_append_time);
    config_free(c);
    c = loaded("log.roll.ms=5\nlog.roll.hours=2\nlog.flush.interval.ms=7\n"
               "log.flush.scheduler.interval.ms=500\ncompression.type=uncompressed");
    assert_int_equal(c->log_defaults.segment_ms, 5);
    assert_int_equal(c->log_defaults.flush_ms, 7);
    assert_int_equal(c->log_defaults.compression, CODEC_NONE);
    config_free(c);
}

static void log_dirs_win_over_log_dir(void **state)
{
    struct config *c = loaded("log.dir=/a");
    assert_int_equal(c->log_dirs_n, 1);
    assert_string_equal(c->log_dirs[0], "/a");
    config_free(c);
    c = loaded("log.dir=/a\nlog.dirs= /b , ,/c ");
    assert_int_equal(c->log_dirs_n, 2);
    assert_string_equal(c->log_dirs[0], "/b");
    assert_string_equal(c->log_dirs[1], "/c");
    config_free(c);
    refused("log.dirs=,", "log.dirs|at least one folder");
    refused("log.dirs=/b,/c,/b/", "log.dirs|/b,/c,/b/|differ");
}

static void levels_are_releases_with_or_without_steps(void **state)
{
    static const struct {
        const char *text;
        int ibp, iv;
    } good[] = {{"2.3", 203, 1},   {"2.3-IV0", 203, 0}, {"2.7", 207, 2},     {"2.7-IV1", 207, 1},
                {"2.3.1", 203, 1}, {"3.9", 309, 0},     {"3.9-IV0", 309, 0}, {"3.7.2", 307, 4}};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char text[64];
        snprintf(text, sizeof(text), "inter.broker.protocol.version=%s", good[i].text);
        struct config *c = loaded(text);
        assert_int_equal(c->ibp, good[i].ibp);
        assert_int_equal(c->ibp_iv, good[i].iv);
        config_free(c);
    }
    static const char *const bad[] = {"2.2", "4.0",    "2.7-IV3", "2",    "2.",
                                      "",    "2.7-IV", "2.7x",    "-2.7", "99999.1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[64];
        snprintf(text, sizeof(text), "inter.broker.protocol.version=%s", bad[i]);
        refused(text, "inter.broker.protocol.version|2.3-IV0 to 3.9-IV0");
    }
    config_free(loaded("log.message.format.version=0.11.0-IV2"));
    config_free(loaded("log.message.format.version=0.8.2"));
    refused("log.message.format.version=0.12.0", "log.message.format.version");
}

static void settings_that_contradict_are_refused(void **state)
{
    refused("replica.fetch.wait.max.ms=40000\nreplica.socket.timeout.ms=50000",
            "replica.fetch.wait.max.ms|40000|replica.lag.time.max.ms|30000");
    refused("replica.fetch.wait.max.ms=600\nreplica.socket.timeout.ms=500",
            "replica.fetch.wait.max.ms|replica.socket.timeout.ms");
    refused("queued.max.request.bytes=1000", "queued.max.request.bytes|socket.request.max.bytes");
    config_free(loaded("queued.max.request.bytes=0"));
    refused("connections.max.idle.ms=100", "connection.failed.authentication.delay.ms|100");
    config_free(loaded("connections.max.idle.ms=-1"));
    refused("max.connections.per.ip=0", "max.connections.per.ip|0");
    config_free(loaded("max.connections.per.ip=0\nmax.connections.per.ip.overrides=127.0.0.1:5"));
    refused("log.cleaner.dedupe.buffer.size=1048576", "log.cleaner.dedupe.buffer.size");
    refused("offsets.commit.required.acks=-2", "offsets.commit.required.acks");
}

static void unknown_keys_warn(void **state)
{
    config_free(loaded("num.partition=3\nmetadata.log.dir=/x\n"
                       "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=x\n"
                       "listener.name.a.no.such=1\nmy.own.key=v\nsecurity.providers=x"));
    assert_non_null(strstr(lines, "WARN"));
    assert_non_null(strstr(lines, "unknown setting num.partition: ignored"));
    assert_non_null(strstr(lines, "unknown setting my.own.key"));
    assert_non_null(strstr(lines, "unknown setting listener.name.a.no.such"));
    assert_non_null(strstr(lines, "metadata.log.dir belongs to KRaft"));
    assert_null(strstr(lines, "jaas"));
    assert_non_null(strstr(lines, "without effect in this version: security.providers"));
}

static void a_misspelt_key_is_told_the_nearest_one(void **state)
{
    static const char *const cases[][2] = {
        {"log.retention.hour", "log.retention.hours"},
        {"log.retentoin.hours", "log.retention.hours"},
        {"Log.Dirs", "log.dirs"},
        {"broker_id", "broker.id"},
        {"listener", "listeners"},
        {"zookeper.connect", "zookeeper.connect"},
        {"advertised.listners", "advertised.listeners"},
        {"num.partition", "num.partitions"},
        {"retention.ms", "log.retention.ms"}, /* a topic's key in the broker's file */
        {"max.message.bytes", "message.max.bytes"},
        {"my.own.key", NULL},
        {"x", NULL},
        {"", NULL},
    };
    char line[256], far[400];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *near = config_nearest(cases[i][0]);
        if (!near != !cases[i][1] || (near && strcmp(near, cases[i][1]) != 0))
            fail_msg("%s: %s", cases[i][0], near ? near : "nothing");
    }
    memset(far, 'a', sizeof(far) - 1);
    far[sizeof(far) - 1] = 0;
    assert_null(config_nearest(far));
    config_free(loaded("log.retention.hour=1"));
    snprintf(line, sizeof(line),
             "unknown setting log.retention.hour: ignored; did you mean log.retention.hours?");
    assert_non_null(strstr(lines, line));
}

/* A line for each, whatever kind it is; and all of the first kinds before what compares values. */
static void every_bad_value_is_told(void **state)
{
    static const char text[] =
        "num.partitions=0\nlog.retention.hours=x\nlog.index.size.max.bytes=1\n"
        "delete.topic.enable=maybe\nlog.cleanup.policy=keep\n"
        "listener.name.plaintext.max.connections=-4\nnum.partiton=1";
    refused(text, "num.partitions|log.retention.hours|log.index.size.max.bytes|delete.topic.enable|"
                  "log.cleanup.policy|listener.name.plaintext.max.connections");
    int count = 1;
    for (const char *p = err; *p; p++)
        count += *p == '\n';
    assert_int_equal(count, 6);
    assert_non_null(strstr(lines, "did you mean num.partitions?"));
    refused("broker.id=3\nnode.id=4\nlog.dirs=/a,/a\nlisteners=nonsense\n"
            "queued.max.request.bytes=1000\nreplica.lag.time.max.ms=1\n"
            "log.cleaner.dedupe.buffer.size=1\noffsets.commit.required.acks=-2",
            "node.id|log.dirs|listeners|queued.max.request.bytes|replica.fetch.wait.max.ms|"
            "log.cleaner.dedupe.buffer.size|offsets.commit.required.acks");
}

/* However many there are, nothing is written behind the room there is. */
static void more_bad_values_than_room(void **state)
{
    struct config *c;
    struct props *p = props_new();
    char small[100];
    int n;
    const struct config_row *rows = config_rows(&n);
    for (int i = 0; i < n; i++)
        if (rows[i].type == CONFIG_INT)
            assert_int_equal(props_set(p, rows[i].name, "x"), 0);
    memset(small, 'z', sizeof(small));
    assert_int_equal(config_load(p, &c, small, sizeof(small) - 1), -EINVAL);
    assert_int_equal(strlen(small), sizeof(small) - 2);
    assert_int_equal(small[sizeof(small) - 1], 'z');
}

static void a_kraft_file_is_told_what_it_is(void **state)
{
    static const char kraft[] =
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER";
    refused(kraft, "process.roles=broker,controller|KRaft|zookeeper.connect");
    assert_null(strchr(err, '\n'));
    refused("node.id=1\ncontroller.quorum.voters=1@localhost:9093",
            "controller.quorum.voters=1@localhost:9093|KRaft");
    refused("node.id=1\ncontroller.quorum.bootstrap.servers=h:9093", "quorum.bootstrap.servers=h");
    refused("process.roles=broker\nzookeeper.connect=h:2181", "process.roles=broker|KRaft");
    /* a broker of a cluster on ZooKeeper that is to move one day */
    config_free(loaded("zookeeper.connect=h:2181\ncontroller.quorum.voters=1@h:9093"));
    assert_non_null(strstr(lines, "controller.quorum.voters belongs to KRaft"));
    struct config *c = loaded("node.id=7\nprocess.roles=");
    assert_int_equal(c->broker_id, 7);
    config_free(c);
}

static void secrets_stay_out_of_messages(void **state)
{
    struct config_valid any = {.min = 0, .max = 0, .one_of = "a"};
    struct config_value v;
    char *text = config_value_parse("p", CONFIG_PASSWORD, &any, "secret", &v);
    assert_non_null(strstr(text, "[hidden]"));
    assert_null(strstr(text, "secret"));
    free(text);
}

static void topic_values_are_checked(void **state)
{
    static const char *const bad[][3] = {
        {"retention.ms", "-2", "at least -1"},
        {"retention.ms", "x", "whole number (long)"},
        {"no.such", "1", "Unknown topic config"},
        {"cleanup.policy", "none", "compact, delete"},
        {"retention.ms", NULL, "Null value"},
        {"compression.gzip.level", "10", "1 to 9"},
        {"segment.bytes", "13", "at least 14"},
        {"log.retention.ms", "1", "Unknown topic config"},
        {"leader.replication.throttled.replicas", "1:", "partition:broker"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *text = topic_config_check(NULL, str_of(bad[i][0]), str_of(bad[i][1]));
        assert_non_null(text);
        if (!strstr(text, bad[i][2]) || !strstr(text, bad[i][0]))
            fail_msg("%s lacks %s", text, bad[i][2]);
        free(text);
    }
    struct str nul = {"1\0002", 3};
    char *text = topic_config_check(NULL, str_of("retention.ms"), nul);
    assert_non_null(text);
    free(text);
    assert_null(topic_config_check(NULL, str_of("retention.ms"), str_of("-1")));
    assert_null(topic_config_check(NULL, str_of("cleanup.policy"), str_of("compact,delete")));
    assert_null(topic_config_check(NULL, str_of("leader.replication.throttled.replicas"),
                                   str_of("0:1,1:2")));
    assert_null(
        topic_config_check(NULL, str_of("follower.replication.throttled.replicas"), str_of("*")));
}

static void topic_overrides_win(void **state)
{
    struct config *c = loaded("log.retention.hours=1\nlog.segment.bytes=100");
    struct props *p = props_new();
    props_set(p, "retention.ms", "5");
    props_set(p, "cleanup.policy", "compact");
    props_set(p, "min.insync.replicas", "0"); /* not legal: passed over */
    props_set(p, "min.cleanable.dirty.ratio", "0.1");
    props_set(p, "message.timestamp.difference.max.ms", "77");
    props_set(p, "message.timestamp.after.max.ms", "78");
    props_set(p, "preallocate", "true");
    struct log_config t;
    config_topic(c, p, &t);
    assert_int_equal(t.retention_ms, 5);
    assert_int_equal(t.segment_bytes, 100);
    assert_int_equal(t.cleanup_policy, CLEANUP_COMPACT);
    assert_int_equal(t.min_insync_replicas, 1);
    assert_true(t.min_cleanable_ratio == 0.1);
    assert_int_equal(t.timestamp_before_max_ms, 77);
    assert_int_equal(t.timestamp_after_max_ms, 78);
    assert_true(t.preallocate);
    config_topic(c, NULL, &t);
    assert_int_equal(t.retention_ms, 3600000);
    props_free(p);
    config_free(c);
}

static void the_sample_file_has_no_surprises(void **state)
{
    struct props *p = props_new();
    assert_int_equal(props_load(p, PROJECT_DIR "/config/server.properties", NULL), 0);
    struct config *c;
    lines[0] = 0;
    logline_set_sink(keep_line, NULL);
    int rc = config_load(p, &c, err, sizeof(err));
    logline_set_sink(NULL, NULL);
    assert_int_equal(rc, 0);
    assert_string_equal(lines, "");
    assert_int_equal(c->broker_id, 0);
    config_free(c);
}

static void what_has_no_effect_has_a_reason(void **state)
{
    int n;
    const struct config_row *rows = config_rows(&n);
    for (int i = 0; i < n; i++)
        if (!rows[i].has_effect && !config_idle_reason(rows[i].name))
            fail_msg("%s: config_docs.c has no reason", rows[i].name);
    const struct topic_config_row *topics = topic_config_rows(&n);
    for (int i = 0; i < n; i++)
        if (!topics[i].has_effect && !config_idle_reason(topics[i].name))
            fail_msg("%s: config_docs.c has no reason", topics[i].name);
}

static void an_address_is_taken_apart(void **state)
{
    static const struct {
        const char *text, *host;
        int port;
    } cases[] = {{"127.0.0.1:9404", "127.0.0.1", 9404},
                 {":0", "", 0},
                 {"[::1]:65535", "::1", 65535},
                 {"my-host.a_b:1", "my-host.a_b", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct config_address a;
        assert_true(config_address_parse(cases[i].text, &a));
        assert_string_equal(a.host, cases[i].host);
        assert_int_equal(a.port, cases[i].port);
    }
}

static void the_page_is_what_the_table_prints(void **state)
{
    struct buf b = BUF_INIT;
    config_docs_print(&b);
    assert_false(b.failed);
    FILE *f = fopen(PROJECT_DIR "/docs/configuration.md", "r");
    assert_non_null(f);
    char *page = malloc(b.len + 2);
    size_t n = fread(page, 1, b.len + 2, f);
    fclose(f);
    if (n != b.len || memcmp(page, b.p, n) != 0)
        fail_msg("docs/configuration.md is stale: kafkad --print-config-docs > "
                 "docs/configuration.md");
    free(page);
    buf_free(&b);
}

UNIT_MAIN(unit_test(internal_topics_of_a_lonely_broker),
          unit_test(more_replicas_than_a_lonely_broker_has),
          unit_test(tables_are_sorted_and_complete), unit_test(every_default_is_legal),
          unit_test(defaults_are_those_of_kafka), unit_test(values_of_every_type_are_read),
          unit_test(bad_values_name_key_value_and_range), unit_test(broker_id_and_node_id_are_one),
          unit_test(ms_wins_over_minutes_over_hours), unit_test(log_dirs_win_over_log_dir),
          unit_test(levels_are_releases_with_or_without_steps),
          unit_test(settings_that_contradict_are_refused), unit_test(unknown_keys_warn),
          unit_test(what_has_no_effect_has_a_reason),
          unit_test(a_misspelt_key_is_told_the_nearest_one), unit_test(every_bad_value_is_told),
          unit_test(more_bad_values_than_room), unit_test(a_kraft_file_is_told_what_it_is),
          unit_test(secrets_stay_out_of_messages), unit_test(topic_values_are_checked),
          unit_test(topic_overrides_win), unit_test(the_sample_file_has_no_surprises),
          unit_test(an_address_is_taken_apart), unit_test(the_page_is_what_the_table_prints))
