/* Transactions: what goes to the coordinators and when, calls in the wrong state, time that is
 * over, answers that get lost, counts that must stay whole. */
#include "client/client_test.h"

#include "protocol/errors.h"
#include "protocol/msg/end_txn.h"
#include "protocol/msg/init_producer_id.h"
#include "protocol/msg/produce.h"
#include "protocol/msg/txn_offset_commit.h"

struct txn_test {
    struct mock *m;
    kafka_producer_t *p;
    struct deliveries log;
    char seen[256]; /* a letter per request, in their order */
    int32_t timeout_ms, generation;
    char member_id[64];
    bool committed;
};

static void see(void *arg, const struct request_header *head, const void *request)
{
    struct txn_test *t = arg;
    static const struct {
        int16_t api;
        char letter;
    } letters[] = {{API_INIT_PRODUCER_ID, 'i'},
                   {API_ADD_PARTITIONS_TO_TXN, 'p'},
                   {API_ADD_OFFSETS_TO_TXN, 'o'},
                   {API_TXN_OFFSET_COMMIT, 'c'},
                   {API_PRODUCE, 'P'},
                   {API_END_TXN, 'e'}};
    size_t n = strlen(t->seen);
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].api == head->api_key && n + 1 < sizeof t->seen)
            t->seen[n] = letters[i].letter;
    if (head->api_key == API_INIT_PRODUCER_ID)
        t->timeout_ms = ((const struct init_producer_id_request *)request)->transaction_timeout_ms;
    if (head->api_key == API_END_TXN)
        t->committed = ((const struct end_txn_request *)request)->committed;
    if (head->api_key == API_PRODUCE)
        assert_true(str_eqz(((const struct produce_request *)request)->transactional_id, "x"));
    if (head->api_key == API_TXN_OFFSET_COMMIT) {
        const struct txn_offset_commit_request *r = request;
        t->generation = r->generation_id;
        snprintf(t->member_id, sizeof t->member_id, "%.*s", STR_ARG(r->member_id));
    }
}

static void begin_with(struct txn_test *t, int nodes, const char *const *pairs)
{
    kafka_conf_t *conf;
    char err[256] = "";
    *t = (struct txn_test){.m = mock_start(nodes)};
    pthread_mutex_init(&t->log.lock, NULL);
    mock_topic(t->m, "t", 2);
    mock_watch(t->m, see, t);
    conf = test_conf(t->m, pairs);
    test_set(conf, "transactional.id", "x");
    t->p = kafka_producer_new(conf, err, sizeof err);
    if (!t->p)
        fail_msg("%s", err);
    kafka_conf_free(conf);
}

static void begin(struct txn_test *t)
{
    begin_with(t, 1, NULL);
}

static void end(struct txn_test *t)
{
    kafka_producer_close(t->p, 60000);
    mock_stop(t->m);
}

static void open_transaction(struct txn_test *t)
{
    assert_int_equal(kafka_producer_init_transactions(t->p, 60000), KAFKA_OK);
    assert_int_equal(kafka_producer_begin_transaction(t->p), KAFKA_OK);
}

static void commit(struct txn_test *t)
{
    kafka_err_t err = kafka_producer_commit_transaction(t->p, 60000);
    if (err != KAFKA_OK)
        fail_msg("%s", kafka_last_error());
}

static void send_one(struct txn_test *t, int partition, int number)
{
    assert_int_equal(test_send(t->p, "t", partition, number, &t->log), KAFKA_OK);
}

static kafka_err_t send_offset(struct txn_test *t, int64_t offset, int64_t timeout_ms)
{
    kafka_offset_t o = {.topic = "in", .partition = 0, .offset = offset, .leader_epoch = -1};
    kafka_group_metadata_t *g = kafka_group_metadata_new("g");
    kafka_err_t err = kafka_producer_send_offsets_to_transaction(t->p, &o, 1, g, timeout_ms);
    kafka_group_metadata_free(g);
    return err;
}

/* ---- what goes out ---- */

static void requests_come_in_their_order(void **state)
{
    struct txn_test t;
    begin_with(&t, 1, (const char *[]){"transaction.timeout.ms", "12345", NULL});
    open_transaction(&t);
    send_one(&t, 0, 0);
    send_one(&t, 0, 1);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    assert_string_equal(t.seen, "ipP");
    assert_int_equal(t.timeout_ms, 12345);
    assert_true(mock_txn(t.m).open);
    assert_int_equal(send_offset(&t, 7, 60000), KAFKA_OK);
    assert_string_equal(t.seen, "ipPoc");
    assert_int_equal(mock_committed(t.m, "in", 0), -1);
    commit(&t);
    assert_string_equal(t.seen, "ipPoce");
    assert_true(t.committed);
    assert_int_equal(mock_committed(t.m, "in", 0), 7);
    test_expect_values(t.m, "t", 0, 0, 2);
    test_expect_delivered(&t.log, 2);
    end(&t);
    assert_string_equal(t.seen, "ipPoce");
}

/* The count goes on, under the same epoch: the mock would refuse another. */
static void transactions_follow_each_other(void **state)
{
    struct txn_test t;
    begin(&t);
    assert_int_equal(kafka_producer_init_transactions(t.p, 60000), KAFKA_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
        send_one(&t, 0, i);
        send_one(&t, 1, i);
        commit(&t);
    }
    assert_int_equal(mock_txn(t.m).commits, 20);
    assert_int_equal(mock_txn(t.m).epoch, 0);
    test_expect_values(t.m, "t", 0, 0, 20);
    test_expect_values(t.m, "t", 1, 0, 20);
    end(&t);
}

/* linger.ms is a minute: a commit does not wait for it. */
static void a_commit_sends_what_lingers(void **state)
{
    struct txn_test t;
    begin_with(&t, 1, (const char *[]){"linger.ms", "60000", NULL});
    open_transaction(&t);
    send_one(&t, 0, 0);
    commit(&t);
    test_expect_delivered(&t.log, 1);
    end(&t);
}

static void an_empty_transaction_is_nobodys_business(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    commit(&t);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    assert_string_equal(t.seen, "i");
    end(&t);
}

static void an_abort_fails_what_was_not_sent(void **state)
{
    struct txn_test t;
    begin_with(&t, 1, (const char *[]){"linger.ms", "60000", NULL});
    open_transaction(&t);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    send_one(&t, 0, 1);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    assert_string_equal(t.seen, "ipPe");
    assert_false(t.committed);
    assert_int_equal(t.log.n, 2);
    assert_int_equal(t.log.v[0].err, KAFKA_OK);
    assert_int_equal(t.log.v[1].err, KAFKA_ERR_TXN_ABORTED);
    assert_int_equal(mock_txn(t.m).epoch, 0); /* nothing is unclear: no new epoch */
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    send_one(&t, 0, 1);
    commit(&t);
    test_expect_values(t.m, "t", 0, 0, 2);
    end(&t);
}

/* As is the partition of a record that was never sent. */
static void an_abort_adds_no_partitions(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    mock_script(t.m, API_ADD_PARTITIONS_TO_TXN, MOCK_ERROR, KERR_CONCURRENT_TRANSACTIONS, -1);
    send_one(&t, 0, 0);
    mock_await(t.m, API_ADD_PARTITIONS_TO_TXN, 2);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    assert_int_equal(mock_seen(t.m, API_END_TXN), 0);
    assert_int_equal(mock_seen(t.m, API_PRODUCE), 0);
    assert_int_equal(t.log.v[0].err, KAFKA_ERR_TXN_ABORTED);
    end(&t);
}

/* ---- calls in the wrong state ---- */

enum { CALL_INIT, CALL_BEGIN, CALL_SEND, CALL_OFFSETS, CALL_COMMIT, CALL_ABORT, CALLS };

static kafka_err_t call(struct txn_test *t, int which)
{
    switch (which) {
    case CALL_INIT:
        return kafka_producer_init_transactions(t->p, 60000);
    case CALL_BEGIN:
        return kafka_producer_begin_transaction(t->p);
    case CALL_SEND:
        return test_send(t->p, "t", 0, 0, &t->log);
    case CALL_OFFSETS:
        return send_offset(t, 1, 60000);
    case CALL_COMMIT:
        return kafka_producer_commit_transaction(t->p, 60000);
    default:
        return kafka_producer_abort_transaction(t->p, 60000);
    }
}

static void calls_in_the_wrong_state_change_nothing(void **state)
{
    static const char *const rows[][2] = {/* calls that were made, calls that are allowed then */
                                          {"", "i"},
                                          {"i", "b"},
                                          {"ib", "soca"},
                                          {"ibsc", "b"},
                                          {"ibsa", "b"}};
    static const char letters[] = "ibsoca";
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (int which = 0; which < CALLS; which++) {
            struct txn_test t;
            begin(&t);
            for (const char *b = rows[row][0]; *b; b++)
                assert_int_equal(call(&t, (int)(strchr(letters, *b) - letters)), KAFKA_OK);
            bool allowed = strchr(rows[row][1], letters[which]) != NULL;
            assert_int_equal(call(&t, which), allowed ? KAFKA_OK : KAFKA_ERR_STATE);
            assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_FINE);
            if (!allowed) /* nothing has changed */
                assert_int_equal(call(&t, (int)(strchr(letters, rows[row][1][0]) - letters)),
                                 KAFKA_OK);
            end(&t);
        }
}

static void without_a_transactional_id_nothing_is_allowed(void **state)
{
    struct txn_test t = {.m = mock_start(1)};
    pthread_mutex_init(&t.log.lock, NULL);
    mock_topic(t.m, "t", 1);
    t.p = test_producer(t.m, NULL);
    for (int which = 0; which < CALLS; which++)
        assert_int_equal(call(&t, which), which == CALL_SEND ? KAFKA_OK : KAFKA_ERR_STATE);
    end(&t);
}

static void offsets_must_be_such(void **state)
{
    struct txn_test t;
    kafka_offset_t good = {.topic = "in", .partition = 0, .offset = 1}, bad = good;
    begin(&t);
    open_transaction(&t);
    kafka_group_metadata_t *g = kafka_group_metadata_new("g"), *none = kafka_group_metadata_new("");
    bad.offset = -1;
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &bad, 1, g, -1),
                     KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &good, 1, NULL, -1),
                     KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &good, 1, none, -1),
                     KAFKA_ERR_INVALID_ARG);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, NULL, 0, g, -1), KAFKA_OK);
    assert_string_equal(t.seen, "i");
    kafka_group_metadata_free(g);
    kafka_group_metadata_free(none);
    end(&t);
}

static void try_in_callback(const kafka_delivery_t *d, void *arg)
{
    struct txn_test *t = arg;
    assert_int_equal(kafka_producer_commit_transaction(t->p, 60000), KAFKA_ERR_STATE);
    assert_int_equal(send_offset(t, 1, 60000), KAFKA_ERR_STATE);
    t->generation = 77;
}

static void a_callback_cannot_wait_for_itself(void **state)
{
    struct txn_test t;
    kafka_record_t r = {.topic = "t", .partition = 0, .value = "v", .value_len = 1};
    begin(&t);
    open_transaction(&t);
    assert_int_equal(kafka_producer_send(t.p, &r, try_in_callback, &t), KAFKA_OK);
    commit(&t);
    assert_int_equal(t.generation, 77);
    end(&t);
}

/* ---- time that is over ---- */

static void a_call_over_its_time_is_made_again(void **state)
{
    static const struct {
        int16_t api;
        int which;
    } rows[] = {
        {API_INIT_PRODUCER_ID, CALL_INIT}, {API_END_TXN, CALL_COMMIT}, {API_END_TXN, CALL_ABORT}};
    for (int i = 0; i < 3; i++) {
        struct txn_test t;
        begin_with(&t, 1, (const char *[]){"max.block.ms", "50", NULL});
        if (rows[i].which != CALL_INIT) {
            open_transaction(&t);
            send_one(&t, 0, 0);
            assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
        }
        mock_script(t.m, rows[i].api, MOCK_HOLD, 0, 1);
        kafka_err_t err = rows[i].which == CALL_INIT ? kafka_producer_init_transactions(t.p, -1)
                          : rows[i].which == CALL_COMMIT
                              ? kafka_producer_commit_transaction(t.p, -1)
                              : kafka_producer_abort_transaction(t.p, -1);
        assert_int_equal(err, KAFKA_ERR_TIMED_OUT);
        assert_non_null(strstr(kafka_last_error(), "50 ms"));
        assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_FINE);
        for (int which = 0; which < CALLS; which++)
            if (which != rows[i].which)
                assert_int_equal(call(&t, which), KAFKA_ERR_STATE);
        mock_release(t.m);
        assert_int_equal(call(&t, rows[i].which), KAFKA_OK);
        assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
        end(&t);
    }
}

/* Offsets whose call was over its time are part of the commit all the same. */
static void late_offsets_are_committed(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    mock_script(t.m, API_TXN_OFFSET_COMMIT, MOCK_HOLD, 0, 1);
    assert_int_equal(send_offset(&t, 5, 50), KAFKA_ERR_TIMED_OUT);
    assert_int_equal(send_offset(&t, 6, 50), KAFKA_ERR_TIMED_OUT); /* waits for those */
    mock_release(t.m);
    commit(&t);
    assert_int_equal(mock_committed(t.m, "in", 0), 5);
    end(&t);
}

static void an_abort_drops_late_offsets(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    mock_script(t.m, API_TXN_OFFSET_COMMIT, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, -1);
    assert_int_equal(send_offset(&t, 5, 50), KAFKA_ERR_TIMED_OUT);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    mock_script(t.m, API_TXN_OFFSET_COMMIT, MOCK_FINE, 0, -1);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    assert_int_equal(send_offset(&t, 6, 60000), KAFKA_OK);
    commit(&t);
    assert_int_equal(mock_committed(t.m, "in", 0), 6);
    end(&t);
}

/* ---- lost answers ---- */

/* Each request is done, and its answer lost: nobody may be the wiser. */
static void lost_answers_heal(void **state)
{
    static const int16_t apis[] = {API_INIT_PRODUCER_ID,
                                   API_ADD_PARTITIONS_TO_TXN,
                                   API_ADD_OFFSETS_TO_TXN,
                                   API_TXN_OFFSET_COMMIT,
                                   API_PRODUCE,
                                   API_END_TXN};
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++)
        for (int action = 0; action < 2; action++) {
            struct txn_test t;
            begin(&t);
            mock_script(t.m, apis[i], action ? MOCK_DO_AND_DROP : MOCK_DROP, 0, 1);
            open_transaction(&t);
            send_one(&t, 0, 0);
            assert_int_equal(send_offset(&t, 5, 60000), KAFKA_OK);
            commit(&t);
            assert_int_equal(mock_txn(t.m).commits, 1);
            assert_int_equal(mock_committed(t.m, "in", 0), 5);
            test_expect_values(t.m, "t", 0, 0, 1);
            end(&t);
        }
}

/* EndTxn of a transaction that the coordinator does not know would be fatal; without it offsets
 * that it does know would be committed with the next one. So the abort finds out first. */
static void an_abort_finds_out_what_was_added(void **state)
{
    for (int done = 0; done < 2; done++)
        for (int offsets = 0; offsets < 2; offsets++) {
            struct txn_test t;
            int16_t api = offsets ? API_ADD_OFFSETS_TO_TXN : API_ADD_PARTITIONS_TO_TXN;
            begin(&t);
            mock_script(t.m, api, done ? MOCK_DO_AND_DROP : MOCK_DROP, 0, 1);
            mock_script(t.m, api, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, -1);
            open_transaction(&t);
            if (offsets)
                assert_int_equal(send_offset(&t, 5, 50), KAFKA_ERR_TIMED_OUT);
            else
                send_one(&t, 0, 0);
            mock_await(t.m, api, 2);
            assert_int_equal(kafka_producer_abort_transaction(t.p, 20), KAFKA_ERR_TIMED_OUT);
            assert_int_equal(mock_seen(t.m, API_END_TXN), 0);
            mock_script(t.m, api, MOCK_FINE, 0, -1);
            assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
            assert_int_equal(mock_txn(t.m).aborts, 1);
            assert_false(mock_txn(t.m).open);
            end(&t);
        }
}

static void coordinators_that_move_are_followed(void **state)
{
    struct txn_test t;
    begin_with(&t, 3, NULL);
    assert_int_equal(kafka_producer_init_transactions(t.p, 60000), KAFKA_OK);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
        send_one(&t, 0, i);
        mock_move_txn_coordinator(t.m, i % 3);
        mock_move_coordinator(t.m, (i + 1) % 3);
        mock_move_leader(t.m, "t", 0, (i + 2) % 3);
        assert_int_equal(send_offset(&t, i, 60000), KAFKA_OK);
        commit(&t);
        assert_int_equal(mock_committed(t.m, "in", 0), i);
    }
    assert_int_equal(mock_txn(t.m).commits, 9);
    test_expect_values(t.m, "t", 0, 0, 9);
    end(&t);
}

static void offsets_of_several_groups_go_to_each(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    for (int i = 0; i < 6; i++) {
        kafka_offset_t o = {.topic = "in", .partition = i, .offset = 10 + i};
        kafka_group_metadata_t *g = kafka_group_metadata_new(i % 2 ? "odd" : "even");
        assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &o, 1, g, -1), KAFKA_OK);
        kafka_group_metadata_free(g);
    }
    commit(&t);
    for (int i = 0; i < 6; i++)
        assert_int_equal(mock_committed(t.m, "in", i), 10 + i);
    assert_int_equal(mock_txn(t.m).commits, 1);
    end(&t);
}

/* ---- members ---- */

static const char *const member[] = {"group.id", "g", "enable.auto.commit", "false", NULL};

static kafka_group_metadata_t *join(struct txn_test *t, kafka_consumer_t **c)
{
    kafka_partition_list_t *parts = NULL;
    *c = test_consumer(t->m, member);
    assert_int_equal(kafka_consumer_subscribe(*c, (const char *[]){"t"}, 1, NULL), KAFKA_OK);
    for (bool any = false; !any;) {
        kafka_messages_t *m;
        assert_int_equal(kafka_consumer_poll(*c, 10, &m), KAFKA_OK);
        kafka_messages_free(m);
        assert_int_equal(kafka_consumer_assignment(*c, &parts), KAFKA_OK);
        any = parts->n > 0;
        kafka_partition_list_free(parts);
    }
    return kafka_consumer_group_metadata(*c);
}

static void a_member_is_named_and_a_stale_one_refused(void **state)
{
    struct txn_test t;
    kafka_consumer_t *c;
    kafka_offset_t o = {.topic = "t", .partition = 0, .offset = 3};
    begin(&t);
    kafka_group_metadata_t *g = join(&t, &c);
    open_transaction(&t);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &o, 1, g, -1), KAFKA_OK);
    assert_int_equal(t.generation, kafka_consumer_generation(c));
    assert_string_equal(t.member_id, kafka_consumer_member_id(c));
    commit(&t);
    assert_int_equal(mock_committed(t.m, "t", 0), 3);
    mock_expel_member(t.m);
    o.offset = 4;
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &o, 1, g, -1),
                     KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_MUST_ABORT);
    assert_int_equal(kafka_producer_abort_transaction(t.p, -1), KAFKA_OK);
    assert_int_equal(mock_committed(t.m, "t", 0), 3);
    kafka_group_metadata_free(g);
    kafka_consumer_close(c);
    end(&t);
}

/* Below version 3 TxnOffsetCommit cannot say who commits: then nobody may be named. */
static void old_coordinators_cannot_be_told_of_members(void **state)
{
    struct txn_test t;
    kafka_consumer_t *c;
    kafka_offset_t o = {.topic = "t", .partition = 0, .offset = 3};
    begin(&t);
    mock_cap_version(t.m, API_TXN_OFFSET_COMMIT, 2);
    kafka_group_metadata_t *g = join(&t, &c);
    open_transaction(&t);
    assert_int_equal(send_offset(&t, 9, -1), KAFKA_OK);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, &o, 1, g, -1),
                     KAFKA_ERR_UNSUPPORTED);
    assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_FATAL);
    kafka_group_metadata_free(g);
    kafka_consumer_close(c);
    end(&t);
}

static void without_a_group_there_is_no_metadata(void **state)
{
    struct mock *m = mock_start(1);
    kafka_consumer_t *c = test_consumer(m, NULL);
    assert_null(kafka_consumer_group_metadata(c));
    kafka_consumer_close(c);
    c = test_consumer(m, member); /* no member yet: the group alone */
    kafka_group_metadata_t *g = kafka_consumer_group_metadata(c);
    assert_non_null(g);
    kafka_group_metadata_free(g);
    kafka_consumer_close(c);
    mock_stop(m);
}

/* ---- counts ---- */

/* A batch whose outcome nobody knows: the next transaction counts anew, under a new epoch. */
static void an_unclear_batch_costs_an_epoch(void **state)
{
    struct txn_test t;
    begin_with(&t, 1,
               (const char *[]){"request.timeout.ms", "50", "delivery.timeout.ms", "100", NULL});
    open_transaction(&t);
    mock_script(t.m, API_PRODUCE, MOCK_DO_AND_DROP, 0, -1);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_commit_transaction(t.p, 60000), KAFKA_ERR_TIMED_OUT);
    while (kafka_producer_transaction_status(t.p) == KAFKA_TXN_FINE)
        kafka_producer_commit_transaction(t.p, 60000);
    mock_script(t.m, API_PRODUCE, MOCK_FINE, 0, -1);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    assert_int_equal(mock_txn(t.m).epoch, 1);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    send_one(&t, 0, 1);
    commit(&t);
    end(&t);
}

static void at_the_last_epoch_comes_another_id(void **state)
{
    struct txn_test t;
    begin(&t);
    mock_txn_last_epoch(t.m, 0);
    open_transaction(&t);
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_INVALID_RECORD, 1);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_commit_transaction(t.p, 60000), KERR_INVALID_RECORD);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    assert_int_equal(mock_txn(t.m).producer_id, 1001);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    send_one(&t, 0, 0);
    commit(&t);
    test_expect_values(t.m, "t", 0, 0, 1);
    end(&t);
}

/* Before 2.5 there are no new epochs: what was refused is not counted. */
static void refused_batches_leave_no_gap(void **state)
{
    struct txn_test t;
    begin_with(&t, 1, (const char *[]){"batch.size", "1", NULL});
    mock_cap_version(t.m, API_INIT_PRODUCER_ID, 2);
    open_transaction(&t);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_INVALID_RECORD, 1);
    for (int i = 1; i < 5; i++)
        test_send(t.p, "t", 0, i, &t.log); /* the last may come too late */
    assert_int_equal(kafka_producer_commit_transaction(t.p, 60000), KERR_INVALID_RECORD);
    assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
    assert_int_equal(mock_txn(t.m).epoch, 0);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    for (int i = 1; i < 5; i++)
        send_one(&t, 0, i);
    commit(&t);
    test_expect_values(t.m, "t", 0, 0, 5);
    end(&t);
}

static void without_new_epochs_an_unclear_batch_is_fatal(void **state)
{
    struct txn_test t;
    begin_with(&t, 1,
               (const char *[]){"request.timeout.ms", "50", "delivery.timeout.ms", "100", NULL});
    mock_cap_version(t.m, API_INIT_PRODUCER_ID, 2);
    open_transaction(&t);
    mock_script(t.m, API_PRODUCE, MOCK_DO_AND_DROP, 0, -1);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_commit_transaction(t.p, 60000), KAFKA_ERR_FATAL);
    assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_FATAL);
    end(&t);
}

/* All records were deleted, and the producer with them (2.3): it counts from 0 again. */
static void a_count_that_went_with_the_records_begins_anew(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    send_one(&t, 0, 0);
    commit(&t);
    mock_log_start(t.m, "t", 0, 1);
    mock_forget_producers(t.m, "t", 0);
    mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_UNKNOWN_PRODUCER_ID, 1);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    send_one(&t, 0, 1);
    commit(&t);
    assert_int_equal(mock_txn(t.m).epoch, 0);
    test_expect_values(t.m, "t", 0, 0, 2);
    end(&t);
}

/* ---- producers of the same name, and the end ---- */

static void a_new_producer_shuts_the_old_one_out(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    kafka_producer_t *old = t.p;
    t.p = test_producer(t.m, (const char *[]){"transactional.id", "x", NULL});
    open_transaction(&t);
    assert_int_equal(mock_txn(t.m).epoch, 2); /* one to abort, one for the new one */
    assert_int_equal(kafka_producer_commit_transaction(old, 60000), KERR_PRODUCER_FENCED);
    assert_int_equal(kafka_producer_transaction_status(old), KAFKA_TXN_FATAL);
    send_one(&t, 0, 1);
    commit(&t);
    assert_int_equal(mock_txn(t.m).commits, 1);
    kafka_producer_close(old, 60000);
    end(&t);
}

static void close_aborts_what_is_open(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    send_one(&t, 0, 0);
    kafka_producer_close(t.p, 60000);
    assert_string_equal(t.seen, "ipPe");
    assert_false(t.committed);
    assert_int_equal(mock_txn(t.m).aborts, 1);
    mock_stop(t.m);
}

static void close_finishes_a_commit(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    send_one(&t, 0, 0);
    mock_script(t.m, API_END_TXN, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, 30);
    assert_int_equal(kafka_producer_commit_transaction(t.p, 0), KAFKA_ERR_TIMED_OUT);
    kafka_producer_close(t.p, 60000);
    assert_int_equal(mock_txn(t.m).commits, 1);
    mock_stop(t.m);
}

static void close_without_time_aborts_nothing(void **state)
{
    struct txn_test t;
    begin(&t);
    open_transaction(&t);
    send_one(&t, 0, 0);
    assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
    kafka_producer_close(t.p, 0);
    assert_true(mock_txn(t.m).open);
    mock_stop(t.m);
}

static void *commit_too(void *arg)
{
    assert_int_equal(kafka_producer_commit_transaction(((struct txn_test *)arg)->p, 60000),
                     KAFKA_OK);
    return NULL;
}

/* Of several threads that commit the same transaction each has its outcome. */
static void two_threads_may_wait_for_one_commit(void **state)
{
    struct txn_test t;
    pthread_t thread;
    begin(&t);
    open_transaction(&t);
    send_one(&t, 0, 0);
    mock_script(t.m, API_END_TXN, MOCK_HOLD, 0, 1);
    assert_int_equal(kafka_producer_commit_transaction(t.p, 0), KAFKA_ERR_TIMED_OUT);
    assert_int_equal(pthread_create(&thread, NULL, commit_too, &t), 0);
    mock_await(t.m, API_END_TXN, 1);
    mock_release(t.m);
    pthread_join(thread, NULL);
    assert_int_equal(mock_txn(t.m).commits, 1);
    end(&t);
}

UNIT_MAIN(
    unit_test(requests_come_in_their_order), unit_test(transactions_follow_each_other),
    unit_test(a_commit_sends_what_lingers), unit_test(an_empty_transaction_is_nobodys_business),
    unit_test(an_abort_fails_what_was_not_sent), unit_test(an_abort_adds_no_partitions),
    unit_test(calls_in_the_wrong_state_change_nothing),
    unit_test(without_a_transactional_id_nothing_is_allowed), unit_test(offsets_must_be_such),
    unit_test(a_callback_cannot_wait_for_itself), unit_test(a_call_over_its_time_is_made_again),
    unit_test(late_offsets_are_committed), unit_test(an_abort_drops_late_offsets),
    unit_test(lost_answers_heal), unit_test(an_abort_finds_out_what_was_added),
    unit_test(coordinators_that_move_are_followed), unit_test(offsets_of_several_groups_go_to_each),
    unit_test(a_member_is_named_and_a_stale_one_refused),
    unit_test(old_coordinators_cannot_be_told_of_members),
    unit_test(without_a_group_there_is_no_metadata), unit_test(an_unclear_batch_costs_an_epoch),
    unit_test(at_the_last_epoch_comes_another_id), unit_test(refused_batches_leave_no_gap),
    unit_test(without_new_epochs_an_unclear_batch_is_fatal),
    unit_test(a_count_that_went_with_the_records_begins_anew),
    unit_test(a_new_producer_shuts_the_old_one_out), unit_test(close_aborts_what_is_open),
    unit_test(close_finishes_a_commit), unit_test(close_without_time_aborts_nothing),
    unit_test(two_threads_may_wait_for_one_commit))
