/* Offset index: entry bytes, look-ups relative to a base, cuts, sanity. */
#include "log/offset_index.h"

#include "log_util.h"
#include "vectors.h"

enum { BASE = 1000 };

/* An index in memory. */
static struct index_view view_of(const struct offset_position *e, int n, uint8_t *bytes)
{
    for (int i = 0; i < n; i++)
        offset_entry_encode(bytes + i * OFFSET_ENTRY_BYTES, BASE, e[i]);
    return (struct index_view){.p = bytes, .n = n, .entry = OFFSET_ENTRY_BYTES};
}

static const struct offset_position entries[] = {{1005, 186}, {1009, 372}, {1055, 4112}};

static void entry_bytes_are_kafkas(void **state)
{
    uint8_t e[OFFSET_ENTRY_BYTES];
    offset_entry_encode(e, BASE, (struct offset_position){1055, 4112});
    assert_vector("offset_index_entry", e, sizeof(e));
    struct index_view v = {.p = e, .n = 1, .entry = OFFSET_ENTRY_BYTES};
    struct offset_position back = offset_index_at(&v, BASE, 0);
    assert_int_equal(back.offset, 1055);
    assert_int_equal(back.position, 4112);
}

static void floor_never_lands_behind(void **state)
{
    uint8_t bytes[64];
    struct index_view v = view_of(entries, 3, bytes);
    static const struct {
        int64_t target, offset, position;
    } cases[] = {{0, BASE, 0},      {999, BASE, 0},     {1004, BASE, 0},
                 {1005, 1005, 186}, {1008, 1005, 186},  {1009, 1009, 372},
                 {1054, 1009, 372}, {1055, 1055, 4112}, {INT64_MAX, 1055, 4112}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct offset_position p = offset_index_floor(&v, BASE, cases[i].target);
        assert_int_equal(p.offset, cases[i].offset);
        assert_int_equal(p.position, cases[i].position);
    }
}

static void by_position_from_above(void **state)
{
    uint8_t bytes[64];
    struct index_view v = view_of(entries, 3, bytes);
    struct offset_position p;
    assert_true(offset_index_from_position(&v, BASE, 0, &p));
    assert_int_equal(p.offset, 1005);
    assert_true(offset_index_from_position(&v, BASE, 186, &p));
    assert_int_equal(p.offset, 1005);
    assert_true(offset_index_from_position(&v, BASE, 187, &p));
    assert_int_equal(p.offset, 1009);
    assert_true(offset_index_from_position(&v, BASE, 4112, &p));
    assert_false(offset_index_from_position(&v, BASE, 4113, &p));
}

static void cuts(void **state)
{
    uint8_t bytes[64];
    struct index_view v = view_of(entries, 3, bytes);
    assert_int_equal(offset_index_kept(&v, BASE, 900), 0);
    assert_int_equal(offset_index_kept(&v, BASE, BASE), 0);
    assert_int_equal(offset_index_kept(&v, BASE, 1005), 0); /* that very entry goes */
    assert_int_equal(offset_index_kept(&v, BASE, 1006), 1);
    assert_int_equal(offset_index_kept(&v, BASE, 1055), 2);
    assert_int_equal(offset_index_kept(&v, BASE, INT64_MAX), 3);
}

static void relative_offsets_reach_their_limit(void **state)
{
    uint8_t bytes[64];
    struct offset_position far[] = {{BASE + INT64_C(2147483647), 2147483647}};
    struct index_view v = view_of(far, 1, bytes);
    struct offset_position p = offset_index_at(&v, BASE, 0);
    assert_int_equal(p.offset, BASE + INT64_C(2147483647));
    assert_int_equal(p.position, 2147483647);
    assert_int_equal(offset_index_floor(&v, BASE, BASE + INT64_C(2147483646)).position, 0);
}

static void insane_ends_are_seen(void **state)
{
    static const struct {
        struct offset_position e[2];
        int n;
        bool sane;
    } cases[] = {
        {{{0}}, 0, true},
        {{{1005, 186}}, 1, true},
        {{{1000, 0}}, 1, false},    /* zeros that were never cut off */
        {{{1005, 5000}}, 1, false}, /* behind the data */
        {{{999, 186}}, 1, false},
        {{{1005, 186}, {1009, 372}}, 2, true},
        {{{1005, 186}, {1005, 372}}, 2, false},
        {{{1005, 186}, {1009, 186}}, 2, false},
        {{{1005, 186}, {1000, 0}}, 2, false},
        {{{1005, 186}, {1009, -4}}, 2, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[64];
        struct index_view v = view_of(cases[i].e, cases[i].n, bytes);
        assert_int_equal(offset_index_sane(&v, BASE, 5000), cases[i].sane);
    }
}

UNIT_MAIN(unit_test(entry_bytes_are_kafkas), unit_test(floor_never_lands_behind),
          unit_test(by_position_from_above), unit_test(cuts),
          unit_test(relative_offsets_reach_their_limit), unit_test(insane_ends_are_seen))
