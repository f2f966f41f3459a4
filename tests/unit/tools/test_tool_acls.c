/* kafka-acls: what its flags mean, and what it prints. */
#include "tools/tool_acls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static const struct tool tool = {.name = "kafka-acls"}; /* for lines that no test here comes to */

#define TEXTS(...)                                      \
    ((struct tool_texts){(const char *[]){__VA_ARGS__}, \
                         sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)})

/* "TOPIC t LITERAL\n  ALLOW User:a * READ\n" of all that is meant. */
static void assert_wishes(struct acls_args args, const char *expected)
{
    char text[4096] = "";
    size_t at = 0;
    args.pattern = args.pattern ? args.pattern : "LITERAL";
    struct acls t = {.tool = &tool, .args = &args};
    arena_init(&t.mem, 0);
    struct acls_wishes w = acls_wishes(&t);
    for (size_t i = 0; i < w.n; i++) {
        const kafka_acl_t *r = &w.v[i].resource;
        at += (size_t)snprintf(
            text + at, sizeof text - at, "%s %s %s\n", kafka_acl_resource_name(r->resource_type),
            r->name ? r->name : "<any>", kafka_acl_pattern_name(r->pattern_type));
        for (size_t k = 0; k < w.v[i].n; k++) {
            const kafka_acl_t *a = &w.v[i].v[k];
            assert_int_equal(a->resource_type, r->resource_type);
            assert_int_equal(a->pattern_type, r->pattern_type);
            assert_string_equal(a->name, r->name);
            at += (size_t)snprintf(text + at, sizeof text - at, "  %s %s %s %s\n",
                                   kafka_acl_permission_name(a->permission), a->principal, a->host,
                                   kafka_acl_operation_name(a->operation));
        }
    }
    assert_string_equal(text, expected);
    arena_free(&t.mem);
}

static void principals_hosts_and_operations_are_crossed(void **state)
{
    assert_wishes((struct acls_args){.add = true,
                                     .topics = TEXTS("t", " u ", "t"),
                                     .allowed = TEXTS("User:a", " User:b "),
                                     .allowed_hosts = TEXTS("10.0.0.1", "10.0.0.2"),
                                     .operations = TEXTS("describeconfigs", "READ")},
                  "TOPIC t LITERAL\n"
                  "  ALLOW User:a 10.0.0.1 READ\n  ALLOW User:a 10.0.0.1 DESCRIBE_CONFIGS\n"
                  "  ALLOW User:a 10.0.0.2 READ\n  ALLOW User:a 10.0.0.2 DESCRIBE_CONFIGS\n"
                  "  ALLOW User:b 10.0.0.1 READ\n  ALLOW User:b 10.0.0.1 DESCRIBE_CONFIGS\n"
                  "  ALLOW User:b 10.0.0.2 READ\n  ALLOW User:b 10.0.0.2 DESCRIBE_CONFIGS\n"
                  "TOPIC u LITERAL\n"
                  "  ALLOW User:a 10.0.0.1 READ\n  ALLOW User:a 10.0.0.1 DESCRIBE_CONFIGS\n"
                  "  ALLOW User:a 10.0.0.2 READ\n  ALLOW User:a 10.0.0.2 DESCRIBE_CONFIGS\n"
                  "  ALLOW User:b 10.0.0.1 READ\n  ALLOW User:b 10.0.0.1 DESCRIBE_CONFIGS\n"
                  "  ALLOW User:b 10.0.0.2 READ\n  ALLOW User:b 10.0.0.2 DESCRIBE_CONFIGS\n");
}

static void both_permissions_and_the_defaults(void **state)
{
    assert_wishes(
        (struct acls_args){.add = true,
                           .cluster = true,
                           .ids = TEXTS("*"),
                           .tokens = TEXTS("T"),
                           .users = TEXTS("User:u"),
                           .groups = TEXTS("g"),
                           .allowed = TEXTS("User:*"),
                           .denied = TEXTS("User:b"),
                           .denied_hosts = TEXTS("10.0.0.9")},
        "CLUSTER kafka-cluster LITERAL\n  ALLOW User:* * ALL\n  DENY User:b 10.0.0.9 ALL\n"
        "GROUP g LITERAL\n  ALLOW User:* * ALL\n  DENY User:b 10.0.0.9 ALL\n"
        "TRANSACTIONAL_ID * LITERAL\n  ALLOW User:* * ALL\n  DENY User:b 10.0.0.9 ALL\n"
        "DELEGATION_TOKEN T LITERAL\n  ALLOW User:* * ALL\n  DENY User:b 10.0.0.9 ALL\n"
        "USER User:u LITERAL\n  ALLOW User:* * ALL\n  DENY User:b 10.0.0.9 ALL\n");
}

static void roles_know_what_they_need(void **state)
{
    struct acls_args a = {.add = true,
                          .producer = true,
                          .topics = TEXTS("t"),
                          .ids = TEXTS("x"),
                          .groups = TEXTS("g"),
                          .allowed = TEXTS("User:a")};
#define WRITES                                                           \
    "TOPIC t LITERAL\n  ALLOW User:a * WRITE\n  ALLOW User:a * CREATE\n" \
    "  ALLOW User:a * DESCRIBE\n"
#define ID "TRANSACTIONAL_ID x LITERAL\n  ALLOW User:a * WRITE\n  ALLOW User:a * DESCRIBE\n"
    assert_wishes(a, WRITES ID);
    a.cluster = true; /* no role has rights there */
    assert_wishes(a, WRITES ID);
    a.idempotent = true;
    assert_wishes(a,
                  WRITES "CLUSTER kafka-cluster LITERAL\n  ALLOW User:a * IDEMPOTENT_WRITE\n" ID);
    a.pattern = "prefixed"; /* of which the cluster knows nothing */
    a.cluster = a.idempotent = false;
    a.producer = false;
    a.consumer = true;
    assert_wishes(a, "TOPIC t PREFIXED\n  ALLOW User:a * READ\n  ALLOW User:a * DESCRIBE\n"
                     "GROUP g PREFIXED\n  ALLOW User:a * READ\n");
    a.producer = true;
    a.ids.n = 0;
    assert_wishes(a, "TOPIC t PREFIXED\n  ALLOW User:a * READ\n  ALLOW User:a * WRITE\n"
                     "  ALLOW User:a * CREATE\n  ALLOW User:a * DESCRIBE\n"
                     "GROUP g PREFIXED\n  ALLOW User:a * READ\n");
}

static void filters_have_patterns_of_their_own(void **state)
{
    assert_wishes((struct acls_args){.list = true}, "ANY <any> ANY\n");
    assert_wishes((struct acls_args){.list = true, .topics = TEXTS("t"), .pattern = "Match"},
                  "TOPIC t MATCH\n");
    assert_wishes((struct acls_args){.list = true, .topics = TEXTS("*"), .pattern = "any"},
                  "TOPIC * ANY\n");
    assert_wishes((struct acls_args){.remove = true, .topics = TEXTS("t")}, "TOPIC t LITERAL\n");
    assert_wishes(
        (struct acls_args){
            .remove = true, .topics = TEXTS("t"), .denied = TEXTS("User:a"), .pattern = "any"},
        "TOPIC t ANY\n  DENY User:a * ALL\n");
}

/* ---- what is printed ---- */

static kafka_acls_t stored;

static void tell(struct acls *t, const kafka_acl_t *filter, kafka_acls_t *out)
{
    *out = stored;
}

static void take(struct acls *t, const kafka_acl_t *v, size_t n)
{
}

static const struct acls_source source = {tell, take, take};

/* Standard output of fn, at most 4 kB. */
static void printed(struct acls *t, void (*fn)(struct acls *), char out[4096])
{
    FILE *f = tmpfile();
    fflush(stdout);
    int kept = dup(1);
    assert_non_null(f);
    assert_int_equal(dup2(fileno(f), 1), 1);
    fn(t);
    fflush(stdout);
    assert_int_equal(dup2(kept, 1), 1);
    close(kept);
    ssize_t n = pread(fileno(f), out, 4095, 0);
    assert_true(n >= 0);
    out[n] = 0;
    fclose(f);
}

static kafka_acl_t acl(const char *name, int pattern, const char *principal, int operation)
{
    return (kafka_acl_t){.resource_type = KAFKA_ACL_RESOURCE_TOPIC,
                         .pattern_type = pattern,
                         .name = name,
                         .principal = principal,
                         .host = "*",
                         .operation = operation,
                         .permission = KAFKA_ACL_ALLOW};
}

#define BLOCK(what, name, pattern, rest)                                      \
    what " ACLs for resource `ResourcePattern(resourceType=TOPIC, name=" name \
         ", patternType=" pattern ")`: \n " rest " \n\n"
#define ENTRY(principal, operation) \
    "\t(principal=" principal ", host=*, operation=" operation ", permissionType=ALLOW)"

static void lists_are_printed_by_resource(void **state)
{
    char out[4096];
    struct acls_args args = {.list = true, .pattern = "LITERAL"};
    kafka_acl_t v[] = {acl("b", KAFKA_ACL_PATTERN_PREFIXED, "User:u", KAFKA_ACL_READ),
                       acl("a", KAFKA_ACL_PATTERN_LITERAL, "User:v", KAFKA_ACL_ALL),
                       acl("b", KAFKA_ACL_PATTERN_LITERAL, "User:u", KAFKA_ACL_WRITE),
                       acl("a", KAFKA_ACL_PATTERN_LITERAL, "User:u", KAFKA_ACL_WRITE),
                       acl("a", KAFKA_ACL_PATTERN_LITERAL, "User:v", KAFKA_ACL_ALL)};
    struct acls t = {.tool = &tool, .args = &args, .source = &source};
    arena_init(&t.mem, 0);
    stored = (kafka_acls_t){v, 5};
    t.wishes = acls_wishes(&t);
    printed(&t, acls_list, out);
    assert_string_equal(
        out, BLOCK("Current", "a", "LITERAL", ENTRY("User:u", "WRITE") "\n" ENTRY("User:v", "ALL"))
                 BLOCK("Current", "b", "LITERAL", ENTRY("User:u", "WRITE"))
                     BLOCK("Current", "b", "PREFIXED", ENTRY("User:u", "READ")));
    args.principals = TEXTS("User:v", "User:none");
    printed(&t, acls_list, out);
    assert_string_equal(out, "ACLs for principal `User:v`\n" BLOCK(
                                 "Current", "a", "LITERAL",
                                 ENTRY("User:v", "ALL")) "ACLs for principal `User:none`\n");
    arena_free(&t.mem);
}

static void additions_and_removals_say_what_they_do(void **state)
{
    char out[4096];
    struct acls_args args = {.add = true,
                             .pattern = "LITERAL",
                             .topics = TEXTS("t"),
                             .allowed = TEXTS("User:u"),
                             .operations = TEXTS("Read", "Write"),
                             .force = true};
    struct acls t = {.tool = &tool, .args = &args, .source = &source};
    arena_init(&t.mem, 0);
    t.wishes = acls_wishes(&t);
    printed(&t, acls_add, out);
    assert_string_equal(out, BLOCK("Adding", "t", "LITERAL",
                                   ENTRY("User:u", "READ") "\n" ENTRY("User:u", "WRITE")));
    printed(&t, acls_remove, out);
    assert_string_equal(out, "");
    arena_free(&t.mem);
}

UNIT_MAIN(unit_test(principals_hosts_and_operations_are_crossed),
          unit_test(both_permissions_and_the_defaults), unit_test(roles_know_what_they_need),
          unit_test(filters_have_patterns_of_their_own), unit_test(lists_are_printed_by_resource),
          unit_test(additions_and_removals_say_what_they_do))
