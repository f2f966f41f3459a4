/* tls_test.h - certificates made on the spot, and settings that name them. */
#ifndef TESTS_TLS_TEST_H
#define TESTS_TLS_TEST_H

#include "unit.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/tls.h"
#include "temp_dir.h"

struct cert {
    EVP_PKEY *key;
    X509 *x;
};

static inline void cert_free(struct cert *c)
{
    EVP_PKEY_free(c->key);
    X509_free(c->x);
    *c = (struct cert){0};
}

static inline void add_extension(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

/* "/C=DE/CN=x" */
static inline void set_name(X509_NAME *n, const char *text)
{
    char copy[256], *rest = copy;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *part; (part = strtok_r(rest, "/", &rest));) {
        char *eq = strchr(part, '=');
        assert_non_null(eq);
        *eq = 0;
        assert_int_equal(
            X509_NAME_add_entry_by_txt(n, part, MBSTRING_UTF8, (unsigned char *)eq + 1, -1, -1, 0),
            1);
    }
}

/* Signed by `by` (NULL: itself); good from `from` to `to` days from now; hosts as
 * "DNS:a,IP:1.2.3.4", NULL = none. */
static inline struct cert cert_make_at(const struct cert *by, const char *name, const char *hosts,
                                       bool ca, int from, int to)
{
    static long serial = 1;
    struct cert c = {EVP_EC_gen("P-256"), X509_new()};
    assert_non_null(c.key);
    X509_set_version(c.x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(c.x), 86400L * from - 60);
    X509_gmtime_adj(X509_getm_notAfter(c.x), 86400L * to);
    X509_set_pubkey(c.x, c.key);
    set_name(X509_get_subject_name(c.x), name);
    X509_set_issuer_name(c.x, X509_get_subject_name(by ? by->x : c.x));
    if (ca)
        add_extension(c.x, NID_basic_constraints, "critical,CA:TRUE");
    if (hosts)
        add_extension(c.x, NID_subject_alt_name, hosts);
    assert_true(X509_sign(c.x, by ? by->key : c.key, EVP_sha256()) > 0);
    return c;
}

static inline struct cert cert_make(const struct cert *by, const char *name, const char *hosts)
{
    return cert_make_at(by, name, hosts, by == NULL, 0, 30);
}

static inline char *text_of(BIO *b)
{
    char *p, *copy;
    long n = BIO_get_mem_data(b, &p);
    copy = strndup(p, (size_t)n);
    BIO_free(b);
    return copy;
}

/* Owned, as the next. */
static inline char *cert_text(const struct cert *c)
{
    BIO *b = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(b, c->x);
    return text_of(b);
}

static inline char *key_text(const struct cert *c, const char *password)
{
    BIO *b = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(b, c->key, password ? EVP_aes_128_cbc() : NULL, password,
                                  password ? (int)strlen(password) : 0, NULL, NULL);
    return text_of(b);
}

static inline void write_bytes(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static inline void write_text(const char *path, const char *a, const char *b)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s%s", a, b);
    fclose(f);
}

/* An authority, a server of it (localhost, 127.0.0.1), a client of it; and settings for both. Free
 * with identity_free. */
struct identity {
    struct cert ca, server, client;
    char *ca_text, *server_text, *server_key, *client_text, *client_key;
    struct tls_settings server_settings, client_settings;
};

static inline void identity_init(struct identity *id)
{
    id->ca = cert_make(NULL, "/CN=test authority", NULL);
    id->server = cert_make(&id->ca, "/C=DE/O=Org/CN=broker", "DNS:localhost,IP:127.0.0.1");
    id->client = cert_make(&id->ca, "/C=DE/O=Org/OU=Users/CN=Alice", NULL);
    id->ca_text = cert_text(&id->ca);
    id->server_text = cert_text(&id->server);
    id->server_key = key_text(&id->server, NULL);
    id->client_text = cert_text(&id->client);
    id->client_key = key_text(&id->client, NULL);
    id->server_settings = (struct tls_settings){.keystore_type = "PEM",
                                                .keystore_chain = id->server_text,
                                                .keystore_key = id->server_key,
                                                .truststore_type = "PEM",
                                                .truststore_certificates = id->ca_text};
    id->client_settings =
        (struct tls_settings){.truststore_type = "PEM", .truststore_certificates = id->ca_text};
}

/* The client shows its certificate. */
static inline void identity_show_client(struct identity *id)
{
    id->client_settings.keystore_type = "PEM";
    id->client_settings.keystore_chain = id->client_text;
    id->client_settings.keystore_key = id->client_key;
}

static inline void identity_free(struct identity *id)
{
    cert_free(&id->ca);
    cert_free(&id->server);
    cert_free(&id->client);
    free(id->ca_text);
    free(id->server_text);
    free(id->server_key);
    free(id->client_text);
    free(id->client_key);
}

static inline struct tls *tls_loaded(bool server, const struct tls_settings *s)
{
    char err[600] = "";
    struct tls *t = tls_new(server);
    assert_non_null(t);
    if (tls_load(t, s, err, sizeof(err)) != 0)
        fail_msg("%s", err);
    return t;
}

#endif
