/* From the name in a certificate to a user: patterns with groups, rules, names as Java writes them.
 */
#include "tls_test.h"

#include "net/dn.h"
#include "net/group_regex.h"
#include "net/principal_rules.h"

/* NULL = no match; else what group `group` took ("-" when it took no part). */
static void matches(const char *pattern, const char *text, int group, const char *expected)
{
    struct group_regex *r;
    struct group_span spans[GROUP_REGEX_MAX];
    char err[200], got[200] = "-";
    if (group_regex_new(pattern, strlen(pattern), &r, err, sizeof(err)) != 0)
        fail_msg("%s: %s", pattern, err);
    int rc = group_regex_match(r, text, strlen(text), spans);
    assert_true(rc >= 0);
    if (rc != (expected != NULL))
        fail_msg("%s on %s: %d", pattern, text, rc);
    if (rc && spans[group].at >= 0)
        snprintf(got, sizeof(got), "%.*s", spans[group].end - spans[group].at,
                 text + spans[group].at);
    if (rc && strcmp(got, expected) != 0)
        fail_msg("%s on %s: group %d is %s, not %s", pattern, text, group, got, expected);
    group_regex_free(r);
}

static void patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        int group;
        const char *expected;
    } rows[] = {
        {"abc", "abc", 0, "abc"},
        {"abc", "abcd", 0, NULL},
        {"", "", 0, ""},
        {"(.*),.*", "a,b,c", 1, "a,b"},
        {"(.*?),.*", "a,b,c", 1, "a"},
        {"^CN=(.*?),OU=(.*?),.*$", "CN=x,OU=y,O=z,OU=w", 2, "y"},
        {"(a|ab)(c|bcd)?(d*)", "abcd", 1, "a"},
        {"(a|ab)(c|bcd)?(d*)", "abcd", 2, "bcd"},
        {"(a+?)(a*)", "aaa", 1, "a"},
        {"(a{2})(a{1,3}?)(a*)", "aaaaa", 2, "a"},
        {"(a{2,})b", "aaab", 1, "aaa"},
        {"a{0}b", "b", 0, "b"},
        {"(x)?y", "y", 1, "-"},
        {"(?:ab)+", "abab", 0, "abab"},
        {"(ab)+", "abab", 1, "ab"},
        {"[a-c]+", "abcd", 0, NULL},
        {"[^a-c]+", "xyz", 0, "xyz"},
        {"[]x]+", "x]", 0, "x]"},
        {"[\\w.]+@\\d+", "a.b_1@42", 0, "a.b_1@42"},
        {"\\D\\W\\S\\s", "a-b ", 0, "a-b "},
        {"a\\.b\\/c", "a.b/c", 0, "a.b/c"},
        {"a\\.b", "axb", 0, NULL},
        {"(a*)*", "aaa", 0, "aaa"},
        {"(a|b*)*c", "abbac", 0, "abbac"},
        {"(|a)+", "aa", 0, "aa"},
        {"x|", "", 0, ""},
        {"a.c",
         "a\xc3\xa9"
         "c",
         0, NULL}, /* bytes */
        {"$^", "", 0, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        matches(rows[i].pattern, rows[i].text, rows[i].group, rows[i].expected);
}

static void patterns_that_are_refused(void **state)
{
    static const char *const bad[] = {
        "(",      ")",     "a)",      "[a",  "[b-a]", "*a",     "a**",
        "a++",    "(?=a)", "(?i)a",   "\\1", "\\b",   "\\p",    "a{x}",
        "a{2,1}", "a{1",   "a{1001}", "\\",  "[[a]]", "[a&&b]", "(((((((((((a)))))))))))",
        NULL};
    struct group_regex *r;
    char err[200];
    for (int i = 0; bad[i]; i++)
        if (group_regex_new(bad[i], strlen(bad[i]), &r, err, sizeof(err)) != -EINVAL || !*err)
            fail_msg("%s is not refused", bad[i]);
    char deep[400] = "";
    for (int i = 0; i < 60; i++)
        strcat(deep, "(?:");
    assert_int_equal(group_regex_new(deep, strlen(deep), &r, err, sizeof(err)), -EINVAL);
    assert_int_equal(group_regex_new("(?:a{1000}){1000}", 17, &r, err, sizeof(err)), -EINVAL);
}

/* What takes others for ever. */
static void hostile_patterns_end(void **state)
{
    char text[2000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    matches("(a*)*b", text, 0, NULL);
    matches("(a|aa)+b", text, 0, NULL);
    matches("(.*)(.*)(.*)(.*)(.*)x", text, 0, NULL);
}

static void maps(const char *rules, const char *dn, const char *expected)
{
    struct principal_rules *r;
    char err[300];
    int rc;
    if (principal_rules_new(rules, &r, err, sizeof(err)) != 0)
        fail_msg("%s: %s", rules, err);
    char *user = principal_rules_apply(r, dn, &rc);
    if (expected) {
        assert_non_null(user);
        assert_string_equal(user, expected);
    } else {
        assert_null(user);
        assert_int_equal(rc, -EACCES);
    }
    free(user);
    principal_rules_free(r);
}

static void rules(void **state)
{
    static const char service[] = "CN=kafka-Server1,OU=ServiceUsers,O=Org,C=DE";
    maps("DEFAULT", service, service);
    maps("", service, NULL);
    maps("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,DEFAULT", service, "kafka-server1");
    maps("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U , DEFAULT", service, "KAFKA-SERVER1");
    maps("RULE:^CN=(.*?),OU=Other.*$/$1/, RULE:^CN=([^,]+),OU=(\\w+),.*$/$1@$2/", service,
         "kafka-Server1@ServiceUsers");
    maps("RULE:^CN=(.*?),OU=Other.*$/$1/", service, NULL);
    maps("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.-]*).*$/$1/L", service, "kafka-server1");
    maps("RULE:.*/a\\/b$2\\$1/", service, "a/b$2$1"); /* there is no second group */
    maps("RULE:(x)?.*/<$1>/", service, "<>");
}

static void rules_that_are_refused(void **state)
{
    static const char *const bad[] = {"default",   "RULE:a",     "RULE:a/b",
                                      "RULE:(/b/", "RULE:a/b/X", "RULE:a/b/ DEFAULT",
                                      "DEFAULTS",  NULL};
    struct principal_rules *r;
    char err[300];
    for (int i = 0; bad[i]; i++)
        if (principal_rules_new(bad[i], &r, err, sizeof(err)) != -EINVAL)
            fail_msg("%s is not refused", bad[i]);
}

static void names_are_written_as_in_java(void **state)
{
    static const char *const rows[][2] = {
        {"/C=DE/O=Org/OU=Users/CN=Alice", "CN=Alice,OU=Users,O=Org,C=DE"},
        {"/CN=a,b+c", "CN=a\\,b\\+c"},
        {"/CN= x ", "CN=\\ x\\ "},
        {"/CN=#1", "CN=\\#1"},
        {"/CN=a=b#c;\"<d>\\", "CN=a\\=b\\#c\\;\\\"\\<d\\>\\\\"},
        {"/ST=Here/L=There/street=1/DC=org/UID=u", "UID=u,DC=org,STREET=1,L=There,ST=Here"},
        {"/emailAddress=a@b", "1.2.840.113549.1.9.1=#1603614062"},
        {"/CN=J\xc3\xbcrgen", "CN=J\xc3\xbcrgen"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        X509_NAME *n = X509_NAME_new();
        set_name(n, rows[i][0]);
        char *text = dn_text(n);
        assert_non_null(text);
        assert_string_equal(text, rows[i][1]);
        free(text);
        X509_NAME_free(n);
    }
    X509_NAME *n = X509_NAME_new(); /* cut at the NUL it would be another one's */
    X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)"a\0b", 3, -1, 0);
    assert_null(dn_text(n));
    X509_NAME_free(n);
}

UNIT_MAIN(unit_test(patterns), unit_test(patterns_that_are_refused),
          unit_test(hostile_patterns_end), unit_test(rules), unit_test(rules_that_are_refused),
          unit_test(names_are_written_as_in_java))
