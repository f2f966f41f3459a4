/* metrics_store.c - families of the session at ZooKeeper; without samples when the broker has its
 * metadata by itself. */
#include "server/broker_private.h"
#include "server/metrics_page_private.h"

static const struct store_counts *counts_of(const struct page *p)
{
    return store_counts(p->broker->store);
}

static size_t store_items(const struct page *p)
{
    return counts_of(p) != NULL;
}

/* The state in force is 1, the others are 0. */
static void put_state(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    static const struct {
        const char *name;
        enum store_link link;
    } states[] = {{"CONNECTED", STORE_LINK_CONNECTED},
                  {"CONNECTING", STORE_LINK_CUT_OFF},
                  {"EXPIRED", STORE_LINK_EXPIRED}};
    int link = atomic_load(&counts_of(p)->link);
    (void)item;
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        struct metric_label l = {"state", str_of(states[i].name)};
        metrics_sample(out, f->name, "", &l, 1, link == (int)states[i].link);
    }
}

enum { EXPIRIES, DISCONNECTS, CONNECTS, AUTH_FAILURES };

static void put_store_count(const struct page *p, const struct family *f, size_t item,
                            struct buf *out)
{
    const struct store_counts *c = counts_of(p);
    const metric *const of[] = {[EXPIRIES] = &c->expiries,
                                [DISCONNECTS] = &c->disconnects,
                                [CONNECTS] = &c->connects,
                                [AUTH_FAILURES] = &c->auth_failures};
    (void)item;
    metrics_sample(out, f->name, "", NULL, 0, (double)metric_read(of[f->which]));
}

static void latencies(const struct page *p, const struct family *f, struct tally *out)
{
    const struct store_counts *c = counts_of(p);
    (void)f;
    if (c)
        tally_add(out, &c->latency_us);
}

/* clang-format off */
#define SESSION(n, w, text) ITEMS("kafka_server_sessionexpirelistener_zookeeper" n, COUNTER, store_items, put_store_count, w, text)

static const struct family families[] = {
    ITEMS("kafka_server_sessionexpirelistener_sessionstate", GAUGE, store_items, put_state, 0, "1: this is the state of the session at ZooKeeper."),
    SESSION("expires_total", EXPIRIES, "Sessions at ZooKeeper that expired."),
    SESSION("disconnects_total", DISCONNECTS, "Connections to ZooKeeper that were lost."),
    SESSION("syncconnects_total", CONNECTS, "Connections to ZooKeeper that were made."),
    SESSION("authfailures_total", AUTH_FAILURES, "Times that ZooKeeper refused our credentials."),
    {.name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms", .kind = METRIC_SUMMARY, .help = "Requests to ZooKeeper, in ms.", .items = store_items, .put = put_times, .tally = latencies},
};
/* clang-format on */
const struct family_set metrics_store = {families, sizeof(families) / sizeof(*families)};
