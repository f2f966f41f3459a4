/* What brokers and networks do wrong, and what the caller is told: who, what, how long, which
 * setting. Nothing waits longer than it may. */
#include "client/client_test.h"

#include <kafka/admin.h>
#include <time.h>

#include "client/fault_proxy.h"
#include "protocol/errors.h"

enum { PATIENCE_MS = 20000 }; /* much more than any limit here */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static kafka_conf_t *conf_for(const char *servers, const char *const *pairs)
{
    kafka_conf_t *conf = kafka_conf_new();
    test_set(conf, "bootstrap.servers", servers);
    test_set(conf, "retry.backoff.ms", "1");
    test_set(conf, "retry.backoff.max.ms", "5");
    test_set(conf, "reconnect.backoff.ms", "1");
    test_set(conf, "reconnect.backoff.max.ms", "5");
    test_set(conf, "request.timeout.ms", "200");
    test_set(conf, "socket.connection.setup.timeout.ms", "200");
    test_set(conf, "default.api.timeout.ms", "300");
    test_set(conf, "delivery.timeout.ms", "400");
    test_set(conf, "max.block.ms", "300");
    for (; pairs && pairs[0]; pairs += 2)
        test_set(conf, pairs[0], pairs[1]);
    return conf;
}

static kafka_producer_t *producer_at(const char *servers, const char *const *pairs)
{
    char err[256] = "";
    kafka_conf_t *conf = conf_for(servers, pairs);
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    if (!p)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    return p;
}

static kafka_consumer_t *consumer_at(const char *servers, const char *group)
{
    char err[256] = "";
    kafka_conf_t *conf = conf_for(servers, NULL);
    test_set(conf, "auto.offset.reset", "earliest");
    test_set(conf, "fetch.max.wait.ms", "20");
    test_set(conf, "heartbeat.interval.ms", "10");
    if (group)
        test_set(conf, "group.id", group);
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    if (!c)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    return c;
}

static void expect_in_error(const char *part)
{
    if (!strstr(kafka_last_error(), part))
        fail_msg("\"%s\" is not in: %s", part, kafka_last_error());
}

static kafka_record_t record(const char *topic)
{
    return (kafka_record_t){.topic = topic,
                            .partition = KAFKA_PARTITION_ANY,
                            .timestamp = KAFKA_TIMESTAMP_NOW,
                            .value = "v",
                            .value_len = 1};
}

/* ---- bootstrap servers that are none ---- */

/* Every kind of client says who did not answer, and how long that was waited for. */
static void expect_all_to_fail(const char *servers, const char *words)
{
    int64_t begun = now_ms(), offset = 0;
    int32_t count;
    kafka_cluster_info_t *info;
    char err[256];
    kafka_record_t r = record("t");
    kafka_producer_t *p = producer_at(servers, NULL);
    assert_int_not_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
    expect_in_error("topic t");
    expect_in_error("max.block.ms=300");
    expect_in_error(servers);
    expect_in_error(words);
    kafka_producer_close(p, 0);

    kafka_consumer_t *c = consumer_at(servers, "g");
    kafka_topic_partition_t tp = {"t", 0};
    kafka_messages_t *m;
    kafka_offset_list_t *list;
    assert_int_not_equal(kafka_consumer_partition_count(c, "t", &count), KAFKA_OK);
    expect_in_error("topic t");
    expect_in_error(servers);
    expect_in_error(words);
    assert_int_equal(kafka_consumer_assign(c, &tp, 1), KAFKA_OK);
    assert_int_equal(kafka_consumer_position(c, "t", 0, 300, &offset), KAFKA_ERR_TIMED_OUT);
    expect_in_error("t-0: no position within 300 ms");
    expect_in_error(words);
    assert_int_not_equal(kafka_consumer_committed(c, &tp, 1, 300, &list), KAFKA_OK);
    expect_in_error("group g");
    expect_in_error(servers);
    assert_int_equal(kafka_consumer_poll(c, 50, &m), KAFKA_OK); /* it may come back */
    assert_null(m);
    kafka_consumer_close_timeout(c, 300);

    kafka_conf_t *conf = conf_for(servers, NULL);
    kafka_admin_t *a = kafka_admin_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    assert_int_not_equal(kafka_admin_describe(a, NULL, 0, 300, &info), KAFKA_OK);
    expect_in_error("Metadata");
    if (!strstr(words, "not Kafka's")) /* which no waiting heals */
        expect_in_error("within 300 ms");
    expect_in_error(servers);
    expect_in_error(words);
    kafka_admin_close(a);
    assert_true(now_ms() - begun < PATIENCE_MS);
}

static void refused_connections_are_told(void **state)
{
    struct fault_proxy *p = fault_proxy_start(0);
    char servers[32];
    snprintf(servers, sizeof servers, "%s", fault_proxy_address(p));
    fault_proxy_stop(p); /* nobody listens there now */
    expect_all_to_fail(servers, "Connection refused");
}

static void expect_fault_to_be_told(enum proxy_fault fault, const char *words)
{
    struct fault_proxy *p = fault_proxy_start(0);
    fault_proxy_set(p, fault, 0, 1);
    expect_all_to_fail(fault_proxy_address(p), words);
    fault_proxy_stop(p);
}

static void a_port_of_another_protocol_is_told(void **state)
{
    expect_fault_to_be_told(PROXY_HTTP,
                            "its answer is not Kafka's protocol (is it a Kafka listener");
}

static void a_port_that_wants_tls_is_told(void **state)
{
    expect_fault_to_be_told(PROXY_TLS, "security.protocol=PLAINTEXT right for it?");
}

static void a_port_that_hangs_up_is_told(void **state)
{
    expect_fault_to_be_told(PROXY_HANGUP, "it closed the connection (is it a Kafka listener");
}

static void a_port_that_says_nothing_is_told(void **state)
{
    struct mock *m = mock_start(1);
    struct fault_proxy *p = fault_proxy_start(mock_port(m, 0));
    fault_proxy_set(p, PROXY_SILENT, 0, 1);
    expect_all_to_fail(fault_proxy_address(p), "no answer in time");
    fault_proxy_stop(p);
    mock_stop(m);
}

static void an_unreachable_broker_is_told_again(void **state)
{
    kafka_producer_t *p = producer_at("127.0.0.1:1", (const char *[]){"max.block.ms", "50", NULL});
    kafka_record_t r = record("t");
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
        expect_in_error("127.0.0.1:1: Connection refused");
    }
    kafka_producer_close(p, 0);
}

/* ---- topics and records ---- */

static void a_topic_that_is_not_there_is_told(void **state)
{
    struct mock *m = mock_start(1);
    int32_t count;
    kafka_record_t r = record("nowhere");
    kafka_producer_t *p =
        producer_at(mock_servers(m), (const char *[]){"max.block.ms", "1500", NULL});
    assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    expect_in_error("topic nowhere");
    expect_in_error("UNKNOWN_TOPIC_OR_PARTITION");
    expect_in_error("max.block.ms=1500");
    mock_topic(m, "small", 2);
    r = record("small");
    r.partition = 7;
    assert_int_not_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
    expect_in_error("topic small has 2 partitions, but not partition 7");
    kafka_producer_close(p, 0);
    kafka_consumer_t *c = consumer_at(mock_servers(m), NULL);
    kafka_err_t err;
    while ((err = kafka_consumer_partition_count(c, "nowhere", &count)) == KAFKA_ERR_TIMED_OUT)
        ; /* default.api.timeout.ms is short here */
    assert_int_equal(err, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    expect_in_error("topic nowhere");
    kafka_consumer_close(c);
    mock_stop(m);
}

/* Nothing was waited for: the error is all there is to say. */
static void a_topic_that_cannot_be_is_told_without_a_wait(void **state)
{
    struct mock *m = mock_start(1);
    kafka_record_t r = record("bad/topic");
    kafka_producer_t *p =
        producer_at(mock_servers(m), (const char *[]){"max.block.ms", "60000", NULL});
    mock_script(m, API_METADATA, MOCK_ERROR, KERR_INVALID_TOPIC_EXCEPTION, -1);
    assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KERR_INVALID_TOPIC_EXCEPTION);
    expect_in_error("topic bad/topic: ");
    expect_in_error("(INVALID_TOPIC_EXCEPTION)");
    if (strstr(kafka_last_error(), "60000"))
        fail_msg("%s", kafka_last_error());
    kafka_producer_close(p, 0);
    mock_stop(m);
}

static void a_record_that_is_too_large_is_told(void **state)
{
    struct mock *m = mock_start(1);
    char value[2000] = "";
    mock_topic(m, "t", 1);
    kafka_producer_t *p =
        producer_at(mock_servers(m), (const char *[]){"max.request.size", "1000", NULL});
    kafka_record_t r = record("t");
    r.value = value;
    r.value_len = sizeof value;
    assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KERR_MESSAGE_TOO_LARGE);
    expect_in_error("topic t");
    expect_in_error("max.request.size=1000");
    kafka_producer_close(p, 0);
    mock_stop(m);
}

static void a_full_buffer_is_told(void **state)
{
    struct mock *m = mock_start(1);
    char value[1000] = "";
    mock_topic(m, "t", 1);
    kafka_producer_t *p =
        producer_at(mock_servers(m), (const char *[]){"buffer.memory", "5000", "max.block.ms", "50",
                                                      "linger.ms", "100", NULL});
    kafka_record_t r = record("t");
    kafka_err_t err = KAFKA_OK;
    r.value = value;
    r.value_len = sizeof value;
    int32_t count;
    while (kafka_producer_partition_count(p, "t", &count) != KAFKA_OK)
        ; /* until metadata is there, which max.block.ms does not wait for on a busy machine */
    mock_script(m, API_PRODUCE, MOCK_HOLD, 0, -1);
    for (int i = 0; i < 10 && err == KAFKA_OK; i++)
        err = kafka_producer_send(p, &r, NULL, NULL);
    assert_int_equal(err, KAFKA_ERR_QUEUE_FULL);
    expect_in_error("topic t");
    expect_in_error("buffer.memory=5000");
    expect_in_error("max.block.ms=50");
    kafka_producer_close(p, 0);
    mock_stop(m);
}

/* ---- brokers that go ---- */

struct told {
    kafka_err_t err;
    char message[1000];
    pthread_mutex_t lock;
    bool done;
};

static void on_told(const kafka_delivery_t *d, void *arg)
{
    struct told *t = arg;
    pthread_mutex_lock(&t->lock);
    t->err = d->err;
    snprintf(t->message, sizeof t->message, "%s", d->error_message);
    t->done = true;
    pthread_mutex_unlock(&t->lock);
}

static void expect_delivery_to_time_out(enum proxy_fault fault, const char *words)
{
    struct mock *m = mock_start(1);
    struct fault_proxy *proxy = fault_proxy_start(mock_port(m, 0));
    struct told t = {.lock = PTHREAD_MUTEX_INITIALIZER};
    kafka_record_t r = record("t");
    int64_t offset;
    mock_advertise(m, 0, fault_proxy_port(proxy));
    mock_topic(m, "t", 1);
    kafka_producer_t *p =
        producer_at(fault_proxy_address(proxy),
                    (const char *[]){"delivery.timeout.ms", "3000", "max.block.ms", "60000", NULL});
    assert_int_equal(kafka_producer_send_sync(p, &r, &offset), KAFKA_OK);
    fault_proxy_set(proxy, fault, 1, 1);
    int64_t begun = now_ms();
    assert_int_equal(kafka_producer_send(p, &r, on_told, &t), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, PATIENCE_MS), KAFKA_OK);
    assert_true(now_ms() - begun < PATIENCE_MS);
    assert_int_equal(t.err, KAFKA_ERR_TIMED_OUT);
    if (!strstr(t.message, "topic t, partition 0: not delivered within delivery.timeout.ms=3000") ||
        !strstr(t.message, fault_proxy_address(proxy)) || !strstr(t.message, words))
        fail_msg("%s", t.message);
    kafka_producer_close(p, 0);
    fault_proxy_stop(proxy);
    mock_stop(m);
}

static void a_broker_that_falls_silent_ends_the_delivery(void **state)
{
    expect_delivery_to_time_out(PROXY_SILENT, "no answer in time");
}

static void a_broker_that_cuts_every_answer_ends_the_delivery(void **state)
{
    expect_delivery_to_time_out(PROXY_CUT, "last failure: broker");
}

static void expect_plain_silence(const char *said)
{
    if (!strstr(said, "no answer in time") || strstr(said, "is it a Kafka listener"))
        fail_msg("%s", said);
}

static void keep_silence(int level, const char *line, void *arg)
{
    if (strstr(line, "no answer in time") || strstr(line, "is it a Kafka listener"))
        snprintf(arg, 500, "%s", line);
}

/* Its address is another than that of bootstrap.servers, and all it did was to negotiate: it is a
 * Kafka listener, and only slow. */
static void a_broker_that_negotiated_is_only_slow(void **state)
{
    struct mock *m = mock_start(1);
    struct fault_proxy *proxy = fault_proxy_start(mock_port(m, 0));
    static char line[500]; /* of the client's thread, read when that has ended */
    kafka_record_t r = record("t");
    mock_advertise(m, 0, fault_proxy_port(proxy));
    mock_topic(m, "t", 1);
    mock_script(m, API_PRODUCE, MOCK_IGNORE, 0, -1);
    kafka_log_set_sink(keep_silence, line);
    kafka_producer_t *p =
        producer_at(mock_servers(m),
                    (const char *[]){"request.timeout.ms", "1000", "delivery.timeout.ms", "20000",
                                     "max.block.ms", "60000", "retries", "0", "enable.idempotence",
                                     "false", "socket.connection.setup.timeout.ms", "10000", NULL});
    assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, PATIENCE_MS), KAFKA_OK);
    kafka_producer_close(p, 0);
    kafka_log_set_sink(NULL, NULL);
    expect_plain_silence(line);
    fault_proxy_stop(proxy);
    mock_stop(m);
}

/* It answered as an address of bootstrap.servers, and then never as the node that it is. */
static void an_address_that_answered_is_only_slow(void **state)
{
    struct mock *m = mock_start(1);
    struct fault_proxy *proxy = fault_proxy_start(mock_port(m, 0));
    int32_t count;
    int64_t offset;
    kafka_topic_partition_t tp = {"t", 0};
    mock_advertise(m, 0, fault_proxy_port(proxy));
    mock_topic(m, "t", 1);
    kafka_consumer_t *c = consumer_at(fault_proxy_address(proxy), NULL);
    while (kafka_consumer_partition_count(c, "t", &count) == KAFKA_ERR_TIMED_OUT)
        ; /* default.api.timeout.ms is short here */
    fault_proxy_set(proxy, PROXY_SILENT, 0, 1);
    assert_int_equal(kafka_consumer_assign(c, &tp, 1), KAFKA_OK);
    assert_int_equal(kafka_consumer_position(c, "t", 0, 3000, &offset), KAFKA_ERR_TIMED_OUT);
    expect_plain_silence(kafka_last_error());
    kafka_consumer_close_timeout(c, 300);
    fault_proxy_stop(proxy);
    mock_stop(m);
}

/* ---- damage ---- */

struct damaged {
    struct mock *m;
    struct fault_proxy *proxy;
};

static void use_producer(struct damaged *d)
{
    kafka_producer_t *p = producer_at(fault_proxy_address(d->proxy), NULL);
    kafka_record_t r = record("t");
    for (int i = 0; i < 5; i++) {
        if (kafka_producer_send(p, &r, NULL, NULL) != KAFKA_OK)
            assert_true(kafka_last_error()[0] != 0);
        kafka_producer_flush(p, 100);
    }
    kafka_producer_close(p, 100);
}

static void use_consumer(struct damaged *d)
{
    kafka_consumer_t *c = consumer_at(fault_proxy_address(d->proxy), "g");
    const char *topics[] = {"t"};
    kafka_topic_partition_t tp = {"t", 0};
    kafka_offset_list_t *list;
    kafka_consumer_subscribe(c, topics, 1, NULL);
    for (int i = 0; i < 10; i++) {
        kafka_messages_t *m;
        kafka_consumer_poll(c, 20, &m);
        for (size_t k = 0; k < kafka_messages_count(m); k++)
            assert_true(kafka_messages_at(m, k)->value_len <= 1 << 20);
        kafka_messages_free(m);
        kafka_consumer_commit(c, NULL, 0, 20);
    }
    if (kafka_consumer_committed(c, &tp, 1, 50, &list) == KAFKA_OK)
        kafka_offset_list_free(list);
    kafka_consumer_close_timeout(c, 50);
}

static void use_admin(struct damaged *d)
{
    char err[256];
    kafka_conf_t *conf = conf_for(fault_proxy_address(d->proxy), NULL);
    kafka_admin_t *a = kafka_admin_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    for (int i = 0; i < 5; i++) {
        kafka_cluster_info_t *info;
        if (kafka_admin_describe(a, NULL, 0, 100, &info) == KAFKA_OK)
            kafka_cluster_info_free(info);
    }
    kafka_admin_close(a);
}

static void damage_begin(struct damaged *d)
{
    char value[2000] = "";
    d->m = mock_start(1);
    d->proxy = fault_proxy_start(mock_port(d->m, 0));
    mock_advertise(d->m, 0, fault_proxy_port(d->proxy));
    mock_topic(d->m, "t", 2);
    kafka_producer_t *p =
        producer_at(mock_servers(d->m), (const char *[]){"delivery.timeout.ms", "60000",
                                                         "max.block.ms", "60000", NULL});
    kafka_record_t r = record("t");
    r.value = value;
    r.value_len = sizeof value;
    for (int i = 0; i < 20; i++) {
        mock_advertise(d->m, 0, mock_port(d->m, 0));
        assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_OK);
    }
    kafka_producer_close(p, -1);
    mock_advertise(d->m, 0, fault_proxy_port(d->proxy));
}

static void damage_end(struct damaged *d)
{
    fault_proxy_set(d->proxy, PROXY_FINE, 0, 0);
    fault_proxy_stop(d->proxy);
    mock_stop(d->m);
}

static void ignore_log(int level, const char *line, void *arg)
{
}

/* Bits flip in answers of every kind, some often, some seldom; answers are cut anywhere, or come a
 * byte at a time: no crash, no hang. */
static void damaged_answers_do_no_harm(void **state)
{
    struct damaged d;
    kafka_log_set_sink(ignore_log, NULL);
    damage_begin(&d);
    for (unsigned seed = 1; seed <= 10; seed++) {
        enum proxy_fault fault = seed % 3 == 0   ? PROXY_CUT
                                 : seed % 5 == 0 ? PROXY_DRIP
                                                 : PROXY_FLIP;
        fault_proxy_set(d.proxy, fault, 5 << seed % 9, seed);
        use_producer(&d);
        use_consumer(&d);
        use_admin(&d);
    }
    damage_end(&d);
    kafka_log_set_sink(NULL, NULL);
}

/* After the damage everything goes on. */
static void what_was_damaged_heals(void **state)
{
    struct damaged d;
    kafka_log_set_sink(ignore_log, NULL);
    damage_begin(&d);
    kafka_producer_t *p =
        producer_at(fault_proxy_address(d.proxy),
                    (const char *[]){"delivery.timeout.ms", "60000", "max.block.ms", "60000",
                                     /* a damaged answer may name brokers that are nowhere */
                                     "metadata.recovery.strategy", "rebootstrap", NULL});
    kafka_record_t r = record("t");
    int64_t offset;
    for (unsigned seed = 1; seed <= 5; seed++) {
        assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KAFKA_OK);
        fault_proxy_set(d.proxy, seed % 2 ? PROXY_CUT : PROXY_FLIP, 20, seed);
        kafka_producer_flush(p, 30);
        fault_proxy_set(d.proxy, PROXY_FINE, 0, 0);
        assert_int_equal(kafka_producer_send_sync(p, &r, &offset), KAFKA_OK);
    }
    kafka_producer_close(p, -1);
    damage_end(&d);
    kafka_log_set_sink(NULL, NULL);
}

UNIT_MAIN(unit_test(refused_connections_are_told), unit_test(a_port_of_another_protocol_is_told),
          unit_test(a_port_that_wants_tls_is_told), unit_test(a_port_that_hangs_up_is_told),
          unit_test(a_port_that_says_nothing_is_told),
          unit_test(an_unreachable_broker_is_told_again),
          unit_test(a_topic_that_is_not_there_is_told),
          unit_test(a_topic_that_cannot_be_is_told_without_a_wait),
          unit_test(a_record_that_is_too_large_is_told), unit_test(a_full_buffer_is_told),
          unit_test(a_broker_that_falls_silent_ends_the_delivery),
          unit_test(a_broker_that_cuts_every_answer_ends_the_delivery),
          unit_test(a_broker_that_negotiated_is_only_slow),
          unit_test(an_address_that_answered_is_only_slow), unit_test(damaged_answers_do_no_harm),
          unit_test(what_was_damaged_heals))
