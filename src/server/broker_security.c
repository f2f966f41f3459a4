/* broker_security.c - see broker_security.h. A listener's entry is made once and stays, also when
 * the listener goes: connections that are still open lead to it. */
#include "server/broker_security.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

struct secured_listener {
    struct list link;
    char *name;
    int16_t protocol;
    struct listen_security listen;
    struct peer_security peer;
};

struct broker_security {
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

static int add(struct broker_security *s, const struct listener_config *l)
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
    list_push_back(&s->listeners, &own->link);
    return 0;
}

int broker_security_apply(struct broker_security *s, const struct config *c, char *err,
                          size_t err_n)
{
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < c->listeners_n && !rc; i++)
        if (!find(s, str_of(c->listeners[i].name)))
            rc = add(s, &c->listeners[i]);
    pthread_mutex_unlock(&s->lock);
    if (rc)
        snprintf(err, err_n, "listeners: %s", strerror(-rc));
    return rc;
}

int broker_security_new(const struct config *c, struct broker_security **out, char *err,
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
    return broker_security_apply(s, c, err, err_n);
}

void broker_security_free(struct broker_security *s)
{
    struct list *link;
    if (!s)
        return;
    while ((link = list_pop(&s->listeners))) {
        struct secured_listener *l = list_entry(link, struct secured_listener, link);
        free(l->name);
        free(l);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct listen_security *broker_security_listen(struct broker_security *s,
                                                     const char *listener)
{
    pthread_mutex_lock(&s->lock);
    struct secured_listener *l = find(s, str_of(listener));
    pthread_mutex_unlock(&s->lock);
    return l ? &l->listen : NULL;
}

struct peer_security broker_security_peer(struct broker_security *s, struct str listener)
{
    pthread_mutex_lock(&s->lock);
    struct secured_listener *l = find(s, listener);
    pthread_mutex_unlock(&s->lock);
    return l ? l->peer : (struct peer_security){0};
}
