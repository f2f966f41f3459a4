/* tls_store.h - private keys and certificates out of key stores: PEM text, PKCS12, JKS.
 *
 * "JKS" is Java's default type, and means either of its own format and PKCS12, as in Java: the
 * first bytes tell. Of several private keys the first one that opens is taken. A store of trusted
 * certificates that has a key, too, is trusted as in Java: the key's own certificate, and not those
 * that signed it.
 *
 * Lines in err name what is wrong and the key that mends it, but not the file: the caller does.
 *
 * THREADS  any: no state. */
#ifndef NET_TLS_STORE_H
#define NET_TLS_STORE_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

enum tls_store_type { TLS_STORE_PEM, TLS_STORE_PKCS12, TLS_STORE_JKS };
/* -1 = there is no such type. In any case. */
int tls_store_type_of(const char *name);

struct tls_store {
    EVP_PKEY *key;            /* NULL = none */
    STACK_OF(X509) * chain;   /* the key's, its own certificate first */
    STACK_OF(X509) * trusted; /* certificates without a key */
};
void tls_store_clear(struct tls_store *s);

/* Passwords may be NULL: not set. `want_key`: private keys are wanted, and only then opened. 0, or
 * -EINVAL with a line in err, -ENOMEM; then the store is empty. */
int tls_store_read(struct tls_store *s, enum tls_store_type type, const void *bytes, size_t n,
                   const char *store_password, const char *key_password, bool want_key, char *err,
                   size_t err_n);
/* One format each; as tls_store_read. */
int tls_store_read_jks(struct tls_store *s, const void *bytes, size_t n, const char *store_password,
                       const char *key_password, bool want_key, char *err, size_t err_n);
/* The last reason that OpenSSL gave, in words; its queue is empty afterwards. */
void tls_reason(char *out, size_t n);

#endif
