/* Arenas: alignment, the cap, reuse. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void pieces_are_aligned_and_apart(void **state)
{
    enum { N = 500 };
    struct arena a;
    uint8_t *p[N];
    size_t size[N];
    arena_init(&a, 0);
    srandom(2);
    for (int i = 0; i < N; i++) {
        size[i] = (size_t)random() % (i % 50 ? 300 : 100000);
        p[i] = arena_alloc(&a, size[i]);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
        memset(p[i], i & 0xff, size[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(p[i][k], i & 0xff);
    assert_false(a.exhausted);
    arena_free(&a);
}

static void refuses_what_passes_the_cap(void **state)
{
    struct arena a;
    arena_init(&a, 10000);
    assert_null(arena_alloc(&a, 10001));
    assert_true(a.exhausted);
    arena_free(&a);
    arena_init(&a, 10000);
    size_t got = 0;
    while (arena_alloc(&a, 100))
        got += 100;
    assert_true(got > 8000 && got <= 10000);
    assert_true(a.used <= 10000);
    assert_true(a.exhausted);
    arena_reset(&a);
    assert_false(a.exhausted);
    assert_non_null(arena_alloc(&a, 9000));
    arena_free(&a);
}

static void a_reset_wipes_a_secret(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    a.secret = true;
    const char *was = arena_str(&a, STR_LIT("secret")).p;
    arena_reset(&a);
    assert_false(a.secret);
    const char *now = arena_alloc(&a, 7);
    assert_ptr_equal(now, was);
    assert_memory_equal(now, "\0\0\0\0\0\0", 7);
    arena_free(&a);
}

static void sizes_that_overflow_are_refused(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    assert_null(arena_calloc(&a, SIZE_MAX / 2, 3));
    assert_true(a.exhausted);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 20));
    assert_null(arena_calloc(&a, SIZE_MAX, 1));
    arena_free(&a);
    arena_init(&a, 1 << 20);
    assert_null(arena_array(&a, uint64_t, 1u << 30));
    assert_int_equal(a.used, 0);
    arena_free(&a);
}

static void zeroed_also_after_reuse(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    for (int round = 0; round < 3; round++) {
        uint8_t *p = arena_calloc(&a, 10, 30);
        for (int i = 0; i < 300; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, 300);
        assert_non_null(arena_calloc(&a, 0, 8));
        arena_reset(&a);
    }
    arena_free(&a);
    arena_free(&a);
}

static void reset_keeps_one_chunk_but_not_a_huge_one(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    void *first = arena_alloc(&a, 16);
    arena_reset(&a);
    assert_ptr_equal(arena_alloc(&a, 16), first);
    arena_free(&a);
    assert_non_null(arena_alloc(&a, 1 << 20)); /* comes first, so it is the newest chunk */
    arena_reset(&a);
    assert_null(a.chunks);
    arena_free(&a);
}

static void texts(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    struct str s = arena_str(&a, (struct str){"abcdef", 3});
    assert_int_equal(s.len, 3);
    assert_string_equal(s.p, "abc");
    assert_true(str_is_null(arena_str(&a, STR_NULL)));
    assert_string_equal(arena_str(&a, STR_LIT("")).p, "");
    assert_string_equal(arena_printf(&a, "%s-%d", "topic", 7), "topic-7");
    arena_free(&a);
    arena_init(&a, 16);
    assert_null(arena_printf(&a, "%0100d", 1));
    assert_true(str_is_null(arena_str(&a, STR_LIT("0123456789abcdef"))));
    arena_free(&a);
}

UNIT_MAIN(unit_test(a_reset_wipes_a_secret), unit_test(pieces_are_aligned_and_apart),
          unit_test(refuses_what_passes_the_cap), unit_test(sizes_that_overflow_are_refused),
          unit_test(zeroed_also_after_reuse), unit_test(reset_keeps_one_chunk_but_not_a_huge_one),
          unit_test(texts))
