/* Settings as clients see them: value, source, synonyms; and the sets of names of a request. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "server/name_set.h"
#include "server/topic_settings.h"

static struct arena arena;

static struct config *loaded(const char *text)
{
    struct props *p = props_new();
    struct config *c;
    char err[512];
    assert_int_equal(props_parse(p, text, strlen(text), NULL), 0);
    assert_int_equal(config_load(p, &c, err, sizeof(err)), 0);
    return c;
}

/* "TOPIC:a=1 STATIC:b=2 DEFAULT:c=null" */
static const char *synonyms_text(const struct setting *s)
{
    static const char *const names[] = {"", "TOPIC", "", "", "STATIC", "DEFAULT"};
    static char text[512];
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < s->synonyms_n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s:%s=%s", i ? " " : "",
                               names[s->synonyms[i].source], s->synonyms[i].name,
                               s->synonyms[i].value ? s->synonyms[i].value : "null");
    return text;
}

static void check_topic(const char *file, const char *own, const char *name, const char *value,
                        enum config_source source, const char *synonyms)
{
    struct config *c = loaded(file);
    struct props *overrides = props_new();
    if (own)
        props_set(overrides, name, own);
    struct setting s;
    arena_init(&arena, 0);
    assert_int_equal(topic_setting(c, topic_config_find(str_of(name)), overrides, &arena, &s), 0);
    assert_string_equal(s.value, value);
    assert_int_equal(s.source, source);
    assert_string_equal(synonyms_text(&s), synonyms);
    arena_free(&arena);
    props_free(overrides);
    config_free(c);
}

static void a_topics_value_tells_where_it_comes_from(void **state)
{
    check_topic("", NULL, "retention.ms", "604800000", SOURCE_DEFAULT,
                "DEFAULT:log.retention.hours=168");
    check_topic("log.retention.hours=24", NULL, "retention.ms", "86400000", SOURCE_STATIC,
                "STATIC:log.retention.hours=24 DEFAULT:log.retention.hours=168");
    check_topic("log.retention.hours=24\nlog.retention.ms=-1", NULL, "retention.ms", "-1",
                SOURCE_STATIC,
                "STATIC:log.retention.ms=-1 STATIC:log.retention.hours=24 "
                "DEFAULT:log.retention.hours=168");
    check_topic("log.retention.hours=24", "7", "retention.ms", "7", SOURCE_TOPIC,
                "TOPIC:retention.ms=7 STATIC:log.retention.hours=24 "
                "DEFAULT:log.retention.hours=168");
    check_topic("compression.type=zstd", NULL, "compression.type", "zstd", SOURCE_STATIC,
                "STATIC:compression.type=zstd DEFAULT:compression.type=producer");
    check_topic("", NULL, "flush.ms", "9223372036854775807", SOURCE_DEFAULT,
                "DEFAULT:log.flush.scheduler.interval.ms=9223372036854775807");
    check_topic("log.roll.ms=5", NULL, "segment.ms", "5", SOURCE_STATIC,
                "STATIC:log.roll.ms=5 DEFAULT:log.roll.hours=168");
    check_topic("", NULL, "leader.replication.throttled.replicas", "", SOURCE_DEFAULT, "");
    check_topic("log.message.timestamp.difference.max.ms=9", NULL, "message.timestamp.after.max.ms",
                "9", SOURCE_DEFAULT,
                "DEFAULT:log.message.timestamp.after.max.ms=9223372036854775807");
}

static void check_broker(const char *file, const char *name, const char *value,
                         enum config_source source, const char *synonyms)
{
    struct config *c = loaded(file);
    struct setting s;
    broker_setting(c, config_find(str_of(name)), &s);
    if (value)
        assert_string_equal(s.value, value);
    else
        assert_null(s.value);
    assert_int_equal(s.source, source);
    assert_string_equal(synonyms_text(&s), synonyms);
    config_free(c);
}

static void a_brokers_value_tells_where_it_comes_from(void **state)
{
    check_broker("", "num.partitions", "1", SOURCE_DEFAULT, "DEFAULT:num.partitions=1");
    check_broker("num.partitions=3", "num.partitions", "3", SOURCE_STATIC,
                 "STATIC:num.partitions=3 DEFAULT:num.partitions=1");
    check_broker("", "log.retention.ms", NULL, SOURCE_DEFAULT, "");
    check_broker("log.retention.hours=2", "log.retention.ms", NULL, SOURCE_DEFAULT, "");
    check_broker("log.retention.ms=5", "log.retention.ms", "5", SOURCE_STATIC,
                 "STATIC:log.retention.ms=5 DEFAULT:log.retention.hours=168");
    check_broker("log.retention.ms=5", "log.retention.hours", "168", SOURCE_DEFAULT,
                 "DEFAULT:log.retention.hours=168");
    check_broker("password.encoder.secret=x", "password.encoder.secret", NULL, SOURCE_STATIC,
                 "STATIC:password.encoder.secret=null");
}

static void a_name_set_finds_what_stands_there_twice(void **state)
{
    struct name_set s;
    char names[200][16];
    arena_init(&arena, 0);
    assert_int_equal(name_set_init(&s, &arena, 200 + 3), 0);
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        assert_true(name_set_add(&s, str_of(names[i])));
    }
    assert_true(name_set_add(&s, STR_LIT("")));
    assert_false(name_set_add(&s, STR_LIT("n7")));
    assert_false(name_set_add(&s, STR_LIT("")));
    for (int i = 0; i < 200; i++) {
        assert_true(name_set_has(&s, str_of(names[i])));
        assert_int_equal(name_set_twice(&s, str_of(names[i])), i == 7);
    }
    assert_true(name_set_twice(&s, STR_LIT("")));
    assert_false(name_set_has(&s, STR_LIT("n200")));
    arena_free(&arena);
    arena_init(&arena, 100);
    assert_true(name_set_init(&s, &arena, 1000) != 0);
    arena_free(&arena);
}

UNIT_MAIN(unit_test(a_topics_value_tells_where_it_comes_from),
          unit_test(a_brokers_value_tells_where_it_comes_from),
          unit_test(a_name_set_finds_what_stands_there_twice))
