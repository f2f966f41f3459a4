/* metrics_families.c - families of the process, of topics, logs, log dirs, groups and requests:
 * names as dashboards for Kafka have them from the JMX exporter's usual rules. docs/metrics.md
 * lists the families of all tables (a test compares). */
#include <math.h>
#include <stdio.h>

#include "log/cleaner.h"
#include "server/broker_private.h"
#include "server/fetch_session.h"
#include "server/metrics_page_private.h"

/* ---- one value ---- */

static double fetch_sessions(const struct page *p)
{
    return fetch_sessions_count(p->broker->fetch_sessions);
}
static double fetch_sessions_gone(const struct page *p)
{
    return (double)fetch_sessions_evicted(p->broker->fetch_sessions);
}
static double fetch_session_partitions(const struct page *p)
{
    return fetch_sessions_partitions(p->broker->fetch_sessions);
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

/* `which`: an enum broker_count. */
static void put_count(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    (void)item;
    metrics_sample(out, f->name, "", NULL, 0,
                   (double)metrics_total(broker_metrics(p->broker), (enum broker_count)f->which));
}

/* ---- requests that wait for partitions ---- */

static const char *const wait_names[WAIT_KINDS] = {
    [WAIT_PRODUCE] = "Produce", [WAIT_FETCH] = "Fetch", [WAIT_DELETE_RECORDS] = "DeleteRecords"};

static size_t wait_items(const struct page *p)
{
    (void)p;
    return WAIT_KINDS;
}

/* `which`: 0 the requests, 1 their partitions. */
static void put_waits(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    struct metric_label l = {"delayedOperation", str_of(wait_names[item])};
    metrics_sample(
        out, f->name, "", &l, 1,
        (double)metrics_waiting(broker_metrics(p->broker), (enum wait_kind)item, f->which));
}

static void put_expired_fetches(const struct page *p, const struct family *f, size_t item,
                                struct buf *out)
{
    static const struct {
        const char *type;
        enum broker_count count;
    } sorts[] = {{"consumer", COUNT_EXPIRED_FETCH}, {"follower", COUNT_EXPIRED_FOLLOWER_FETCH}};
    (void)item;
    for (int i = 0; i < 2; i++) {
        struct metric_label l = {"fetcherType", str_of(sorts[i].type)};
        metrics_sample(out, f->name, "", &l, 1,
                       (double)metrics_total(broker_metrics(p->broker), sorts[i].count));
    }
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

static void flush_times(const struct page *p, const struct family *f, struct tally *out)
{
    struct log_dir *dirs[DIRS_MAX];
    int n = dirs_of(p, dirs);
    (void)f;
    for (int i = 0; i < n; i++)
        tally_add(out, log_dir_flushes(dirs[i]));
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

/* Those without a log (its dir failed) are left out. */
static void put_log(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    if (p->partitions[item].facts.has_log)
        put_partition(p, f, item, out);
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
#define COUNT(n, w, text)          ITEMS(n, COUNTER, one_item, put_count, w, text)
#define DIR(n, f, w, text)         {.name = n, .kind = METRIC_GAUGE, .help = text, .items = dir_items, .put = f, .which = w}
#define TOPIC(n, w, text)          {.name = n, .kind = METRIC_COUNTER, .help = text, .items = topic_items, .put = put_topic, .which = w}
#define LOG(n, of, text)           {.name = n, .kind = METRIC_GAUGE, .help = text, .items = partition_items, .put = put_log, .of_partition = of}
#define REQUEST(n, w, text)        {.name = n, .kind = METRIC_SUMMARY, .help = text, .items = request_items, .put = put_request_histogram, .which = w}
#define REQUESTS(n, f, text)       {.name = n, .kind = METRIC_COUNTER, .help = text, .items = request_items, .put = f}

static const struct family families[] = {
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
    TOPIC("kafka_server_brokertopicmetrics_producemessageconversions_total", TOPIC_PRODUCE_CONVERSIONS, "Records of producers that another codec or format was made of."),
    TOPIC("kafka_server_brokertopicmetrics_fetchmessageconversions_total", TOPIC_FETCH_CONVERSIONS, "Records that an older format was made of for consumers."),
    COUNT("kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total", COUNT_NO_KEY, "Batches refused for records without a key, in a compacted topic."),
    COUNT("kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total", COUNT_BAD_MAGIC, "Batches refused for their format."),
    COUNT("kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total", COUNT_BAD_CRC, "Batches refused for their checksum."),
    COUNT("kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total", COUNT_BAD_OFFSET, "Batches refused for their offsets or sequence numbers."),

    LOG("kafka_log_log_size", log_bytes, "Bytes of the log."),
    LOG("kafka_log_log_numlogsegments", segments, "Segments of the log."),
    LOG("kafka_log_log_logstartoffset", log_start, "First offset of the log."),
    LOG("kafka_log_log_logendoffset", log_end, "Offset of the next record."),
    VALUE("kafka_log_logmanager_offlinelogdirectorycount", GAUGE, offline_dirs, "Log dirs that failed."),
    TIMES("kafka_log_logflushstats_logflushrateandtimems", flush_times, 0, "Flushes of logs (fsync), in ms."),
    DIR("kafka_log_logmanager_logdirectoryoffline", put_dir_offline, 0, "1: the log dir failed."),
    VALUE("kafka_log_logcleaner_max_buffer_utilization_percent", GAUGE, buffer_percent, "Fullest offset map of the cleaner's last runs."),
    VALUE("kafka_log_logcleaner_cleaner_recopy_percent", GAUGE, recopy_percent, "Share of the bytes read that the cleaner's last runs wrote again."),
    VALUE("kafka_log_logcleaner_max_clean_time_secs", GAUGE, clean_seconds, "Longest of the cleaner's last runs."),
    VALUE("kafka_log_logcleaner_max_compaction_delay_secs", GAUGE, compaction_delay, "How long the most overdue compaction is overdue."),
    VALUE("kafka_log_logcleanermanager_max_dirty_percent", GAUGE, dirty_percent, "Dirty share of the dirtiest log."),
    VALUE("kafka_log_logcleanermanager_time_since_last_run_ms", GAUGE, since_cleaned_ms, "Time since the cleaner last ran; NaN before its first run."),
    DIR("kafka_log_logcleanermanager_uncleanable_partitions_count", put_uncleanable, 0, "Logs that the cleaner leaves alone, as damaged."),
    DIR("kafka_log_logcleanermanager_uncleanable_bytes", put_uncleanable, 1, "Dirty bytes of those."),

    VALUE("kafka_coordinator_group_groupmetadatamanager_numgroups", GAUGE, group_count, "Groups that this broker coordinates."),
    VALUE("kafka_coordinator_group_groupmetadatamanager_numoffsets", GAUGE, offset_count, "Their committed offsets."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", put_group_state, GROUP_PREPARING_REBALANCE, "Groups that wait for members to join (KIP-848: that have no assignment for their members yet)."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance", put_group_state, GROUP_COMPLETING_REBALANCE, "Groups whose members await their assignment (KIP-848: are moving to it)."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", put_group_state, GROUP_STABLE, "Groups at work."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupsdead", put_group_state, GROUP_DEAD, "Groups that are being deleted."),
    LABELLED("kafka_coordinator_group_groupmetadatamanager_numgroupsempty", put_group_state, GROUP_EMPTY, "Groups without members, which keep offsets."),

    ITEMS("kafka_server_delayedoperationpurgatory_numdelayedoperations", GAUGE, wait_items, put_waits, 0, "Requests that wait for partitions."),
    ITEMS("kafka_server_delayedoperationpurgatory_purgatorysize", GAUGE, wait_items, put_waits, 1, "Partitions that they wait for."),
    ITEMS("kafka_server_delayedfetchmetrics_expires_total", COUNTER, one_item, put_expired_fetches, 0, "Fetch requests whose time was over before their bytes were there."),
    COUNT("kafka_server_delayedproducemetrics_expires_total", COUNT_EXPIRED_PRODUCE, "Partitions of Produce requests whose time was over before the replicas had their records."),
    COUNT("kafka_server_delayeddeleterecordsmetrics_expires_total", COUNT_EXPIRED_DELETE_RECORDS, "The same of DeleteRecords."),

    VALUE("kafka_server_fetchsessioncache_numincrementalfetchsessions", GAUGE, fetch_sessions, "Fetch sessions kept."),
    VALUE("kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total", COUNTER, fetch_sessions_gone, "Fetch sessions that made room for others."),
    VALUE("kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", GAUGE, fetch_session_partitions, "Partitions in fetch sessions."),

    REQUESTS("kafka_network_requestmetrics_requests_total", put_request_versions, "Requests answered, by API and version."),
    REQUESTS("kafka_network_requestmetrics_errors_total", put_request_errors, "Error codes in answers, by API; NONE counts, too."),
    REQUEST("kafka_network_requestmetrics_totaltimems", REQUEST_TOTAL_US, "From a request's turn to be read to its answer, in ms."),
    REQUEST("kafka_network_requestmetrics_requestqueuetimems", REQUEST_QUEUE_US, "Of that, behind other requests of the same round of its network thread."),
    REQUEST("kafka_network_requestmetrics_localtimems", REQUEST_LOCAL_US, "Of that, until it began to wait."),
    REQUEST("kafka_network_requestmetrics_remotetimems", REQUEST_REMOTE_US, "Of that, waiting: for replicas, records, workers."),
    REQUEST("kafka_network_requestmetrics_throttletimems", REQUEST_THROTTLE_US, "How long clients were held back by quotas, in ms."),
    REQUEST("kafka_network_requestmetrics_responsesendtimems", REQUEST_SEND_US, "Encoding an answer and handing it to the system, in ms."),
    REQUEST("kafka_network_requestmetrics_requestbytes", REQUEST_BYTES, "Size of requests."),
};
/* clang-format on */
const struct family_set metrics_general = {families, sizeof(families) / sizeof(*families)};
