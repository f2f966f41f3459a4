/* Lists of segments: look-up, parts of others, references. */
#include "log/segment_list.h"

#include "log_util.h"

static struct segment *segment(struct log_test *t, struct log_folder *folder, int64_t base)
{
    struct segment *s = segment_existing(folder, base, 0, false, false, &t->config);
    assert_non_null(s);
    return s;
}

static void floor_agrees_with_a_plain_search(void **state)
{
    struct log_test t;
    struct segment *v[20];
    setup(&t);
    struct log_folder folder = {.dir = t.dir};
    for (int n = 1; n <= 20; n++) {
        for (int i = 0; i < n; i++)
            v[i] = segment(&t, &folder, 100 + 10 * i);
        struct segment_list *l = segment_list_new(v, n);
        for (int64_t offset = 90; offset < 110 + 10 * n; offset++) {
            int want = -1;
            while (want + 1 < n && v[want + 1]->base <= offset)
                want++;
            assert_int_equal(segment_list_floor(l, offset), want);
        }
        assert_ptr_equal(segment_list_active(l), v[n - 1]);
        segment_list_unpin(l);
        for (int i = 0; i < n; i++) {
            assert_int_equal(atomic_load(&v[i]->refs), 1);
            segment_unref(v[i]);
        }
    }
    teardown(&t);
}

static void a_pinned_list_outlives_its_successors(void **state)
{
    struct log_test t;
    setup(&t);
    struct log_folder folder = {.dir = t.dir};
    struct segment *a = segment(&t, &folder, 0), *b = segment(&t, &folder, 10),
                   *c = segment(&t, &folder, 20);
    struct segment *ab[] = {a, b};
    struct segment_lists ls = {.spin = SPIN_INIT, .now = segment_list_new(ab, 2)};
    struct segment_list *pinned = segment_lists_pin(&ls);
    segment_lists_publish(&ls, segment_list_head(ls.now, 2, c)); /* a roll */
    assert_int_equal(ls.now->n, 3);
    segment_lists_publish(&ls, segment_list_tail(ls.now, 1)); /* retention */
    assert_int_equal(ls.now->n, 2);
    assert_ptr_equal(ls.now->v[0], b);
    segment_lists_publish(&ls, segment_list_head(ls.now, 1, NULL)); /* a cut */
    assert_int_equal(ls.now->n, 1);
    assert_int_equal(pinned->n, 2);
    assert_int_equal(atomic_load(&a->refs), 2); /* ours, and the pinned list's */
    assert_int_equal(atomic_load(&c->refs), 1);
    segment_list_unpin(pinned);
    assert_int_equal(atomic_load(&a->refs), 1);
    segment_list_unpin(ls.now);
    segment_list_unpin(NULL);
    segment_unref(a);
    segment_unref(b);
    segment_unref(c);
    teardown(&t);
}

UNIT_MAIN(unit_test(floor_agrees_with_a_plain_search),
          unit_test(a_pinned_list_outlives_its_successors))
