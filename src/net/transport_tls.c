/* transport_tls.c - bytes through TLS.
 *
 * READING  One read of the socket may bring several records; those that the caller had no room for
 *          wait inside, where poll cannot see them (`more`, TRANSPORT_AGAIN).
 * WRITING  Records are made from the head of the chain, which keeps the bytes until their record
 * has left: when the socket is full, the same bytes are offered again (`retry` of them at least),
 * as OpenSSL wants it. So a connection that waits holds one record of memory, and file ranges are
 * read (sendfile would send them as they are). FAILURE  The first one stays: whatever is tried
 * afterwards says the same. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "net/dn.h"
#include "net/tls_private.h"
#include "net/transport.h"

enum {
    SEND_PIECE = 32 * 1024, /* two records */
    WHY_MAX = 400,
    FINISH_MAX = 256 * 1024,
    RECORD_HANDSHAKE = 0x16,
};

struct tls_link {
    SSL *ssl;
    struct tls_material *material;
    bool server;
    bool looked; /* at the first byte: it is TLS */
    bool done;   /* the handshake is */
    bool more;   /* decrypted, or at least here, and not asked for */
    bool read_wants_write, write_wants_read;
    int failed;    /* -errno */
    size_t retry;  /* bytes at the head of the chain that OpenSSL has begun with */
    char *host;    /* a client's */
    X509 *refused; /* the certificate that was not accepted */
    char *principal;
    char why[WHY_MAX];
};

/* ---- the socket ---- */

static int socket_of(BIO *b)
{
    return (int)(intptr_t)BIO_get_data(b);
}

static int io_result(BIO *b, ssize_t n, int again)
{
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_flags(b, again | BIO_FLAGS_SHOULD_RETRY);
    return (int)n;
}

static int io_read(BIO *b, char *p, int n)
{
    return io_result(b, recv(socket_of(b), p, (size_t)n, MSG_DONTWAIT), BIO_FLAGS_READ);
}

static int io_write(BIO *b, const char *p, int n)
{
    return io_result(b, send(socket_of(b), p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL),
                     BIO_FLAGS_WRITE);
}

static long io_control(BIO *b, int what, long n, void *p)
{
    (void)b, (void)n, (void)p;
    return what == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_socket_io(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (!m)
        return NULL;
    BIO_meth_set_read(m, io_read);
    BIO_meth_set_write(m, io_write);
    BIO_meth_set_ctrl(m, io_control);
    return m;
}

/* ---- what went wrong ---- */

static int fail(struct tls_link *l, int err, const char *why)
{
    if (!l->failed) {
        l->failed = err;
        snprintf(l->why, sizeof(l->why), "%s", why);
    }
    return l->failed;
}

/* Of a certificate that may be anybody's: it need not have the bytes of an address. 0: it has not.
 */
static int address_in(const ASN1_OCTET_STRING *bytes, char text[INET6_ADDRSTRLEN])
{
    int n = ASN1_STRING_length(bytes);
    int family = n == 4 ? AF_INET : AF_INET6;
    if ((n != 4 && n != 16) ||
        !inet_ntop(family, ASN1_STRING_get0_data(bytes), text, INET6_ADDRSTRLEN))
        return 0;
    return (int)strlen(text);
}

static void names_in(X509 *x, char *out, size_t out_n)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && at + 1 < out_n; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
        char ip[INET6_ADDRSTRLEN] = "";
        const char *text = ip;
        int n = 0;
        if (g->type == GEN_DNS) {
            text = (const char *)ASN1_STRING_get0_data(g->d.dNSName);
            n = ASN1_STRING_length(g->d.dNSName);
        } else if (g->type == GEN_IPADD) {
            n = address_in(g->d.iPAddress, ip);
        }
        if (n > 0)
            at += (size_t)snprintf(out + at, out_n - at, "%s%.*s", at ? ", " : "", n, text);
    }
    GENERAL_NAMES_free(names);
    if (!*out)
        snprintf(out, out_n, "no host at all");
}

/* The other side's certificate is not accepted here. */
static void explain_verification(struct tls_link *l, long verdict, char *out, size_t out_n)
{
    const char *whose = l->server ? "the client's certificate" : "its certificate";
    char names[160] = "?";
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        if (l->refused)
            names_in(l->refused, names, sizeof(names));
        snprintf(out, out_n, "its certificate is not that of host %s, but of %s", l->host, names);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        snprintf(out, out_n, "%s, or one that signed it, has expired", whose);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        snprintf(out, out_n, "%s is not valid yet", whose);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        snprintf(out, out_n, "%s is signed by an unknown CA, none of ssl.truststore.location",
                 whose);
        break;
    default:
        snprintf(out, out_n, "%s is not accepted: %s", whose,
                 X509_verify_cert_error_string(verdict));
    }
}

/* OpenSSL's callback for each certificate; keeps the one that is refused, for a line about it. */
static int on_certificate(int ok, X509_STORE_CTX *c)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(c, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_link *l = SSL_get_app_data(ssl);
    X509 *x = X509_STORE_CTX_get0_cert(c);
    if (!ok && x && !l->refused && X509_up_ref(x))
        l->refused = x;
    return ok;
}

/* A client's most frequent reason. */
#define OF_HOST "; is the host that was dialed (advertised.listeners) one of its names?"

/* What OpenSSL's reasons mean to people; true = it is about certificates. */
static const struct {
    int reason;
    bool certificate;
    const char *text;
} reasons[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, true,
     "the client shows no certificate, and ssl.client.auth is required"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, true,
     "it wants a certificate of us: set ssl.keystore.location"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, true, "it does not know the CA of our certificate"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, true,
     "it ended the handshake (alert bad_certificate): it does not accept our certificate, or wants "
     "one" OF_HOST},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, true, "it cannot use our certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, true, "our certificate has expired, it says"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, true, "our certificate is revoked, it says"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, true,
     "it ended the handshake (alert certificate_unknown): it does not accept our "
     "certificate" OF_HOST},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, true, "it does not let us in"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, false,
     "it finds no cipher suite in common, or wants a certificate of us"},
    {SSL_R_NO_SHARED_CIPHER, false, "no cipher suite in common (ssl.cipher.suites)"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, false,
     "no TLS version in common (ssl.enabled.protocols), it says"},
    {SSL_R_UNSUPPORTED_PROTOCOL, false, "no TLS version in common (ssl.enabled.protocols)"},
    {SSL_R_VERSION_TOO_LOW, false, "no TLS version in common (ssl.enabled.protocols)"},
    {SSL_R_WRONG_VERSION_NUMBER, false,
     "what comes is not TLS (is the listener's security protocol SSL?)"},
};

/* Takes OpenSSL's queue of errors apart. */
static int explain(struct tls_link *l)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    char text[WHY_MAX];
    bool certificate = false;
    const char *reason_text = ERR_reason_error_string(code);
    snprintf(text, sizeof(text), "%s", reason_text ? reason_text : "TLS failed");
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        explain_verification(l, SSL_get_verify_result(l->ssl), text, sizeof(text));
        certificate = true;
    }
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        if (ERR_GET_LIB(code) != ERR_LIB_SSL || reasons[i].reason != reason)
            continue;
        snprintf(text, sizeof(text), "%s", reasons[i].text);
        certificate = reasons[i].certificate;
    }
    ERR_clear_error();
    return fail(l, certificate ? -EACCES : -EPROTO, text);
}

/* What a call of OpenSSL came to that did not succeed: 0 = the other side ended. */
static int outcome(struct tls_link *l, int rc, bool *crossed, int straight)
{
    int err = errno, what = SSL_get_error(l->ssl, rc);
    *crossed = (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) && what != straight;
    switch (what) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        return err ? fail(l, -err, "") : 0;
    default:
        return explain(l);
    }
}

static void prepare(void)
{
    ERR_clear_error(); /* what others left would be taken for ours */
    errno = 0;
}

/* ---- handshake ---- */

/* Before OpenSSL sees it: who speaks Kafka's protocol, or HTTP, is told apart here. */
static int look(struct transport *t)
{
    unsigned char first;
    ssize_t n = recv(t->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : fail(t->tls, -errno, "");
    if (n == 0)
        return fail(t->tls, -ECONNRESET, "");
    t->tls->looked = first == RECORD_HANDSHAKE;
    return t->tls->looked ? 0
                          : fail(t->tls, -EPROTO,
                                 "it does not speak TLS (is its security.protocol PLAINTEXT?)");
}

static int find_principal(struct tls_link *l)
{
    X509 *x = SSL_get1_peer_certificate(l->ssl);
    char why[WHY_MAX];
    int rc = 0;
    if (!x)
        return 0;
    char *dn = dn_text(X509_get_subject_name(x));
    X509_free(x);
    if (!dn)
        return fail(l, -EACCES, "the name in the client's certificate cannot be read");
    l->principal = principal_rules_apply(l->material->rules, dn, &rc);
    if (!l->principal) {
        snprintf(why, sizeof(why), "no rule of ssl.principal.mapping.rules fits %s", dn);
        rc = fail(l, rc, why);
    } else {
        rc = 0;
    }
    free(dn);
    return rc;
}

static int tls_secure(struct transport *t)
{
    struct tls_link *l = t->tls;
    bool crossed;
    if (l->failed)
        return l->failed;
    int rc = l->server && !l->looked ? look(t) : 0;
    if (rc)
        return rc;
    prepare();
    int ok = SSL_do_handshake(l->ssl);
    if (ok == 1) {
        l->done = true;
        l->more = SSL_has_pending(l->ssl);
        return l->server ? find_principal(l) : 0;
    }
    rc = outcome(l, ok, &crossed, 0);
    if (rc == 0)
        return fail(l, -ECONNRESET,
                    l->server ? ""
                              : "it closed the connection during the handshake (is the listener's "
                                "security protocol SSL?)");
    return rc;
}

/* ---- bytes ---- */

static void note_crossed(struct transport *t)
{
    t->crossed = t->tls->read_wants_write || t->tls->write_wants_read;
}

static ssize_t tls_recv(struct transport *t, const struct iovec *iov, int n)
{
    struct tls_link *l = t->tls;
    size_t total = 0;
    if (l->failed)
        return l->failed;
    l->more = false;
    for (int i = 0; i < n; i++) {
        for (size_t at = 0, got; at < iov[i].iov_len; at += got, total += got) {
            prepare();
            int ok = SSL_read_ex(l->ssl, (char *)iov[i].iov_base + at, iov[i].iov_len - at, &got);
            if (ok == 1)
                continue;
            int rc = outcome(l, ok, &l->read_wants_write, SSL_ERROR_WANT_READ);
            note_crossed(t);
            if (total == 0)
                return rc;
            l->more = rc != -EAGAIN; /* an end, or a failure: told at the next call */
            return (ssize_t)total;
        }
    }
    l->read_wants_write = false;
    note_crossed(t);
    l->more = SSL_has_pending(l->ssl);
    return (ssize_t)total;
}

static ssize_t tls_send_chain(struct transport *t, struct chain *c, size_t budget)
{
    struct tls_link *l = t->tls;
    uint8_t tmp[SEND_PIECE];
    size_t sent = 0;
    if (l->failed)
        return l->failed;
    while (c->left > 0 && (sent < budget || l->retry)) {
        const uint8_t *p;
        size_t n = sent < budget ? budget - sent : 0, wrote;
        n = n < l->retry ? l->retry : n;
        n = n < sizeof(tmp) ? n : sizeof(tmp);
        ssize_t got = chain_peek(c, tmp, n, &p);
        if (got < 0)
            return got;
        prepare();
        int ok = SSL_write_ex(l->ssl, p, (size_t)got, &wrote);
        if (ok == 1) {
            l->retry = 0;
            chain_drop(c, wrote);
            sent += wrote;
            continue;
        }
        int rc = outcome(l, ok, &l->write_wants_read, SSL_ERROR_WANT_WRITE);
        note_crossed(t);
        if (rc == -EAGAIN)
            l->retry = (size_t)got;
        return rc == -EAGAIN ? (ssize_t)sent : rc == 0 ? -EPIPE : rc;
    }
    l->write_wants_read = false;
    note_crossed(t);
    return (ssize_t)sent;
}

static int tls_want(const struct transport *t, bool read, bool write)
{
    const struct tls_link *l = t->tls;
    if (!l->done)
        return SSL_want_write(l->ssl) ? UV_WRITABLE : UV_READABLE;
    int events = 0;
    if (read)
        events |= (l->read_wants_write ? UV_WRITABLE : UV_READABLE) |
                  (l->more || l->failed ? TRANSPORT_AGAIN : 0);
    if (write)
        events |= l->write_wants_read ? UV_READABLE : UV_WRITABLE;
    return events;
}

/* ---- the end ---- */

static void say_goodbye(struct tls_link *l)
{
    if (l->failed || !l->done)
        return;
    prepare();
    (void)SSL_shutdown(l->ssl); /* as far as the socket takes it at once */
    ERR_clear_error();
}

static void tls_finish(struct transport *t)
{
    char junk[16 * 1024];
    say_goodbye(t->tls);
    shutdown(t->fd, SHUT_WR);
    for (size_t got = 0; got < FINISH_MAX;) {
        ssize_t r = recv(t->fd, junk, sizeof(junk), MSG_DONTWAIT);
        if (r <= 0)
            return;
        got += (size_t)r;
    }
}

static void link_free(struct tls_link *l)
{
    SSL_free(l->ssl);
    X509_free(l->refused);
    tls_material_unref(l->material);
    free(l->host);
    free(l->principal);
    free(l);
}

static void tls_close(struct transport *t)
{
    if (t->fd < 0)
        return;
    say_goodbye(t->tls);
    link_free(t->tls);
    close(t->fd);
    t->tls = NULL;
    t->fd = -1;
}

void transport_let_go(struct transport *t)
{
    if (t->tls)
        link_free(t->tls);
    t->tls = NULL;
    t->fd = -1;
}

static const char *tls_why(const struct transport *t)
{
    return t->tls && *t->tls->why ? t->tls->why : NULL;
}

static const char *tls_principal(const struct transport *t)
{
    return t->tls ? t->tls->principal : NULL;
}

static const struct transport_ops tls_ops = {
    .secure = tls_secure,
    .recv = tls_recv,
    .send_chain = tls_send_chain,
    .want = tls_want,
    .finish = tls_finish,
    .close = tls_close,
    .why = tls_why,
    .principal = tls_principal,
};

/* ---- the beginning ---- */

/* The server's certificate must be the host's, if the settings say so. */
static bool set_host(struct tls_link *l, const char *host)
{
    struct in6_addr ip;
    X509_VERIFY_PARAM *p = SSL_get0_param(l->ssl);
    bool number = inet_pton(AF_INET, host, &ip) == 1 || inet_pton(AF_INET6, host, &ip) == 1;
    if (!number && !SSL_set_tlsext_host_name(l->ssl, host))
        return false;
    if (!l->material->check_host)
        return true;
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return number ? X509_VERIFY_PARAM_set1_ip_asc(p, host) : SSL_set1_host(l->ssl, host);
}

static bool prepare_link(struct tls_link *l, int fd, struct tls *tls, const char *host,
                         const struct tls_session *session)
{
    BIO *io = BIO_new(tls->io);
    l->ssl = SSL_new(l->material->ctx);
    if (!l->ssl || !io) {
        BIO_free(io);
        return false;
    }
    BIO_set_data(io, (void *)(intptr_t)fd);
    BIO_set_init(io, 1);
    SSL_set_bio(l->ssl, io, io);
    SSL_set_app_data(l->ssl, l);
    SSL_set_verify(l->ssl, SSL_CTX_get_verify_mode(l->material->ctx), on_certificate);
    if (l->server) {
        SSL_set_accept_state(l->ssl);
        return true;
    }
    SSL_set_connect_state(l->ssl);
    if (session && session->of == l->material)
        SSL_set_session(l->ssl, session->session);
    l->host = strdup(host);
    return l->host && set_host(l, host);
}

int transport_tls_init(struct transport *t, int fd, struct tls *tls, const char *host,
                       const struct tls_session *session)
{
    struct tls_link *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->server = tls->server;
    l->material = tls_material_of(tls);
    bool ok = l->material && prepare_link(l, fd, tls, host, session);
    int rc = ok ? 0 : l->material ? -ENOMEM : -EINVAL;
    if (rc) {
        link_free(l);
        return rc;
    }
    *t = (struct transport){.ops = &tls_ops, .fd = fd, .tls = l};
    return 0;
}

struct tls_session *tls_take_session(struct transport *t)
{
    struct tls_link *l = t->tls;
    SSL_SESSION *session = l && l->done && !l->failed ? SSL_get1_session(l->ssl) : NULL;
    struct tls_session *s =
        session && SSL_SESSION_is_resumable(session) ? malloc(sizeof(*s)) : NULL;
    if (!s) {
        SSL_SESSION_free(session);
        return NULL;
    }
    atomic_fetch_add(&l->material->refs, 1);
    *s = (struct tls_session){session, l->material};
    return s;
}
