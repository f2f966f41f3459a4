/* Transactions against brokers that refuse: every cell of the table of errors, by a mock that
 * answers one request with one error. */
#include "client/client_test.h"

#include "protocol/errors.h"

/* What must come of an error, by request: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn,
 * TxnOffsetCommit, EndTxn.
 *   r  tried again, and heals        f  the same, after the coordinator was looked for again
 *   a  to be aborted                 b  to be aborted, with a new epoch
 *   x  fatal                         p  fatal, and told as PRODUCER_FENCED
 *   u  the call fails, and may be made again */
static const struct {
    int16_t error;
    const char *means;
} cells[] = {
    {KERR_COORDINATOR_NOT_AVAILABLE, "fffff"},
    {KERR_NOT_COORDINATOR, "fffff"},
    {KERR_COORDINATOR_LOAD_IN_PROGRESS, "rrrrr"},
    {KERR_CONCURRENT_TRANSACTIONS, "rrrrr"},
    {KERR_REQUEST_TIMED_OUT, "rrrfr"},
    {KERR_UNKNOWN_TOPIC_OR_PARTITION, "rrrrr"},
    {KERR_NOT_ENOUGH_REPLICAS, "rrrrr"},
    {KERR_INVALID_PRODUCER_EPOCH, "ppppp"},
    {KERR_PRODUCER_FENCED, "ppppp"},
    {KERR_INVALID_PRODUCER_ID_MAPPING, "xbbxb"},
    {KERR_UNKNOWN_PRODUCER_ID, "xbbxb"},
    {KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "uxxxx"},
    {KERR_CLUSTER_AUTHORIZATION_FAILED, "uaxxx"},
    {KERR_INVALID_TXN_STATE, "xxxxx"},
    {KERR_TOPIC_AUTHORIZATION_FAILED, "xaxxx"},
    {KERR_OPERATION_NOT_ATTEMPTED, "xaxxx"},
    {KERR_GROUP_AUTHORIZATION_FAILED, "xaaax"},
    {KERR_FENCED_INSTANCE_ID, "xaxax"},
    {KERR_UNKNOWN_MEMBER_ID, "xaxax"},
    {KERR_ILLEGAL_GENERATION, "xaxax"},
    {KERR_TRANSACTION_ABORTABLE, "aaaaa"},
    {KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, "xaxxx"},
    {KERR_INVALID_TRANSACTION_TIMEOUT, "xaxxx"},
    {KERR_UNKNOWN_SERVER_ERROR, "xaxxx"},
    {KERR_INVALID_REQUEST, "xaxxx"},
};
enum { CELLS = sizeof cells / sizeof *cells, COLUMNS = 5 };
static const int16_t columns[COLUMNS] = {API_INIT_PRODUCER_ID, API_ADD_PARTITIONS_TO_TXN,
                                         API_ADD_OFFSETS_TO_TXN, API_TXN_OFFSET_COMMIT,
                                         API_END_TXN};

struct txn_test {
    struct mock *m;
    kafka_producer_t *p;
    struct deliveries log;
};

static void begin(struct txn_test *t)
{
    *t = (struct txn_test){.m = mock_start(1)};
    pthread_mutex_init(&t->log.lock, NULL);
    mock_topic(t->m, "t", 1);
    t->p = test_producer(t->m, (const char *[]){"transactional.id", "x", NULL});
}

static void end(struct txn_test *t)
{
    kafka_producer_close(t->p, 60000);
    mock_stop(t->m);
}

/* A transaction with a record and an offset: the first error. */
static kafka_err_t run_one(struct txn_test *t, int number)
{
    kafka_offset_t offset = {
        .topic = "in", .partition = 3, .offset = 100 + number, .leader_epoch = -1};
    kafka_group_metadata_t *g = kafka_group_metadata_new("g");
    kafka_err_t err = kafka_producer_begin_transaction(t->p);
    if (err == KAFKA_OK)
        err = test_send(t->p, "t", 0, number, &t->log);
    if (err == KAFKA_OK)
        err = kafka_producer_send_offsets_to_transaction(t->p, &offset, 1, g, 60000);
    if (err == KAFKA_OK)
        err = kafka_producer_commit_transaction(t->p, 60000);
    kafka_group_metadata_free(g);
    return err;
}

static kafka_err_t run_all(struct txn_test *t)
{
    kafka_err_t err = kafka_producer_init_transactions(t->p, 60000);
    return err == KAFKA_OK ? run_one(t, 0) : err;
}

/* All is well with the producer: another transaction goes through. */
static void expect_fine(struct txn_test *t, int number)
{
    assert_int_equal(kafka_producer_transaction_status(t->p), KAFKA_TXN_FINE);
    assert_int_equal(run_one(t, number), KAFKA_OK);
    assert_int_equal(mock_committed(t->m, "in", 3), 100 + number);
    assert_false(mock_txn(t->m).open);
}

static void expect_healed(struct txn_test *t, kafka_err_t err, bool found_again, int asked)
{
    assert_int_equal(err, KAFKA_OK);
    assert_int_equal(mock_seen(t->m, API_FIND_COORDINATOR), asked + found_again);
    assert_int_equal(mock_txn(t->m).commits, 1);
    assert_int_equal(mock_txn(t->m).epoch, 0);
    expect_fine(t, 1);
}

static void expect_aborted(struct txn_test *t, kafka_err_t err, kafka_err_t expected, bool bumped)
{
    struct mock_txn_view had = mock_txn(t->m), has;
    assert_int_equal(err, expected);
    assert_int_equal(kafka_producer_transaction_status(t->p), KAFKA_TXN_MUST_ABORT);
    assert_int_equal(kafka_producer_begin_transaction(t->p), expected);
    assert_int_equal(test_send(t->p, "t", 0, 9, &t->log), expected);
    assert_int_equal(kafka_producer_commit_transaction(t->p, 60000), expected);
    assert_int_equal(kafka_producer_abort_transaction(t->p, 60000), KAFKA_OK);
    has = mock_txn(t->m);
    if (had.epoch >= 0) /* else the coordinator had lost the id: another begins at 0 */
        assert_int_equal(has.epoch, had.epoch + bumped);
    assert_int_equal(has.commits, 0);
    assert_int_equal(mock_committed(t->m, "in", 3), -1);
    expect_fine(t, 1);
}

static void expect_fatal(struct txn_test *t, kafka_err_t err, kafka_err_t expected)
{
    assert_int_equal(err, expected);
    assert_int_equal(kafka_producer_transaction_status(t->p), KAFKA_TXN_FATAL);
    assert_int_equal(kafka_producer_begin_transaction(t->p), expected);
    assert_int_equal(kafka_producer_commit_transaction(t->p, 60000), expected);
    assert_int_equal(kafka_producer_abort_transaction(t->p, 60000), expected);
    assert_int_equal(kafka_producer_init_transactions(t->p, 60000), expected);
    assert_int_equal(test_send(t->p, "t", 0, 9, &t->log), expected);
    assert_int_equal(mock_txn(t->m).commits, 0);
    assert_int_equal(mock_committed(t->m, "in", 3), -1);
}

static void expect_refused(struct txn_test *t, kafka_err_t err, kafka_err_t expected)
{
    assert_int_equal(err, expected);
    assert_int_equal(kafka_producer_transaction_status(t->p), KAFKA_TXN_FINE);
    assert_int_equal(kafka_producer_begin_transaction(t->p), KAFKA_ERR_STATE);
    assert_int_equal(run_all(t), KAFKA_OK);
    expect_fine(t, 1);
}

static void check_cell(int row, int column)
{
    struct txn_test t;
    int16_t error = cells[row].error;
    char means = cells[row].means[column];
    enum { SEARCHES = 2 }; /* both coordinators, once each */
    begin(&t);
    mock_script(t.m, columns[column], MOCK_ERROR, error, 1);
    kafka_err_t err = run_all(&t);
    if (means == 'r' || means == 'f')
        expect_healed(&t, err, means == 'f', SEARCHES);
    else if (means == 'a' || means == 'b')
        expect_aborted(&t, err, error, means == 'b');
    else if (means == 'u')
        expect_refused(&t, err, error);
    else
        expect_fatal(&t, err, means == 'p' ? KERR_PRODUCER_FENCED : error);
    end(&t);
}

static void every_error_of_every_request_means_what_it_should(void **state)
{
    for (int row = 0; row < CELLS; row++)
        for (int column = 0; column < COLUMNS; column++)
            check_cell(row, column);
}

/* The last column, while the transaction is being aborted: what is left to do is done,
 * or the producer ends. */
static void errors_of_an_abort_end_it_one_way_or_another(void **state)
{
    for (int row = 0; row < CELLS; row++) {
        struct txn_test t;
        char means = cells[row].means[4];
        begin(&t);
        assert_int_equal(kafka_producer_init_transactions(t.p, 60000), KAFKA_OK);
        assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
        assert_int_equal(test_send(t.p, "t", 0, 0, &t.log), KAFKA_OK);
        assert_int_equal(kafka_producer_flush(t.p, 60000), KAFKA_OK);
        mock_script(t.m, API_END_TXN, MOCK_ERROR, cells[row].error, 1);
        kafka_err_t err = kafka_producer_abort_transaction(t.p, 60000);
        if (means == 'a' || cells[row].error == KERR_UNKNOWN_PRODUCER_ID) {
            assert_int_equal(err, cells[row].error);
            assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_MUST_ABORT);
            err = kafka_producer_abort_transaction(t.p, 60000);
        }
        bool fatal = means == 'x' || means == 'p';
        assert_int_equal(kafka_producer_transaction_status(t.p),
                         fatal ? KAFKA_TXN_FATAL : KAFKA_TXN_FINE);
        assert_int_equal(err, means == 'x'   ? cells[row].error
                              : means == 'p' ? KERR_PRODUCER_FENCED
                                             : KAFKA_OK);
        if (means == 'b') /* a new epoch, or a new id */
            assert_true(mock_txn(t.m).epoch > 0 || mock_txn(t.m).producer_id > 1000);
        if (!fatal)
            expect_fine(&t, 1);
        end(&t);
    }
}

/* Coordinators before 2.5 give no new epoch. */
static void without_new_epochs_a_lost_mapping_is_fatal(void **state)
{
    static const int16_t errors[] = {KERR_INVALID_PRODUCER_ID_MAPPING, KERR_UNKNOWN_PRODUCER_ID};
    static const int16_t apis[] = {API_ADD_PARTITIONS_TO_TXN, API_ADD_OFFSETS_TO_TXN, API_END_TXN};
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < 3; i++) {
            struct txn_test t;
            begin(&t);
            mock_cap_version(t.m, API_INIT_PRODUCER_ID, 2);
            mock_script(t.m, apis[i], MOCK_ERROR, errors[e], 1);
            expect_fatal(&t, run_all(&t), errors[e]);
            end(&t);
        }
}

/* ---- FindCoordinator ---- */

static void errors_of_the_search_are_the_callers(void **state)
{
    static const struct {
        int16_t error;
        int searches; /* that are well before */
        kafka_txn_status_t status;
    } rows[] = {
        {KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 0, KAFKA_TXN_FINE},
        {KERR_GROUP_AUTHORIZATION_FAILED, 1, KAFKA_TXN_MUST_ABORT},
        {KERR_TRANSACTION_ABORTABLE, 1, KAFKA_TXN_MUST_ABORT},
        {KERR_INVALID_GROUP_ID, 1, KAFKA_TXN_FATAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct txn_test t;
        begin(&t);
        if (rows[i].searches)
            mock_script(t.m, API_FIND_COORDINATOR, MOCK_FINE, 0, rows[i].searches);
        mock_script(t.m, API_FIND_COORDINATOR, MOCK_ERROR, rows[i].error, 1);
        kafka_err_t err = run_all(&t);
        if (rows[i].status == KAFKA_TXN_FINE)
            expect_refused(&t, err, rows[i].error);
        else if (rows[i].status == KAFKA_TXN_MUST_ABORT)
            expect_aborted(&t, err, rows[i].error, false);
        else
            expect_fatal(&t, err, rows[i].error);
        end(&t);
    }
}

/* ---- some partitions of several ---- */

static void one_partition_decides_for_those_that_were_left_out(void **state)
{
    static const struct {
        int16_t error;
        bool heals;
    } rows[] = {{KERR_UNKNOWN_TOPIC_OR_PARTITION, true}, {KERR_TOPIC_AUTHORIZATION_FAILED, false}};
    for (int i = 0; i < 2; i++) {
        struct txn_test t;
        begin(&t);
        mock_topic(t.m, "several", 4);
        mock_txn_refuse_one(t.m, 2, 0);
        assert_int_equal(kafka_producer_init_transactions(t.p, 60000), KAFKA_OK);
        assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
        mock_script(t.m, API_ADD_PARTITIONS_TO_TXN, MOCK_HOLD, 0, 1); /* others gather behind it */
        mock_script(t.m, API_ADD_PARTITIONS_TO_TXN, MOCK_ERROR, rows[i].error, 1);
        assert_int_equal(test_send(t.p, "t", 0, 0, &t.log), KAFKA_OK);
        mock_await(t.m, API_ADD_PARTITIONS_TO_TXN, 1);
        for (int k = 0; k < 4; k++)
            assert_int_equal(test_send(t.p, "several", k, 0, &t.log), KAFKA_OK);
        mock_release(t.m);
        kafka_err_t err = kafka_producer_commit_transaction(t.p, 60000);
        assert_int_equal(err, rows[i].heals ? KAFKA_OK : rows[i].error);
        if (!rows[i].heals)
            assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), KAFKA_OK);
        expect_fine(&t, 1);
        end(&t);
    }
}

/* What the group's coordinator has taken is not sent again. */
static void offsets_that_failed_are_tried_again(void **state)
{
    struct txn_test t;
    kafka_offset_t offsets[3] = {{.topic = "in", .partition = 0, .offset = 5},
                                 {.topic = "in", .partition = 1, .offset = 6},
                                 {.topic = "in", .partition = 2, .offset = 7}};
    begin(&t);
    kafka_group_metadata_t *g = kafka_group_metadata_new("g");
    assert_int_equal(kafka_producer_init_transactions(t.p, 60000), KAFKA_OK);
    assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_OK);
    mock_script(t.m, API_TXN_OFFSET_COMMIT, MOCK_ERROR, KERR_UNKNOWN_TOPIC_OR_PARTITION, 1);
    assert_int_equal(kafka_producer_send_offsets_to_transaction(t.p, offsets, 3, g, 60000),
                     KAFKA_OK);
    assert_int_equal(mock_seen(t.m, API_TXN_OFFSET_COMMIT), 2);
    assert_int_equal(kafka_producer_commit_transaction(t.p, 60000), KAFKA_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mock_committed(t.m, "in", i), 5 + i);
    kafka_group_metadata_free(g);
    end(&t);
}

/* ---- Produce ---- */

static void errors_of_batches_end_the_transaction(void **state)
{
    static const struct {
        int16_t error;
        char means;
    } rows[] = {
        {KERR_INVALID_PRODUCER_EPOCH, 'p'},
        {KERR_PRODUCER_FENCED, 'p'},
        {KERR_CLUSTER_AUTHORIZATION_FAILED, 'x'},
        {KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 'x'},
        {KERR_UNSUPPORTED_VERSION, 'x'},
        {KERR_TOPIC_AUTHORIZATION_FAILED, 'b'},
        {KERR_INVALID_RECORD, 'b'},
        {KERR_INVALID_TXN_STATE, 'b'},
        {KERR_TRANSACTION_ABORTABLE, 'b'},
        {KERR_MESSAGE_TOO_LARGE, 'b'},
        {KERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 'b'},
        {KERR_UNKNOWN_PRODUCER_ID, 'b'},
        {KERR_INVALID_PRODUCER_ID_MAPPING, 'b'},
        {KERR_UNKNOWN_SERVER_ERROR, 'b'},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct txn_test t;
        begin(&t);
        mock_script(t.m, API_PRODUCE, MOCK_FINE, 0, 1);
        mock_script(t.m, API_PRODUCE, MOCK_ERROR, rows[i].error, 1);
        assert_int_equal(run_all(&t), KAFKA_OK);
        mock_set_committed(t.m, "in", 3, -1);
        kafka_err_t err = run_one(&t, 1);
        assert_int_equal(mock_txn(t.m).commits, 1);
        assert_int_equal(err, rows[i].means == 'p' ? KERR_PRODUCER_FENCED : rows[i].error);
        bool fatal = rows[i].means != 'b';
        assert_int_equal(kafka_producer_transaction_status(t.p),
                         fatal ? KAFKA_TXN_FATAL : KAFKA_TXN_MUST_ABORT);
        assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), fatal ? err : KAFKA_OK);
        if (!fatal) {
            assert_int_equal(mock_txn(t.m).epoch, 1);
            assert_int_equal(mock_committed(t.m, "in", 3), -1);
            expect_fine(&t, 1);
        }
        end(&t);
    }
}

/* The transaction is aborted by then; only the new epoch is refused. */
static void a_new_epoch_may_be_refused(void **state)
{
    static const int16_t errors[] = {KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                                     KERR_CLUSTER_AUTHORIZATION_FAILED};
    for (int i = 0; i < 2; i++) {
        struct txn_test t;
        begin(&t);
        mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_INVALID_RECORD, 1);
        assert_int_equal(run_all(&t), KERR_INVALID_RECORD);
        mock_script(t.m, API_INIT_PRODUCER_ID, MOCK_ERROR, errors[i], 1);
        assert_int_equal(kafka_producer_abort_transaction(t.p, 60000), errors[i]);
        assert_int_equal(mock_txn(t.m).aborts, 1);
        assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_FINE);
        assert_int_equal(kafka_producer_begin_transaction(t.p), KAFKA_ERR_STATE);
        assert_int_equal(kafka_producer_init_transactions(t.p, 60000), KAFKA_OK);
        expect_fine(&t, 1);
        end(&t);
    }
}

/* All errors of the request for a new epoch: none may end the process. */
static void errors_of_a_new_epoch_end_the_abort_one_way_or_another(void **state)
{
    for (int row = 0; row < CELLS; row++) {
        struct txn_test t;
        char means = cells[row].means[0];
        begin(&t);
        mock_script(t.m, API_PRODUCE, MOCK_ERROR, KERR_INVALID_RECORD, 1);
        assert_int_equal(run_all(&t), KERR_INVALID_RECORD);
        mock_script(t.m, API_INIT_PRODUCER_ID, MOCK_ERROR, cells[row].error, 1);
        kafka_err_t err = kafka_producer_abort_transaction(t.p, 60000);
        if (means == 'a') {
            assert_int_equal(kafka_producer_transaction_status(t.p), KAFKA_TXN_MUST_ABORT);
            err = kafka_producer_abort_transaction(t.p, 60000);
        }
        bool heals = means == 'r' || means == 'f' || means == 'a',
             fatal = means == 'x' || means == 'p';
        assert_int_equal(err, heals          ? KAFKA_OK
                              : means == 'p' ? KERR_PRODUCER_FENCED
                                             : cells[row].error);
        assert_int_equal(kafka_producer_transaction_status(t.p),
                         fatal ? KAFKA_TXN_FATAL : KAFKA_TXN_FINE);
        if (heals)
            expect_fine(&t, 1);
        end(&t);
    }
}

UNIT_MAIN(unit_test(every_error_of_every_request_means_what_it_should),
          unit_test(errors_of_an_abort_end_it_one_way_or_another),
          unit_test(without_new_epochs_a_lost_mapping_is_fatal),
          unit_test(errors_of_the_search_are_the_callers),
          unit_test(one_partition_decides_for_those_that_were_left_out),
          unit_test(offsets_that_failed_are_tried_again),
          unit_test(errors_of_batches_end_the_transaction), unit_test(a_new_epoch_may_be_refused),
          unit_test(errors_of_a_new_epoch_end_the_abort_one_way_or_another))
