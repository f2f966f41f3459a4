/* test_txn.c - what a transactional id admits: every state against every request, epochs to their
 * end, and its records. */
#include "coordinator/txn.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/txn_loading.h"
#include "coordinator/txn_records.h"
#include "protocol/batch_builder.h"
#include "unit.h"

enum { NOW = 1700000 };

static struct txn *make(enum txn_state state, int16_t epoch)
{
    struct txn *t = txn_new(STR_LIT("x"), 3);
    assert_non_null(t);
    t->now.producer_id = 7;
    t->now.epoch = epoch;
    t->now.state = state;
    t->now.timeout_ms = 1000;
    t->now.start_ms = state == TXN_EMPTY ? -1 : NOW;
    t->now.updated_ms = NOW;
    assert_int_equal(txn_partitions_add(&t->now.partitions, STR_LIT("t"), 4), 0);
    return t;
}

static void each_state_has_one_answer_to_the_end(void **state)
{
    (void)state;
    static const struct {
        enum txn_state state;
        enum kerr commit, abort;
    } cells[] = {
        {TXN_EMPTY, KERR_INVALID_TXN_STATE, KERR_INVALID_TXN_STATE},
        {TXN_ONGOING, KERR_NONE, KERR_NONE},
        {TXN_PREPARE_COMMIT, KERR_CONCURRENT_TRANSACTIONS, KERR_INVALID_TXN_STATE},
        {TXN_PREPARE_ABORT, KERR_INVALID_TXN_STATE, KERR_CONCURRENT_TRANSACTIONS},
        {TXN_COMPLETE_COMMIT, KERR_NONE, KERR_INVALID_TXN_STATE},
        {TXN_COMPLETE_ABORT, KERR_INVALID_TXN_STATE, KERR_NONE},
    };
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
        struct txn *t = make(cells[i].state, 5);
        bool write;
        assert_int_equal(txn_check_end(t, 7, 5, true, &write), cells[i].commit);
        assert_int_equal(write, cells[i].state == TXN_ONGOING);
        assert_int_equal(txn_check_end(t, 7, 5, false, &write), cells[i].abort);
        assert_int_equal(txn_check_end(t, 8, 5, true, &write), KERR_INVALID_PRODUCER_ID_MAPPING);
        assert_int_equal(txn_check_end(t, 7, 4, true, &write), KERR_PRODUCER_FENCED);
        assert_int_equal(txn_check_end(t, 7, 6, true, &write), KERR_PRODUCER_FENCED);
        t->pending = true;
        assert_int_equal(txn_check_end(t, 7, 5, true, &write), KERR_CONCURRENT_TRANSACTIONS);
        assert_int_equal(txn_check_end(t, 7, 4, true, &write), KERR_PRODUCER_FENCED);
        txn_unref(t);
    }
}

static void each_state_has_one_answer_to_more_partitions(void **state)
{
    (void)state;
    for (int s = TXN_EMPTY; s <= TXN_COMPLETE_ABORT; s++) {
        struct txn *t = make((enum txn_state)s, 5);
        bool prepared = s == TXN_PREPARE_COMMIT || s == TXN_PREPARE_ABORT;
        enum kerr want = prepared ? KERR_CONCURRENT_TRANSACTIONS : KERR_NONE;
        assert_int_equal(txn_check_add(t, 7, 5), want);
        assert_int_equal(txn_check_verify(t, 7, 5), want);
        assert_int_equal(txn_check_add(t, 8, 5), KERR_INVALID_PRODUCER_ID_MAPPING);
        assert_int_equal(txn_check_verify(t, 8, 5), KERR_INVALID_PRODUCER_ID_MAPPING);
        assert_int_equal(txn_check_add(t, 7, 4), KERR_PRODUCER_FENCED);
        assert_int_equal(txn_check_verify(t, 7, 6), KERR_PRODUCER_FENCED);
        t->pending = true;
        assert_int_equal(txn_check_add(t, 7, 5), KERR_CONCURRENT_TRANSACTIONS);
        assert_int_equal(txn_check_verify(t, 7, 5), want); /* what is pending is not asked */
        txn_unref(t);
    }
}

static void each_state_has_one_answer_to_init(void **state)
{
    (void)state;
    for (int s = TXN_EMPTY; s <= TXN_COMPLETE_ABORT; s++) {
        struct txn *t = make((enum txn_state)s, 5);
        enum txn_init_step step;
        bool prepared = s == TXN_PREPARE_COMMIT || s == TXN_PREPARE_ABORT;
        assert_int_equal(txn_check_init(t, -1, -1, &step),
                         prepared ? KERR_CONCURRENT_TRANSACTIONS : KERR_NONE);
        assert_int_equal(step, prepared || s == TXN_ONGOING ? TXN_INIT_ABORT : TXN_INIT_BUMP);
        assert_int_equal(txn_check_init(t, 8, 5, &step), KERR_PRODUCER_FENCED);
        t->pending = true;
        assert_int_equal(txn_check_init(t, -1, -1, &step), KERR_CONCURRENT_TRANSACTIONS);
        assert_int_equal(txn_check_init(t, 8, 5, &step), KERR_CONCURRENT_TRANSACTIONS);
        txn_unref(t);
    }
}

/* Which epoch the id has, and had; which pair the producer names; what it gets. */
static void epochs(void **state)
{
    (void)state;
    static const struct {
        int16_t epoch, last_epoch;
        int64_t named_id;
        int16_t named;
        enum kerr error;
        enum txn_init_step step;
        int64_t id;
        int16_t next, next_last;
    } rows[] = {
        {-1, -1, -1, -1, KERR_NONE, TXN_INIT_BUMP, 7, 0, -1},
        {-1, -1, 99, 12, KERR_NONE, TXN_INIT_BUMP, 7, 0, -1}, /* the id was forgotten */
        {5, -1, -1, -1, KERR_NONE, TXN_INIT_BUMP, 7, 6, -1},
        {5, 4, 7, 5, KERR_NONE, TXN_INIT_BUMP, 7, 6, 5},
        {5, 4, 7, 4, KERR_NONE, TXN_INIT_REPEAT, 7, 0, 0},
        {5, 4, 7, 3, KERR_PRODUCER_FENCED, 0, 0, 0, 0},
        {5, -1, 7, 4, KERR_PRODUCER_FENCED, 0, 0, 0, 0},
        {5, -1, 6, 5, KERR_PRODUCER_FENCED, 0, 0, 0, 0},
        {32765, -1, -1, -1, KERR_NONE, TXN_INIT_BUMP, 7, 32766, -1},
        {32766, -1, -1, -1, KERR_NONE, TXN_INIT_ROTATE, 1000, 0, -1},
        {32767, -1, -1, -1, KERR_NONE, TXN_INIT_ROTATE, 1000, 0, -1}, /* after a fence */
        {32766, -1, 7, 32766, KERR_NONE, TXN_INIT_ROTATE, 1000, 0, 32766},
        {32766, 32765, 7, 32765, KERR_UNKNOWN_SERVER_ERROR, 0, 0, 0, 0},
        {0, 32766, 6, 32766, KERR_NONE, TXN_INIT_REPEAT, 7, 0, 0}, /* 6: what it had before */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct txn *t = make(TXN_EMPTY, rows[i].epoch);
        struct txn_image to;
        enum txn_init_step step;
        t->now.last_epoch = rows[i].last_epoch;
        t->now.last_producer_id = rows[i].epoch == 0 ? 6 : -1;
        assert_int_equal(txn_check_init(t, rows[i].named_id, rows[i].named, &step), rows[i].error);
        if (rows[i].error == KERR_NONE) {
            assert_int_equal(step, rows[i].step);
            if (step != TXN_INIT_REPEAT) {
                txn_init_image(t, step, 1000, rows[i].named, 2000, NOW + 1, &to);
                assert_int_equal(to.producer_id, rows[i].id);
                assert_int_equal(to.epoch, rows[i].next);
                assert_int_equal(to.last_epoch, rows[i].next_last);
                assert_int_equal(to.last_producer_id, step == TXN_INIT_ROTATE ? 7 : -1);
                assert_int_equal(to.timeout_ms, 2000);
                assert_int_equal(to.start_ms, -1);
                assert_int_equal(to.state, TXN_EMPTY);
                assert_int_equal(to.partitions.n, 0);
            }
        }
        txn_unref(t);
    }
}

static void times(void **state)
{
    (void)state;
    for (int s = TXN_EMPTY; s <= TXN_COMPLETE_ABORT; s++) {
        struct txn *t = make((enum txn_state)s, 5);
        bool idle = s == TXN_EMPTY || s >= TXN_COMPLETE_COMMIT;
        t->now.start_ms = NOW;
        assert_false(txn_is_overdue(t, NOW + 1000));
        assert_int_equal(txn_is_overdue(t, NOW + 1001), s == TXN_ONGOING);
        assert_false(txn_is_expired(t, NOW + 499, 500));
        assert_int_equal(txn_is_expired(t, NOW + 500, 500), idle);
        t->now.updated_ms = INT64_MIN; /* of a log that is not what it should be */
        t->now.start_ms = INT64_MIN;
        assert_int_equal(txn_is_expired(t, NOW, 500), idle);
        t->now.updated_ms = INT64_MAX;
        assert_false(txn_is_expired(t, NOW, 500));
        t->pending = true;
        t->now.updated_ms = 0;
        assert_false(txn_is_overdue(t, NOW));
        assert_false(txn_is_expired(t, NOW, 500));
        txn_unref(t);
    }
}

static void images_follow_each_other(void **state)
{
    (void)state;
    struct txn *t = make(TXN_EMPTY, 5);
    struct txn_image to;
    txn_partitions_free(&t->now.partitions);
    assert_int_equal(txn_add_image(t, NOW + 1, &to), 0);
    assert_int_equal(txn_partitions_add(&to.partitions, STR_LIT("t"), 1), 0);
    txn_install(t, &to);
    assert_int_equal(t->now.state, TXN_ONGOING);
    assert_int_equal(t->now.start_ms, NOW + 1);
    assert_int_equal(txn_add_image(t, NOW + 2, &to), 0);
    assert_int_equal(txn_partitions_add(&to.partitions, STR_LIT("u"), 0), 0);
    txn_install(t, &to);
    assert_int_equal(t->now.start_ms, NOW + 1);
    assert_int_equal(txn_partitions_count(&t->now.partitions), 2);
    txn_fence(t);
    assert_int_equal(t->now.epoch, 6);
    t->fence_failed = true;
    txn_fence(t); /* which nobody was given */
    assert_int_equal(t->now.epoch, 6);
    assert_int_equal(txn_end_image(t, false, NOW + 3, &to), 0);
    txn_install(t, &to);
    assert_int_equal(t->now.state, TXN_PREPARE_ABORT);
    assert_int_equal(txn_partitions_count(&t->now.partitions), 2);
    assert_false(t->fence_failed);
    txn_complete_image(t, NOW + 4, &to);
    txn_install(t, &to);
    assert_int_equal(t->now.state, TXN_COMPLETE_ABORT);
    assert_int_equal(t->now.start_ms, NOW + 1);
    assert_int_equal(t->now.updated_ms, NOW + 4);
    assert_int_equal(t->now.partitions.n, 0);
    txn_unref(t);
}

static void sets_of_partitions(void **state)
{
    (void)state;
    struct txn_partitions s = TXN_PARTITIONS_INIT, copy = TXN_PARTITIONS_INIT;
    for (int i = 0; i < 100; i++)
        assert_int_equal(txn_partitions_add(&s, i % 2 ? STR_LIT("a") : STR_LIT("b"), i * 37 % 100),
                         0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(txn_partitions_add(&s, i % 2 ? STR_LIT("a") : STR_LIT("b"), i * 37 % 100),
                         0);
    assert_int_equal(txn_partitions_count(&s), 100);
    assert_int_equal(s.n, 2);
    assert_int_equal(txn_partitions_add_all(&copy, &s), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(txn_partitions_has(&copy, STR_LIT("a"), i), i % 2);
        assert_int_equal(txn_partitions_has(&s, STR_LIT("b"), i), i % 2 == 0);
        assert_false(txn_partitions_has(&s, STR_LIT("c"), i));
    }
    for (int i = 0; i < s.n; i++)
        for (int j = 1; j < s.topics[i].n; j++)
            assert_true(s.topics[i].v[j - 1] < s.topics[i].v[j]);
    txn_partitions_free(&s);
    txn_partitions_free(&copy);
}

static void names(void **state)
{
    (void)state;
    static const char *const want[] = {"Empty",        "Ongoing",          "PrepareCommit",
                                       "PrepareAbort", "CompleteCommit",   "CompleteAbort",
                                       "Dead",         "PrepareEpochFence"};
    for (int i = 0; i < TXN_STATES; i++) {
        assert_string_equal(txn_state_name((enum txn_state)i), want[i]);
        assert_int_equal(txn_state_find(str_of(want[i])), i);
    }
    assert_int_equal(txn_state_find(STR_LIT("empty")), -1);
}

/* ---- records ---- */

static void assert_hex(const struct buf *b, const char *hex)
{
    char text[1024] = "";
    assert_true(b->len * 2 < sizeof(text));
    for (size_t i = 0; i < b->len; i++)
        snprintf(text + 2 * i, 3, "%02x", b->p[i]);
    assert_string_equal(text, hex);
}

static void bytes_of_records(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct arena a;
    arena_init(&a, 0);
    txn_key_put(&b, STR_LIT("x"));
    assert_hex(&b, "0000000178");
    struct txn_image i = {.producer_id = 7,
                          .timeout_ms = 60000,
                          .state = TXN_EMPTY,
                          .start_ms = -1,
                          .updated_ms = 1700000000000};
    b.len = 0;
    assert_true(txn_value_put(&b, &i, &a));
    assert_hex(&b, "0000000000000000000700000000ea6000ffffffff0000018bcfe56800ffffffffffffffff");
    i.state = TXN_ONGOING;
    i.start_ms = i.updated_ms;
    assert_int_equal(txn_partitions_add(&i.partitions, STR_LIT("t"), 0), 0);
    b.len = 0;
    assert_true(txn_value_put(&b, &i, &a));
    assert_hex(&b, "0000000000000000000700000000ea600100000001000174000000010000000"
                   "00000018bcfe568000000018bcfe56800");
    txn_image_free(&i);
    buf_free(&b);
    arena_free(&a);
}

static void a_value_of_the_flexible_version(void **state)
{
    (void)state;
    static const uint8_t value[] = {0, 1, 0, 0,   0,   0, 0, 0, 0, 9, 0, 3, 0, 0, 0x27, 0x10,
                                    1, 2, 3, 'o', 'r', 3, 0, 0, 0, 1, 0, 0, 0, 5, 0,    0,
                                    0, 0, 0, 0,   0,   0, 8, 0, 0, 0, 0, 0, 0, 0, 6,    0};
    struct arena a;
    struct txn_image i;
    arena_init(&a, 0);
    assert_int_equal(txn_value_decode((struct bytes){value, sizeof(value)}, &a, &i), 0);
    assert_int_equal(i.producer_id, 9);
    assert_int_equal(i.epoch, 3);
    assert_int_equal(i.timeout_ms, 10000);
    assert_int_equal(i.state, TXN_ONGOING);
    assert_int_equal(i.updated_ms, 8);
    assert_int_equal(i.start_ms, 6);
    assert_true(txn_partitions_has(&i.partitions, STR_LIT("or"), 1));
    assert_true(txn_partitions_has(&i.partitions, STR_LIT("or"), 5));
    txn_image_free(&i);
    for (int32_t n = 0; n < (int32_t)sizeof(value); n++) /* cut anywhere: refused */
        assert_int_not_equal(txn_value_decode((struct bytes){value, n}, &a, &i), 0);
    arena_free(&a);
}

/* A batch of one record into the loading. */
static void load(struct txn_loading *l, struct bytes key, struct bytes value)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *b = batch_builder_new(&o);
    struct buf bytes = BUF_INIT;
    struct batch batch;
    assert_int_equal(batch_builder_add(b, 0, 1, key, value, NULL, 0), 0);
    assert_int_equal(batch_builder_finish(b, &bytes), 0);
    assert_int_equal(batch_decode(bytes.p, bytes.len, bytes.len, &batch), BATCH_OK);
    assert_int_equal(txn_loading_add(l, &batch), 0);
    batch_builder_free(b);
    buf_free(&bytes);
}

static void load_image(struct txn_loading *l, const char *id, enum txn_state state, int16_t epoch)
{
    struct buf key = BUF_INIT, value = BUF_INIT;
    struct arena a;
    struct txn_image i = {.producer_id = 7, .epoch = epoch, .state = state};
    arena_init(&a, 0);
    txn_key_put(&key, str_of(id));
    assert_true(txn_value_put(&value, &i, &a));
    load(l, (struct bytes){key.p, (int32_t)key.len},
         epoch < 0 ? BYTES_NULL : (struct bytes){value.p, (int32_t)value.len});
    arena_free(&a);
    buf_free(&key);
    buf_free(&value);
}

static void the_last_word_counts_and_damage_is_passed_over(void **state)
{
    (void)state;
    static const uint8_t key_9[] = {0, 9, 0, 1, 'x'}, key_short[] = {0},
                         key_a[] = {0, 0, 0, 1, 'a'}, value_9[] = {0, 9, 1},
                         value_cut[] = {0, 0, 1};
    struct txn_loading *l = txn_loading_new(3);
    struct txn **ids = NULL;
    int n = 0;
    load_image(l, "a", TXN_EMPTY, 1);
    load_image(l, "b", TXN_EMPTY, 1);
    load_image(l, "a", TXN_COMPLETE_COMMIT, 2);
    load_image(l, "b", TXN_EMPTY, -1); /* a tombstone */
    load_image(l, "c", TXN_EMPTY, -1);
    load(l, (struct bytes){key_9, 5}, BYTES_NULL);
    load(l, (struct bytes){key_short, 1}, BYTES_NULL);
    load(l, BYTES_NULL, BYTES_NULL);
    load(l, (struct bytes){key_a, 5}, (struct bytes){value_9, 3});
    load(l, (struct bytes){key_a, 5}, (struct bytes){value_cut, 3});
    load_image(l, "a", TXN_DEAD, 9); /* never written */
    assert_int_equal(txn_loading_records(l), 11);
    assert_int_equal(txn_loading_take(l, &ids, &n), 0);
    assert_int_equal(n, 1);
    assert_true(str_eqz(ids[0]->id, "a"));
    assert_int_equal(ids[0]->now.epoch, 2);
    assert_int_equal(ids[0]->now.state, TXN_COMPLETE_COMMIT);
    assert_int_equal(ids[0]->partition, 3);
    txn_unref(ids[0]);
    free(ids);
    txn_loading_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_has_one_answer_to_the_end),
        cmocka_unit_test(each_state_has_one_answer_to_more_partitions),
        cmocka_unit_test(each_state_has_one_answer_to_init),
        cmocka_unit_test(epochs),
        cmocka_unit_test(times),
        cmocka_unit_test(images_follow_each_other),
        cmocka_unit_test(sets_of_partitions),
        cmocka_unit_test(names),
        cmocka_unit_test(bytes_of_records),
        cmocka_unit_test(a_value_of_the_flexible_version),
        cmocka_unit_test(the_last_word_counts_and_damage_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
