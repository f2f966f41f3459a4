/* What clients make of an answer that they may not do something: which error, at once or for good,
 * and words that name what it is about. */
#include "client/client_test.h"

#include <kafka/admin.h>

#include "protocol/errors.h"

/* ---- producers ---- */

struct heard {
    pthread_mutex_t lock;
    int n;
    kafka_err_t err;
    char words[256];
};

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    struct heard *h = arg;
    pthread_mutex_lock(&h->lock);
    h->n++;
    h->err = d->err;
    snprintf(h->words, sizeof h->words, "%s", d->err ? d->error_message : "");
    pthread_mutex_unlock(&h->lock);
}

static kafka_err_t send_one(kafka_producer_t *p, const char *topic, struct heard *h)
{
    kafka_record_t r = {.topic = topic, .partition = 0, .value = "v", .value_len = 1};
    return kafka_producer_send(p, &r, on_delivery, h);
}

static void a_topic_that_may_not_be_written_fails_its_records_alone(void **state)
{
    struct mock *m = mock_start(1);
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    mock_refuse_topic(m, "hidden", KERR_TOPIC_AUTHORIZATION_FAILED);
    kafka_producer_t *p = test_producer(m, NULL);
    /* one that is seen, and may not be written */
    mock_script(m, API_PRODUCE, MOCK_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED, 1);
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(h.err, KERR_TOPIC_AUTHORIZATION_FAILED);
    assert_string_equal(h.words, "Not authorized to access topics: [t]");
    assert_int_equal(mock_seen(m, API_PRODUCE), 1); /* not tried again */
    /* one that is not seen */
    assert_int_equal(send_one(p, "hidden", &h), KERR_TOPIC_AUTHORIZATION_FAILED);
    assert_non_null(strstr(kafka_last_error(), "Not authorized to access topics: [hidden]"));
    /* and the producer goes on */
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(h.err, KAFKA_OK);
    assert_int_equal(h.n, 2);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void without_the_right_to_write_idempotently_a_producer_cannot_go_on(void **state)
{
    struct mock *m = mock_start(1);
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = test_producer(m, NULL);
    mock_script(m, API_INIT_PRODUCER_ID, MOCK_ERROR, KERR_CLUSTER_AUTHORIZATION_FAILED, -1);
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(h.err, KERR_CLUSTER_AUTHORIZATION_FAILED);
    assert_int_equal(send_one(p, "t", &h), KERR_CLUSTER_AUTHORIZATION_FAILED);
    assert_non_null(strstr(kafka_last_error(), "CLUSTER_AUTHORIZATION_FAILED"));
    kafka_producer_close(p, -1);
    /* one that writes without an id needs no such right */
    p = test_producer(m, (const char *[]){"enable.idempotence", "false", NULL});
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    assert_int_equal(h.err, KAFKA_OK);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static kafka_producer_t *transactional(struct mock *m)
{
    return test_producer(m, (const char *[]){"transactional.id", "x", NULL});
}

static void a_transactional_id_of_others_is_named(void **state)
{
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 1);
    kafka_producer_t *p = transactional(m);
    mock_script(m, API_INIT_PRODUCER_ID, MOCK_ERROR, KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 1);
    assert_int_equal(kafka_producer_init_transactions(p, 60000),
                     KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_non_null(strstr(kafka_last_error(), "Not authorized to access transactional id: x"));
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void a_topic_of_a_transaction_is_named_and_the_transaction_aborted(void **state)
{
    struct mock *m = mock_start(1);
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 1);
    kafka_producer_t *p = transactional(m);
    assert_int_equal(kafka_producer_init_transactions(p, 60000), KAFKA_OK);
    assert_int_equal(kafka_producer_begin_transaction(p), KAFKA_OK);
    mock_script(m, API_ADD_PARTITIONS_TO_TXN, MOCK_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED, 1);
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    assert_int_equal(kafka_producer_commit_transaction(p, 60000), KERR_TOPIC_AUTHORIZATION_FAILED);
    assert_non_null(strstr(kafka_last_error(), "Not authorized to access topics: [t]"));
    assert_int_equal(kafka_producer_abort_transaction(p, 60000), KAFKA_OK);
    /* with the right the next one is done */
    assert_int_equal(kafka_producer_begin_transaction(p), KAFKA_OK);
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    assert_int_equal(kafka_producer_commit_transaction(p, 60000), KAFKA_OK);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

/* ---- consumers ---- */

static kafka_err_t poll_until_error(kafka_consumer_t *c)
{
    kafka_messages_t *m = NULL;
    kafka_err_t err = KAFKA_OK;
    for (int i = 0; i < 600 && err == KAFKA_OK; i++) {
        err = kafka_consumer_poll(c, 100, &m);
        kafka_messages_free(m);
    }
    return err;
}

static void poll_tells_of_topics_that_may_not_be_read(void **state)
{
    struct mock *m = mock_start(1);
    kafka_messages_t *got = NULL;
    mock_topic(m, "t", 1);
    mock_refuse_topic(m, "hidden", KERR_TOPIC_AUTHORIZATION_FAILED);
    kafka_producer_t *p = test_producer(m, NULL);
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(send_one(p, "t", &h), KAFKA_OK);
    kafka_producer_close(p, -1);
    kafka_consumer_t *c = test_consumer(m, (const char *[]){"group.id", "g", NULL});
    assert_int_equal(kafka_consumer_subscribe(c, (const char *[]){"hidden", "t"}, 2, NULL),
                     KAFKA_OK);
    bool told = false;
    size_t n = 0;
    for (int i = 0; i < 600 && (!told || n == 0); i++) { /* what may be read, is */
        kafka_err_t err = kafka_consumer_poll(c, 100, &got);
        if (err != KAFKA_OK) {
            assert_int_equal(err, KERR_TOPIC_AUTHORIZATION_FAILED);
            assert_non_null(
                strstr(kafka_last_error(), "Not authorized to access topics: [hidden]"));
            told = true;
        } else if (got) {
            n += kafka_messages_count(got);
            kafka_messages_free(got);
        }
    }
    assert_true(told);
    assert_int_equal(n, 1);
    kafka_consumer_close(c);
    mock_stop(m);
}

static void poll_tells_of_partitions_that_may_not_be_read(void **state)
{
    static const int16_t apis[] = {API_FETCH, API_LIST_OFFSETS};
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        struct mock *m = mock_start(1);
        mock_topic(m, "t", 1);
        mock_script(m, apis[i], MOCK_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED, 1);
        kafka_consumer_t *c = test_consumer(m, NULL);
        kafka_topic_partition_t tp = {"t", 0};
        assert_int_equal(kafka_consumer_assign(c, &tp, 1), KAFKA_OK);
        assert_int_equal(poll_until_error(c), KERR_TOPIC_AUTHORIZATION_FAILED);
        assert_non_null(strstr(kafka_last_error(), "Not authorized to access topics: [t]"));
        kafka_consumer_close(c);
        mock_stop(m);
    }
}

static void a_group_of_others_is_named(void **state)
{
    static const int16_t apis[] = {API_FIND_COORDINATOR, API_JOIN_GROUP, API_SYNC_GROUP,
                                   API_HEARTBEAT};
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        struct mock *m = mock_start(1);
        mock_topic(m, "t", 1);
        mock_script(m, apis[i], MOCK_ERROR, KERR_GROUP_AUTHORIZATION_FAILED, 1);
        kafka_consumer_t *c = test_consumer(
            m, (const char *[]){"group.id", "g", "heartbeat.interval.ms", "50", NULL});
        assert_int_equal(kafka_consumer_subscribe(c, (const char *[]){"t"}, 1, NULL), KAFKA_OK);
        assert_int_equal(poll_until_error(c), KERR_GROUP_AUTHORIZATION_FAILED);
        assert_non_null(strstr(kafka_last_error(), "Not authorized to access group: g"));
        kafka_consumer_close(c);
        mock_stop(m);
    }
}

/* ---- the search for a coordinator ---- */

/* It is over at once, not when the call's time is. */
static void calls_about_a_group_of_others_end_with_that(void **state)
{
    struct mock *m = mock_start(1);
    kafka_admin_t *a = test_admin(test_conf(m, NULL));
    kafka_offset_list_t *offsets;
    mock_script(m, API_FIND_COORDINATOR, MOCK_ERROR, KERR_GROUP_AUTHORIZATION_FAILED, -1);
    assert_int_equal(kafka_admin_group_offsets(a, "g", NULL, 0, 0, -1, &offsets),
                     KERR_GROUP_AUTHORIZATION_FAILED);
    assert_int_equal(mock_seen(m, API_FIND_COORDINATOR), 1);
    assert_int_equal(kafka_admin_delete_groups(a, (const char *[]){"g"}, 1, -1, NULL),
                     KERR_GROUP_AUTHORIZATION_FAILED);
    kafka_admin_close(a);
    mock_stop(m);
}

static void offsets_of_a_group_of_others_are_refused(void **state)
{
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 1);
    mock_script(m, API_FIND_COORDINATOR, MOCK_ERROR, KERR_GROUP_AUTHORIZATION_FAILED, -1);
    kafka_consumer_t *c = test_consumer(m, (const char *[]){"group.id", "g", NULL});
    kafka_topic_partition_t tp = {"t", 0};
    kafka_offset_list_t *offsets;
    assert_int_equal(kafka_consumer_assign(c, &tp, 1), KAFKA_OK);
    assert_int_equal(kafka_consumer_committed(c, &tp, 1, -1, &offsets),
                     KERR_GROUP_AUTHORIZATION_FAILED);
    assert_non_null(strstr(kafka_last_error(), "Not authorized to access group: g"));
    kafka_consumer_close(c);
    mock_stop(m);
}

UNIT_MAIN(unit_test(a_topic_that_may_not_be_written_fails_its_records_alone),
          unit_test(without_the_right_to_write_idempotently_a_producer_cannot_go_on),
          unit_test(a_transactional_id_of_others_is_named),
          unit_test(a_topic_of_a_transaction_is_named_and_the_transaction_aborted),
          unit_test(poll_tells_of_topics_that_may_not_be_read),
          unit_test(poll_tells_of_partitions_that_may_not_be_read),
          unit_test(a_group_of_others_is_named),
          unit_test(calls_about_a_group_of_others_end_with_that),
          unit_test(offsets_of_a_group_of_others_are_refused))
