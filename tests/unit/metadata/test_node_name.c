/* Names as they stand in nodes: what Kafka writes, and what is read back. */
#include "metadata/node_name.h"

#include "unit.h"

static void there_and_back(void **state)
{
    static const struct {
        const char *name, *text;
    } v[] = {{"", ""},
             {"User:alice", "User%3Aalice"},
             {"aZ09.-_", "aZ09.-_"},
             {"a b*%~+'()!/@", "a%20b%2A%25%7E%2B%27%28%29%21%2F%40"},
             {"\xc3\xa9", "%C3%A9"}};
    struct arena a;
    bool whole;
    (void)state;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        struct str text = node_name_encode(str_of(v[i].name), &a);
        assert_string_equal(text.p, v[i].text);
        assert_true(str_eqz(node_name_decode(text, &a, &whole), v[i].name));
        assert_true(whole);
    }
    assert_true(str_is_null(node_name_encode(STR_NULL, &a)));
    assert_true(str_is_null(node_name_decode(STR_NULL, &a, NULL)));
    arena_free(&a);
}

static void what_others_write(void **state)
{
    static const struct {
        const char *text, *name;
        bool whole;
    } v[] = {{"a+b%2fc", "a b/c", true}, {"%c3%A9~*", "\xc3\xa9~*", true}, {"%", "%", false},
             {"100%", "100%", false},    {"%zz%4", "%zz%4", false},        {"a%4", "a%4", false},
             {"%4g%41", "%4gA", false}};
    struct arena a;
    bool whole;
    (void)state;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        assert_true(str_eqz(node_name_decode(str_of(v[i].text), &a, &whole), v[i].name));
        assert_int_equal(whole, v[i].whole);
        assert_true(str_eqz(node_name_decode(str_of(v[i].text), &a, NULL), v[i].name));
    }
    arena_free(&a);
}

UNIT_MAIN(unit_test(there_and_back), unit_test(what_others_write))
