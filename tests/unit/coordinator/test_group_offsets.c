/* test_group_offsets.c - offsets of a group: committed, pending, and in transactions. */
#include "coordinator/group_offsets.h"
#include "unit.h"

static const struct str topic = STR_LIT("t");

static struct offset_value value(int64_t offset, const char *metadata)
{
    return (struct offset_value){
        .offset = offset, .leader_epoch = -1, .metadata = str_of(metadata), .expire_ms = -1};
}

static void put(struct group_offsets *o, int32_t partition, int64_t offset, int64_t position)
{
    struct offset_value v = value(offset, "m");
    assert_int_equal(group_offsets_set(o, topic, partition, &v, position), 0);
}

static int64_t get(const struct group_offsets *o, int32_t partition)
{
    const struct offset_entry *e = group_offsets_find(o, topic, partition);
    return e && e->position >= 0 ? e->value.offset : -1;
}

static void check(const struct group_offsets *o)
{
    const char *wrong = group_offsets_check(o);
    if (wrong)
        fail_msg("%s", wrong);
}

static void the_later_position_wins(void **state)
{
    struct group_offsets o;
    group_offsets_init(&o);
    put(&o, 0, 10, 5);
    put(&o, 0, 9, 4); /* acknowledged late */
    assert_int_equal(get(&o, 0), 10);
    put(&o, 0, 11, 5); /* the same batch: the later record */
    assert_int_equal(get(&o, 0), 11);
    put(&o, 0, 7, 6);
    assert_int_equal(get(&o, 0), 7);
    check(&o);
    assert_true(group_offsets_remove(&o, topic, 0));
    assert_false(group_offsets_remove(&o, topic, 0));
    assert_true(group_offsets_empty(&o));
    group_offsets_free(&o);
}

static void many_partitions_in_any_order(void **state)
{
    struct group_offsets o;
    enum { N = 1000 };
    group_offsets_init(&o);
    for (int i = 0; i < N; i++)
        put(&o, (i * 377) % N, i, i);
    check(&o);
    assert_int_equal(o.committed_n, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(get(&o, (i * 377) % N), i);
    for (int i = 0; i < N; i += 2)
        assert_true(group_offsets_remove(&o, topic, i));
    check(&o);
    assert_int_equal(o.committed_n, N / 2);
    assert_int_equal(get(&o, 2), -1);
    group_offsets_free(&o);
}

static void only_the_newest_commit_is_pending(void **state)
{
    struct group_offsets o;
    int a, b;
    group_offsets_init(&o);
    assert_int_equal(group_offsets_pend(&o, topic, 1, &a), 0);
    assert_int_equal(group_offsets_pend(&o, topic, 1, &b), 0);
    check(&o);
    group_offsets_unpend(&o, topic, 1, &a);
    assert_int_equal(o.pending_n, 1);
    group_offsets_unpend(&o, topic, 1, &b);
    assert_int_equal(o.pending_n, 0);
    assert_true(group_offsets_empty(&o));
    group_offsets_free(&o);
}

static void transactions_show_when_they_commit(void **state)
{
    struct group_offsets o;
    struct offset_value v = value(50, "in txn");
    int commit;
    group_offsets_init(&o);
    put(&o, 0, 40, 100);
    assert_int_equal(group_offsets_txn_put(&o, 7, topic, 0, &v, -1, &commit), 0);
    assert_int_equal(group_offsets_txn_put(&o, 7, topic, 1, &v, -1, &commit), 0);
    assert_int_equal(get(&o, 0), 40);
    assert_int_equal(group_offsets_find(&o, topic, 1)->txns, 1);
    check(&o);
    group_offsets_txn_written(&o, 7, topic, 0, &commit, 101);
    group_offsets_txn_written(&o, 7, topic, 1, &commit, 101);
    check(&o);
    assert_int_equal(group_offsets_txn_end(&o, 7, true), 0);
    assert_int_equal(get(&o, 0), 50);
    assert_int_equal(get(&o, 1), 50);
    assert_false(group_offsets_has_txns(&o));
    check(&o);
    group_offsets_free(&o);
}

static void an_aborted_or_failed_transaction_leaves_nothing(void **state)
{
    struct group_offsets o;
    struct offset_value v = value(50, NULL);
    int commit;
    group_offsets_init(&o);
    assert_int_equal(group_offsets_txn_put(&o, 7, topic, 0, &v, 3, NULL), 0);
    assert_int_equal(group_offsets_txn_put(&o, 8, topic, 0, &v, -1, &commit), 0);
    assert_int_equal(group_offsets_find(&o, topic, 0)->txns, 2);
    assert_int_equal(group_offsets_txn_end(&o, 7, false), 0);
    check(&o);
    group_offsets_txn_written(&o, 8, topic, 0, &commit, -1);
    assert_true(group_offsets_empty(&o));
    assert_false(group_offsets_has_txns(&o));
    assert_int_equal(group_offsets_txn_end(&o, 8, true), 0);
    group_offsets_free(&o);
}

static void a_transaction_does_not_undo_a_later_commit(void **state)
{
    struct group_offsets o;
    struct offset_value v = value(50, NULL);
    group_offsets_init(&o);
    assert_int_equal(group_offsets_txn_put(&o, 7, topic, 0, &v, 100, NULL), 0);
    put(&o, 0, 60, 101);
    group_offsets_txn_end(&o, 7, true);
    assert_int_equal(get(&o, 0), 60);
    check(&o);
    group_offsets_free(&o);
}

static void a_transaction_with_many_partitions_ends_quickly(void **state)
{
    struct group_offsets o;
    enum { N = 20000 };
    group_offsets_init(&o);
    for (int i = 0; i < N; i++) {
        struct offset_value v = value(i, NULL);
        assert_int_equal(group_offsets_txn_put(&o, 7, topic, i, &v, i, NULL), 0);
    }
    check(&o);
    assert_int_equal(group_offsets_txn_end(&o, 7, true), 0);
    assert_int_equal(o.committed_n, N);
    check(&o);
    group_offsets_free(&o);
}

static bool take_even(void *arg, const struct offset_topic *t, const struct offset_entry *e)
{
    (*(int *)arg)++;
    return e->partition % 2 == 0;
}

static void a_walk_may_remove_what_it_sees(void **state)
{
    struct group_offsets o;
    int seen = 0, pending;
    group_offsets_init(&o);
    for (int i = 0; i < 10; i++)
        put(&o, i, i, i);
    struct offset_value v = value(1, NULL);
    assert_int_equal(group_offsets_set(&o, STR_LIT("u"), 0, &v, 3), 0);
    assert_int_equal(group_offsets_pend(&o, topic, 4, &pending), 0);
    group_offsets_each(&o, take_even, &seen);
    assert_int_equal(seen, 11);
    check(&o);
    assert_int_equal(o.committed_n, 5);
    assert_false(group_offsets_has_topic(&o, STR_LIT("u")));
    assert_non_null(group_offsets_find(&o, topic, 4)->pending);
    struct group_offsets moved;
    group_offsets_take(&moved, &o);
    assert_true(group_offsets_empty(&o));
    assert_int_equal(moved.committed_n, 5);
    group_offsets_free(&moved);
    group_offsets_free(&o);
}

UNIT_MAIN(unit_test(the_later_position_wins), unit_test(many_partitions_in_any_order),
          unit_test(only_the_newest_commit_is_pending),
          unit_test(transactions_show_when_they_commit),
          unit_test(an_aborted_or_failed_transaction_leaves_nothing),
          unit_test(a_transaction_does_not_undo_a_later_commit),
          unit_test(a_transaction_with_many_partitions_ends_quickly),
          unit_test(a_walk_may_remove_what_it_sees))
