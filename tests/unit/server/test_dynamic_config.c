/* Dynamic settings: what may be changed at which level, what is in force, where it comes from. */
#include "server/dynamic_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "server/topic_settings.h"
#include "unit.h"

static char lines[4096];

static void keep_line(enum logline_level level, const char *line, void *arg)
{
    size_t at = strlen(lines);
    snprintf(lines + at, sizeof(lines) - at, "%s\n", line);
}

static struct props *props_of(const char *text)
{
    struct props *p = props_new();
    assert_int_equal(props_parse(p, text, strlen(text), NULL), 0);
    return p;
}

static struct dynamic_config *started(const char *text)
{
    struct config *c;
    char err[256];
    logline_set_sink(keep_line, NULL);
    if (config_load(props_of(text), &c, err, sizeof(err)) != 0)
        fail_msg("refused: %s", err);
    struct dynamic_config *d = dynamic_config_new(c);
    config_free(c);
    lines[0] = 0;
    return d;
}

static void done(struct dynamic_config *d)
{
    dynamic_config_free(d);
    logline_set_sink(NULL, NULL);
}

static bool set(struct dynamic_config *d, enum config_layer layer, const char *text)
{
    struct props *p = props_of(text);
    struct config_pair pairs[8];
    int n = (int)props_count(p);
    for (int i = 0; i < n; i++) {
        const char *key, *value;
        props_at(p, (size_t)i, &key, &value);
        pairs[i] = (struct config_pair){str_of(key), str_of(value)};
    }
    bool changed = dynamic_config_set(d, layer, (struct config_list){pairs, n});
    props_free(p);
    return changed;
}

static int64_t value(struct dynamic_config *d, const char *name)
{
    const struct config *c = dynamic_config_ref(d);
    int64_t v = config_int(c, name);
    config_unref(c);
    return v;
}

static struct log_config log_defaults(struct dynamic_config *d)
{
    const struct config *c = dynamic_config_ref(d);
    struct log_config v = c->log_defaults;
    config_unref(c);
    return v;
}

static void this_brokers_settings_win_over_those_of_all(void **state)
{
    struct dynamic_config *d = started("message.max.bytes=1000");
    assert_int_equal(value(d, "message.max.bytes"), 1000);
    assert_true(set(d, LAYER_CLUSTER, "message.max.bytes=2000"));
    assert_int_equal(value(d, "message.max.bytes"), 2000);
    assert_int_equal(log_defaults(d).max_message_bytes, 2000);
    assert_true(set(d, LAYER_BROKER, "message.max.bytes=3000"));
    assert_int_equal(value(d, "message.max.bytes"), 3000);
    assert_true(set(d, LAYER_CLUSTER, "message.max.bytes=2500\nnum.io.threads=9"));
    assert_int_equal(value(d, "message.max.bytes"), 3000);
    assert_int_equal(value(d, "num.io.threads"), 9);
    assert_true(set(d, LAYER_BROKER, ""));
    assert_int_equal(value(d, "message.max.bytes"), 2500);
    assert_true(set(d, LAYER_CLUSTER, ""));
    assert_int_equal(value(d, "message.max.bytes"), 1000);
    assert_int_equal(value(d, "num.io.threads"), 8);
    done(d);
}

static void nothing_new_is_no_change(void **state)
{
    struct dynamic_config *d = started("");
    assert_false(set(d, LAYER_BROKER, ""));
    assert_true(set(d, LAYER_BROKER, "log.retention.bytes=5"));
    const struct config *c = dynamic_config_ref(d);
    assert_false(set(d, LAYER_BROKER, "log.retention.bytes=5"));
    const struct config *same = dynamic_config_ref(d);
    assert_ptr_equal(c, same);
    config_unref(c);
    config_unref(same);
    done(d);
}

static void a_dynamic_key_hides_its_family_below(void **state)
{
    struct dynamic_config *d = started("log.retention.minutes=1\nlog.roll.hours=1");
    assert_true(set(d, LAYER_CLUSTER, "log.retention.ms=7200000"));
    assert_int_equal(log_defaults(d).retention_ms, 7200000);
    assert_true(set(d, LAYER_BROKER, "log.retention.ms=-1\nlog.roll.ms=5000"));
    assert_int_equal(log_defaults(d).retention_ms, -1);
    assert_int_equal(log_defaults(d).segment_ms, 5000);
    assert_true(set(d, LAYER_BROKER, ""));
    assert_true(set(d, LAYER_CLUSTER, ""));
    assert_int_equal(log_defaults(d).retention_ms, 60000);
    assert_int_equal(log_defaults(d).segment_ms, 3600000);
    done(d);
}

static void settings_in_use_stay_while_others_come(void **state)
{
    struct dynamic_config *d = started("");
    const struct config *old = dynamic_config_ref(d);
    assert_true(set(d, LAYER_BROKER, "log.retention.bytes=77"));
    assert_int_equal(config_int(old, "log.retention.bytes"), -1);
    assert_int_equal(value(d, "log.retention.bytes"), 77);
    config_unref(old);
    done(d);
}

/* NULL = may be stored; else words of the refusal, separated by '|'. */
static void check(struct dynamic_config *d, enum config_layer layer, const char *text,
                  const char *words)
{
    struct props *p = props_of(text);
    bool ok;
    char *problem = dynamic_config_check(d, layer, p, &ok), copy[256];
    if (ok != !words || ok != !problem)
        fail_msg("%s: %s", text, problem ? problem : "allowed");
    snprintf(copy, sizeof(copy), "%s", words ? words : "");
    for (char *save, *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
        if (!strstr(problem, w))
            fail_msg("%s: \"%s\" lacks \"%s\"", text, problem, w);
    free(problem);
    props_free(p);
}

static void what_may_be_changed_is_what_the_table_says(void **state)
{
    struct dynamic_config *d = started("");
    int n;
    const struct config_row *rows = config_rows(&n);
    for (int i = 0; i < n; i++) {
        char text[512];
        if (!rows[i].default_text || rows[i].type == CONFIG_PASSWORD)
            continue;
        snprintf(text, sizeof(text), "%s=%s", rows[i].name, rows[i].default_text);
        if (rows[i].update == UPDATE_READ_ONLY) {
            check(d, LAYER_BROKER, text, rows[i].name);
            check(d, LAYER_CLUSTER, text, rows[i].name);
        } else if (rows[i].update == UPDATE_PER_BROKER) {
            check(d, LAYER_CLUSTER, text, rows[i].name);
        }
    }
    done(d);
}

static void proposals_are_judged(void **state)
{
    struct dynamic_config *d = started("num.io.threads=8");
    check(d, LAYER_BROKER, "log.retention.bytes=10\nlog.cleanup.policy=compact", NULL);
    check(d, LAYER_CLUSTER, "max.connections=10", NULL);
    check(d, LAYER_BROKER, "some.plugins.key=1", NULL);
    check(d, LAYER_BROKER, "", NULL);
    check(d, LAYER_BROKER, "num.partitions=3\nlog.dirs=/x",
          "Cannot update|num.partitions, log.dirs");
    check(d, LAYER_BROKER, "log.retention.bytes=many", "many|log.retention.bytes");
    check(d, LAYER_CLUSTER, "compression.type=pkzip", "pkzip|compression.type");
    check(d, LAYER_CLUSTER, "ssl.client.auth=none", "broker id must be specified|ssl.client.auth");
    check(d, LAYER_BROKER, "ssl.keystore.type=PEM", "per-listener|ssl.keystore.type");
    check(d, LAYER_BROKER, "listener.name.plaintext.ssl.keystore.type=PEM", NULL);
    check(d, LAYER_CLUSTER, "listener.name.plaintext.ssl.keystore.type=PEM", "broker id");
    check(d, LAYER_CLUSTER, "listener.name.plaintext.max.connections=5", NULL);
    check(d, LAYER_CLUSTER, "listener.name.plaintext.max.connections=-5", "max.connections");
    check(d, LAYER_BROKER, "listener.name.plaintext.ssl.key.password=x", "assword");
    check(d, LAYER_BROKER, "num.network.threads=4", NULL);
    check(d, LAYER_BROKER, "listeners=PLAINTEXT://:0", NULL);
    check(d, LAYER_BROKER, "listeners=PLAINTEXT://:0,X://:0", "no protocol|X");
    check(d, LAYER_CLUSTER, "listeners=PLAINTEXT://:0", "broker id must be specified");
    check(d, LAYER_CLUSTER, "max.connections.per.ip=0", "max.connections.per.ip.overrides");
    check(d, LAYER_CLUSTER, "log.cleaner.dedupe.buffer.size=5", "log.cleaner.dedupe.buffer.size");
    done(d);
}

static char *no_port_5(void *arg, const struct config *now, const struct config *then)
{
    ++*(int *)arg;
    return then->listeners[0].port == 5 ? strdup("not 5") : NULL;
}

/* What of a listener may change while it is there. */
static void listeners_change_but_not_what_they_are(void **state)
{
    int asked = 0;
    struct dynamic_config *d =
        started("listeners=A://:1\ninter.broker.listener.name=A\n"
                "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT,C:SSL");
    check(d, LAYER_BROKER, "listeners=A://:1,B://:2", NULL);
    check(d, LAYER_BROKER, "listeners=A://:2", NULL);
    check(d, LAYER_BROKER, "listeners=B://:2", "inter.broker.listener.name|advertised");
    check(d, LAYER_BROKER, "listener.security.protocol.map=A:SSL",
          "Security protocol cannot be updated for existing listener A");
    check(d, LAYER_BROKER, "listener.name.a.sasl.enabled.mechanisms=PLAIN",
          "cannot be updated dynamically for existing listener A");
    check(d, LAYER_BROKER, "listeners=A://:1,B://:2\nlistener.name.b.sasl.enabled.mechanisms=PLAIN",
          NULL);
    check(d, LAYER_BROKER, "listener.name.z.sasl.enabled.mechanisms=PLAIN", NULL);
    assert_true(set(d, LAYER_BROKER,
                    "listeners=A://:1,B://:2\nlistener.name.b.sasl.enabled.mechanisms=PLAIN"));
    check(d, LAYER_BROKER, "listeners=A://:1,B://:2", "existing listener B");
    check(d, LAYER_BROKER, "listeners=A://:1", NULL); /* it goes, with its settings */
    dynamic_config_set_check(d, no_port_5, &asked);
    check(d, LAYER_BROKER, "listeners=A://:5", "not 5");
    check(d, LAYER_BROKER, "listeners=A://:6", NULL);
    assert_int_equal(asked, 2);
    done(d);
}

static void threads_change_by_half_at_most(void **state)
{
    struct dynamic_config *d = started("num.io.threads=8");
    check(d, LAYER_CLUSTER, "num.io.threads=16", NULL);
    check(d, LAYER_CLUSTER, "num.io.threads=17", "double|8");
    check(d, LAYER_CLUSTER, "num.io.threads=4", NULL);
    check(d, LAYER_CLUSTER, "num.io.threads=3", "half|8");
    check(d, LAYER_CLUSTER, "num.io.threads=0", "num.io.threads");
    assert_true(set(d, LAYER_CLUSTER, "num.io.threads=16"));
    check(d, LAYER_CLUSTER, "num.io.threads=32", NULL);
    check(d, LAYER_CLUSTER, "num.io.threads=7", "half|16");
    check(d, LAYER_CLUSTER, "", NULL); /* back to 8 */
    done(d);
}

/* Written by others, or by an older version: the rest is in force. */
static void illegal_parts_of_what_is_stored_are_left_out(void **state)
{
    struct dynamic_config *d = started("");
    assert_true(set(d, LAYER_CLUSTER,
                    "log.retention.bytes=5\nlog.dirs=/x\nmessage.max.bytes=big\n"
                    "ssl.client.auth=required\nunknown.key=1"));
    assert_int_equal(value(d, "log.retention.bytes"), 5);
    assert_int_equal(value(d, "message.max.bytes"), 1048588);
    assert_non_null(strstr(lines, "log.dirs of all brokers is ignored"));
    assert_non_null(strstr(lines, "message.max.bytes"));
    assert_non_null(strstr(lines, "ssl.client.auth"));
    lines[0] = 0;
    assert_false(set(d, LAYER_BROKER, "max.connections.per.ip=0")); /* alone legal, here not */
    assert_non_null(strstr(lines, "cannot be applied"));
    assert_int_equal(value(d, "log.retention.bytes"), 5);
    done(d);
}

static void listeners_have_values_of_their_own(void **state)
{
    struct dynamic_config *d =
        started("listeners=CLIENT://:0\nlistener.security.protocol.map=CLIENT:PLAINTEXT\n"
                "inter.broker.listener.name=CLIENT\nlistener.name.client.max.connections=5");
    const struct config *c = dynamic_config_ref(d);
    assert_int_equal(config_listener_int(c, "CLIENT", "max.connections", 100), 5);
    assert_int_equal(config_listener_int(c, "OTHER", "max.connections", 100), 100);
    config_unref(c);
    assert_true(set(d, LAYER_CLUSTER, "listener.name.client.max.connections=7"));
    c = dynamic_config_ref(d);
    assert_int_equal(config_listener_int(c, "CLIENT", "max.connections", 100), 7);
    config_unref(c);
    done(d);
}

static void synonyms(struct dynamic_config *d, const char *topic_own, const char *expected)
{
    const struct config *c = dynamic_config_ref(d);
    struct props *own = props_of(topic_own);
    struct arena a;
    struct setting s;
    char found[512] = "";
    arena_init(&a, 0);
    assert_int_equal(topic_setting(c, topic_config_find(STR_LIT("retention.ms")), own, &a, &s), 0);
    snprintf(found, sizeof(found), "%s/%d:", s.value, s.source);
    for (int i = 0; i < s.synonyms_n; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), " %d %s=%s",
                 s.synonyms[i].source, s.synonyms[i].name, s.synonyms[i].value);
    assert_string_equal(found, expected);
    arena_free(&a);
    props_free(own);
    config_unref(c);
}

static void sources_are_told_in_order(void **state)
{
    struct dynamic_config *d = started("log.retention.hours=24");
    synonyms(d, "", "86400000/4: 4 log.retention.hours=24 5 log.retention.hours=168");
    set(d, LAYER_CLUSTER, "log.retention.ms=1000");
    synonyms(d, "",
             "1000/3: 3 log.retention.ms=1000 4 log.retention.hours=24 5 log.retention.hours=168");
    set(d, LAYER_BROKER, "log.retention.ms=2000");
    synonyms(d, "retention.ms=7",
             "7/1: 1 retention.ms=7 2 log.retention.ms=2000 3 log.retention.ms=1000 "
             "4 log.retention.hours=24 5 log.retention.hours=168");
    done(d);
}

static void a_brokers_setting_tells_its_sources(void **state)
{
    struct dynamic_config *d = started("message.max.bytes=10");
    struct setting s;
    set(d, LAYER_CLUSTER, "message.max.bytes=20");
    const struct config *c = dynamic_config_ref(d);
    broker_setting(c, config_find(STR_LIT("message.max.bytes")), &s);
    assert_string_equal(s.value, "20");
    assert_int_equal(s.source, SOURCE_BROKERS_DYNAMIC);
    assert_int_equal(s.synonyms_n, 3);
    config_unref(c);
    done(d);
}

UNIT_MAIN(unit_test(this_brokers_settings_win_over_those_of_all),
          unit_test(nothing_new_is_no_change), unit_test(a_dynamic_key_hides_its_family_below),
          unit_test(settings_in_use_stay_while_others_come),
          unit_test(what_may_be_changed_is_what_the_table_says), unit_test(proposals_are_judged),
          unit_test(threads_change_by_half_at_most),
          unit_test(illegal_parts_of_what_is_stored_are_left_out),
          unit_test(listeners_have_values_of_their_own),
          unit_test(listeners_change_but_not_what_they_are), unit_test(sources_are_told_in_order),
          unit_test(a_brokers_setting_tells_its_sources))
