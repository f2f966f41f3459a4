/* sim_net.c - see sim_net.h: links, cuts, weather. */
#include "sim_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 200 };

struct frame {
    struct list link;
    int64_t due;
    uint8_t *bytes;
    size_t n;
    bool end; /* no frame: this side closed */
};

struct direction {
    struct list frames; /* in order */
    int64_t last;       /* when the last of them is due */
    bool moving;        /* an event is on its way for the first */
};

struct sim_link {
    struct list all;
    struct sim_host *host[2]; /* by side */
    uint32_t life[2];
    struct sim_end end[2];
    bool open[2]; /* that end listens */
    struct direction to[2];
    char target[8];
    int port;
    int64_t give_up;
    bool established;
};

static struct net {
    struct sim_net_weather weather;
    bool cut[SIM_HOSTS][SIM_HOSTS];
    struct list links, listeners;
    bool ready;
    uint64_t frames;
} N;

static void ready(void)
{
    if (N.ready)
        return;
    N.ready = true;
    list_init(&N.links);
    list_init(&N.listeners);
    N.weather = (struct sim_net_weather){.delay_min = SIM_MS / 10, .delay_max = SIM_MS};
}

struct sim_net_weather *sim_net_weather(void)
{
    ready();
    return &N.weather;
}

uint64_t sim_net_frames(void)
{
    return N.frames;
}

void sim_net_cut(int from, int to, bool cut)
{
    N.cut[from][to] = cut;
}

bool sim_net_is_cut(int from, int to)
{
    return N.cut[from][to];
}

int64_t sim_net_delay(void)
{
    ready();
    if (N.weather.spike > 0 && sim_chance(N.weather.spike))
        return sim_between(0, N.weather.spike_ns);
    return sim_between(N.weather.delay_min, N.weather.delay_max);
}

/* ---- frames on their way ---- */

static void deliver(struct sim_link *l, enum sim_side to);

static enum sim_side other(enum sim_side s)
{
    return s == SIDE_CLIENT ? SIDE_SERVER : SIDE_CLIENT;
}

static bool alive(const struct sim_link *l, enum sim_side s)
{
    return l->host[s] && l->host[s]->up && l->host[s]->life == l->life[s];
}

static bool blocked(const struct sim_link *l, enum sim_side to)
{
    return N.cut[l->host[other(to)]->id][l->host[to]->id];
}

static void forget(struct sim_link *l, enum sim_side s)
{
    l->open[s] = false;
    struct list *it;
    while ((it = list_pop(&l->to[s].frames))) {
        struct frame *f = list_entry(it, struct frame, link);
        free(f->bytes);
        free(f);
    }
    if (!l->open[0] && !l->open[1])
        list_remove(&l->all);
}

/* This end hears that it is over. */
static void hear_end(struct sim_link *l, enum sim_side s, int error)
{
    if (!l->open[s])
        return;
    bool hears = alive(l, s);
    forget(l, s);
    if (hears)
        l->end[s].closed(l->end[s].arg, error);
}

static void arrive(void *arg);

struct arrival {
    struct sim_link *l;
    enum sim_side to;
};

static void schedule(struct sim_link *l, enum sim_side to, int64_t at)
{
    struct arrival *a = malloc(sizeof(*a));
    *a = (struct arrival){l, to};
    l->to[to].moving = true;
    sim_after(at - sim_now(), NULL, arrive, a);
}

static void arrive(void *arg)
{
    struct arrival *a = arg;
    struct sim_link *l = a->l;
    enum sim_side to = a->to;
    free(a);
    l->to[to].moving = false;
    deliver(l, to);
}

static void deliver(struct sim_link *l, enum sim_side to)
{
    struct direction *d = &l->to[to];
    if (list_empty(&d->frames))
        return;
    if (blocked(l, to) || (alive(l, to) && l->host[to]->paused)) {
        schedule(l, to, sim_now() + RETRY_MS * SIM_MS);
        return;
    }
    struct frame *f = list_entry(list_pop(&d->frames), struct frame, link);
    struct frame copy = *f;
    free(f);
    if (!alive(l, to)) { /* another life: its kernel knows no such connection */
        free(copy.bytes);
        if (l->host[to]->powered)
            hear_end(l, other(to), -ECONNRESET);
        if (l->open[to])
            forget(l, to);
        return;
    }
    if (copy.end) {
        free(copy.bytes);
        hear_end(l, to, -ECONNRESET);
        return;
    }
    N.frames++;
    sim_trace(copy.n);
    for (size_t i = 0; i + 8 <= copy.n; i += 8) {
        uint64_t v;
        memcpy(&v, copy.bytes + i, 8);
        sim_trace(v);
    }
    if (!list_empty(&d->frames)) {
        int64_t due = list_entry(d->frames.next, struct frame, link)->due;
        schedule(l, to, due > sim_now() ? due : sim_now());
    }
    l->end[to].frame(l->end[to].arg, copy.bytes, copy.n);
}

static void put(struct sim_link *l, enum sim_side to, uint8_t *bytes, size_t n, bool end)
{
    struct direction *d = &l->to[to];
    if (!l->open[to]) {
        free(bytes);
        return;
    }
    struct frame *f = malloc(sizeof(*f));
    int64_t due = sim_now() + sim_net_delay();
    if (due < d->last)
        due = d->last;
    d->last = due;
    *f = (struct frame){.due = due, .bytes = bytes, .n = n, .end = end};
    list_push_back(&d->frames, &f->link);
    if (!d->moving)
        schedule(l, to, due);
}

static void break_link(struct sim_link *l)
{
    hear_end(l, SIDE_CLIENT, -ECONNRESET);
    hear_end(l, SIDE_SERVER, -ECONNRESET);
}

static void break_later(void *arg)
{
    break_link(arg);
}

void sim_link_send(struct sim_link *l, enum sim_side from, uint8_t *bytes, size_t n)
{
    if (N.weather.lose > 0 && sim_chance(N.weather.lose)) {
        bool first = sim_chance(0.5);
        if (first) {
            free(bytes);
            sim_after(0, NULL, break_later, l);
            return;
        }
        sim_after(sim_between(0, 2 * N.weather.delay_max), NULL, break_later, l);
    }
    put(l, other(from), bytes, n, false);
}

void sim_link_close(struct sim_link *l, enum sim_side side)
{
    if (!l->open[side])
        return;
    forget(l, side);
    put(l, other(side), NULL, 0, true);
}

/* ---- connecting ---- */

void sim_listen(struct sim_listener *l)
{
    ready();
    list_push_back(&N.listeners, &l->link);
}

void sim_unlisten(struct sim_listener *l)
{
    list_remove(&l->link);
}

static struct sim_listener *listener_at(const struct sim_host *h, int port)
{
    list_each (it, &N.listeners) {
        struct sim_listener *l = list_entry(it, struct sim_listener, link);
        if (l->host == h && l->life == h->life && l->port == port && h->up)
            return l;
    }
    return NULL;
}

static void knock(void *arg)
{
    struct sim_link *l = arg;
    struct sim_host *h = l->host[SIDE_SERVER];
    struct sim_listener *at = h ? listener_at(h, l->port) : NULL;
    if (!l->open[SIDE_CLIENT] || !alive(l, SIDE_CLIENT))
        return;
    bool passes = h && !N.cut[l->host[SIDE_CLIENT]->id][h->id] &&
                  !N.cut[h->id][l->host[SIDE_CLIENT]->id] && h->powered && !h->paused;
    if (!h || (passes && !at)) {
        hear_end(l, SIDE_CLIENT, h ? -ECONNREFUSED : -EHOSTUNREACH);
    } else if (passes && at->accepting) {
        l->life[SIDE_SERVER] = h->life;
        l->established = true;
        at->accept(at->arg, l);
        if (l->open[SIDE_CLIENT])
            l->end[SIDE_CLIENT].connected(l->end[SIDE_CLIENT].arg);
    } else if (l->give_up && sim_now() >= l->give_up) {
        hear_end(l, SIDE_CLIENT, -ETIMEDOUT);
    } else {
        sim_after(RETRY_MS * SIM_MS, NULL, knock, l);
    }
}

struct sim_link *sim_link_connect(struct sim_host *from, const char *host, int port,
                                  int64_t timeout_ns, struct sim_end end)
{
    ready();
    struct sim_link *l = calloc(1, sizeof(*l)); /* events hold it: it is left */
    l->host[SIDE_CLIENT] = from;
    l->host[SIDE_SERVER] = sim_host_named(host);
    l->life[SIDE_CLIENT] = from->life;
    l->end[SIDE_CLIENT] = end;
    l->open[SIDE_CLIENT] = true;
    l->port = port;
    l->give_up = timeout_ns > 0 ? sim_now() + timeout_ns : 0;
    list_init(&l->to[0].frames);
    list_init(&l->to[1].frames);
    list_push_back(&N.links, &l->all);
    sim_after(sim_net_delay() + sim_net_delay(), NULL, knock, l);
    return l;
}

void sim_link_attach(struct sim_link *l, struct sim_end end)
{
    l->end[SIDE_SERVER] = end;
    l->open[SIDE_SERVER] = true;
}

int sim_link_peer(const struct sim_link *l)
{
    return l->host[SIDE_CLIENT]->id;
}

void sim_net_reset(struct sim_host *h)
{
    list_each_safe (it, &N.links) {
        struct sim_link *l = list_entry(it, struct sim_link, all);
        if (l->established && (l->host[0] == h || l->host[1] == h))
            sim_after(sim_net_delay(), NULL, break_later, l);
    }
}

void sim_net_host_died(struct sim_host *h, bool polite)
{
    ready();
    list_each_safe (it, &N.links) {
        struct sim_link *l = list_entry(it, struct sim_link, all);
        for (int s = 0; s < 2; s++) {
            if (l->host[s] != h || !l->open[s] || alive(l, (enum sim_side)s))
                continue;
            if (polite)
                sim_link_close(l, (enum sim_side)s);
        }
    }
    list_each_safe (it, &N.listeners) {
        struct sim_listener *l = list_entry(it, struct sim_listener, link);
        if (l->host == h && l->life != h->life)
            list_remove(&l->link);
    }
}
