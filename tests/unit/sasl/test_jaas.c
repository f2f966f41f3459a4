/* Login module lines: what Java's tokenizer takes, and what is refused with a reason. */
#include "sasl/jaas.h"

#include <errno.h>

#include "unit.h"

static struct arena mem;
static const char *problem;

static int setup(void **state)
{
    arena_init(&mem, 0);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&mem);
    return 0;
}

static struct jaas_module one(const char *text)
{
    struct jaas_config c;
    assert_int_equal(jaas_parse(str_of(text), &mem, &c, &problem), 0);
    assert_int_equal(c.modules_n, 1);
    return c.modules[0];
}

static void check(const char *text, const char *key, const char *value)
{
    struct jaas_module m = one(text);
    struct str got = jaas_get(&m, key);
    if (!value) {
        assert_true(str_is_null(got));
        return;
    }
    assert_false(str_is_null(got));
    assert_string_equal(got.p, value);
    assert_int_equal(got.len, strlen(value));
}

static void modules_are_read(void **state)
{
    static const char text[] =
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"admin\" "
        "password=\"s3cret\" user_admin=\"s3cret\" user_alice='pa ss';";
    struct jaas_module m = one(text);
    assert_string_equal(m.name.p, jaas_module_name(SASL_PLAIN));
    assert_int_equal(m.options_n, 4);
    check(text, "user_alice", "pa ss");
    check(text, "user_bob", NULL);
    check("M Required;", "x", NULL);
    check("M sufficient a=b a=c;", "a", "c");
    check("\"M x\" OPTIONAL \"a b\" = \"c d\" ;", "a b", "c d");
}

static void quotes_comments_and_escapes(void **state)
{
    check("M required p=\"a\\\"b\\\\c\\td\\101\\7\\x\";", "p", "a\"b\\c\tdA\ax");
    check("M required p=\"\\400\";", "p", " 0");
    check("M required p='it\"s';", "p", "it\"s");
    check("M /* com;ment */ required // all of it = \n p=v;", "p", "v");
    check("M required p=v /etc/x y=z;\n q=w;", "y", NULL);
    check("M required p=\"/etc//x /* y */\";", "p", "/etc//x /* y */");
    check("M required p=a-b_c$d.1;", "p", "a-b_c$d.1");
    check("M required p=\"\";", "p", "");
    check("M required p=\xc3\xa4;", "p", "\xc3\xa4");
}

static void several_modules(void **state)
{
    struct jaas_config c;
    struct jaas_module m;
    assert_int_equal(jaas_parse(STR_LIT("A required; B optional x=y;"), &mem, &c, &problem), 0);
    assert_int_equal(c.modules_n, 2);
    assert_string_equal(jaas_get(&c.modules[1], "x").p, "y");
    assert_int_equal(
        jaas_parse_for(STR_LIT("A required; B optional;"), SASL_PLAIN, &mem, &m, &problem),
        -EINVAL);
    assert_non_null(strstr(problem, "2 login modules"));
}

static void what_is_wrong_is_said(void **state)
{
    static const char *const bad[][2] = {
        {"", "no login module"},
        {" // nothing\n", "no login module"},
        {"M", "one of required"},
        {"M always x=y;", "one of required"},
        {"M required", "semicolon"},
        {"M required x=y", "semicolon"},
        {"M required x y=z;", "option 1 has no value"},
        {"M required x=;", "option 1 has no value"},
        {"M required x", "option 1 has no value"},
        {"M required u=\"a\" p=half secret;", "option 3 has no value (one with blanks"},
        {"M required p=half secret=;", "option 2 has no value"},
        {"M required p=half secret=1;", "option 2 has no value"},
        {"M required p=half secret=\"1;", "quote of option 2 does not end"},
        {"M required x=1secret;", "wants quotes"},
        {"M required x=\"secret;", "quote of option 1 does not end"},
        {"M required x=\"secret\n\";", "quote of option 1 does not end"},
        {"M required \"x;", "quote does not end"},
        {"M required =;", "something else"},
        {"1M required;", "class is due"},
        {"; M required;", "class is due"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct jaas_config c;
        assert_int_equal(jaas_parse(str_of(bad[i][0]), &mem, &c, &problem), -EINVAL);
        if (!strstr(problem, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], problem);
        assert_null(strstr(problem, "secret"));
    }
}

static void the_module_fits_the_mechanism(void **state)
{
    struct jaas_module m;
    for (int i = 0; i < SASL_MECHANISMS; i++) {
        enum sasl_mechanism mechanism = (enum sasl_mechanism)i, again;
        const char *text = arena_printf(&mem, "%s required a=b;", jaas_module_name(mechanism));
        assert_int_equal(jaas_parse_for(str_of(text), mechanism, &mem, &m, &problem), 0);
        assert_true(sasl_mechanism_find(str_of(sasl_mechanism_name(mechanism)), &again));
        assert_int_equal(again, mechanism);
    }
    assert_int_equal(
        jaas_parse_for(STR_LIT("org.apache.kafka.common.security.scram.ScramLoginModule required;"),
                       SASL_PLAIN, &mem, &m, &problem),
        -EINVAL);
    assert_non_null(strstr(problem, "for PLAIN it is"));
    assert_false(sasl_mechanism_find(STR_LIT("plain"), &(enum sasl_mechanism){0}));
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(modules_are_read, setup, teardown),
          cmocka_unit_test_setup_teardown(quotes_comments_and_escapes, setup, teardown),
          cmocka_unit_test_setup_teardown(several_modules, setup, teardown),
          cmocka_unit_test_setup_teardown(what_is_wrong_is_said, setup, teardown),
          cmocka_unit_test_setup_teardown(the_module_fits_the_mechanism, setup, teardown))
