/* Ranges and uuids. */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>

#include "unit.h"

static void null_and_empty_are_not_the_same(void **state)
{
    assert_true(str_is_null(STR_NULL));
    assert_true(str_is_null(str_of(NULL)));
    assert_false(str_is_null(STR_LIT("")));
    assert_false(str_eq(STR_NULL, STR_LIT("")));
    assert_true(str_eq(STR_NULL, STR_NULL));
    assert_true(str_eq(STR_LIT(""), (struct str){NULL, 0}));
    assert_true(str_eqz(STR_LIT("abc"), "abc"));
    assert_false(str_eqz(STR_LIT("abc"), "abd"));
    assert_false(str_eqz(STR_LIT("ab"), "abc"));
}

static void order(void **state)
{
    /* each sorts before the next */
    const struct str sorted[] = {STR_NULL,       STR_LIT(""),  STR_LIT("a"), STR_LIT("ab"),
                                 STR_LIT("abc"), STR_LIT("b"), {"b\0", 2},   STR_LIT("\xff")};
    const int n = sizeof(sorted) / sizeof(sorted[0]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int c = str_cmp(sorted[i], sorted[j]);
            assert_int_equal((c > 0) - (c < 0), (i > j) - (i < j));
        }
}

static void copies(void **state)
{
    char *z = str_dup((struct str){"abcdef", 3});
    assert_string_equal(z, "abc");
    free(z);
    z = str_dup(STR_LIT(""));
    assert_string_equal(z, "");
    free(z);
    assert_null(str_dup(STR_NULL));
}

static void uuid_text(void **state)
{
    char text[23];
    struct uuid u, back;
    uuid_format(UUID_ZERO, text);
    assert_string_equal(text, "AAAAAAAAAAAAAAAAAAAAAA");
    for (int i = 0; i < 16; i++)
        u.b[i] = (uint8_t)(0xff - i);
    uuid_format(u, text);
    assert_string_equal(text, "__79_Pv6-fj39vX08_Lx8A");
    assert_int_equal(uuid_parse(str_of(text), &back), 0);
    assert_true(uuid_eq(u, back));
    assert_true(uuid_is_zero(UUID_ZERO));
    assert_false(uuid_is_zero(u));
}

static void uuid_refuses_what_is_none(void **state)
{
    struct uuid u;
    assert_int_equal(uuid_parse(STR_NULL, &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT(""), &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAAA"), &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAAAAA"), &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT("AAAAAAAAAAAAAAAAAAAAA="), &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT("AAAAA+AAAAAAAAAAAAAAAA"), &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT("AAAAA/AAAAAAAAAAAAAAAA"), &u), -EINVAL);
    assert_int_equal(uuid_parse(STR_LIT("AAAAA\xe9"
                                        "AAAAAAAAAAAAAAAA"),
                                &u),
                     -EINVAL);
}

static void random_uuids(void **state)
{
    struct uuid before = UUID_ZERO;
    for (int i = 0; i < 2000; i++) {
        char text[23];
        struct uuid back, u = uuid_random();
        assert_false(uuid_is_zero(u));
        assert_false(uuid_eq(u, before));
        uuid_format(u, text);
        assert_int_not_equal(text[0], '-');
        assert_int_equal(uuid_parse(str_of(text), &back), 0);
        assert_true(uuid_eq(u, back));
        before = u;
    }
}

UNIT_MAIN(unit_test(null_and_empty_are_not_the_same), unit_test(order), unit_test(copies),
          unit_test(uuid_text), unit_test(uuid_refuses_what_is_none), unit_test(random_uuids))
