/* tls_jks.c - Java's own key store format.
 *
 * FORMAT  big-endian: magic FEEDFEED, version 1 or 2, number of entries, the entries, SHA-1 of the
 *         password (UTF-16), "Mighty Aphrodite" and all before. Entry: tag, alias (u16 length,
 * text), time (8 bytes); tag 1, a private key: its EncryptedPrivateKeyInfo (u32 length), number of
 *         certificates, each as in tag 2; tag 2, a certificate: type (u16 length, text; version 2
 *         only), DER (u32 length).
 * KEY     salt (20 bytes), the PKCS#8 key xor a stream, check (20 bytes). The stream is the SHA-1
 * of password and salt, then of password and the stream's last 20 bytes, ..; the check is the SHA-1
 * of password and plain key. */
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pkcs12.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/tls_store.h"

enum { MAGIC_BYTES = 4, HASH = 20, TAG_KEY = 1, TAG_CERTIFICATE = 2, PASSWORD_MAX = 1024 };

struct jks {
    struct reader in;
    int version;
    struct tls_store *out;
    bool want_key;
    uint8_t password[2 * PASSWORD_MAX]; /* the keys', UTF-16 */
    size_t password_n;
    bool locked; /* a key that the password did not open */
};

/* UTF-16, big-endian. false: it is too long, or no UTF-8. */
static bool utf16(const char *text, uint8_t *out, size_t *out_n)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t n = 0;
    while (*p) {
        int more = *p < 0x80 ? 0 : (*p & 0xe0) == 0xc0 ? 1 : (*p & 0xf0) == 0xe0 ? 2 : -1;
        if (more < 0 || n + 2 > 2 * PASSWORD_MAX)
            return false;
        unsigned c = more == 0 ? *p : more == 1 ? *p & 0x1f : *p & 0x0f;
        for (p++; more > 0; more--, p++) {
            if ((*p & 0xc0) != 0x80)
                return false;
            c = c << 6 | (*p & 0x3f);
        }
        put_be16(out + n, (uint16_t)c);
        n += 2;
    }
    *out_n = n;
    return true;
}

/* SHA-1 of the pieces. */
static bool sha1(uint8_t out[HASH], const void *a, size_t a_n, const void *b, size_t b_n,
                 const void *c, size_t c_n)
{
    EVP_MD_CTX *m = EVP_MD_CTX_new();
    bool ok = m && EVP_DigestInit_ex(m, EVP_sha1(), NULL) && EVP_DigestUpdate(m, a, a_n) &&
              EVP_DigestUpdate(m, b, b_n) && EVP_DigestUpdate(m, c, c_n) &&
              EVP_DigestFinal_ex(m, out, NULL);
    EVP_MD_CTX_free(m);
    return ok;
}

/* `sealed` of n bytes -> the key, or NULL. */
static EVP_PKEY *open_sealed(const struct jks *j, const uint8_t *sealed, size_t n)
{
    uint8_t stream[HASH], check[HASH];
    if (n <= 2 * HASH)
        return NULL;
    size_t len = n - 2 * HASH;
    uint8_t *plain = malloc(len);
    EVP_PKEY *key = NULL;
    memcpy(stream, sealed, HASH);
    for (size_t at = 0; plain && at < len; at++) {
        if (at % HASH == 0 && !sha1(stream, j->password, j->password_n, stream, HASH, "", 0))
            goto out;
        plain[at] = sealed[HASH + at] ^ stream[at % HASH];
    }
    if (plain && sha1(check, j->password, j->password_n, plain, len, "", 0) &&
        CRYPTO_memcmp(check, sealed + HASH + len, HASH) == 0) {
        const unsigned char *at = plain;
        key = d2i_AutoPrivateKey(NULL, &at, (long)len);
    }
out:
    if (plain)
        OPENSSL_cleanse(plain, len);
    free(plain);
    return key;
}

static EVP_PKEY *open_key(const struct jks *j, const uint8_t *der, size_t n)
{
    const unsigned char *at = der;
    const ASN1_OCTET_STRING *sealed;
    X509_SIG *sig = d2i_X509_SIG(NULL, &at, (long)n);
    if (!sig)
        return NULL;
    X509_SIG_get0(sig, NULL, &sealed);
    EVP_PKEY *key =
        open_sealed(j, ASN1_STRING_get0_data(sealed), (size_t)ASN1_STRING_length(sealed));
    X509_SIG_free(sig);
    return key;
}

static const uint8_t *take_text(struct reader *in)
{
    size_t n = (uint16_t)reader_i16(in);
    return reader_take(in, n);
}

static const uint8_t *take_block(struct reader *in, size_t *n)
{
    *n = (uint32_t)reader_i32(in);
    return reader_take(in, *n);
}

/* One certificate, which goes to the list, or nowhere (NULL). */
static int read_certificate(struct jks *j, STACK_OF(X509) * *to)
{
    size_t n;
    if (j->version >= 2)
        take_text(&j->in);
    const uint8_t *der = take_block(&j->in, &n);
    if (!der)
        return -EINVAL;
    if (!to)
        return 0;
    const unsigned char *at = der;
    X509 *x = d2i_X509(NULL, &at, (long)n);
    if (!x)
        return -EINVAL;
    if (!*to)
        *to = sk_X509_new_null();
    if (*to && sk_X509_push(*to, x) > 0)
        return 0;
    X509_free(x);
    return -ENOMEM;
}

static int read_key(struct jks *j)
{
    size_t n;
    const uint8_t *der = take_block(&j->in, &n);
    bool wanted = j->want_key && !j->out->key;
    if (!der)
        return -EINVAL;
    if (wanted) {
        j->out->key = open_key(j, der, n);
        j->locked |= !j->out->key;
    }
    int32_t certificates = reader_i32(&j->in);
    int rc = 0;
    for (int32_t i = 0; !rc && i < certificates; i++) {
        bool chain = wanted && j->out->key, trusted = !j->want_key && i == 0;
        rc = read_certificate(j, chain ? &j->out->chain : trusted ? &j->out->trusted : NULL);
    }
    return rc;
}

static int read_entries(struct jks *j)
{
    int32_t n = reader_i32(&j->in);
    int rc = 0;
    for (int32_t i = 0; !rc && i < n; i++) {
        int32_t tag = reader_i32(&j->in);
        take_text(&j->in);
        reader_i64(&j->in);
        if (tag == TAG_KEY)
            rc = read_key(j);
        else if (tag == TAG_CERTIFICATE)
            rc = read_certificate(j, j->want_key ? NULL : &j->out->trusted);
        else
            rc = -EINVAL;
    }
    return rc;
}

/* Is it whole, and the password right? */
static bool sealed_with(const void *bytes, size_t n, const char *password)
{
    static const char salt[] = "Mighty Aphrodite";
    uint8_t text[2 * PASSWORD_MAX], hash[2 * HASH];
    size_t text_n;
    EVP_MD_CTX *m = EVP_MD_CTX_new();
    bool ok = m && utf16(password, text, &text_n) && EVP_DigestInit_ex(m, EVP_sha1(), NULL) &&
              EVP_DigestUpdate(m, text, text_n) && EVP_DigestUpdate(m, salt, sizeof(salt) - 1) &&
              EVP_DigestUpdate(m, bytes, n - HASH) && EVP_DigestFinal_ex(m, hash, NULL) &&
              CRYPTO_memcmp(hash, (const uint8_t *)bytes + n - HASH, HASH) == 0;
    EVP_MD_CTX_free(m);
    OPENSSL_cleanse(text, sizeof(text));
    return ok;
}

int tls_store_read_jks(struct tls_store *s, const void *bytes, size_t n, const char *store_password,
                       const char *key_password, bool want_key, char *err, size_t err_n)
{
    const char *password = key_password ? key_password : store_password;
    struct jks j = {.out = s, .want_key = want_key};
    if (n < MAGIC_BYTES + 8 + HASH || (store_password && !sealed_with(bytes, n, store_password))) {
        snprintf(err, err_n, "the store's password is wrong, or the store is damaged");
        return -EINVAL;
    }
    if (want_key && !password) {
        snprintf(err, err_n, "the private key is encrypted, and ssl.keystore.password is not set");
        return -EINVAL;
    }
    if (want_key && (!utf16(password, j.password, &j.password_n))) {
        snprintf(err, err_n, "the private key is encrypted, and its store has no usable password");
        return -EINVAL;
    }
    j.in = reader_of((const uint8_t *)bytes + MAGIC_BYTES, n - MAGIC_BYTES - HASH);
    j.version = reader_i32(&j.in);
    int rc = j.version == 1 || j.version == 2 ? read_entries(&j) : -EINVAL;
    OPENSSL_cleanse(j.password, sizeof(j.password));
    if (rc == 0 && j.in.bad)
        rc = -EINVAL;
    if (rc == -EINVAL)
        snprintf(err, err_n, "the store is damaged");
    if (rc || s->key || !j.locked)
        return rc;
    snprintf(err, err_n, "ssl.key.password (or the store's) does not open the private key");
    return -EINVAL;
}
