/* Producer against brokers that fail: with idempotence every record must be there once, in order.
 */
#include "client/client_test.h"

#include <semaphore.h>
#include <stdlib.h>

#include "protocol/errors.h"

struct fault_test {
    struct mock *m;
    kafka_producer_t *p;
    struct deliveries log;
    int sent;
};

static void begin(struct fault_test *t, int nodes, int partitions, const char *const *pairs)
{
    *t = (struct fault_test){.m = mock_start(nodes)};
    pthread_mutex_init(&t->log.lock, NULL);
    mock_topic(t->m, "t", partitions);
    t->p = test_producer(t->m, pairs);
}

static void send_some(struct fault_test *t, int n)
{
    for (int i = 0; i < n; i++, t->sent++)
        assert_int_equal(test_send(t->p, "t", 0, t->sent, &t->log), KAFKA_OK);
}

static void end_all_written(struct fault_test *t)
{
    assert_int_equal(kafka_producer_flush(t->p, 60000), KAFKA_OK);
    test_expect_delivered(&t->log, t->sent);
    test_expect_values(t->m, "t", 0, 0, t->sent);
    kafka_producer_close(t->p, -1);
    mock_stop(t->m);
}

static const char *const small_batches[] = {"batch.size", "120", NULL};

/* ---- answers that say: again ---- */

static void error_heals(int16_t error, int times)
{
    struct fault_test t;
    begin(&t, 1, 1, small_batches);
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, error, times);
    send_some(&t, 100);
    end_all_written(&t);
}

static void retriable_errors_heal(void **state)
{
    static const int16_t errors[] = {KERR_NOT_LEADER_OR_FOLLOWER, KERR_LEADER_NOT_AVAILABLE,
                                     KERR_REQUEST_TIMED_OUT,      KERR_NOT_ENOUGH_REPLICAS,
                                     KERR_CORRUPT_MESSAGE,        KERR_KAFKA_STORAGE_ERROR,
                                     KERR_NETWORK_EXCEPTION,      KERR_UNKNOWN_TOPIC_OR_PARTITION};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        error_heals(errors[i], 1);
        error_heals(errors[i], 7);
    }
}

static void follows_the_leader(void **state)
{
    struct fault_test t;
    begin(&t, 3, 1, small_batches);
    send_some(&t, 20);
    for (int node = 1; node <= 4; node++) {
        mock_move_leader(t.m, "t", 0, node % 3);
        send_some(&t, 20);
    }
    end_all_written(&t);
}

static void a_leaderless_partition_waits_for_its_leader(void **state)
{
    struct fault_test t;
    begin(&t, 2, 2, small_batches);
    mock_move_leader(t.m, "t", 0, -1);
    send_some(&t, 20);
    mock_await(t.m, API_METADATA, 4);
    mock_move_leader(t.m, "t", 0, 1);
    end_all_written(&t);
}

static const char *const one_attempt[] = {"retries", "0", "enable.idempotence", "false", NULL};

static kafka_err_t outcome_of_one(struct fault_test *t)
{
    send_some(t, 1);
    assert_int_equal(kafka_producer_flush(t->p, 60000), KAFKA_OK);
    assert_int_equal(t->log.n, t->sent);
    return t->log.v[t->sent - 1].err;
}

/* The old leader lives and answers: nothing but its answer tells that there is another. */
static void without_retries_the_new_leader_is_found(void **state)
{
    struct fault_test t;
    begin(&t, 2, 1, one_attempt);
    assert_int_equal(outcome_of_one(&t), KAFKA_OK);
    mock_move_leader(t.m, "t", 0, 1);
    int asked = mock_seen(t.m, API_METADATA);
    kafka_err_t err = outcome_of_one(&t);
    assert_int_equal(err, KERR_NOT_LEADER_OR_FOLLOWER);
    /* the refresh may still be on its way when the next is sent */
    while (err == KERR_NOT_LEADER_OR_FOLLOWER) {
        mock_await(t.m, API_METADATA, ++asked);
        err = outcome_of_one(&t);
    }
    assert_int_equal(err, KAFKA_OK);
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

static void a_failed_batch_asks_for_metadata(void **state)
{
    static const int16_t errors[] = {
        KERR_NOT_LEADER_OR_FOLLOWER,     KERR_LEADER_NOT_AVAILABLE, KERR_FENCED_LEADER_EPOCH,
        KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_KAFKA_STORAGE_ERROR,  KERR_UNKNOWN_TOPIC_ID,
        KERR_REPLICA_NOT_AVAILABLE,      KERR_LISTENER_NOT_FOUND,   KERR_NETWORK_EXCEPTION};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct fault_test t;
        begin(&t, 1, 1, one_attempt);
        assert_int_equal(outcome_of_one(&t), KAFKA_OK);
        int asked = mock_seen(t.m, API_METADATA);
        mock_script(t.m, API_PRODUCE, MOCK_ERROR, errors[i], 1);
        assert_int_equal(outcome_of_one(&t), errors[i]);
        mock_await(t.m, API_METADATA, asked + 1);
        kafka_producer_close(t.p, -1);
        mock_stop(t.m);
    }
}

/* ---- lost connections ---- */

static void connection_ends(enum mock_action action, int times, const char *in_flight)
{
    struct fault_test t;
    begin(&t, 1, 1,
          (const char *[]){"batch.size", "120", "max.in.flight.requests.per.connection", in_flight,
                           NULL});
    send_some(&t, 10);
    mock_script(t.m, API_PRODUCE, action, 0, times);
    send_some(&t, 90);
    end_all_written(&t);
}

static void requests_lost_with_their_connection_are_sent_again(void **state)
{
    connection_ends(MOCK_DROP, 1, "5");
    connection_ends(MOCK_DROP, 6, "5");
    connection_ends(MOCK_DROP, 3, "1");
}

static void answers_lost_with_their_connection_make_no_duplicates(void **state)
{
    connection_ends(MOCK_DO_AND_DROP, 1, "5");
    connection_ends(MOCK_DO_AND_DROP, 6, "5");
    connection_ends(MOCK_DO_AND_DROP, 3, "1");
}

static void answers_that_do_not_come_make_no_duplicates(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, (const char *[]){"batch.size", "120", "request.timeout.ms", "1000", NULL});
    send_some(&t, 10);
    mock_script(t.m, API_PRODUCE, MOCK_IGNORE, 0, 1);
    mock_script(t.m, API_PRODUCE, MOCK_FINE, 0, 3);
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, 0, 1); /* for good: the connection times out */
    send_some(&t, 90);
    end_all_written(&t);
}

/* A broker knows only the last five batches of a producer: with more without an outcome, on the
 * connections to an old and a new leader, one that it has already would be taken for a new one. */
static void leaders_move(int first_answered)
{
    struct fault_test t;
    begin(&t, 2, 1, (const char *[]){"batch.size", "120", "metadata.max.age.ms", "10", NULL});
    send_some(&t, 5);
    assert_int_equal(kafka_producer_flush(t.p, -1), KAFKA_OK);
    int seen = mock_seen(t.m, API_PRODUCE);
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, 0, first_answered);
    send_some(&t, 100);
    mock_await(t.m, API_PRODUCE, seen + first_answered); /* written, not answered */
    mock_move_leader(t.m, "t", 0, 1);
    mock_await(t.m, API_METADATA, mock_seen(t.m, API_METADATA) + 5);
    mock_drop_node(t.m, 0);
    end_all_written(&t);
}

static void a_leader_that_moves_gets_no_more_than_brokers_remember(void **state)
{
    leaders_move(5);
    leaders_move(1);
}

/* Both batches are written, the answers lost; sent again together, the first meets an error and the
 * second is told as written: its callback comes behind the first one's all the same. */
static void callbacks_come_in_order_whatever_comes_first(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, (const char *[]){"batch.size", "1", NULL});
    send_some(&t, 1);
    assert_int_equal(kafka_producer_flush(t.p, -1), KAFKA_OK);
    int seen = mock_seen(t.m, API_PRODUCE);
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, 0, 2);
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, KERR_NOT_ENOUGH_REPLICAS, 1);
    send_some(&t, 2);
    mock_await(t.m, API_PRODUCE, seen + 2); /* written, not answered */
    mock_drop_node(t.m, 0);
    mock_await(t.m, API_PRODUCE, seen + 4);
    mock_release(t.m);
    end_all_written(&t);
}

static void on_delivery_post(const kafka_delivery_t *d, void *arg)
{
    assert_int_equal(d->err, KAFKA_OK);
    sem_post(arg);
}

/* Some batches are refused and wait for their next try, others between and behind them are written,
 * until all that wait are given up at once: by time, or by the end of the producer. */
static void given_up_together(bool by_time)
{
    static const bool written[] = {false, false, true, false, true};
    enum { N = sizeof written / sizeof *written };
    const kafka_err_t refused = by_time ? KAFKA_ERR_TIMED_OUT : KAFKA_ERR_CLOSED;
    struct fault_test t;
    sem_t answered;
    sem_init(&answered, 0, 0);
    begin(&t, 1, 2,
          (const char *[]){"batch.size", "1", "enable.idempotence", "false", "retry.backoff.ms",
                           "60000", "retry.backoff.max.ms", "60000", "request.timeout.ms",
                           by_time ? "4000" : "30000", "delivery.timeout.ms",
                           by_time ? "5000" : "60000", NULL});
    for (int i = 0; i < N; i++)
        mock_script(t.m, API_PRODUCE, MOCK_HOLD, written[i] ? 0 : KERR_NOT_ENOUGH_REPLICAS, 1);
    send_some(&t, N);
    mock_await(t.m, API_PRODUCE, N);
    mock_release(t.m);
    /* Its answer comes behind theirs. */
    kafka_record_t behind = {.topic = "t", .partition = 1, .timestamp = 1, .value = ""};
    assert_int_equal(kafka_producer_send(t.p, &behind, on_delivery_post, &answered), KAFKA_OK);
    sem_wait(&answered);
    if (by_time)
        assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    kafka_producer_close(t.p, 0);
    assert_int_equal(t.log.n, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(t.log.v[i].number, i);
        assert_int_equal(t.log.v[i].err, written[i] ? KAFKA_OK : refused);
    }
    sem_destroy(&answered);
    mock_stop(t.m);
}

/* One is in flight, others wait behind it, when the time is over: its own, or the producer's. */
static void given_up_behind_one_in_flight(bool by_time)
{
    enum { N = 4 };
    const kafka_err_t expected = by_time ? KAFKA_ERR_TIMED_OUT : KAFKA_ERR_CLOSED;
    struct fault_test t;
    begin(&t, 1, 1,
          (const char *[]){"batch.size", "1", "max.in.flight.requests.per.connection", "1",
                           "request.timeout.ms", "50", "delivery.timeout.ms",
                           by_time ? "100" : "60000", NULL});
    mock_script(t.m, API_PRODUCE, MOCK_IGNORE, 0, -1);
    send_some(&t, N);
    mock_await(t.m, API_PRODUCE, 1);
    if (by_time)
        assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    kafka_producer_close(t.p, 0);
    assert_int_equal(t.log.n, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(t.log.v[i].number, i);
        assert_int_equal(t.log.v[i].err, expected);
    }
    mock_stop(t.m);
}

static void callbacks_come_in_order_behind_one_in_flight(void **state)
{
    given_up_behind_one_in_flight(true);
    given_up_behind_one_in_flight(false);
}

/* The first waits for its next try while the second is refused for good. */
static void a_refusal_is_told_behind_what_came_before(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, (const char *[]){"batch.size", "1", "enable.idempotence", "false", NULL});
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, KERR_NOT_ENOUGH_REPLICAS, 1);
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, KERR_INVALID_RECORD, 1);
    send_some(&t, 2);
    mock_await(t.m, API_PRODUCE, 2);
    mock_release(t.m);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_int_equal(t.log.n, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(t.log.v[i].number, i);
        assert_int_equal(t.log.v[i].err, i ? KERR_INVALID_RECORD : KAFKA_OK);
    }
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

static void callbacks_come_in_order_when_several_are_given_up(void **state)
{
    given_up_together(true);
    given_up_together(false);
}

static void no_order_of_faults_loses_or_doubles_records(void **state)
{
    static const struct {
        enum mock_action action;
        int16_t error;
    } faults[] = {{MOCK_FINE, 0},
                  {MOCK_FINE, 0},
                  {MOCK_DROP, 0},
                  {MOCK_DO_AND_DROP, 0},
                  {MOCK_ERROR, KERR_NOT_LEADER_OR_FOLLOWER},
                  {MOCK_ERROR, KERR_NOT_ENOUGH_REPLICAS},
                  {MOCK_ERROR, KERR_REQUEST_TIMED_OUT}};
    enum { ROUNDS = 20, STEPS = 30, FAULTS = sizeof faults / sizeof *faults };
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        struct fault_test t;
        srand(seed);
        begin(&t, 2, 1, small_batches);
        for (int i = 0; i < STEPS; i++) {
            int k = rand() % FAULTS;
            mock_script(t.m, API_PRODUCE, faults[k].action, faults[k].error, 1 + rand() % 2);
        }
        for (int i = 0; i < 10; i++) {
            send_some(&t, 1 + rand() % 20);
            if (rand() % 3 == 0)
                mock_move_leader(t.m, "t", 0, rand() % 2);
        }
        end_all_written(&t);
    }
}

/* ---- too large ---- */

/* Without idempotence order needs one request at a time. */
static void too_large_is_split(const char *idempotent, const char *in_flight, const char *codec)
{
    struct fault_test t;
    begin(&t, 1, 1,
          (const char *[]){"batch.size", "2000", "linger.ms", "5", "enable.idempotence", idempotent,
                           "compression.type", codec, "max.in.flight.requests.per.connection",
                           in_flight, NULL});
    mock_max_batch(t.m, 2000);
    send_some(&t, 300);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    mock_max_batch(t.m, 150); /* parts are split again, until one record is left */
    send_some(&t, 300);
    end_all_written(&t);
}

static void too_large_batches_are_split(void **state)
{
    too_large_is_split("true", "5", "none");
    too_large_is_split("false", "1", "none");
    too_large_is_split("true", "5", "lz4");
}

static void a_record_that_is_too_large_fails_alone(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, (const char *[]){"linger.ms", "100", NULL});
    mock_max_batch(t.m, 200);
    send_some(&t, 5);
    char big[300];
    memset(big, 'x', sizeof big);
    struct delivery_tag *tag = malloc(sizeof *tag);
    *tag = (struct delivery_tag){&t.log, 99};
    kafka_record_t r = {
        .topic = "t", .partition = 0, .timestamp = 1, .value = big, .value_len = 300};
    assert_int_equal(kafka_producer_send(t.p, &r, test_on_delivery, tag), KAFKA_OK);
    send_some(&t, 5);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_int_equal(t.log.n, 11);
    for (int i = 0; i < 11; i++)
        assert_int_equal(t.log.v[i].err,
                         t.log.v[i].number == 99 ? KERR_MESSAGE_TOO_LARGE : KAFKA_OK);
    test_expect_values(t.m, "t", 0, 0, 10);
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

/* ---- lost counts ---- */

static void a_lost_count_begins_anew(void **state)
{
    static const int16_t errors[] = {KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, KERR_UNKNOWN_PRODUCER_ID};
    for (int i = 0; i < 2; i++) {
        struct fault_test t;
        begin(&t, 1, 1, small_batches);
        send_some(&t, 20);
        assert_int_equal(kafka_producer_flush(t.p, -1), KAFKA_OK);
        mock_script(t.m, API_PRODUCE, MOCK_ERROR, errors[i], 3);
        send_some(&t, 60);
        end_all_written(&t);
    }
}

/* An epoch that moves on must not touch a partition where something may have been written. */
static void a_new_epoch_makes_no_duplicates_elsewhere(void **state)
{
    struct mock *m = mock_start(2);
    struct deliveries log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mock_topic(m, "t", 2); /* each on a broker of its own */
    kafka_producer_t *p = test_producer(m, (const char *[]){"linger.ms", "0", NULL});
    for (int i = 0; i < 2; i++)
        assert_int_equal(test_send(p, "t", i, 0, &log), KAFKA_OK);
    assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    /* Written on one, answer lost; meanwhile the other loses its count. */
    for (int round = 1; round <= 20; round++) {
        mock_script(m, API_PRODUCE, MOCK_DO_AND_DROP, 0, 1);
        mock_script(m, API_PRODUCE, MOCK_ERROR, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1);
        for (int i = 0; i < 2; i++)
            assert_int_equal(test_send(p, "t", i, round, &log), KAFKA_OK);
        assert_int_equal(kafka_producer_flush(p, -1), KAFKA_OK);
    }
    test_expect_values(m, "t", 0, 0, 21);
    test_expect_values(m, "t", 1, 0, 21);
    assert_int_equal(log.n, 42);
    kafka_producer_close(p, -1);
    mock_stop(m);
}

static void a_refused_batch_fails_and_the_rest_goes_on(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, small_batches);
    send_some(&t, 20);
    assert_int_equal(kafka_producer_flush(t.p, -1), KAFKA_OK);
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED, 1);
    send_some(&t, 60);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    int failed = 0;
    for (int i = 0; i < t.log.n; i++) {
        failed += t.log.v[i].err == KERR_TOPIC_AUTHORIZATION_FAILED;
        assert_true(t.log.v[i].err == KERR_TOPIC_AUTHORIZATION_FAILED ||
                    t.log.v[i].err == KAFKA_OK);
    }
    assert_in_range(failed, 1, 10);
    assert_int_equal(t.log.n, 80);
    assert_int_equal(mock_end(t.m, "t", 0), 80 - failed);
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

/* ---- time ---- */

static void delivery_timeout_ends_what_cannot_be_sent(void **state)
{
    struct fault_test t;
    /* long enough for a busy machine to deliver what can be delivered */
    begin(&t, 1, 1,
          (const char *[]){"batch.size", "120", "request.timeout.ms", "4000", "delivery.timeout.ms",
                           "5000", NULL});
    send_some(&t, 10);
    assert_int_equal(kafka_producer_flush(t.p, -1), KAFKA_OK);
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_NOT_ENOUGH_REPLICAS, -1);
    send_some(&t, 50);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_int_equal(t.log.n, 60);
    for (int i = 10; i < 60; i++)
        assert_true(t.log.v[i].err == KAFKA_ERR_TIMED_OUT ||
                    t.log.v[i].err == KAFKA_ERR_TRANSPORT ||
                    t.log.v[i].err == KERR_NOT_ENOUGH_REPLICAS);
    /* and then all is well again, without the lost ones */
    mock_script(t.m, API_PRODUCE, MOCK_FINE, 0, -1);
    send_some(&t, 30);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_int_equal(t.log.n, 90);
    for (int i = 60; i < 90; i++)
        assert_int_equal(t.log.v[i].err, KAFKA_OK);
    assert_int_equal(mock_end(t.m, "t", 0), 40);
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

static void a_slow_broker_gets_no_more_than_its_limit(void **state)
{
    struct fault_test t;
    begin(
        &t, 1, 1,
        (const char *[]){"batch.size", "120", "max.in.flight.requests.per.connection", "3", NULL});
    mock_script(t.m, API_PRODUCE, MOCK_HOLD, 0, -1);
    send_some(&t, 100);
    mock_await(t.m, API_PRODUCE, 3);
    assert_int_equal(mock_seen(t.m, API_PRODUCE), 3);
    mock_script(t.m, API_PRODUCE, MOCK_FINE, 0, -1);
    mock_release(t.m);
    end_all_written(&t);
}

static void retries_are_counted(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, (const char *[]){"retries", "2", NULL});
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_NOT_ENOUGH_REPLICAS, 3);
    send_some(&t, 1);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_int_equal(t.log.v[0].err, KERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(mock_seen(t.m, API_PRODUCE), 3);
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

/* ---- producer id ---- */

static void a_producer_id_is_asked_for_until_it_comes(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, NULL);
    mock_script(t.m, API_INIT_PRODUCER_ID, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, 3);
    mock_script(t.m, API_INIT_PRODUCER_ID, MOCK_DROP, 0, 2);
    send_some(&t, 5);
    end_all_written(&t);
}

static void without_the_right_to_an_id_nothing_is_sent(void **state)
{
    struct fault_test t;
    begin(&t, 1, 1, NULL);
    mock_script(t.m, API_INIT_PRODUCER_ID, MOCK_ERROR, KERR_CLUSTER_AUTHORIZATION_FAILED, -1);
    send_some(&t, 1);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_int_equal(t.log.v[0].err, KERR_CLUSTER_AUTHORIZATION_FAILED);
    assert_int_equal(test_send(t.p, "t", 0, 1, &t.log), KERR_CLUSTER_AUTHORIZATION_FAILED);
    kafka_producer_close(t.p, -1);
    mock_stop(t.m);
}

static void old_brokers_are_written_to_as_they_can(void **state)
{
    struct fault_test t;
    struct mock *m = mock_start(1);
    t = (struct fault_test){.m = m};
    pthread_mutex_init(&t.log.lock, NULL);
    mock_topic(m, "t", 1);
    mock_cap_version(m, API_INIT_PRODUCER_ID, -1);
    mock_cap_version(m, API_PRODUCE, 3);
    mock_cap_version(m, API_METADATA, 1);
    mock_cap_version(m, API_API_VERSIONS, 0);
    t.p = test_producer(m, small_batches);
    send_some(&t, 50);
    end_all_written(&t);
}

UNIT_MAIN(unit_test(retriable_errors_heal), unit_test(follows_the_leader),
          unit_test(a_leaderless_partition_waits_for_its_leader),
          unit_test(without_retries_the_new_leader_is_found),
          unit_test(a_failed_batch_asks_for_metadata),
          unit_test(requests_lost_with_their_connection_are_sent_again),
          unit_test(answers_lost_with_their_connection_make_no_duplicates),
          unit_test(answers_that_do_not_come_make_no_duplicates),
          unit_test(a_leader_that_moves_gets_no_more_than_brokers_remember),
          unit_test(callbacks_come_in_order_whatever_comes_first),
          unit_test(callbacks_come_in_order_when_several_are_given_up),
          unit_test(callbacks_come_in_order_behind_one_in_flight),
          unit_test(a_refusal_is_told_behind_what_came_before),
          unit_test(no_order_of_faults_loses_or_doubles_records),
          unit_test(too_large_batches_are_split), unit_test(a_record_that_is_too_large_fails_alone),
          unit_test(a_lost_count_begins_anew), unit_test(a_new_epoch_makes_no_duplicates_elsewhere),
          unit_test(a_refused_batch_fails_and_the_rest_goes_on),
          unit_test(delivery_timeout_ends_what_cannot_be_sent),
          unit_test(a_slow_broker_gets_no_more_than_its_limit), unit_test(retries_are_counted),
          unit_test(a_producer_id_is_asked_for_until_it_comes),
          unit_test(without_the_right_to_an_id_nothing_is_sent),
          unit_test(old_brokers_are_written_to_as_they_can))
