/* The map of keys to offsets: against a plain model, full, emptied, with few slots. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/offset_map.h"

static struct bytes key_of(char out[32], int i)
{
    return (struct bytes){(const uint8_t *)out, snprintf(out, 32, "key-%d", i)};
}

static void put(struct offset_map *m, struct bytes key, int64_t offset)
{
    offset_map_put(m, offset_map_hash(m, key), offset);
}

static int64_t get(struct offset_map *m, struct bytes key)
{
    return offset_map_get(m, offset_map_hash(m, key));
}

static void finds_what_was_put_last(void **state)
{
    enum { KEYS = 900 };
    struct offset_map *m;
    int64_t model[KEYS];
    char k[32];
    uint32_t x = 1;
    assert_int_equal(offset_map_new(24 * 1000, 0.95, &m), 0);
    assert_int_equal(offset_map_capacity(m), 950);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < KEYS; i++)
            model[i] = -1;
        for (int i = 0; i < 5000; i++) {
            x = x * 1664525 + 1013904223;
            int at = (int)(x >> 8) % KEYS;
            put(m, key_of(k, at), i);
            model[at] = i;
        }
        for (int i = 0; i < KEYS; i++)
            assert_int_equal(get(m, key_of(k, i)), model[i]);
        for (int i = KEYS; i < 2 * KEYS; i++)
            assert_int_equal(get(m, key_of(k, i)), -1);
        offset_map_reset(m, round == 0 ? -1 : 5000);
        assert_int_equal(offset_map_count(m), 0);
        assert_int_equal(get(m, key_of(k, 1)), -1);
    }
    offset_map_free(m);
}

static void is_full_at_its_load_factor(void **state)
{
    struct offset_map *m;
    char k[32];
    assert_int_equal(offset_map_new(24 * 100, 0.5, &m), 0);
    for (int i = 0; i < 50; i++) {
        assert_false(offset_map_full(m));
        put(m, key_of(k, i), i);
    }
    assert_true(offset_map_full(m));
    assert_int_equal(get(m, key_of(k, 49)), 49);
    assert_int_equal(get(m, key_of(k, 50)), -1);
    offset_map_reset(m, -1);
    assert_false(offset_map_full(m));
    offset_map_free(m);
}

/* However few are expected, as many fit. */
static void holds_as_many_as_expected(void **state)
{
    struct offset_map *m;
    char k[32];
    assert_int_equal(offset_map_new(1 << 20, 0.9, &m), 0);
    for (int n = 1; n < 2000; n += 37) {
        offset_map_reset(m, n);
        for (int i = 0; i < n; i++) {
            assert_false(offset_map_full(m));
            put(m, key_of(k, i), i);
        }
        for (int i = 0; i < n; i++)
            assert_int_equal(get(m, key_of(k, i)), i);
    }
    offset_map_free(m);
}

static void load_factor_one_leaves_a_free_slot(void **state)
{
    struct offset_map *m;
    char k[32];
    assert_int_equal(offset_map_new(24 * 3, 1.0, &m), 0);
    put(m, key_of(k, 1), 1);
    put(m, key_of(k, 2), 2);
    assert_true(offset_map_full(m));
    assert_int_equal(get(m, key_of(k, 3)), -1); /* ends */
    offset_map_free(m);
}

static void refuses_too_little_memory(void **state)
{
    struct offset_map *m;
    assert_int_equal(offset_map_new(0, 0.9, &m), -EINVAL);
    assert_int_equal(offset_map_new(24 * 2, 0.9, &m), -EINVAL);
    assert_int_equal(offset_map_new(1 << 20, 0, &m), -EINVAL);
    assert_null(m);
    assert_int_equal(offset_map_new(24 * 3, 0.9, &m), 0);
    offset_map_free(m);
}

static void keys_of_any_length_differ(void **state)
{
    struct offset_map *m;
    uint8_t zeros[300] = {0};
    assert_int_equal(offset_map_new(1 << 20, 0.9, &m), 0);
    for (int n = 0; n < 300; n++)
        put(m, (struct bytes){zeros, n}, n);
    for (int n = 0; n < 300; n++)
        assert_int_equal(get(m, (struct bytes){zeros, n}), n);
    offset_map_free(m);
}

UNIT_MAIN(unit_test(finds_what_was_put_last), unit_test(is_full_at_its_load_factor),
          unit_test(holds_as_many_as_expected), unit_test(load_factor_one_leaves_a_free_slot),
          unit_test(refuses_too_little_memory), unit_test(keys_of_any_length_differ))
