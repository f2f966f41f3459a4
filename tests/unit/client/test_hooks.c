/* Functions of the application: partitioners, interceptors; and the partitioners by name. */
#include "client/client_test.h"

#include "protocol/errors.h"

enum { PARTS = 4 };

struct hooks_test {
    struct mock *m;
    kafka_producer_t *p;
};

static void start(struct hooks_test *t, kafka_conf_t *conf)
{
    char err[256] = "";
    t->p = kafka_producer_new(conf, err, sizeof err);
    if (!t->p)
        fail_msg("%s", err);
    kafka_conf_free(conf);
}

static kafka_conf_t *begin(struct hooks_test *t, const char *partitioner)
{
    t->m = mock_start(1);
    mock_topic(t->m, "t", PARTS);
    return test_conf(t->m, (const char *[]){"partitioner.class", partitioner, NULL});
}

static void end(struct hooks_test *t)
{
    kafka_producer_close(t->p, -1);
    mock_stop(t->m);
}

static void send_n(struct hooks_test *t, int n, const char *key)
{
    kafka_record_t r = {.topic = "t",
                        .partition = KAFKA_PARTITION_ANY,
                        .timestamp = KAFKA_TIMESTAMP_NOW,
                        .key = key,
                        .key_len = key ? strlen(key) : 0,
                        .value = "v",
                        .value_len = 1};
    for (int i = 0; i < n; i++)
        assert_int_equal(kafka_producer_send_sync(t->p, &r, NULL), KAFKA_OK);
}

static void roundrobin_takes_each_in_turn(void **state)
{
    struct hooks_test t;
    start(&t, begin(&t, "org.apache.kafka.clients.producer.RoundRobinPartitioner"));
    send_n(&t, 2 * PARTS, "key");
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(mock_end(t.m, "t", i), 2);
    end(&t);
}

static void random_spreads(void **state)
{
    struct hooks_test t;
    int used = 0;
    start(&t, begin(&t, "random"));
    send_n(&t, 40, "key");
    for (int i = 0; i < PARTS; i++)
        used += mock_end(t.m, "t", i) > 0;
    assert_true(used > 1);
    end(&t);
}

static void unknown_names_are_refused(void **state)
{
    struct hooks_test t;
    char err[256] = "";
    kafka_conf_t *conf = begin(&t, "com.example.Mine");
    assert_null(kafka_producer_new(conf, err, sizeof err));
    assert_non_null(strstr(err, "partitioner.class=com.example.Mine"));
    kafka_conf_free(conf);
    mock_stop(t.m);
}

static int32_t last_digit(const kafka_record_t *r, int32_t partitions, void *arg)
{
    ++*(int *)arg;
    return ((const char *)r->key)[r->key_len - 1] - '0';
}

static void the_application_may_choose(void **state)
{
    struct hooks_test t;
    int calls = 0;
    kafka_conf_t *conf = begin(&t, "murmur2");
    assert_int_equal(kafka_conf_set_partitioner(conf, last_digit, &calls), KAFKA_OK);
    start(&t, conf);
    send_n(&t, 2, "k3");
    send_n(&t, 1, "k1");
    assert_int_equal(mock_end(t.m, "t", 3), 2);
    assert_int_equal(mock_end(t.m, "t", 1), 1);
    assert_int_equal(calls, 3);
    kafka_record_t r = {.topic = "t", .partition = -1, .timestamp = -1, .key = "k9", .key_len = 2};
    assert_int_equal(kafka_producer_send(t.p, &r, NULL, NULL), KAFKA_ERR_INVALID_ARG);
    assert_non_null(strstr(kafka_last_error(), "the partitioner chose 9 of 4 partitions"));
    end(&t);
}

struct seen {
    pthread_mutex_t lock;
    int sent, acknowledged, failed;
};

static void on_send(kafka_record_t *r, void *arg)
{
    struct seen *s = arg;
    r->value = "changed";
    r->value_len = 7;
    s->sent++;
}

static void on_acknowledgement(const kafka_delivery_t *d, void *arg)
{
    struct seen *s = arg;
    pthread_mutex_lock(&s->lock);
    s->acknowledged += d->err == KAFKA_OK;
    s->failed += d->err != KAFKA_OK;
    pthread_mutex_unlock(&s->lock);
}

static void producer_interceptors_see_and_change(void **state)
{
    struct hooks_test t;
    struct seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char value[32];
    kafka_conf_t *conf = begin(&t, "murmur2");
    kafka_producer_interceptor_t first = {on_send, on_acknowledgement, &s}, second = {.arg = &s};
    assert_int_equal(kafka_conf_add_producer_interceptor(conf, &first), KAFKA_OK);
    assert_int_equal(kafka_conf_add_producer_interceptor(conf, &second), KAFKA_OK);
    test_set(conf, "max.request.size", "1000");
    start(&t, conf);
    kafka_record_t r = {
        .topic = "t", .partition = 0, .timestamp = -1, .value = "v", .value_len = 1};
    assert_int_equal(kafka_producer_send(t.p, &r, NULL, NULL), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(t.p, -1), KAFKA_OK);
    assert_true(mock_value(t.m, "t", 0, 0, value, sizeof value));
    assert_string_equal(value, "changed");
    char key[2000] = "";
    r.key = key; /* too large */
    r.key_len = sizeof key;
    assert_int_not_equal(kafka_producer_send(t.p, &r, NULL, NULL), KAFKA_OK);
    assert_int_equal(s.sent, 2);
    assert_int_equal(s.acknowledged, 1);
    assert_int_equal(s.failed, 1);
    end(&t);
}

struct consumed {
    size_t records, commits;
};

static void on_consume(const kafka_messages_t *m, void *arg)
{
    ((struct consumed *)arg)->records += kafka_messages_count(m);
}

static void on_commit(const kafka_offset_t *offsets, size_t n, void *arg)
{
    ((struct consumed *)arg)->commits += n;
}

static void consumer_interceptors_see(void **state)
{
    struct hooks_test t;
    struct consumed seen = {0, 0};
    char err[256];
    const char *topic = "t";
    start(&t, begin(&t, "roundrobin"));
    send_n(&t, PARTS, NULL);
    kafka_conf_t *conf =
        test_conf(t.m, (const char *[]){"group.id", "g", "auto.offset.reset", "earliest", NULL});
    kafka_consumer_interceptor_t i = {on_consume, on_commit, &seen};
    assert_int_equal(kafka_conf_add_consumer_interceptor(conf, &i), KAFKA_OK);
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    assert_int_equal(kafka_consumer_subscribe(c, &topic, 1, NULL), KAFKA_OK);
    while (seen.records < PARTS) {
        kafka_messages_t *m;
        assert_int_equal(kafka_consumer_poll(c, 60000, &m), KAFKA_OK);
        kafka_messages_free(m);
    }
    assert_int_equal(seen.records, PARTS);
    assert_int_equal(kafka_consumer_commit(c, NULL, 0, -1), KAFKA_OK);
    assert_int_equal(seen.commits, PARTS);
    kafka_consumer_close(c);
    end(&t);
}

UNIT_MAIN(unit_test(roundrobin_takes_each_in_turn), unit_test(random_spreads),
          unit_test(unknown_names_are_refused), unit_test(the_application_may_choose),
          unit_test(producer_interceptors_see_and_change), unit_test(consumer_interceptors_see))
