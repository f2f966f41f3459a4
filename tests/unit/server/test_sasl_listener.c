/* What a SASL listener's settings make of it: prefixes, mechanisms, lifetimes, complaints. */
#include "server/sasl_listener.h"

#include <errno.h>

#include "net/peer_sasl.h"
#include "unit.h"

#define PLAIN "org.apache.kafka.common.security.plain.PlainLoginModule required "
#define SCRAM "org.apache.kafka.common.security.scram.ScramLoginModule required "

static const struct config *config_of(const char *text)
{
    struct props *given = props_new();
    struct config *c;
    char err[2048] = "";
    int line;
    assert_int_equal(props_parse(given, text, strlen(text), &line), 0);
    props_set(given, "listeners", "IN://:1,OUT://:2,PLAINTEXT://:3");
    props_set(given, "listener.security.protocol.map",
              "IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT");
    props_set(given, "inter.broker.listener.name", "IN");
    if (config_load(given, &c, err, sizeof(err)))
        fail_msg("%s", err);
    return c;
}

static struct sasl_listener *make(const char *text, const char *listener)
{
    const struct config *c = config_of(text);
    struct sasl_listener *l;
    char err[1024] = "";
    if (sasl_listener_new(c, listener, NULL, NULL, &l, err, sizeof(err)))
        fail_msg("%s", err);
    config_unref(c);
    return l;
}

static void a_listener_has_its_own_before_the_general(void **state)
{
    static const char text[] =
        "sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN\n"
        "connections.max.reauth.ms=1000\n"
        "sasl.server.max.receive.size=2000\n"
        "sasl.jaas.config=" PLAIN "user_a=b;\n"
        "listener.name.out.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,PLAIN\n"
        "listener.name.out.plain.sasl.jaas.config=" PLAIN "user_c=d;\n"
        "listener.name.out.scram-sha-256.connections.max.reauth.ms=5000\n"
        "listener.name.out.connection.failed.authentication.delay.ms=7\n"
        "listener.name.out.sasl.server.max.receive.size=3000\n";
    struct sasl_listener *in = make(text, "IN"), *out = make(text, "OUT");
    assert_int_equal(in->offered_n, 2);
    assert_int_equal(in->offered[0], SASL_SCRAM_SHA_512);
    assert_int_equal(in->max_reauth_ms[SASL_PLAIN], 1000);
    assert_int_equal(in->max_receive, 2000);
    assert_int_equal(in->failed_delay_ms, 100);
    assert_null(in->configs[SASL_SCRAM_SHA_256]);
    assert_int_equal(out->offered_n, 2);
    assert_non_null(out->configs[SASL_SCRAM_SHA_256]);
    assert_int_equal(out->max_reauth_ms[SASL_SCRAM_SHA_256], 5000);
    assert_int_equal(out->max_reauth_ms[SASL_PLAIN], 1000);
    assert_int_equal(out->max_receive, 3000);
    assert_int_equal(out->failed_delay_ms, 7);
    sasl_listener_free(in);
    sasl_listener_free(out);
}

static void what_is_wrong_names_the_setting(void **state)
{
    static const struct {
        const char *text, *says;
    } v[] = {
        {"", "sasl.enabled.mechanisms: it is not set"},
        {"sasl.enabled.mechanisms=GSSAPI\n", "GSSAPI, the default: Kerberos is not served"},
        {"sasl.enabled.mechanisms=\n", "it names no mechanism"},
        {"sasl.enabled.mechanisms=PLAIN,X\nsasl.jaas.config=" PLAIN "user_a=b;\n",
         "X is not served"},
        {"sasl.enabled.mechanisms=PLAIN\n", "plain.sasl.jaas.config: is not set"},
        /* one of another mechanism is not meant, if there are several */
        {"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\nsasl.jaas.config=" SCRAM ";\n",
         "plain.sasl.jaas.config: is not set"},
        {"sasl.enabled.mechanisms=PLAIN\nsasl.jaas.config=" SCRAM ";\n", "the login module is"},
        {"sasl.enabled.mechanisms=PLAIN\nsasl.jaas.config=" PLAIN "user_a=\"secret\n",
         "the quote of option 1 does not end"},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        const struct config *c = config_of(v[i].text);
        struct sasl_listener *l;
        char err[1024] = "";
        assert_int_equal(sasl_listener_new(c, "IN", NULL, NULL, &l, err, sizeof(err)), -EINVAL);
        if (!strstr(err, v[i].says) || !strstr(err, "listener IN") || strstr(err, "secret"))
            fail_msg("%zu: %s", i, err);
        config_unref(c);
    }
}

static int peer_of(const char *text, char *err, size_t err_n)
{
    const struct config *c = config_of(text);
    struct peer_auth *auth;
    int rc = sasl_listener_peer(c, "IN", clock_real(), &auth, err, err_n);
    peer_sasl_free(auth);
    config_unref(c);
    return rc;
}

static void brokers_log_in_at_each_other(void **state)
{
    char err[1024] = "";
    assert_int_equal(peer_of("sasl.mechanism.inter.broker.protocol=PLAIN\n"
                             "listener.name.in.plain.sasl.jaas.config=" PLAIN
                             "username=u password=p user_u=p;\n",
                             err, sizeof(err)),
                     0);
    assert_int_equal(peer_of("", err, sizeof(err)), -EINVAL);
    assert_non_null(strstr(err, "sasl.mechanism.inter.broker.protocol: it is not set, or GSSAPI"));
    assert_int_equal(peer_of("sasl.mechanism.inter.broker.protocol=SCRAM-SHA-256\n"
                             "sasl.jaas.config=" SCRAM "username=u;\n",
                             err, sizeof(err)),
                     -EINVAL);
    assert_non_null(strstr(err, "it has no password"));
    const struct config *c = config_of("control.plane.listener.name=OUT\n");
    static const bool brokers[] = {true, true, false};
    for (int i = 0; i < c->listeners_n; i++)
        assert_int_equal(sasl_listener_for_brokers(c, &c->listeners[i]), brokers[i]);
    config_unref(c);
}

UNIT_MAIN(unit_test(a_listener_has_its_own_before_the_general),
          unit_test(what_is_wrong_names_the_setting), unit_test(brokers_log_in_at_each_other))
