/* A group member against a mock coordinator: errors of every request, lost connections, the order
 * of callbacks and commits. */
#include "client/client_test.h"

#include "base/clock.h"
#include "protocol/batch_builder.h"
#include "protocol/errors.h"

struct events {
    char text[4096]; /* "+t0 t1 | -t0 t1 | !t0 |": assigned, revoked, lost */
};

struct member_test {
    struct mock *m;
    kafka_consumer_t *c;
    struct events events;
};

static void note(struct events *e, const char *sign, const kafka_topic_partition_t *tps, size_t n)
{
    size_t at = strlen(e->text);
    at += (size_t)snprintf(e->text + at, sizeof e->text - at, "%s", sign);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(e->text + at, sizeof e->text - at, "%s%d ", tps[i].topic,
                               tps[i].partition);
    snprintf(e->text + at, sizeof e->text - at, "| ");
}

static void on_assigned(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n,
                        void *arg)
{
    note(arg, "+", tps, n);
}

static void on_revoked(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    note(arg, "-", tps, n);
}

static void on_lost(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    note(arg, "!", tps, n);
}

static void subscribe(struct member_test *t, const char *topic)
{
    kafka_rebalance_listener_t l = {on_assigned, on_revoked, on_lost, &t->events};
    assert_int_equal(kafka_consumer_subscribe(t->c, &topic, 1, &l), KAFKA_OK);
}

static void begin(struct member_test *t, int nodes, const char *const *pairs)
{
    kafka_conf_t *conf;
    char err[256] = "";
    memset(t, 0, sizeof *t);
    t->m = mock_start(nodes);
    mock_topic(t->m, "t", 2);
    conf = test_conf(t->m, pairs);
    test_set(conf, "group.id", "g");
    test_set(conf, "auto.offset.reset", "earliest");
    test_set(conf, "fetch.max.wait.ms", "50");
    test_set(conf, "heartbeat.interval.ms", "10");
    t->c = kafka_consumer_new(conf, err, sizeof err);
    if (!t->c)
        fail_msg("%s", err);
    kafka_conf_free(conf);
    subscribe(t, "t");
}

static void end(struct member_test *t)
{
    kafka_consumer_close(t->c);
    mock_stop(t->m);
}

static int64_t deadline(void)
{
    return clock_mono_ms(clock_real()) + 30000;
}

static bool is_over(int64_t until)
{
    return clock_mono_ms(clock_real()) > until;
}

static void poll_once(struct member_test *t)
{
    kafka_messages_t *m;
    assert_int_equal(kafka_consumer_poll(t->c, 5, &m), KAFKA_OK);
    kafka_messages_free(m);
}

/* Polls until the events are these. */
static void poll_until(struct member_test *t, const char *events)
{
    for (int64_t until = deadline(); strcmp(t->events.text, events) != 0; poll_once(t))
        if (is_over(until))
            assert_string_equal(t->events.text, events);
}

static kafka_err_t poll_until_error(struct member_test *t)
{
    kafka_messages_t *m;
    kafka_err_t err = KAFKA_OK;
    for (int64_t until = deadline(); err == KAFKA_OK && !is_over(until);) {
        err = kafka_consumer_poll(t->c, 100, &m);
        kafka_messages_free(m);
    }
    return err;
}

static void append(struct mock *m, int partition, int count)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf out = BUF_INIT;
    for (int i = 0; i < count; i++)
        assert_int_equal(batch_builder_add(b, i, 1000, BYTES_NULL, BYTES_NULL, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &out), 0);
    mock_append(m, "t", partition, out.p, out.len);
    batch_builder_free(b);
    buf_free(&out);
}

/* Reads that many records; their offsets in partition 0 begin at `first`. */
static void read_records(struct member_test *t, int64_t first, int count)
{
    for (int got = 0; got < count;) {
        kafka_messages_t *m;
        assert_int_equal(kafka_consumer_poll(t->c, 60000, &m), KAFKA_OK);
        for (size_t i = 0; i < kafka_messages_count(m); i++)
            assert_int_equal(kafka_messages_at(m, i)->offset, first + got++);
        kafka_messages_free(m);
    }
}

static void joins_reads_commits_and_leaves(void **state)
{
    struct member_test t;
    char left[64];
    begin(&t, 1, NULL);
    append(t.m, 0, 5);
    read_records(&t, 0, 5);
    assert_string_equal(t.events.text, "+t0 t1 | ");
    assert_string_equal(kafka_consumer_member_id(t.c), "member-1");
    assert_int_equal(kafka_consumer_generation(t.c), 1);
    mock_await(t.m, API_HEARTBEAT, 3);
    kafka_consumer_close(t.c);
    assert_string_equal(t.events.text, "+t0 t1 | -t0 t1 | ");
    assert_int_equal(mock_committed(t.m, "t", 0), 5);
    mock_left(t.m, left, sizeof left);
    assert_string_equal(left, "member-1");
    mock_stop(t.m);
}

/* Their backoff is reckoned on the user's thread while the background asks for metadata: for tsan.
 */
static void automatic_commits_that_fail_are_tried_again(void **state)
{
    struct member_test t;
    begin(&t, 1,
          (const char *[]){"auto.commit.interval.ms", "10", "metadata.max.age.ms", "2", NULL});
    append(t.m, 0, 5);
    read_records(&t, 0, 5);
    mock_script(t.m, API_OFFSET_COMMIT, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, 5);
    for (int64_t until = deadline(); mock_committed(t.m, "t", 0) != 5; poll_once(&t))
        assert_false(is_over(until));
    end(&t);
}

static void begins_at_what_is_committed(void **state)
{
    struct member_test t;
    begin(&t, 1, NULL);
    append(t.m, 0, 5);
    mock_set_committed(t.m, "t", 0, 3);
    read_records(&t, 3, 2);
    end(&t);
}

/* Each request of the way in fails once with each error that heals; the member gets there. */
static void what_heals_on_the_way_in_is_tried_again(void **state)
{
    static const struct {
        int16_t api, error;
    } faults[] = {
        {API_FIND_COORDINATOR, KERR_COORDINATOR_NOT_AVAILABLE},
        {API_JOIN_GROUP, KERR_COORDINATOR_LOAD_IN_PROGRESS},
        {API_JOIN_GROUP, KERR_NOT_COORDINATOR},
        {API_JOIN_GROUP, KERR_COORDINATOR_NOT_AVAILABLE},
        {API_JOIN_GROUP, KERR_UNKNOWN_MEMBER_ID},
        {API_JOIN_GROUP, KERR_REBALANCE_IN_PROGRESS},
        {API_SYNC_GROUP, KERR_REBALANCE_IN_PROGRESS},
        {API_SYNC_GROUP, KERR_NOT_COORDINATOR},
        {API_SYNC_GROUP, KERR_UNKNOWN_MEMBER_ID},
        {API_SYNC_GROUP, KERR_ILLEGAL_GENERATION},
        {API_OFFSET_FETCH, KERR_NOT_COORDINATOR},
        {API_OFFSET_FETCH, KERR_COORDINATOR_LOAD_IN_PROGRESS},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct member_test t;
        begin(&t, 1, NULL);
        mock_script(t.m, faults[i].api, MOCK_ERROR, faults[i].error, 1);
        append(t.m, 0, 1);
        read_records(&t, 0, 1);
        assert_string_equal(t.events.text, "+t0 t1 | ");
        end(&t);
    }
}

static void lost_connections_on_the_way_in_are_made_again(void **state)
{
    static const int16_t apis[] = {API_FIND_COORDINATOR, API_JOIN_GROUP, API_SYNC_GROUP,
                                   API_OFFSET_FETCH};
    for (size_t i = 0; i < 2 * (sizeof apis / sizeof *apis); i++) {
        struct member_test t;
        begin(&t, 1, NULL);
        mock_script(t.m, apis[i / 2], i % 2 ? MOCK_DROP : MOCK_DO_AND_DROP, 0, 1);
        append(t.m, 0, 1);
        read_records(&t, 0, 1);
        end(&t);
    }
}

static void what_does_not_heal_is_told_by_poll(void **state)
{
    static const struct {
        int16_t api, error;
    } faults[] = {
        {API_FIND_COORDINATOR, KERR_GROUP_AUTHORIZATION_FAILED},
        {API_JOIN_GROUP, KERR_INCONSISTENT_GROUP_PROTOCOL},
        {API_JOIN_GROUP, KERR_GROUP_MAX_SIZE_REACHED},
        {API_JOIN_GROUP, KERR_INVALID_SESSION_TIMEOUT},
        {API_JOIN_GROUP, KERR_FENCED_INSTANCE_ID},
        {API_SYNC_GROUP, KERR_GROUP_AUTHORIZATION_FAILED},
        {API_HEARTBEAT, KERR_FENCED_INSTANCE_ID},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct member_test t;
        begin(&t, 1, NULL);
        mock_script(t.m, faults[i].api, MOCK_ERROR, faults[i].error, 1);
        assert_int_equal(poll_until_error(&t), faults[i].error);
        assert_non_null(strstr(kafka_last_error(), "group g"));
        end(&t);
    }
}

static void a_rebalance_revokes_commits_and_assigns_again(void **state)
{
    struct member_test t;
    begin(&t, 1, NULL);
    append(t.m, 0, 3);
    read_records(&t, 0, 3);
    mock_script(t.m, API_HEARTBEAT, MOCK_ERROR, KERR_REBALANCE_IN_PROGRESS, 1);
    poll_until(&t, "+t0 t1 | -t0 t1 | +t0 t1 | ");
    assert_int_equal(mock_committed(t.m, "t", 0), 3);
    assert_int_equal(mock_generation(t.m), 2);
    append(t.m, 0, 2);
    read_records(&t, 3, 2);
    end(&t);
}

static void cooperative_members_keep_what_stays(void **state)
{
    struct member_test t;
    begin(&t, 1, (const char *[]){"partition.assignment.strategy", "cooperative-sticky", NULL});
    append(t.m, 0, 3);
    read_records(&t, 0, 3);
    mock_script(t.m, API_HEARTBEAT, MOCK_ERROR, KERR_REBALANCE_IN_PROGRESS, 1);
    poll_until(&t, "+t0 t1 | +| ");
    append(t.m, 0, 2);
    read_records(&t, 3, 2); /* from where it was, not from a commit */
    end(&t);
}

static void a_member_that_is_out_is_told_what_it_lost(void **state)
{
    for (int cooperative = 0; cooperative < 2; cooperative++) {
        struct member_test t;
        begin(&t, 1,
              (const char *[]){"partition.assignment.strategy",
                               cooperative ? "cooperative-sticky" : "range", NULL});
        poll_until(&t, "+t0 t1 | ");
        mock_expel_member(t.m);
        poll_until(&t, "+t0 t1 | !t0 t1 | +t0 t1 | ");
        end(&t);
    }
}

static void an_old_generation_is_lost_but_the_id_stays(void **state)
{
    struct member_test t;
    begin(&t, 1, NULL);
    poll_until(&t, "+t0 t1 | ");
    mock_script(t.m, API_HEARTBEAT, MOCK_ERROR, KERR_ILLEGAL_GENERATION, 1);
    poll_until(&t, "+t0 t1 | !t0 t1 | +t0 t1 | ");
    assert_string_equal(kafka_consumer_member_id(t.c), "member-1");
    end(&t);
}

static void the_coordinator_may_move(void **state)
{
    struct member_test t;
    begin(&t, 2, NULL);
    append(t.m, 0, 3);
    read_records(&t, 0, 3);
    mock_move_coordinator(t.m, 1);
    assert_int_equal(kafka_consumer_commit(t.c, NULL, 0, 60000), KAFKA_OK);
    assert_int_equal(mock_committed(t.m, "t", 0), 3);
    int seen = mock_seen(t.m, API_HEARTBEAT);
    mock_await(t.m, API_HEARTBEAT, seen + 3);
    assert_string_equal(t.events.text, "+t0 t1 | ");
    end(&t);
}

static void silence_of_the_coordinator_ends_in_another_look(void **state)
{
    struct member_test t;
    begin(&t, 1, (const char *[]){"session.timeout.ms", "200", NULL});
    poll_until(&t, "+t0 t1 | ");
    int seen = mock_seen(t.m, API_FIND_COORDINATOR);
    mock_script(t.m, API_HEARTBEAT, MOCK_IGNORE, 0, 1);
    mock_await(t.m, API_FIND_COORDINATOR, seen + 1);
    end(&t);
}

/* The session is over by then, and nobody is there to be told: it is still looked for one. */
static void a_coordinator_may_be_away_for_longer_than_the_session(void **state)
{
    struct member_test t;
    begin(&t, 1,
          (const char *[]){"session.timeout.ms", "500", "retry.backoff.ms", "50",
                           "retry.backoff.max.ms", "50", NULL});
    poll_until(&t, "+t0 t1 | ");
    int found = mock_seen(t.m, API_FIND_COORDINATOR), beats = mock_seen(t.m, API_HEARTBEAT);
    mock_script(t.m, API_FIND_COORDINATOR, MOCK_ERROR, KERR_COORDINATOR_NOT_AVAILABLE, 12);
    mock_script(t.m, API_HEARTBEAT, MOCK_ERROR, KERR_NOT_COORDINATOR, 1);
    mock_await(t.m, API_FIND_COORDINATOR, found + 13);
    mock_await(t.m, API_HEARTBEAT, beats + 3);
    end(&t);
}

static void without_polls_the_member_leaves(void **state)
{
    struct member_test t;
    char left[64];
    begin(&t, 1, (const char *[]){"max.poll.interval.ms", "1000", NULL});
    poll_until(&t, "+t0 t1 | ");
    mock_await(t.m, API_LEAVE_GROUP, 1);
    mock_left(t.m, left, sizeof left);
    assert_string_equal(left, "member-1");
    assert_int_equal(kafka_consumer_commit(t.c, NULL, 0, 1000), KAFKA_ERR_COMMIT_FAILED);
    poll_until(&t, "+t0 t1 | !t0 t1 | +t0 t1 | ");
    end(&t);
}

static void commits_tell_how_they_ended(void **state)
{
    static const struct {
        int16_t error;
        kafka_err_t told;
    } outcomes[] = {
        {KERR_REBALANCE_IN_PROGRESS, KERR_REBALANCE_IN_PROGRESS},
        {KERR_ILLEGAL_GENERATION, KAFKA_ERR_COMMIT_FAILED},
        {KERR_UNKNOWN_MEMBER_ID, KAFKA_ERR_COMMIT_FAILED},
        {KERR_FENCED_INSTANCE_ID, KERR_FENCED_INSTANCE_ID},
        {KERR_OFFSET_METADATA_TOO_LARGE, KERR_OFFSET_METADATA_TOO_LARGE},
        {KERR_COORDINATOR_LOAD_IN_PROGRESS, KAFKA_OK},
        {KERR_NOT_COORDINATOR, KAFKA_OK},
        {KERR_UNKNOWN_TOPIC_OR_PARTITION, KAFKA_OK},
    };
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        struct member_test t;
        begin(&t, 1, (const char *[]){"enable.auto.commit", "false", NULL});
        append(t.m, 0, 3);
        read_records(&t, 0, 3);
        mock_script(t.m, API_OFFSET_COMMIT, MOCK_ERROR, outcomes[i].error, 1);
        assert_int_equal(kafka_consumer_commit(t.c, NULL, 0, 60000), outcomes[i].told);
        end(&t);
    }
}

struct outcome {
    int n;
    kafka_err_t err[8];
    int64_t offset[8];
};

static void on_committed(kafka_consumer_t *c, kafka_err_t err, const kafka_offset_t *offsets,
                         size_t n, void *arg)
{
    struct outcome *o = arg;
    o->err[o->n] = err;
    o->offset[o->n++] = n ? offsets[0].offset : -1;
}

static void asynchronous_commits_end_in_order(void **state)
{
    struct member_test t;
    struct outcome o = {0};
    begin(&t, 1, (const char *[]){"enable.auto.commit", "false", NULL});
    poll_until(&t, "+t0 t1 | ");
    mock_script(t.m, API_OFFSET_COMMIT, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, 1);
    for (int i = 1; i <= 3; i++) {
        kafka_offset_t offset = {.topic = "t", .offset = i, .leader_epoch = -1};
        assert_int_equal(kafka_consumer_commit_async(t.c, &offset, 1, on_committed, &o), KAFKA_OK);
    }
    kafka_offset_t last = {.topic = "t", .offset = 9, .leader_epoch = -1};
    assert_int_equal(kafka_consumer_commit(t.c, &last, 1, 60000), KAFKA_OK);
    while (o.n < 3)
        poll_once(&t);
    assert_int_equal(o.err[0], KERR_COORDINATOR_LOAD_IN_PROGRESS); /* one attempt only */
    assert_int_equal(o.err[1], KAFKA_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(o.offset[i], i + 1);
    assert_int_equal(mock_committed(t.m, "t", 0), 9);
    end(&t);
}

static void calls_that_wait_can_be_woken(void **state)
{
    struct member_test t;
    kafka_offset_list_t *list;
    kafka_topic_partition_t tp = {"t", 0};
    begin(&t, 1, (const char *[]){"enable.auto.commit", "false", NULL});
    append(t.m, 0, 1);
    read_records(&t, 0, 1);
    mock_script(t.m, API_OFFSET_COMMIT, MOCK_IGNORE, 0, 1);
    kafka_consumer_wakeup(t.c);
    assert_int_equal(kafka_consumer_commit(t.c, NULL, 0, 60000), KAFKA_ERR_WAKEUP);
    kafka_consumer_wakeup(t.c);
    assert_int_equal(kafka_consumer_committed(t.c, &tp, 1, 60000, &list), KAFKA_ERR_WAKEUP);
    mock_await(t.m, API_OFFSET_COMMIT, 1);
    mock_drop_node(t.m, 0); /* nothing waits behind the answer that does not come */
    assert_int_equal(kafka_consumer_committed(t.c, &tp, 1, 60000, &list), KAFKA_OK);
    kafka_offset_list_free(list);
    end(&t);
}

static void time_ends_a_commit(void **state)
{
    struct member_test t;
    begin(&t, 1, (const char *[]){"enable.auto.commit", "false", NULL});
    append(t.m, 0, 1);
    read_records(&t, 0, 1);
    mock_script(t.m, API_OFFSET_COMMIT, MOCK_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS, -1);
    assert_int_not_equal(kafka_consumer_commit(t.c, NULL, 0, 50), KAFKA_OK);
    assert_non_null(strstr(kafka_last_error(), "within 50 ms"));
    kafka_consumer_close_timeout(t.c, 100);
    mock_stop(t.m);
}

static void callbacks_must_not_poll(kafka_consumer_t *c, const kafka_topic_partition_t *tps,
                                    size_t n, void *arg)
{
    kafka_messages_t *m;
    const char *topic = "t";
    assert_int_equal(kafka_consumer_poll(c, 0, &m), KAFKA_ERR_STATE);
    assert_int_equal(kafka_consumer_unsubscribe(c), KAFKA_ERR_STATE);
    assert_int_equal(kafka_consumer_subscribe(c, &topic, 1, NULL), KAFKA_ERR_STATE);
    assert_int_equal(kafka_consumer_seek(c, "t", 0, 2), KAFKA_OK);
    ++*(int *)arg;
}

static void a_listener_may_seek(void **state)
{
    struct member_test t;
    int calls = 0;
    const char *topic = "t";
    begin(&t, 1, NULL);
    kafka_rebalance_listener_t l = {callbacks_must_not_poll, NULL, NULL, &calls};
    assert_int_equal(kafka_consumer_subscribe(t.c, &topic, 1, &l), KAFKA_OK);
    append(t.m, 0, 5);
    read_records(&t, 2, 3);
    assert_int_equal(calls, 1);
    end(&t);
}

/* JoinGroup is answered when all members have come: who closes does not wait for that. */
static void closing_does_not_wait_for_the_others(void **state)
{
    struct member_test t;
    char left[64];
    kafka_messages_t *m;
    begin(&t, 1, NULL);
    mock_script(t.m, API_JOIN_GROUP, MOCK_FINE, 0, 1);
    mock_script(t.m, API_JOIN_GROUP, MOCK_HOLD, 0, 1);
    while (mock_seen(t.m, API_JOIN_GROUP) < 2)
        assert_int_equal(kafka_consumer_poll(t.c, 5, &m), KAFKA_OK);
    int64_t begun = clock_mono_ms(clock_real());
    kafka_consumer_close_timeout(t.c, 60000);
    assert_true(clock_mono_ms(clock_real()) - begun < 30000);
    mock_left(t.m, left, sizeof left);
    assert_string_equal(left, "member-1");
    mock_stop(t.m);
}

UNIT_MAIN(unit_test(joins_reads_commits_and_leaves),
          unit_test(automatic_commits_that_fail_are_tried_again),
          unit_test(begins_at_what_is_committed),
          unit_test(what_heals_on_the_way_in_is_tried_again),
          unit_test(lost_connections_on_the_way_in_are_made_again),
          unit_test(what_does_not_heal_is_told_by_poll),
          unit_test(a_rebalance_revokes_commits_and_assigns_again),
          unit_test(cooperative_members_keep_what_stays),
          unit_test(a_member_that_is_out_is_told_what_it_lost),
          unit_test(an_old_generation_is_lost_but_the_id_stays),
          unit_test(the_coordinator_may_move),
          unit_test(silence_of_the_coordinator_ends_in_another_look),
          unit_test(a_coordinator_may_be_away_for_longer_than_the_session),
          unit_test(without_polls_the_member_leaves), unit_test(commits_tell_how_they_ended),
          unit_test(asynchronous_commits_end_in_order), unit_test(calls_that_wait_can_be_woken),
          unit_test(time_ends_a_commit), unit_test(a_listener_may_seek),
          unit_test(closing_does_not_wait_for_the_others))
