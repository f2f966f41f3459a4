/* metrics_page_private.h - a page being told, for metrics_page.c, metrics_families.c and
 * metrics_requests.c. The endpoint's thread alone has it. */
#ifndef SERVER_METRICS_PAGE_PRIVATE_H
#define SERVER_METRICS_PAGE_PRIVATE_H

#include "base/metrics_text.h"
#include "coordinator/group_shard.h"
#include "replica/partition.h"
#include "server/broker_metrics.h"
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
};

struct page_cluster { /* on the controller, else 0 */
    int64_t active, topics, partitions, offline, imbalanced, brokers;
};

struct kind_windows {
    struct histogram_window of[REQUEST_HISTOGRAMS];
};

struct metrics_pages {
    struct broker *broker;
    int64_t turned_ms;                           /* monotonic */
    struct kind_windows *windows[REQUEST_KINDS]; /* owned; made at a turn */
};

struct page {
    struct metrics_pages *pages;
    struct broker *broker;
    struct page_partition *partitions; /* owned */
    size_t partitions_n, partitions_cap;
    struct topic_counts **topics; /* owned, one reference each */
    size_t topics_n, topics_cap;
    bool failed;
    struct page_totals totals;
    struct page_cluster cluster;
    uint64_t isr_shrinks, isr_expands, isr_refused, replicated_in;
    struct group_counts groups;
    const struct family *families;
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
};
extern const struct family metrics_families[];
extern const size_t metrics_families_n;

/* metrics_requests.c: one item for each kind of request; `which` is an enum request_histogram. */
size_t request_items(const struct page *p);
void put_request_histogram(const struct page *p, const struct family *f, size_t item,
                           struct buf *out);
void put_request_versions(const struct page *p, const struct family *f, size_t item,
                          struct buf *out);
void put_request_errors(const struct page *p, const struct family *f, size_t item, struct buf *out);
/* Quantiles begin a new window, if the last one is old enough. */
void metrics_windows_turn(struct metrics_pages *s, int64_t now_ms);

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
