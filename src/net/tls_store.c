/* tls_store.c - PEM and PKCS12; JKS has a file of its own.
 *
 * PEM  Text that went through a settings file may have lost its line ends (one long line, blanks in
 *      their place); so each block is taken out and written anew before OpenSSL reads it. A block
 *      with headers (old encrypted keys) is left as it is. */
#include "net/tls_store.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

enum { PEM_LINE = 64, CERTIFICATES_MAX = 10000 };

int tls_store_type_of(const char *name)
{
    static const char *const names[] = {"PEM", "PKCS12", "JKS"};
    for (int i = 0; i < 3; i++)
        if (strcasecmp(name, names[i]) == 0)
            return i;
    return -1;
}

void tls_store_clear(struct tls_store *s)
{
    EVP_PKEY_free(s->key);
    sk_X509_pop_free(s->chain, X509_free);
    sk_X509_pop_free(s->trusted, X509_free);
    *s = (struct tls_store){0};
}

void tls_reason(char *out, size_t n)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    snprintf(out, n, "%s", text ? text : "no reason is known");
    ERR_clear_error();
}

static int refuse(char *err, size_t err_n, const char *what)
{
    snprintf(err, err_n, "%s", what);
    ERR_clear_error();
    return -EINVAL;
}

static int refuse_why(char *err, size_t err_n, const char *what)
{
    char why[160];
    tls_reason(why, sizeof(why));
    snprintf(err, err_n, "%s: %s", what, why);
    return -EINVAL;
}

/* ---- PEM ---- */

struct block {
    const char *label; /* behind "-----BEGIN " */
    size_t label_n;
    const char *body, *end; /* between the lines of dashes */
};

/* The next block at or behind *at; false = there is none. */
static bool next_block(const char **at, const char *end, struct block *b)
{
    static const char begin[] = "-----BEGIN ", finish[] = "-----END ";
    const char *p = memmem(*at, (size_t)(end - *at), begin, sizeof(begin) - 1);
    if (!p)
        return false;
    b->label = p + sizeof(begin) - 1;
    const char *dashes = memmem(b->label, (size_t)(end - b->label), "-----", 5);
    if (!dashes)
        return false;
    b->label_n = (size_t)(dashes - b->label);
    b->body = dashes + 5;
    b->end = memmem(b->body, (size_t)(end - b->body), finish, sizeof(finish) - 1);
    if (!b->end)
        return false;
    *at = b->end + sizeof(finish) - 1;
    return true;
}

static bool label_is(const struct block *b, const char *end)
{
    size_t n = strlen(end);
    return b->label_n >= n && memcmp(b->label + b->label_n - n, end, n) == 0;
}

static void write_block(const struct block *b, struct buf *out)
{
    size_t column = 0, n = (size_t)(b->end - b->body) + b->label_n;
    if (!buf_reserve(out, 2 * n + 64)) /* all of it: what grows leaves copies of keys behind */
        return;
    buf_printf(out, "-----BEGIN %.*s-----\n", (int)b->label_n, b->label);
    if (memchr(b->body, ':', (size_t)(b->end - b->body))) {
        const char *p = b->body;
        while (p < b->end && isspace((unsigned char)*p))
            p++;
        buf_put(out, p, (size_t)(b->end - p));
    } else {
        for (const char *p = b->body; p < b->end; p++) {
            if (isspace((unsigned char)*p))
                continue;
            buf_put(out, p, 1);
            if (++column % PEM_LINE == 0)
                buf_put(out, "\n", 1);
        }
        if (column % PEM_LINE != 0)
            buf_put(out, "\n", 1);
    }
    buf_printf(out, "-----END %.*s-----\n", (int)b->label_n, b->label);
}

struct password {
    const char *text;
    bool asked;
};

static int give_password(char *out, int size, int writing, void *arg)
{
    struct password *p = arg;
    (void)writing;
    p->asked = true;
    size_t n = p->text ? strlen(p->text) : 0;
    if (n == 0 || n > (size_t)size)
        return -1;
    memcpy(out, p->text, n);
    return (int)n;
}

static int read_pem_key(struct tls_store *s, BIO *in, const char *password, char *err, size_t err_n)
{
    struct password p = {password, false};
    if (s->key)
        return 0; /* the first counts */
    s->key = PEM_read_bio_PrivateKey(in, NULL, give_password, &p);
    if (s->key)
        return 0;
    if (p.asked && !password)
        return refuse(err, err_n, "the private key is encrypted, and ssl.key.password is not set");
    if (p.asked)
        return refuse_why(err, err_n, "ssl.key.password does not open the private key");
    return refuse_why(err, err_n, "the private key cannot be read");
}

static int add_certificate(STACK_OF(X509) * *to, X509 *x)
{
    if (!*to)
        *to = sk_X509_new_null();
    if (*to && sk_X509_num(*to) < CERTIFICATES_MAX && sk_X509_push(*to, x) > 0)
        return 0;
    X509_free(x);
    return -ENOMEM;
}

static int read_block(struct tls_store *s, const struct block *b, const char *key_password,
                      bool want_key, char *err, size_t err_n)
{
    bool key = label_is(b, "PRIVATE KEY"), certificate = label_is(b, "CERTIFICATE");
    struct buf text = BUF_INIT;
    int rc = 0;
    if (!certificate && !(key && want_key))
        return 0; /* parameters, requests: not ours */
    write_block(b, &text);
    BIO *in = text.failed ? NULL : BIO_new_mem_buf(text.p, (int)text.len);
    if (!in) {
        rc = -ENOMEM;
    } else if (key) {
        rc = read_pem_key(s, in, key_password, err, err_n);
    } else {
        X509 *x = PEM_read_bio_X509(in, NULL, NULL, NULL);
        rc = x ? add_certificate(want_key ? &s->chain : &s->trusted, x)
               : refuse_why(err, err_n, "a certificate cannot be read");
    }
    BIO_free(in);
    if (text.p)
        OPENSSL_cleanse(text.p, text.len);
    buf_free(&text);
    return rc;
}

static int read_pem(struct tls_store *s, const char *text, size_t n, const char *key_password,
                    bool want_key, char *err, size_t err_n)
{
    struct block b;
    int rc = 0;
    for (const char *at = text; !rc && next_block(&at, text + n, &b);)
        rc = read_block(s, &b, key_password, want_key, err, err_n);
    return rc;
}

/* ---- PKCS12 ---- */

/* Its own certificate goes before those that signed it. */
static int take_chain(struct tls_store *s, X509 *own, STACK_OF(X509) * others)
{
    int rc = add_certificate(&s->chain, own);
    for (int i = 0; !rc && i < sk_X509_num(others); i++) {
        X509 *x = sk_X509_value(others, i);
        X509_up_ref(x);
        rc = add_certificate(&s->chain, x);
    }
    return rc;
}

static X509 *take_signer(const X509 *x, STACK_OF(X509) * others)
{
    for (int i = 0; i < sk_X509_num(others); i++)
        if (X509_check_issued(sk_X509_value(others, i), (X509 *)x) == X509_V_OK)
            return sk_X509_delete(others, i);
    return NULL;
}

/* Takes its signer out of the list, and that one's, and so on: each once, for whoever is also
 * trusted by itself stands there twice. */
static void drop_signers(X509 *x, STACK_OF(X509) * others)
{
    X509_up_ref(x);
    while (x) {
        bool last = X509_check_issued(x, x) == X509_V_OK;
        X509 *by = last ? NULL : take_signer(x, others);
        X509_free(x);
        x = by;
    }
}

/* As in Java: of a key that the store also has its own certificate is trusted, none that signed it.
 */
static int take_trusted(struct tls_store *s, X509 *own, STACK_OF(X509) * others)
{
    int rc = 0;
    if (own) {
        drop_signers(own, others);
        X509_up_ref(own);
        rc = add_certificate(&s->trusted, own);
    }
    for (int i = 0; !rc && i < sk_X509_num(others); i++) {
        X509 *x = sk_X509_value(others, i);
        X509_up_ref(x);
        rc = add_certificate(&s->trusted, x);
    }
    return rc;
}

static int refuse_password(const char *prefix, const char *password, char *err, size_t err_n)
{
    char why[160];
    if (password)
        return refuse(err, err_n, "the store's password is wrong, or the store is damaged");
    snprintf(why, sizeof(why), "the store has a password, and %s.password is not set", prefix);
    return refuse(err, err_n, why);
}

static int read_pkcs12(struct tls_store *s, const void *bytes, size_t n, const char *password,
                       bool want_key, char *err, size_t err_n)
{
    const unsigned char *at = bytes;
    STACK_OF(X509) *others = NULL;
    EVP_PKEY *key = NULL;
    X509 *own = NULL;
    PKCS12 *p = d2i_PKCS12(NULL, &at, (long)n);
    const char *prefix = want_key ? "ssl.keystore" : "ssl.truststore";
    char why[160];
    if (!p && memmem(bytes, n, "-----BEGIN", 10)) {
        snprintf(why, sizeof(why), "it is PEM: set %s.type=PEM", prefix);
        return refuse(err, err_n, why);
    }
    if (!p)
        return refuse(err, err_n, "this is not PKCS12");
    int rc = 0;
    if (PKCS12_mac_present(p) && !PKCS12_verify_mac(p, password ? password : "", -1) &&
        !(!password && PKCS12_verify_mac(p, NULL, 0)))
        rc = refuse_password(prefix, password, err, err_n);
    else if (!PKCS12_parse(p, password, &key, &own, &others))
        rc = refuse_why(err, err_n,
                        "cannot be opened (an old cipher? keytool -importkeystore -deststoretype "
                        "pkcs12 writes it anew)");
    PKCS12_free(p);
    if (!rc && want_key && key && own) {
        s->key = key;
        key = NULL;
        rc = take_chain(s, own, others);
        own = NULL;
    } else if (!rc && !want_key) {
        rc = take_trusted(s, own, others);
    }
    EVP_PKEY_free(key);
    X509_free(own);
    sk_X509_pop_free(others, X509_free);
    ERR_clear_error();
    return rc;
}

int tls_store_read(struct tls_store *s, enum tls_store_type type, const void *bytes, size_t n,
                   const char *store_password, const char *key_password, bool want_key, char *err,
                   size_t err_n)
{
    static const unsigned char jks[] = {0xfe, 0xed, 0xfe, 0xed}, jceks[] = {0xce, 0xce, 0xce, 0xce};
    int rc;
    *s = (struct tls_store){0};
    ERR_clear_error();
    if (type == TLS_STORE_PEM)
        rc = read_pem(s, bytes, n, key_password, want_key, err, err_n);
    else if (n >= 4 && memcmp(bytes, jks, 4) == 0)
        rc = tls_store_read_jks(s, bytes, n, store_password, key_password, want_key, err, err_n);
    else if (n >= 4 && memcmp(bytes, jceks, 4) == 0)
        rc = refuse(err, err_n,
                    "is a JCEKS store, which is not read: keytool -importkeystore -deststoretype "
                    "pkcs12 makes a PKCS12 one");
    else
        rc = read_pkcs12(s, bytes, n, store_password, want_key, err, err_n);
    if (rc)
        tls_store_clear(s);
    return rc;
}
