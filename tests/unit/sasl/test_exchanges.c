/* Whole exchanges, the client's side against the broker's: every mechanism, and what goes wrong. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sasl/sasl_client.h"
#include "sasl/sasl_server.h"
#include "sasl/scram.h"
#include "unit.h"

#define PLAIN "org.apache.kafka.common.security.plain.PlainLoginModule required "
#define SCRAM "org.apache.kafka.common.security.scram.ScramLoginModule required "
#define OAUTH "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "

enum { NOW = 1700000000 };
static const int64_t now_ms = (int64_t)NOW * 1000;

static bool find(void *arg, enum sasl_mechanism m, struct str user, struct scram_credential *out)
{
    return str_eqz(user, "al,i=ce") &&
           scram_credential_make(m, STR_LIT("secret"), *(const int *)arg, out);
}

static int iterations = 4096;

static struct sasl_server_config *server_config(enum sasl_mechanism m, const char *jaas)
{
    char err[256] = "";
    struct sasl_server_config *c;
    struct sasl_server_settings s = {
        .mechanism = m, .jaas = jaas, .credential = find, .credential_arg = &iterations};
    if (sasl_server_config_new(&s, &c, err, sizeof(err)))
        fail_msg("%s", err);
    return c;
}

static struct sasl_client_config *client_config(const char *mechanism, const char *jaas)
{
    char err[256] = "";
    struct sasl_client_config *c;
    struct sasl_client_settings s = {.mechanism = mechanism, .jaas = jaas};
    if (sasl_client_config_new(&s, &c, err, sizeof(err)))
        fail_msg("%s", err);
    return c;
}

struct outcome {
    enum sasl_result server, client;
    char user[64], told[200], problem[200], client_problem[200];
    int works, rounds;
    int64_t expires_ms;
    bool by_token;
};

static void keep(char *to, size_t n, const char *text)
{
    snprintf(to, n, "%s", text ? text : "");
}

static void note_server(struct outcome *o, const struct sasl_server *s)
{
    if (o->server == SASL_COMPLETE) {
        struct str u = sasl_server_user(s);
        snprintf(o->user, sizeof(o->user), "%.*s", STR_ARG(u));
        o->expires_ms = sasl_server_expires_ms(s);
        o->by_token = sasl_server_by_token(s);
    } else if (o->server == SASL_FAILURE) {
        keep(o->told, sizeof(o->told), sasl_server_told(s));
        keep(o->problem, sizeof(o->problem), sasl_server_problem(s));
    }
}

/* One exchange to its end. */
static struct outcome run(const struct sasl_server_config *sc, struct sasl_client_config *cc)
{
    struct outcome o = {.server = SASL_CONTINUE};
    struct sasl_server *s = sasl_server_new(sc);
    struct sasl_client *c = sasl_client_new(cc);
    struct bytes answer = BYTES_NULL, token;
    for (;;) {
        o.client = sasl_client_step(c, answer, now_ms, &token);
        if (o.client == SASL_WORK) {
            o.works++;
            sasl_client_work(c);
            o.client = sasl_client_step(c, answer, now_ms, &token);
        }
        if (o.client != SASL_CONTINUE)
            break;
        assert_int_equal(o.server, SASL_CONTINUE);
        o.rounds++;
        o.server = sasl_server_step(s, token, now_ms, &answer);
        if (o.server == SASL_FAILURE)
            break;
    }
    note_server(&o, s);
    if (o.client == SASL_FAILURE)
        keep(o.client_problem, sizeof(o.client_problem), sasl_client_problem(c));
    sasl_server_free(s);
    sasl_client_free(c);
    return o;
}

static struct outcome run_once(enum sasl_mechanism m, const char *server_jaas,
                               const char *client_jaas)
{
    struct sasl_server_config *sc = server_config(m, server_jaas);
    struct sasl_client_config *cc = client_config(sasl_mechanism_name(m), client_jaas);
    struct outcome o = run(sc, cc);
    sasl_server_config_free(sc);
    sasl_client_config_free(cc);
    return o;
}

static void plain(void **state)
{
    static const char users[] = PLAIN "user_alice=\"pw \xc3\xa4\" user_bob=x;";
    struct outcome o =
        run_once(SASL_PLAIN, users, PLAIN "username=alice password=\"pw \xc3\xa4\";");
    assert_int_equal(o.server, SASL_COMPLETE);
    assert_int_equal(o.client, SASL_COMPLETE);
    assert_string_equal(o.user, "alice");
    struct outcome wrong = run_once(SASL_PLAIN, users, PLAIN "username=alice password=x;");
    struct outcome unknown = run_once(SASL_PLAIN, users, PLAIN "username=carol password=x;");
    assert_int_equal(wrong.server, SASL_FAILURE);
    assert_int_equal(unknown.server, SASL_FAILURE);
    assert_string_equal(wrong.told, unknown.told);
    assert_non_null(strstr(unknown.problem, "carol"));
}

static enum sasl_result plain_token(const void *p, size_t n, char told[200])
{
    struct sasl_server_config *sc = server_config(SASL_PLAIN, PLAIN "user_u=p;");
    struct sasl_server *s = sasl_server_new(sc);
    struct bytes answer;
    enum sasl_result r = sasl_server_step(s, (struct bytes){p, (int32_t)n}, now_ms, &answer);
    keep(told, 200, r == SASL_FAILURE ? sasl_server_told(s) : "");
    sasl_server_free(s);
    sasl_server_config_free(sc);
    return r;
}

static void plain_tokens(void **state)
{
    static const struct {
        const char *p;
        size_t n;
        const char *told; /* NULL: it is right */
    } v[] = {
        {"\0u\0p", 4, NULL},
        {"u\0u\0p", 5, NULL},
        {"v\0u\0p", 5, "authorization id that is different"},
        {"", 0, "expected 3 tokens"},
        {"u\0p", 3, "expected 3 tokens"},
        {"\0u\0p\0", 5, "expected 3 tokens"},
        {"\0\0p", 3, "username not specified"},
        {"\0u\0", 3, "password not specified"},
        {"\0u\0q", 4, "Invalid username or password"},
        {"\0u\0\xff", 4, "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        char told[200];
        enum sasl_result r = plain_token(v[i].p, v[i].n, told);
        if (r != (v[i].told ? SASL_FAILURE : SASL_COMPLETE) ||
            (v[i].told && !strstr(told, v[i].told)))
            fail_msg("%zu: %d %s", i, r, told);
    }
}

static void scram_with(enum sasl_mechanism m)
{
    struct outcome o = run_once(m, NULL, SCRAM "username=\"al,i=ce\" password=secret;");
    assert_int_equal(o.server, SASL_COMPLETE);
    assert_int_equal(o.client, SASL_COMPLETE);
    assert_string_equal(o.user, "al,i=ce");
    assert_int_equal(o.works, 1);
    struct outcome wrong = run_once(m, NULL, SCRAM "username=\"al,i=ce\" password=secre;");
    struct outcome unknown = run_once(m, NULL, SCRAM "username=bob password=secret;");
    assert_int_equal(wrong.server, SASL_FAILURE);
    assert_int_equal(unknown.server, SASL_FAILURE);
    /* nothing tells them apart: the same steps, no text */
    assert_int_equal(wrong.rounds, unknown.rounds);
    assert_string_equal(wrong.told, "");
    assert_string_equal(unknown.told, "");
    assert_non_null(strstr(wrong.problem, "wrong password"));
    assert_non_null(strstr(unknown.problem, "bob: no credential"));
}

static void scram(void **state)
{
    scram_with(SASL_SCRAM_SHA_256);
    scram_with(SASL_SCRAM_SHA_512);
}

/* The same credential again: PBKDF2 is not done twice, until the salt is another one. */
static bool stored(void *arg, enum sasl_mechanism m, struct str user, struct scram_credential *out)
{
    *out = *(const struct scram_credential *)arg;
    return true;
}

static void the_salted_password_is_kept(void **state)
{
    struct scram_credential c;
    char err[100];
    struct sasl_server_settings s = {
        .mechanism = SASL_SCRAM_SHA_256, .credential = stored, .credential_arg = &c};
    struct sasl_server_config *sc;
    struct sasl_client_config *cc = client_config("SCRAM-SHA-256", SCRAM "username=u password=p;");
    assert_int_equal(sasl_server_config_new(&s, &sc, err, sizeof(err)), 0);
    static const int works[] = {1, 0, 0};
    for (int salt = 0; salt < 2; salt++) {
        assert_true(scram_credential_make(SASL_SCRAM_SHA_256, STR_LIT("p"), 4096, &c));
        for (int i = 0; i < 3; i++) {
            struct outcome o = run(sc, cc);
            assert_int_equal(o.server, SASL_COMPLETE);
            assert_int_equal(o.client, SASL_COMPLETE);
            assert_int_equal(o.works, works[i]);
        }
    }
    /* the password is another one on the server, with the same salt: the client is refused */
    c.stored_key.b[0] ^= 1;
    assert_int_equal(run(sc, cc).server, SASL_FAILURE);
    /* a server that only pretends to know the user is found out */
    c.stored_key.b[0] ^= 1;
    c.server_key.b[5] ^= 1;
    struct outcome o = run(sc, cc);
    assert_int_equal(o.client, SASL_FAILURE);
    assert_non_null(strstr(o.client_problem, "does not know the user"));
    sasl_server_config_free(sc);
    sasl_client_config_free(cc);
}

static void too_few_iterations(void **state)
{
    iterations = 4095;
    struct outcome o =
        run_once(SASL_SCRAM_SHA_256, NULL, SCRAM "username=\"al,i=ce\" password=secret;");
    iterations = 4096;
    assert_int_equal(o.server, SASL_FAILURE);
}

/* What a client does with a first message of a server that is up to something. */
static void odd_servers(void **state)
{
    static const char *const forms[][2] = {
        {"r=other,s=AA==,i=4096", "does not continue ours"},
        {"r=%s,s=AA==,i=4096", "does not continue ours"},
        {"r=%sx,s=AA==,i=4095", "iterations"},
        {"r=%sx,s=AA==,i=2000000", "iterations"},
        {"r=%sx,s=,i=4096", "malformed"},
        {"nonsense", "malformed"},
    };
    struct sasl_client_config *cc = client_config("SCRAM-SHA-512", SCRAM "username=u password=p;");
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        struct sasl_client *c = sasl_client_new(cc);
        struct bytes token;
        char nonce[100] = "", text[300];
        assert_int_equal(sasl_client_step(c, BYTES_NULL, now_ms, &token), SASL_CONTINUE);
        const char *r = strstr((const char *)token.p, "r=");
        snprintf(nonce, sizeof(nonce), "%.*s", (int)(token.len - (r + 2 - (const char *)token.p)),
                 r + 2);
        const char *at = strstr(forms[i][0], "%s");
        snprintf(text, sizeof(text), "%.*s%s%s", at ? (int)(at - forms[i][0]) : 300, forms[i][0],
                 at ? nonce : "", at ? at + 2 : "");
        struct bytes in = {(const uint8_t *)text, (int32_t)strlen(text)};
        assert_int_equal(sasl_client_step(c, in, now_ms, &token), SASL_FAILURE);
        if (!strstr(sasl_client_problem(c), forms[i][1]))
            fail_msg("%s: %s", text, sasl_client_problem(c));
        sasl_client_free(c);
    }
    sasl_client_config_free(cc);
}

static void oauth_unsecured(void **state)
{
    struct outcome o =
        run_once(SASL_OAUTHBEARER, OAUTH ";",
                 OAUTH "unsecuredLoginStringClaim_sub=alice unsecuredLoginLifetimeSeconds=\"60\" "
                       "unsecuredLoginExtension_traceId=\"1 2\";");
    assert_int_equal(o.server, SASL_COMPLETE);
    assert_int_equal(o.client, SASL_COMPLETE);
    assert_string_equal(o.user, "alice");
    assert_int_equal(o.expires_ms, now_ms + 60000);

    o = run_once(SASL_OAUTHBEARER, OAUTH "unsecuredValidatorPrincipalClaimName=name;",
                 OAUTH "unsecuredLoginStringClaim_sub=alice;");
    assert_int_equal(o.server, SASL_FAILURE);
    assert_int_equal(o.rounds, 2);
    assert_non_null(strstr(o.told, "invalid_token"));
    assert_non_null(strstr(o.problem, "principal"));

    static const char scopes[] = OAUTH "unsecuredValidatorRequiredScope=\"a b\";";
    o = run_once(SASL_OAUTHBEARER, scopes,
                 OAUTH "unsecuredLoginStringClaim_sub=x unsecuredLoginListClaim_scope=\",b,a\";");
    assert_int_equal(o.server, SASL_COMPLETE);
    o = run_once(SASL_OAUTHBEARER, scopes,
                 OAUTH "unsecuredLoginStringClaim_sub=x unsecuredLoginStringClaim_scope=\"b c\";");
    assert_int_equal(o.server, SASL_FAILURE);
}

static void oauth_of_a_file(void **state)
{
    char path[] = "/tmp/oauth-XXXXXX", url[64], err[200];
    int fd = mkstemp(path);
    static const char token[] = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJmIiwiZXhwIjoxNzAwMDAwMDUwfQ.\n";
    assert_int_equal(write(fd, token, sizeof(token) - 1), sizeof(token) - 1);
    close(fd);
    snprintf(url, sizeof(url), "file://%s", path);
    struct sasl_client_config *cc;
    struct sasl_client_settings s = {"OAUTHBEARER", OAUTH ";", url};
    assert_int_equal(sasl_client_config_new(&s, &cc, err, sizeof(err)), 0);
    struct sasl_server_config *sc = server_config(SASL_OAUTHBEARER, OAUTH ";");
    struct outcome o = run(sc, cc);
    assert_int_equal(o.server, SASL_COMPLETE);
    assert_string_equal(o.user, "f");
    unlink(path);
    o = run(sc, cc);
    assert_int_equal(o.client, SASL_FAILURE);
    assert_non_null(strstr(o.client_problem, "No such file"));
    sasl_client_config_free(cc);
    sasl_server_config_free(sc);
}

static bool find_token(void *arg, enum sasl_mechanism m, struct str id, struct arena *a,
                       struct sasl_token *out)
{
    (void)arg;
    out->user = arena_str(a, STR_LIT("owner"));
    out->expires_ms = now_ms + 5;
    return str_eqz(id, "id") &&
           scram_credential_make(m, STR_LIT("hmac"), SCRAM_MIN_ITERATIONS, &out->credential);
}

/* Tokens and users are apart, though their names be the same. */
static void tokens_log_in(void **state)
{
    static const struct {
        const char *login;
        bool with_tokens;
        const char *user; /* NULL: refused */
    } v[] = {
        {"username=id password=hmac tokenauth=true;", true, "owner"},
        {"username=id password=hmac tokenauth=\"TRUE\";", true, "owner"},
        {"username=id password=other tokenauth=true;", true, NULL},
        {"username=id password=hmac;", true, NULL},
        {"username=id password=hmac tokenauth=false;", true, NULL},
        {"username=\"al,i=ce\" password=secret tokenauth=true;", true, NULL},
        {"username=\"al,i=ce\" password=secret;", true, "al,i=ce"},
        {"username=id password=hmac tokenauth=true;", false, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        for (int m = SASL_SCRAM_SHA_256; m <= SASL_SCRAM_SHA_512; m++) {
            char jaas[256], err[256] = "";
            struct sasl_server_config *sc;
            struct sasl_server_settings s = {.mechanism = (enum sasl_mechanism)m,
                                             .credential = find,
                                             .credential_arg = &iterations,
                                             .token = v[i].with_tokens ? find_token : NULL};
            snprintf(jaas, sizeof(jaas), SCRAM "%s", v[i].login);
            assert_int_equal(sasl_server_config_new(&s, &sc, err, sizeof(err)), 0);
            struct sasl_client_config *cc = client_config(sasl_mechanism_name(s.mechanism), jaas);
            struct outcome o = run(sc, cc);
            bool by_token = v[i].user && strcmp(v[i].user, "owner") == 0;
            assert_int_equal(o.server, v[i].user ? SASL_COMPLETE : SASL_FAILURE);
            if (v[i].user)
                assert_string_equal(o.user, v[i].user);
            assert_int_equal(o.expires_ms, by_token ? now_ms + 5 : 0);
            assert_int_equal(o.by_token, by_token);
            sasl_server_config_free(sc);
            sasl_client_config_free(cc);
        }
    }
}

static void configs_that_are_refused(void **state)
{
    static const struct {
        const char *mechanism, *jaas, *url, *says;
    } v[] = {
        {"PLAIN", NULL, NULL, "sasl.jaas.config: is not set"},
        {"PLAIN", SCRAM "username=u password=p;", NULL, "for PLAIN it is"},
        {"PLAIN", PLAIN "username=u;", NULL, "no password"},
        {"PLAIN", PLAIN "password=p;", NULL, "no username"},
        {"SCRAM-SHA-1", SCRAM "username=u password=p;", NULL, "sasl.mechanism=SCRAM-SHA-1"},
        {"GSSAPI", "x required;", NULL, "sasl.mechanism: it is not set, or GSSAPI"},
        {"OAUTHBEARER", OAUTH ";", NULL, "unsecuredLoginStringClaim_sub"},
        {"OAUTHBEARER", OAUTH ";", "https://x/", "no HTTP"},
        {"OAUTHBEARER",
         OAUTH "unsecuredLoginStringClaim_sub=u unsecuredLoginLifetimeSeconds=\"x\";", NULL,
         "no time"},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        char err[300] = "";
        struct sasl_client_config *c;
        struct sasl_client_settings s = {v[i].mechanism, v[i].jaas, v[i].url};
        assert_int_equal(sasl_client_config_new(&s, &c, err, sizeof(err)), -EINVAL);
        if (!strstr(err, v[i].says))
            fail_msg("%zu: %s", i, err);
    }
    char err[300] = "";
    struct sasl_server_config *c;
    struct sasl_server_settings gssapi = {.mechanism = SASL_GSSAPI, .jaas = "x required;"};
    assert_int_equal(sasl_server_config_new(&gssapi, &c, err, sizeof(err)), -EINVAL);
    assert_non_null(strstr(err, "GSSAPI"));
    struct sasl_server_settings none = {.mechanism = SASL_PLAIN};
    assert_int_equal(sasl_server_config_new(&none, &c, err, sizeof(err)), -EINVAL);
    struct sasl_server_settings keys = {
        .mechanism = SASL_OAUTHBEARER, .jaas = OAUTH ";", .keys_url = "file:///nowhere"};
    assert_int_equal(sasl_server_config_new(&keys, &c, err, sizeof(err)), -EINVAL);
    assert_non_null(strstr(err, "/nowhere"));
}

UNIT_MAIN(unit_test(plain), unit_test(plain_tokens), unit_test(scram),
          unit_test(the_salted_password_is_kept), unit_test(too_few_iterations),
          unit_test(odd_servers), unit_test(oauth_unsecured), unit_test(oauth_of_a_file),
          unit_test(tokens_log_in), unit_test(configs_that_are_refused))
