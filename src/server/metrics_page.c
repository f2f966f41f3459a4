/* metrics_page.c - a page from its look at the broker to its last piece. */
#include "server/metrics_page.h"

#include <stdlib.h>

#include "coordinator/group_manager.h"
#include "server/broker_private.h"
#include "server/metrics_page_private.h"

struct metrics_pages *metrics_pages_new(struct broker *b)
{
    struct metrics_pages *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->broker = b;
    s->turned_ms = clock_mono_ms(b->clock);
    return s;
}

void metrics_pages_free(struct metrics_pages *s)
{
    for (int k = 0; s && k < REQUEST_KINDS; k++)
        free(s->windows[k]);
    free(s);
}

/* ---- the look ---- */

/* Room for one more; false: no memory. */
static bool grow(void *array, size_t n, size_t *cap, size_t size)
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

static void look_at_partition(void *arg, struct partition *partition)
{
    struct page *p = arg;
    if (p->failed ||
        !grow(&p->partitions, p->partitions_n, &p->partitions_cap, sizeof(*p->partitions))) {
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
}

static void look_at_topic(void *arg, const struct topic_counts *c)
{
    struct page *p = arg;
    if (p->failed ||
        !grow(&p->topics, p->topics_n, &p->topics_cap, sizeof(struct topic_counts *))) {
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
    p->families = metrics_families;
    p->families_n = metrics_families_n;
    metrics_windows_turn(s, clock_mono_ms(s->broker->clock));
    struct replica_manager *replicas = atomic_load(&s->broker->replicas);
    replica_manager_each(replicas, look_at_partition, p);
    replica_manager_each_topic(replicas, look_at_topic, p);
    replica_manager_isr_changes(replicas, &p->isr_shrinks, &p->isr_expands, &p->isr_refused);
    p->replicated_in = replica_manager_bytes_in(replicas);
    look_at_cluster(p);
    group_manager_count(s->broker->groups, &p->groups);
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
    free(p);
}

/* ---- pieces ---- */

bool metrics_page_next(void *page, struct buf *out)
{
    struct page *p = page;
    while (p->family < p->families_n && out->len < PAGE_PIECE && !out->failed) {
        const struct family *f = &p->families[p->family];
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
