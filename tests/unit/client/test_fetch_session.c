/* What an incremental fetch names, and what becomes of a session. */
#include "unit.h"

#include <stdio.h>

#include "client/fetch_session.h"
#include "protocol/errors.h"
#include "protocol/msg/fetch.h"

struct session_test {
    struct fetch_session *s;
    char named[256], forgotten[256];
    int32_t id, epoch;
};

/* One request for "t" partitions, each at offset offsets[i]; -1: not wanted. */
static void request(struct session_test *t, const int64_t *offsets, int n)
{
    struct arena a;
    struct fetch_request req;
    size_t at = 0;
    arena_init(&a, 0);
    fetch_request_init(&req);
    t->named[0] = t->forgotten[0] = 0;
    fetch_session_begin(t->s);
    for (int i = 0; i < n; i++)
        if (offsets[i] >= 0 && fetch_session_want(t->s, "t", i, offsets[i], 3))
            at += (size_t)snprintf(t->named + at, sizeof t->named - at, "%d ", i);
    assert_true(fetch_session_fill(t->s, &a, &req));
    at = 0;
    for (int32_t i = 0; i < req.forgotten_topics_data.n; i++) {
        assert_true(str_eqz(req.forgotten_topics_data.v[i].topic, "t"));
        at += (size_t)snprintf(t->forgotten + at, sizeof t->forgotten - at, "%d ",
                               req.forgotten_topics_data.v[i].partitions.v[0]);
    }
    t->id = req.session_id;
    t->epoch = req.session_epoch;
    arena_free(&a);
}

static void expect(struct session_test *t, int32_t id, int32_t epoch, const char *named,
                   const char *forgotten)
{
    assert_int_equal(t->id, id);
    assert_int_equal(t->epoch, epoch);
    assert_string_equal(t->named, named);
    assert_string_equal(t->forgotten, forgotten);
}

static void a_session_names_what_is_new(void **state)
{
    struct session_test t = {.s = fetch_session_new(1)};
    request(&t, (int64_t[]){0, 0, 0}, 3);
    expect(&t, 0, 0, "0 1 2 ", "");
    assert_true(fetch_session_is_full(t.s));
    assert_false(fetch_session_end(t.s, KAFKA_OK, 77));
    request(&t, (int64_t[]){0, 5, 0}, 3);
    expect(&t, 77, 1, "1 ", "");
    assert_false(fetch_session_is_full(t.s));
    assert_false(fetch_session_end(t.s, KAFKA_OK, 77));
    request(&t, (int64_t[]){0, 5, -1, 0}, 4);
    expect(&t, 77, 2, "3 ", "2 ");
    assert_false(fetch_session_end(t.s, KAFKA_OK, 77));
    request(&t, (int64_t[]){0, 5, 0, 0}, 4);
    expect(&t, 77, 3, "2 ", "");
    fetch_session_free(t.s);
}

static void without_a_session_every_fetch_is_full(void **state)
{
    struct session_test t = {.s = fetch_session_new(1)};
    for (int i = 0; i < 3; i++) {
        request(&t, (int64_t[]){0, 0}, 2);
        expect(&t, 0, 0, "0 1 ", "");
        assert_false(fetch_session_end(t.s, KAFKA_OK, 0));
    }
    fetch_session_free(t.s);
}

static void what_goes_wrong_begins_a_new_one(void **state)
{
    static const struct {
        kafka_err_t err;
        int32_t id;
        bool again;
    } cases[] = {
        {KERR_FETCH_SESSION_ID_NOT_FOUND, 0, true},
        {KERR_INVALID_FETCH_SESSION_EPOCH, 9, true},
        {KAFKA_ERR_TRANSPORT, 9, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct session_test t = {.s = fetch_session_new(1)};
        request(&t, (int64_t[]){0, 0}, 2);
        fetch_session_end(t.s, KAFKA_OK, 9);
        request(&t, (int64_t[]){1, 0}, 2);
        assert_int_equal(fetch_session_end(t.s, cases[i].err, 0), cases[i].again);
        request(&t, (int64_t[]){1, 0}, 2);
        expect(&t, cases[i].id, 0, "0 1 ", "");
        fetch_session_free(t.s);
    }
}

static void epochs_wrap_to_one(void **state)
{
    struct session_test t = {.s = fetch_session_new(1)};
    request(&t, (int64_t[]){0}, 1);
    fetch_session_end(t.s, KAFKA_OK, 9);
    t.s->epoch = INT32_MAX;
    request(&t, (int64_t[]){0}, 1);
    fetch_session_end(t.s, KAFKA_OK, 9);
    request(&t, (int64_t[]){0}, 1);
    expect(&t, 9, 1, "", "");
    fetch_session_free(t.s);
}

UNIT_MAIN(unit_test(a_session_names_what_is_new), unit_test(without_a_session_every_fetch_is_full),
          unit_test(what_goes_wrong_begins_a_new_one), unit_test(epochs_wrap_to_one))
