/* Settings of the clients: what is legal, defaults, files, addresses. */
#include "unit.h"

#include <glob.h>
#include <kafka/admin.h>
#include <kafka/consumer.h>
#include <kafka/producer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_conf.h"
#include "project_paths.h"
#include "temp_dir.h"

static void values_are_checked_when_set(void **state)
{
    static const struct {
        const char *key, *value;
        bool legal;
    } cases[] = {
        {"acks", "all", true},
        {"acks", "-1", true},
        {"acks", "2", false},
        {"acks", "", false},
        {"batch.size", "0", true},
        {"batch.size", "-1", false},
        {"batch.size", "2147483647", true},
        {"batch.size", "2147483648", false},
        {"batch.size", "10k", false},
        {"batch.size", "99999999999999999999", false},
        {"buffer.memory", "99999999999", true},
        {"enable.idempotence", "TRUE", true},
        {"enable.idempotence", "yes", false},
        {"compression.type", "zstd", true},
        {"compression.type", "rar", false},
        {"compression.gzip.level", "10", false},
        {"auto.offset.reset", "earliest", true},
        {"auto.offset.reset", "first", false},
        {"sasl.kerberos.ticket.renew.jitter", "0.5", true},
        {"sasl.kerberos.ticket.renew.jitter", "half", false},
        {"my.own.key", "anything", true},
        {"compression.type", "GZIP", false},
        {"compression.gzip.level", "0", false},
        {"compression.gzip.level", "-1", true},
        {"auto.offset.reset", "Latest", false},
        {"security.protocol", "ssl", true},
        {"security.protocol", "tls", false},
        {"group.protocol", "CONSUMER", true},
        {"group.protocol", "new", false},
        {"metadata.recovery.strategy", "rebootstrap", true},
        {"metadata.recovery.strategy", "retry", false},
        {"group.instance.id", "", false},
        {"transactional.id", "", false},
        {"sasl.login.refresh.window.factor", "0.4", false},
        {"sasl.login.refresh.window.jitter", "0.25", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char err[256] = "";
        kafka_conf_t *conf = kafka_conf_new();
        kafka_err_t rc = kafka_conf_set(conf, cases[i].key, cases[i].value, err, sizeof err);
        if ((rc == KAFKA_OK) != cases[i].legal)
            fail_msg("%s=%s: %s", cases[i].key, cases[i].value, err);
        if (!cases[i].legal) {
            assert_non_null(strstr(err, cases[i].key));
            assert_null(kafka_conf_get(conf, cases[i].key));
        } else {
            assert_string_equal(kafka_conf_get(conf, cases[i].key), cases[i].value);
        }
        kafka_conf_free(conf);
    }
}

static void defaults_depend_on_the_client(void **state)
{
    kafka_conf_t *conf = kafka_conf_new();
    assert_int_equal(client_conf_int(conf, SCOPE_PRODUCER, "connections.max.idle.ms"), 540000);
    assert_int_equal(client_conf_int(conf, SCOPE_ADMIN, "connections.max.idle.ms"), 300000);
    assert_int_equal(client_conf_int(conf, SCOPE_PRODUCER, "retries"), 2147483647);
    assert_true(client_conf_bool(conf, SCOPE_PRODUCER, "enable.idempotence"));
    assert_null(client_conf_string(conf, SCOPE_CONSUMER, "group.id"));
    kafka_conf_free(conf);
}

static void files_are_read_and_later_ones_win(void **state)
{
    struct temp_dir dir;
    char err[256] = "";
    temp_dir_make(&dir);
    const char *path = temp_dir_path(&dir, "client.properties");
    FILE *f = fopen(path, "w");
    fputs("# comment\nbatch.size = 17\nacks: 1\n", f);
    fclose(f);
    kafka_conf_t *conf = kafka_conf_new();
    assert_int_equal(kafka_conf_set(conf, "acks", "0", err, sizeof err), KAFKA_OK);
    assert_int_equal(kafka_conf_load(conf, path, err, sizeof err), KAFKA_OK);
    assert_string_equal(kafka_conf_get(conf, "batch.size"), "17");
    assert_string_equal(kafka_conf_get(conf, "acks"), "1");
    f = fopen(path, "w");
    fputs("acks=7\n", f);
    fclose(f);
    assert_int_equal(kafka_conf_load(conf, path, err, sizeof err), KAFKA_ERR_INVALID_ARG);
    assert_non_null(strstr(err, "acks=7"));
    assert_int_equal(kafka_conf_load(conf, "/nowhere/x", err, sizeof err), KAFKA_ERR_INVALID_ARG);
    assert_non_null(strstr(err, "/nowhere/x"));
    kafka_conf_free(conf);
    temp_dir_remove(&dir);
}

static void addresses_are_taken_apart(void **state)
{
    static const struct {
        const char *list;
        int n;
        struct {
            const char *host;
            int port;
        } v[3];
    } cases[] = {
        {"", 0, {{0}}},
        {" , ", 0, {{0}}},
        {"a:1", 1, {{"a", 1}}},
        {" a:1 , b:22,c:65535 ", 3, {{"a", 1}, {"b", 22}, {"c", 65535}}},
        {"[::1]:9092", 1, {{"::1", 9092}}},
        {"[fe80::1]", 1, {{"fe80::1", -1}}},
        {"noport", 1, {{"noport", -1}}},
        {"a:", 1, {{"a", -1}}},
        {"a:x", 1, {{"a", -1}}},
        {"a:99999999999", 1, {{"a", -1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = cases[i].list;
        char host[256];
        int port, n = 0;
        for (; client_next_address(&at, host, &port); n++) {
            assert_true(n < cases[i].n);
            assert_string_equal(host, cases[i].v[n].host);
            assert_int_equal(port, cases[i].v[n].port);
        }
        assert_int_equal(n, cases[i].n);
    }
}

static void expect_refused(const char *const *pairs, bool producer, const char *words)
{
    char err[256] = "";
    kafka_conf_t *conf = kafka_conf_new();
    for (; pairs[0]; pairs += 2)
        assert_int_equal(kafka_conf_set(conf, pairs[0], pairs[1], err, sizeof err), KAFKA_OK);
    if (producer)
        assert_null(kafka_producer_new(conf, err, sizeof err));
    else
        assert_null(kafka_consumer_new(conf, err, sizeof err));
    if (!strstr(err, words))
        fail_msg("%s", err);
    kafka_conf_free(conf);
}

#define SERVER "bootstrap.servers", "127.0.0.1:1"

static void clients_refuse_what_does_not_fit_together(void **state)
{
    expect_refused((const char *[]){NULL}, true, "bootstrap.servers");
    expect_refused((const char *[]){"bootstrap.servers", "a:1,b", NULL}, false, "host:port");
    expect_refused((const char *[]){"bootstrap.servers", "a:0", NULL}, false, "host:port");
    expect_refused((const char *[]){SERVER, "security.protocol", "SSL", "ssl.truststore.type",
                                    "PEM", "ssl.truststore.location", "/no/such/file", NULL},
                   true, "ssl.truststore.location");
    expect_refused((const char *[]){SERVER, "security.protocol", "SASL_SSL", NULL}, true,
                   "sasl.mechanism: it is not set, or GSSAPI, the default");
    expect_refused((const char *[]){SERVER, "security.protocol", "sasl_plaintext", "sasl.mechanism",
                                    "PLAIN", NULL},
                   false, "sasl.jaas.config: is not set");
    expect_refused((const char *[]){SERVER, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism",
                                    "SCRAM-SHA-512", "sasl.jaas.config", "x required;", NULL},
                   false, "the login module is x, and for SCRAM-SHA-512 it is");
    expect_refused((const char *[]){SERVER, "enable.idempotence", "true", "acks", "1", NULL}, true,
                   "acks=all");
    expect_refused((const char *[]){SERVER, "enable.idempotence", "true", "retries", "0", NULL},
                   true, "retries");
    expect_refused((const char *[]){SERVER, "enable.idempotence", "true",
                                    "max.in.flight.requests.per.connection", "6", NULL},
                   true, "max.in.flight");
    expect_refused((const char *[]){SERVER, "delivery.timeout.ms", "10", NULL}, true,
                   "delivery.timeout.ms");
    expect_refused((const char *[]){SERVER, "transactional.id", "t", "acks", "1", NULL}, true,
                   "transactional.id needs acks=all");
    expect_refused(
        (const char *[]){SERVER, "transactional.id", "t", "enable.idempotence", "false", NULL},
        true, "transactional.id needs enable.idempotence=true");
}

/* As Kafka's clients: told when the client is made, not after a minute of attempts. */
static void a_client_needs_one_server_with_an_address(void **state)
{
    expect_refused((const char *[]){"bootstrap.servers", "no.such.host.invalid:9092", NULL}, false,
                   "No resolvable bootstrap urls given in bootstrap.servers: no.such.host.invalid");
    expect_refused((const char *[]){"bootstrap.servers", "a.invalid:1,b.invalid:2", NULL}, true,
                   "No resolvable bootstrap urls");
    assert_true(client_any_resolvable("127.0.0.1:1"));
    assert_true(client_any_resolvable("[::1]:1"));
    assert_true(client_any_resolvable("no.such.host.invalid:1, localhost:2"));
    assert_false(client_any_resolvable("no.such.host.invalid:1"));
}

static void controllers_are_not_asked(void **state)
{
    char err[256] = "";
    kafka_conf_t *conf = kafka_conf_new();
    assert_int_equal(kafka_conf_set(conf, "bootstrap.controllers", "a:1", err, sizeof err), 0);
    assert_null(kafka_admin_new(conf, err, sizeof err));
    assert_non_null(strstr(err, "bootstrap.controllers=a:1"));
    kafka_conf_free(conf);
}

/* ---- docs/client/settings.md ---- */

#define CONF_NO_MIN (-1e300)
#define CONF_NO_MAX (1e300)
#define SCOPE_EVERY (SCOPE_PRODUCER | SCOPE_CONSUMER | SCOPE_ADMIN)

static const struct doc_row {
    int scopes;
    const char *name, *type, *default_text;
    double min, max;
    const char *one_of, *use, *text;
} rows[] = {
#define CLIENT_CONF(scopes, name, type, def, min, max, one_of, use, text) \
    {scopes, name, #type, def, min, max, one_of, #use, text},
#include "client/client_config.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static void print_default(FILE *f, const struct doc_row *r)
{
    fprintf(f, " | %s%s%s | ", r->default_text ? "`" : "", r->default_text ? r->default_text : "",
            r->default_text ? "`" : "");
    if (r->one_of)
        fprintf(f, "%s", r->one_of + (*r->one_of == '~'));
    else if (strcmp(r->type, "BOOL") == 0)
        fprintf(f, "true, false");
    else if (r->min > CONF_NO_MIN && strcmp(r->type, "STRING") != 0 && r->max < CONF_NO_MAX)
        fprintf(f, "%.15g to %.15g", r->min, r->max);
    else if (r->min > CONF_NO_MIN && strcmp(r->type, "STRING") != 0)
        fprintf(f, "%.15g and up", r->min);
}

static void print_effects(FILE *f)
{
    fprintf(
        f, "| setting | clients | default | values | what it does |\n| --- | --- | --- | --- | --- "
           "|\n");
    for (int i = 0; i < ROWS; i++) {
        const struct doc_row *r = &rows[i];
        if (strcmp(r->use, "EFFECT") != 0 && strcmp(r->use, "TLS") != 0 &&
            strcmp(r->use, "SASL") != 0)
            continue;
        fprintf(f, "| `%s` | %s%s%s", r->name, r->scopes & SCOPE_PRODUCER ? "P" : "",
                r->scopes & SCOPE_CONSUMER ? "C" : "", r->scopes & SCOPE_ADMIN ? "A" : "");
        print_default(f, r);
        fprintf(f, " | %s |\n", r->text);
    }
}

static void print_idle(FILE *f, const char *use, bool with_text)
{
    const char *last = "";
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].use, use) != 0 || strcmp(rows[i].name, last) == 0)
            continue;
        last = rows[i].name;
        if (with_text)
            fprintf(f, "- `%s`: %s\n", last, rows[i].text);
        else
            fprintf(f, "- `%s`\n", last);
    }
}

static char *print_settings(void)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(
        f,
        "<!-- Printed by tests/unit/client/test_client_conf.c from src/client/client_config.def: "
        "do not edit. -->\n"
        "# Settings of the clients\n\n"
        "Names, defaults and values are those of Apache Kafka's clients, 2.3 to 3.9. "
        "`kafka_conf_set` and `kafka_conf_load` refuse a value that is not legal; a setting that "
        "is not known, or does nothing, is told in the log when a client is made. P: producer, "
        "C: consumer, A: admin client.\n\n");
    print_effects(f);
    fprintf(f, "\n## Refused or without effect\n\n");
    print_idle(f, "NONE", true);
    print_idle(f, "HOOK", true);
    fprintf(f, "\n## Without meaning in C\n\nAccepted, so that files of Java clients can be read; "
               "they do nothing.\n\n");
    print_idle(f, "JAVA", true);
    fclose(f);
    return text;
}

/* With KAFKAD_PRINT_DOCS set it prints them instead. */
static void the_page_of_settings_is_as_the_table(void **state)
{
    char *expected = print_settings(), *got = NULL;
    size_t n = 0;
    if (getenv("KAFKAD_PRINT_DOCS")) {
        FILE *to = fopen(getenv("KAFKAD_PRINT_DOCS"), "w");
        assert_non_null(to);
        fputs(expected, to);
        fclose(to);
        free(expected);
        return;
    }
    FILE *f = fopen(PROJECT_DIR "/docs/client/settings.md", "r");
    assert_non_null(f);
    ssize_t len = getdelim(&got, &n, 0, f);
    fclose(f);
    if (len < 0 || strcmp(got, expected) != 0)
        fail_msg("docs/client/settings.md is stale: KAFKAD_PRINT_DOCS=docs/client/settings.md "
                 "build/debug/bin/tests/client_test_client_conf");
    free(got);
    free(expected);
}

/* ---- each setting has a test, or a reason ---- */

/* All tests that may set one, but for this file, in one text. */
static char *read_tests(void)
{
    static const char *const where[] = {"/tests/unit/client/*.c", "/tests/unit/net/*.c",
                                        "/tests/integration/*.py", "/tests/clients/*.py"};
    char *all, *text = NULL;
    size_t all_n, n = 0;
    FILE *out = open_memstream(&all, &all_n);
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        char pattern[512];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s%s", PROJECT_DIR, where[i]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++) {
            FILE *f = strstr(found.gl_pathv[k], "test_client_conf.c")
                          ? NULL
                          : fopen(found.gl_pathv[k], "r");
            if (f && getdelim(&text, &n, 0, f) > 0)
                fputs(text, out);
            if (f)
                fclose(f);
        }
        globfree(&found);
    }
    free(text);
    fclose(out);
    for (char *c = all; *c; c++) /* Python's tests give some as arguments */
        *c = *c == '_' ? '.' : *c;
    return all;
}

static bool in_a_name(char c)
{
    return (c >= 'a' && c <= 'z') || c == '.';
}

static bool names(const char *text, const char *key)
{
    for (const char *at = text; (at = strstr(at, key)); at++)
        if (!in_a_name(at[-1]) && !in_a_name(at[strlen(key)]))
            return true;
    return false;
}

/* Settings that do nothing say why; what has an effect is set by some test. Those left out are read
 * by the same code as one that has a test, or wait for theirs. */
static void every_setting_has_a_test_or_a_reason(void **state)
{
    static const char *const without[] = {"sasl.oauthbearer.token.endpoint.url",
                                          "ssl.keystore.certificate.chain", "ssl.keystore.password",
                                          "ssl.truststore.password", "ssl.truststore.type"};
    enum { WITHOUT = sizeof without / sizeof *without };
    static const char *const working[] = {"EFFECT", "TLS", "SASL"};
    char *tests = read_tests();
    int tested = 0, reasoned = 0;
    for (int i = 0; i < ROWS; i++) {
        bool works = false, excused = false;
        for (int k = 0; k < 3; k++)
            works |= strcmp(rows[i].use, working[k]) == 0;
        for (int k = 0; k < WITHOUT; k++)
            excused |= strcmp(rows[i].name, without[k]) == 0;
        if (works && !excused && !names(tests, rows[i].name))
            fail_msg("no test sets %s", rows[i].name);
        if (!works && strlen(rows[i].text) < 4)
            fail_msg("%s does nothing, and no reason is given", rows[i].name);
        tested += works && !excused;
        reasoned += !works;
    }
    assert_true(tested + reasoned + WITHOUT >= 122); /* as many as Apache Kafka's clients have */
    free(tests);
}

static void errors_have_names_and_texts(void **state)
{
    for (int err = -216; err < 120; err++) {
        assert_non_null(kafka_err_name(err));
        assert_true(strlen(kafka_err_text(err)) > 3 || err == 0);
        kafka_err_is_retriable(err);
    }
    assert_string_equal(kafka_err_name(KAFKA_ERR_QUEUE_FULL), "QUEUE_FULL");
    assert_string_equal(kafka_err_name(3), "UNKNOWN_TOPIC_OR_PARTITION");
}

UNIT_MAIN(unit_test(values_are_checked_when_set), unit_test(defaults_depend_on_the_client),
          unit_test(files_are_read_and_later_ones_win), unit_test(addresses_are_taken_apart),
          unit_test(clients_refuse_what_does_not_fit_together),
          unit_test(a_client_needs_one_server_with_an_address),
          unit_test(controllers_are_not_asked), unit_test(the_page_of_settings_is_as_the_table),
          unit_test(every_setting_has_a_test_or_a_reason), unit_test(errors_have_names_and_texts))
