/* test_txn_guards.c - who may open a transaction: tokens by themselves. */
#include "log/txn_guards.h"

#include "unit.h"

static enum kerr check(const struct txn_guards *g, int64_t id, int32_t sequence, uint64_t token)
{
    const char *why = NULL;
    enum kerr e = txn_guards_check(g, id, sequence, token, &why);
    assert_int_equal(e != KERR_NONE, why != NULL);
    return e;
}

static void a_token_is_good_until_it_is_ended(void **state)
{
    (void)state;
    struct txn_guards g;
    txn_guards_init(&g);
    assert_int_equal(check(&g, 7, 0, TXN_GUARD_NONE), KERR_INVALID_TXN_STATE);
    uint64_t token = txn_guards_begin(&g, 7, 0, 0, 1000);
    assert_true(token >= TXN_GUARD_FIRST);
    assert_int_equal(txn_guards_begin(&g, 7, 0, 0, 1000), token); /* the same entry */
    uint64_t other = txn_guards_begin(&g, 8, 0, 0, 1000);
    assert_int_not_equal(other, token);
    assert_int_equal(check(&g, 7, 0, token), KERR_NONE);
    assert_int_equal(check(&g, 7, 0, other), KERR_INVALID_TXN_STATE);
    assert_int_equal(check(&g, 9, 0, token), KERR_INVALID_TXN_STATE);
    txn_guards_end(&g, 7);
    txn_guards_end(&g, 7);
    assert_int_equal(check(&g, 7, 0, token), KERR_INVALID_TXN_STATE);
    assert_int_equal(check(&g, 8, 0, other), KERR_NONE);
    uint64_t again = txn_guards_begin(&g, 7, 0, 0, 1000);
    assert_int_not_equal(again, token); /* what was said before counts no more */
    assert_int_equal(check(&g, 7, 0, token), KERR_INVALID_TXN_STATE);
    txn_guards_free(&g);
    assert_true(txn_guards_begin(&g, 7, 0, 0, 1000) > again);
    txn_guards_free(&g);
}

static void the_least_sequence_comes_first(void **state)
{
    (void)state;
    struct txn_guards g;
    txn_guards_init(&g);
    uint64_t token = txn_guards_begin(&g, 7, 3, 5, 1000);
    assert_int_equal(check(&g, 7, 5, token), KERR_NONE);
    assert_int_equal(check(&g, 7, 6, token), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(check(&g, 7, -1, token), KERR_NONE);         /* a coordinator's */
    assert_int_equal(txn_guards_begin(&g, 7, 3, 0, 1000), token); /* lower: that one */
    assert_int_equal(check(&g, 7, 5, token), KERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    txn_guards_begin(&g, 7, 3, 9, 1000); /* higher: stays */
    assert_int_equal(check(&g, 7, 0, token), KERR_NONE);
    assert_int_equal(txn_guards_begin(&g, 7, 4, 2, 1000), token); /* another epoch begins anew */
    assert_int_equal(check(&g, 7, 2, token), KERR_NONE);
    txn_guards_begin(&g, 7, 3, 0, 1000); /* an old epoch changes nothing */
    assert_int_equal(check(&g, 7, 2, token), KERR_NONE);
    txn_guards_free(&g);
}

static void old_entries_go(void **state)
{
    (void)state;
    struct txn_guards g;
    txn_guards_init(&g);
    uint64_t old = txn_guards_begin(&g, 7, 0, 0, 1000), young = txn_guards_begin(&g, 8, 0, 0, 1500);
    txn_guards_expire(&g, 1999, 1000);
    assert_int_equal(check(&g, 7, 0, old), KERR_NONE);
    txn_guards_expire(&g, 2000, 1000);
    assert_int_equal(check(&g, 7, 0, old), KERR_INVALID_TXN_STATE);
    assert_int_equal(check(&g, 8, 0, young), KERR_NONE);
    txn_guards_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_good_until_it_is_ended),
        cmocka_unit_test(the_least_sequence_comes_first),
        cmocka_unit_test(old_entries_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
