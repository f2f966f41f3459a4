/* client_test.h - what the tests of the client library share: settings that make retries quick, and
 * a log of deliveries. */
#ifndef TESTS_CLIENT_CLIENT_TEST_H
#define TESTS_CLIENT_CLIENT_TEST_H

#include "unit.h"

#include <kafka/admin.h>
#include <kafka/consumer.h>
#include <kafka/producer.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mock_broker.h"

static inline void test_set(kafka_conf_t *conf, const char *key, const char *value)
{
    char err[256];
    if (kafka_conf_set(conf, key, value, err, sizeof err) != KAFKA_OK)
        fail_msg("%s", err);
}

/* pairs: key, value, ..., NULL */
static inline kafka_conf_t *test_conf(struct mock *m, const char *const *pairs)
{
    kafka_conf_t *conf = kafka_conf_new();
    assert_non_null(conf);
    test_set(conf, "bootstrap.servers", mock_servers(m));
    test_set(conf, "retry.backoff.ms", "1");
    test_set(conf, "retry.backoff.max.ms", "5");
    test_set(conf, "reconnect.backoff.ms", "1");
    test_set(conf, "reconnect.backoff.max.ms", "5");
    for (; pairs && pairs[0]; pairs += 2)
        test_set(conf, pairs[0], pairs[1]);
    return conf;
}

static inline kafka_producer_t *test_producer(struct mock *m, const char *const *pairs)
{
    char err[256] = "";
    kafka_conf_t *conf = test_conf(m, pairs);
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    if (!p)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    return p;
}

/* Takes the conf. */
static inline kafka_admin_t *test_admin(kafka_conf_t *conf)
{
    char err[256] = "";
    kafka_admin_t *a = kafka_admin_new(conf, err, sizeof err);
    if (!a)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    return a;
}

static inline kafka_consumer_t *test_consumer(struct mock *m, const char *const *pairs)
{
    char err[256] = "";
    kafka_conf_t *conf = test_conf(m, pairs);
    test_set(conf, "auto.offset.reset", "earliest");
    test_set(conf, "fetch.max.wait.ms", "100");
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    if (!c)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    return c;
}

enum { DELIVERIES = 4096 };
struct deliveries {
    pthread_mutex_t lock;
    int n;
    struct {
        kafka_err_t err;
        int32_t partition;
        int64_t offset;
        int number; /* of the record */
    } v[DELIVERIES];
};

struct delivery_tag {
    struct deliveries *log;
    int number;
};

static inline void test_on_delivery(const kafka_delivery_t *d, void *arg)
{
    struct delivery_tag *tag = arg;
    struct deliveries *log = tag->log;
    pthread_mutex_lock(&log->lock);
    if (log->n < DELIVERIES) {
        log->v[log->n].err = d->err;
        log->v[log->n].partition = d->partition;
        log->v[log->n].offset = d->offset;
        log->v[log->n].number = tag->number;
    }
    log->n++;
    pthread_mutex_unlock(&log->lock);
    free(tag);
}

/* Sends record "v<number>" to the partition. */
static inline kafka_err_t test_send(kafka_producer_t *p, const char *topic, int32_t partition,
                                    int number, struct deliveries *log)
{
    char value[32];
    struct delivery_tag *tag = malloc(sizeof *tag);
    *tag = (struct delivery_tag){log, number};
    snprintf(value, sizeof value, "v%d", number);
    kafka_record_t r = {.topic = topic,
                        .partition = partition,
                        .timestamp = 1000 + number,
                        .value = value,
                        .value_len = strlen(value)};
    kafka_err_t err = kafka_producer_send(p, &r, test_on_delivery, tag);
    if (err != KAFKA_OK)
        free(tag);
    return err;
}

/* Records v<first>.. lie in the partition in their order, each once. */
static inline void test_expect_values(struct mock *m, const char *topic, int partition, int first,
                                      int count)
{
    assert_int_equal(mock_end(m, topic, partition), count);
    for (int i = 0; i < count; i++) {
        char value[32], expected[32];
        snprintf(expected, sizeof expected, "v%d", first + i);
        assert_true(mock_value(m, topic, partition, i, value, sizeof value));
        assert_string_equal(value, expected);
    }
}

/* All were delivered, in the order sent, with their offsets. */
static inline void test_expect_delivered(const struct deliveries *log, int count)
{
    assert_int_equal(log->n, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(log->v[i].err, KAFKA_OK);
        assert_int_equal(log->v[i].number, i);
        assert_int_equal(log->v[i].offset, i);
    }
}

#endif
