/* tls_context.c - from ssl.* settings to an OpenSSL context.
 *
 * DIFFERENT FROM JAVA  What is trusted is exactly what the trust store holds: a certificate in it
 * is trusted by itself, whether or not it may sign others. Without a trust store it is what the
 * system trusts. Protocols below TLSv1.2 lower the demands on keys and hashes to what they need. */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "net/tls_private.h"
#include "net/tls_store.h"

enum {
    STORE_MAX = 16 << 20,
    PEER_CHAIN_MAX = 64 << 10, /* bytes of certificates that the other side may send */
    READ_AHEAD = 64 << 10,
    CIPHERS_MAX = 4096,
};

struct making {
    bool server;
    const struct tls_settings *s;
    SSL_CTX *ctx;
    char *err;
    size_t err_n;
};

static bool is_set(const char *text)
{
    return text && *text;
}

static int refuse(const struct making *m, const char *key, const char *value, const char *why)
{
    snprintf(m->err, m->err_n, "Invalid value %.200s for configuration %s: %s", value, key, why);
    ERR_clear_error();
    return -EINVAL;
}

/* ---- protocols and ciphers ---- */

static const struct version {
    const char *name;
    int number;
    uint64_t without;
} versions[] = {
    {"TLSv1", TLS1_VERSION, SSL_OP_NO_TLSv1},
    {"TLSv1.1", TLS1_1_VERSION, SSL_OP_NO_TLSv1_1},
    {"TLSv1.2", TLS1_2_VERSION, SSL_OP_NO_TLSv1_2},
    {"TLSv1.3", TLS1_3_VERSION, SSL_OP_NO_TLSv1_3},
};
enum { VERSIONS = sizeof(versions) / sizeof(*versions) };

/* The next element of a comma-separated list, trimmed, in `out`; false at the end. */
static bool next_element(const char **at, char *out, size_t out_n)
{
    while (**at == ',' || **at == ' ' || **at == '\t')
        (*at)++;
    if (!**at)
        return false;
    size_t n = strcspn(*at, ","), keep = n;
    while (keep > 0 && ((*at)[keep - 1] == ' ' || (*at)[keep - 1] == '\t'))
        keep--;
    if (keep >= out_n)
        keep = out_n - 1;
    memcpy(out, *at, keep);
    out[keep] = 0;
    *at += n;
    return true;
}

static int version_named(const char *name)
{
    for (int i = 0; i < VERSIONS; i++)
        if (strcasecmp(name, versions[i].name) == 0)
            return i;
    return -1;
}

/* Without ssl.enabled.protocols, ssl.protocol is the highest one. */
static int set_versions(const struct making *m)
{
    bool on[VERSIONS] = {false}, any = false;
    char name[32];
    const char *list = m->s->enabled_protocols;
    const char *key = is_set(list) ? "ssl.enabled.protocols" : "ssl.protocol";
    if (!is_set(list))
        list = is_set(m->s->protocol) && strcasecmp(m->s->protocol, "TLS") != 0 ? m->s->protocol
                                                                                : "TLSv1.3";
    for (const char *at = list; next_element(&at, name, sizeof(name)); any = true) {
        int i = version_named(name);
        if (i < 0)
            return refuse(m, key, list, "must be of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3");
        on[i] = true;
    }
    if (!any)
        return refuse(m, key, list, "must name a protocol");
    if (!is_set(m->s->enabled_protocols))
        on[2] = on[2] || on[3];
    int first = 0, last = VERSIONS - 1;
    while (!on[first])
        first++;
    while (!on[last])
        last--;
    SSL_CTX_set_min_proto_version(m->ctx, versions[first].number);
    SSL_CTX_set_max_proto_version(m->ctx, versions[last].number);
    for (int i = first; i < last; i++)
        if (!on[i])
            SSL_CTX_set_options(m->ctx, versions[i].without);
    if (first < 2)
        SSL_CTX_set_security_level(m->ctx, 0);
    return 0;
}

static bool add_cipher(char *list, const char *name)
{
    size_t n = strlen(list);
    return (size_t)snprintf(list + n, CIPHERS_MAX - n, "%s%s", n ? ":" : "", name) <
           CIPHERS_MAX - n;
}

/* Names are those of the standard ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), or OpenSSL's. Those of
 * TLSv1.3 are a list of their own. */
static int set_ciphers(const struct making *m)
{
    char name[128], modern[CIPHERS_MAX] = "", older[CIPHERS_MAX] = "";
    const char *list = m->s->cipher_suites;
    if (!is_set(list))
        return 0;
    for (const char *at = list; next_element(&at, name, sizeof(name));) {
        bool of_13 = strncmp(name, "TLS_AES_", 8) == 0 || strncmp(name, "TLS_CHACHA20_", 13) == 0;
        const char *known = of_13 ? name : OPENSSL_cipher_name(name);
        if (!known || strcmp(known, "(NONE)") == 0)
            known = name;
        if (!add_cipher(of_13 ? modern : older, known))
            return refuse(m, "ssl.cipher.suites", list, "is too long");
        if (!(of_13 ? SSL_CTX_set_ciphersuites(m->ctx, known)
                    : SSL_CTX_set_cipher_list(m->ctx, known))) {
            char why[200];
            snprintf(why, sizeof(why), "%s is no cipher suite that is known here", name);
            return refuse(m, "ssl.cipher.suites", list, why);
        }
    }
    if (!*modern && !*older)
        return refuse(m, "ssl.cipher.suites", list, "must name a cipher suite");
    if (*modern)
        SSL_CTX_set_ciphersuites(m->ctx, modern);
    else
        SSL_CTX_set_options(m->ctx, SSL_OP_NO_TLSv1_3);
    if (*older)
        SSL_CTX_set_cipher_list(m->ctx, older);
    else
        SSL_CTX_set_min_proto_version(m->ctx, TLS1_3_VERSION);
    return 0;
}

/* ---- stores ---- */

/* What the settings say of one store. */
struct where {
    const char *prefix; /* of the keys: "ssl.keystore" */
    const char *type, *location, *password;
    bool inlined; /* the text is in the settings */
};

static int read_file(const struct making *m, const struct where *w, enum tls_store_type type,
                     struct tls_store *out)
{
    char key[64], why[400];
    char *bytes = NULL;
    size_t n;
    bool want_key = strcmp(w->prefix, "ssl.keystore") == 0;
    snprintf(key, sizeof(key), "%s.location", w->prefix);
    int rc = fs_read_all(fs_posix(), w->location, STORE_MAX, &bytes, &n);
    if (rc == -ENOMEM)
        return rc;
    if (rc) {
        snprintf(why, sizeof(why), "cannot be read: %s", strerror(-rc));
        return refuse(m, key, w->location, why);
    }
    rc = tls_store_read(out, type, bytes, n, w->password, m->s->key_password, want_key, why,
                        sizeof(why));
    OPENSSL_cleanse(bytes, n);
    free(bytes);
    return rc == -EINVAL ? refuse(m, key, w->location, why) : rc;
}

/* The type, or -EINVAL. */
static int store_type(const struct making *m, const struct where *w)
{
    char key[64];
    const char *name = is_set(w->type) ? w->type : "JKS";
    int type = tls_store_type_of(name);
    snprintf(key, sizeof(key), "%s.type", w->prefix);
    if (type < 0)
        return refuse(m, key, name, "must be PEM, PKCS12 or JKS");
    if (w->inlined && type != TLS_STORE_PEM)
        return refuse(m, key, name,
                      "must be PEM when keys and certificates are given in the settings");
    if (w->inlined && is_set(w->location)) {
        snprintf(key, sizeof(key), "%s.location", w->prefix);
        return refuse(m, key, w->location,
                      "must not be set when keys and certificates are given in the settings");
    }
    return type;
}

static int read_text(const struct making *m, const char *key, const char *text, bool want_key,
                     struct tls_store *out)
{
    char why[300];
    int rc = tls_store_read(out, TLS_STORE_PEM, text, strlen(text), NULL, m->s->key_password,
                            want_key, why, sizeof(why));
    return rc == -EINVAL ? refuse(m, key, "[hidden]", why) : rc;
}

/* Key and chain out of two settings. */
static int read_inline_key(const struct making *m, struct tls_store *out)
{
    struct tls_store chain;
    if (!is_set(m->s->keystore_chain) || !is_set(m->s->keystore_key))
        return refuse(
            m, is_set(m->s->keystore_key) ? "ssl.keystore.certificate.chain" : "ssl.keystore.key",
            "null", "must be set, as the other of the two is");
    int rc = read_text(m, "ssl.keystore.key", m->s->keystore_key, true, out);
    if (rc)
        return rc;
    rc = read_text(m, "ssl.keystore.certificate.chain", m->s->keystore_chain, true, &chain);
    if (rc)
        return rc;
    sk_X509_pop_free(out->chain, X509_free);
    out->chain = chain.chain;
    chain.chain = NULL;
    tls_store_clear(&chain);
    return 0;
}

/* The certificate of the key goes first, wherever it stood. 0 or -EINVAL: there is none. */
static int sort_chain(struct tls_store *s)
{
    for (int i = 0; i < sk_X509_num(s->chain); i++) {
        X509 *x = sk_X509_value(s->chain, i);
        if (X509_check_private_key(x, s->key) != 1)
            continue;
        (void)sk_X509_delete(s->chain, i);
        return sk_X509_unshift(s->chain, x) > 0 ? 0 : -EINVAL;
    }
    return -EINVAL;
}

static int use_key(const struct making *m, const char *key, const char *value, struct tls_store *s)
{
    char why[200];
    if (!s->key)
        return refuse(m, key, value, "has no private key");
    if (sort_chain(s) != 0)
        return refuse(m, key, value, "has no certificate for its private key");
    X509 *own = sk_X509_shift(s->chain);
    int ok = SSL_CTX_use_cert_and_key(m->ctx, own, s->key, s->chain, 1);
    X509_free(own);
    if (ok)
        return 0;
    tls_reason(why, sizeof(why));
    return refuse(m, key, value, why);
}

static int load_key(const struct making *m)
{
    const struct tls_settings *s = m->s;
    struct where w = {"ssl.keystore", s->keystore_type, s->keystore_location, s->keystore_password,
                      is_set(s->keystore_chain) || is_set(s->keystore_key)};
    struct tls_store store = {0};
    if (!w.inlined && !is_set(w.location)) {
        if (!m->server)
            return 0;
        return refuse(m, "ssl.keystore.location", "null",
                      "must be set for a listener with TLS: it needs a certificate and its key "
                      "(or ssl.keystore.certificate.chain and ssl.keystore.key)");
    }
    int type = store_type(m, &w);
    if (type < 0)
        return type;
    int rc = w.inlined ? read_inline_key(m, &store)
                       : read_file(m, &w, (enum tls_store_type)type, &store);
    if (!rc)
        rc = use_key(m, w.inlined ? "ssl.keystore.key" : "ssl.keystore.location",
                     w.inlined ? "[hidden]" : w.location, &store);
    tls_store_clear(&store);
    return rc;
}

/* Clients are told, by their names, whose certificates are welcome. */
static int trust(const struct making *m, const struct tls_store *s)
{
    X509_STORE *to = SSL_CTX_get_cert_store(m->ctx);
    for (int i = 0; i < sk_X509_num(s->trusted); i++) {
        X509 *x = sk_X509_value(s->trusted, i);
        if (!X509_STORE_add_cert(to, x) || (m->server && !SSL_CTX_add_client_CA(m->ctx, x)))
            return -ENOMEM;
    }
    return 0;
}

static int load_trust(const struct making *m)
{
    const struct tls_settings *s = m->s;
    struct where w = {"ssl.truststore", s->truststore_type, s->truststore_location,
                      s->truststore_password, is_set(s->truststore_certificates)};
    struct tls_store store = {0};
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(m->ctx), X509_V_FLAG_PARTIAL_CHAIN);
    if (!w.inlined && !is_set(w.location)) {
        SSL_CTX_set_default_verify_paths(m->ctx);
        ERR_clear_error();
        return 0;
    }
    int type = store_type(m, &w);
    if (type < 0)
        return type;
    int rc = w.inlined ? read_text(m, "ssl.truststore.certificates", s->truststore_certificates,
                                   false, &store)
                       : read_file(m, &w, (enum tls_store_type)type, &store);
    if (!rc && sk_X509_num(store.trusted) <= 0)
        rc = refuse(m, w.inlined ? "ssl.truststore.certificates" : "ssl.truststore.location",
                    w.inlined ? "[hidden]" : w.location, "has no certificate to trust");
    if (!rc)
        rc = trust(m, &store);
    tls_store_clear(&store);
    return rc;
}

/* ---- all of it ---- */

static int set_verification(const struct making *m)
{
    const char *auth = is_set(m->s->client_auth) ? m->s->client_auth : "none";
    if (!m->server) {
        SSL_CTX_set_verify(m->ctx, SSL_VERIFY_PEER, NULL);
        return 0;
    }
    if (strcasecmp(auth, "required") == 0)
        SSL_CTX_set_verify(m->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    else if (strcasecmp(auth, "requested") == 0)
        SSL_CTX_set_verify(m->ctx, SSL_VERIFY_PEER, NULL);
    else if (strcasecmp(auth, "none") != 0)
        return refuse(m, "ssl.client.auth", auth, "must be none, requested or required");
    return 0;
}

/* Sessions live in tickets that clients keep, so none take memory here. */
static int set_habits(const struct making *m)
{
    static const unsigned char id[] = "kafkad";
    SSL_CTX_set_options(m->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(m->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(m->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(m->ctx, id, sizeof(id) - 1);
    SSL_CTX_set_max_cert_list(m->ctx, PEER_CHAIN_MAX);
    SSL_CTX_set_dh_auto(m->ctx, 1);
    SSL_CTX_set_read_ahead(m->ctx, 1);
    SSL_CTX_set_default_read_buffer_len(m->ctx, READ_AHEAD);
    return 0;
}

static int set_identification(const struct making *m, bool *check)
{
    const char *algorithm = m->s->identification ? m->s->identification : "https";
    *check = *algorithm != 0;
    if (*check && strcasecmp(algorithm, "https") != 0)
        return refuse(m, "ssl.endpoint.identification.algorithm", algorithm,
                      "must be https, or empty for no check");
    return 0;
}

static int set_rules(const struct making *m, struct principal_rules **out)
{
    char why[300];
    const char *text = is_set(m->s->principal_rules) ? m->s->principal_rules : "DEFAULT";
    int rc = m->server ? principal_rules_new(text, out, why, sizeof(why)) : 0;
    return rc == -EINVAL ? refuse(m, "ssl.principal.mapping.rules", text, why) : rc;
}

int tls_material_new(bool server, const struct tls_settings *s, struct tls_material **out,
                     char *err, size_t err_n)
{
    static int (*const steps[])(const struct making *) = {
        set_habits, set_versions, set_ciphers, load_key, load_trust, set_verification};
    struct tls_material *t = calloc(1, sizeof(*t));
    struct making m = {server, s, NULL, err, err_n};
    *out = NULL;
    if (!t)
        return -ENOMEM;
    atomic_init(&t->refs, 1);
    ERR_clear_error();
    m.ctx = t->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    int rc = t->ctx ? set_identification(&m, &t->check_host) : -ENOMEM;
    for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(*steps); i++)
        rc = steps[i](&m);
    if (!rc)
        rc = set_rules(&m, &t->rules);
    if (rc == -ENOMEM)
        snprintf(err, err_n, "out of memory while loading ssl.* settings");
    if (rc)
        tls_material_unref(t);
    else
        *out = t;
    return rc;
}
