/* Time index: entry bytes, look-ups, cuts, sanity. */
#include "log/time_index.h"

#include "log_util.h"
#include "vectors.h"

enum { BASE = 1000 };

static struct index_view view_of(const struct time_offset *e, int n, uint8_t *bytes)
{
    for (int i = 0; i < n; i++)
        time_entry_encode(bytes + i * TIME_ENTRY_BYTES, BASE, e[i]);
    return (struct index_view){.p = bytes, .n = n, .entry = TIME_ENTRY_BYTES};
}

static void entry_bytes_are_kafkas(void **state)
{
    uint8_t e[TIME_ENTRY_BYTES];
    time_entry_encode(e, BASE, (struct time_offset){T0, 1055});
    assert_vector("time_index_entry", e, sizeof(e));
}

static void look_ups(void **state)
{
    uint8_t bytes[64];
    struct time_offset e[] = {{T0 + 7, 1005}, {T0 + 9, 1009}, {T0 + 10, 1011}};
    struct index_view v = view_of(e, 3, bytes);
    assert_int_equal(time_index_last(&v, BASE).timestamp, T0 + 10);
    assert_int_equal(time_index_floor(&v, BASE, T0 + 6).timestamp, -1);
    assert_int_equal(time_index_floor(&v, BASE, T0 + 6).offset, BASE);
    assert_int_equal(time_index_floor(&v, BASE, T0 + 7).offset, 1005);
    assert_int_equal(time_index_floor(&v, BASE, T0 + 8).offset, 1005);
    assert_int_equal(time_index_floor(&v, BASE, INT64_MAX).offset, 1011);
    assert_int_equal(time_index_kept(&v, BASE, 900), 0);
    assert_int_equal(time_index_kept(&v, BASE, 1005), 0);
    assert_int_equal(time_index_kept(&v, BASE, 1006), 1);
    assert_int_equal(time_index_kept(&v, BASE, INT64_MAX), 3);
    struct index_view none = view_of(e, 0, bytes);
    assert_int_equal(time_index_last(&none, BASE).timestamp, -1);
    assert_int_equal(time_index_last(&none, BASE).offset, BASE);
}

static void insane_ends_are_seen(void **state)
{
    static const struct {
        struct time_offset e[2];
        int n;
        bool sane;
    } cases[] = {{{{0}}, 0, true},
                 {{{T0, 1005}}, 1, true},
                 {{{T0, 1005}, {T0 + 1, 1009}}, 2, true},
                 {{{T0, 1005}, {0, BASE}}, 2, false}, /* zeros that were never cut off */
                 {{{0, BASE}, {0, BASE}}, 2, false},
                 {{{0, BASE}}, 1, true}, /* a record may be of 1970 */
                 {{{T0, 999}}, 1, false},
                 {{{-5, 1005}}, 1, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[64];
        struct index_view v = view_of(cases[i].e, cases[i].n, bytes);
        assert_int_equal(time_index_sane(&v, BASE), cases[i].sane);
    }
}

UNIT_MAIN(unit_test(entry_bytes_are_kafkas), unit_test(look_ups), unit_test(insane_ends_are_seen))
