/* broker_security.c - see broker_security.h. A listener's entry is made once and stays, also when
 * the listener goes: connections that are still open lead to it. */
#include "server/broker_security.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "net/peer_sasl.h"
#include "server/listener_tls.h"
#include "server/sasl_gate.h"
#include "server/sasl_listener.h"

struct secured_listener {
    struct list link;
    char *name;
    int16_t protocol;
    struct listener_tls tls;
    struct listen_security listen;
    struct peer_security peer;
    struct sasl_listener *sasl; /* owned; NULL = no SASL here */
    uint64_t sasl_fingerprint;
    struct peer_auth *auth; /* owned; NULL = we do not log in there */
};

struct broker_security {
    struct scram_users *users;
    struct tokens *tokens;
    const struct clock *clock;
    pthread_mutex_t lock;
    struct list listeners;
};

static struct secured_listener *find(struct broker_security *s, struct str name)
{
    list_each (at, &s->listeners) {
        struct secured_listener *l = list_entry(at, struct secured_listener, link);
        if (str_eqz(name, l->name))
            return l;
    }
    return NULL;
}

static void listener_free(struct secured_listener *l)
{
    listener_tls_clear(&l->tls);
    sasl_listener_free(l->sasl);
    peer_sasl_free(l->auth);
    free(l->name);
    free(l);
}

static int add_sasl(struct broker_security *s, struct secured_listener *own, const struct config *c,
                    const struct listener_config *l, char *err, size_t err_n)
{
    if (!sasl_listener_has(l))
        return 0;
    int rc = sasl_listener_new(c, l->name, s->users, s->tokens, &own->sasl, err, err_n);
    if (!rc && sasl_listener_for_brokers(c, l))
        rc = sasl_listener_peer(c, l->name, s->clock, &own->auth, err, err_n);
    own->sasl_fingerprint = sasl_listener_fingerprint(c, l->name);
    own->listen.secured = sasl_gate_secured;
    own->listen.arg = own->sasl;
    own->peer.auth = own->auth;
    return rc;
}

static int add(struct broker_security *s, const struct config *c, const struct listener_config *l,
               char *err, size_t err_n)
{
    struct secured_listener *own = calloc(1, sizeof(*own));
    char *name = own ? strdup(l->name) : NULL;
    if (!name) {
        free(own);
        return -ENOMEM;
    }
    own->name = name;
    own->protocol = l->security_protocol;
    list_init(&own->link);
    int rc = add_sasl(s, own, c, l, err, err_n);
    if (rc)
        listener_free(own);
    else
        list_push_front(&s->listeners, &own->link);
    return rc;
}

/* Settings of SASL do not change while a listener is there. */
static bool is_same(const struct secured_listener *own, const struct config *c,
                    const struct listener_config *l)
{
    return own->protocol == l->security_protocol &&
           (!own->sasl || own->sasl_fingerprint == sasl_listener_fingerprint(c, l->name));
}

/* A listener of the name whose protocol, or login, is another one now is a new one: what the former
 * had stays, behind it, for those who still use it. */
static int apply_one(struct broker_security *s, const struct config *c,
                     const struct listener_config *l, char *err, size_t err_n)
{
    struct secured_listener *own = find(s, str_of(l->name));
    int rc = own && is_same(own, c, l) ? 0 : add(s, c, l, err, err_n);
    if (rc || !listener_has_tls(l))
        return rc;
    own = find(s, str_of(l->name));
    rc = listener_tls_load(&own->tls, c, l->name, err, err_n);
    own->listen.tls = own->tls.server;
    own->peer.tls = own->tls.client;
    return rc;
}

int broker_security_apply(struct broker_security *s, const struct config *c, char *err,
                          size_t err_n)
{
    char line[1024];
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < c->listeners_n; i++) {
        *line = 0;
        int one = apply_one(s, c, &c->listeners[i], line, sizeof(line));
        if (one && !rc)
            snprintf(err, err_n, "%s", *line ? line : strerror(-one));
        rc = rc ? rc : one;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int broker_security_check(struct broker_security *s, const struct config *c, char *err,
                          size_t err_n)
{
    int rc = 0;
    *err = 0;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < c->listeners_n && !rc; i++) {
        const struct listener_config *l = &c->listeners[i];
        const struct secured_listener *own = find(s, str_of(l->name));
        if (listener_has_tls(l))
            rc = listener_tls_check(own ? &own->tls : NULL, c, l->name, err, err_n);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int broker_security_new(const struct config *c, struct scram_users *users, struct tokens *tokens,
                        const struct clock *clock, struct broker_security **out, char *err,
                        size_t err_n)
{
    struct broker_security *s = calloc(1, sizeof(*s));
    *out = s;
    if (!s) {
        snprintf(err, err_n, "listeners: out of memory");
        return -ENOMEM;
    }
    pthread_mutex_init(&s->lock, NULL);
    list_init(&s->listeners);
    s->users = users;
    s->tokens = tokens;
    s->clock = clock;
    return broker_security_apply(s, c, err, err_n);
}

void broker_security_free(struct broker_security *s)
{
    struct list *link;
    if (!s)
        return;
    while ((link = list_pop(&s->listeners))) {
        listener_free(list_entry(link, struct secured_listener, link));
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct listen_security *broker_security_listen(struct broker_security *s,
                                                     const struct listener_config *l)
{
    pthread_mutex_lock(&s->lock);
    const struct secured_listener *own = find(s, str_of(l->name));
    bool whole = own && own->protocol == l->security_protocol &&
                 (own->listen.tls || !listener_has_tls(l)) &&
                 (own->listen.secured || !sasl_listener_has(l));
    pthread_mutex_unlock(&s->lock);
    return whole ? &own->listen : NULL;
}

struct peer_security broker_security_peer(struct broker_security *s, struct str listener)
{
    pthread_mutex_lock(&s->lock);
    struct secured_listener *l = find(s, listener);
    pthread_mutex_unlock(&s->lock);
    return l ? l->peer : (struct peer_security){0};
}
