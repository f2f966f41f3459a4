/* fuzz_tls.c - what strangers send to a TLS listener, or answer to a client's handshake, before
 * anybody is trusted; key stores; patterns of names. Refused, or read within its bytes, never more
 * than that.
 *
 * INPUT  byte 0: which of them. Then the bytes; of patterns: the pattern, a NUL, the text.
 *
 * Rooms: net */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/group_regex.h"
#include "net/principal_rules.h"
#include "net/tls.h"
#include "net/tls_store.h"
#include "net/transport.h"

#include "fuzz.h"

enum { STEPS_MAX = 100, TEXT_MAX = 2000 };

static char *text_of(BIO *b)
{
    char *p;
    long n = BIO_get_mem_data(b, &p);
    char *text = strndup(p, (size_t)n);
    BIO_free(b);
    return text;
}

/* Made at the first input, and good for all. */
static struct tls *side(bool server)
{
    static struct tls *sides[2];
    if (sides[server])
        return sides[server];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    must(X509_sign(x, key, EVP_sha256()) > 0);
    BIO *k = BIO_new(BIO_s_mem()), *c = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(k, key, NULL, NULL, 0, NULL, NULL);
    PEM_write_bio_X509(c, x);
    char *key_text = text_of(k), *chain = text_of(c), err[300];
    struct tls_settings s = {.keystore_type = "PEM",
                             .keystore_key = key_text,
                             .keystore_chain = chain,
                             .truststore_type = "PEM",
                             .truststore_certificates = chain,
                             .client_auth = "requested"};
    sides[server] = tls_new(server);
    must(tls_load(sides[server], &s, err, sizeof(err)) == 0);
    free(key_text);
    free(chain);
    X509_free(x);
    EVP_PKEY_free(key);
    return sides[server];
}

/* All bytes come, in two pieces; then the end. */
static void handshake(bool server, const uint8_t *p, size_t n)
{
    struct transport t;
    int fds[2];
    uint8_t junk[65536];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    must(transport_tls_init(&t, fds[0], side(server), server ? NULL : "localhost", NULL) == 0);
    int rc = t.ops->secure(&t);
    for (size_t at = 0, piece; at < n && rc == -EAGAIN; at += piece) {
        piece = at == 0 && n > 40 ? 40 : n - at;
        ssize_t sent = send(fds[1], p + at, piece, MSG_NOSIGNAL);
        must(sent > 0);
        piece = (size_t)sent;
        rc = t.ops->secure(&t);
        while (recv(fds[1], junk, sizeof(junk), MSG_DONTWAIT) > 0)
            ;
    }
    shutdown(fds[1], SHUT_WR);
    for (int i = 0; rc == -EAGAIN && i < STEPS_MAX; i++)
        rc = t.ops->secure(&t);
    must(rc != 0 && rc != -EAGAIN); /* nobody comes through without keys */
    must(t.ops->secure(&t) == rc);
    t.ops->finish(&t);
    t.ops->close(&t);
    close(fds[1]);
}

static void store(enum tls_store_type type, bool want_key, const uint8_t *p, size_t n)
{
    struct tls_store s;
    char err[300] = "";
    int rc = tls_store_read(&s, type, p, n, want_key ? "storepass" : NULL, "keypass1", want_key,
                            err, sizeof(err));
    must(rc == 0 || (rc < 0 && (rc == -ENOMEM || *err)));
    must(rc == 0 || (!s.key && !s.chain && !s.trusted));
    tls_store_clear(&s);
}

static void pattern(const uint8_t *p, size_t n)
{
    struct group_regex *r;
    struct group_span spans[GROUP_REGEX_MAX];
    char err[300] = "";
    const uint8_t *nul = memchr(p, 0, n);
    size_t len = nul ? (size_t)(nul - p) : n;
    const char *text = nul ? (const char *)nul + 1 : "";
    size_t text_n = nul ? n - len - 1 : 0;
    if (group_regex_new((const char *)p, len, &r, err, sizeof(err)) != 0) {
        must(*err);
        return;
    }
    if (text_n < TEXT_MAX && group_regex_match(r, text, text_n, spans) == 1)
        for (int i = 0; i < GROUP_REGEX_MAX; i++)
            must(spans[i].at < 0 || spans[i].end < 0 ||
                 (spans[i].at <= spans[i].end && (size_t)spans[i].end <= text_n));
    group_regex_free(r);
}

static void rules(const uint8_t *p, size_t n)
{
    struct principal_rules *r;
    char err[400], *text = strndup((const char *)p, n);
    int rc;
    if (principal_rules_new(text, &r, err, sizeof(err)) == 0) {
        free(principal_rules_apply(r, "CN=a,OU=b,O=c", &rc));
        principal_rules_free(r);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < 1 || n > 60000)
        return 0;
    switch (*p++) {
    case 0:
        handshake(true, p, n - 1);
        break;
    case 1:
        handshake(false, p, n - 1);
        break;
    case 2:
        store(TLS_STORE_PEM, true, p, n - 1);
        break;
    case 3:
        store(TLS_STORE_JKS, true, p, n - 1);
        break;
    case 4:
        store(TLS_STORE_JKS, false, p, n - 1);
        break;
    case 5:
        pattern(p, n - 1);
        break;
    case 6:
        rules(p, n - 1);
        break;
    default:
        break;
    }
    return 0;
}
