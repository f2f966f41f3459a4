/* Consumer against a mock broker. */
#include "client/client_test.h"

#include "protocol/batch_builder.h"
#include "protocol/errors.h"

struct reader_test {
    struct mock *m;
    kafka_consumer_t *c;
};

static void assign(kafka_consumer_t *c, const char *topic, int partitions)
{
    kafka_topic_partition_t tps[64];
    for (int i = 0; i < partitions; i++)
        tps[i] = (kafka_topic_partition_t){topic, i};
    assert_int_equal(kafka_consumer_assign(c, tps, (size_t)partitions), KAFKA_OK);
}

static void begin(struct reader_test *t, int nodes, int partitions, const char *const *pairs)
{
    t->m = mock_start(nodes);
    mock_topic(t->m, "t", partitions);
    t->c = test_consumer(t->m, pairs);
    assign(t->c, "t", partitions);
}

static void end(struct reader_test *t)
{
    kafka_consumer_close(t->c);
    mock_stop(t->m);
}

/* Appends one batch of records "v<first>"... */
static void append(struct mock *m, int partition, int first, int count,
                   const struct batch_options *given)
{
    struct batch_options o = given ? *given : BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    for (int i = 0; i < count; i++) {
        char value[32];
        int n = snprintf(value, sizeof value, "v%d", first + i);
        assert_int_equal(batch_builder_add(b, i, 1000 + first + i, BYTES_NULL,
                                           (struct bytes){(uint8_t *)value, n}, NULL, 0),
                         0);
    }
    assert_int_equal(batch_builder_finish(b, &out), 0);
    mock_append(m, "t", partition, out.p, out.len);
    batch_builder_free(b);
    buf_free(&out);
}

/* Reads `count` messages and holds them against "v<first>".. of partition 0. */
static void expect(kafka_consumer_t *c, int first, int count)
{
    for (int got = 0; got < count;) {
        kafka_messages_t *m;
        assert_int_equal(kafka_consumer_poll(c, 60000, &m), KAFKA_OK);
        assert_non_null(m);
        for (size_t i = 0; i < kafka_messages_count(m); i++, got++) {
            const kafka_message_t *one = kafka_messages_at(m, i);
            char value[32];
            snprintf(value, sizeof value, "v%d", first + got);
            assert_true(got < count);
            assert_int_equal(one->value_len, strlen(value));
            assert_memory_equal(one->value, value, one->value_len);
            assert_int_equal(one->timestamp, 1000 + first + got);
        }
        kafka_messages_free(m);
    }
}

static void reads_all_in_order(void **state)
{
    struct reader_test t;
    begin(&t, 1, 1, (const char *[]){"max.partition.fetch.bytes", "200", NULL});
    for (int i = 0; i < 100; i++)
        append(t.m, 0, i * 10, 10, NULL);
    expect(t.c, 0, 1000);
    append(t.m, 0, 1000, 5, NULL); /* while it waits at the end */
    expect(t.c, 1000, 5);
    int64_t at = -1;
    assert_int_equal(kafka_consumer_position(t.c, "t", 0, 1000, &at), KAFKA_OK);
    assert_int_equal(at, 1005);
    end(&t);
}

static void messages_outlive_the_consumer(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    begin(&t, 1, 1, NULL);
    append(t.m, 0, 0, 3, NULL);
    assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KAFKA_OK);
    end(&t);
    assert_int_equal(kafka_messages_count(m), 3);
    const kafka_message_t *one = kafka_messages_at(m, 2);
    assert_string_equal(one->topic, "t");
    assert_memory_equal(one->value, "v2", 2);
    kafka_messages_free(m);
}

static void every_codec_is_read(void **state)
{
    struct reader_test t;
    begin(&t, 1, 1, NULL);
    for (int codec = CODEC_NONE; codec < CODECS; codec++) {
        struct batch_options o = BATCH_OPTIONS_DEFAULT;
        o.codec = (enum codec)codec;
        append(t.m, 0, codec * 50, 50, &o);
    }
    expect(t.c, 0, CODECS * 50);
    end(&t);
}

static void many_partitions_each_get_their_turn(void **state)
{
    enum { PARTS = 20, EACH = 50 };
    struct reader_test t;
    int64_t next[PARTS] = {0};
    begin(&t, 3, PARTS, (const char *[]){"max.poll.records", "7", NULL});
    for (int i = 0; i < PARTS; i++)
        append(t.m, i, 0, EACH, NULL);
    for (int got = 0; got < PARTS * EACH;) {
        kafka_messages_t *m;
        assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KAFKA_OK);
        assert_in_range(kafka_messages_count(m), 1, 7);
        for (size_t i = 0; i < kafka_messages_count(m); i++, got++) {
            const kafka_message_t *one = kafka_messages_at(m, i);
            assert_int_equal(one->offset, next[one->partition]++);
        }
        kafka_messages_free(m);
    }
    end(&t);
}

static void seeks_throw_away_what_was_read_ahead(void **state)
{
    struct reader_test t;
    begin(&t, 1, 1, (const char *[]){"max.poll.records", "1", NULL});
    append(t.m, 0, 0, 20, NULL);
    expect(t.c, 0, 5);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 15), KAFKA_OK);
    expect(t.c, 15, 5);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, KAFKA_OFFSET_BEGINNING), KAFKA_OK);
    expect(t.c, 0, 3);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, KAFKA_OFFSET_END), KAFKA_OK);
    int64_t at = -1;
    assert_int_equal(kafka_consumer_position(t.c, "t", 0, 60000, &at), KAFKA_OK);
    assert_int_equal(at, 20);
    assert_int_equal(kafka_consumer_seek(t.c, "other", 0, 0), KAFKA_ERR_STATE);
    end(&t);
}

static void begins_inside_a_batch(void **state)
{
    struct reader_test t;
    begin(&t, 1, 1, NULL);
    append(t.m, 0, 0, 20, NULL);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 13), KAFKA_OK);
    expect(t.c, 13, 7);
    end(&t);
}

static void paused_partitions_keep_what_they_have(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    begin(&t, 1, 2, (const char *[]){"max.poll.records", "1", NULL});
    append(t.m, 0, 0, 5, NULL);
    expect(t.c, 0, 1);
    assert_int_equal(kafka_consumer_pause(t.c, "t", 0), KAFKA_OK);
    append(t.m, 1, 100, 1, NULL);
    expect(t.c, 100, 1);
    assert_int_equal(kafka_consumer_poll(t.c, 20, &m), KAFKA_OK);
    assert_null(m);
    assert_int_equal(kafka_consumer_resume(t.c, "t", 0), KAFKA_OK);
    expect(t.c, 1, 4);
    end(&t);
}

static void reassignment_keeps_positions_of_what_stays(void **state)
{
    struct reader_test t;
    begin(&t, 1, 3, (const char *[]){"max.poll.records", "2", NULL});
    append(t.m, 0, 0, 10, NULL);
    expect(t.c, 0, 4);
    assign(t.c, "t", 1);
    expect(t.c, 4, 2);
    kafka_topic_partition_t twice[] = {{"t", 0}, {"t", 1}, {"t", 0}};
    assert_int_equal(kafka_consumer_assign(t.c, twice, 3), KAFKA_OK);
    expect(t.c, 6, 4);
    assert_int_equal(kafka_consumer_assign(t.c, NULL, 0), KAFKA_OK);
    int64_t at;
    assert_int_equal(kafka_consumer_position(t.c, "t", 0, 0, &at), KAFKA_ERR_STATE);
    end(&t);
}

/* ---- faults ---- */

static void errors_of_the_way_heal(void **state)
{
    static const struct {
        int16_t api;
        enum mock_action action;
        int16_t error;
    } faults[] = {{API_FETCH, MOCK_DROP, 0},
                  {API_FETCH, MOCK_DO_AND_DROP, 0},
                  {API_FETCH, MOCK_ERROR, KERR_NOT_LEADER_OR_FOLLOWER},
                  {API_FETCH, MOCK_ERROR, KERR_OFFSET_NOT_AVAILABLE},
                  {API_FETCH, MOCK_ERROR, KERR_UNKNOWN_LEADER_EPOCH},
                  {API_FETCH, MOCK_ERROR, KERR_KAFKA_STORAGE_ERROR},
                  {API_LIST_OFFSETS, MOCK_DROP, 0},
                  {API_LIST_OFFSETS, MOCK_ERROR, KERR_NOT_LEADER_OR_FOLLOWER},
                  {API_METADATA, MOCK_DROP, 0},
                  {API_METADATA, MOCK_ERROR, KERR_LEADER_NOT_AVAILABLE}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct reader_test t;
        t.m = mock_start(2);
        mock_topic(t.m, "t", 2);
        mock_script(t.m, faults[i].api, faults[i].action, faults[i].error, 3);
        append(t.m, 0, 0, 10, NULL);
        t.c = test_consumer(t.m, NULL);
        assign(t.c, "t", 2);
        expect(t.c, 0, 10);
        mock_script(t.m, faults[i].api, faults[i].action, faults[i].error, 2);
        append(t.m, 0, 10, 10, NULL);
        expect(t.c, 10, 10);
        end(&t);
    }
}

static void follows_the_leader(void **state)
{
    struct reader_test t;
    begin(&t, 3, 1, NULL);
    for (int i = 0; i < 6; i++) {
        append(t.m, 0, i * 10, 10, NULL);
        expect(t.c, i * 10, 10);
        mock_move_leader(t.m, "t", 0, (i + 1) % 3);
    }
    end(&t);
}

static void out_of_range_begins_where_the_reset_says(void **state)
{
    struct reader_test t;
    begin(&t, 1, 1,
          (const char *[]){"max.partition.fetch.bytes", "10", "max.poll.records", "10", NULL});
    for (int i = 0; i < 10; i++)
        append(t.m, 0, i * 10, 10, NULL);
    expect(t.c, 0, 10);
    mock_log_start(t.m, "t", 0, 70);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 20), KAFKA_OK);
    expect(t.c, 70, 30);
    end(&t);
}

static void without_a_reset_the_lack_of_an_offset_is_told(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    char err[256];
    t.m = mock_start(1);
    mock_topic(t.m, "t", 1);
    append(t.m, 0, 0, 5, NULL);
    kafka_conf_t *conf = test_conf(t.m, (const char *[]){"auto.offset.reset", "none", NULL});
    t.c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    assign(t.c, "t", 1);
    assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KAFKA_ERR_NO_OFFSET);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 3), KAFKA_OK);
    expect(t.c, 3, 2);
    end(&t);
}

static void damage_is_told_behind_what_is_whole(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf bad = BUF_INIT;
    assert_int_equal(batch_builder_add(b, 0, 1, BYTES_NULL, BYTES_NULL, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &bad), 0);
    batch_builder_free(b);
    bad.p[BATCH_AT_CRC] ^= 1;
    begin(&t, 1, 1, NULL);
    append(t.m, 0, 0, 5, NULL);
    mock_append(t.m, "t", 0, bad.p, bad.len);
    expect(t.c, 0, 5);
    assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KERR_CORRUPT_MESSAGE);
    /* it stands there still, until told to go past it */
    assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KERR_CORRUPT_MESSAGE);
    append(t.m, 0, 6, 4, NULL);
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 6), KAFKA_OK);
    expect(t.c, 6, 4);
    buf_free(&bad);
    end(&t);
}

static void wakeup_ends_a_wait_once(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    begin(&t, 1, 1, NULL);
    kafka_consumer_wakeup(t.c);
    assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KAFKA_ERR_WAKEUP);
    assert_int_equal(kafka_consumer_poll(t.c, 1, &m), KAFKA_OK);
    assert_null(m);
    end(&t);
}

static void *wake_later(void *arg)
{
    struct reader_test *t = arg;
    mock_await(t->m, API_METADATA, 1);
    kafka_consumer_wakeup(t->c);
    return NULL;
}

static void wakeup_ends_the_wait_for_metadata(void **state)
{
    struct reader_test t;
    pthread_t thread;
    int32_t n;
    t.m = mock_start(1);
    mock_script(t.m, API_METADATA, MOCK_IGNORE, 0, -1);
    t.c = test_consumer(t.m, NULL);
    assert_int_equal(pthread_create(&thread, NULL, wake_later, &t), 0);
    assert_int_equal(kafka_consumer_partition_count(t.c, "t", &n), KAFKA_ERR_WAKEUP);
    pthread_join(thread, NULL);
    end(&t);
}

static void missing_topics_are_told_and_asked_for_again(void **state)
{
    struct reader_test t;
    int32_t n = 0;
    t.m = mock_start(1);
    t.c = test_consumer(t.m, NULL);
    assert_int_equal(kafka_consumer_partition_count(t.c, "late", &n),
                     KERR_UNKNOWN_TOPIC_OR_PARTITION);
    mock_topic(t.m, "late", 4);
    /* an answer that was on its way when the topic came says no once more */
    kafka_err_t e = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    for (int i = 0; i < 20 && e == KERR_UNKNOWN_TOPIC_OR_PARTITION; i++)
        e = kafka_consumer_partition_count(t.c, "late", &n);
    assert_int_equal(e, KAFKA_OK);
    assert_int_equal(n, 4);
    end(&t);
}

static void only_where_it_may_a_topic_is_created(void **state)
{
    struct reader_test t;
    int32_t n = 0;
    t.m = mock_start(1);
    mock_auto_create(t.m);
    t.c = test_consumer(t.m, (const char *[]){"allow.auto.create.topics", "false", NULL});
    assert_int_equal(kafka_consumer_partition_count(t.c, "x", &n), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    kafka_consumer_close(t.c);
    t.c = test_consumer(t.m, NULL);
    assert_int_equal(kafka_consumer_partition_count(t.c, "x", &n), KAFKA_OK);
    end(&t);
}

/* ---- transactions ---- */

static void append_marker(struct mock *m, bool commit, int64_t producer_id)
{
    struct buf out = BUF_INIT;
    assert_int_equal(batch_build_marker(commit, 0, 1, 0, producer_id, 0, 0, &out), 0);
    mock_append(m, "t", 0, out.p, out.len);
    buf_free(&out);
}

static void append_of(struct mock *m, int64_t producer_id, int first, int count)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.transactional = true;
    o.producer_id = producer_id;
    o.producer_epoch = 0;
    o.base_sequence = first;
    append(m, 0, first, count, &o);
}

static void aborted_records_are_left_out_where_asked(void **state)
{
    for (int committed = 0; committed < 2; committed++) {
        struct reader_test t;
        begin(&t, 1, 1,
              (const char *[]){"max.poll.records", "1", "isolation.level",
                               committed ? "read_committed" : "read_uncommitted", NULL});
        append_of(t.m, 7, 0, 3);      /* 0-2 aborted */
        append_of(t.m, 8, 3, 2);      /* 3-4 committed, in between */
        append_marker(t.m, false, 7); /* 5 */
        append_of(t.m, 7, 6, 2);      /* 6-7 the same producer, committed */
        append_marker(t.m, true, 8);  /* 8 */
        append_marker(t.m, true, 7);  /* 9 */
        append_of(t.m, 7, 10, 2);     /* 10-11 aborted again */
        append_marker(t.m, false, 7); /* 12 */
        append(t.m, 0, 13, 2, NULL);  /* 13-14 outside of any */
        mock_aborted(t.m, "t", 0, 7, 0);
        mock_aborted(t.m, "t", 0, 7, 10);
        static const int uncommitted[] = {0, 1, 2, 3, 4, 6, 7, 10, 11, 13, 14};
        static const int only_committed[] = {3, 4, 6, 7, 13, 14};
        const int *wanted = committed ? only_committed : uncommitted;
        int n = committed ? 6 : 11;
        for (int i = 0; i < n; i++)
            expect(t.c, wanted[i], 1);
        int64_t at;
        assert_int_equal(kafka_consumer_position(t.c, "t", 0, 1000, &at), KAFKA_OK);
        assert_int_equal(at, 15);
        /* also when it begins inside an aborted transaction */
        assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 11), KAFKA_OK);
        expect(t.c, committed ? 13 : 11, 1);
        end(&t);
    }
}

/* Several aborted transactions at a time, of one producer and of several, listed in any order. */
static void aborted_transactions_may_overlap(void **state)
{
    static const int64_t lists[][4][2] = {{{7, 0}, {8, 1}, {9, 2}, {7, 7}},
                                          {{7, 7}, {9, 2}, {8, 1}, {7, 0}},
                                          {{9, 2}, {7, 7}, {7, 0}, {8, 1}}};
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
        struct reader_test t;
        begin(&t, 1, 1,
              (const char *[]){"max.poll.records", "1", "isolation.level", "read_committed", NULL});
        append_of(t.m, 7, 0, 1);
        append_of(t.m, 8, 1, 1);
        append_of(t.m, 9, 2, 1);
        append_of(t.m, 6, 3, 1);      /* open all the time, committed at the end */
        append_marker(t.m, false, 8); /* 4 */
        append_of(t.m, 8, 5, 1);      /* committed */
        append_marker(t.m, false, 7); /* 6 */
        append_of(t.m, 7, 7, 1);
        append_marker(t.m, true, 8);  /* 8 */
        append_marker(t.m, false, 9); /* 9 */
        append_marker(t.m, false, 7); /* 10 */
        append_of(t.m, 7, 11, 1);     /* committed */
        append_marker(t.m, true, 7);  /* 12 */
        append_marker(t.m, true, 6);  /* 13 */
        append(t.m, 0, 14, 1, NULL);
        for (int i = 0; i < 4; i++)
            mock_aborted(t.m, "t", 0, lists[list][i][0], lists[list][i][1]);
        static const int wanted[] = {3, 5, 11, 14};
        for (int i = 0; i < 4; i++)
            expect(t.c, wanted[i], 1);
        end(&t);
    }
}

/* ---- ListOffsets ---- */

static void looks_offsets_up(void **state)
{
    struct reader_test t;
    begin(&t, 3, 3, NULL);
    append(t.m, 0, 0, 5, NULL);
    append(t.m, 2, 0, 7, NULL);
    mock_log_start(t.m, "t", 2, 3);
    mock_script(t.m, API_LIST_OFFSETS, MOCK_ERROR, KERR_NOT_LEADER_OR_FOLLOWER, 2);
    mock_script(t.m, API_LIST_OFFSETS, MOCK_DROP, 0, 1);
    kafka_topic_partition_t tps[] = {{"t", 0}, {"t", 2}, {"t", 2}, {"t", 1}, {"t", 9}, {"no", 0}};
    int64_t times[] = {-1, -2, -1, -1, -1, -1}, offsets[6];
    kafka_err_t errs[6];
    assert_int_equal(kafka_consumer_list_offsets(t.c, tps, times, 6, 60000, offsets, NULL, errs),
                     KAFKA_OK);
    static const int64_t expected[] = {5, 3, 7, 0};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(errs[i], KAFKA_OK);
        assert_int_equal(offsets[i], expected[i]);
    }
    for (int i = 4; i < 6; i++) {
        assert_int_equal(errs[i], KERR_UNKNOWN_TOPIC_OR_PARTITION);
        assert_int_equal(offsets[i], -1);
    }
    end(&t);
}

/* Ten records in batches of two under epoch 0; then a new leader lacks those from 6 on. */
static void begin_cut(struct reader_test *t, const char *reset)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    char err[256];
    o.leader_epoch = 0;
    t->m = mock_start(2);
    mock_topic(t->m, "t", 1);
    kafka_conf_t *conf = test_conf(
        t->m, (const char *[]){"auto.offset.reset", reset, "fetch.max.wait.ms", "50", NULL});
    t->c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    assign(t->c, "t", 1);
    assert_int_equal(kafka_consumer_seek(t->c, "t", 0, 0), KAFKA_OK);
    for (int i = 0; i < 5; i++)
        append(t->m, 0, 2 * i, 2, &o);
    expect(t->c, 0, 10);
    mock_cut(t->m, "t", 0, 6);
    mock_move_leader(t->m, "t", 0, 1);
}

static void a_log_that_reaches_the_position_goes_on(void **state)
{
    struct reader_test t;
    begin_cut(&t, "latest");
    append(t.m, 0, 100, 8, NULL);
    mock_await(t.m, API_OFFSET_FOR_LEADER_EPOCH, 1);
    expect(t.c, 104, 4); /* behind the position there are records: those between are not told */
    end(&t);
}

static void a_cut_below_the_position_goes_back_to_it(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    int64_t position = -1;
    begin_cut(&t, "latest");
    while (mock_seen(t.m, API_OFFSET_FOR_LEADER_EPOCH) == 0 || position != 6) {
        assert_int_equal(kafka_consumer_poll(t.c, 10, &m), KAFKA_OK);
        assert_null(m);
        assert_int_equal(kafka_consumer_position(t.c, "t", 0, 60000, &position), KAFKA_OK);
    }
    append(t.m, 0, 100, 4, NULL);
    expect(t.c, 100, 4);
    end(&t);
}

static void a_cut_is_told_where_nothing_says_where_to_go_on(void **state)
{
    struct reader_test t;
    kafka_messages_t *m;
    begin_cut(&t, "none");
    assert_int_equal(kafka_consumer_poll(t.c, 60000, &m), KAFKA_ERR_LOG_TRUNCATION);
    assert_non_null(strstr(kafka_last_error(), "t-0: the log was cut to offset 6"));
    assert_int_equal(kafka_consumer_seek(t.c, "t", 0, 5), KAFKA_OK);
    expect(t.c, 5, 1);
    end(&t);
}

static void a_closer_replica_is_read_until_it_fails(void **state)
{
    struct reader_test t;
    begin(&t, 2, 1, (const char *[]){"client.rack", "r1", NULL});
    mock_prefer(t.m, "t", 0, 1);
    append(t.m, 0, 0, 5, NULL);
    expect(t.c, 0, 5);
    mock_script(t.m, API_FETCH, MOCK_ERROR, KERR_OFFSET_OUT_OF_RANGE, 1); /* it lags: no reset */
    append(t.m, 0, 5, 5, NULL);
    expect(t.c, 5, 5);
    mock_prefer(t.m, "t", 0, -1); /* no replica of it any more: back to the leader */
    append(t.m, 0, 10, 5, NULL);
    expect(t.c, 10, 5);
    end(&t);
}

static void *wake_when_asked(void *arg)
{
    struct reader_test *t = arg;
    mock_await(t->m, API_LIST_OFFSETS, 1);
    kafka_consumer_wakeup(t->c);
    return NULL;
}

static void wakeup_ends_a_look_up(void **state)
{
    struct reader_test t;
    pthread_t thread;
    kafka_topic_partition_t tp = {"t", 0};
    int64_t when = KAFKA_OFFSET_END, offset = -1;
    kafka_err_t err = KAFKA_OK;
    t.m = mock_start(1);
    mock_topic(t.m, "t", 1);
    t.c = test_consumer(t.m, NULL);
    mock_script(t.m, API_LIST_OFFSETS, MOCK_HOLD, 0, 1);
    assert_int_equal(pthread_create(&thread, NULL, wake_when_asked, &t), 0);
    assert_int_equal(kafka_consumer_list_offsets(t.c, &tp, &when, 1, 60000, &offset, NULL, &err),
                     KAFKA_ERR_WAKEUP);
    pthread_join(thread, NULL);
    mock_release(t.m);
    assert_int_equal(kafka_consumer_list_offsets(t.c, &tp, &when, 1, 60000, &offset, NULL, &err),
                     KAFKA_OK);
    end(&t);
}

static void *read_all(void *arg)
{
    struct reader_test *t = arg;
    expect(t->c, 0, 1000);
    return NULL;
}

static void several_consumers_read_at_once(void **state)
{
    enum { MANY = 4 };
    struct reader_test t[MANY];
    pthread_t threads[MANY];
    struct mock *m = mock_start(1);
    mock_topic(m, "t", 1);
    for (int i = 0; i < 100; i++)
        append(m, 0, i * 10, 10, NULL);
    for (int i = 0; i < MANY; i++) {
        t[i].m = m;
        t[i].c = test_consumer(m, (const char *[]){"max.partition.fetch.bytes", "500", NULL});
        assign(t[i].c, "t", 1);
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &t[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        pthread_join(threads[i], NULL);
        kafka_consumer_close(t[i].c);
    }
    mock_stop(m);
}

UNIT_MAIN(unit_test(reads_all_in_order), unit_test(messages_outlive_the_consumer),
          unit_test(every_codec_is_read), unit_test(many_partitions_each_get_their_turn),
          unit_test(seeks_throw_away_what_was_read_ahead), unit_test(begins_inside_a_batch),
          unit_test(paused_partitions_keep_what_they_have),
          unit_test(reassignment_keeps_positions_of_what_stays), unit_test(errors_of_the_way_heal),
          unit_test(follows_the_leader), unit_test(out_of_range_begins_where_the_reset_says),
          unit_test(without_a_reset_the_lack_of_an_offset_is_told),
          unit_test(damage_is_told_behind_what_is_whole), unit_test(wakeup_ends_a_wait_once),
          unit_test(wakeup_ends_the_wait_for_metadata),
          unit_test(missing_topics_are_told_and_asked_for_again),
          unit_test(only_where_it_may_a_topic_is_created),
          unit_test(aborted_records_are_left_out_where_asked),
          unit_test(aborted_transactions_may_overlap), unit_test(looks_offsets_up),
          unit_test(a_log_that_reaches_the_position_goes_on),
          unit_test(a_cut_below_the_position_goes_back_to_it),
          unit_test(a_cut_is_told_where_nothing_says_where_to_go_on),
          unit_test(a_closer_replica_is_read_until_it_fails), unit_test(wakeup_ends_a_look_up),
          unit_test(several_consumers_read_at_once))
