/* Changes of settings: what would be stored, and what is refused. */
#include "server/config_change.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static struct arena mem;

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

/* "a=1;b=2" */
static struct config_list list_of(const char *text)
{
    struct config_list l = {arena_array(&mem, struct config_pair, 16), 0};
    char *copy = (char *)arena_str(&mem, str_of(text)).p;
    for (char *save, *p = strtok_r(copy, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
        char *eq = strchr(p, '=');
        *eq = 0;
        l.v[l.n++] = (struct config_pair){str_of(p), str_of(eq + 1)};
    }
    return l;
}

/* "+k=v" append, "-k=v" subtract, "!k" delete, "k=v" set, "k" set to null. */
static struct config_change change_of(enum config_resource resource, const char *text)
{
    struct config_op *ops = arena_array(&mem, struct config_op, 16);
    struct config_change c = {.resource = resource, .ops = ops, .arena = &mem};
    char *copy = (char *)arena_str(&mem, str_of(text)).p;
    for (char *save, *p = strtok_r(copy, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
        struct config_op *op = &ops[c.ops_n++];
        op->type = *p == '+' ? CONFIG_APPEND : *p == '-' ? CONFIG_SUBTRACT : *p == '!';
        p += op->type != CONFIG_SET;
        char *eq = strchr(p, '=');
        op->value = eq ? str_of(eq + 1) : STR_NULL;
        if (eq)
            *eq = 0;
        op->name = str_of(p);
    }
    return c;
}

static const char *text_of(struct config_list l)
{
    const char *out = "";
    for (int i = 0; i < l.n; i++)
        out = arena_printf(&mem, "%s%s%.*s=%.*s", out, i ? ";" : "", STR_ARG(l.v[i].name),
                           STR_ARG(l.v[i].value));
    return out;
}

static void makes(const char *old, const char *change, const char *expected)
{
    struct config_change c = change_of(RESOURCE_TOPIC, change);
    struct config_list out;
    assert_int_equal(config_change_look(&c), KERR_NONE);
    assert_int_equal(config_change_make(&c, list_of(old), &out), KERR_NONE);
    assert_string_equal(text_of(out), expected);
}

static void operations_change_what_they_name(void **state)
{
    makes("", "a=1", "a=1");
    makes("a=1;b=2", "a=3", "a=3;b=2");
    makes("a=1;b=2", "!a", "b=2");
    makes("a=1;b=2", "!c", "a=1;b=2");
    makes("a=1;b=2;c=3", "!a;!b;!c", "");
    makes("a=1", "!a;b=2", "b=2");
    makes("a=1", "", "a=1");
    makes("a=1", "b=", "a=1;b=");
}

static void lists_grow_and_shrink(void **state)
{
    makes("", "+cleanup.policy=compact", "cleanup.policy=delete,compact");
    makes("cleanup.policy=compact", "+cleanup.policy=delete", "cleanup.policy=compact,delete");
    makes("cleanup.policy=compact", "+cleanup.policy=compact", "cleanup.policy=compact");
    makes("cleanup.policy=compact,delete", "-cleanup.policy=delete", "cleanup.policy=compact");
    makes("cleanup.policy=compact", "-cleanup.policy=delete", "cleanup.policy=compact");
    makes("", "-cleanup.policy=delete", "cleanup.policy=");
    makes("", "+leader.replication.throttled.replicas=0:1,1:2",
          "leader.replication.throttled.replicas=0:1,1:2");
    makes("leader.replication.throttled.replicas=0:1,1:2,2:3",
          "-leader.replication.throttled.replicas=1:2, 0:1",
          "leader.replication.throttled.replicas=2:3");
}

/* As long as a request can make it; were each looked for among all, this would take minutes. */
static void long_changes_are_no_work(void **state)
{
    enum { N = 200000 };
    struct config_op *ops = calloc(N, sizeof(*ops));
    struct config_list old = {calloc(N, sizeof(*old.v)), N}, out;
    for (int i = 0; i < N; i++) {
        old.v[i] = (struct config_pair){str_of(arena_printf(&mem, "k%d", i)), STR_LIT("0")};
        /* every third stays, goes, or is changed; and as many are new */
        const char *name = arena_printf(&mem, i % 3 ? "k%d" : "new%d", i);
        ops[i] =
            (struct config_op){i % 3 == 1 ? CONFIG_DELETE : CONFIG_SET, str_of(name), STR_LIT("1")};
    }
    struct config_change c = {.resource = RESOURCE_BROKER, .ops = ops, .ops_n = N, .arena = &mem};
    assert_int_equal(config_change_look(&c), KERR_NONE);
    assert_int_equal(config_change_make(&c, old, &out), KERR_NONE);
    assert_int_equal(out.n, N);
    int changed = 0;
    for (int i = 0; i < out.n; i++)
        changed += str_eqz(out.v[i].value, "1");
    assert_int_equal(changed, 133333);
    free(old.v);
    free(ops);
}

static void whole_changes_forget_what_they_do_not_name(void **state)
{
    struct config_change c = change_of(RESOURCE_TOPIC, "a=1");
    struct config_list out;
    c.whole = true;
    assert_int_equal(config_change_make(&c, list_of("a=0;b=2"), &out), KERR_NONE);
    assert_string_equal(text_of(out), "a=1");
}

static void look_refuses(enum config_resource resource, const char *change, const char *words)
{
    struct config_change c = change_of(resource, change);
    struct config_list out;
    enum kerr error = config_change_look(&c);
    if (error == KERR_NONE)
        error = config_change_make(&c, list_of(""), &out);
    assert_int_equal(error, KERR_INVALID_REQUEST);
    if (!strstr(c.message, words))
        fail_msg("%s: %s", change, c.message);
}

static void malformed_changes_are_refused(void **state)
{
    look_refuses(RESOURCE_TOPIC, "a=1;a=2", "duplicate config keys");
    look_refuses(RESOURCE_TOPIC, "a=1;!a", "duplicate config keys");
    look_refuses(RESOURCE_TOPIC, "a;b=1;+c", "Null value not supported for : a, c");
    look_refuses(RESOURCE_TOPIC, "+retention.ms=5", "append is not allowed");
    look_refuses(RESOURCE_TOPIC, "-retention.ms=5", "subtract is not allowed");
    look_refuses(RESOURCE_BROKER, "+no.such.key=5", "append is not allowed");
    struct config_change c = change_of(RESOURCE_TOPIC, "a=1");
    ((struct config_op *)c.ops)[0].type = 4;
    assert_int_equal(config_change_look(&c), KERR_INVALID_REQUEST);
    assert_string_equal(c.message, "Unknown operations type 4");
    ((struct config_op *)c.ops)[0].type = -1;
    assert_int_equal(config_change_look(&c), KERR_INVALID_REQUEST);
}

static void a_list_of_an_unknown_topic_key_is_refused(void **state)
{
    struct config_change c = change_of(RESOURCE_TOPIC, "+no.such=5");
    struct config_list out;
    assert_int_equal(config_change_make(&c, list_of(""), &out), KERR_INVALID_CONFIG);
    assert_string_equal(c.message, "Unknown topic config name: no.such");
}

static void broker_lists_grow_too(void **state)
{
    struct config_change c = change_of(RESOURCE_BROKER, "+log.cleanup.policy=compact");
    struct config_list out;
    assert_int_equal(config_change_make(&c, list_of(""), &out), KERR_NONE);
    assert_string_equal(text_of(out), "log.cleanup.policy=delete,compact");
}

static void checked(const char *list, enum kerr expected, const char *words)
{
    struct config_change c = {.resource = RESOURCE_TOPIC, .arena = &mem};
    assert_int_equal(config_change_check_topic(&c, STR_LIT("t"), list_of(list)), expected);
    if (words && (!c.message || !strstr(c.message, words)))
        fail_msg("%s: %s", list, c.message ? c.message : "null");
}

static void topics_have_legal_settings_only(void **state)
{
    checked("", KERR_NONE, NULL);
    checked("retention.ms=5;cleanup.policy=compact,delete", KERR_NONE, NULL);
    checked("retention.ms=5;what=1", KERR_INVALID_CONFIG, "Unknown topic config name: what");
    checked("what=1;retention.ms=x", KERR_INVALID_CONFIG, "what");
    checked("retention.ms=x", KERR_INVALID_REQUEST,
            "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): ");
    checked("cleanup.policy=shred", KERR_INVALID_REQUEST, "shred");
    checked("min.compaction.lag.ms=10;max.compaction.lag.ms=5", KERR_INVALID_CONFIG, "(10) >");
    checked("min.compaction.lag.ms=5;max.compaction.lag.ms=5", KERR_NONE, NULL);
}

static void brokers_have_what_may_change_while_they_run(void **state)
{
    char err[128];
    struct config *config;
    assert_int_equal(config_load(props_new(), &config, err, sizeof(err)), 0);
    struct dynamic_config *d = dynamic_config_new(config);
    config_free(config);
    struct config_change c = {.resource = RESOURCE_BROKER, .arena = &mem};
    assert_int_equal(config_change_check_broker(&c, d, LAYER_BROKER, list_of("log.retention.ms=1")),
                     KERR_NONE);
    assert_int_equal(config_change_check_broker(&c, d, LAYER_BROKER, list_of("log.dirs=/x")),
                     KERR_INVALID_REQUEST);
    assert_non_null(strstr(c.message, "log.dirs"));
    struct config_pair odd = {STR_LIT("a\0b"), STR_LIT("1")};
    assert_int_equal(config_change_check_broker(&c, d, LAYER_BROKER, (struct config_list){&odd, 1}),
                     KERR_INVALID_REQUEST);
    dynamic_config_free(d);
}

#define with_arena(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

UNIT_MAIN(with_arena(operations_change_what_they_name), with_arena(lists_grow_and_shrink),
          with_arena(long_changes_are_no_work),
          with_arena(whole_changes_forget_what_they_do_not_name),
          with_arena(malformed_changes_are_refused),
          with_arena(a_list_of_an_unknown_topic_key_is_refused), with_arena(broker_lists_grow_too),
          with_arena(topics_have_legal_settings_only),
          with_arena(brokers_have_what_may_change_while_they_run))
