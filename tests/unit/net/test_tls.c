/* Contexts from settings: every store format, and a reason for each that does not load. */
#include "tls_test.h"

#include "net/tls_store.h"
#include "project_paths.h"

/* Does it load? If not, err must have all words. */
static void expect(bool server, const struct tls_settings *s, const char *words)
{
    char err[800] = "";
    int rc = tls_check(server, s, err, sizeof(err));
    if (!words && rc != 0)
        fail_msg("refused: %s", err);
    if (words && rc != -EINVAL)
        fail_msg("not refused (%d), expected %s", rc, words);
    char copy[200], *rest = copy;
    snprintf(copy, sizeof(copy), "%s", words ? words : "");
    for (char *word; (word = strtok_r(rest, "|", &rest));)
        if (!strstr(err, word))
            fail_msg("'%s' is not in: %s", word, err);
}

static void loads(bool server, const struct tls_settings *s)
{
    expect(server, s, NULL);
}

static void pem_in_the_settings(void **state)
{
    struct identity id;
    identity_init(&id);
    loads(true, &id.server_settings);
    loads(false, &id.client_settings);
    loads(false, &(struct tls_settings){0}); /* the system's authorities */

    struct tls_settings s = id.server_settings;
    s.keystore_key = NULL;
    expect(true, &s, "ssl.keystore.key|must be set");
    s = id.server_settings;
    s.keystore_chain = id.client_text;
    expect(true, &s, "ssl.keystore.key|no certificate for its private key");
    s = id.server_settings;
    s.keystore_type = NULL;
    expect(true, &s, "ssl.keystore.type|JKS|PEM");
    s = id.server_settings;
    s.keystore_location = "/x";
    expect(true, &s, "ssl.keystore.location|/x|must not be set");
    s = id.server_settings;
    s.keystore_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    expect(true, &s, "ssl.keystore.key|[hidden]|cannot be read");
    s = id.server_settings;
    s.truststore_certificates = id.server_key;
    expect(true, &s, "ssl.truststore.certificates|no certificate");
    s = id.server_settings;
    s.keystore_chain = s.keystore_key = NULL;
    expect(true, &s, "ssl.keystore.location|null|must be set");
    identity_free(&id);
}

/* As a settings file may deliver it: line ends gone, or blanks in their place. */
static char *on_one_line(const char *text, char in_place)
{
    char *out = calloc(1, strlen(text) + 1), *to = out;
    for (; *text; text++)
        if (*text != '\n')
            *to++ = *text;
        else if (in_place)
            *to++ = in_place;
    return out;
}

static void pem_text_without_its_lines(void **state)
{
    struct identity id;
    identity_init(&id);
    for (int round = 0; round < 2; round++) {
        char *key = on_one_line(id.server_key, round ? ' ' : 0);
        char *chain = on_one_line(id.server_text, round ? ' ' : 0);
        struct tls_settings s = id.server_settings;
        s.keystore_key = key;
        s.keystore_chain = chain;
        loads(true, &s);
        free(key);
        free(chain);
    }
    identity_free(&id);
}

static void pem_files(void **state)
{
    struct identity id;
    struct temp_dir dir;
    char both[8192];
    identity_init(&id);
    temp_dir_make(&dir);
    struct tls_settings s = {.keystore_type = "pem", .truststore_type = "PEM"};
    s.keystore_location = temp_dir_path(&dir, "key.pem");
    s.truststore_location = temp_dir_path(&dir, "ca.pem");
    write_text(s.truststore_location, id.ca_text, "");
    expect(true, &s, "ssl.keystore.location|key.pem|No such file");
    write_text(s.keystore_location, id.server_key, id.server_text);
    loads(true, &s);
    /* the authority's first, then its own, then the key */
    snprintf(both, sizeof(both), "%s%s", id.ca_text, id.server_text);
    write_text(s.keystore_location, both, id.server_key);
    loads(true, &s);
    write_text(s.keystore_location, id.server_text, "");
    expect(true, &s, "ssl.keystore.location|no private key");
    write_text(s.keystore_location, "no PEM at all", "");
    expect(true, &s, "no private key");
    s.truststore_location = temp_dir_path(&dir, "none.pem");
    write_text(s.keystore_location, id.server_key, id.server_text);
    expect(true, &s, "ssl.truststore.location|none.pem");
    temp_dir_remove(&dir);
    identity_free(&id);
}

static void encrypted_keys(void **state)
{
    struct identity id;
    identity_init(&id);
    char *locked = key_text(&id.server, "secret");
    struct tls_settings s = id.server_settings;
    s.keystore_key = locked;
    expect(true, &s, "ssl.keystore.key|encrypted|ssl.key.password");
    s.key_password = "wrong";
    expect(true, &s, "ssl.key.password does not open");
    s.key_password = "secret";
    loads(true, &s);
    free(locked);
    identity_free(&id);
}

static void write_pkcs12(const char *path, const struct cert *own, STACK_OF(X509) * others,
                         const char *password)
{
    PKCS12 *p = PKCS12_create(password, "broker", own ? own->key : NULL, own ? own->x : NULL,
                              others, 0, 0, 0, 0, 0);
    assert_non_null(p);
    FILE *f = fopen(path, "w");
    i2d_PKCS12_fp(f, p);
    fclose(f);
    PKCS12_free(p);
}

static void pkcs12_files(void **state)
{
    struct identity id;
    struct temp_dir dir;
    identity_init(&id);
    temp_dir_make(&dir);
    STACK_OF(X509) *others = sk_X509_new_null();
    sk_X509_push(others, id.ca.x);
    struct tls_settings s = {.keystore_type = "PKCS12", .truststore_type = "pkcs12"};
    s.keystore_location = temp_dir_path(&dir, "key.p12");
    s.keystore_password = "storepass";
    write_pkcs12(s.keystore_location, &id.server, others, "storepass");
    loads(true, &s);
    s.keystore_password = "other";
    expect(true, &s, "ssl.keystore.location|key.p12|password is wrong");
    s.keystore_password = NULL;
    expect(true, &s, "ssl.keystore.location|and ssl.keystore.password is not set");
    s.keystore_password = "storepass";
    s.keystore_type = NULL; /* Java's default reads both */
    loads(true, &s);
    write_text(s.keystore_location, "neither", "");
    expect(true, &s, "key.p12|not PKCS12");
    write_text(s.keystore_location, "a comment\n-----BEGIN CERTIFICATE-----\n", "");
    expect(true, &s, "key.p12|it is PEM: set ssl.keystore.type=PEM");
    struct tls_settings trust = {.truststore_location = s.keystore_location};
    expect(false, &trust, "key.p12|it is PEM: set ssl.truststore.type=PEM");
    write_pkcs12(s.keystore_location, NULL, others, "storepass");
    expect(true, &s, "no private key");
    sk_X509_free(others);
    temp_dir_remove(&dir);
    identity_free(&id);
}

static void trusts(const struct tls_store *s, const char *const *names, int n)
{
    assert_int_equal(sk_X509_num(s->trusted) < 0 ? 0 : sk_X509_num(s->trusted), n);
    for (int i = 0; i < n; i++) {
        char name[64];
        X509_NAME_get_text_by_NID(X509_get_subject_name(sk_X509_value(s->trusted, i)),
                                  NID_commonName, name, sizeof(name));
        assert_string_equal(name, names[i]);
    }
}

/* Whoever signed the certificate of a key is not trusted for standing in its chain. */
static void trusted_of_a_store_with_a_key(void **state)
{
    static const char *const with_key[] = {"broker"}, *const both[] = {"broker", "top"};
    struct cert top = cert_make_at(NULL, "/CN=top", NULL, true, 0, 30);
    struct cert mid = cert_make_at(&top, "/CN=mid", NULL, true, 0, 30);
    struct cert own = cert_make(&mid, "/CN=broker", NULL);
    struct temp_dir dir;
    temp_dir_make(&dir);
    const char *path = temp_dir_path(&dir, "both.p12");
    char err[300];
    for (int again = 0; again < 2; again++) {
        STACK_OF(X509) *others = sk_X509_new_null();
        uint8_t bytes[8192];
        struct tls_store s;
        sk_X509_push(others, top.x);
        sk_X509_push(others, mid.x);
        if (again)
            sk_X509_push(others, top.x);
        write_pkcs12(path, &own, others, "storepass");
        sk_X509_free(others);
        FILE *in = fopen(path, "r");
        size_t n = fread(bytes, 1, sizeof(bytes), in);
        fclose(in);
        assert_int_equal(tls_store_read(&s, TLS_STORE_PKCS12, bytes, n, "storepass", NULL, false,
                                        err, sizeof(err)),
                         0);
        trusts(&s, again ? both : with_key, 1 + again);
        tls_store_clear(&s);
    }
    temp_dir_remove(&dir);
    cert_free(&own);
    cert_free(&mid);
    cert_free(&top);
}

/* One that signed itself serves as key store and trust store, as in Java. */
static void one_store_for_both(void **state)
{
    static const char *const names[] = {"broker"}, *const files[] = {"key.p12", "key.jks"};
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX], err[300];
        uint8_t bytes[8192];
        struct tls_store s;
        snprintf(path, sizeof(path), "%s/stores/%s", TEST_DATA_DIR, files[i]);
        FILE *in = fopen(path, "r");
        assert_non_null(in);
        size_t n = fread(bytes, 1, sizeof(bytes), in);
        fclose(in);
        assert_int_equal(
            tls_store_read(&s, TLS_STORE_JKS, bytes, n, "storepass", NULL, false, err, sizeof(err)),
            0);
        trusts(&s, names, 1);
        tls_store_clear(&s);
    }
}

static void stores_of_keytool(void **state)
{
    static const char folder[] = TEST_DATA_DIR "/stores/";
    static const struct {
        const char *type, *key, *key_password, *trust;
    } rows[] = {{"JKS", "key.jks", "keypass1", "trust.jks"},
                {"JKS", "key.p12", NULL, "trust.p12"},
                {"PKCS12", "key.p12", NULL, "trust.p12"}};
    char key[PATH_MAX], trust[PATH_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(key, sizeof(key), "%s%s", folder, rows[i].key);
        snprintf(trust, sizeof(trust), "%s%s", folder, rows[i].trust);
        struct tls_settings s = {.keystore_type = rows[i].type,
                                 .keystore_location = key,
                                 .keystore_password = "storepass",
                                 .key_password = rows[i].key_password,
                                 .truststore_type = rows[i].type,
                                 .truststore_location = trust,
                                 .truststore_password = "trustpass"};
        loads(true, &s);
        loads(false, &s);
        s.truststore_password = "wrong";
        expect(false, &s, "ssl.truststore.location|password is wrong");
        s.truststore_password = "trustpass";
        s.keystore_password = "wrong";
        expect(true, &s, "ssl.keystore.location|password is wrong");
    }
    struct tls_settings s = {.keystore_location = key, .keystore_password = "storepass"};
    snprintf(key, sizeof(key), "%skey.jks", folder);
    expect(true, &s, "ssl.key.password (or the store's) does not open");
    s.keystore_password = NULL;
    expect(true, &s, "and ssl.keystore.password is not set");
    snprintf(key, sizeof(key), "%skey.jceks", folder);
    expect(true, &s, "key.jceks|JCEKS|keytool");
    snprintf(trust, sizeof(trust), "%strust.jks", folder);
    /* without a password it is not checked, and still read */
    loads(false, &(struct tls_settings){.truststore_location = trust});
}

/* Every cut and every changed byte of a store: refused or read, nothing else. */
static void damaged_stores(void **state)
{
    static const char *const files[] = {"key.jks", "trust.jks", "key.p12", "trust.p12"};
    for (size_t f = 0; f < 4; f++) {
        char path[PATH_MAX], err[300];
        uint8_t bytes[4096];
        snprintf(path, sizeof(path), "%s/stores/%s", TEST_DATA_DIR, files[f]);
        FILE *in = fopen(path, "r");
        assert_non_null(in);
        size_t n = fread(bytes, 1, sizeof(bytes), in);
        fclose(in);
        bool key = f % 2 == 0;
        for (size_t i = 0; i < n; i += f < 2 ? 1 : 9) {
            for (int cut = 0; cut < 2; cut++) {
                struct tls_store s;
                uint8_t *copy = malloc(n); /* its own memory: overruns are seen */
                memcpy(copy, bytes, n);
                if (!cut)
                    copy[i] ^= 0xff;
                uint8_t *exact = malloc(cut ? i + 1 : n);
                memcpy(exact, copy, cut ? i + 1 : n);
                int rc =
                    tls_store_read(&s, TLS_STORE_JKS, exact, cut ? i + 1 : n,
                                   f < 2 ? NULL : "storepass", "keypass1", key, err, sizeof(err));
                assert_true(rc == 0 || rc == -EINVAL);
                tls_store_clear(&s);
                free(exact);
                free(copy);
            }
        }
    }
}

static void protocols_and_ciphers(void **state)
{
    struct identity id;
    identity_init(&id);
    struct tls_settings s = id.client_settings;
    static const char *const good[] = {"TLSv1.2,TLSv1.3", "TLSv1.3", " TLSv1.2 , TLSv1 ", "", NULL};
    for (int i = 0; good[i]; i++) {
        s.enabled_protocols = good[i];
        loads(false, &s);
    }
    s.enabled_protocols = "TLSv1.2,SSLv3";
    expect(false, &s, "ssl.enabled.protocols|SSLv3|TLSv1.3");
    s.enabled_protocols = ",";
    expect(false, &s, "ssl.enabled.protocols");
    s.enabled_protocols = NULL;
    s.protocol = "TLSv1.2";
    loads(false, &s);
    s.protocol = "DTLS";
    expect(false, &s, "ssl.protocol|DTLS");
    s = id.client_settings;
    s.cipher_suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384";
    loads(false, &s);
    s.cipher_suites = "TLS_AES_256_GCM_SHA384";
    loads(false, &s);
    s.cipher_suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_WITH_LOVE";
    expect(false, &s, "ssl.cipher.suites|TLS_WITH_LOVE is no cipher suite");
    s.cipher_suites = " , ,";
    expect(false, &s, "ssl.cipher.suites|must name a cipher suite");
    identity_free(&id);
}

static void other_settings(void **state)
{
    struct identity id;
    identity_init(&id);
    struct tls_settings s = id.client_settings;
    s.identification = "";
    loads(false, &s);
    s.identification = "HTTPS";
    loads(false, &s);
    s.identification = "ldap";
    expect(false, &s, "ssl.endpoint.identification.algorithm|ldap|https");
    s = id.server_settings;
    s.client_auth = "perhaps";
    expect(true, &s, "ssl.client.auth|perhaps");
    s = id.server_settings;
    s.principal_rules = "RULE:[/x/";
    expect(true, &s, "ssl.principal.mapping.rules|[ has no ]");
    s = id.server_settings;
    s.keystore_type = "BKS";
    expect(true, &s, "ssl.keystore.type|BKS|PKCS12");
    identity_free(&id);
}

static void a_changed_certificate_must_be_the_same_ones(void **state)
{
    static const struct {
        const char *name, *hosts, *words;
        struct tls_change allowed;
    } rows[] = {
        {"/C=DE/O=Org/CN=broker", "DNS:localhost,IP:127.0.0.1", NULL, {false, false}},
        {"/C=DE/O=Org/CN=broker", "IP:127.0.0.1,DNS:localhost", NULL, {false, false}},
        {"/C=DE/O=Org/CN=broker", "DNS:more,DNS:localhost,IP:127.0.0.1", NULL, {false, false}},
        {"/C=DE/O=Org/CN=broker", "DNS:more,DNS:localhost", "ssl.allow.san.changes", {true, false}},
        {"/C=DE/O=Org/CN=other",
         "DNS:localhost,IP:127.0.0.1",
         "ssl.allow.dn.changes",
         {false, true}},
        {"/C=DE/O=Org/CN=other", "DNS:localhost,IP:127.0.0.1", NULL, {true, false}},
        {"/C=DE/O=Org/CN=broker", "DNS:other", "ssl.allow.san.changes", {true, false}},
        {"/C=DE/O=Org/CN=broker", NULL, "ssl.allow.san.changes", {true, false}},
        {"/C=DE/O=Org/CN=broker", "DNS:other", NULL, {false, true}},
    };
    struct identity id;
    char err[600];
    identity_init(&id);
    struct tls *t = tls_loaded(true, &id.server_settings);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cert c = cert_make(&id.ca, rows[i].name, rows[i].hosts);
        char *key = key_text(&c, NULL), *text = cert_text(&c);
        struct tls_settings s = id.server_settings;
        s.keystore_chain = text;
        s.keystore_key = key;
        int rc = tls_check_change(t, &s, rows[i].allowed, err, sizeof(err));
        assert_int_equal(rc, rows[i].words ? -EINVAL : 0);
        if (rows[i].words)
            assert_non_null(strstr(err, rows[i].words));
        free(key);
        free(text);
        cert_free(&c);
    }
    tls_unref(t);
    identity_free(&id);
}

static const char *named(void *arg, const char *key)
{
    return key + strlen("ssl.");
}

static void every_setting_has_its_key(void **state)
{
    struct tls_settings s;
    tls_settings_read(&s, named, NULL);
    assert_string_equal(s.keystore_chain, "keystore.certificate.chain");
    assert_string_equal(s.truststore_password, "truststore.password");
    assert_string_equal(s.identification, "endpoint.identification.algorithm");
    const char *const *all = (const char *const *)&s;
    for (size_t i = 0; i < sizeof(s) / sizeof(*all); i++)
        assert_non_null(all[i]);
}

UNIT_MAIN(unit_test(pem_in_the_settings), unit_test(pem_text_without_its_lines),
          unit_test(pem_files), unit_test(encrypted_keys), unit_test(pkcs12_files),
          unit_test(trusted_of_a_store_with_a_key), unit_test(one_store_for_both),
          unit_test(stores_of_keytool), unit_test(damaged_stores), unit_test(protocols_and_ciphers),
          unit_test(other_settings), unit_test(a_changed_certificate_must_be_the_same_ones),
          unit_test(every_setting_has_its_key))
