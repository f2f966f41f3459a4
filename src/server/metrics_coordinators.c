/* metrics_coordinators.c - families of what the coordinators of groups and transactions do; how
 * many groups there are is in metrics_families.c. */
#include "coordinator/txn_manager.h"
#include "server/broker_private.h"
#include "server/metrics_page_private.h"

static double mean_ms(const struct coordinator_loads *l)
{
    return l->n ? (double)l->ms / (double)l->n : 0;
}

static double committed(const struct page *p)
{
    return (double)p->groups.events.committed;
}
static double expired(const struct page *p)
{
    return (double)p->groups.events.expired;
}
static double deleted(const struct page *p)
{
    return (double)p->groups.events.deleted;
}
static double rebalances(const struct page *p)
{
    return (double)p->groups.events.rebalances;
}
static double group_load_most(const struct page *p)
{
    return (double)p->groups.events.loads.most_ms;
}
static double txn_load_most(const struct page *p)
{
    return (double)p->txns.loads.most_ms;
}
static double homeless(const struct page *p)
{
    return (double)p->txns.homeless_markers;
}
static double again(const struct page *p)
{
    return (double)p->txns.writes_again;
}
static double ids(const struct page *p)
{
    return (double)p->txns.ids;
}
static double group_load_mean(const struct page *p)
{
    return mean_ms(&p->groups.events.loads);
}
static double txn_load_mean(const struct page *p)
{
    return mean_ms(&p->txns.loads);
}
static double unverified(const struct page *p)
{
    return (double)metric_read(&txn_manager_verifier_counts(p->broker->txns)->failed);
}

static void verifications(const struct page *p, const struct family *f, struct tally *out)
{
    (void)f;
    tally_add(out, &txn_manager_verifier_counts(p->broker->txns)->took_us);
}

/* clang-format off */
#define GROUP(n, k, of, text) VALUE("kafka_server_group_coordinator_metrics_" n, k, of, text)
#define TXN(n, k, of, text)   VALUE("kafka_server_transaction_coordinator_metrics_" n, k, of, text)

static const struct family families[] = {
    GROUP("offset_commit_count", COUNTER, committed, "Offsets that were committed."),
    GROUP("offset_expiration_count", COUNTER, expired, "Offsets that expired."),
    GROUP("offset_deletion_count", COUNTER, deleted, "Offsets deleted by request, or with their topic or group."),
    GROUP("group_completed_rebalance_count", COUNTER, rebalances, "Generations of groups that became stable (not of KIP-848)."),
    GROUP("partition_load_time_max", GAUGE, group_load_most, "Slowest load of a partition of __consumer_offsets since the start, in ms."),
    GROUP("partition_load_time_avg", GAUGE, group_load_mean, "Their mean."),
    TXN("partition_load_time_max", GAUGE, txn_load_most, "Slowest load of a partition of __transaction_state since the start, in ms."),
    TXN("partition_load_time_avg", GAUGE, txn_load_mean, "Their mean."),
    TXN("transactional_id_count", GAUGE, ids, "Transactional ids that this broker coordinates."),
    VALUE("kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize", GAUGE, homeless, "Markers for partitions without a leader that is known."),
    VALUE("kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize", GAUGE, again, "Writes to the log of transactions that are to be tried again."),
    VALUE("kafka_server_addpartitionstotxnmanager_verificationfailurerate_count", COUNTER, unverified, "Questions whether partitions are in a transaction that were not answered with yes."),
    TIMES("kafka_server_addpartitionstotxnmanager_verificationtimems", verifications, 0, "How long these questions took, in ms."),
};
/* clang-format on */
const struct family_set metrics_coordinators = {families, sizeof(families) / sizeof(*families)};
