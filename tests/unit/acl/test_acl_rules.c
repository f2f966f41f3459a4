/* The decision, rule by rule; and against a slow one on many random sets. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "acl/acl_rules.h"

#include "acl_test.h"

enum { MOST = 64 };

/* A set of ACLs being put together. */
static struct acl_binding set[MOST];
static int set_n;

static void add(const char *text, enum acl_permission permission, const char *principal,
                const char *operation)
{
    set[set_n++] = binding(text, permission, principal, operation);
}

static void add_host(const char *text, enum acl_permission permission, const char *principal,
                     const char *operation, const char *host)
{
    add(text, permission, principal, operation);
    set[set_n - 1].entry.host = str_of(host);
}

static struct acl_index *make_index(void)
{
    struct acl_resource *all[MOST] = {0};
    int n = 0;
    for (int i = 0; i < set_n; i++) {
        struct acl_entry entries[MOST];
        int entries_n = 0;
        bool first = true;
        for (int k = 0; k < set_n; k++) {
            if (!acl_pattern_eq(&set[k].pattern, &set[i].pattern))
                continue;
            first = first && k >= i;
            entries[entries_n++] = set[k].entry;
        }
        if (first)
            all[n++] = acl_resource_new(&set[i].pattern, entries, entries_n);
    }
    struct acl_index *x = acl_index_new(all, n);
    assert_non_null(x);
    for (int i = 0; i < n; i++)
        acl_resource_unref(all[i]);
    return x;
}

static struct acl_subject subject(const char *user, const char *host)
{
    struct in6_addr ip;
    assert_int_equal(acl_host_parse(str_of(host), &ip), 0);
    return acl_subject_of(str_of(user), ip);
}

static bool ask(const char *user, const char *host, enum acl_operation op, const char *text,
                bool otherwise)
{
    struct acl_index *x = make_index();
    struct acl_subject who = subject(user, host);
    struct acl_pattern p = pattern(text);
    bool yes = acl_allows(x, &who, op, p.type, p.name, otherwise);
    bool in_mask = acl_allowed_operations(x, &who, p.type, p.name, otherwise) & UINT32_C(1) << op;
    if (acl_operations_of(p.type) & UINT32_C(1) << op)
        assert_int_equal(in_mask, yes);
    acl_index_free(x);
    return yes;
}

static bool may(const char *user, enum acl_operation op, const char *text)
{
    return ask(user, "10.0.0.1", op, text, false);
}

static bool may_any(const char *user, enum acl_operation op, bool otherwise)
{
    struct acl_index *x = make_index();
    struct acl_subject who = subject(user, "10.0.0.1");
    bool yes = acl_allows_any(x, &who, op, ACL_TOPIC, otherwise);
    acl_index_free(x);
    return yes;
}

static int begin(void **state)
{
    set_n = 0;
    return 0;
}

static void nothing_is_denied_by_default(void **state)
{
    assert_false(may("a", ACL_READ, "topic:t"));
    assert_true(ask("a", "10.0.0.1", ACL_READ, "topic:t", true));
    add("topic:t", ACL_ALLOW, "User:b", "read"); /* now there is an ACL: the default is over */
    assert_false(ask("a", "10.0.0.1", ACL_READ, "topic:t", true));
    assert_true(ask("a", "10.0.0.1", ACL_READ, "topic:u", true));
    assert_true(ask("a", "10.0.0.1", ACL_READ, "group:t", true));
}

static void names_prefixes_and_all(void **state)
{
    add("topic:t", ACL_ALLOW, "User:literal", "read");
    add("topic:*", ACL_ALLOW, "User:star", "read");
    add("+topic:t", ACL_ALLOW, "User:prefix", "read");
    add("+topic:*", ACL_ALLOW, "User:starred", "read");
    add("+topic:t2x", ACL_ALLOW, "User:longer", "read");
    assert_true(may("literal", ACL_READ, "topic:t"));
    assert_false(may("literal", ACL_READ, "topic:t2"));
    assert_true(may("star", ACL_READ, "topic:t"));
    assert_true(may("star", ACL_READ, "topic:u"));
    assert_true(may("star", ACL_READ, "topic:*"));
    assert_false(may("star", ACL_READ, "group:u"));
    assert_true(may("prefix", ACL_READ, "topic:t")); /* one letter, and the name itself */
    assert_true(may("prefix", ACL_READ, "topic:t2"));
    assert_false(may("prefix", ACL_READ, "topic:u"));
    assert_false(may("prefix", ACL_READ, "topic:T"));
    assert_false(may("starred", ACL_READ, "topic:t")); /* "*" is a letter there */
    assert_true(may("starred", ACL_READ, "topic:*t"));
    assert_true(may("longer", ACL_READ, "topic:t2xy"));
    assert_false(may("longer", ACL_READ, "topic:t2"));
}

static void a_denial_beats_all(void **state)
{
    add("topic:team.a", ACL_ALLOW, "User:a", "all");
    add("+topic:t", ACL_DENY, "User:a", "write");
    assert_true(may("a", ACL_READ, "topic:team.a"));
    assert_false(may("a", ACL_WRITE, "topic:team.a"));
    assert_true(may("a", ACL_DESCRIBE, "topic:team.a")); /* a denial implies nothing */
    add("topic:*", ACL_DENY, "User:*", "describe");
    assert_false(may("a", ACL_DESCRIBE, "topic:team.a"));
    assert_true(may("a", ACL_READ, "topic:team.a"));
    add_host("topic:team.a", ACL_DENY, "User:*", "all", "10.0.0.1");
    assert_false(may("a", ACL_READ, "topic:team.a"));
    assert_true(ask("a", "10.0.0.2", ACL_READ, "topic:team.a", false));
}

static void what_implies_what(void **state)
{
    static const struct {
        const char *given;
        enum acl_operation asked;
        bool yes;
    } rows[] = {
        {"read", ACL_DESCRIBE, true},
        {"write", ACL_DESCRIBE, true},
        {"delete", ACL_DESCRIBE, true},
        {"alter", ACL_DESCRIBE, true},
        {"create", ACL_DESCRIBE, false},
        {"alter-configs", ACL_DESCRIBE, false},
        {"describe-configs", ACL_DESCRIBE, false},
        {"alter-configs", ACL_DESCRIBE_CONFIGS, true},
        {"alter", ACL_DESCRIBE_CONFIGS, false},
        {"describe", ACL_READ, false},
        {"write", ACL_READ, false},
        {"all", ACL_CREATE, true},
        {"all", ACL_IDEMPOTENT_WRITE, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        set_n = 0;
        add("topic:t", ACL_ALLOW, "User:a", rows[i].given);
        if (may("a", rows[i].asked, "topic:t") != rows[i].yes)
            fail_msg("%s for %s", rows[i].given, acl_operation_name(rows[i].asked));
    }
}

static void who_is_meant(void **state)
{
    add("topic:t", ACL_ALLOW, "User:CN=a:b,O=c", "read"); /* the type ends at the first colon */
    add("topic:t", ACL_ALLOW, "Group:g", "read");
    add("topic:u", ACL_ALLOW, "User:*", "read");
    add("topic:v", ACL_ALLOW, "User:", "read");
    add("topic:w", ACL_ALLOW, "*:*", "read");
    assert_true(may("CN=a:b,O=c", ACL_READ, "topic:t"));
    assert_false(may("cn=a:b,O=c", ACL_READ, "topic:t"));
    assert_false(may("CN=a", ACL_READ, "topic:t"));
    assert_false(may("g", ACL_READ, "topic:t"));
    assert_true(may("anybody", ACL_READ, "topic:u"));
    assert_true(may("", ACL_READ, "topic:v"));
    assert_false(may("anybody", ACL_READ, "topic:v"));
    assert_false(may("anybody", ACL_READ, "topic:w"));
    assert_true(may("*", ACL_READ, "topic:u"));
    assert_false(may("*", ACL_READ, "topic:t"));
}

static void hosts_are_addresses(void **state)
{
    add_host("topic:t", ACL_ALLOW, "User:a", "read", "10.0.0.7");
    add_host("topic:t", ACL_ALLOW, "User:b", "read", "0:0:0:0:0:0:0:1");
    add_host("topic:t", ACL_ALLOW, "User:c", "read", "::1");
    add_host("topic:t", ACL_ALLOW, "User:d", "read", "::ffff:10.0.0.7");
    add_host("topic:t", ACL_ALLOW, "User:e", "read", "example.org");
    add_host("topic:t", ACL_ALLOW, "User:f", "read", "fe80:0:0:0:0:0:0:9%eth0");
    static const struct {
        const char *user, *host;
        bool yes;
    } rows[] = {{"a", "10.0.0.7", true}, {"a", "10.0.0.8", false}, {"a", "::ffff:10.0.0.7", true},
                {"b", "::1", true},      {"c", "::1", true},       {"c", "::2", false},
                {"d", "10.0.0.7", true}, {"e", "10.0.0.7", false}, {"f", "fe80::9", true},
                {"f", "fe80::8", false}, {"x", "10.0.0.7", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (ask(rows[i].user, rows[i].host, ACL_READ, "topic:t", false) != rows[i].yes)
            fail_msg("%s at %s", rows[i].user, rows[i].host);
    struct in6_addr ip;
    assert_int_not_equal(acl_host_parse(STR_LIT(""), &ip), 0);
    assert_int_not_equal(acl_host_parse(STR_NULL, &ip), 0);
    assert_int_not_equal(acl_host_parse(STR_LIT("10.0.0.7%1"), &ip), 0);
    assert_int_not_equal(acl_host_parse(STR_LIT("10.0.0.7\0"), &ip), 0);
    assert_int_not_equal(acl_host_parse(STR_LIT("::1\0x"), &ip), 0);
    assert_int_not_equal(
        acl_host_parse(STR_LIT("0000:0000:0000:0000:0000:0000:0000:0000:0000:0"), &ip), 0);
}

static void a_resource_without_readable_acls_counts(void **state)
{
    struct acl_pattern p = pattern("topic:t");
    struct acl_resource *r = acl_resource_new(&p, NULL, 0);
    struct acl_index *x = acl_index_new(&r, 1);
    struct acl_subject who = subject("a", "10.0.0.1");
    acl_resource_unref(r);
    assert_false(acl_allows(x, &who, ACL_READ, ACL_TOPIC, STR_LIT("t"), true));
    assert_true(acl_allows(x, &who, ACL_READ, ACL_TOPIC, STR_LIT("u"), true));
    acl_index_free(x);
}

static void any_resource(void **state)
{
    assert_false(may_any("a", ACL_WRITE, false));
    assert_true(may_any("a", ACL_WRITE, true));
    add("group:g", ACL_ALLOW, "User:a", "write");
    assert_false(may_any("a", ACL_WRITE, false));
    add("topic:team.x", ACL_ALLOW, "User:a", "write");
    assert_true(may_any("a", ACL_WRITE, false));
    assert_false(may_any("b", ACL_WRITE, false));
    assert_false(may_any("a", ACL_READ, false));
    assert_false(may_any("a", ACL_DESCRIBE, false)); /* nothing is implied here, as at Kafka's */
    add("+topic:team", ACL_DENY, "User:*", "all");   /* covers the only one */
    assert_false(may_any("a", ACL_WRITE, false));
    add("+topic:te", ACL_ALLOW, "User:a", "write"); /* wider than the denial */
    assert_true(may_any("a", ACL_WRITE, false));
    add("+topic:te", ACL_DENY, "User:a", "write");
    assert_false(may_any("a", ACL_WRITE, false));
    add("topic:*", ACL_ALLOW, "User:*", "all");
    assert_true(may_any("a", ACL_WRITE, false));
    add("topic:*", ACL_DENY, "User:a", "write");
    assert_false(may_any("a", ACL_WRITE, false));
    assert_false(may_any("a", ACL_WRITE, true)); /* also before the default */
}

static void a_literal_denial_covers_its_name_alone(void **state)
{
    add("topic:t", ACL_ALLOW, "User:a", "write");
    add("topic:t", ACL_DENY, "User:a", "write");
    assert_false(may_any("a", ACL_WRITE, false));
    add("+topic:t", ACL_ALLOW, "User:a", "write");
    assert_true(may_any("a", ACL_WRITE, false));
    set_n = 0;
    add("topic:t1", ACL_ALLOW, "User:a", "write");
    add("topic:t", ACL_DENY, "User:a", "write");
    assert_true(may_any("a", ACL_WRITE, false));
}

/* ---- many random sets, against the rules as they are written down ---- */

static bool begins(const char *s, struct str prefix)
{
    return strncmp(s, prefix.p, (size_t)prefix.len) == 0;
}

static bool holds(const struct acl_entry *e, const char *user, const char *host)
{
    char principal[64];
    snprintf(principal, sizeof(principal), "User:%s", user);
    return (str_eqz(e->principal, principal) || str_eqz(e->principal, "User:*")) &&
           (str_eqz(e->host, host) || str_eqz(e->host, "*"));
}

static bool slowly(const char *user, const char *host, enum acl_operation op, const char *name,
                   bool otherwise)
{
    bool any = false, yes = false;
    for (int i = 0; i < set_n; i++) {
        const struct acl_pattern *p = &set[i].pattern;
        const struct acl_entry *e = &set[i].entry;
        bool fits = p->kind == ACL_PREFIXED ? begins(name, p->name)
                                            : str_eqz(p->name, name) || str_eqz(p->name, "*");
        if (p->type != ACL_TOPIC || !fits)
            continue;
        any = true;
        if (!holds(e, user, host))
            continue;
        bool describes =
            op == ACL_DESCRIBE && (e->operation == ACL_READ || e->operation == ACL_WRITE ||
                                   e->operation == ACL_DELETE || e->operation == ACL_ALTER);
        if (e->permission == ACL_DENY && (e->operation == op || e->operation == ACL_ALL))
            return false;
        yes |= e->permission == ACL_ALLOW &&
               (e->operation == op || e->operation == ACL_ALL || describes);
    }
    return any ? yes : otherwise;
}

static const char *one_of(const char *const *v, size_t n)
{
    return v[(size_t)rand() % n];
}
#define ONE_OF(v) one_of(v, sizeof(v) / sizeof(*(v)))

static void as_the_rules_say(void **state)
{
    static const char *const patterns[] = {"topic:a",   "topic:ab",   "topic:*",  "+topic:a",
                                           "+topic:ab", "+topic:abc", "+topic:b", "group:a"};
    static const char *const users[] = {"User:u", "User:v", "User:*", "Group:u"};
    static const char *const operations[] = {"read", "write", "describe", "all", "alter"};
    static const char *const hosts[] = {"*", "10.0.0.1", "10.0.0.2"};
    static const char *const names[] = {"a", "ab", "abc", "b", "c"};
    srand(7);
    for (int round = 0; round < 3000; round++) {
        set_n = 0;
        for (int n = rand() % 12; n > 0; n--)
            add_host(ONE_OF(patterns), rand() % 3 ? ACL_ALLOW : ACL_DENY, ONE_OF(users),
                     ONE_OF(operations), ONE_OF(hosts));
        const char *user = rand() % 2 ? "u" : "v", *host = rand() % 2 ? "10.0.0.1" : "10.0.0.2";
        const char *name = ONE_OF(names);
        enum acl_operation op = acl_operation_of_text(str_of(ONE_OF(operations)));
        char text[32];
        if (op == ACL_ALL)
            op = ACL_WRITE;
        snprintf(text, sizeof(text), "topic:%s", name);
        if (ask(user, host, op, text, round % 2) != slowly(user, host, op, name, round % 2))
            fail_msg("round %d", round);
    }
}

static void many_holders_of_one_resource(void **state)
{
    enum { USERS = 2000 };
    struct acl_entry *entries = calloc(USERS, sizeof(*entries));
    char(*texts)[32] = calloc(USERS, sizeof(*texts));
    struct acl_pattern p = pattern("topic:t");
    for (int i = 0; i < USERS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "User:%d", i / 2); /* each twice */
        entries[i] = entry(ACL_ALLOW, texts[i], i % 2 ? "read" : "write", "*");
    }
    struct acl_resource *r = acl_resource_new(&p, entries, USERS);
    struct acl_index *x = acl_index_new(&r, 1);
    for (int i = 0; i < USERS / 2 + 2; i++) {
        struct acl_subject who = subject(i < USERS / 2 ? texts[i * 2] + 5 : "x", "10.0.0.1");
        assert_int_equal(acl_allowed_operations(x, &who, ACL_TOPIC, STR_LIT("t"), false),
                         i < USERS / 2 ? 1 << ACL_READ | 1 << ACL_WRITE | 1 << ACL_DESCRIBE : 0);
    }
    acl_resource_unref(r);
    acl_index_free(x);
    free(texts);
    free(entries);
}

#define rule(f) cmocka_unit_test_setup(f, begin)
UNIT_MAIN(rule(nothing_is_denied_by_default), rule(names_prefixes_and_all),
          rule(a_denial_beats_all), rule(what_implies_what), rule(who_is_meant),
          rule(hosts_are_addresses), rule(a_resource_without_readable_acls_counts),
          rule(any_resource), rule(a_literal_denial_covers_its_name_alone), rule(as_the_rules_say),
          rule(many_holders_of_one_resource))
