/* Producer against a broker that behaves. */
#include "client/client_test.h"

#include <stdlib.h>

#include "protocol/errors.h"

static void sends_in_order_and_tells_offsets(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(m, NULL);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    test_expect_delivered(&log, 1000);
    test_expect_values(m, "t", 0, 0, 1000);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void lingers_until_flushed(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(
        m, (const char *[]){"linger.ms", "100000", "delivery.timeout.ms", "200000", NULL});
    for (int i = 0; i < 10; i++)
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
    assert_int_equal(mock_end(m, "t", 0), 0);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(mock_batches(m, "t", 0), 1);
    test_expect_delivered(&log, 10);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void full_batches_do_not_wait_for_linger(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p =
        test_producer(m, (const char *[]){"linger.ms", "100000", "delivery.timeout.ms", "200000",
                                          "batch.size", "500", NULL});
    for (int i = 0; i < 100; i++)
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
    mock_await(m, API_PRODUCE, 5);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    test_expect_delivered(&log, 100);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void lingering_ends_by_itself(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 3);
    kafka_producer_t *p = test_producer(m, (const char *[]){"linger.ms", "20", NULL});
    for (int i = 0; i < 3; i++)
        assert_int_equal(test_send(p, "t", i, i, &log), KAFKA_OK);
    mock_await(m, API_PRODUCE, 1);
    kafka_producer_close(p, -1);
    assert_int_equal(log.n, 3);
    mock_stop(m);
}

static void many_partitions_on_several_brokers(void **state)
{
    enum { PARTS = 30, EACH = 40 };
    struct mock *m = mock_start(3);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", PARTS);
    kafka_producer_t *p = test_producer(m, (const char *[]){"batch.size", "100", NULL});
    for (int i = 0; i < PARTS * EACH; i++)
        assert_int_equal(test_send(p, "t", i % PARTS, i / PARTS, &log), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(log.n, PARTS * EACH);
    for (int i = 0; i < PARTS; i++)
        test_expect_values(m, "t", i, 0, EACH);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void keys_choose_the_partition(void **state)
{
    struct mock *m = mock_start(1);
    static const struct {
        const char *key;
        int partition;
    } known[] = {{"", 1},
                 {"0", 6},
                 {"a", 4},
                 {"ab", 4},
                 {"abc", 7},
                 {"abcd", 0},
                 {"21", 0},
                 {"foobar", 6},
                 {"kafka", 0},
                 {"key1", 0},
                 {"hello", 9},
                 {"user-42", 0},
                 {"a-little-bit-long-string", 2}};
    mock_topic(m, "t", 10);
    kafka_producer_t *p = test_producer(m, NULL);
    int64_t ends[10] = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        kafka_record_t r = {.topic = "t",
                            .partition = KAFKA_PARTITION_ANY,
                            .timestamp = KAFKA_TIMESTAMP_NOW,
                            .key = known[i].key,
                            .key_len = strlen(known[i].key)};
        assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_OK);
        ends[known[i].partition]++;
        assert_int_equal(mock_end(m, "t", known[i].partition), ends[known[i].partition]);
    }
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void records_without_keys_stay_together_and_move_on(void **state)
{
    enum { PARTS = 5, RECORDS = 2000 };
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", PARTS);
    kafka_producer_t *p =
        test_producer(m, (const char *[]){"batch.size", "1000", "linger.ms", "1000", NULL});
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(test_send(p, "t", KAFKA_PARTITION_ANY, i, &log), KAFKA_OK);
    kafka_producer_close(p, -1);
    int64_t total = 0, batches = 0;
    for (int i = 0; i < PARTS; i++) {
        assert_true(mock_end(m, "t", i) > RECORDS / PARTS / 4);
        total += mock_end(m, "t", i);
        batches += mock_batches(m, "t", i);
    }
    assert_int_equal(total, RECORDS);
    assert_true(batches < RECORDS / 10);
    mock_stop(m);
}

static void compressed_with_headers_and_nulls(void **state)
{
    static const char *const codecs[] = {"gzip", "snappy", "lz4", "zstd"};
    struct mock *m = mock_start(1);
    for (int i = 0; i < 4; i++) {
        mock_topic(m, codecs[i], 1);
        kafka_producer_t *p =
            test_producer(m, (const char *[]){"compression.type", codecs[i], NULL});
        kafka_header_t h[] = {{"a", "1", 1}, {"b", NULL, 0}};
        kafka_record_t r = {
            .topic = codecs[i], .partition = 0, .timestamp = 5, .headers = h, .headers_n = 2};
        int64_t offset = -1;
        char value[8];
        assert_int_equal(kafka_producer_send_sync(p, &r, &offset), KAFKA_OK);
        assert_int_equal(offset, 0);
        assert_true(mock_value(m, codecs[i], 0, 0, value, sizeof value));
        assert_string_equal(value, "null");
        kafka_producer_close(p, -1);
    }
    mock_stop(m);
}

static void without_acks_nothing_is_told_but_the_sending(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(m, (const char *[]){"acks", "0", NULL});
    for (int i = 0; i < 100; i++)
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(log.n, 100);
    assert_int_equal(log.v[99].err, KAFKA_OK);
    assert_int_equal(log.v[99].offset, -1);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void refuses_what_cannot_be_sent(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 2);
    kafka_producer_t *p = test_producer(
        m, (const char *[]){"max.request.size", "1000", "max.block.ms", "1000", NULL});
    char big[2000] = "";
    kafka_record_t r = {
        .topic = "t", .partition = 0, .timestamp = 1, .value = big, .value_len = 2000};
    assert_int_equal(kafka_producer_send(p, &r, NULL, NULL), KERR_MESSAGE_TOO_LARGE);
    assert_int_equal(test_send(p, "t", 2, 0, &log), KAFKA_ERR_TIMED_OUT);
    assert_int_equal(test_send(p, "t", -2, 0, &log), KAFKA_ERR_INVALID_ARG);
    assert_int_equal(test_send(p, "missing", 0, 0, &log), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    kafka_producer_close(p, -1);
    assert_int_equal(log.n, 0);
    mock_stop(m);
}

static void topics_come_when_the_broker_makes_them(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_auto_create(m);
    mock_script(m, API_METADATA, MOCK_ERROR, KERR_LEADER_NOT_AVAILABLE, 2);
    kafka_producer_t *p = test_producer(m, NULL);
    assert_int_equal(test_send(p, "new", 0, 0, &log), KAFKA_OK);
    kafka_producer_close(p, -1);
    assert_int_equal(mock_end(m, "new", 0), 1);
    mock_stop(m);
}

/* Each is answered with an error that lasts; neither that, nor asking again, keeps a new topic from
 * being made. */
static void topics_that_cannot_be_used_keep_none_from_being_made(void **state)
{
    static const int16_t errors[] = {KERR_INVALID_TOPIC_EXCEPTION, KERR_TOPIC_AUTHORIZATION_FAILED};
    for (int i = 0; i < 2; i++) {
        struct mock *m = mock_start(1);
        struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
        mock_auto_create(m);
        mock_refuse_topic(m, "bad", errors[i]);
        kafka_producer_t *p = test_producer(m, NULL);
        for (int k = 0; k < 2; k++)
            assert_int_equal(test_send(p, "bad", 0, 0, &log), errors[i]);
        assert_int_equal(test_send(p, "new", 0, 0, &log), KAFKA_OK);
        assert_int_equal(test_send(p, "bad", 0, 0, &log), errors[i]);
        assert_int_equal(test_send(p, "newer", 0, 1, &log), KAFKA_OK);
        kafka_producer_close(p, -1);
        assert_int_equal(mock_end(m, "new", 0), 1);
        assert_int_equal(mock_end(m, "newer", 0), 1);
        mock_stop(m);
    }
}

static void memory_is_bounded_and_comes_back(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    mock_script(m, API_PRODUCE, MOCK_HOLD, 0, -1);
    kafka_producer_t *p = test_producer(m, (const char *[]){"buffer.memory", "2000", "batch.size",
                                                            "400", "max.block.ms", "1000", NULL});
    int sent = 0;
    while (test_send(p, "t", 0, sent, &log) == KAFKA_OK)
        sent++;
    assert_in_range(sent, 20, 60);
    assert_int_equal(test_send(p, "t", 0, sent, &log), KAFKA_ERR_QUEUE_FULL);
    mock_script(m, API_PRODUCE, MOCK_FINE, 0, -1);
    mock_release(m);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(test_send(p, "t", 0, sent++, &log), KAFKA_OK);
    kafka_producer_close(p, -1);
    test_expect_delivered(&log, sent);
    test_expect_values(m, "t", 0, 0, sent);
    mock_stop(m);
}

struct sender_args {
    kafka_producer_t *p;
    struct deliveries *log;
    int partition, count;
};

static void *send_many(void *arg)
{
    struct sender_args *a = arg;
    for (int i = 0; i < a->count; i++)
        if (test_send(a->p, "t", a->partition, i, a->log) != KAFKA_OK)
            return a;
    return NULL;
}

static void threads_share_a_producer(void **state)
{
    enum { THREADS = 4, EACH = 500 };
    struct mock *m = mock_start(2);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS];
    struct sender_args args[THREADS];
    mock_topic(m, "t", THREADS);
    kafka_producer_t *p =
        test_producer(m, (const char *[]){"batch.size", "300", "buffer.memory", "5000", NULL});
    for (int i = 0; i < THREADS; i++) {
        args[i] = (struct sender_args){p, &log, i, EACH};
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &args[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    kafka_producer_close(p, -1);
    assert_int_equal(log.n, THREADS * EACH);
    for (int i = 0; i < THREADS; i++)
        test_expect_values(m, "t", i, 0, EACH);
    mock_stop(m);
}

static void closing_without_time_fails_what_waits(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    mock_script(m, API_PRODUCE, MOCK_IGNORE, 0, -1);
    kafka_producer_t *p = test_producer(m, (const char *[]){"batch.size", "300", NULL});
    for (int i = 0; i < 100; i++)
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
    mock_await(m, API_PRODUCE, 1);
    kafka_producer_close(p, 0);
    assert_int_equal(log.n, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(log.v[i].err, KAFKA_ERR_CLOSED);
    mock_stop(m);
}

static void closes_without_a_broker(void **state)
{
    struct mock *m = mock_start(1);
    char servers[64], err[256];
    snprintf(servers, sizeof servers, "%s", mock_servers(m));
    kafka_conf_t *conf = test_conf(m, (const char *[]){"max.block.ms", "20", NULL});
    mock_stop(m);
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    assert_non_null(p);
    kafka_record_t r = {.topic = "t", .partition = 0, .timestamp = 1};
    assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_ERR_TIMED_OUT);
    kafka_producer_close(p, -1);
    kafka_conf_free(conf);
}

static void on_first(const kafka_delivery_t *d, void *arg)
{
    kafka_producer_t *p = ((void **)arg)[0];
    kafka_record_t r = {.topic = "t", .partition = 0, .timestamp = 1, .value = "2", .value_len = 1};
    int *results = ((void **)arg)[1];
    results[0] = kafka_producer_flush(p, -1);
    results[1] = kafka_producer_send_sync(p, &r, NULL);
    results[2] = kafka_producer_send(p, &r, NULL, NULL);
}

static void callbacks_may_send_but_not_wait(void **state)
{
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(m, NULL);
    int results[3] = {1, 1, 1};
    void *arg[] = {p, results};
    kafka_record_t r = {.topic = "t", .partition = 0, .timestamp = 1, .value = "1", .value_len = 1};
    assert_int_equal(kafka_producer_send(p, &r, on_first, arg), KAFKA_OK);
    mock_await(m, API_PRODUCE, 2);
    kafka_producer_close(p, -1);
    assert_int_equal(results[0], KAFKA_ERR_STATE);
    assert_int_equal(results[1], KAFKA_ERR_STATE);
    assert_int_equal(results[2], KAFKA_OK);
    assert_int_equal(mock_end(m, "t", 0), 2);
    mock_stop(m);
}

/* metadata.max.idle.ms (5 s at least): a topic that is not used is asked about no more, until it is
 * used again. */
static void unused_topics_are_forgotten_and_found_again(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(
        m, (const char *[]){"metadata.max.idle.ms", "5000", "metadata.max.age.ms", "50", NULL});
    assert_int_equal(test_send(p, "t", 0, 0, &log), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    mock_await_topics_asked(m, 0);
    assert_int_equal(test_send(p, "t", 0, 1, &log), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    test_expect_delivered(&log, 2);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

/* Brokers that come back under other addresses, one after the other, must not find a client that
 * had nothing to ask them meanwhile. */
static void the_end_of_an_idle_connection_asks_for_metadata(void **state)
{
    struct mock *m = mock_start(2);
    mock_topic(m, "t", 2);
    kafka_producer_t *p = test_producer(m, NULL);
    for (int i = 0; i < 2; i++) {
        kafka_record_t r = {.topic = "t", .partition = i, .value = "v", .value_len = 1};
        assert_int_equal(kafka_producer_send_sync(p, &r, NULL), KAFKA_OK);
    }
    int asked = mock_seen(m, API_METADATA);
    mock_drop_node(m, 1);
    mock_await(m, API_METADATA, asked + 1);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void idle_connections_are_closed_and_made_again(void **state)
{
    struct mock *m = mock_start(1);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(m, (const char *[]){"connections.max.idle.ms", "40", NULL});
    for (int i = 0; i < 3; i++) {
        assert_int_equal(test_send(p, "t", 0, i, &log), KAFKA_OK);
        assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
        mock_await_connections(m, 0);
    }
    test_expect_delivered(&log, 3);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

UNIT_MAIN(unit_test(sends_in_order_and_tells_offsets), unit_test(lingers_until_flushed),
          unit_test(full_batches_do_not_wait_for_linger), unit_test(lingering_ends_by_itself),
          unit_test(many_partitions_on_several_brokers), unit_test(keys_choose_the_partition),
          unit_test(records_without_keys_stay_together_and_move_on),
          unit_test(compressed_with_headers_and_nulls),
          unit_test(without_acks_nothing_is_told_but_the_sending),
          unit_test(refuses_what_cannot_be_sent), unit_test(topics_come_when_the_broker_makes_them),
          unit_test(topics_that_cannot_be_used_keep_none_from_being_made),
          unit_test(memory_is_bounded_and_comes_back), unit_test(threads_share_a_producer),
          unit_test(closing_without_time_fails_what_waits), unit_test(closes_without_a_broker),
          unit_test(callbacks_may_send_but_not_wait),
          unit_test(unused_topics_are_forgotten_and_found_again),
          unit_test(the_end_of_an_idle_connection_asks_for_metadata),
          unit_test(idle_connections_are_closed_and_made_again))
