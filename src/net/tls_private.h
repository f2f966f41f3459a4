/* tls_private.h - a struct tls, for tls.c, tls_context.c and transport_tls.c. */
#ifndef NET_TLS_PRIVATE_H
#define NET_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/principal_rules.h"
#include "net/tls.h"

/* What one loading made; counted, connections hold theirs. */
struct tls_material {
    atomic_int refs;
    SSL_CTX *ctx;
    bool check_host;
    struct principal_rules *rules; /* a server's; owned */
};
/* 0, or -EINVAL with a line in err, -ENOMEM. @blocks on files */
int tls_material_new(bool server, const struct tls_settings *s, struct tls_material **out,
                     char *err, size_t err_n);
void tls_material_unref(struct tls_material *m); /* NULL is fine */

struct tls {
    atomic_int refs;
    bool server;
    BIO_METHOD *io; /* the socket, without SIGPIPE */
    pthread_mutex_t lock;
    struct tls_material *now; /* under lock; NULL: nothing is loaded */
};

struct tls_session {
    SSL_SESSION *session;
    struct tls_material *of; /* good with this one only */
};

/* The material in force, with a reference; NULL = none. */
struct tls_material *tls_material_of(struct tls *t);
/* transport_tls.c's. NULL without memory. */
BIO_METHOD *tls_socket_io(void);

#endif
