/* tls.h - TLS: settings to contexts, and a context to connections.
 *
 * A struct tls is what one listener, or one client, secures its connections with. It can be loaded
 * anew (changed key stores): connections made from then on use the new certificates, those that are
 * open keep theirs.
 *
 * STORES  keys and trusted certificates come from PEM (a file, or the text itself), PKCS12, or JKS
 *         (tls_store.h).
 *
 * THREADS any; a context has its lock, taken once for each new connection. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls;
struct transport;

/* Kafka's ssl.* keys; NULL = not set. Borrowed while tls_load runs. */
struct tls_settings {
    const char *keystore_type, *keystore_location, *keystore_password, *keystore_chain,
        *keystore_key, *key_password;
    const char *truststore_type, *truststore_location, *truststore_password,
        *truststore_certificates;
    const char *protocol, *enabled_protocols, *cipher_suites;
    const char *identification;  /* https = the broker's name must be its certificate's; "" = not */
    const char *client_auth;     /* none, requested, required: a server's */
    const char *principal_rules; /* a server's */
};
/* Fills it by asking for each key ("ssl.keystore.type"); what `get` gives is borrowed. */
void tls_settings_read(struct tls_settings *s, const char *(*get)(void *arg, const char *key),
                       void *arg);

/* Of a server, or of a client. Nothing is loaded yet: connections fail. NULL without memory. */
struct tls *tls_new(bool server);
struct tls *tls_ref(struct tls *t);
void tls_unref(struct tls *t); /* NULL is fine */
/* 0, or -EINVAL with a line in err that names key and value (then all stays as it was), -ENOMEM.
 * @blocks on files */
int tls_load(struct tls *t, const struct tls_settings *s, char *err, size_t err_n);
/* Would it load? The same, and nothing changes. */
int tls_check(bool server, const struct tls_settings *s, char *err, size_t err_n);

/* What a new certificate may have otherwise than the one in force. More alternative
 * names are always fine. */
struct tls_change {
    bool name, hosts; /* its subject; its alternative names */
};
/* May these settings take the place of those in force? As tls_check; -EINVAL also when the
 * certificate is another one's. */
int tls_check_change(struct tls *t, const struct tls_settings *s, struct tls_change allowed,
                     char *err, size_t err_n);

/* What a client may bring to its next connection with the same server, so that the handshake is
 * short. Owned; NULL = nothing. */
struct tls_session;
struct tls_session *tls_take_session(struct transport *t);
void tls_session_free(struct tls_session *s); /* NULL is fine */

/* Takes the connected non-blocking socket; a client names the host it wants (`session` may be NULL,
 * and is not taken), a server passes NULL for both. 0; -errno (-ENOMEM, -EINVAL: nothing is
 * loaded): the socket is still the caller's. */
int transport_tls_init(struct transport *t, int fd, struct tls *tls, const char *host,
                       const struct tls_session *session);

#endif
