/* broker_txns.c - see broker_txns.h. */
#include "server/broker_txns.h"

#include <stdio.h>

#include "coordinator/txn_manager.h"
#include "server/broker_cluster.h"
#include "server/broker_groups.h"
#include "server/broker_private.h"
#include "server/broker_security.h"

enum { WORKERS_PER_LOAD = 4 };

static int next_producer_id(void *arg, int64_t *id)
{
    const struct broker *b = arg;
    return producer_ids_next(b->producer_ids, id);
}

static struct txn_config txn_config_of(const struct config *c)
{
    return (struct txn_config){
        .max_timeout_ms = (int32_t)config_int(c, "transaction.max.timeout.ms"),
        .expiration_ms = config_int(c, "transactional.id.expiration.ms"),
        .abort_interval_ms =
            config_int(c, "transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        .expire_interval_ms =
            config_int(c, "transaction.remove.expired.transaction.cleanup.interval.ms")};
}

static int make_manager(struct broker *b, int32_t partitions)
{
    const struct config *c = b->config;
    struct executor *ex = uv_executor_ex(b->txn_executor);
    int loads = (int)config_int(c, "num.io.threads") / WORKERS_PER_LOAD;
    char client_id[16];
    snprintf(client_id, sizeof(client_id), "%d", b->id);
    struct str listener = str_of(c->inter_broker_listener);
    b->txn_peers = broker_peers(b, b->txn_executor, listener);
    struct txn_manager_options o = {
        .ex = ex,
        .replicas = atomic_load(&b->replicas),
        .workers = b->workers,
        .clock = b->clock,
        .metadata = b->metadata,
        .config = txn_config_of(c),
        .partitions_n = partitions,
        .load_buffer_size = (size_t)config_int(c, "transaction.state.log.load.buffer.size"),
        .loads_at_once = loads > 1 ? loads : 1,
        .listener = listener,
        .opener = remote_peers_opener(&b->txn_peers),
        .client_id = client_id,
        .request_timeout_ms = config_int(c, "request.timeout.ms"),
        .producer_id = next_producer_id,
        .arg = b};
    return txn_manager_new(&o, &b->txns);
}

int broker_txns_start(struct broker *b, char *err, size_t err_n)
{
    int32_t partitions;
    int rc = broker_internal_partitions(b, "__transaction_state",
                                        "transaction.state.log.num.partitions", &partitions);
    if (rc)
        return broker_start_failed(err, err_n, rc,
                                   "cannot read the partitions of __transaction_state");
    rc = uv_executor_start("txns", &b->txn_executor);
    if (!rc)
        rc = make_manager(b, partitions);
    return rc ? broker_start_failed(err, err_n, rc, "cannot start the transaction coordinator") : 0;
}

void broker_txns_shut_down(struct broker *b)
{
    if (b->txns)
        txn_manager_shut_down(b->txns);
}

void broker_txns_stop(struct broker *b)
{
    if (b->txn_executor)
        uv_executor_stop(b->txn_executor);
    txn_manager_free(b->txns);
    b->txns = NULL;
}
