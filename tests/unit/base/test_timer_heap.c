/* The heap gives timers back in order of deadline and starting, whatever is stopped and moved. */
#include "base/timer_heap.h"

#include <stdlib.h>

#include "unit.h"

static void check_links(const struct timer *t)
{
    for (const struct timer *c = t->child, *back = t; c; back = c, c = c->next) {
        assert_ptr_equal(c->back, back);
        assert_true(c->armed);
        assert_true(c->deadline_ms > t->deadline_ms ||
                    (c->deadline_ms == t->deadline_ms && c->order > t->order));
        check_links(c);
    }
}

static struct timer *pop(struct timer_heap *h)
{
    struct timer *t = timer_heap_first(h);
    if (t)
        timer_heap_remove(h, t);
    return t;
}

static void equal_deadlines_keep_their_order(void **state)
{
    struct timer_heap h = {0};
    struct timer t[50];
    for (int i = 0; i < 50; i++) {
        timer_init(&t[i], NULL);
        timer_heap_put(&h, &t[i], 7);
    }
    timer_heap_put(&h, &t[3], 7); /* starting again puts it last */
    for (int i = 0; i < 50; i++)
        if (i != 3)
            assert_ptr_equal(pop(&h), &t[i]);
    assert_ptr_equal(pop(&h), &t[3]);
    assert_null(pop(&h));
}

static void random_starts_stops_and_moves(void **state)
{
    enum { N = 300 };
    struct timer_heap h = {0};
    struct timer t[N];
    for (int i = 0; i < N; i++)
        timer_init(&t[i], NULL);
    srandom(5);
    for (int step = 0; step < 20000; step++) {
        struct timer *one = &t[random() % N];
        if (random() % 3) {
            timer_heap_put(&h, one, random() % 50);
        } else {
            timer_heap_remove(&h, one);
            assert_false(timer_armed(one));
        }
        if (step % 500)
            continue;
        const struct timer *soonest = NULL;
        for (int i = 0; i < N; i++)
            if (t[i].armed &&
                (!soonest || t[i].deadline_ms < soonest->deadline_ms ||
                 (t[i].deadline_ms == soonest->deadline_ms && t[i].order < soonest->order)))
                soonest = &t[i];
        assert_ptr_equal(timer_heap_first(&h), soonest);
        if (soonest)
            check_links(soonest);
    }
    int armed = 0, popped = 0;
    for (int i = 0; i < N; i++)
        armed += t[i].armed;
    struct timer *before = NULL, *now;
    for (; (now = pop(&h)); before = now, popped++)
        if (before)
            assert_true(before->deadline_ms < now->deadline_ms ||
                        (before->deadline_ms == now->deadline_ms && before->order < now->order));
    assert_int_equal(popped, armed);
}

static void a_delay_is_never_cut_short(void **state)
{
    struct sim_clock clock;
    sim_clock_init(&clock, 0);
    clock.mono_ns = 10900000; /* 10.9 ms: 5 ms later is 15.9 */
    assert_int_equal(timer_deadline(&clock.clock, 5), 16);
    assert_int_equal(timer_deadline(&clock.clock, 0), 10);
    assert_int_equal(timer_deadline(&clock.clock, -5), 10);
    clock.mono_ns = 10000000;
    assert_int_equal(timer_deadline(&clock.clock, 5), 15);
    assert_int_equal(timer_deadline(&clock.clock, INT64_MAX), INT64_MAX);
}

UNIT_MAIN(unit_test(equal_deadlines_keep_their_order), unit_test(random_starts_stops_and_moves),
          unit_test(a_delay_is_never_cut_short))
