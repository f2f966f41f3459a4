/* metrics_page_private.h - a page being told, for metrics_page.c, metrics_families.c and
 * metrics_requests.c. The endpoint's thread alone has it. */
#ifndef SERVER_METRICS_PAGE_PRIVATE_H
#define SERVER_METRICS_PAGE_PRIVATE_H

#include "base/metrics_text.h"
#include "controller/controller.h"
#include "coordinator/group_shard.h"
#include "coordinator/txn_coordinator.h"
#include "replica/fetchers.h"
#include "replica/partition.h"
#include "server/broker_metrics.h"
#include "server/client_quotas.h"
#include "server/metrics_page.h"

enum { PAGE_WINDOW_MS = 300000 };

enum { PAGE_PIECE = 32 << 10 };

struct family;

struct page_partition {
    struct partition *partition; /* one reference: its name */
    struct partition_facts facts;
};

struct page_totals { /* over the partitions here */
    int64_t led, under_replicated, under_min_isr, at_min_isr, offline;
    int64_t moving, max_lag, producers, late_txns;
};

struct page_cluster { /* on the controller, else 0 */
    int64_t active, topics, partitions, offline, imbalanced, brokers;
};

/* One that clients share under a quota. */
enum { QUOTA_NAME_MAX = 128 };
struct page_quota {
    enum quota_kind kind;
    bool has_user, has_client;
    char user[QUOTA_NAME_MAX], client[QUOTA_NAME_MAX]; /* cut, if need be */
    double rate;
    int64_t throttle_ms;
};

/* How long threads had waited, and worked, at a time. */
enum { IDLE_THREADS_MAX = 256 };
struct idle_sample {
    int64_t at_ns;
    uint64_t workers_busy_ns;
    uint64_t idle_ns[IDLE_THREADS_MAX];
};

struct kind_windows {
    struct histogram_window of[REQUEST_HISTOGRAMS];
};

struct metrics_pages {
    struct broker *broker;
    int64_t turned_ms;                           /* monotonic */
    struct kind_windows *windows[REQUEST_KINDS]; /* owned; made at a turn */
    struct idle_sample older, newer;             /* at least IDLE_WINDOW_MS apart */
    /* All families, and (NULL, or made at a turn) the windows of those with `tally`. Owned. */
    const struct family **families;
    struct histogram_window **family_windows;
    size_t families_n;
};

struct page {
    struct metrics_pages *pages;
    struct broker *broker;
    struct page_partition *partitions; /* owned */
    size_t partitions_n, partitions_cap;
    struct topic_counts **topics; /* owned, one reference each */
    size_t topics_n, topics_cap;
    bool failed;
    int64_t late_before_ms; /* wall clock: who wrote to an open transaction last before is late */
    struct page_totals totals;
    struct page_cluster cluster;
    uint64_t isr_shrinks, isr_expands, isr_refused, replicated_in;
    struct group_counts groups;
    struct txn_counts txns;
    struct page_quota *quotas; /* owned */
    size_t quotas_n, quotas_cap;
    struct controller_look controller; /* its queues are owned */
    struct fetcher_figures *fetchers;  /* owned */
    int fetchers_n;
    struct net_figures *net; /* owned; by listener, then network thread */
    int net_n, processors;
    struct idle_sample idle; /* now */
    const struct family *const *families;
    size_t families_n;
    size_t family, item; /* what is told next */
    bool headed;         /* the family's head is told */
};

struct family {
    const char *name;
    enum metric_kind kind;
    const char *help;
    /* How many items (each none or more samples) it has, and one of them. */
    size_t (*items)(const struct page *p);
    void (*put)(const struct page *p, const struct family *f, size_t item, struct buf *out);
    /* for `put` */
    double (*value)(const struct page *p);
    double (*of_partition)(const struct partition_facts *facts);
    int which;
    /* Summaries of one histogram: adds it up, in us. */
    void (*tally)(const struct page *p, const struct family *f, struct tally *out);
};

/* Tables of families, in the order of the page. */
struct family_set {
    const struct family *v;
    size_t n;
};
extern const struct family_set metrics_general, metrics_replication, metrics_controller,
    metrics_network, metrics_coordinators, metrics_store, metrics_quotas;

/* ---- for the tables ---- */

/* Room for one more in an array that grows; false: no memory. */
bool page_grow(void *array, size_t n, size_t *cap, size_t size);

size_t one_item(const struct page *p);
void put_value(const struct page *p, const struct family *f, size_t item, struct buf *out);
void put_times(const struct page *p, const struct family *f, size_t item, struct buf *out);
size_t partition_items(const struct page *p);
/* A value of one partition, with labels before its own. */
void put_of_partition(const struct page *p, const struct family *f, size_t item, double value,
                      struct buf *out);
void put_partition(const struct page *p, const struct family *f, size_t item, struct buf *out);

/* clang-format off */
#define VALUE(n, k, of, text)      {.name = n, .kind = METRIC_##k, .help = text, .items = one_item, .put = put_value, .value = of}
#define TIMES(n, of, w, text)      {.name = n, .kind = METRIC_SUMMARY, .help = text, .items = one_item, .put = put_times, .tally = of, .which = w}
#define ITEMS(n, k, i, f, w, text) {.name = n, .kind = METRIC_##k, .help = text, .items = i, .put = f, .which = w}
#define LABELLED(n, f, w, text)    ITEMS(n, GAUGE, one_item, f, w, text)
#define PARTITION(n, of, text)     {.name = n, .kind = METRIC_GAUGE, .help = text, .items = partition_items, .put = put_partition, .of_partition = of}
/* clang-format on */

/* metrics_replication.c, metrics_controller.c, metrics_network.c: what a page looks up when it
 * begins. */
void look_at_fetchers(struct page *p);
void look_at_controller(struct page *p);
void look_at_network(struct page *p);
void look_at_quotas(struct page *p);

/* metrics_requests.c: one item for each kind of request; `which` is an enum request_histogram. */
size_t request_items(const struct page *p);
void put_request_histogram(const struct page *p, const struct family *f, size_t item,
                           struct buf *out);
void put_request_versions(const struct page *p, const struct family *f, size_t item,
                          struct buf *out);
void put_request_errors(const struct page *p, const struct family *f, size_t item, struct buf *out);
void metrics_requests_turn(struct metrics_pages *s); /* their windows */

/* metrics_process.c: of the process, as Prometheus' libraries call them. */
double process_cpu_seconds(const struct page *p);
double process_resident_bytes(const struct page *p);
double process_virtual_bytes(const struct page *p);
double process_open_fds(const struct page *p);
double process_max_fds(const struct page *p);
double process_start_seconds(const struct page *p);
double process_threads(const struct page *p);
double process_read_bytes(const struct page *p);
double process_write_bytes(const struct page *p);

#endif
