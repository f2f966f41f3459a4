/* metrics_page.c - a page from its look at the broker to its last piece. */
#include "server/metrics_page.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/group_manager.h"
#include "coordinator/txn_manager.h"
#include "server/broker_private.h"
#include "server/metrics_page_private.h"

static const struct family_set *const sets[] = {
    &metrics_general,      &metrics_replication, &metrics_controller, &metrics_network,
    &metrics_coordinators, &metrics_store,       &metrics_quotas};
enum { SETS = sizeof(sets) / sizeof(*sets) };

/* One behind the other. */
static bool gather_families(struct metrics_pages *s)
{
    size_t n = 0;
    for (int i = 0; i < SETS; i++)
        n += sets[i]->n;
    s->families = calloc(n, sizeof(struct family *));
    s->family_windows = calloc(n, sizeof(struct histogram_window *));
    for (int i = 0; s->families && i < SETS; i++)
        for (size_t k = 0; k < sets[i]->n; k++)
            s->families[s->families_n++] = &sets[i]->v[k];
    return s->families && s->family_windows;
}

struct metrics_pages *metrics_pages_new(struct broker *b)
{
    struct metrics_pages *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->broker = b;
    s->turned_ms = b ? clock_mono_ms(b->clock) : 0;
    if (gather_families(s))
        return s;
    metrics_pages_free(s);
    return NULL;
}

void metrics_pages_free(struct metrics_pages *s)
{
    if (!s)
        return;
    for (int k = 0; k < REQUEST_KINDS; k++)
        free(s->windows[k]);
    for (size_t i = 0; s->family_windows && i < s->families_n; i++)
        free(s->family_windows[i]);
    free(s->family_windows);
    free(s->families);
    free(s);
}

/* ---- for the tables ---- */

size_t one_item(const struct page *p)
{
    (void)p;
    return 1;
}

void put_value(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    (void)item;
    metrics_sample(out, f->name, "", NULL, 0, f->value(p));
}

void put_times(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct histogram_window *w = p->pages->family_windows[p->family];
    struct tally all = {0}, lately;
    (void)item;
    f->tally(p, f, &all);
    lately = all;
    if (w)
        histogram_window_cut(w, &lately);
    metrics_summary(out, f->name, NULL, 0, &lately, &all, 1000);
}

size_t partition_items(const struct page *p)
{
    return p->partitions_n;
}

void put_of_partition(const struct page *p, const struct family *f, size_t item, double value,
                      struct buf *out)
{
    char number[16];
    struct topic_partition tp = partition_tp(p->partitions[item].partition);
    snprintf(number, sizeof(number), "%d", (int)tp.partition);
    struct metric_label l[] = {{"topic", tp.topic}, {"partition", str_of(number)}};
    metrics_sample(out, f->name, "", l, 2, value);
}

void put_partition(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    put_of_partition(p, f, item, f->of_partition(&p->partitions[item].facts), out);
}

/* Quantiles begin a new window, if the last one is old enough. */
static void turn_windows(struct page *p, int64_t now_ms)
{
    struct metrics_pages *s = p->pages;
    if (now_ms - s->turned_ms < PAGE_WINDOW_MS)
        return;
    s->turned_ms = now_ms;
    metrics_requests_turn(s);
    for (size_t i = 0; i < s->families_n; i++) {
        const struct family *f = s->families[i];
        struct tally all = {0};
        if (f->tally && !s->family_windows[i])
            s->family_windows[i] = calloc(1, sizeof(struct histogram_window));
        if (!s->family_windows[i])
            continue; /* quantiles are of all until then */
        f->tally(p, f, &all);
        histogram_window_turn(s->family_windows[i], &all);
    }
}

/* ---- the look ---- */

bool page_grow(void *array, size_t n, size_t *cap, size_t size)
{
    void **at = array;
    if (n < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 64;
    void *moved = realloc(*at, more * size);
    if (!moved)
        return false;
    *at = moved;
    *cap = more;
    return true;
}

/* A transaction is late when nobody ended it for so long after the longest time that any may take:
 * its coordinator would have. Who wrote to it last before this was. */
static int64_t late_before_ms(const struct broker *b)
{
    enum { GRACE_MS = 300000 };
    int64_t longest = config_int(b->config, "transaction.max.timeout.ms");
    return clock_wall_ms(b->clock) - longest - GRACE_MS;
}

static void look_at_partition(void *arg, struct partition *partition)
{
    struct page *p = arg;
    if (p->failed ||
        !page_grow(&p->partitions, p->partitions_n, &p->partitions_cap, sizeof(*p->partitions))) {
        p->failed = true;
        return;
    }
    struct page_partition *at = &p->partitions[p->partitions_n++];
    at->partition = partition_ref(partition);
    partition_facts(partition, &at->facts);
    p->totals.led += at->facts.leads;
    p->totals.offline += at->facts.offline;
    p->totals.under_replicated += at->facts.under_replicated;
    p->totals.under_min_isr += at->facts.under_min_isr;
    p->totals.at_min_isr += at->facts.at_min_isr;
    p->totals.moving += at->facts.moving;
    p->totals.producers += at->facts.producers.producers;
    const struct log_producer_counts *producers = &at->facts.producers;
    p->totals.late_txns +=
        producers->oldest_txn_ms >= 0 && producers->oldest_txn_ms < p->late_before_ms;
    if (at->facts.lag > p->totals.max_lag)
        p->totals.max_lag = at->facts.lag;
}

static void look_at_topic(void *arg, const struct topic_counts *c)
{
    struct page *p = arg;
    if (p->failed ||
        !page_grow(&p->topics, p->topics_n, &p->topics_cap, sizeof(struct topic_counts *))) {
        p->failed = true;
        return;
    }
    p->topics[p->topics_n++] = topic_counts_ref((struct topic_counts *)c);
}

static void look_at_cluster_topic(struct page_cluster *c, const struct topic_info *t)
{
    for (int i = 0; i < t->partitions_n; i++) {
        const struct partition_info *p = &t->partitions[i];
        if (p->replicas_n == 0)
            continue;
        c->partitions++;
        c->offline += p->leader < 0;
        c->imbalanced += p->leader != p->replicas[0];
    }
}

/* What only the controller tells. */
static void look_at_cluster(struct page *p)
{
    if (!broker_is_controller(p->broker))
        return;
    struct arena a;
    arena_init(&a, 0);
    const struct metadata_snapshot *s = metadata_acquire(p->broker->metadata);
    const struct broker_info *brokers;
    const struct topic_info **topics = metadata_topics(s, &a);
    int n = metadata_topics_n(s);
    p->cluster.active = 1;
    p->cluster.brokers = metadata_brokers(s, &brokers);
    p->cluster.topics = n;
    p->failed |= n > 0 && !topics;
    for (int i = 0; topics && i < n; i++)
        look_at_cluster_topic(&p->cluster, topics[i]);
    metadata_release(s);
    arena_free(&a);
}

void *metrics_page_begin(void *arg)
{
    struct metrics_pages *s = arg;
    struct page *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->pages = s;
    p->broker = s->broker;
    p->families = s->families;
    p->families_n = s->families_n;
    struct replica_manager *replicas = atomic_load(&s->broker->replicas);
    p->late_before_ms = late_before_ms(s->broker);
    replica_manager_each(replicas, look_at_partition, p);
    replica_manager_each_topic(replicas, look_at_topic, p);
    replica_manager_isr_changes(replicas, &p->isr_shrinks, &p->isr_expands, &p->isr_refused);
    p->replicated_in = replica_manager_bytes_in(replicas);
    look_at_cluster(p);
    group_manager_count(s->broker->groups, &p->groups);
    txn_manager_count(s->broker->txns, &p->txns);
    look_at_fetchers(p);
    look_at_controller(p);
    look_at_network(p);
    look_at_quotas(p);
    turn_windows(p, clock_mono_ms(s->broker->clock));
    if (!p->failed)
        return p;
    metrics_page_end(p);
    return NULL;
}

void metrics_page_end(void *page)
{
    struct page *p = page;
    for (size_t i = 0; i < p->partitions_n; i++)
        partition_unref(p->partitions[i].partition);
    for (size_t i = 0; i < p->topics_n; i++)
        topic_counts_unref(p->topics[i]);
    free(p->partitions);
    free(p->topics);
    free(p->fetchers);
    free(p->net);
    free(p->quotas);
    free(p->controller.queues);
    free(p);
}

/* ---- pieces ---- */

bool metrics_page_next(void *page, struct buf *out)
{
    struct page *p = page;
    while (p->family < p->families_n && out->len < PAGE_PIECE && !out->failed) {
        const struct family *f = p->families[p->family];
        size_t n = f->items(p);
        if (!p->headed)
            metrics_head(out, f->name, f->kind, f->help);
        p->headed = true; /* the piece may end before the first item */
        for (; p->item < n && out->len < PAGE_PIECE && !out->failed; p->item++)
            f->put(p, f, p->item, out);
        if (p->item >= n) {
            p->family++;
            p->item = 0;
            p->headed = false;
        }
    }
    return p->family < p->families_n;
}
