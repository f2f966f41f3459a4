/* Fetch sessions: the table of requests, incremental answers, order, eviction, bounds. */
#include "server/fetch_session.h"

#include <stdio.h>
#include <string.h>

#include "server/fetch_session_cache.h"
#include "unit.h"

/* ---- ids are resolved from this table, not from a metadata cache ---- */

static struct topic_info known[4];
static int known_n;

const struct topic_info *metadata_topic_by_id(const struct metadata_snapshot *s, struct uuid id)
{
    for (int i = 0; i < known_n; i++)
        if (uuid_eq(known[i].id, id))
            return &known[i];
    return NULL;
}

static struct uuid id_of(uint8_t n)
{
    struct uuid u = UUID_ZERO;
    u.b[15] = n;
    return u;
}

/* ---- a bench ---- */

struct bench {
    struct sim_clock clock;
    struct fetch_sessions *s;
    struct arena a;
    struct fetch_request req;
    struct fetch_request_topic topics[8];
    struct fetch_request_partition partitions[8];
    struct fetch_request_forgotten_topic forgotten[8];
    int32_t forgotten_numbers[8];
    int version;
    struct fetch_context c;
    struct fetch_found found[16];
};

static void bench_open(struct bench *b, int slots)
{
    memset(b, 0, sizeof *b);
    sim_clock_init(&b->clock, 1000000);
    b->s = fetch_sessions_new(slots, &b->clock.clock);
    arena_init(&b->a, 0);
    b->version = 12;
    known_n = 0;
}

static void bench_close(struct bench *b)
{
    fetch_sessions_free(b->s);
    arena_free(&b->a);
}

/* A request of (session id, epoch); add what it names with ask() and forget(). */
static void request(struct bench *b, int32_t id, int32_t epoch)
{
    fetch_request_init(&b->req);
    b->req.session_id = id;
    b->req.session_epoch = epoch;
    b->req.topics.v = b->topics;
    b->req.forgotten_topics_data.v = b->forgotten;
}

static struct fetch_request_partition *ask(struct bench *b, const char *topic, uint8_t id,
                                           int32_t number, int64_t offset)
{
    int n = b->req.topics.n++;
    b->topics[n] = (struct fetch_request_topic){.topic = str_of(topic),
                                                .topic_id = id_of(id),
                                                .partitions = {.v = &b->partitions[n], .n = 1}};
    b->partitions[n] = (struct fetch_request_partition){.partition = number,
                                                        .current_leader_epoch = -1,
                                                        .fetch_offset = offset,
                                                        .last_fetched_epoch = -1,
                                                        .partition_max_bytes = 1000};
    return &b->partitions[n];
}

static void forget(struct bench *b, const char *topic, uint8_t id, int32_t number)
{
    int n = b->req.forgotten_topics_data.n++;
    b->forgotten_numbers[n] = number;
    b->forgotten[n] = (struct fetch_request_forgotten_topic){
        .topic = str_of(topic),
        .topic_id = id_of(id),
        .partitions = {.v = &b->forgotten_numbers[n], .n = 1}};
}

static void begin(struct bench *b)
{
    assert_int_equal(fetch_context_begin(b->s, &b->req, b->version, NULL, &b->a, &b->c), 0);
    for (int i = 0; i < b->c.wants_n; i++)
        b->found[i] = (struct fetch_found){.high_watermark = 10, .log_start = 0};
}

static enum kerr end(struct bench *b)
{
    return fetch_context_end(b->s, &b->c, b->found);
}

/* begin, and what it must be: kind, and the partitions as "a0 b1". */
static void expect(struct bench *b, enum fetch_context_kind kind, enum kerr error, const char *list)
{
    char text[256] = "";
    begin(b);
    assert_int_equal(b->c.kind, kind);
    assert_int_equal(b->c.error, error);
    for (int i = 0; i < b->c.wants_n; i++)
        sprintf(text + strlen(text), "%s%.*s%d", i ? " " : "", STR_ARG(b->c.wants[i].topic),
                (int)b->c.wants[i].partition);
    assert_string_equal(text, list);
}

static void expect_sent(struct bench *b, enum kerr error, const char *list)
{
    char text[256] = "";
    assert_int_equal(end(b), error);
    for (int i = 0; error == KERR_NONE && i < b->c.wants_n; i++)
        if (b->found[i].send)
            sprintf(text + strlen(text), "%s%.*s%d", *text ? " " : "", STR_ARG(b->c.wants[i].topic),
                    (int)b->c.wants[i].partition);
    assert_string_equal(text, list);
}

/* A session of t0 t1 t2 with nothing new in it. */
static int32_t session_of_three(struct bench *b)
{
    request(b, 0, 0);
    ask(b, "t", 1, 0, 0);
    ask(b, "t", 1, 1, 0);
    ask(b, "t", 1, 2, 0);
    expect(b, FETCH_FULL, KERR_NONE, "t0 t1 t2");
    expect_sent(b, KERR_NONE, "t0 t1 t2");
    assert_true(b->c.session_id > 0);
    return b->c.session_id;
}

/* ---- tests ---- */

static void versions_below_7_have_no_session(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    b.version = 6;
    request(&b, 5, 0); /* fields that the version does not carry */
    ask(&b, "t", 0, 0, 0);
    expect(&b, FETCH_SESSIONLESS, KERR_NONE, "t0");
    expect_sent(&b, KERR_NONE, "t0");
    assert_int_equal(b.c.session_id, 0);
    assert_int_equal(fetch_sessions_count(b.s), 0);
    bench_close(&b);
}

static void epoch_minus_1_ends_a_session(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    request(&b, id, -1);
    ask(&b, "t", 1, 1, 5);
    expect(&b, FETCH_SESSIONLESS, KERR_NONE, "t1");
    expect_sent(&b, KERR_NONE, "t1");
    assert_int_equal(b.c.session_id, 0);
    assert_int_equal(fetch_sessions_count(b.s), 0);
    bench_close(&b);
}

static void full_request_replaces_its_session(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    request(&b, id, 0);
    ask(&b, "u", 1, 7, 5);
    expect(&b, FETCH_FULL, KERR_NONE, "u7");
    expect_sent(&b, KERR_NONE, "u7");
    assert_int_not_equal(b.c.session_id, id);
    assert_int_equal(fetch_sessions_count(b.s), 1);
    assert_int_equal(fetch_sessions_partitions(b.s), 1);
    bench_close(&b);
}

static void refusals(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    struct {
        int32_t id, epoch;
        int version;
        enum kerr error;
    } t[] = {
        {id + 1, 1, 12, KERR_FETCH_SESSION_ID_NOT_FOUND},
        {0, 1, 12, KERR_FETCH_SESSION_ID_NOT_FOUND},
        {id, 2, 12, KERR_INVALID_FETCH_SESSION_EPOCH},
        {id, -2, 12, KERR_INVALID_FETCH_SESSION_EPOCH},
        {id, 1, 13, KERR_FETCH_SESSION_TOPIC_ID_ERROR},
        {id, 2, 13, KERR_INVALID_FETCH_SESSION_EPOCH}, /* the epoch is looked at first */
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        b.version = t[i].version;
        request(&b, t[i].id, t[i].epoch);
        ask(&b, "t", 1, 9, 0);
        expect(&b, FETCH_REFUSED, t[i].error, "");
        assert_int_equal(b.c.session_id, 0);
    }
    b.version = 12; /* and none of them did any harm */
    request(&b, id, 1);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t1 t2");
    assert_int_equal(b.c.session_id, id);
    bench_close(&b);
}

static void replayed_epoch_is_refused(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    request(&b, id, 1);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t1 t2");
    struct fetch_context first = b.c;
    request(&b, id, 1);
    expect(&b, FETCH_REFUSED, KERR_INVALID_FETCH_SESSION_EPOCH, "");
    /* A newer request passes the first before it was answered. */
    request(&b, id, 2);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t1 t2");
    struct fetch_found found[3] = {{.high_watermark = 99}, {0}, {0}};
    assert_int_equal(fetch_context_end(b.s, &first, found), KERR_INVALID_FETCH_SESSION_EPOCH);
    assert_int_equal(first.session_id, id);
    expect_sent(&b, KERR_NONE, "");
    bench_close(&b);
}

static void epochs_wrap_to_1(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    session_find(b.s, id)->epoch = INT32_MAX;
    request(&b, id, INT32_MAX);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t1 t2");
    expect_sent(&b, KERR_NONE, "");
    request(&b, id, 1);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t1 t2");
    bench_close(&b);
}

static void only_news_is_sent(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b), epoch = 0;
    struct {
        const char *what;
        struct fetch_found found; /* of t1 */
        const char *sent;
    } t[] = {
        {"nothing", {.high_watermark = 10}, ""},
        {"records", {.high_watermark = 10, .has_records = true}, "t1"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        request(&b, id, ++epoch);
        begin(&b);
        b.found[1] = t[i].found;
        expect_sent(&b, KERR_NONE, t[i].sent);
    }
    /* t1 gave records, so it is the last now. */
    request(&b, id, ++epoch);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t2 t1");
    b.found[0].high_watermark = 11;
    b.found[1].log_start = 3;
    b.found[2].has_records = true;
    expect_sent(&b, KERR_NONE, "t0 t2 t1");
    request(&b, id, ++epoch);
    begin(&b);
    b.found[0].high_watermark = 11;
    b.found[1].log_start = 3;
    expect_sent(&b, KERR_NONE, "");
    bench_close(&b);
}

/* Nor does who is told that his log diverges take the watermark that comes along: it is told again.
 * Seen by the simulator: a follower's stood still until the next record. */
static void partition_is_told_when_its_error_ends(void **state)
{
    static const struct fetch_found each[] = {
        {.error = KERR_NOT_LEADER_OR_FOLLOWER, .high_watermark = -1, .log_start = -1},
        {.special = true, .high_watermark = 10, .log_start = 0}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        struct bench b;
        bench_open(&b, 10);
        int32_t id = session_of_three(&b);
        for (int32_t epoch = 1; epoch <= 2; epoch++) { /* every time */
            request(&b, id, epoch);
            begin(&b);
            b.found[2] = each[i];
            expect_sent(&b, KERR_NONE, "t2");
        }
        request(&b, id, 3);
        begin(&b);
        expect_sent(&b, KERR_NONE, "t2");
        request(&b, id, 4);
        begin(&b);
        expect_sent(&b, KERR_NONE, "");
        bench_close(&b);
    }
}

static void partitions_are_added_updated_and_forgotten(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    request(&b, id, 1);
    ask(&b, "u", 2, 0, 7);
    ask(&b, "t", 1, 1, 50)->partition_max_bytes = 77;
    forget(&b, "t", 1, 0);
    forget(&b, "never", 9, 0);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t1 t2 u0");
    assert_int_equal(b.c.wants[0].offset, 50);
    assert_int_equal(b.c.wants[0].max_bytes, 77);
    expect_sent(&b, KERR_NONE, "t1 u0"); /* the new one has never been told; t1: see below */
    assert_int_equal(fetch_sessions_partitions(b.s), 3);
    bench_close(&b);
}

/* A fetcher names a partition again because something moved it there. If that was the answer with
 * records, it took the marks too; else it may have dropped the answer that told them (a new epoch),
 * and is told again. Seen by the simulator: a follower's watermark stood still. */
static void partition_that_did_not_take_its_answer_is_told_again(void **state)
{
    static const struct {
        const char *what;
        bool records; /* were in the answer before */
        int64_t offset;
        int32_t epoch;
        int64_t log_start;
        const char *sent;
    } t[] = {{"went on behind its records", true, 60, -1, 0, ""},
             {"a new epoch", false, 50, 6, 0, "t1"},
             {"a new epoch, records dropped", true, 50, 6, 0, "t1"},
             {"a new epoch, behind the records", true, 60, 6, 0, "t1"},
             {"went on without records", false, 60, -1, 0, "t1"},
             {"went back", true, 40, -1, 0, "t1"},
             {"stands where it stood", true, 50, -1, 0, "t1"},
             {"another log start", false, 50, -1, 5, "t1"}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct bench b;
        bench_open(&b, 10);
        int32_t id = session_of_three(&b);
        request(&b, id, 1);
        ask(&b, "t", 1, 1, 50);
        begin(&b);
        b.found[1].high_watermark = 11; /* news, in an answer that is perhaps dropped */
        b.found[1].has_records = t[i].records;
        expect_sent(&b, KERR_NONE, "t1");
        request(&b, id, 2);
        struct fetch_request_partition *p = ask(&b, "t", 1, 1, t[i].offset);
        p->current_leader_epoch = t[i].epoch;
        p->log_start_offset = t[i].log_start;
        begin(&b);
        for (int w = 0; w < b.c.wants_n; w++)
            if (b.c.wants[w].partition == 1)
                b.found[w].high_watermark = 11;
        expect_sent(&b, KERR_NONE, t[i].sent);
        request(&b, id, 3); /* and once */
        begin(&b);
        for (int w = 0; w < b.c.wants_n; w++)
            if (b.c.wants[w].partition == 1)
                b.found[w].high_watermark = 11;
        expect_sent(&b, KERR_NONE, "");
        bench_close(&b);
    }
}

static void emptied_session_is_dropped(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    int32_t id = session_of_three(&b);
    request(&b, id, 1);
    for (int32_t i = 0; i < 3; i++)
        forget(&b, "t", 1, i);
    expect(&b, FETCH_SESSIONLESS, KERR_NONE, "");
    expect_sent(&b, KERR_NONE, "");
    assert_int_equal(b.c.session_id, 0);
    request(&b, id, 2);
    expect(&b, FETCH_REFUSED, KERR_FETCH_SESSION_ID_NOT_FOUND, "");
    bench_close(&b);
}

static void partition_named_twice_is_served_once(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    for (b.version = 4; b.version <= 11; b.version += 7) {
        request(&b, 0, 0);
        ask(&b, "t", 0, 0, 1);
        ask(&b, "u", 0, 0, 2);
        ask(&b, "t", 0, 0, 3);
        expect(&b, b.version < 7 ? FETCH_SESSIONLESS : FETCH_FULL, KERR_NONE, "t0 u0");
        assert_int_equal(b.c.wants[0].offset, 3); /* as last named */
    }
    bench_close(&b);
}

static void ids_are_resolved_when_they_become_known(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    b.version = 13;
    known[0] = (struct topic_info){.name = STR_LIT("t"), .id = id_of(1)};
    known_n = 1;
    request(&b, 0, 0);
    ask(&b, "", 1, 0, 0);
    ask(&b, "", 2, 0, 0);
    expect(&b, FETCH_FULL, KERR_NONE, "t0 null0");
    b.found[1] =
        (struct fetch_found){.error = KERR_UNKNOWN_TOPIC_ID, .high_watermark = -1, .log_start = -1};
    assert_int_equal(end(&b), KERR_NONE);
    known[1] = (struct topic_info){.name = STR_LIT("u"), .id = id_of(2)};
    known_n = 2;
    request(&b, b.c.session_id, 1);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 u0");
    expect_sent(&b, KERR_NONE, "u0");
    bench_close(&b);
}

static void same_name_with_another_id_is_another_partition(void **state)
{
    struct bench b;
    bench_open(&b, 10);
    b.version = 13;
    known[0] = (struct topic_info){.name = STR_LIT("t"), .id = id_of(1)};
    known[1] = (struct topic_info){.name = STR_LIT("t"), .id = id_of(2)};
    known_n = 2;
    request(&b, 0, 0);
    ask(&b, "", 1, 0, 0);
    begin(&b);
    end(&b);
    request(&b, b.c.session_id, 1);
    ask(&b, "", 2, 0, 9);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0 t0");
    assert_int_equal(b.c.wants[1].offset, 9);
    end(&b);
    request(&b, b.c.session_id, 2);
    forget(&b, "", 1, 0);
    expect(&b, FETCH_INCREMENTAL, KERR_NONE, "t0");
    assert_int_equal(b.c.wants[0].offset, 9);
    bench_close(&b);
}

/* ---- eviction ---- */

/* One full request; its session's id, 0 if it got none. */
static int32_t newcomer(struct bench *b, bool follower, int partitions)
{
    request(b, 0, 0);
    b->req.replica_id = follower ? 3 : -1;
    for (int i = 0; i < partitions; i++)
        ask(b, "t", 0, i, 0);
    begin(b);
    end(b);
    assert_true(fetch_sessions_count(b->s) <= b->s->slots);
    return b->c.session_id;
}

static bool lives(struct bench *b, int32_t id)
{
    return session_find(b->s, id) != NULL;
}

static void full_cache_gives_no_session(void **state)
{
    struct bench b;
    bench_open(&b, 2);
    int32_t x = newcomer(&b, false, 1), y = newcomer(&b, false, 1);
    assert_int_equal(newcomer(&b, false, 5), 0); /* nobody is old */
    assert_true(lives(&b, x) && lives(&b, y));
    bench_close(&b);
}

static void least_recently_used_goes_after_two_minutes(void **state)
{
    struct bench b;
    bench_open(&b, 2);
    int32_t x = newcomer(&b, false, 5), y = newcomer(&b, false, 5);
    sim_clock_advance(&b.clock, FETCH_SESSION_EVICT_MS);
    request(&b, x, 1); /* x is used */
    begin(&b);
    sim_clock_advance(&b.clock, 1);
    assert_int_not_equal(newcomer(&b, false, 1), 0);
    assert_true(lives(&b, x));
    assert_false(lives(&b, y));
    bench_close(&b);
}

static void newcomer_evicts_old_sessions_of_lower_rank_only(void **state)
{
    struct bench b;
    bench_open(&b, 2);
    int32_t small = newcomer(&b, false, 2), large = newcomer(&b, false, 6);
    sim_clock_advance(&b.clock, FETCH_SESSION_EVICT_MS + 1);
    request(&b, small, 1); /* both made long ago, both in use */
    begin(&b);
    request(&b, large, 1);
    begin(&b);
    assert_int_equal(newcomer(&b, false, 1), 0);
    assert_int_equal(newcomer(&b, false, 2), 0); /* equal, but ids count, and it has none yet */
    assert_int_not_equal(newcomer(&b, false, 3), 0);
    assert_false(lives(&b, small));
    assert_true(lives(&b, large));
    bench_close(&b);
}

static void follower_evicts_any_consumer_but_no_young_follower(void **state)
{
    struct bench b;
    bench_open(&b, 2);
    int32_t follower = newcomer(&b, true, 1), consumer = newcomer(&b, false, 6);
    assert_int_not_equal(newcomer(&b, true, 1), 0);
    assert_true(lives(&b, follower));
    assert_false(lives(&b, consumer));
    assert_int_equal(newcomer(&b, true, 6), 0);
    assert_int_equal(newcomer(&b, false, 6), 0);
    sim_clock_advance(&b.clock, FETCH_SESSION_EVICT_MS);
    request(&b, follower, 1);
    begin(&b);
    sim_clock_advance(&b.clock, 1);
    /* The other follower has slept; the first is old but in use. */
    assert_int_not_equal(newcomer(&b, true, 6), 0);
    assert_true(lives(&b, follower));
    bench_close(&b);
}

static void flood_of_new_sessions_leaves_the_live_one_alone(void **state)
{
    struct bench b;
    bench_open(&b, 100);
    int32_t id = session_of_three(&b), epoch = 0;
    for (int i = 0; i < 5000; i++) {
        int32_t got = newcomer(&b, false, 1);
        assert_true((got != 0) == (i < 99));
        if (i % 100)
            continue;
        arena_reset(&b.a);
        sim_clock_advance(&b.clock, 1000);
        request(&b, id, ++epoch);
        begin(&b);
        assert_int_equal(b.c.kind, FETCH_INCREMENTAL);
        assert_int_equal(end(&b), KERR_NONE);
    }
    bench_close(&b);
}

static void partitions_of_all_sessions_are_bounded(void **state)
{
    struct bench b;
    bench_open(&b, 1);
    b.s->partitions_max = 5;
    int32_t id = session_of_three(&b);
    request(&b, id, 1);
    for (int32_t i = 3; i < 6; i++)
        ask(&b, "t", 1, i, 0);
    expect(&b, FETCH_REFUSED, KERR_FETCH_SESSION_ID_NOT_FOUND, "");
    assert_int_equal(fetch_sessions_count(b.s), 0);
    assert_int_equal(fetch_sessions_partitions(b.s), 0);
    assert_int_equal(newcomer(&b, false, 6), 0);
    assert_int_equal(fetch_sessions_partitions(b.s), 0);
    assert_int_not_equal(newcomer(&b, false, 5), 0);
    bench_close(&b);
}

static void no_slots_no_sessions(void **state)
{
    struct bench b;
    bench_open(&b, 0);
    assert_int_equal(newcomer(&b, true, 1), 0);
    bench_close(&b);
}

static void evicted_while_served_is_answered_all_the_same(void **state)
{
    struct bench b;
    bench_open(&b, 1);
    int32_t id = session_of_three(&b);
    request(&b, id, 1);
    begin(&b);
    session_drop(b.s, session_find(b.s, id));
    expect_sent(&b, KERR_NONE, "t0 t1 t2");
    bench_close(&b);
}

UNIT_MAIN(unit_test(versions_below_7_have_no_session), unit_test(epoch_minus_1_ends_a_session),
          unit_test(full_request_replaces_its_session), unit_test(refusals),
          unit_test(replayed_epoch_is_refused), unit_test(epochs_wrap_to_1),
          unit_test(only_news_is_sent), unit_test(partition_is_told_when_its_error_ends),
          unit_test(partitions_are_added_updated_and_forgotten),
          unit_test(partition_that_did_not_take_its_answer_is_told_again),
          unit_test(emptied_session_is_dropped), unit_test(partition_named_twice_is_served_once),
          unit_test(ids_are_resolved_when_they_become_known),
          unit_test(same_name_with_another_id_is_another_partition),
          unit_test(full_cache_gives_no_session),
          unit_test(least_recently_used_goes_after_two_minutes),
          unit_test(newcomer_evicts_old_sessions_of_lower_rank_only),
          unit_test(follower_evicts_any_consumer_but_no_young_follower),
          unit_test(flood_of_new_sessions_leaves_the_live_one_alone),
          unit_test(partitions_of_all_sessions_are_bounded), unit_test(no_slots_no_sessions),
          unit_test(evicted_while_served_is_answered_all_the_same))
