/* Names, codes, filters, and what may be added. */
#include "acl_test.h"

static void codes_are_the_protocols(void **state)
{
    assert_int_equal(ACL_TOPIC, 2);
    assert_int_equal(ACL_USER, 7);
    assert_int_equal(ACL_ALL, 2);
    assert_int_equal(ACL_DESCRIBE_TOKENS, 14);
    assert_int_equal(ACL_DENY, 2);
    assert_int_equal(ACL_ALLOW, 3);
    assert_int_equal(ACL_LITERAL, 3);
    assert_int_equal(ACL_PREFIXED, 4);
    assert_int_equal(acl_resource_of_code(8), ACL_RESOURCE_UNKNOWN);
    assert_int_equal(acl_operation_of_code(15), ACL_OPERATION_UNKNOWN);
    assert_int_equal(acl_permission_of_code(-1), ACL_PERMISSION_UNKNOWN);
    assert_int_equal(acl_pattern_of_code(5), ACL_PATTERN_UNKNOWN);
    assert_int_equal(acl_pattern_of_code(4), ACL_PREFIXED);
}

static void names_lead_back(void **state)
{
    for (int i = 2; i < ACL_RESOURCES; i++) {
        assert_int_equal(acl_resource_of_name(str_of(acl_resource_name(i))), i);
        assert_int_equal(acl_resource_of_text(str_of(acl_resource_upper(i))), i);
    }
    for (int i = 2; i < ACL_OPERATIONS; i++) {
        assert_int_equal(acl_operation_of_name(str_of(acl_operation_name(i))), i);
        assert_int_equal(acl_operation_of_text(str_of(acl_operation_upper(i))), i);
    }
    assert_int_equal(acl_resource_of_name(STR_LIT("topic")), 0); /* the store has one spelling */
    assert_int_equal(acl_resource_of_name(STR_LIT("Any")), 0);
    assert_int_equal(acl_resource_of_text(STR_LIT("transactional-id")), ACL_TRANSACTIONAL_ID);
    assert_int_equal(acl_resource_of_text(STR_LIT("any")), ACL_RESOURCE_ANY);
    assert_int_equal(acl_operation_of_text(STR_LIT("IDEMPOTENTwrite")), ACL_IDEMPOTENT_WRITE);
    assert_int_equal(acl_operation_of_text(STR_LIT("Rea")), 0);
    assert_int_equal(acl_operation_of_text(STR_LIT("Reads")), 0);
    assert_int_equal(acl_permission_of_text(STR_LIT("allow")), ACL_ALLOW);
    assert_int_equal(acl_pattern_of_text(STR_LIT("match")), ACL_PATTERN_MATCH);
    assert_string_equal(acl_operation_name(99), "Unknown");
    assert_string_equal(acl_resource_upper(-1), "UNKNOWN");
}

static void what_may_be_added(void **state)
{
    static const struct {
        const char *pattern, *principal, *operation, *host;
        bool ok;
    } rows[] = {
        {"topic:t", "User:a", "read", "*", true},
        {"topic:*", "User:*", "all", "1.2.3.4", true},
        {"+topic:t", "User:CN=a:b,O=c", "read", "*", true},
        {"cluster:kafka-cluster", "User:a", "alter", "*", true},
        {"cluster:other", "User:a", "alter", "*", false},
        {"+cluster:kafka", "User:a", "alter", "*", false},
        {"topic:", "User:a", "read", "*", false},
        {"topic:a/b", "User:a", "read", "*", false},
        {"topic:..", "User:a", "read", "*", false},
        {"any:t", "User:a", "read", "*", false},
        {"what:t", "User:a", "read", "*", false},
        {"topic:t", "a", "read", "*", false},
        {"topic:t", "", "read", "*", false},
        {"topic:t", "User:a", "any", "*", false},
        {"topic:t", "User:a", "reed", "*", false},
        {"topic:t", "User:a", "read", "", false},
        {"topic:\xff", "User:a", "read", "*", false},
        {"topic:t", "User:\xff", "read", "*", false},
        {"topic:t", "User:a", "read", "\xff", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct acl_binding b = {pattern(rows[i].pattern), entry(ACL_ALLOW, rows[i].principal,
                                                                rows[i].operation, rows[i].host)};
        if (rows[i].ok != !acl_binding_problem(&b))
            fail_msg("%s %s %s", rows[i].pattern, rows[i].principal, rows[i].operation);
    }
    struct acl_binding b = binding("topic:t", ACL_PERMISSION_ANY, "User:a", "read");
    assert_non_null(acl_binding_problem(&b));
    b = binding("topic:t", ACL_DENY, "User:a", "read");
    b.pattern.kind = ACL_PATTERN_MATCH;
    assert_non_null(acl_binding_problem(&b));
}

static bool fits(enum acl_pattern_type kind, const char *name, const char *text)
{
    struct acl_filter f = ACL_FILTER_ALL;
    struct acl_pattern p = pattern(text);
    f.type = ACL_TOPIC;
    f.kind = kind;
    f.name = str_of(name);
    return acl_filter_matches_pattern(&f, &p);
}

static void filters_of_patterns(void **state)
{
    assert_true(fits(ACL_PATTERN_ANY, NULL, "topic:t"));
    assert_true(fits(ACL_PATTERN_ANY, NULL, "+topic:t"));
    assert_false(fits(ACL_PATTERN_ANY, NULL, "group:t"));
    assert_true(fits(ACL_PATTERN_ANY, "t", "+topic:t"));
    assert_false(fits(ACL_PATTERN_ANY, "tt", "+topic:t"));
    assert_true(fits(ACL_LITERAL, "t", "topic:t"));
    assert_false(fits(ACL_LITERAL, "t", "+topic:t"));
    assert_false(fits(ACL_LITERAL, "t", "topic:*"));
    assert_true(fits(ACL_LITERAL, "*", "topic:*"));
    assert_true(fits(ACL_LITERAL, NULL, "topic:t"));
    assert_false(fits(ACL_PREFIXED, NULL, "topic:t"));
    assert_false(fits(ACL_PREFIXED, "tt", "+topic:t")); /* the pattern of just that name */
    assert_true(fits(ACL_PATTERN_MATCH, "tt", "+topic:t"));
    assert_true(fits(ACL_PATTERN_MATCH, "tt", "topic:*"));
    assert_true(fits(ACL_PATTERN_MATCH, "tt", "topic:tt"));
    assert_false(fits(ACL_PATTERN_MATCH, "tt", "topic:t"));
    assert_false(fits(ACL_PATTERN_MATCH, "t", "+topic:tt"));
}

static void filters_of_entries(void **state)
{
    struct acl_entry e = entry(ACL_ALLOW, "User:a", "read", "1.2.3.4");
    struct acl_filter f = ACL_FILTER_ALL;
    assert_true(acl_filter_matches_entry(&f, &e));
    f.principal = STR_LIT("User:a");
    f.host = STR_LIT("1.2.3.4");
    f.operation = ACL_READ;
    f.permission = ACL_ALLOW;
    assert_true(acl_filter_matches_entry(&f, &e));
    f.operation = ACL_ALL; /* asks for entries of ALL, not for all entries */
    assert_false(acl_filter_matches_entry(&f, &e));
    f.operation = ACL_OPERATION_ANY;
    f.principal = STR_LIT("User:*");
    assert_false(acl_filter_matches_entry(&f, &e));
    f.principal = STR_NULL;
    f.host = STR_LIT("*");
    assert_false(acl_filter_matches_entry(&f, &e));
    f.host = STR_NULL;
    f.permission = ACL_DENY;
    assert_false(acl_filter_matches_entry(&f, &e));
    assert_null(acl_filter_problem(&f));
    f.permission = ACL_PERMISSION_UNKNOWN;
    assert_non_null(acl_filter_problem(&f));
}

UNIT_MAIN(unit_test(codes_are_the_protocols), unit_test(names_lead_back),
          unit_test(what_may_be_added), unit_test(filters_of_patterns),
          unit_test(filters_of_entries))
