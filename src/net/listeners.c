/* listeners.c - a server's listeners: added and removed, also while it runs.
 *
 * The list belongs to reactor 0. Whoever changes it does so there, and waits; so a port that was
 * given up is free for the next listener. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/server_private.h"

struct call {
    struct task task;
    struct net_server *server;
    int (*run)(struct net_server *s, void *arg);
    void *arg;
    int result;
    sem_t over;
};

static void on_call(struct task *t)
{
    struct call *c = container_of(t, struct call, task);
    c->result = c->server->ended ? -ESHUTDOWN : c->run(c->server, c->arg);
    sem_post(&c->over);
}

static int call_reactor_0(struct net_server *s, int (*run)(struct net_server *s, void *arg),
                          void *arg)
{
    struct call c = {.server = s, .run = run, .arg = arg};
    task_init(&c.task, on_call);
    sem_init(&c.over, 0, 0);
    executor_post(shard_executor(&s->shards[0]), &c.task);
    while (sem_wait(&c.over) < 0 && errno == EINTR)
        ;
    sem_destroy(&c.over);
    return c.result;
}

static int add(struct net_server *s, void *arg)
{
    struct listener *l = arg;
    list_push_back(&s->listeners, &l->link);
    return 0;
}

static int begin_all(struct net_server *s, void *arg)
{
    list_each (it, &s->listeners)
        listener_begin(list_entry(it, struct listener, link));
    return 0;
}

static int remove_named(struct net_server *s, void *arg)
{
    list_each (it, &s->listeners) {
        struct listener *l = list_entry(it, struct listener, link);
        if (strcmp(l->name, arg) == 0) {
            listener_remove(l);
            return 0;
        }
    }
    return -ENOENT;
}

int net_server_listen_secured(struct net_server *s, const char *listener_name, const char *host,
                              int port, const struct listen_security *security, int *bound_port)
{
    struct listener *l;
    int err = listener_new(s, listener_name, host, port, security, &l);
    if (err)
        return err;
    *bound_port = sock_bound_port(l->fd);
    err = call_reactor_0(s, add, l);
    if (err)
        listener_unref(l);
    return err;
}

int net_server_listen(struct net_server *s, const char *listener_name, const char *host, int port,
                      int *bound_port)
{
    return net_server_listen_secured(s, listener_name, host, port, NULL, bound_port);
}

int net_server_unlisten(struct net_server *s, const char *listener_name)
{
    return call_reactor_0(s, remove_named, (void *)(uintptr_t)listener_name);
}

void net_server_accept(struct net_server *s)
{
    (void)call_reactor_0(s, begin_all, NULL); /* when it has ended there is nobody to let in */
}

/* ---- what was counted ---- */

struct look {
    struct net_figures *v;
    int n;
};

static void look_at(struct net_figures *f, const struct listener *l, int processor)
{
    f->processor = processor;
    snprintf(f->listener, sizeof(f->listener), "%s", l->name);
    for (int i = 0; i < NET_COUNTS; i++)
        f->n[i] = metric_read(&l->counts[processor].n[i]);
}

static int look(struct net_server *s, void *arg)
{
    struct look *k = arg;
    int shards = atomic_load(&s->shards_n), listeners = 0;
    list_each (it, &s->listeners)
        listeners++;
    if (!s->limits.count || listeners == 0)
        return 0;
    k->v = calloc((size_t)listeners * (size_t)shards, sizeof(*k->v));
    if (!k->v)
        return -ENOMEM;
    list_each (it, &s->listeners)
        for (int i = 0; i < shards; i++)
            look_at(&k->v[k->n++], list_entry(it, struct listener, link), i);
    return 0;
}

int net_server_look(struct net_server *s, struct net_figures **out)
{
    struct look k = {NULL, 0};
    int err = call_reactor_0(s, look, &k);
    *out = k.v;
    return err ? err : k.n;
}

int net_can_listen(const char *host, int port)
{
    int fd = sock_listen(host, port, 1, -1);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}
