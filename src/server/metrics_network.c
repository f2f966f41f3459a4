/* metrics_network.c - families of connections and of the threads that serve them. */
#include <stdio.h>
#include <stdlib.h>

#include "server/broker_private.h"
#include "server/metrics_page_private.h"

/* ---- how busy threads are: over the last half to whole minute, if a page was asked for then ----
 */

enum { IDLE_WINDOW_MS = 30000 };

static void take_sample(struct broker *b, int processors, struct idle_sample *out)
{
    out->at_ns = clock_mono_ns(b->clock);
    out->workers_busy_ns = workers_busy_ns(b->workers);
    for (int i = 0; i < processors && i < IDLE_THREADS_MAX; i++)
        out->idle_ns[i] = reactor_pool_idle_ns(b->reactors, i);
}

void metrics_pages_serve(struct metrics_pages *s)
{
    take_sample(s->broker, reactor_pool_size(s->broker->reactors), &s->newer);
    s->older = s->newer;
}

/* Of the time since the older sample. */
static double share(const struct page *p, uint64_t then, uint64_t now, int threads)
{
    double passed = (double)(p->idle.at_ns - p->pages->older.at_ns) * threads;
    double part = passed > 0 ? (double)(now - then) / passed : 0;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

static double idle_share(const struct page *p, int i)
{
    return share(p, p->pages->older.idle_ns[i], p->idle.idle_ns[i], 1);
}

static double processors_idle(const struct page *p)
{
    double sum = 0;
    for (int i = 0; i < p->processors; i++)
        sum += idle_share(p, i);
    return p->processors ? sum / p->processors : 1;
}

static double workers_idle(const struct page *p)
{
    return 1 - share(p, p->pages->older.workers_busy_ns, p->idle.workers_busy_ns,
                     workers_count(p->broker->workers));
}

void look_at_network(struct page *p)
{
    struct broker *b = p->broker;
    struct metrics_pages *s = p->pages;
    p->processors = reactor_pool_size(b->reactors);
    if (p->processors > IDLE_THREADS_MAX)
        p->processors = IDLE_THREADS_MAX;
    take_sample(b, p->processors, &p->idle);
    if (p->idle.at_ns - s->newer.at_ns >= IDLE_WINDOW_MS * INT64_C(1000000)) {
        s->older = s->newer;
        s->newer = p->idle;
    }
    pthread_mutex_lock(&b->listeners_lock);
    p->net_n = b->net ? net_server_look(b->net, &p->net) : 0;
    pthread_mutex_unlock(&b->listeners_lock);
    p->failed |= p->net_n < 0;
}

static void put_processor(char out[16], struct metric_label *l, int number)
{
    snprintf(out, 16, "%d", number);
    *l = (struct metric_label){"networkProcessor", str_of(out)};
}

static size_t processor_items(const struct page *p)
{
    return (size_t)p->processors;
}

static void put_idle(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    char number[16];
    struct metric_label l;
    put_processor(number, &l, (int)item);
    metrics_sample(out, f->name, "", &l, 1, idle_share(p, (int)item));
}

/* ---- connections ---- */

enum { NET_OPEN = NET_COUNTS }; /* a gauge: those that were opened and are not closed */

static size_t net_items(const struct page *p)
{
    return (size_t)p->net_n;
}

/* `which`: an enum net_count, or NET_OPEN. */
static void put_net(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct net_figures *at = &p->net[item];
    char number[16];
    struct metric_label l[] = {{"listener", str_of(at->listener)}, {0}};
    put_processor(number, &l[1], at->processor);
    uint64_t open =
        at->n[NET_OPENED] > at->n[NET_CLOSED] ? at->n[NET_OPENED] - at->n[NET_CLOSED] : 0;
    metrics_sample(out, f->name, "", l, 2, (double)(f->which == NET_OPEN ? open : at->n[f->which]));
}

static double expired(const struct page *p)
{
    uint64_t n = 0;
    for (int i = 0; i < p->net_n; i++)
        n += p->net[i].n[NET_EXPIRED];
    return (double)n;
}

/* clang-format off */
#define NET(n, k, w, text) ITEMS("kafka_server_socket_server_metrics_" n, k, net_items, put_net, w, text)

static const struct family families[] = {
    VALUE("kafka_network_socketserver_networkprocessoravgidlepercent", GAUGE, processors_idle, "Share of their time, 0 to 1, that network threads wait."),
    ITEMS("kafka_network_processor_idlepercent", GAUGE, processor_items, put_idle, 0, "The same of one of them."),
    VALUE("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", GAUGE, workers_idle, "Share of their time, 0 to 1, that the threads of num.io.threads wait."),
    VALUE("kafka_network_socketserver_expiredconnectionskilledcount", COUNTER, expired, "Connections closed because their session had ended, and nobody logged in again."),
    NET("connection_count", GAUGE, NET_OPEN, "Connections of clients and brokers."),
    NET("connection_creation_total", COUNTER, NET_OPENED, "Connections that came."),
    NET("connection_close_total", COUNTER, NET_CLOSED, "Connections that went."),
    NET("successful_authentication_total", COUNTER, NET_LOGINS, "Logins (SASL; without it, TLS handshakes)."),
    NET("failed_authentication_total", COUNTER, NET_LOGINS_FAILED, "Logins and TLS handshakes that failed."),
    NET("successful_reauthentication_total", COUNTER, NET_LOGINS_AGAIN, "Logins of those that were in."),
    NET("expired_connections_killed_count", COUNTER, NET_EXPIRED, "Connections closed because their session had ended."),
    NET("request_total", COUNTER, NET_REQUESTS, "Requests that came."),
    NET("incoming_byte_total", COUNTER, NET_BYTES_IN, "Bytes that came."),
    NET("outgoing_byte_total", COUNTER, NET_BYTES_OUT, "Bytes that went out."),
};
/* clang-format on */
const struct family_set metrics_network = {families, sizeof(families) / sizeof(*families)};
