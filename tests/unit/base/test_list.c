/* The intrusive ring. */
#include "base/list.h"

#include "unit.h"

struct item {
    int v;
    struct list link;
};

static void expect(struct list *l, const char *digits)
{
    list_each (it, l) {
        assert_int_equal(list_entry(it, struct item, link)->v, *digits - '0');
        assert_ptr_equal(it->next->prev, it);
        digits++;
    }
    assert_int_equal(*digits, 0);
    assert_ptr_equal(l->next->prev, l);
}

static void pushes_pops_removes_and_splices(void **state)
{
    struct list a = LIST_INIT(a), b;
    struct item items[6];
    list_init(&b);
    assert_null(list_pop(&a));
    for (int i = 0; i < 6; i++) {
        items[i].v = i;
        list_init(&items[i].link);
        assert_false(list_linked(&items[i].link));
    }
    list_push_back(&a, &items[1].link);
    list_push_back(&a, &items[2].link);
    list_push_front(&a, &items[0].link);
    expect(&a, "012");
    list_splice(&a, &b); /* nothing */
    list_push_back(&b, &items[3].link);
    list_push_back(&b, &items[4].link);
    list_splice(&a, &b);
    expect(&a, "01234");
    assert_true(list_empty(&b));
    list_remove(&items[2].link);
    list_remove(&items[2].link); /* twice is harmless */
    assert_false(list_linked(&items[2].link));
    expect(&a, "0134");
    assert_ptr_equal(list_pop(&a), &items[0].link);
    list_each_safe (it, &a)
        if (list_entry(it, struct item, link)->v != 3)
            list_remove(it);
    expect(&a, "3");
    list_splice(&b, &a);
    expect(&b, "3");
    assert_true(list_empty(&a));
}

UNIT_MAIN(unit_test(pushes_pops_removes_and_splices))
