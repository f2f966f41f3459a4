/* metrics_replication.c - families of the replicas here: who leads, who is in sync, who lags. */
#include <stdio.h>
#include <stdlib.h>

#include "server/broker_private.h"
#include "server/metrics_page_private.h"

/* ---- over all partitions ---- */

static double leader_count(const struct page *p)
{
    return (double)p->totals.led;
}
static double partition_count(const struct page *p)
{
    return (double)p->partitions_n;
}
static double under_replicated(const struct page *p)
{
    return (double)p->totals.under_replicated;
}
static double under_min_isr(const struct page *p)
{
    return (double)p->totals.under_min_isr;
}
static double at_min_isr(const struct page *p)
{
    return (double)p->totals.at_min_isr;
}
static double offline_replicas(const struct page *p)
{
    return (double)p->totals.offline;
}
static double moving(const struct page *p)
{
    return (double)p->totals.moving;
}
static double producer_ids(const struct page *p)
{
    return (double)p->totals.producers;
}
static double late_txns(const struct page *p)
{
    return (double)p->totals.late_txns;
}
static double isr_shrinks(const struct page *p)
{
    return (double)p->isr_shrinks;
}
static double isr_expands(const struct page *p)
{
    return (double)p->isr_expands;
}
static double isr_refused(const struct page *p)
{
    return (double)p->isr_refused;
}
static double replicated_in(const struct page *p)
{
    return (double)p->replicated_in;
}
static double replicated_out(const struct page *p)
{
    return (double)metrics_total(broker_metrics(p->broker), COUNT_REPLICATED_OUT);
}
static double moved_in(const struct page *p)
{
    return (double)replica_manager_moved_in(atomic_load(&p->broker->replicas));
}
static double moved_out(const struct page *p)
{
    return (double)metrics_total(broker_metrics(p->broker), COUNT_MOVED_OUT);
}

/* ---- each partition ---- */

static double is_under_replicated(const struct partition_facts *f)
{
    return f->under_replicated;
}
static double is_under_min_isr(const struct partition_facts *f)
{
    return f->under_min_isr;
}
static double is_at_min_isr(const struct partition_facts *f)
{
    return f->at_min_isr;
}
static double isr_size(const struct partition_facts *f)
{
    return f->isr_n;
}
static double replicas(const struct partition_facts *f)
{
    return f->replicas_n;
}
static double stable_lag(const struct partition_facts *f)
{
    return (double)f->stable_lag;
}

/* ---- what is followed ---- */

enum { FETCHERS_MAX = 1024 };

void look_at_fetchers(struct page *p)
{
    struct fetchers *fs = p->broker->fetchers;
    int n = fs ? fetchers_count(fs) : 0;
    if (n > FETCHERS_MAX)
        n = FETCHERS_MAX;
    if (n == 0)
        return;
    p->fetchers = calloc((size_t)n, sizeof(*p->fetchers));
    p->fetchers_n = p->fetchers ? fetchers_look(fs, p->fetchers, n) : 0;
    p->failed |= !p->fetchers;
}

/* All fetchers as one: as Kafka's manager of them. */
static void put_manager(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    struct metric_label l = {"clientId", str_of("Replica")};
    struct fetchers *fs = p->broker->fetchers;
    int failed = f->which && fs ? fetchers_failed_count(fs) : 0;
    (void)item;
    metrics_sample(out, f->name, "", &l, 1, f->which ? failed : (double)p->totals.max_lag);
}

static void put_name(char *out, size_t n, int number, int32_t source)
{
    snprintf(out, n, "ReplicaFetcherThread-%d-%d", number, (int)source);
}

static void put_lag(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct page_partition *at = &p->partitions[item];
    struct topic_partition tp = partition_tp(at->partition);
    char client[64], number[16];
    if (at->facts.lag < 0 || !p->broker->fetchers)
        return;
    put_name(client, sizeof(client), fetchers_number_for(p->broker->fetchers, tp),
             at->facts.leader);
    snprintf(number, sizeof(number), "%d", (int)tp.partition);
    struct metric_label l[] = {
        {"clientId", str_of(client)}, {"topic", tp.topic}, {"partition", str_of(number)}};
    metrics_sample(out, f->name, "", l, 3, (double)at->facts.lag);
}

static size_t fetcher_items(const struct page *p)
{
    return (size_t)p->fetchers_n;
}

/* `which`: 0 the fetches, 1 their bytes. */
static void put_fetcher(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct fetcher_figures *at = &p->fetchers[item];
    char client[64], port[16];
    put_name(client, sizeof(client), at->number, at->source);
    snprintf(port, sizeof(port), "%d", at->port);
    struct metric_label l[] = {{"clientId", str_of(client)},
                               {"brokerHost", str_of(at->host)},
                               {"brokerPort", str_of(port)}};
    metrics_sample(out, f->name, "", l, 3, (double)(f->which ? at->bytes : at->requests));
}

/* clang-format off */
static const struct family families[] = {
    VALUE("kafka_server_brokertopicmetrics_replicationbytesin_total", COUNTER, replicated_in, "Bytes of records that followers here took from their leaders."),
    VALUE("kafka_server_brokertopicmetrics_replicationbytesout_total", COUNTER, replicated_out, "Bytes of records sent to followers."),
    VALUE("kafka_server_replicamanager_leadercount", GAUGE, leader_count, "Partitions that this broker leads."),
    VALUE("kafka_server_replicamanager_partitioncount", GAUGE, partition_count, "Replicas here."),
    VALUE("kafka_server_replicamanager_underreplicatedpartitions", GAUGE, under_replicated, "Led partitions whose ISR is smaller than their replicas."),
    VALUE("kafka_server_replicamanager_underminisrpartitioncount", GAUGE, under_min_isr, "Led partitions whose ISR is below min.insync.replicas."),
    VALUE("kafka_server_replicamanager_atminisrpartitioncount", GAUGE, at_min_isr, "Led partitions whose ISR is just min.insync.replicas."),
    VALUE("kafka_server_replicamanager_offlinereplicacount", GAUGE, offline_replicas, "Replicas in log dirs that failed."),
    VALUE("kafka_server_replicamanager_isrshrinks_total", COUNTER, isr_shrinks, "ISRs of led partitions that shrank."),
    VALUE("kafka_server_replicamanager_isrexpands_total", COUNTER, isr_expands, "ISRs of led partitions that grew."),
    VALUE("kafka_server_replicamanager_failedisrupdates_total", COUNTER, isr_refused, "ISR changes that were not taken."),
    PARTITION("kafka_cluster_partition_underreplicated", is_under_replicated, "1: the ISR is smaller than the replicas (at the leader)."),
    PARTITION("kafka_cluster_partition_underminisr", is_under_min_isr, "1: the ISR is below min.insync.replicas (at the leader)."),
    PARTITION("kafka_cluster_partition_atminisr", is_at_min_isr, "1: the ISR is just min.insync.replicas (at the leader)."),
    PARTITION("kafka_cluster_partition_insyncreplicascount", isr_size, "Size of the ISR; 0 at followers."),
    PARTITION("kafka_cluster_partition_replicascount", replicas, "Number of replicas; 0 at followers."),
    PARTITION("kafka_cluster_partition_laststableoffsetlag", stable_lag, "High watermark less last stable offset; 0 at followers."),
    VALUE("kafka_server_brokertopicmetrics_reassignmentbytesin_total", COUNTER, moved_in, "Bytes of records that reassignments brought here."),
    VALUE("kafka_server_brokertopicmetrics_reassignmentbytesout_total", COUNTER, moved_out, "Bytes of records sent to followers that a reassignment adds."),
    VALUE("kafka_server_replicamanager_reassigningpartitions", GAUGE, moving, "Led partitions that are being reassigned."),
    VALUE("kafka_server_replicamanager_produceridcount", GAUGE, producer_ids, "Producer ids that the logs here remember."),
    VALUE("kafka_server_replicamanager_partitionswithlatetransactionscount", GAUGE, late_txns, "Partitions with a transaction that nobody ended in time."),
    LABELLED("kafka_server_replicafetchermanager_maxlag", put_manager, 0, "Records that the follower furthest behind lacks."),
    LABELLED("kafka_server_replicafetchermanager_failedpartitionscount", put_manager, 1, "Followed partitions that replication gave up on."),
    ITEMS("kafka_server_fetcherlagmetrics_consumerlag", GAUGE, partition_items, put_lag, 0, "Records that a follower here lacks of its leader's."),
    ITEMS("kafka_server_fetcherstats_requests_total", COUNTER, fetcher_items, put_fetcher, 0, "Fetches of one fetcher that were answered."),
    ITEMS("kafka_server_fetcherstats_bytes_total", COUNTER, fetcher_items, put_fetcher, 1, "Bytes of records in these answers."),
};
/* clang-format on */
const struct family_set metrics_replication = {families, sizeof(families) / sizeof(*families)};
