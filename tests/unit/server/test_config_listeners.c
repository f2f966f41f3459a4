/* listeners, advertised.listeners and what hangs on them. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/config.h"

static char err[512];

static int load(const char *text, struct config **out)
{
    struct props *p = props_new();
    assert_int_equal(props_parse(p, text, strlen(text), NULL), 0);
    return config_load(p, out, err, sizeof(err));
}

static struct config *loaded(const char *text)
{
    struct config *c;
    if (load(text, &c) != 0)
        fail_msg("refused: %s", err);
    return c;
}

static void refused(const char *text, const char *words)
{
    struct config *c;
    assert_int_equal(load(text, &c), -EINVAL);
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *save, *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
        if (!strstr(err, w))
            fail_msg("%s: \"%s\" lacks \"%s\"", text, err, w);
}

static void check(const struct config *c, int i, const char *name, const char *host, int port,
                  const char *advertised, int advertised_port)
{
    const struct listener_config *l = &c->listeners[i];
    assert_string_equal(l->name, name);
    assert_string_equal(l->host, host);
    assert_int_equal(l->port, port);
    if (!advertised) {
        assert_null(l->advertised_host);
        return;
    }
    assert_string_equal(l->advertised_host, advertised);
    assert_int_equal(l->advertised_port, advertised_port);
}

static void advertised_is_the_same_when_not_set(void **state)
{
    struct config *c = loaded("listeners=PLAINTEXT://127.0.0.1:0");
    assert_int_equal(c->listeners_n, 1);
    check(c, 0, "PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0);
    config_free(c);
    c = loaded("listeners=plaintext://[::1]:9092, SSL://h.example:9093");
    assert_int_equal(c->listeners_n, 2);
    check(c, 0, "PLAINTEXT", "::1", 9092, "::1", 9092);
    check(c, 1, "SSL", "h.example", 9093, "h.example", 9093);
    assert_int_equal(c->listeners[1].security_protocol, 1);
    config_free(c);
}

static void an_empty_host_advertises_the_machines_name(void **state)
{
    struct config *c = loaded("listeners=PLAINTEXT://:9092");
    assert_string_equal(c->listeners[0].host, "");
    assert_true(strlen(c->listeners[0].advertised_host) > 0);
    config_free(c);
}

/* Two names behind one load balancer; equal ports on different addresses. */
static void advertised_addresses_may_be_shared(void **state)
{
    struct config *c =
        loaded("listeners=A://127.0.0.1:9092,B://127.0.0.2:9092\n"
               "advertised.listeners=A://lb:9000,B://lb:9000\ninter.broker.listener.name=a\n"
               "listener.security.protocol.map=A:PLAINTEXT,b:SASL_SSL");
    check(c, 0, "A", "127.0.0.1", 9092, "lb", 9000);
    check(c, 1, "B", "127.0.0.2", 9092, "lb", 9000);
    assert_int_equal(c->listeners[1].security_protocol, 3);
    assert_string_equal(c->inter_broker_listener, "A");
    config_free(c);
    refused("listeners=A://127.0.0.1:9092,B://127.0.0.1:9092\n"
            "inter.broker.listener.name=A\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
            "listeners|B://127.0.0.1:9092|listener A");
    config_free(loaded("listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"));
}

static void a_listener_may_stay_unadvertised(void **state)
{
    struct config *c = loaded("listeners=PLAINTEXT://:9092,SSL://:9093\n"
                              "advertised.listeners=PLAINTEXT://h:1");
    check(c, 0, "PLAINTEXT", "", 9092, "h", 1);
    check(c, 1, "SSL", "", 9093, NULL, 0);
    config_free(c);
}

static void old_keys_count_when_listeners_is_not_set(void **state)
{
    struct config *c = loaded("port=1234\nhost.name=127.0.0.1");
    check(c, 0, "PLAINTEXT", "127.0.0.1", 1234, "127.0.0.1", 1234);
    config_free(c);
    c = loaded("port=1234\nadvertised.host.name=h");
    check(c, 0, "PLAINTEXT", "", 1234, "h", 1234);
    config_free(c);
    c = loaded("host.name=127.0.0.1\nadvertised.port=7");
    check(c, 0, "PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 7);
    config_free(c);
    c = loaded("listeners=PLAINTEXT://a:5\nport=1234\nhost.name=b\n"
               "advertised.listeners=PLAINTEXT://c:6\nadvertised.host.name=d\nadvertised.port=7");
    check(c, 0, "PLAINTEXT", "a", 5, "c", 6);
    config_free(c);
}

static void malformed_listeners_are_refused(void **state)
{
    static const char *const bad[] = {"PLAINTEXT",
                                      "PLAINTEXT:9092",
                                      "://h:1",
                                      "PLAINTEXT://h",
                                      "PLAINTEXT://h:",
                                      "PLAINTEXT://h:x",
                                      "PLAINTEXT://h:65536",
                                      "PLAINTEXT://h:-1",
                                      "PLAINTEXT://h:999999",
                                      "PLAINTEXT://h o:1",
                                      ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[128];
        snprintf(text, sizeof(text), "listeners=%s", bad[i]);
        refused(text, "listeners");
    }
    refused("listeners=FOO://h:1", "listeners|FOO|listener.security.protocol.map");
    refused("listeners=PLAINTEXT://h:1,plaintext://h:2", "listeners|name of its own");
    refused("listener.security.protocol.map=A:TLS",
            "listener.security.protocol.map|A:TLS|SASL_SSL");
    refused("listeners=PLAINTEXT://0.0.0.0:9092", "0.0.0.0|listeners|advertised");
    config_free(loaded("listeners=PLAINTEXT://0.0.0.0:9092\n"
                       "advertised.listeners=PLAINTEXT://h:9092"));
    refused("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners|0.0.0.0");
    refused("advertised.listeners=SSL://h:9092", "advertised.listeners|SSL");
    refused("advertised.listeners=PLAINTEXT://h:1,PLAINTEXT://h:2", "advertised.listeners|twice");
}

static void the_inter_broker_listener_must_be_advertised(void **state)
{
    struct config *c = loaded("listeners=PLAINTEXT://:9092,SSL://:9093\n"
                              "security.inter.broker.protocol=SSL");
    assert_string_equal(c->inter_broker_listener, "SSL");
    config_free(c);
    refused("listeners=A://h:1\nlistener.security.protocol.map=A:PLAINTEXT",
            "security.inter.broker.protocol|PLAINTEXT");
    refused("listeners=SSL://h:1", "security.inter.broker.protocol|PLAINTEXT");
    refused("inter.broker.listener.name=X", "inter.broker.listener.name|X");
    refused("inter.broker.listener.name=PLAINTEXT\nsecurity.inter.broker.protocol=PLAINTEXT",
            "inter.broker.listener.name|security.inter.broker.protocol");
    refused("listeners=PLAINTEXT://h:1,SSL://h:2\nadvertised.listeners=PLAINTEXT://h:1\n"
            "inter.broker.listener.name=SSL",
            "inter.broker.listener.name|SSL|advertised");
    refused("control.plane.listener.name=PLAINTEXT", "control.plane.listener.name|PLAINTEXT");
    config_free(loaded("listeners=PLAINTEXT://h:1,SSL://h:2\ncontrol.plane.listener.name=SSL"));
}

/* The mechanism's, the listener's, everybody's, the default. */
static void a_listener_looks_its_settings_up(void **state)
{
    struct config *c = loaded("listeners=IN://:0\nlistener.security.protocol.map=IN:PLAINTEXT\n"
                              "inter.broker.listener.name=IN\n"
                              "ssl.keystore.location=/all\n"
                              "listener.name.in.ssl.keystore.location = /own  \n"
                              "listener.name.in.scram-sha-256.sasl.jaas.config=a\n"
                              "listener.name.in.sasl.jaas.config=b\n");
    assert_string_equal(config_listener_string(c, "IN", NULL, "ssl.keystore.location"), "/own");
    assert_string_equal(config_listener_string(c, "OUT", NULL, "ssl.keystore.location"), "/all");
    assert_string_equal(config_listener_string(c, "IN", NULL, "ssl.client.auth"), "none");
    assert_null(config_listener_string(c, "IN", NULL, "ssl.truststore.location"));
    assert_string_equal(config_listener_string(c, "IN", "SCRAM-SHA-256", "sasl.jaas.config"), "a");
    assert_string_equal(config_listener_string(c, "IN", "PLAIN", "sasl.jaas.config"), "b");
    assert_null(config_listener_string(c, "OUT", "PLAIN", "sasl.jaas.config"));
    config_free(c);
}

UNIT_MAIN(unit_test(a_listener_looks_its_settings_up),
          unit_test(advertised_is_the_same_when_not_set),
          unit_test(an_empty_host_advertises_the_machines_name),
          unit_test(advertised_addresses_may_be_shared),
          unit_test(a_listener_may_stay_unadvertised),
          unit_test(old_keys_count_when_listeners_is_not_set),
          unit_test(malformed_listeners_are_refused),
          unit_test(the_inter_broker_listener_must_be_advertised))
