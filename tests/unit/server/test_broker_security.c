/* What listeners are secured with: a listener for which nothing was made, or something else, gets
 * nothing, so that it is not bound; it would be open to everybody. */
#include "server/broker_security.h"

#include "unit.h"

#define JAAS                                                                                  \
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b " \
    "user_a=b;"

static const struct config *config_of(const char *listeners, const char *map)
{
    struct props *given = props_new();
    struct config *c;
    char err[2048] = "";
    props_set(given, "listeners", listeners);
    props_set(given, "listener.security.protocol.map", map);
    props_set(given, "inter.broker.listener.name", "OPEN");
    props_set(given, "sasl.enabled.mechanisms", "PLAIN");
    props_set(given, "sasl.jaas.config", JAAS);
    if (config_load(given, &c, err, sizeof(err)))
        fail_msg("%s", err);
    return c;
}

static const struct listener_config *named(const struct config *c, const char *name)
{
    for (int i = 0; i < c->listeners_n; i++)
        if (strcmp(c->listeners[i].name, name) == 0)
            return &c->listeners[i];
    fail();
    return NULL;
}

static struct broker_security *made(const struct config *c)
{
    struct broker_security *s;
    char err[1024] = "";
    if (broker_security_new(c, NULL, NULL, clock_real(), &s, err, sizeof(err)))
        fail_msg("%s", err);
    return s;
}

static void a_listener_that_was_not_there_gets_nothing_before_it_is_secured(void **state)
{
    const struct config *before = config_of("OPEN://:1", "OPEN:PLAINTEXT");
    const struct config *now =
        config_of("OPEN://:1,LOGIN://:2", "OPEN:PLAINTEXT,LOGIN:SASL_PLAINTEXT");
    struct broker_security *s = made(before);
    char err[1024] = "";
    assert_non_null(broker_security_listen(s, named(now, "OPEN")));
    assert_null(broker_security_listen(s, named(now, "LOGIN")));
    assert_int_equal(broker_security_apply(s, now, err, sizeof(err)), 0);
    const struct listen_security *l = broker_security_listen(s, named(now, "LOGIN"));
    assert_non_null(l);
    assert_non_null(l->secured);
    assert_null(broker_security_listen(s, named(now, "OPEN"))->secured);
    broker_security_free(s);
    config_unref(before);
    config_unref(now);
}

static void what_was_made_for_another_protocol_does_not_do(void **state)
{
    static const char *const maps[] = {"OPEN:PLAINTEXT,X:SASL_PLAINTEXT", "OPEN:PLAINTEXT,X:SSL",
                                       "OPEN:PLAINTEXT,X:SASL_SSL"};
    const struct config *before = config_of("OPEN://:1,X://:2", "OPEN:PLAINTEXT,X:PLAINTEXT");
    struct broker_security *s = made(before);
    assert_non_null(broker_security_listen(s, named(before, "X")));
    for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
        const struct config *now = config_of("OPEN://:1,X://:2", maps[i]);
        assert_null(broker_security_listen(s, named(now, "X")));
        config_unref(now);
    }
    broker_security_free(s);
    config_unref(before);
}

/* Its key store is not set: what is there of it lets nobody in. */
static void one_that_cannot_be_secured_is_told_and_stays_closed(void **state)
{
    const struct config *before = config_of("OPEN://:1", "OPEN:PLAINTEXT");
    const struct config *now = config_of("OPEN://:1,X://:2", "OPEN:PLAINTEXT,X:SASL_SSL");
    struct broker_security *s = made(before);
    char err[1024] = "";
    assert_true(broker_security_apply(s, now, err, sizeof(err)) < 0);
    assert_non_null(strstr(err, "ssl.keystore.location"));
    const struct listen_security *l = broker_security_listen(s, named(now, "X"));
    assert_true(!l || (l->tls && l->secured));
    assert_non_null(broker_security_listen(s, named(now, "OPEN")));
    broker_security_free(s);
    config_unref(before);
    config_unref(now);
}

UNIT_MAIN(unit_test(a_listener_that_was_not_there_gets_nothing_before_it_is_secured),
          unit_test(what_was_made_for_another_protocol_does_not_do),
          unit_test(one_that_cannot_be_secured_is_told_and_stays_closed))
