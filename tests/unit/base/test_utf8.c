/* Text of any bytes: what is UTF-8 stays, the rest becomes U+FFFD where Java puts it. */
#include "base/utf8.h"

#include <errno.h>

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
        bool whole = strcmp(t[i].in, t[i].out) == 0;
        assert_int_equal(utf8_valid(t[i].in, strlen(t[i].in)), whole);
        char behind[64]; /* also behind a lot of ASCII, wherever it falls */
        for (int before = 0; before < 20; before++) {
            memset(behind, 'a', sizeof behind);
            memcpy(behind + before, t[i].in, strlen(t[i].in));
            assert_int_equal(utf8_valid(behind, before + strlen(t[i].in)), whole);
        }
    }
}

static void text_is_mended_in_the_arena(void **state)
{
    struct arena a;
    arena_init(&a, 100);
    struct str good = STR_LIT("caf\xc3\xa9"), bad = STR_LIT("caf\xe9!"), null = STR_NULL;
    const char *p = good.p;
    assert_int_equal(utf8_mend(&good, &a), 0);
    assert_ptr_equal(good.p, p);
    assert_int_equal(utf8_mend(&bad, &a), 0);
    assert_true(str_eqz(bad, "caf" R "!"));
    assert_int_equal(utf8_mend(&null, &a), 0);
    assert_true(str_is_null(null));
    char many[80];
    memset(many, 0xff, sizeof many);
    struct str large = {many, sizeof many};
    assert_int_equal(utf8_mend(&large, &a), -ENOMEM); /* over the cap */
    assert_ptr_equal(large.p, many);
    arena_free(&a);
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
          unit_test(nothing_behind_the_end_is_read), unit_test(text_is_mended_in_the_arena))
