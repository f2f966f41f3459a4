/* tls.c - a struct tls: what is in force now, and who still uses it. */
#include "net/tls.h"

#include <errno.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/tls_private.h"

void tls_settings_read(struct tls_settings *s, const char *(*get)(void *arg, const char *key),
                       void *arg)
{
    const struct {
        const char **to, *key;
    } keys[] = {
        {&s->keystore_type, "ssl.keystore.type"},
        {&s->keystore_location, "ssl.keystore.location"},
        {&s->keystore_password, "ssl.keystore.password"},
        {&s->keystore_chain, "ssl.keystore.certificate.chain"},
        {&s->keystore_key, "ssl.keystore.key"},
        {&s->key_password, "ssl.key.password"},
        {&s->truststore_type, "ssl.truststore.type"},
        {&s->truststore_location, "ssl.truststore.location"},
        {&s->truststore_password, "ssl.truststore.password"},
        {&s->truststore_certificates, "ssl.truststore.certificates"},
        {&s->protocol, "ssl.protocol"},
        {&s->enabled_protocols, "ssl.enabled.protocols"},
        {&s->cipher_suites, "ssl.cipher.suites"},
        {&s->identification, "ssl.endpoint.identification.algorithm"},
        {&s->client_auth, "ssl.client.auth"},
        {&s->principal_rules, "ssl.principal.mapping.rules"},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        *keys[i].to = get(arg, keys[i].key);
}

struct tls *tls_new(bool server)
{
    struct tls *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    atomic_init(&t->refs, 1);
    t->server = server;
    pthread_mutex_init(&t->lock, NULL);
    t->io = tls_socket_io();
    if (t->io)
        return t;
    tls_unref(t);
    return NULL;
}

struct tls *tls_ref(struct tls *t)
{
    atomic_fetch_add(&t->refs, 1);
    return t;
}

void tls_unref(struct tls *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
        return;
    tls_material_unref(t->now);
    BIO_meth_free(t->io);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

int tls_load(struct tls *t, const struct tls_settings *s, char *err, size_t err_n)
{
    struct tls_material *m;
    int rc = tls_material_new(t->server, s, &m, err, err_n);
    if (rc)
        return rc;
    pthread_mutex_lock(&t->lock);
    struct tls_material *old = t->now;
    t->now = m;
    pthread_mutex_unlock(&t->lock);
    tls_material_unref(old);
    return 0;
}

int tls_check(bool server, const struct tls_settings *s, char *err, size_t err_n)
{
    struct tls_material *m;
    int rc = tls_material_new(server, s, &m, err, err_n);
    if (!rc)
        tls_material_unref(m);
    return rc;
}

/* Are all hosts of `a` also those of `b`? In any order; b may have more. */
static bool has_hosts(const X509 *a, const X509 *b)
{
    GENERAL_NAMES *x = X509_get_ext_d2i(a, NID_subject_alt_name, NULL, NULL);
    GENERAL_NAMES *y = X509_get_ext_d2i(b, NID_subject_alt_name, NULL, NULL);
    bool all = true;
    for (int i = 0; all && i < sk_GENERAL_NAME_num(x); i++) {
        all = false;
        for (int k = 0; !all && k < sk_GENERAL_NAME_num(y); k++)
            all = GENERAL_NAME_cmp(sk_GENERAL_NAME_value(x, i), sk_GENERAL_NAME_value(y, k)) == 0;
    }
    GENERAL_NAMES_free(x);
    GENERAL_NAMES_free(y);
    return all;
}

int tls_check_change(struct tls *t, const struct tls_settings *s, struct tls_change allowed,
                     char *err, size_t err_n)
{
    struct tls_material *old = tls_material_of(t), *new;
    int rc = tls_material_new(t->server, s, &new, err, err_n);
    const X509 *a = old ? SSL_CTX_get0_certificate(old->ctx) : NULL;
    const X509 *b = !rc ? SSL_CTX_get0_certificate(new->ctx) : NULL;
    const char *problem = NULL;
    if (a && b && !allowed.name &&
        X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b)) != 0)
        problem = "the new certificate has another name (DN) than the one in force, and "
                  "ssl.allow.dn.changes is false";
    else if (a && b && !allowed.hosts && !has_hosts(a, b))
        problem = "the new certificate lacks alternative names (SAN) of the one in force, and "
                  "ssl.allow.san.changes is false";
    if (problem) {
        snprintf(err, err_n, "Invalid value %s for configuration ssl.keystore.location: %s",
                 s->keystore_location ? s->keystore_location : "null", problem);
        rc = -EINVAL;
    }
    tls_material_unref(old);
    tls_material_unref(new);
    return rc;
}

struct tls_material *tls_material_of(struct tls *t)
{
    pthread_mutex_lock(&t->lock);
    struct tls_material *m = t->now;
    if (m)
        atomic_fetch_add(&m->refs, 1);
    pthread_mutex_unlock(&t->lock);
    return m;
}

void tls_material_unref(struct tls_material *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) > 1)
        return;
    SSL_CTX_free(m->ctx);
    principal_rules_free(m->rules);
    free(m);
}

void tls_session_free(struct tls_session *s)
{
    if (!s)
        return;
    SSL_SESSION_free(s->session);
    tls_material_unref(s->of);
    free(s);
}
