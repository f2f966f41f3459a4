/* metrics_families.c - every family of the page, in order: names as dashboards for Kafka have them
 * from the JMX exporter's usual rules. docs/metrics.md lists the same (a test compares). */
#include <math.h>
#include <stdio.h>

#include "log/cleaner.h"
#include "replica/fetchers.h"
#include "server/broker_private.h"
#include "server/fetch_session.h"
#include "server/metrics_page_private.h"

/* ---- one value ---- */

static size_t one(const struct page *p)
{
    (void)p;
    return 1;
}

static void put_value(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    (void)item;
    metrics_sample(out, f->name, "", NULL, 0, f->value(p));
}

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
static double controller_active(const struct page *p)
{
    return (double)p->cluster.active;
}
static double cluster_offline(const struct page *p)
{
    return (double)p->cluster.offline;
}
static double cluster_imbalanced(const struct page *p)
{
    return (double)p->cluster.imbalanced;
}
static double cluster_topics(const struct page *p)
{
    return (double)p->cluster.topics;
}
static double cluster_partitions(const struct page *p)
{
    return (double)p->cluster.partitions;
}
static double cluster_brokers(const struct page *p)
{
    return (double)p->cluster.brokers;
}
static double replicated_out(const struct page *p)
{
    return (double)metrics_total(broker_metrics(p->broker), COUNT_REPLICATED_OUT);
}
static double replicated_in(const struct page *p)
{
    return (double)p->replicated_in;
}
static double fetch_sessions(const struct page *p)
{
    return fetch_sessions_count(p->broker->fetch_sessions);
}
static double fetch_session_partitions(const struct page *p)
{
    return fetch_sessions_partitions(p->broker->fetch_sessions);
}
static double failed_followers(const struct page *p)
{
    return p->broker->fetchers ? fetchers_failed_count(p->broker->fetchers) : 0;
}
static double group_count(const struct page *p)
{
    return (double)p->groups.groups;
}
static double offset_count(const struct page *p)
{
    return (double)p->groups.offsets;
}

static void put_group_state(const struct page *p, const struct family *f, size_t item,
                            struct buf *out)
{
    (void)item;
    metrics_sample(out, f->name, "", NULL, 0, (double)p->groups.by_state[f->which]);
}

static double running(const struct page *p)
{
    (void)p;
    return 3; /* it answers: neither starting nor shutting down */
}

static double connections(const struct page *p)
{
    pthread_mutex_lock(&p->broker->listeners_lock);
    double n = p->broker->net ? net_server_connections(p->broker->net) : 0;
    pthread_mutex_unlock(&p->broker->listeners_lock);
    return n;
}

/* ---- log dirs ---- */

enum { DIRS_MAX = 64 };

static int dirs_of(const struct page *p, struct log_dir **out)
{
    return log_manager_dirs(p->broker->logs, out, DIRS_MAX);
}

static double offline_dirs(const struct page *p)
{
    struct log_dir *dirs[DIRS_MAX];
    int offline = 0, n = dirs_of(p, dirs);
    for (int i = 0; i < n; i++)
        offline += log_dir_offline(dirs[i]);
    return offline;
}

static size_t dir_items(const struct page *p)
{
    struct log_dir *dirs[DIRS_MAX];
    return (size_t)dirs_of(p, dirs);
}

static void put_dir_offline(const struct page *p, const struct family *f, size_t item,
                            struct buf *out)
{
    struct log_dir *dirs[DIRS_MAX];
    if (item >= (size_t)dirs_of(p, dirs))
        return;
    struct metric_label l = {"logDirectory", str_of(log_dir_path(dirs[item]))};
    metrics_sample(out, f->name, "", &l, 1, log_dir_offline(dirs[item]));
}

/* `which`: 0 the logs, 1 their bytes. */
static void put_uncleanable(const struct page *p, const struct family *f, size_t item,
                            struct buf *out)
{
    struct log_dir *dirs[DIRS_MAX];
    int logs = 0;
    int64_t bytes = 0;
    if (item >= (size_t)dirs_of(p, dirs))
        return;
    if (p->broker->cleaner)
        cleaner_uncleanable(p->broker->cleaner, dirs[item], &logs, &bytes);
    struct metric_label l = {"logDirectory", str_of(log_dir_path(dirs[item]))};
    metrics_sample(out, f->name, "", &l, 1, f->which ? (double)bytes : logs);
}

/* ---- the cleaner ---- */

static struct cleaner_stats cleaner_of(const struct page *p)
{
    struct cleaner_stats s = {.last_run_ms = -1};
    if (p->broker->cleaner)
        cleaner_stats(p->broker->cleaner, &s);
    return s;
}
static double dirty_percent(const struct page *p)
{
    return cleaner_of(p).max_dirty_percent;
}
static double buffer_percent(const struct page *p)
{
    return cleaner_of(p).max_buffer_utilization_percent;
}
static double recopy_percent(const struct page *p)
{
    return cleaner_of(p).recopy_percent;
}
static double clean_seconds(const struct page *p)
{
    return cleaner_of(p).max_clean_time_s;
}
static double compaction_delay(const struct page *p)
{
    return cleaner_of(p).max_compaction_delay_s;
}
static double since_cleaned_ms(const struct page *p)
{
    int64_t last = cleaner_of(p).last_run_ms;
    return last < 0 ? NAN : (double)(clock_mono_ms(p->broker->clock) - last);
}

/* ---- who it is ---- */

static void put_build(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    (void)p;
    (void)item;
    struct metric_label l = {"version", str_of(KAFKAD_VERSION)};
    metrics_sample(out, f->name, "", &l, 1, 1);
}

static void put_app(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    (void)item;
    char id[16];
    snprintf(id, sizeof(id), "%d", (int)broker_id(p->broker));
    struct metric_label l[] = {{"id", str_of(id)}, {"version", str_of(KAFKAD_VERSION)}};
    metrics_sample(out, f->name, "", l, 2, 1);
}

static void put_cluster_id(const struct page *p, const struct family *f, size_t item,
                           struct buf *out)
{
    (void)item;
    struct metric_label l = {"clusterId", str_of(broker_cluster_id(p->broker))};
    metrics_sample(out, f->name, "", &l, 1, 1);
}

/* ---- topics: the whole broker's, then each that had some ---- */

static size_t topic_items(const struct page *p)
{
    return p->topics_n + 1;
}

static void put_topic(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    enum topic_count which = (enum topic_count)f->which;
    if (item == 0) {
        metrics_sample(out, f->name, "", NULL, 0,
                       (double)metrics_topic_total(broker_metrics(p->broker), which));
        return;
    }
    const struct topic_counts *c = p->topics[item - 1];
    uint64_t n = topic_counts_read(c, which);
    struct metric_label l = {"topic", topic_counts_topic(c)};
    if (n)
        metrics_sample(out, f->name, "", &l, 1, (double)n);
}

/* ---- partitions ---- */

static size_t partition_items(const struct page *p)
{
    return p->partitions_n;
}

static void put_partition(const struct page *p, const struct family *f, size_t item,
                          struct buf *out)
{
    const struct page_partition *at = &p->partitions[item];
    char number[16];
    struct topic_partition tp = partition_tp(at->partition);
    snprintf(number, sizeof(number), "%d", (int)tp.partition);
    struct metric_label l[] = {{"topic", tp.topic}, {"partition", str_of(number)}};
    metrics_sample(out, f->name, "", l, 2, f->of_partition(&at->facts));
}

/* Those without a log (its dir failed) are left out. */
static void put_log(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    if (p->partitions[item].facts.has_log)
        put_partition(p, f, item, out);
}

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
static double log_bytes(const struct partition_facts *f)
{
    return (double)f->size;
}
static double segments(const struct partition_facts *f)
{
    return f->segments;
}
static double log_start(const struct partition_facts *f)
{
    return (double)f->log_start;
}
static double log_end(const struct partition_facts *f)
{
    return (double)f->log_end;
}

/* ---- the table ---- */

/* clang-format off */
#define VALUE(n, k, of, text)      {.name = n, .kind = METRIC_##k, .help = text, .items = one, .put = put_value, .value = of}
#define LABELLED(n, f, w, text)    {.name = n, .kind = METRIC_GAUGE, .help = text, .items = one, .put = f, .which = w}
#define DIR(n, f, w, text)         {.name = n, .kind = METRIC_GAUGE, .help = text, .items = dir_items, .put = f, .which = w}
#define TOPIC(n, w, text)          {.name = n, .kind = METRIC_COUNTER, .help = text, .items = topic_items, .put = put_topic, .which = w}
#define PARTITION(n, of, text)     {.name = n, .kind = METRIC_GAUGE, .help = text, .items = partition_items, .put = put_partition, .of_partition = of}
#define LOG(n, of, text)           {.name = n, .kind = METRIC_GAUGE, .help = text, .items = partition_items, .put = put_log, .of_partition = of}
#define REQUEST(n, w, text)        {.name = n, .kind = METRIC_SUMMARY, .help = text, .items = request_items, .put = put_request_histogram, .which = w}
#define REQUESTS(n, f, text)       {.name = n, .kind = METRIC_COUNTER, .help = text, .items = request_items, .put = f}

const struct family metrics_families[] = {
    VALUE("process_cpu_seconds_total", COUNTER, process_cpu_seconds, "Time of processors used, user and system."),
    VALUE("process_resident_memory_bytes", GAUGE, process_resident_bytes, "Memory in use."),
    VALUE("process_virtual_memory_bytes", GAUGE, process_virtual_bytes, "Address space in use."),
    VALUE("process_open_fds", GAUGE, process_open_fds, "Open descriptors."),
    VALUE("process_max_fds", GAUGE, process_max_fds, "Descriptors that may be open."),
    VALUE("process_threads", GAUGE, process_threads, "Threads."),
    VALUE("process_start_time_seconds", GAUGE, process_start_seconds, "When it started, in seconds since 1970."),
    LABELLED("kafkad_build_info", put_build, 0, "1; the version is a label."),
    LABELLED("kafka_server_app_info", put_app, 0, "1; broker id and version are labels."),
    VALUE("kafka_server_kafkaserver_brokerstate", GAUGE, running, "3: running."),
    LABELLED("kafka_server_kafkaserver_clusterid", put_cluster_id, 0, "1; the cluster's id is a label."),
    VALUE("kafka_server_kafkaserver_linux_disk_read_bytes", COUNTER, process_read_bytes, "Bytes that the process had read from disks."),
    VALUE("kafka_server_kafkaserver_linux_disk_write_bytes", COUNTER, process_write_bytes, "Bytes that the process had written to disks."),

    TOPIC("kafka_server_brokertopicmetrics_messagesin_total", TOPIC_MESSAGES_IN, "Records appended for producers."),
    TOPIC("kafka_server_brokertopicmetrics_bytesin_total", TOPIC_BYTES_IN, "Bytes of records appended for producers."),
    TOPIC("kafka_server_brokertopicmetrics_bytesout_total", TOPIC_BYTES_OUT, "Bytes of records sent to consumers."),
    TOPIC("kafka_server_brokertopicmetrics_bytesrejected_total", TOPIC_BYTES_REJECTED, "Bytes of records refused as too large."),
    TOPIC("kafka_server_brokertopicmetrics_totalproducerequests_total", TOPIC_PRODUCE_REQUESTS, "Partitions in Produce requests."),
    TOPIC("kafka_server_brokertopicmetrics_totalfetchrequests_total", TOPIC_FETCH_REQUESTS, "Partitions in answers to Fetch requests."),
    TOPIC("kafka_server_brokertopicmetrics_failedproducerequests_total", TOPIC_FAILED_PRODUCE, "Partitions of Produce requests that failed though this broker should have taken them."),
    TOPIC("kafka_server_brokertopicmetrics_failedfetchrequests_total", TOPIC_FAILED_FETCH, "Partitions of Fetch requests that failed though this broker should have read them."),
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
    VALUE("kafka_server_replicafetchermanager_failedpartitionscount", GAUGE, failed_followers, "Followed partitions that replication gave up on."),
    PARTITION("kafka_cluster_partition_underreplicated", is_under_replicated, "1: the ISR is smaller than the replicas (at the leader)."),
    PARTITION("kafka_cluster_partition_underminisr", is_under_min_isr, "1: the ISR is below min.insync.replicas (at the leader)."),
    PARTITION("kafka_cluster_partition_atminisr", is_at_min_isr, "1: the ISR is just min.insync.replicas (at the leader)."),
    PARTITION("kafka_cluster_partition_insyncreplicascount", isr_size, "Size of the ISR; 0 at followers."),
    PARTITION("kafka_cluster_partition_replicascount", replicas, "Number of replicas; 0 at followers."),
    PARTITION("kafka_cluster_partition_laststableoffsetlag", stable_lag, "High watermark less last stable offset; 0 at followers."),

    LOG("kafka_log_log_size", log_bytes, "Bytes of the log."),
    LOG("kafka_log_log_numlogsegments", segments, "Segments of the log."),
    LOG("kafka_log_log_logstartoffset", log_start, "First offset of the log."),
    LOG("kafka_log_log_logendoffset", log_end, "Offset of the next record."),
    VALUE("kafka_log_logmanager_offlinelogdirectorycount", GAUGE, offline_dirs, "Log dirs that failed."),
    DIR("kafka_log_logmanager_logdirectoryoffline", put_dir_offline, 0, "1: the log dir failed."),
    VALUE("kafka_log_logcleaner_max_buffer_utilization_percent", GAUGE, buffer_percent, "Fullest offset map of the cleaner's last runs."),
    VALUE("kafka_log_logcleaner_cleaner_recopy_percent", GAUGE, recopy_percent, "Share of the bytes read that the cleaner's last runs wrote again."),
    VALUE("kafka_log_logcleaner_max_clean_time_secs", GAUGE, clean_seconds, "Longest of the cleaner's last runs."),
    VALUE("kafka_log_logcleaner_max_compaction_delay_secs", GAUGE, compaction_delay, "How long the most overdue compaction is overdue."),
    VALUE("kafka_log_logcleanermanager_max_dirty_percent", GAUGE, dirty_percent, "Dirty share of the dirtiest log."),
    VALUE("kafka_log_logcleanermanager_time_since_last_run_ms", GAUGE, since_cleaned_ms, "Time since the cleaner last ran; NaN before its first run."),
    DIR("kafka_log_logcleanermanager_uncleanable_partitions_count", put_uncleanable, 0, "Logs that the cleaner leaves alone, as damaged."),
    DIR("kafka_log_logcleanermanager_uncleanable_bytes", put_uncleanable, 1, "Dirty bytes of those."),

    VALUE("kafka_controller_kafkacontroller_activecontrollercount", GAUGE, controller_active, "1: this broker is the controller."),
    VALUE("kafka_controller_kafkacontroller_offlinepartitionscount", GAUGE, cluster_offline, "Partitions without leader (at the controller, like the next)."),
    VALUE("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", GAUGE, cluster_imbalanced, "Partitions that their preferred replica does not lead."),
    VALUE("kafka_controller_kafkacontroller_globaltopiccount", GAUGE, cluster_topics, "Topics of the cluster."),
    VALUE("kafka_controller_kafkacontroller_globalpartitioncount", GAUGE, cluster_partitions, "Partitions of the cluster."),
    VALUE("kafka_controller_kafkacontroller_activebrokercount", GAUGE, cluster_brokers, "Brokers alive."),

    VALUE("kafka_coordinator_group_groupmetadatamanager_numgroups", GAUGE, group_count, "Groups that this broker coordinates."),
    VALUE("kafka_coordinator_group_groupmetadatamanager_numoffsets", GAUGE, offset_count, "Their committed offsets."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", put_group_state, GROUP_PREPARING_REBALANCE, "Groups that wait for members to join (KIP-848: that have no assignment for their members yet)."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance", put_group_state, GROUP_COMPLETING_REBALANCE, "Groups whose members await their assignment (KIP-848: are moving to it)."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", put_group_state, GROUP_STABLE, "Groups at work."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupsdead", put_group_state, GROUP_DEAD, "Groups that are being deleted."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupsempty", put_group_state, GROUP_EMPTY, "Groups without members, which keep offsets."),

    VALUE("kafka_server_fetchsessioncache_numincrementalfetchsessions", GAUGE, fetch_sessions, "Fetch sessions kept."),
    VALUE("kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", GAUGE, fetch_session_partitions, "Partitions in fetch sessions."),
    VALUE("kafka_server_socket_server_metrics_connection_count", GAUGE, connections, "Connections of clients and brokers."),

    REQUESTS("kafka_network_requestmetrics_requests_total", put_request_versions, "Requests answered, by API and version."),
    REQUESTS("kafka_network_requestmetrics_errors_total", put_request_errors, "Error codes in answers, by API; NONE counts, too."),
    REQUEST("kafka_network_requestmetrics_totaltimems", REQUEST_TOTAL_US, "From a request's arrival to its answer, in ms."),
    REQUEST("kafka_network_requestmetrics_localtimems", REQUEST_LOCAL_US, "Of that, until it began to wait."),
    REQUEST("kafka_network_requestmetrics_remotetimems", REQUEST_REMOTE_US, "Of that, waiting: for replicas, records, workers."),
    REQUEST("kafka_network_requestmetrics_throttletimems", REQUEST_THROTTLE_US, "How long clients were held back by quotas, in ms."),
    REQUEST("kafka_network_requestmetrics_responsesendtimems", REQUEST_SEND_US, "Encoding an answer and handing it to the system, in ms."),
    REQUEST("kafka_network_requestmetrics_requestbytes", REQUEST_BYTES, "Size of requests."),
};
/* clang-format on */
const size_t metrics_families_n = sizeof(metrics_families) / sizeof(*metrics_families);
