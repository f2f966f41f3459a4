/* Text of any bytes: what is UTF-8 stays, the rest becomes U+FFFD where Java puts it. */
#include "base/utf8.h"

#include "unit.h"

#define R UTF8_REPLACEMENT

static void malformed_pieces_become_one_mark_each(void **state)
{
    static const struct {
        const char *in, *out;
    } t[] = {{"", ""},
             {"plain", "plain"},
             {"\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80"},
             {"a\xff"
              "b",
              "a" R "b"},
             {"\x80\x80", R R},             /* strays */
             {"\xc0\xaf", R R},             /* overlong */
             {"\xe0\x80\x80", R R R},       /* overlong */
             {"\xed\xa0\x80", R R R},       /* a surrogate */
             {"\xf4\x90\x80\x80", R R R R}, /* above U+10FFFF */
             {"\xe2\x98", R},               /* cut short: one */
             {"\xe2\x98z", R "z"},
             {"\xf0\x9f\x98", R},
             {"\xf0\x9f"
              "a",
              R "a"},
             {"\xc3", R},
             {"\xf5\x80", R R}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct buf out = BUF_INIT;
        utf8_put(&out, t[i].in, strlen(t[i].in));
        buf_put(&out, "", 1);
        assert_string_equal((const char *)out.p, t[i].out);
        buf_free(&out);
    }
}

static void nothing_behind_the_end_is_read(void **state)
{
    bool ok;
    uint8_t cut[] = {0xf0, 0x9f, 0x98, 0x80};
    for (size_t n = 1; n < sizeof cut; n++) {
        assert_int_equal(utf8_next(cut, n, &ok), n);
        assert_false(ok);
    }
    assert_int_equal(utf8_next(cut, sizeof cut, &ok), 4);
    assert_true(ok);
}

UNIT_MAIN(unit_test(malformed_pieces_become_one_mark_each),
          unit_test(nothing_behind_the_end_is_read))
